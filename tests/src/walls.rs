//! Tests the layers inside the crates of `host`: folders do not import each other in circles, nor do more than two files, and a
//! folder of `app`, `rest` or `graphql` imports only from folders of lower layers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

/// The folders of `app`, from the lowest layer to the highest.
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

/// The folders of `rest`, from the lowest layer to the highest.
const FOLDERS_OF_REST: [&str; 7] = ["answer", "trust", "state", "request", "openapi", "edge", "routes"];

/// The folders of `graphql`, from the lowest layer to the highest.
const FOLDERS_OF_GRAPHQL: [&str; 4] = ["view", "document", "execute", "http"];

/// The files of all crates that have an OFFSET in their SQL, each with the number of these.
///
/// On SQLite, an OFFSET beside the test of an EXISTS without a limit skips joined rows instead of rows. So only the writer of
/// statements writes one for records, because it also knows how an EXISTS ends.
const OFFSETS: [(&str, usize); 9] = [
    ("query/sql/writer", 4),
    // It skips no rows, and is for Postgres.
    ("query/dialect/postgres", 1),
    // These statements read system tables, and have no EXISTS among their tests.
    ("store/accounts", 1),
    ("store/accounts/sessions", 1),
    ("store/audit", 1),
    ("store/blocks", 2),
    ("store/deliveries/ledger", 1),
    ("store/events", 2),
    ("store/tasks", 1),
];

/// Pairs of files: the first one uses the second one.
type Edges = BTreeSet<(String, String)>;

/// The files of one crate.
struct Sources {
    /// The code of each file, by its path below `src` without its ending. The code has no comments and no tests. The crate's root is
    /// called `lib`.
    code: BTreeMap<String, String>,
    /// The items that each file imports from this crate, by their names in the file.
    names: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Sources {
    fn read(name: &str) -> Sources {
        let root = host().join(name).join("src");
        let (mut code, mut folders) = (BTreeMap::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&root).expect("below the root").with_extension("");
                let name = name.to_str().expect("a plain name").replace('\\', "/");
                let name = if name == "main" { "lib".to_owned() } else { name };
                if name != "tests" && !name.ends_with("/tests") {
                    code.insert(name, code_of(&std::fs::read_to_string(&path).expect("a source")));
                }
            }
        }
        let mut sources = Sources { code, names: BTreeMap::new() };
        let names_of = |(file, code): (&String, &String)| {
            let imported = statements(code).flat_map(|(tree, _)| leaves(tree));
            let names = imported.filter_map(|(path, name)| Some((name, sources.path_in_crate(file, &path)?)));
            (file.clone(), names.collect())
        };
        let names = sources.code.iter().map(names_of).collect();
        sources.names = names;
        sources
    }

    /// The file that defines the item of a path from the crate's root, and whether the path leads to the whole file. Imports are
    /// followed.
    fn home(&self, path: &[String]) -> (String, bool) {
        let is_file = |length: &usize| self.code.contains_key(&path[..*length].join("/"));
        let length = (1..=path.len()).rev().find(is_file).unwrap_or(0);
        let file = if length == 0 { "lib".to_owned() } else { path[..length].join("/") };
        match path.get(length).and_then(|name| self.names[&file].get(name)) {
            Some(target) => self.home(&[target.as_slice(), &path[length + 1..]].concat()),
            None => (file, length == path.len()),
        }
    }

    /// Converts a path in a file to a path from the crate's root. `None` if it leads out of the crate.
    fn path_in_crate(&self, file: &str, path: &[String]) -> Option<Vec<String>> {
        let here = below(file);
        let base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => here,
            "super" => here[..here.len().checked_sub(1)?].to_vec(),
            child => {
                let child = [here.as_slice(), &[child.to_owned()]].concat();
                return self.code.contains_key(&child.join("/")).then(|| [here.as_slice(), path].concat());
            }
        };
        Some([base.as_slice(), &path[1..]].concat())
    }

    /// The files whose items each file uses. A file that only re-exports an item does not use it.
    fn imports(&self) -> Edges {
        let mut found = BTreeSet::new();
        for (file, code) in &self.code {
            let body = without_statements(code);
            let mut add = |path: &[String]| {
                found.insert((file.clone(), self.home(path).0));
            };
            // An imported module can re-export items of other files, so the files of these items count.
            let is_child =
                |child: &&String| matches!(below(child).split_last(), Some((_, above)) if above == below(file).as_slice());
            let modules = self.code.keys().filter(is_child).map(|child| below(child));
            let mut modules: BTreeMap<String, Vec<String>> =
                modules.filter_map(|module| Some((module.last()?.clone(), module))).collect();
            for (tree, is_reexport) in statements(code) {
                for (path, name) in leaves(tree) {
                    let Some(path) = self.path_in_crate(file, &path) else { continue };
                    if self.home(&path).1 && !name.is_empty() {
                        modules.insert(name, path);
                    } else if !is_reexport || places(&body, &name).next().is_some() {
                        add(&path);
                    }
                }
            }
            for at in ["crate::", "super::"].into_iter().flat_map(|start| places(&body, start)) {
                let paths = leaves(&body[at..]).into_iter().filter_map(|(path, _)| self.path_in_crate(file, &path));
                paths.for_each(|path| add(&path));
            }
            for (name, module) in &modules {
                for at in places(&body, &format!("{name}::")) {
                    leaves(&body[at..]).iter().for_each(|(path, _)| add(&[module.as_slice(), &path[1..]].concat()));
                }
            }
        }
        found.retain(|(from, to)| from != to);
        found
    }

    /// The files whose methods of `App` each file calls.
    fn calls(&self) -> Edges {
        let mut homes = BTreeMap::new();
        for (file, code) in &self.code {
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
        for (file, code) in &self.code {
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

/// The positions in the code where a word begins.
fn places(code: &str, word: &str) -> impl Iterator<Item = usize> {
    let word_ends = |at: usize| word.ends_with(':') || !code[at + word.len()..].starts_with(is_name);
    code.match_indices(word).map(|(at, _)| at).filter(move |at| !code[..*at].ends_with(is_name_or_colon) && word_ends(*at))
}

/// The folder of the crates.
fn host() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host")
}

/// The path of names to a file.
fn below(file: &str) -> Vec<String> {
    if file == "lib" { Vec::new() } else { file.split('/').map(str::to_owned).collect() }
}

fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| match line.trim_start().starts_with("//") {
        true => "",
        false => line.split(" // ").next().unwrap_or_default(),
    });
    let code = lines.collect::<Vec<_>>().join("\n");
    // In a module inside the file, `super` is the file itself.
    let is_inline = |part: &str| part.lines().next().is_some_and(|line| line.ends_with('{'));
    let mut parts = code.split("\nmod ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |code, part| match part.split_once("\n}").filter(|_| is_inline(part)) {
        Some((inside, rest)) => format!("{code}\nmod {}\n}}{rest}", inside.replace("super::", "")),
        None => format!("{code}\nmod {part}"),
    })
}

