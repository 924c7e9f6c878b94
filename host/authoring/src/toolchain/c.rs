//! Blocks written in C: clang builds them with a C library for WASI, from the distribution or from a wasi-sdk.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::project::{BuiltBlock, Project};
use super::tools::{LINKERS, on_path, output, run, stack_option, typed};

/// The compilers that may support WebAssembly.
const COMPILERS: [&str; 6] = ["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17"];
/// The target names of C libraries for WASI preview 1.
const TARGETS: [&str; 2] = ["wasm32-wasip1", "wasm32-wasi"];

/// The advice for a machine that cannot build C for WebAssembly.
const INSTALL: &str = "No C compiler for WebAssembly was found. On Debian or Ubuntu: \
     `apt-get install --no-install-recommends clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32`. \
     Elsewhere: unpack a wasi-sdk and set WASI_SDK_PATH to its folder.";

/// The source files in the SDK's folder.
const SDK_SOURCES: [&str; 6] = ["exports.c", "host.c", "json.c", "sha256.c", "bindings/block.c", "yyjson/yyjson.c"];

/// A compiler with everything that it needs.
#[derive(Debug)]
struct Clang {
    program: PathBuf,
    target: &'static str,
    /// The linker, if clang does not find a linker by itself.
    linker: Option<PathBuf>,
}

impl Clang {
    fn find() -> Result<Clang, String> {
        if let Some(sdk) = std::env::var_os("WASI_SDK_PATH").filter(|value| !value.is_empty()) {
            let program = Path::new(&sdk).join("bin/clang");
            return Clang::of(&program)
                .ok_or_else(|| format!("WASI_SDK_PATH names no wasi-sdk: {} builds no WebAssembly.", program.display()));
        }
        COMPILERS.into_iter().filter_map(on_path).find_map(|program| Clang::of(&program)).ok_or_else(|| INSTALL.to_owned())
    }

    fn of(program: &Path) -> Option<Clang> {
        let linker = match asked(program, "-print-prog-name=wasm-ld") {
            Some(_) => None,
            None => Some(LINKERS.into_iter().find_map(on_path)?),
        };
        let target = TARGETS.into_iter().find(|target| {
            let target = format!("--target={target}");
            let has = |question: &str| output(Command::new(program).args([&target, question])).is_some_and(|file| is_file(&file));
            has("-print-file-name=crt1-reactor.o") && has("-print-file-name=libc.a") && has("-print-libgcc-file-name")
        })?;
        Some(Clang { program: program.to_owned(), target, linker })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(format!("--target={}", self.target));
        command
    }

    /// The first line of the compiler's version text.
    fn version(&self) -> String {
        let said = output(Command::new(&self.program).arg("--version")).unwrap_or_default();
        said.lines().next().unwrap_or("clang").to_owned()
    }
}

/// The absolute path that the compiler prints as the answer to a question.
fn asked(program: &Path, question: &str) -> Option<String> {
    output(Command::new(program).arg(question)).filter(|file| is_file(file))
}

fn is_file(file: &str) -> bool {
    Path::new(file).is_absolute() && Path::new(file).is_file()
}

/// # Errors
/// If a tool is missing, or if the sources do not compile.
pub(super) fn build(project: &Project) -> Result<BuiltBlock, String> {
    let clang = Clang::find()?;
    let out = project.work.join("build");
    let sources = sources(&project.directory)?;
    let mut objects = sdk_objects(&clang, project, &out)?;
    let own = out.join("block");
    // The folder is emptied first, so that no object of a deleted source is left.
    let _ = std::fs::remove_dir_all(&own);
    create(&own)?;
    for source in &sources {
        let object = own.join(source.file_name().unwrap_or_default()).with_extension("o");
        let mut command = clang.command();
        command
            .args(["-std=gnu17", "-Os", "-Wall", "-Wextra", "-c"])
            .arg("-I")
            .arg(&project.sdk)
            .arg(source)
            .arg("-o")
            .arg(&object);
        run(command.current_dir(&project.directory), &format!("Compiling {}", source.display()))?;
        objects.push(object);
    }
    let core = out.join("core.wasm");
    let mut command = clang.command();
    if let Some(linker) = &clang.linker {
        command.arg(format!("-fuse-ld={}", linker.display()));
    }
    command.args(["-mexec-model=reactor", "-Wl,--gc-sections,--strip-all,--stack-first"]);
    command.arg(format!("-Wl,{}", stack_option())).args(&objects).arg("-o").arg(&core);
    run(&mut command, "Linking the block")?;
    Ok(BuiltBlock { wasm: typed(&core)?, toolchain: clang.version() })
}

/// The C files of the block's folder, in the order of their names.
fn sources(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| format!("{} cannot be read: {error}.", directory.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut sources: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|extension| extension == "c")).collect();
    sources.sort();
    Ok(sources)
}

fn create(directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|error| format!("{} cannot be made: {error}.", directory.display()))
}

/// The SDK's objects. They are compiled again if the SDK or the compiler has changed.
fn sdk_objects(clang: &Clang, project: &Project, out: &Path) -> Result<Vec<PathBuf>, String> {
    let directory = out.join("sdk");
    create(&directory)?;
    let stamp = directory.join("stamp");
    let now = format!("{}\n{}\n{}\n{}", clang.program.display(), clang.target, clang.version(), env!("CARGO_PKG_VERSION"));
    let same_compiler = std::fs::read_to_string(&stamp).is_ok_and(|made_by| made_by == now);
    let changed = |file: &Path| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    let newest = ["blockbase.h", "internal.h", "bindings/block.h", "yyjson/yyjson.h"]
        .into_iter()
        .chain(SDK_SOURCES)
        .filter_map(|name| changed(&project.sdk.join(name)))
        .max();
    let mut objects = Vec::new();
    for name in SDK_SOURCES {
        let source = project.sdk.join(name);
        let object = directory.join(source.file_name().unwrap_or_default()).with_extension("o");
        if !same_compiler || changed(&object) <= newest {
            let mut command = clang.command();
            command.args(["-std=gnu17", "-Os", "-ffunction-sections", "-c"]).arg(&source).arg("-o").arg(&object);
            run(&mut command, "Compiling the SDK")?;
        }
        objects.push(object);
    }
    std::fs::write(&stamp, now).map_err(|error| format!("{} cannot be written: {error}.", stamp.display()))?;
    Ok(objects)
}
