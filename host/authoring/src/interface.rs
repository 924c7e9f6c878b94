//! The names of a component's imports and exports.

use wasmparser::{BinaryReaderError, Parser, Payload};

/// The outermost imports and exports of a component, in the component's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

/// Reads a component's interface.
///
/// # Errors
/// If the file is truncated.
pub fn interface_of(component: &[u8]) -> Result<Interface, BinaryReaderError> {
    let mut interface = Interface::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    interface.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    interface.exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(interface)
}