/// The beginnings of `use` statements. All but the first re-export the items.
const STATEMENTS: [&str; 4] = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];

/// The trees of the `use` statements, each with whether it re-exports the items.
fn statements(code: &str) -> impl Iterator<Item = (&str, bool)> {
    STATEMENTS.into_iter().flat_map(move |start| {
        let at = code.match_indices(start).filter(|(at, _)| *at == 0 || code[..*at].ends_with('\n'));
        at.map(|(at, start)| (&code[at + start.len()..], start != STATEMENTS[0]))
    })
}

/// The code without its `use` statements and the declarations of modules in other files.
fn without_statements(code: &str) -> String {
    let mut is_inside = false;
    let is_body = |line: &&str| {
        let is_statement = is_inside || STATEMENTS.iter().any(|start| line.starts_with(start));
        is_inside = is_statement && !line.contains(';');
        let is_module = line.ends_with(';') && line.split(' ').rev().nth(1) == Some("mod");
        !is_statement && !is_module
    };
    code.lines().filter(is_body).collect::<Vec<_>>().join("\n")
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
    for (path, name) in &mut found {
        // `a::{self}` is `a`.
        if path.len() > 1 && path.pop_if(|last| last == "self").is_some() && name == "self" {
            name.clone_from(&path[path.len() - 1]);
        }
    }
    found
}

