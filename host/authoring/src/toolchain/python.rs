//! Blocks written in Python: componentize-py makes a component from CPython and every module that the block imports.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::project::{BuiltBlock, Project};
use super::tools::{on_path, output, run};

/// The version of componentize-py that the SDK is written for.
const COMPONENTIZE_VERSION: &str = "0.25.1";
/// The Python version in the component. `requirements.txt` is resolved for it.
const GUEST_PYTHON: &str = "3.14";
/// The oldest Python that can build blocks. The SDK needs it too.
const PYTHON_OLDEST: (u32, u32) = (3, 10);
/// The Python code that runs the entry point of the package's command.
const RUN_COMPONENTIZE: &str = "import sys, componentize_py; sys.exit(componentize_py.script())";
/// The module of the SDK that exports the block's interfaces and imports `block.py`.
const GUEST_MODULE: &str = "blockbase_guest";

/// # Errors
/// If a tool is missing, or if the sources cannot be imported.
pub(super) fn build(project: &Project) -> Result<BuiltBlock, String> {
    let mut componentize = componentize()?;
    let environment = environment(project)?;
    let wasm = project.work.join("block.wasm");
    componentize.arg("-q").arg("-d").arg(&project.wit).args(["-w", "blockbase:guest/block", "componentize"]);
    componentize.arg("-p").arg(&project.directory).arg("-p").arg(&project.sdk);
    // componentize-py takes packages from the active virtual environment, or if there is none, from the machine's Python.
    componentize.env("VIRTUAL_ENV", &environment).current_dir(&project.directory);
    componentize.arg(GUEST_MODULE).arg("-o").arg(&wasm);
    run(&mut componentize, "The build with componentize-py")?;
    Ok(BuiltBlock { wasm, toolchain: format!("componentize-py {COMPONENTIZE_VERSION}") })
}

/// componentize-py in exactly the required version. It is the one on the PATH if that has the version, and otherwise Blockbase's
/// own copy.
fn componentize() -> Result<Command, String> {
    if let Some(program) = on_path("componentize-py")
        && output(Command::new(&program).arg("--version")).is_some_and(|said| said.ends_with(COMPONENTIZE_VERSION))
    {
        return Ok(Command::new(program));
    }
    let python = python()?;
    let directory = cache_directory()?.join(format!("componentize-py-{COMPONENTIZE_VERSION}"));
    if !directory.is_dir() {
        install_componentize(python, &directory)?;
    }
    let mut command = Command::new(python);
    command.env("PYTHONPATH", &directory).args(["-c", RUN_COMPONENTIZE]);
    Ok(command)
}

/// Installs into a folder beside the final one, and then renames that folder. So the final folder is always complete, even if
/// another build runs at the same time.
fn install_componentize(python: &str, directory: &Path) -> Result<(), String> {
    eprintln!("Installing componentize-py {COMPONENTIZE_VERSION} into {}.", directory.display());
    let making = directory.with_extension(format!("{}.part", std::process::id()));
    let mut pip = pip(python)?;
    pip.arg("--target").arg(&making).arg(format!("componentize-py=={COMPONENTIZE_VERSION}"));
    let installed =
        run(&mut pip, "The installation of componentize-py").and_then(|()| match std::fs::rename(&making, directory) {
            Err(error) if !directory.is_dir() => Err(format!("{} cannot be made: {error}.", directory.display())),
            _ => Ok(()),
        });
    // The temporary folder still exists if another process was faster, or if pip failed.
    let _ = std::fs::remove_dir_all(&making);
    installed.map_err(|error| {
        format!("{error} Blocks in Python need it: `pip install componentize-py=={COMPONENTIZE_VERSION}` puts it on the PATH.")
    })
}

/// A virtual environment that contains only the packages in `requirements.txt`. It is made again when that file changes.
fn environment(project: &Project) -> Result<PathBuf, String> {
    let requirements = project.directory.join("requirements.txt");
    let environment = project.work.join("environment");
    let (packages, known) = (environment.join("lib/site-packages"), environment.join("requirements.txt"));
    let wanted = std::fs::read(&requirements).unwrap_or_default();
    if std::fs::read(&known).is_ok_and(|known| known == wanted) {
        return Ok(environment);
    }
    let explain = |error: std::io::Error| format!("{} cannot be made: {error}.", environment.display());
    if environment.exists() {
        std::fs::remove_dir_all(&environment).map_err(explain)?;
    }
    std::fs::create_dir_all(&packages).map_err(explain)?;
    if !wanted.trim_ascii().is_empty() {
        let mut pip = pip(python()?)?;
        // These options prevent code that is compiled for this machine, because it does not run in a component.
        pip.args(["--implementation", "py", "--abi", "none", "--platform", "any", "--python-version", GUEST_PYTHON]);
        pip.arg("--target").arg(&packages).arg("--requirement").arg(&requirements);
        run(&mut pip, "The installation of requirements.txt, which may name packages of pure Python only,")?;
    }
    std::fs::write(&known, wanted).map_err(explain)?;
    Ok(environment)
}

/// The command `pip install`, which only installs wheels.
fn pip(python: &str) -> Result<Command, String> {
    if output(Command::new(python).args(["-m", "pip", "--version"])).is_none() {
        return Err(format!("{python} has no pip. On Debian or Ubuntu: `apt-get install python3-pip`."));
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]);
    Ok(pip)
}

/// The first Python on the PATH that is new enough.
fn python() -> Result<&'static str, String> {
    const VERSION: &str = "import sys; print(*sys.version_info[:2])";
    let fits = |said: &str| {
        let (major, minor) = said.split_once(' ')?;
        Some((major.parse().ok()?, minor.parse().ok()?) >= PYTHON_OLDEST)
    };
    let found = ["python3", "python"]
        .into_iter()
        .find(|python| output(Command::new(python).args(["-c", VERSION])).and_then(|said| fits(&said)).unwrap_or(false));
    found.ok_or_else(|| {
        let (major, minor) = PYTHON_OLDEST;
        format!(
            "No Python {major}.{minor} or later was found, which blocks in Python are built with. \
             On Debian or Ubuntu: `apt-get install python3 python3-pip`."
        )
    })
}

/// The folder for caches of the user.
fn cache_directory() -> Result<PathBuf, String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache
        .map(|cache| cache.join("blockbase"))
        .ok_or_else(|| "There is no HOME to keep componentize-py in; set XDG_CACHE_HOME to an absolute path.".to_owned())
}
