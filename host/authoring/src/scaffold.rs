//! The files that the binary includes for authors: the SDKs, their templates and the interface. All of them have the binary's
//! version, so a block always fits the server whose binary built it.

use std::path::Path;

use blockbase_blocks::{INTERFACES, parse_manifest};

use crate::language::Language;

/// `(path, bytes)` of every file below `sdk/` and `wit/`, with `/` between the parts.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The files of a folder, with their paths within it.
fn folder(prefix: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter_map(move |(path, bytes)| Some((path.strip_prefix(prefix)?.strip_prefix('/')?, *bytes)))
}

/// Writes a file unless it already has this content, so that build tools only notice real changes.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
    if std::fs::read(file).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    let parent = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(file, bytes))
        .map_err(|error| format!("{} cannot be written: {error}.", file.display()))
}

/// Unpacks the SDK of a language, and writes the world of a block that imports `plugins`.
pub(crate) fn prepare(language: Language, sdk: &Path, wit: &Path, plugins: &[String]) -> Result<(), String> {
    for (path, bytes) in folder(&format!("sdk/{}", language.folder())).filter(|(path, _)| !path.starts_with("template/")) {
        match path.strip_prefix("wit-deps/") {
            // These are the packages that the SDK imports in addition to the block interface.
            Some(path) => write(&wit.join("deps").join(path), bytes)?,
            None => write(&sdk.join(path), bytes)?,
        }
    }
    let imports = INTERFACES.into_iter().filter(|name| plugins.iter().any(|plugin| plugin == name)).chain(["deadline"]);
    write_world(wit, imports.map(interface))?;
    for package in ["blockbase-block-0.1.0", "blockbase-sdk-0.1.0"] {
        for (path, bytes) in folder(&format!("wit/{package}")) {
            write(&wit.join("deps").join(package).join(path), bytes)?;
        }
    }
    // The author edits nothing in this folder, so it needs no version control.
    write(&sdk.with_file_name(".gitignore"), b"*\n")
}

/// Writes the world of a block that imports these interfaces. Each name includes the package and the version.
pub(crate) fn write_world(wit: &Path, imports: impl IntoIterator<Item = String>) -> Result<(), String> {
    write(&wit.join("block.wit"), world(imports).as_bytes())
}

/// The world that imports every interface of the block package. It is for languages whose compilers drop unused imports.
pub(crate) fn whole_world() -> String {
    world(INTERFACES.into_iter().chain(["deadline"]).map(interface))
}

fn interface(name: &str) -> String {
    format!("blockbase:block/{name}@0.1.0")
}

fn world(imports: impl IntoIterator<Item = String>) -> String {
    let mut text = "// Made by `blockbase block build`.\npackage blockbase:guest;\n\nworld block {\n".to_owned();
    for import in imports {
        text.push_str(&format!("  import {import};\n"));
    }
    text.push('\n');
    for export in ["block/registry", "block/actions", "block/hooks", "block/subscriptions", "sdk/describe"] {
        text.push_str(&format!("  export blockbase:{export}@0.1.0;\n"));
    }
    text.push_str("}\n");
    text
}

/// Makes a new block from the template of a language.
///
/// # Errors
/// If no block can have this name, or if the folder is not empty.
pub fn new_block(language: Language, name: &str, directory: &Path) -> Result<(), String> {
    parse_manifest(&serde_json::json!({ "name": name, "version": "0.1.0" }).to_string()).map_err(|error| error.message)?;
    if std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{} is not empty.", directory.display()));
    }
    for (path, bytes) in folder(&format!("sdk/{}/template", language.folder())) {
        // With some file names, tools would treat the template in the SDK's folder as a project. These names end in `.template`.
        let path = path.strip_suffix(".template").unwrap_or(path);
        let text = String::from_utf8_lossy(bytes).replace("{{name}}", name).replace("{{snake}}", &name.replace('-', "_"));
        write(&directory.join(path), text.as_bytes())?;
    }
    prepare(language, &directory.join(".blockbase/sdk"), &directory.join(".blockbase/wit"), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_includes_the_files_of_this_checkout() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(FILES.iter().any(|(path, _)| path.starts_with("sdk/")) && FILES.iter().any(|(path, _)| path.starts_with("wit/")));
        for (path, bytes) in FILES {
            let file = std::fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(file == *bytes, "{path} is included as another checkout has it");
        }
    }

    #[test]
    fn the_rust_sdk_carries_the_interface_as_it_is() {
        for package in ["blockbase-block-0.1.0", "blockbase-sdk-0.1.0"] {
            let original: Vec<_> = folder(&format!("wit/{package}")).collect();
            let copy: Vec<_> = folder(&format!("sdk/rust/wit/deps/{package}")).collect();
            assert!(!original.is_empty());
            assert_eq!(copy, original, "sdk/rust/wit/deps/{package} differs from wit/{package}");
        }
    }

    #[test]
    fn the_readme_of_each_language_says_where_the_program_is_and_how_to_sign_in() {
        for language in Language::ALL {
            let template = format!("sdk/{}/template", language.folder());
            let (_, readme) = folder(&template).find(|(path, _)| *path == "README.md").expect("a README");
            let text = String::from_utf8_lossy(readme);
            for part in ["blockbase block install {{name}}.wasm", "target/release", "/api/auth/sign-in/email", "SVC_API_KEY"] {
                assert!(text.contains(part), "{template}/README.md does not contain {part}");
            }
        }
    }
}