/// The text inside all blocks `impl App { … }`.
fn methods_of_app(code: &str) -> String {
    let blocks = code.split("\nimpl App {\n").skip(1);
    blocks.map(|block| block.split("\n}").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The position of a file's folder in the order. `None` if the order does not have the folder.
fn place(folders: &[&str], file: &str) -> Option<usize> {
    let folder = file.split('/').next().unwrap_or_default();
    folders.iter().position(|known| *known == folder)
}

/// The uses of a higher folder by a lower one. Files outside these folders are left out.
fn upward(folders: &[&str], edges: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let is_upward = |(from, to): &(String, String)| match (place(folders, from), place(folders, to)) {
        (Some(from), Some(to)) => to > from,
        _ => false,
    };
    let upward: Edges = edges.into_iter().filter(is_upward).collect();
    upward.iter().map(|(from, to)| format!("`{from}` uses `{to}`")).collect()
}

/// The dependencies of a crate, by the names that its code uses.
fn dependencies(manifest: &str) -> Vec<String> {
    let (mut names, mut is_inside) = (Vec::new(), false);
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_inside = line.ends_with("dependencies]");
        } else if is_inside
            && let Some((name, _)) = line.split_once(['.', '=', ' '])
            && name.starts_with(|first: char| first.is_ascii_alphabetic())
        {
            names.push(name.replace('-', "_"));
        }
    }
    names
}

/// All code of a crate with its tests and its build script, without comments.
fn whole_code(root: &Path) -> String {
    let (mut code, mut folders) = (String::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                lines.for_each(|line| code.extend([line, "\n"]));
            }
        }
    }
    code
}

/// A circle of more than two files: each file imports from the next one, and the last one from the first. Two files may import
/// from each other.
fn circle(edges: &Edges) -> Option<Vec<&str>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    edges.iter().for_each(|(from, to)| next.entry(from).or_default().push(to));
    edges.iter().find_map(|(first, second)| {
        let (mut seen, mut paths) = (BTreeSet::from([second.as_str()]), VecDeque::from([vec![first.as_str(), second.as_str()]]));
        while let Some(path) = paths.pop_front() {
            for file in next.get(path[path.len() - 1]).into_iter().flatten().copied() {
                if file == first && path.len() > 2 {
                    return Some(path);
                }
                if file != first && seen.insert(file) {
                    paths.push_back([path.as_slice(), &[file]].concat());
                }
            }
        }
        None
    })
}

/// The part of `folder` that a file belongs to: a file directly in the folder, or an inner folder with all its files. `None` for a
/// file outside the folder, and for `a` in the folder `a`. In the folder above, the file `a` and those below it are one part.
fn part_of<'f>(folder: &str, file: &'f str) -> Option<&'f str> {
    let inside = if folder.is_empty() { Some(file) } else { file.strip_prefix(folder)?.strip_prefix('/') };
    let rest = inside.filter(|_| file != "lib")?;
    Some(&file[..file.len() - rest.len() + rest.find('/').unwrap_or(rest.len())])
}

/// A circle of parts of one folder, of which at least one is itself a folder. It is reported with the imports between its parts.
fn circle_of_folders(edges: &Edges) -> Option<Vec<String>> {
    let files = edges.iter().flat_map(|(from, to)| [from.as_str(), to.as_str()]);
    let parents = files.flat_map(|file| file.match_indices('/').map(move |(at, _)| &file[..at]));
    let folders: BTreeSet<&str> = parents.collect();
    std::iter::once("").chain(folders.iter().copied()).find_map(|folder| {
        let between = edges.iter().filter_map(|(from, to)| Some((part_of(folder, from)?, part_of(folder, to)?, from, to)));
        let between: Vec<(&str, &str, &String, &String)> = between.filter(|(from, to, ..)| from != to).collect();
        let parts = |(from, to, ..): &(&str, &str, &String, &String)| ((*from).to_owned(), (*to).to_owned());
        let all: Edges = between.iter().map(parts).collect();
        // The shortest circle through each folder is enough, because any circle with a folder goes through that folder.
        let through = |folder: &&str| circle_through(&all, folder);
        let found = folders.iter().find_map(through)?;
        let pairs = found.iter().zip(found.iter().cycle().skip(1));
        let imports = pairs.flat_map(|(from, to)| {
            let of_pair = between.iter().filter(move |(one, two, ..)| one == from && two == to);
            of_pair.map(|(_, _, from, to)| format!("`{from}` uses `{to}`"))
        });
        Some(imports.collect())
    })
}

