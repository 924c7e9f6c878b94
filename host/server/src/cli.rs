//! The command line. The exit codes are 0 for success, 1 for a failure, and 2 for a wrong usage or configuration.

mod block;
mod build;
mod client;
mod condition_words;
mod consent;
mod dev;
mod docker_config;
mod install;
mod key;
mod logs;
mod manage;
mod oci;
mod operator;
mod problem;
mod terminal;
mod user;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::serve::{self, COMPILE_COMMAND, Failure};
use crate::variables::VARIABLES;

use problem::Problem;

#[derive(Parser)]
#[command(
    name = "blockbase",
    version,
    about = "A backend in one binary: data objects at run time, events, and sandboxed WebAssembly blocks.",
    after_help = "Example:\n  blockbase serve            # SQLite in ./svc-data, on http://127.0.0.1:4000"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    #[command(after_help = serve_help())]
    Serve,
    /// Make, build, publish and install blocks, and look after installed ones
    #[command(subcommand)]
    Block(block::BlockCommand),
    /// Create users, set their passwords, give and take roles, ban and delete them: on this machine, also when nobody can sign in
    #[command(subcommand)]
    User(user::UserCommand),
    /// Create, list and delete API keys on this machine
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Print a script that completes this command line in a shell
    #[command(after_help = "Example:\n  blockbase completions bash > ~/.local/share/bash-completion/completions/blockbase")]
    Completions { shell: Shell },
    /// Compile a component from standard input to standard output
    #[command(name = COMPILE_COMMAND, hide = true)]
    CompileComponent { memory_bytes: u64, seconds: u64 },
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        match failure {
            Failure::Configuration(line) => Problem::Usage(line),
            Failure::Boot(line) => Problem::Failed(line),
        }
    }
}

fn serve_help() -> String {
    let width = VARIABLES.iter().map(|variable| variable.name.len()).max().unwrap_or(0);
    let mut help = "Environment:\n".to_owned();
    for variable in VARIABLES {
        help.push_str(&format!("  {:width$}  {}\n", variable.name, variable.help()));
    }
    help.push_str("\nExample:\n  SVC_LISTEN=127.0.0.1:8080 blockbase serve");
    help
}

/// Runs the command that the command line names.
pub(crate) fn run() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve => serve::serve().map_err(Problem::from),
        Command::Block(command) => block::run(command),
        Command::User(command) => user::run(command),
        Command::Key(command) => key::run(command),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "blockbase", &mut std::io::stdout().lock());
            Ok(())
        }
        Command::CompileComponent { memory_bytes, seconds } => {
            // The parent reads the first line of standard error.
            return match blockbase_blocks::compile_child(memory_bytes, seconds) {
                Ok(()) => ExitCode::SUCCESS,
                Err(line) => {
                    let _ = writeln!(std::io::stderr().lock(), "{line}");
                    ExitCode::from(1)
                }
            };
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let (line, code) = match problem {
                Problem::Usage(line) => (line, 2),
                Problem::Failed(line) => (line, 1),
            };
            terminal::note(&format!("blockbase: {line}"));
            ExitCode::from(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_an_example_in_its_help() {
        fn check(command: &clap::Command) {
            for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
                if inner.has_subcommands() {
                    check(inner);
                    continue;
                }
                let help = inner.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example:\n"), "{}", inner.get_name());
            }
        }
        let command = Arguments::command();
        command.clone().debug_assert();
        check(&command);
    }

    #[test]
    fn help_says_how_a_command_reaches_the_server() {
        let command = Arguments::command();
        for (name, way) in [("block", "talk to a server over its API"), ("user", "needs no key"), ("key", "needs no key")] {
            let help = command.find_subcommand(name).and_then(clap::Command::get_after_help).map(ToString::to_string);
            assert!(help.is_some_and(|help| help.contains(way)), "{name}");
        }
    }
}
