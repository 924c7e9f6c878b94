//! Compiles in a child process with limited time and memory, because a hostile component can make the compiler use any amount of
//! both.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use blockbase_app::schema::{Code, Error, Result};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::engine;
use crate::package::manifest::invalid;

/// The ratio between the maximum clock time and the maximum processor time of a compilation. They differ because the machine does
/// other work as well.
const CLOCK_FACTOR: u32 = 4;

/// The maximum number of bytes of machine code that the server accepts from the child.
const CODE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The limits of one compilation.
#[derive(Clone, Copy, Debug)]
pub struct CompileLimits {
    /// The processor time.
    pub time: Duration,
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        CompileLimits { time: Duration::from_secs(60), memory_bytes: 2 << 30 }
    }
}

/// Compiles components one at a time.
pub(crate) struct Compiler {
    /// The program and arguments that run [`compile_child`].
    command: (PathBuf, &'static str),
    limits: CompileLimits,
    turn: Semaphore,
}

impl Compiler {
    pub(crate) fn new(program: PathBuf, argument: &'static str, limits: CompileLimits) -> Compiler {
        Compiler { command: (program, argument), limits, turn: Semaphore::new(1) }
    }

    /// The machine code of a component.
    ///
    /// # Errors
    /// `invalid_block` if the component does not compile within the limits.
    pub(crate) async fn compile(&self, component: &[u8]) -> Result<Vec<u8>> {
        let _turn = self.turn.acquire().await.map_err(Error::internal)?;
        let (program, argument) = &self.command;
        let mut child = Command::new(program)
            .arg(argument)
            .arg(self.limits.memory_bytes.to_string())
            .arg(self.limits.time.as_secs().max(1).to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // If the caller stops waiting, the child process ends.
            .kill_on_drop(true)
            .spawn()
            .map_err(Error::internal)?;
        let mut input = child.stdin.take().ok_or_else(|| Error::internal("the compiler has no input"))?;
        let work = async {
            let (written, output) = tokio::join!(
                async {
                    let written = input.write_all(component).await;
                    drop(input);
                    written
                },
                child.wait_with_output()
            );
            // A child that ends early does not read everything. Its own output says why it ended.
            let _ = written;
            output
        };
        let clock = self.limits.time * CLOCK_FACTOR;
        let output = match tokio::time::timeout(clock, work).await {
            Err(_) => {
                return Err(invalid(format!("The component takes longer than {} s to compile.", clock.as_secs())));
            }
            Ok(output) => output.map_err(Error::internal)?,
        };
        match output.status.code() {
            Some(0) => Ok(output.stdout),
            Some(1) => {
                let reason = String::from_utf8_lossy(&output.stderr);
                let reason: String = reason.lines().next().unwrap_or_default().chars().take(300).collect();
                Err(invalid(format!("The component does not compile: {reason}")))
            }
            _ => {
                Err(Error::new(Code::InvalidBlock, "The component needs more memory or time to compile than this server allows."))
            }
        }
    }
}

/// Runs in the child: reads a component from standard input and writes its machine code to standard output.
///
/// # Errors
/// A line for the parent that says why the component does not compile.
pub fn compile_child(memory_bytes: u64, seconds: u64) -> std::result::Result<(), String> {
    limit_itself(memory_bytes, seconds)?;
    let mut component = Vec::new();
    std::io::stdin().lock().read_to_end(&mut component).map_err(|error| error.to_string())?;
    let engine = engine::compiling().map_err(|error| error.to_string())?;
    let code = engine.precompile_component(&component).map_err(|error| format!("{error:#}").replace('\n', " "))?;
    if code.len() > CODE_BYTES_MAX {
        return Err(format!("its machine code has {} bytes, and {CODE_BYTES_MAX} at most are kept", code.len()));
    }
    std::io::stdout().lock().write_all(&code).map_err(|error| error.to_string())
}

#[cfg(unix)]
fn limit_itself(memory_bytes: u64, seconds: u64) -> std::result::Result<(), String> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    for (resource, most) in [(Resource::Data, memory_bytes), (Resource::Cpu, seconds), (Resource::Core, 0)] {
        setrlimit(resource, limit(most)).map_err(|error| format!("the compiler cannot be bounded: {error}"))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn limit_itself(_memory_bytes: u64, _seconds: u64) -> std::result::Result<(), String> {
    Ok(())
}
