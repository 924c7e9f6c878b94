//! `block dev`: builds and installs a block, and repeats this whenever a source is saved.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use blockbase_authoring::BuildOptions;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::client::Api;
use super::install::{self, Package};
use super::logs::{self, Follower, Wanted};
use super::terminal::{confirmed, note};
use super::{Problem, build};

/// A build starts when the folder did not change for this long, because editors save in several steps.
const QUIET: Duration = Duration::from_millis(300);
/// The longest wait until the folder does not change any more.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// Folders with generated files. Names that begin with a dot are ignored too.
const MADE: [&str; 6] = ["target", "node_modules", "dist", "build", "vendor", "__pycache__"];
/// The maximum number of files that are watched.
const FILES_MAX: usize = 20_000;

pub(super) fn dev(api: &Api, directory: &Path, yes: bool, options: BuildOptions) -> Result<(), Problem> {
    // This fails early, because a folder without a block does not become one by waiting.
    build::read(&directory.join("block.json"))?;
    let mut folder = Folder::watch(directory)?;
    let mut package = loop {
        match built(directory, options) {
            Ok(package) => break package,
            Err(Problem::Failed(line) | Problem::Usage(line)) => note(&line),
        }
        while !folder.has_changed(logs::POLL)? {}
    };
    begin(api, &package, yes)?;
    let wanted = Wanted { block: package.manifest.name.clone(), level: None, json: false };
    let mut follower = Follower::begin(api, &wanted)?;
    note("Watching for changes; Ctrl-C ends.");
    loop {
        if folder.has_changed(logs::POLL)? {
            match built(directory, options) {
                // A new name means another block, to which nobody has consented.
                Ok(next) if next.manifest.name != package.manifest.name => {
                    return Err(Problem::Failed(format!(
                        "The block is called {} now, and was {}; start `blockbase block dev` again.",
                        next.manifest.name, package.manifest.name
                    )));
                }
                Ok(next) if next.file == package.file => note("Nothing of the block changed."),
                Ok(next) => match replace(api, &next) {
                    Ok(()) => package = next,
                    Err(Problem::Failed(line) | Problem::Usage(line)) => note(&line),
                },
                Err(Problem::Failed(line) | Problem::Usage(line)) => note(&line),
            }
        }
        follower.poll(api, &wanted)?;
    }
}

fn built(directory: &Path, options: BuildOptions) -> Result<Package, Problem> {
    note("Building …");
    Package::of(build::built(directory, options)?.file)
}

/// Installs the block, or upgrades the installed one. The user is asked for consent once.
fn begin(api: &Api, package: &Package, yes: bool) -> Result<(), Problem> {
    let installed = api.get(&["blocks", &package.manifest.name], &[])?;
    let is_installed = match installed.status {
        404 => false,
        _ => installed.data().map(|_| true)?,
    };
    install::show(package)?;
    let question = "Grant this, and everything that its manifest asks for later while this command runs?";
    if !confirmed(question, yes, install::WITHOUT_TERMINAL)? {
        return Err(Problem::Failed("Nothing was installed.".to_owned()));
    }
    match is_installed {
        true => replace(api, package),
        false => install::report(api, package, &api.upload(&package.file, &[])?.expect()?, "is installed", false),
    }
}

fn replace(api: &Api, package: &Package) -> Result<(), Problem> {
    let reply = api.upload(&package.file, &[("upgrade", "true"), ("allowNewPermissions", "true")])?;
    install::report(api, package, &reply.expect()?, "serves", false)
}

/// Each file with its last change and its length. If one of these differs, the file was written.
type Fingerprint = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The sources of a block. The system only reports that something happened. The fingerprint shows whether a source changed.
struct Folder {
    root: PathBuf,
    watcher: RecommendedWatcher,
    events: Receiver<()>,
    watched: HashSet<PathBuf>,
    known: Fingerprint,
}

impl Folder {
    fn watch(directory: &Path) -> Result<Folder, Problem> {
        // One event that waits is enough, because a look at the folder finds all changes. The watcher's thread never waits.
        let (sender, events) = mpsc::sync_channel(1);
        let watcher = notify::recommended_watcher(move |_: notify::Result<notify::Event>| {
            let _ = sender.try_send(());
        });
        let watcher = watcher.map_err(|error| format!("Changes cannot be watched for: {error}."))?;
        let root = directory.canonicalize().map_err(|error| format!("{} cannot be read: {error}.", directory.display()))?;
        let mut folder = Folder { root, watcher, events, watched: HashSet::new(), known: Fingerprint::new() };
        folder.known = folder.look()?;
        Ok(folder)
    }

    /// Waits at most `most` for a change of a source.
    fn has_changed(&mut self, most: Duration) -> Result<bool, Problem> {
        match self.events.recv_timeout(most) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Problem::Failed("Changes are not watched for any more.".to_owned()));
            }
        }
        let begun = std::time::Instant::now();
        while begun.elapsed() < QUIET_MAX && self.events.recv_timeout(QUIET).is_ok() {}
        // If a file is saved during a build, the next look finds a difference.
        let now = self.look()?;
        let changed = now != self.known;
        self.known = now;
        Ok(changed)
    }

    /// Looks at every source, and watches new folders. Each folder is watched by itself, so that folders with generated files
    /// cost nothing.
    fn look(&mut self) -> Result<Fingerprint, Problem> {
        let mut found = Fingerprint::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            if self.watched.insert(folder.clone())
                && let Err(error) = self.watcher.watch(&folder, RecursiveMode::NonRecursive)
            {
                self.watched.remove(&folder);
                // The folder may have been deleted meanwhile. That is not an error.
                if folder.is_dir() {
                    return Err(Problem::Failed(format!("{} cannot be watched: {error}.", folder.display())));
                }
            }
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(metadata) = entry.metadata() else { continue };
                if !is_source(&name.to_string_lossy(), metadata.is_dir()) {
                    continue;
                }
                if metadata.is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path, (metadata.modified().ok(), metadata.len()));
                }
            }
            if found.len() > FILES_MAX {
                return Err(Problem::Failed(format!("{} holds more than {FILES_MAX} files.", self.root.display())));
            }
        }
        // If a folder is deleted and made again, it has to be watched again.
        self.watched.retain(|folder| folder.is_dir());
        Ok(found)
    }
}

fn is_source(name: &str, is_folder: bool) -> bool {
    let is_made = match is_folder {
        true => MADE.contains(&name),
        // These are files that editors and `block build` write beside the sources.
        false => [".wasm", ".part", ".swp", "~"].iter().any(|end| name.ends_with(end)),
    };
    !is_made && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_make_is_no_source() {
        for (name, is_folder) in [("lib.rs", false), ("block.json", false), ("src", true), ("target", false)] {
            assert!(is_source(name, is_folder), "{name}");
        }
        for (name, is_folder) in
            [("target", true), (".blockbase", true), (".git", true), ("tasks.wasm", false), ("lib.rs~", false)]
        {
            assert!(!is_source(name, is_folder), "{name}");
        }
    }
}
