//! Blocks written in JavaScript or TypeScript. tsc checks the types, esbuild bundles, and componentize-qjs makes a component with
//! QuickJS. The tools come from npm, in the versions that the block's package.json names.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::project::{BuildOptions, BuiltBlock, Project};
use super::tools::{on_path, output, run};
use crate::scaffold::{write, write_world};

/// The files in which the author's code may begin. The first one that exists is used.
const ENTRIES: [&str; 4] = ["src/block.ts", "src/block.js", "block.ts", "block.js"];
/// The oldest Node.js that builds are tested with.
const NODE_MAJOR_MIN: u32 = 20;
const INSTALL: &str = "Node.js 20 or newer with npm is needed to build JavaScript: https://nodejs.org, or on Debian or Ubuntu \
     `apt-get install --no-install-recommends nodejs npm`.";

/// # Errors
/// If a tool is missing, if the types do not match, or if the sources cannot be bundled.
pub(super) fn build(project: &Project, options: BuildOptions) -> Result<BuiltBlock, String> {
    let directory = &project.directory;
    let entry = ENTRIES
        .into_iter()
        .find(|entry| directory.join(entry).is_file())
        .ok_or_else(|| format!("{} holds none of {}.", directory.display(), ENTRIES.join(", ")))?;
    check_node()?;
    let types_are_checked = directory.join("tsconfig.json").is_file();
    let mut tools = vec!["esbuild", "componentize-qjs"];
    if types_are_checked {
        tools.push("tsc");
    }
    install(directory, &tools, options)?;
    if types_are_checked {
        run(Command::new(tool(directory, "tsc")?).args(["--noEmit", "--project", "."]).current_dir(directory), "The type check")?;
    }
    let work = project.work.join("build");
    let bundle = bundle(project, entry, &work)?;
    let wasm = work.join("block.wasm");
    let mut componentize = Command::new(tool(directory, "componentize-qjs")?);
    // Without `--sync`, the component would need an ABI that is not stable yet.
    componentize.arg("--sync").args(["--world", "block", "--wit"]).arg(&project.wit);
    componentize.arg("--js").arg(&bundle).arg("--output").arg(&wasm).current_dir(directory);
    run_quietly(&mut componentize, "Making a component of the bundle")?;
    Ok(BuiltBlock { wasm, toolchain: "esbuild and componentize-qjs".to_owned() })
}

fn check_node() -> Result<(), String> {
    let version = output(Command::new("node").arg("--version")).ok_or(INSTALL)?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major < NODE_MAJOR_MIN => Err(format!("This is Node.js {version}. {INSTALL}")),
        _ => Ok(()),
    }
}

/// The name that npm gives a program on this system.
fn program(name: &str) -> String {
    if cfg!(windows) { format!("{name}.cmd") } else { name.to_owned() }
}

/// The path of a tool among the npm packages of the block, or of the workspace around it.
fn find_tool(directory: &Path, name: &str) -> Option<PathBuf> {
    directory.ancestors().map(|ancestor| ancestor.join("node_modules/.bin").join(program(name))).find(|file| file.is_file())
}

fn tool(directory: &Path, name: &str) -> Result<PathBuf, String> {
    find_tool(directory, name).ok_or_else(|| format!("{name} is not among the installed packages."))
}

/// Runs a tool whose output is shown only if it fails.
fn run_quietly(command: &mut Command, what: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program} cannot be started: {error}."))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{what} failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The packages of those tools that are missing.
fn missing<'a>(directory: &Path, tools: &[&'a str]) -> Vec<&'a str> {
    let missing = tools.iter().filter(|name| find_tool(directory, name).is_none());
    missing.map(|name| if *name == "tsc" { "typescript" } else { *name }).collect()
}

/// Installs the packages if a tool is missing. The author keeps existing packages up to date. Install scripts of packages run only if
/// the author asked for that, because no build tool needs one.
fn install(directory: &Path, tools: &[&str], options: BuildOptions) -> Result<(), String> {
    if missing(directory, tools).is_empty() {
        return Ok(());
    }
    let npm = on_path(&program("npm")).ok_or(INSTALL)?;
    let mut install = Command::new(npm);
    // The tools are development dependencies, which npm leaves out if NODE_ENV is `production`.
    install.args(["install", "--include=dev", "--no-audit", "--no-fund"]).current_dir(directory);
    if !options.allow_scripts {
        install.arg("--ignore-scripts");
    }
    run(&mut install, "Installing the packages")?;
    match missing(directory, tools) {
        missing if missing.is_empty() => Ok(()),
        missing => {
            let missing = missing.join(" ");
            Err(format!("package.json lacks packages that a build needs: `npm install --save-dev --save-exact {missing}`."))
        }
    }
}

/// Bundles the author's code with the SDK into one module. Also writes the world with the imports of the bundle, so that an
/// author need not name an interface twice.
fn bundle(project: &Project, entry: &str, work: &Path) -> Result<PathBuf, String> {
    let start = work.join("start.js");
    // The SDK comes first, because it sets up the globals that the author's code uses from its first line.
    let text = format!("export * from \"../sdk/src/guest.js\";\nimport \"../../{entry}\";\n");
    write(&start, text.as_bytes())?;
    let (bundle, report) = (work.join("block.js"), work.join("bundle.json"));
    let mut esbuild = Command::new(tool(&project.directory, "esbuild")?);
    esbuild
        .arg(&start)
        .args(["--bundle", "--format=esm", "--platform=neutral", "--main-fields=module,main", "--target=es2023"])
        // The SDK settles promises itself. For that, the engine must see only synchronous functions.
        .args(["--supported:async-await=false", "--supported:async-generator=false", "--supported:for-await=false"])
        .args(["--external:blockbase:*", "--external:wasi:*", "--define:process.env.NODE_ENV=\"production\""])
        .args(["--charset=utf8", "--legal-comments=none", "--log-level=warning"])
        .arg(format!("--alias:@blockbase/sdk={}", project.sdk.display()))
        .arg(format!("--metafile={}", report.display()))
        .arg(format!("--outfile={}", bundle.display()))
        .current_dir(&project.directory);
    run(&mut esbuild, "Bundling")?;
    write_world(&project.wit, imports(&report)?)?;
    Ok(bundle)
}

/// The interfaces that a bundle imports. esbuild reports them as external.
fn imports(report: &Path) -> Result<Vec<String>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}.", report.display());
    let text = std::fs::read_to_string(report).map_err(|error| unreadable(&error))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let outputs = report["outputs"].as_object().into_iter().flat_map(|outputs| outputs.values());
    let imports = outputs.flat_map(|output| output["imports"].as_array().into_iter().flatten());
    let external = imports.filter(|import| import["external"] == true).filter_map(|import| import["path"].as_str());
    let mut names: Vec<String> = external.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    match names.iter().find(|name| !name.starts_with("blockbase:") && !name.starts_with("wasi:")) {
        Some(name) => Err(format!("The bundle imports {name}, which no block has.")),
        None => Ok(names),
    }
}
