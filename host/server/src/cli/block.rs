//! `blockbase block …`: the list of commands. Each command has its own file.

use std::path::PathBuf;

use blockbase_authoring::BuildOptions;
use clap::Subcommand;

use super::build::Language;
use super::client::Connection;
use super::install::Source;
use super::oci::RegistryAccess;
use super::{Problem, build, dev, install, logs, manage, oci};

/// What these commands work on.
const KINDS_HELP: &str = "\
Commands with --url talk to a server over its API, as the holder of --key. The others work on files of this machine, or with a
registry.";

#[derive(Subcommand)]
#[command(after_help = KINDS_HELP)]
pub(super) enum BlockCommand {
    /// Make a new block from a template
    #[command(after_help = "Example:\n  blockbase block new hello --language python      # makes the folder hello")]
    New {
        /// Name of the block: lower-case letters, digits and -, beginning with a letter
        name: String,
        /// The language to write it in
        #[arg(short, long, default_value = "rust")]
        language: Language,
        /// Where to make it [default: a folder of the block's name]
        directory: Option<PathBuf>,
    },
    /// Build the block in a directory for WebAssembly and pack it
    #[command(after_help = "Example:\n  blockbase block build examples/tasks      # writes examples/tasks/tasks.wasm")]
    Build {
        /// Directory with block.json and the sources
        #[arg(default_value = ".")]
        directory: PathBuf,
        /// File to write [default: the name of the block with .wasm, in the directory]
        #[arg(short, long)]
        out: Option<PathBuf>,
        /// Let packages of npm run the programs that they bring for their install
        #[arg(long)]
        allow_scripts: bool,
    },
    /// Pack a component or core module with its manifest into one file
    #[command(after_help = "Example:\n  blockbase block pack core.wasm --manifest block.json --out tasks.wasm")]
    Pack {
        /// Component, or core module that carries its component type
        wasm: PathBuf,
        /// The manifest
        #[arg(short, long, default_value = "block.json")]
        manifest: PathBuf,
        /// File to write
        #[arg(short, long)]
        out: PathBuf,
    },
    /// Show the manifest of a packed file as JSON
    #[command(after_help = "Example:\n  blockbase block inspect tasks.wasm")]
    Inspect { file: PathBuf },
    /// Build, install, and on every save rebuild and upgrade; show the block's log
    #[command(after_help = "Example:\n  blockbase block dev examples/tasks        # ends with Ctrl-C; the block stays installed")]
    Dev {
        /// Directory with block.json and the sources
        #[arg(default_value = ".")]
        directory: PathBuf,
        /// Grant what the block asks for without a question
        #[arg(short, long)]
        yes: bool,
        /// Let packages of npm run the programs that they bring for their install
        #[arg(long)]
        allow_scripts: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Publish a packed file in an OCI registry
    #[command(after_help = "Example:\n  blockbase block push tasks.wasm oci://ghcr.io/acme/tasks:0.1.0")]
    Push {
        file: PathBuf,
        /// oci://HOST/REPOSITORY:TAG
        reference: String,
        /// Print the digest and the address as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        registry: RegistryAccess,
    },
    /// Install a block: show what it would get, ask, and install it
    #[command(
        after_help = "Example:\n  blockbase block install tasks.wasm\n  blockbase block install oci://ghcr.io/acme/tasks:0.1.0 --dry-run\n  SVC_API_KEY=svc_… blockbase block install tasks.wasm --yes      # where there is no terminal"
    )]
    Install {
        /// Packed file, or oci://HOST/REPOSITORY:TAG, or oci://HOST/REPOSITORY@sha256:…
        source: Source,
        /// Grant what the block asks for without a question
        #[arg(short, long)]
        yes: bool,
        /// Only show what the block would get
        #[arg(long, conflicts_with = "yes")]
        dry_run: bool,
        /// Print the server's answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        registry: RegistryAccess,
        #[command(flatten)]
        connection: Connection,
    },
    /// Put another version in the place of an installed one; ask where it wants more than it has
    #[command(after_help = "Example:\n  blockbase block upgrade oci://ghcr.io/acme/tasks:0.2.0")]
    Upgrade {
        /// Packed file, or oci://HOST/REPOSITORY:TAG, or oci://HOST/REPOSITORY@sha256:…
        source: Source,
        /// Grant what the new version asks for beside the old one, without a question
        #[arg(short, long)]
        yes: bool,
        /// Print the server's answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        registry: RegistryAccess,
        #[command(flatten)]
        connection: Connection,
    },
    /// Go back to the version before
    #[command(after_help = "Example:\n  blockbase block rollback tasks")]
    Rollback {
        name: String,
        /// Print the server's answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// List installed blocks
    #[command(after_help = "Example:\n  blockbase block list --json")]
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Show an installed block: its versions, and what it may
    #[command(after_help = "Example:\n  blockbase block show tasks")]
    Show {
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Show what a block has logged, oldest first
    #[command(after_help = "Example:\n  blockbase block logs tasks --level error --follow")]
    Logs {
        name: String,
        /// How many of the latest lines
        #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only lines of this level
        #[arg(short, long)]
        level: Option<String>,
        /// Go on with lines as they come
        #[arg(short, long)]
        follow: bool,
        /// Print each line as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Remove a block with its subscriptions and webhooks; the data stays
    #[command(after_help = "Example:\n  blockbase block uninstall tasks")]
    Uninstall {
        name: String,
        /// Without a question
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Let a disabled block serve again
    #[command(after_help = "Example:\n  blockbase block enable tasks")]
    Enable {
        name: String,
        #[command(flatten)]
        connection: Connection,
    },
    /// Stop a block from serving, without removing it
    #[command(after_help = "Example:\n  blockbase block disable tasks")]
    Disable {
        name: String,
        #[command(flatten)]
        connection: Connection,
    },
    /// Show a block's configuration, or set it
    #[command(after_help = "Example:\n  blockbase block config tasks --set '{ \"cheer\": \"Hooray!\" }'")]
    Config {
        name: String,
        /// The whole configuration: JSON, a file that holds it, or - for standard input
        #[arg(long, value_name = "JSON|FILE|-")]
        set: Option<String>,
        #[command(flatten)]
        connection: Connection,
    },
    /// A block's secrets: their names are shown, their values only written
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Call an action
    #[command(after_help = "Example:\n  blockbase block call tasks complete '{ \"id\": \"01a1fd35-…\" }'")]
    Call {
        name: String,
        action: String,
        /// The input: JSON, or - for standard input
        #[arg(default_value = "{}")]
        input: String,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Subcommand)]
pub(super) enum SecretCommand {
    /// List the names of a block's secrets
    #[command(after_help = "Example:\n  blockbase block secret list orders")]
    List {
        name: String,
        /// Print the server's answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: Connection,
    },
    /// Set a secret to what is typed, or to what standard input holds
    #[command(after_help = "Example:\n  blockbase block secret set orders STRIPE_KEY < stripe.key")]
    Set {
        name: String,
        /// Name of the secret
        #[arg(value_name = "KEY")]
        secret: String,
        #[command(flatten)]
        connection: Connection,
    },
    /// Delete a secret
    #[command(after_help = "Example:\n  blockbase block secret delete orders STRIPE_KEY")]
    Delete {
        name: String,
        /// Name of the secret
        #[arg(value_name = "KEY")]
        secret: String,
        #[command(flatten)]
        connection: Connection,
    },
}

pub(super) fn run(command: BlockCommand) -> Result<(), Problem> {
    match command {
        BlockCommand::New { name, language, directory } => build::new(&name, language, directory),
        BlockCommand::Build { directory, out, allow_scripts } => build::build(&directory, out, BuildOptions { allow_scripts }),
        BlockCommand::Pack { wasm, manifest, out } => build::pack(&wasm, &manifest, &out),
        BlockCommand::Inspect { file } => build::inspect(&file),
        BlockCommand::Dev { directory, yes, allow_scripts, connection } => {
            dev::dev(&connection.open()?, &directory, yes, BuildOptions { allow_scripts })
        }
        BlockCommand::Push { file, reference, json, registry } => oci::push(&file, &reference, &registry, json),
        BlockCommand::Install { source, yes, dry_run, json, registry, connection } => {
            let api = connection.open()?;
            let package = source.read(&registry)?;
            match dry_run {
                true => install::dry_run(&api, &package, json),
                false => install::install(&api, &package, yes, json),
            }
        }
        BlockCommand::Upgrade { source, yes, json, registry, connection } => {
            let api = connection.open()?;
            install::upgrade(&api, &source.read(&registry)?, yes, json)
        }
        BlockCommand::Rollback { name, json, connection } => manage::rollback(&connection.open()?, &name, json),
        BlockCommand::List { json, connection } => manage::list(&connection.open()?, json),
        BlockCommand::Show { name, json, connection } => manage::show(&connection.open()?, &name, json),
        BlockCommand::Logs { name, limit, level, follow, json, connection } => {
            let wanted = logs::Wanted { block: name, level, json };
            logs::logs(&connection.open()?, &wanted, limit, follow)
        }
        BlockCommand::Uninstall { name, yes, connection } => manage::uninstall(&connection.open()?, &name, yes),
        BlockCommand::Enable { name, connection } => manage::set_enabled(&connection.open()?, &name, true),
        BlockCommand::Disable { name, connection } => manage::set_enabled(&connection.open()?, &name, false),
        BlockCommand::Config { name, set, connection } => manage::config(&connection.open()?, &name, set.as_deref()),
        BlockCommand::Secret(SecretCommand::List { name, json, connection }) => {
            manage::list_secrets(&connection.open()?, &name, json)
        }
        BlockCommand::Secret(SecretCommand::Set { name, secret, connection }) => {
            manage::set_secret(&connection.open()?, &name, &secret)
        }
        BlockCommand::Secret(SecretCommand::Delete { name, secret, connection }) => {
            manage::delete_secret(&connection.open()?, &name, &secret)
        }
        BlockCommand::Call { name, action, input, connection } => manage::call(&connection.open()?, &name, &action, &input),
    }
}
