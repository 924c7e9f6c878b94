//! The measured blocks: their manifests, their languages, and their packed files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::Options;
use super::builds::{Builds, Sources};

/// The folder of the sources.
const SOURCES: &str = "bench/guests";
/// The folder of the example that echoes.
const EXAMPLE: &str = "examples/echo";
/// The resource that the echo example declares. Its `echo` needs the right to read it.
pub(super) const EXAMPLE_RESOURCE: &str = "echo:calls";

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Language {
    Rust,
    Js,
    Python,
    Go,
    C,
}

const LANGUAGES: [Language; 5] = [Language::Rust, Language::Js, Language::Python, Language::Go, Language::C];

impl Language {
    pub(super) fn name(self) -> &'static str {
        match self {
            Language::Rust => "Rust",
            Language::Js => "JavaScript",
            Language::Python => "Python",
            Language::Go => "Go",
            Language::C => "C",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Js => "js",
            Language::Python => "python",
            Language::Go => "go",
            Language::C => "c",
        }
    }

    /// The folder of the SDK, if blocks name it by its path: in their `Cargo.toml`.
    fn sdk(self) -> Option<&'static Path> {
        (self == Language::Rust).then(|| Path::new("sdk/rust"))
    }
}

/// A packed block.
#[derive(Clone)]
pub(super) struct Guest {
    pub(super) language: Language,
    /// The block's name.
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// Whether its manifest asks for the reuse of instances.
    pub(super) is_reused: bool,
}

impl Guest {
    /// The cells of a table that tell which guest it is, below [`GUEST_HEAD`].
    pub(super) fn cells(&self) -> [String; 2] {
        let instances = if self.is_reused { "reused" } else { "new" };
        [self.language.name(), instances].map(str::to_owned)
    }
}

/// The head of the columns of [`Guest::cells`].
pub(super) const GUEST_HEAD: [&str; 2] = ["block in", "instances"];

pub(super) struct Guests {
    binary: PathBuf,
    /// The folder for files that are packed again for a part.
    packed: tempfile::TempDir,
    /// `examples/echo`.
    pub(super) example: Guest,
    /// One block for each language. Each has the actions `echo`, `get` and `wait`.
    pub(super) all: Vec<Guest>,
}

impl Guests {
    /// Builds the blocks, or takes those that the options name, and prints which ones these are. If the tools of a language are
    /// missing, the language is left out, and a printed line says so.
    pub(super) fn ready(options: &Options) -> Guests {
        let binary = std::fs::canonicalize(&options.shared.binary).expect("the server's binary: cargo build --release");
        let builds = Builds::by(&binary);
        let ready = |language: Language, name: &str, folder: &Path, given: Option<PathBuf>| match given {
            Some(file) => {
                println!("The block {name} is not built here, but taken from {}.\n", file.display());
                Some(file)
            }
            None => builds.block(name, &Sources { folder, sdk: language.sdk() }),
        };
        let example = ready(Language::Rust, "echo", Path::new(EXAMPLE), options.block.clone());
        let file = example.unwrap_or_else(|| panic!("the echo block: blockbase block build {EXAMPLE}"));
        let example = Guest { language: Language::Rust, name: "echo".to_owned(), file, is_reused: false };
        let mut all = Vec::new();
        for language in LANGUAGES.into_iter().filter(|it| options.languages.is_empty() || options.languages.contains(it)) {
            let name = format!("bench-{}", language.folder());
            let given = options.guests.as_ref().map(|guests| guests.join(format!("{name}.wasm"))).filter(|file| file.is_file());
            match ready(language, &name, &Path::new(SOURCES).join(language.folder()), given) {
                Some(file) => all.push(Guest { language, name, file, is_reused: false }),
                None => println!("{} is left out: its block cannot be built here.\n", language.name()),
            }
        }
        Guests { binary, packed: tempfile::tempdir().unwrap(), example, all }
    }

    /// For each language, the block whose `echo` is called. For Rust, this is the example.
    pub(super) fn echoes(&self) -> impl Iterator<Item = &Guest> {
        self.all.iter().map(|guest| if guest.language == Language::Rust { &self.example } else { guest })
    }

    /// The same component with another name. `change` may make further changes to its manifest.
    pub(super) fn packed_as(&self, guest: &Guest, name: &str, change: impl FnOnce(&mut Value)) -> Guest {
        let shown = Command::new(&self.binary).args(["block", "inspect"]).arg(&guest.file).output().unwrap();
        let mut manifest: Value = serde_json::from_slice(&shown.stdout).expect("the manifest of a packed block");
        manifest["name"] = name.into();
        change(&mut manifest);
        let (written, file) = (self.packed.path().join(format!("{name}.json")), self.packed.path().join(format!("{name}.wasm")));
        std::fs::write(&written, manifest.to_string()).unwrap();
        let mut pack = Command::new(&self.binary);
        pack.args(["block", "pack"]).arg(&guest.file).arg("--manifest").arg(&written).arg("--out").arg(&file);
        assert!(pack.status().is_ok_and(|status| status.success()), "{pack:?}");
        Guest { name: name.to_owned(), file, ..guest.clone() }
    }

    /// Each guest, and then the same one with instances that are reused as often as possible.
    pub(super) fn new_and_reused<'a>(&self, guests: impl IntoIterator<Item = &'a Guest>) -> Vec<Guest> {
        guests.into_iter().flat_map(|guest| [guest.clone(), self.reused(guest)]).collect()
    }

    /// The same component with instances that are reused as often as possible. Everybody who may call blocks may call it.
    pub(super) fn reused(&self, guest: &Guest) -> Guest {
        let packed = self.packed_as(guest, &format!("{}-reused", guest.name), |manifest| {
            open_to_everybody(manifest);
            manifest["instances"] = json!({ "reuse": { "calls": 1_000_000, "seconds": 300 } });
        });
        Guest { is_reused: true, ..packed }
    }

    /// The same component with another name. Everybody who may call blocks may call it.
    pub(super) fn copy_as(&self, guest: &Guest, name: &str) -> Guest {
        self.packed_as(guest, name, open_to_everybody)
    }

    /// The example with another name. Everybody who may call blocks may call it, and it has the longest possible timeout.
    pub(super) fn example_as(&self, name: &str) -> Guest {
        self.packed_as(&self.example, name, |manifest| {
            open_to_everybody(manifest);
            for action in manifest["actions"].as_array_mut().unwrap() {
                action["timeoutMs"] = 600_000.into();
            }
        })
    }
}

/// Removes the resources that a block declares, and the rights on them that its actions need. A block with another name cannot
/// have them.
fn open_to_everybody(manifest: &mut Value) {
    manifest.as_object_mut().unwrap().remove("resources");
    for action in manifest["actions"].as_array_mut().unwrap() {
        action.as_object_mut().unwrap().remove("rbac");
    }
}
