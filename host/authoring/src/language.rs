//! The languages of blocks.

use std::path::Path;

/// The languages that have an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    /// JavaScript and TypeScript.
    JavaScript,
    Python,
    Go,
    C,
}

impl Language {
    pub const ALL: [Language; 5] = [Language::Rust, Language::JavaScript, Language::Python, Language::Go, Language::C];

    /// The folder of the language's SDK.
    pub fn folder(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::JavaScript => "js",
            Language::Python => "python",
            Language::Go => "go",
            Language::C => "c",
        }
    }

    /// The file by which the language of a block's folder is recognized.
    fn mark(self) -> &'static str {
        match self {
            Language::Rust => "Cargo.toml",
            Language::JavaScript => "package.json",
            Language::Python => "block.py",
            Language::Go => "go.mod",
            Language::C => "block.c",
        }
    }

    pub(crate) fn of(directory: &Path) -> Result<Language, String> {
        Language::ALL.into_iter().find(|language| directory.join(language.mark()).is_file()).ok_or_else(|| {
            let marks: Vec<&str> = Language::ALL.into_iter().map(Language::mark).collect();
            format!("{} holds none of {}, so its language is not known.", directory.display(), marks.join(", "))
        })
    }
}
