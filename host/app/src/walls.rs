//! Tests the layers inside this crate: a folder may import only from folders of lower layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The folders, from the lowest layer to the highest.
const FOLDERS: [&str; 13] = [
    "base",
    "caller",
    "state",
    "outbox",
    "access",
    "records",
    "delivery",
    "blocks",
    "schema_change",
    "accounts",
    "automation",
    "service",
    "boot",
];

/// The files of this crate, by their path without its ending. The texts have no comments and no tests.
struct Sources(BTreeMap<String, String>);

impl Sources {
    fn read() -> Sources {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut files, mut folders) = (BTreeMap::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&root).expect("below the root").with_extension("");
                let name = name.to_str().expect("a plain name").replace('\\', "/");
                if name != "walls" {
                    files.insert(name, code_of(&std::fs::read_to_string(&path).expect("a source")));
                }
            }
        }
        Sources(files)
    }

    /// The file that defines the item of a path from the crate's root. Re-exports are followed.
    fn home(&self, path: &[String]) -> String {
        let is_file = |length: &usize| self.0.contains_key(&path[..*length].join("/"));
        let length = (1..=path.len()).rev().find(is_file).unwrap_or(0);
        let file = if length == 0 { "lib".to_owned() } else { path[..length].join("/") };
        match path.get(length).and_then(|name| self.reexports(&file).remove(name)) {
            Some(mut target) => {
                target.extend(path[length + 1..].iter().cloned());
                self.home(&target)
            }
            None => file,
        }
    }

    /// The items of this crate that a file re-exports, by their names there.
    fn reexports(&self, file: &str) -> BTreeMap<String, Vec<String>> {
        let mut found = BTreeMap::new();
        for tree in statements(&self.0[file], true) {
            for (path, name) in leaves(tree) {
                if let Some(path) = self.path_in_crate(file, &path) {
                    found.insert(name, path);
                }
            }
        }
        found
    }

    /// Converts a path in a file to a path from the crate's root. `None` if it leads out of the crate.
    fn path_in_crate(&self, file: &str, path: &[String]) -> Option<Vec<String>> {
        let here: Vec<String> = if file == "lib" { Vec::new() } else { file.split('/').map(str::to_owned).collect() };
        let base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => here,
            "super" => here[..here.len().checked_sub(1)?].to_vec(),
            child => {
                let below = [here.as_slice(), &[child.to_owned()]].concat();
                return self.0.contains_key(&below.join("/")).then(|| [here.as_slice(), path].concat());
            }
        };
        Some([base.as_slice(), &path[1..]].concat())
    }

    /// The files that each file imports from.
    fn imports(&self) -> BTreeSet<(String, String)> {
        let mut found = BTreeSet::new();
        for (file, code) in self.0.iter().filter(|(file, _)| *file != "lib") {
            let inline = ["crate::", "super::"].into_iter().flat_map(|start| {
                let at = code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with(is_name_or_colon));
                at.map(|(at, _)| &code[at..])
            });
            for tree in inline.chain(statements(code, false)) {
                for (path, _) in leaves(tree) {
                    found.extend(self.path_in_crate(file, &path).map(|path| (file.clone(), self.home(&path))));
                }
            }
        }
        found
    }

    /// The files whose methods of `App` each file calls.
    fn calls(&self) -> BTreeSet<(String, String)> {
        let mut homes = BTreeMap::new();
        for (file, code) in &self.0 {
            for line in methods_of_app(code).lines().filter_map(|line| line.strip_prefix("    ")) {
                let before = line.split("fn ").next().unwrap_or_default();
                let is_definition = line.contains("fn ")
                    && before.split(' ').all(|word| matches!(word, "" | "async" | "pub" | "pub(crate)" | "pub(super)"));
                if is_definition && let Some(name) = line[before.len() + 3..].split(['(', '<']).next() {
                    homes.insert(name.to_owned(), file.clone());
                }
            }
        }
        let mut found = BTreeSet::new();
        for (file, code) in &self.0 {
            for (code, receiver) in [(code.clone(), "app."), (methods_of_app(code), "self.")] {
                // A chain of calls that continues on the next line is joined.
                let code = code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" .", ".");
                for (at, _) in code.match_indices(receiver).filter(|(at, _)| !code[..*at].ends_with(is_name_or_colon)) {
                    let rest = &code[at + receiver.len()..];
                    let name = rest.split(|character: char| !is_name(character)).next().unwrap_or_default();
                    if rest[name.len()..].starts_with('(')
                        && let Some(home) = homes.get(name)
                    {
                        found.insert((file.clone(), home.clone()));
                    }
                }
            }
        }
        found
    }
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_name_or_colon(character: char) -> bool {
    is_name(character) || character == ':'
}

fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| match line.trim_start().starts_with("//") {
        true => "",
        false => line.split(" // ").next().unwrap_or_default(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The trees of the `use` statements, either of those that re-export or of the others.
fn statements(code: &str, reexporting: bool) -> impl Iterator<Item = &str> {
    let starts = if reexporting { ["pub use ", "pub(crate) use ", "pub(super) use "].as_slice() } else { &["use "] };
    starts.iter().flat_map(move |start| {
        let at = code.match_indices(start).filter(|(at, _)| *at == 0 || code[..*at].ends_with('\n'));
        at.map(|(at, start)| &code[at + start.len()..])
    })
}

/// The paths of a tree like `a::{b, c::{d, e as f}}` at the beginning of a text, each with the name under which it is imported.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    fn read(mut tree: &str, before: &[String], found: &mut Vec<(Vec<String>, String)>) -> usize {
        let whole = tree.len();
        tree = tree.trim_start();
        if let Some(inner) = tree.strip_prefix('{') {
            tree = inner.trim_start();
            while !tree.is_empty() && !tree.starts_with('}') {
                tree = &tree[read(tree, before, found)..];
                tree = tree.trim_start_matches(|character: char| character == ',' || character.is_whitespace());
            }
            return whole - tree.len() + usize::from(!tree.is_empty());
        }
        let name = tree.split(|character: char| !is_name(character)).next().unwrap_or_default();
        if name.is_empty() {
            // A `*` or an empty path stands for the path before it.
            found.push((before.to_vec(), String::new()));
            return whole - tree.len() + tree.chars().next().map_or(0, char::len_utf8);
        }
        tree = &tree[name.len()..];
        let path = [before, &[name.to_owned()]].concat();
        match (tree.strip_prefix("::"), tree.strip_prefix(" as ")) {
            (Some(rest), _) if !rest.starts_with('<') => whole - rest.len() + read(rest, &path, found),
            (_, Some(rest)) => {
                let alias = rest.split(|character: char| !is_name(character)).next().unwrap_or_default();
                found.push((path, alias.to_owned()));
                whole - rest.len() + alias.len()
            }
            _ => {
                found.push((path, name.to_owned()));
                whole - tree.len()
            }
        }
    }
    let mut found = Vec::new();
    read(tree, &[], &mut found);
    found
}

/// The text inside all blocks `impl App { … }`.
fn methods_of_app(code: &str) -> String {
    let blocks = code.split("\nimpl App {\n").skip(1);
    blocks.map(|block| block.split("\n}").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The position of a file's folder in the order.
fn place(file: &str) -> usize {
    let folder = file.split('/').next().unwrap_or_default();
    FOLDERS.iter().position(|known| *known == folder).unwrap_or_else(|| panic!("`{folder}` is not in FOLDERS"))
}

#[test]
fn a_folder_imports_from_lower_ones_only() {
    let sources = Sources::read();
    let edges = sources.imports().into_iter().chain(sources.calls());
    let upward: BTreeSet<(String, String)> =
        edges.filter(|(from, to)| [from, to].iter().all(|file| *file != "lib") && place(to) > place(from)).collect();
    let upward: Vec<String> = upward.iter().map(|(from, to)| format!("`{from}` uses `{to}`")).collect();
    assert!(upward.is_empty(), "a lower folder uses a higher one: {upward:#?}");
}

#[test]
fn every_folder_is_there() {
    let sources = Sources::read();
    let missing: Vec<&str> = FOLDERS.into_iter().filter(|folder| !sources.0.contains_key(*folder)).collect();
    assert!(missing.is_empty(), "no such folder: {missing:?}");
}

#[test]
fn trees_of_imports_are_read_whole() {
    let read =
        |tree: &str| leaves(tree).into_iter().map(|(path, name)| format!("{}={name}", path.join("::"))).collect::<Vec<_>>();
    assert_eq!(
        read("crate::{a, b::{C, d::E as F},\n    g::*};"),
        ["crate::a=a", "crate::b::C=C", "crate::b::d::E=F", "crate::g="]
    );
    assert_eq!(read("crate::a::b(c)"), ["crate::a::b=b"]);
    assert_eq!(read("crate::a::B::<C>::new()"), ["crate::a::B=B"]);
}
