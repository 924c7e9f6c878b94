//! Tests the lists of faults that `.ci/faults` plants into the server: each of them still fits the code, and its tests exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The minimum number of faults in the list of policies.
const POLICY_FAULTS_MIN: usize = 20;
/// The minimum number of faults of conditions in SQL, and of those in memory.
const CONDITION_FAULTS_MIN: usize = 5;
/// The minimum number of faults in the list of kept instances.
const INSTANCE_FAULTS_MIN: usize = 15;
/// The minimum number of faults that only unit tests find.
const UNIT_FAULTS_MIN: usize = 3;

/// A fault: its name, its file, the lines of code before and after it, and the tests that find it.
#[derive(Debug, Default)]
struct Fault {
    name: String,
    file: String,
    before: Vec<String>,
    after: Vec<String>,
    /// Parts of the names of end-to-end tests.
    tests: Vec<String>,
    /// The package of unit tests, and then parts of their names.
    unit_tests: Vec<String>,
}

fn faults(text: &str) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(name) = line.strip_prefix("fault: ") {
            faults.push(Fault { name: name.to_owned(), ..Fault::default() });
            continue;
        }
        let fault = faults.last_mut().unwrap_or_else(|| panic!("before the first fault: {line}"));
        match line.split_once(' ') {
            Some(("file:", file)) => file.clone_into(&mut fault.file),
            Some(("tests:", tests)) => fault.tests = tests.split(' ').map(str::to_owned).collect(),
            Some(("unit-tests:", tests)) => fault.unit_tests = tests.split(' ').map(str::to_owned).collect(),
            Some(("-", code)) => fault.before.push(code.to_owned()),
            Some(("+", code)) => fault.after.push(code.to_owned()),
            _ => panic!("not a line of a fault: {line}"),
        }
    }
    faults
}

/// The names of the functions in all Rust files below a folder.
fn functions(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(functions(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let names = source.lines().filter_map(|line| line.split_once("fn ")?.1.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
    found
}

/// The names of the functions in a package of the workspace: a crate of `host`, or the tests themselves.
fn functions_of(root: &Path, package: &str) -> Vec<String> {
    let name = package.strip_prefix("blockbase-").unwrap_or_else(|| panic!("no package of the workspace: {package}"));
    let folder = if name == "tests" { root.join(name) } else { root.join("host").join(name) };
    functions(&folder.join("src"))
}

/// Reads a list, and asserts that the code before each of its faults occurs exactly once.
fn fitting(text: &str) -> Vec<Fault> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let faults = faults(text);
    let names: BTreeSet<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
    assert_eq!(names.len(), faults.len(), "two faults have one name");
    let functions = functions(&root.join("tests/tests"));
    for fault in &faults {
        let source = std::fs::read_to_string(root.join(&fault.file)).unwrap_or_else(|error| panic!("{}: {error}", fault.file));
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let places = lines.windows(fault.before.len().max(1)).filter(|window| **window == fault.before);
        assert_eq!(places.count(), 1, "the code before the fault {:?} in {}", fault.name, fault.file);
        assert!(!fault.after.is_empty() && fault.after != fault.before, "{fault:?}");
        assert!(!fault.tests.is_empty() || !fault.unit_tests.is_empty(), "{fault:?}");
        for test in &fault.tests {
            assert!(functions.iter().any(|name| name.contains(test)), "{:?}: no test has {test} in its name", fault.name);
        }
        if let Some((package, tests)) = fault.unit_tests.split_first() {
            assert!(!tests.is_empty(), "{:?}: all tests of {package} would run", fault.name);
            let functions = functions_of(root, package);
            for test in tests {
                let is_there = functions.iter().any(|name| name.contains(test));
                assert!(is_there, "{:?}: no test of {package} has {test} in its name", fault.name);
            }
        }
    }
    faults
}

#[test]
fn the_faults_in_policies_fit_the_code() {
    let faults = fitting(include_str!("../faults/policies.txt"));
    assert!(faults.len() >= POLICY_FAULTS_MIN, "{}", faults.len());
}

#[test]
fn the_faults_in_conditions_fit_the_code() {
    let faults = fitting(include_str!("../faults/conditions.txt"));
    for (place, path) in [("SQL", "host/query/src/sql/"), ("memory", "host/query/src/predicate.rs")] {
        let count = faults.iter().filter(|fault| fault.file.starts_with(path)).count();
        assert!(count >= CONDITION_FAULTS_MIN, "{count} faults in {place}");
    }
    let of_units = faults.iter().filter(|fault| fault.tests.is_empty()).count();
    assert!(of_units >= UNIT_FAULTS_MIN, "{of_units} faults of unit tests");
}

#[test]
fn the_faults_in_blocks_fit_the_code() {
    let faults = fitting(include_str!("../faults/blocks.txt"));
    assert!(faults.len() >= INSTANCE_FAULTS_MIN, "{}", faults.len());
}

#[test]
fn the_faults_in_reads_fit_the_code() {
    assert!(!fitting(include_str!("../faults/reads.txt")).is_empty());
}