/// The shortest circle that goes through `start`.
fn circle_through<'e>(edges: &'e Edges, start: &str) -> Option<Vec<&'e str>> {
    let (start, _) = edges.iter().find(|(from, _)| from == start)?;
    let (mut seen, mut paths) = (BTreeSet::new(), VecDeque::from([vec![start.as_str()]]));
    while let Some(path) = paths.pop_front() {
        let last = path[path.len() - 1];
        for (_, to) in edges.iter().filter(|(from, _)| from == last) {
            if to == start {
                return Some(path);
            }
            if seen.insert(to.as_str()) {
                paths.push_back([path.as_slice(), &[to.as_str()]].concat());
            }
        }
    }
    None
}

/// The crates of `host`, by the names of their folders.
fn crates() -> Vec<String> {
    let crates = std::fs::read_dir(host()).expect("the crates").map(|entry| entry.expect("an entry").file_name());
    let mut crates: Vec<String> = crates.map(|name| name.to_str().expect("a plain name").to_owned()).collect();
    crates.retain(|name| host().join(name).join("src").is_dir());
    assert!(crates.len() > 10, "the crates are not all found: {crates:?}");
    crates
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for name in crates() {
        let imports = Sources::read(&name).imports();
        let circle = circle(&imports);
        assert!(
            circle.is_none(),
            "files of {name} import each other in a circle: {circle:?}. Move the items that they share into another file."
        );
    }
}

#[test]
fn no_folders_import_each_other_in_a_circle() {
    for name in crates() {
        let circle = circle_of_folders(&Sources::read(&name).imports());
        assert!(
            circle.is_none(),
            "folders of {name} import each other in a circle: {circle:#?}. Move the items that they share into a lower folder."
        );
    }
}

#[test]
fn a_folder_imports_from_lower_ones_only() {
    let sources = Sources::read("app");
    let unknown: Vec<&String> = sources.code.keys().filter(|file| *file != "lib" && place(&FOLDERS, file).is_none()).collect();
    assert!(unknown.is_empty(), "folders that are not in FOLDERS: {unknown:?}");
    let upward = upward(&FOLDERS, sources.imports().into_iter().chain(sources.calls()));
    assert!(upward.is_empty(), "a lower folder uses a higher one: {upward:#?}");
}

#[test]
fn a_folder_of_rest_imports_from_lower_ones_only() {
    let imports = Sources::read("rest").imports();
    let is_between = |edge: &&(String, String)| place(&FOLDERS_OF_REST, &edge.0) != place(&FOLDERS_OF_REST, &edge.1);
    assert!(imports.iter().filter(is_between).count() > 100, "the imports are not all found: {imports:?}");
    let upward = upward(&FOLDERS_OF_REST, imports);
    assert!(upward.is_empty(), "a lower folder uses a higher one: {upward:#?}");
}

#[test]
fn a_folder_of_graphql_imports_from_lower_ones_only() {
    let imports = Sources::read("graphql").imports();
    let is_between = |edge: &&(String, String)| place(&FOLDERS_OF_GRAPHQL, &edge.0) != place(&FOLDERS_OF_GRAPHQL, &edge.1);
    assert!(imports.iter().filter(is_between).count() > 30, "the imports are not all found: {imports:?}");
    let upward = upward(&FOLDERS_OF_GRAPHQL, imports);
    assert!(upward.is_empty(), "a lower folder uses a higher one: {upward:#?}");
}

#[test]
fn a_use_of_a_higher_folder_is_found() {
    let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let edges = [edge("answer/a", "request/b"), edge("request/b", "answer/a"), edge("surface", "routes"), edge("edge", "lib")];
    assert_eq!(upward(&FOLDERS_OF_REST, edges), ["`answer/a` uses `request/b`"]);
}

#[test]
fn every_folder_is_there() {
    let sources = Sources::read("app");
    let mut missing: Vec<&str> = FOLDERS.into_iter().filter(|folder| !sources.code.contains_key(*folder)).collect();
    let rest = Sources::read("rest");
    missing.extend(FOLDERS_OF_REST.into_iter().filter(|folder| !rest.code.contains_key(*folder)));
    let graphql = Sources::read("graphql");
    missing.extend(FOLDERS_OF_GRAPHQL.into_iter().filter(|folder| !graphql.code.contains_key(*folder)));
    assert!(missing.is_empty(), "no such folder: {missing:?}");
}

