//! The measured blocks. The server's own command line builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Options;

/// The folder of the sources.
const SOURCES: &str = "bench/guests";
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
    /// Builds missing blocks. If the tools of a language are missing, the language is left out, and a printed line says so.
    pub(super) fn ready(options: &Options) -> Guests {
        let binary = std::fs::canonicalize(&options.shared.binary).expect("the server's binary: cargo build --release");
        if !options.block.is_file() {
            let folder = options.block.parent().unwrap();
            assert!(build(&binary, folder, &options.block), "the echo block: blockbase block build {}", folder.display());
        }
        std::fs::create_dir_all(&options.guests).unwrap();
        let mut all = Vec::new();
        for language in LANGUAGES.into_iter().filter(|it| options.languages.is_empty() || options.languages.contains(it)) {
            let name = format!("bench-{}", language.folder());
            let file = options.guests.join(format!("{name}.wasm"));
            if !file.is_file() && !build(&binary, &sources(language, &options.guests), &file) {
                println!("{} is left out: its block cannot be built here.\n", language.name());
                continue;
            }
            all.push(Guest { language, name, file, is_reused: false });
        }
        let (name, file) = ("echo".to_owned(), options.block.clone());
        let example = Guest { language: Language::Rust, name, file, is_reused: false };
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

/// The sources of a language's block. Except for Rust, they are a copy, because the builds of the other languages write files
/// beside them.
fn sources(language: Language, guests: &Path) -> PathBuf {
    let folder = Path::new(SOURCES).join(language.folder());
    if language == Language::Rust {
        return folder;
    }
    let copy = guests.join(language.folder());
    std::fs::create_dir_all(&copy).unwrap();
    let copied = Command::new("cp").arg("-R").arg(folder.join(".")).arg(&copy).status();
    assert!(copied.is_ok_and(|status| status.success()), "the sources in {}", folder.display());
    copy
}

fn build(binary: &Path, folder: &Path, file: &Path) -> bool {
    eprintln!("building {}", folder.display());
    let mut command = Command::new(binary);
    command.args(["block", "build"]).arg(folder).arg("--out").arg(file).stdin(Stdio::null()).stdout(std::io::stderr());
    command.status().is_ok_and(|status| status.success())
}
