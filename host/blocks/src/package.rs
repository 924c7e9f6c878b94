//! The packed file as the server reads it: a component whose manifest is in a custom section. Also the rules of manifests.

pub(crate) mod manifest;
pub(crate) mod origins;
pub(crate) mod schema;

use blockbase_app::Manifest;
use blockbase_app::schema::Result;
use wasmparser::{Parser, Payload};

use manifest::{invalid, parse_manifest};

/// The custom section that contains the manifest.
pub const MANIFEST_SECTION: &str = "blockbase:manifest";

/// Returns the manifest of a packed file, after checking that the file is a complete and valid component.
///
/// # Errors
/// `invalid_block` if the file is text, truncated, not a component, precompiled, or has no valid manifest.
pub fn manifest_of(file: &[u8]) -> Result<Manifest> {
    check_component(file)?;
    let sections =
        custom_sections(file, MANIFEST_SECTION).map_err(|error| invalid(format!("The file is not whole: {error}.")))?;
    match sections.as_slice() {
        [] => Err(invalid("The component has no manifest. `blockbase block pack` puts it in.")),
        [section] => {
            let text = std::str::from_utf8(section).map_err(|_| invalid("The manifest is not UTF-8."))?;
            parse_manifest(text)
        }
        _ => Err(invalid("The component has more than one manifest.")),
    }
}

/// Checks that a file is a complete and valid component.
///
/// # Errors
/// `invalid_block` if the file is text, truncated, not a component, or precompiled.
pub fn check_component(file: &[u8]) -> Result<()> {
    if wasmtime::Engine::detect_precompiled(file).is_some() {
        return Err(invalid("The file is precompiled machine code. Send the component; the server compiles it itself."));
    }
    if !file.starts_with(b"\0asm") {
        return Err(invalid("The file is not WebAssembly."));
    }
    if Parser::is_core_wasm(file) {
        return Err(invalid("The file is a core module, not a component. `blockbase block pack` makes a component of it."));
    }
    wasmparser::Validator::new_with_features(engine_features())
        .validate_all(file)
        .map(|_| ())
        .map_err(|error| invalid(format!("The file is not a valid component: {}.", error.message())))
}

/// The features that the engine accepts. These are the standard features, without threads and 64-bit memories.
fn engine_features() -> wasmparser::WasmFeatures {
    use wasmparser::WasmFeatures;
    let mut features = WasmFeatures::default();
    features.remove(WasmFeatures::THREADS | WasmFeatures::MEMORY64);
    features
}

/// The contents of the outermost custom sections with this name.
fn custom_sections(file: &[u8], name: &str) -> Result<Vec<Vec<u8>>, wasmparser::BinaryReaderError> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(file) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == name => found.push(section.data().to_vec()),
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_packed_component_is_refused() {
        let message = |file: &[u8]| manifest_of(file).expect_err("a refusal").message;
        assert!(message(b"(component)").contains("not WebAssembly"));
        assert!(message(b"").contains("not WebAssembly"));
        assert!(message(&wasm_encoder::Module::new().finish()).contains("core module"));
        assert!(message(&wasm_encoder::Component::new().finish()).contains("no manifest"));
        let manifest = br#"{ "name": "a", "version": "1.0.0" }"#;
        let mut packed = wasm_encoder::Component::new();
        packed.section(&wasm_encoder::CustomSection { name: MANIFEST_SECTION.into(), data: manifest.into() });
        let packed = packed.finish();
        assert_eq!(manifest_of(&packed).expect("a manifest").name, "a");
        assert!(message(&packed[..packed.len() - 3]).contains("not a valid component"));
    }

    #[test]
    fn any_file_is_read_or_refused() {
        use blockbase_tests::fuzz::{changed, for_a_while};

        let manifest = r#"{ "name": "a", "version": "1.0.0", "description": "A.", "actions": [{ "name": "go", "timeoutMs": 100,
            "input": { "type": "object" } }], "hooks": [{ "name": "in" }], "permissions": { "data": [{ "resource": "task",
            "actions": ["read"] }], "http": ["https://a.example"], "secrets": ["KEY"] } }"#;
        parse_manifest(manifest).expect("a manifest");
        let words = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "null",
            "1",
            "-1",
            "1e999",
            "\"*\"",
            "\"own\"",
            "\\u0000",
            "https://*",
            "aaaaaaaaaaaaaaaa",
        ];
        for_a_while(|input| {
            let manifest = changed(input, manifest, &words)?;
            let mut file = wasm_encoder::Component::new();
            file.section(&wasm_encoder::CustomSection { name: MANIFEST_SECTION.into(), data: manifest.as_bytes().into() });
            let mut file = file.finish();
            let is_valid = parse_manifest(&manifest).is_ok();
            assert_eq!(manifest_of(&file).is_ok(), is_valid, "{manifest}");
            let (place, byte) = (input.int_in_range(0..=file.len() - 1)?, input.arbitrary()?);
            file[place] = byte;
            file.truncate(input.int_in_range(0..=file.len())?);
            let _ = manifest_of(&file);
            Ok(is_valid)
        });
    }
}