#[test]
fn only_the_writer_of_statements_skips_records() {
    let mut found = BTreeMap::new();
    for name in crates() {
        for (file, code) in Sources::read(&name).code {
            let count = places(&code, "OFFSET").count();
            if count > 0 {
                found.insert(format!("{name}/{file}"), count);
            }
        }
    }
    let known: BTreeMap<String, usize> = OFFSETS.iter().map(|(file, count)| ((*file).to_owned(), *count)).collect();
    assert_eq!(
        found, known,
        "`Writer::offset` writes the OFFSET of a page. If another one has no EXISTS beside it, add it to OFFSETS."
    );
}

/// Without an installation of cargo-machete, only this test finds unused dependencies.
#[test]
fn every_dependency_is_named_in_the_code() {
    let (mut known, mut unused) = (0, Vec::new());
    for entry in std::fs::read_dir(host()).expect("the crates") {
        let root = entry.expect("an entry").path();
        let Ok(manifest) = std::fs::read_to_string(root.join("Cargo.toml")) else { continue };
        let code = whole_code(&root);
        for name in dependencies(&manifest) {
            known += 1;
            if places(&code, &name).next().is_none() {
                unused.push(format!("{} does not use {name}", root.display()));
            }
        }
    }
    assert!(known > 200 && unused.is_empty(), "{known} dependencies: {unused:#?}");
}

#[test]
fn dependencies_are_read_from_a_manifest() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\n# a = 1\ntokio.workspace = true\nserde-json = { version = \"1\" }\n\
        [target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n[features]\nother = []\n";
    assert_eq!(dependencies(manifest), ["tokio", "serde_json", "libc"]);
    assert!(places("use tokio_util::x;", "tokio").next().is_none() && places("tokio::spawn", "tokio").next().is_some());
}

/// Edges for a test.
fn edges(list: &[(&str, &str)]) -> Edges {
    list.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect()
}

#[test]
fn a_circle_has_more_than_two_files() {
    assert_eq!(circle(&edges(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")])), None);
    assert_eq!(circle(&edges(&[("a", "b"), ("b", "c"), ("c", "a")])), Some(vec!["a", "b", "c"]));
    assert_eq!(circle(&edges(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")])), Some(vec!["a", "b", "c"]));
}

#[test]
fn a_circle_of_folders_is_found_and_shown() {
    let found = |list: &[(&str, &str)]| circle_of_folders(&edges(list)).unwrap_or_default();
    // Two files of one folder, and a folder's own file with the files below it.
    assert!(found(&[("a", "b"), ("b", "a"), ("c", "c/d"), ("c/d", "c"), ("lib", "a"), ("a", "lib")]).is_empty());
    // No two files import each other.
    assert_eq!(found(&[("a/x", "b"), ("b", "a/y")]), ["`a/x` uses `b`", "`b` uses `a/y`"]);
    assert_eq!(
        found(&[("a/x", "b/x"), ("b/y", "c"), ("c", "a/y"), ("c", "d"), ("d", "c")]),
        ["`a/x` uses `b/x`", "`b/y` uses `c`", "`c` uses `a/y`"]
    );
    // The folders are inside another one.
    assert_eq!(found(&[("r/a/x", "r/b"), ("r/b", "r/a")]), ["`r/a/x` uses `r/b`", "`r/b` uses `r/a`"]);
}

#[test]
fn a_file_belongs_to_one_part_of_each_folder_above_it() {
    let parts = [part_of("", "a/b/c"), part_of("a", "a/b/c"), part_of("a/b", "a/b/c"), part_of("", "d")];
    assert_eq!(parts, [Some("a"), Some("a/b"), Some("a/b/c"), Some("d")]);
    assert_eq!([part_of("a", "ab/c"), part_of("a", "a"), part_of("", "lib")], [None; 3]);
}

#[test]
fn trees_of_imports_are_read_whole() {
    let read =
        |tree: &str| leaves(tree).into_iter().map(|(path, name)| format!("{}={name}", path.join("::"))).collect::<Vec<_>>();
    assert_eq!(
        read("crate::{a, b::{C, d::E as F},\n    g::*};"),
        ["crate::a=a", "crate::b::C=C", "crate::b::d::E=F", "crate::g="]
    );
    assert_eq!(read("crate::a::{self, b}"), ["crate::a=a", "crate::a::b=b"]);
    assert_eq!(read("crate::a::b(c)"), ["crate::a::b=b"]);
    assert_eq!(read("crate::a::B::<C>::new()"), ["crate::a::B=B"]);
}
