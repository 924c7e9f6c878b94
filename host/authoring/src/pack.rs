//! The packed file: a component with its manifest in a custom section.

use blockbase_blocks::{MANIFEST_SECTION, check_component, parse_manifest};
use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::{Encoding, Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

use crate::scaffold;

/// The interface for a core module that has no component type.
const WIT: &str = include_str!("../../../wit/blockbase-block-0.1.0/block.wit");
/// The functions that the SDKs export in addition to it.
const SDK_WIT: &str = include_str!("../../../wit/blockbase-sdk-0.1.0/sdk.wit");

/// The reason why a file cannot be packed, for the person who runs `block pack`.
#[derive(Debug)]
pub struct PackError(pub String);

impl std::fmt::Display for PackError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PackError {}

/// Makes a packed file from a manifest and a component. A core module is first turned into a component.
///
/// A core module without a component type gets the component type of the block interface. A module of WASI preview 1 gets the
/// adapter.
///
/// # Errors
/// A sentence about the fault of the file or the manifest.
pub fn pack(wasm: &[u8], manifest: &str) -> Result<Vec<u8>, PackError> {
    let checked = parse_manifest(manifest).map_err(|error| PackError(error.message))?;
    let component = componentize(wasm)?;
    check_component(&component).map_err(|error| PackError(error.message))?;
    let mut packed = without_sections(&component)?;
    // The metadata that registries turn into OCI annotations.
    let metadata = [
        ("version", Some(checked.version.as_str())),
        ("description", Some(checked.description.as_str()).filter(|text| !text.is_empty())),
        ("authors", checked.authors.as_deref()),
        ("licenses", checked.license.as_deref()),
        ("source", checked.source.as_deref()),
    ];
    let mut names = wasm_encoder::ComponentNameSection::new();
    names.component(&checked.name);
    names.append_to_component(&mut packed);
    for (name, value) in metadata {
        if let Some(value) = value {
            append(&mut packed, name, value.as_bytes());
        }
    }
    // The manifest as compact JSON, in the author's order.
    let compact = serde_json::to_vec(&checked).map_err(|error| PackError(error.to_string()))?;
    append(&mut packed, MANIFEST_SECTION, &compact);
    Ok(packed)
}

fn append(component: &mut Vec<u8>, name: &str, data: &[u8]) {
    CustomSection { name: name.into(), data: data.into() }.append_to_component(component);
}

/// The sections that packing replaces.
const OWN_SECTIONS: [&str; 7] = [MANIFEST_SECTION, "component-name", "version", "description", "authors", "licenses", "source"];

/// The component without the outermost sections that packing writes. So packing a component twice gives the same file as packing it
/// once.
fn without_sections(component: &[u8]) -> Result<Vec<u8>, PackError> {
    let broken = |error: wasmparser::BinaryReaderError| PackError(format!("The component cannot be read: {}.", error.message()));
    // The preamble: magic, version, layer.
    let mut out = component[..8].to_vec();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(broken)?;
        match &payload {
            Payload::Version { encoding, .. } if depth == 0 && *encoding != Encoding::Component => {
                return Err(PackError("The file is not a component.".to_owned()));
            }
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                if depth == 0
                    && let Some((id, _)) = payload.as_section()
                {
                    wasm_encoder::RawSection { id, data: &component[unchecked_range.clone()] }.append_to_component(&mut out);
                }
                depth += 1;
                continue;
            }
            Payload::End(_) => {
                depth = depth.saturating_sub(1);
                continue;
            }
            Payload::CustomSection(section) if OWN_SECTIONS.contains(&section.name()) => continue,
            _ => {}
        }
        if depth == 0
            && let Some((id, range)) = payload.as_section()
        {
            wasm_encoder::RawSection { id, data: &component[range] }.append_to_component(&mut out);
        }
    }
    Ok(out)
}

/// Turns a core module into a component. A component is returned unchanged.
///
/// # Errors
/// A sentence about the fault of the module.
pub fn componentize(module: &[u8]) -> Result<Vec<u8>, PackError> {
    if !(module.starts_with(b"\0asm") && Parser::is_core_wasm(module)) {
        return Ok(module.to_vec());
    }
    let explain = |error: anyhow::Error| PackError(format!("The core module cannot become a component: {error:#}."));
    let mut module = module.to_vec();
    let has_type = core_has_component_type(&module)
        .map_err(|error| PackError(format!("The core module cannot be read: {}.", error.message())))?;
    if !has_type {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("block.wit", WIT).map_err(explain)?;
        let world = resolve.select_world(&[package], Some("block")).map_err(explain)?;
        wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(explain)?;
    }
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| {
            encoder.adapter(
                wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )
        })
        .and_then(|mut encoder| encoder.encode())
        .map_err(explain)
}

/// Adds a component type to the core module of an SDK whose linker cannot add it. It is the type of a block that may import every
/// interface of the host. The component does not contain imports that the module does not use.
///
/// # Errors
/// A sentence about the fault of the module.
pub(crate) fn with_sdk_world(module: &[u8]) -> Result<Vec<u8>, PackError> {
    let explain = |error: anyhow::Error| PackError(format!("The core module cannot be given its component type: {error:#}."));
    let mut resolve = Resolve::default();
    resolve.push_str("block.wit", WIT).map_err(explain)?;
    resolve.push_str("sdk.wit", SDK_WIT).map_err(explain)?;
    let package = resolve.push_str("world.wit", &scaffold::whole_world()).map_err(explain)?;
    let world = resolve.select_world(&[package], Some("block")).map_err(explain)?;
    let mut module = module.to_vec();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(explain)?;
    Ok(module)
}

fn core_has_component_type(module: &[u8]) -> Result<bool, wasmparser::BinaryReaderError> {
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CustomSection(section) = payload?
            && section.name().starts_with("component-type")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockbase_blocks::manifest_of;

    #[test]
    fn packing_twice_is_packing_once() {
        let component = wasm_encoder::Component::new().finish();
        let manifest = r#"{ "name": "empty", "version": "1.0.0", "description": "Nothing." }"#;
        let once = pack(&component, manifest).expect("a packed file");
        assert_eq!(pack(&once, manifest).expect("a packed file"), once);
        assert_eq!(manifest_of(&once).expect("a manifest").name, "empty");
    }
}
