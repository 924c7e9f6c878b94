//! `block install` and `block upgrade`: they show what the block would get, and ask the user before they grant it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use blockbase_app::Manifest;
use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Api, Reply};
use super::oci::{self, RegistryAccess};
use super::terminal::{confirmed, inert, note, print_json, print_line, progress};
use super::{Problem, build, consent};

/// The source of a packed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    /// The text after `oci://`. Only an argument with this prefix leads to a registry. So a misspelled file name does not.
    Registry(String),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Source, Infallible> {
        Ok(match text.strip_prefix(oci::SCHEME) {
            Some(reference) => Source::Registry(reference.to_owned()),
            None => Source::File(PathBuf::from(text)),
        })
    }
}

/// A packed file with its manifest.
pub(super) struct Package {
    pub(super) file: Bytes,
    pub(super) manifest: Manifest,
}

impl Package {
    pub(super) fn of(file: Vec<u8>) -> Result<Package, Problem> {
        let manifest = build::manifest(&file)?;
        Ok(Package { file: file.into(), manifest })
    }

    /// Describes the block and what it would get, line by line.
    fn described(&self) -> Result<Vec<String>, Problem> {
        let mut manifest = serde_json::to_value(&self.manifest).map_err(|error| error.to_string())?;
        manifest["instances"] = json!({ "reuse": self.manifest.reuse() });
        let mut heading = self.title();
        if !self.manifest.description.is_empty() {
            heading.push_str(&format!(": {}", inert(&self.manifest.description)));
        }
        let mut lines = vec![heading];
        lines.extend(consent::described(&manifest));
        Ok(lines)
    }

    fn title(&self) -> String {
        format!("{} {}", self.manifest.name, inert(&self.manifest.version))
    }
}

impl Source {
    /// Reads the file, or pulls it from its registry. The server itself never downloads blocks.
    pub(super) fn read(&self, registry: &RegistryAccess) -> Result<Package, Problem> {
        let file = match self {
            Source::File(path) => build::read(path)?,
            Source::Registry(reference) => {
                let pulled = oci::pull(reference, registry)?;
                note(&format!("Pulled {}", pulled.address));
                pulled.file
            }
        };
        Package::of(file)
    }
}

pub(super) const WITHOUT_TERMINAL: &str =
    "There is no terminal to ask at. Look at what is listed above, and say --yes to grant it without a question.";

/// Compiling takes a minute for a block that carries an interpreter.
const COMPILING: &str = "The server compiles the block …";

/// Shows the user what the block would get.
pub(super) fn show(package: &Package) -> Result<(), Problem> {
    for line in package.described()? {
        note(&line);
    }
    Ok(())
}

/// Shows what the block would get, and the server's report about the install.
pub(super) fn dry_run(api: &Api, package: &Package, json: bool) -> Result<(), Problem> {
    progress(COMPILING);
    let answer = expect_new(&api.upload(&package.file, &[("dryRun", "true")])?, package)?;
    if json {
        return print_json(&answer);
    }
    for line in package.described()? {
        print_line(&line);
    }
    Ok(())
}

pub(super) fn install(api: &Api, package: &Package, yes: bool, json: bool) -> Result<(), Problem> {
    progress(COMPILING);
    // A dry run reports what the server would refuse before the question. Without a question, the install itself reports it.
    let planned = match yes {
        true => None,
        false => Some(expect_new(&api.upload(&package.file, &[("dryRun", "true")])?, package)?),
    };
    show(package)?;
    if !confirmed("Grant this?", yes, WITHOUT_TERMINAL)? {
        return Err(Problem::Failed("Nothing was installed.".to_owned()));
    }
    let consent = planned.as_ref().map_or(Ok(None), |planned| consent_of(&planned["report"]))?;
    let answer = expect_new(&api.upload(&package.file, &consent.into_iter().collect::<Vec<_>>())?, package)?;
    report(api, package, &answer, "is installed", json)
}

/// The parameter with which an install fails if it is of something else than what was shown. `None` if the server is older and has
/// no such parameter.
///
/// # Errors
/// If the server could not resolve the permissions. Then nobody can consent to them.
fn consent_of(shown: &Value) -> Result<Option<(&str, &str)>, Problem> {
    match shown.get("consent") {
        None => Ok(None),
        Some(Value::String(consent)) => Ok(Some(("consent", consent))),
        Some(_) => {
            let problems = shown["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
            let why: Vec<_> = problems.iter().filter_map(|problem| Some(inert(problem["message"].as_str()?))).collect();
            Err(Problem::Failed(format!(
                "The server cannot resolve what the block asks for. Nothing was changed. {}",
                why.join(" ")
            )))
        }
    }
}

/// The body of a successful install. If the block is installed already, the error names the command that replaces it.
fn expect_new(reply: &Reply, package: &Package) -> Result<Value, Problem> {
    match (reply.status, reply.code().as_deref()) {
        (409, Some("block_exists")) => Err(Problem::Failed(format!(
            "block_exists: The block `{}` is installed already. `blockbase block upgrade FILE` puts this file in its place.",
            package.manifest.name
        ))),
        _ => reply.expect(),
    }
}

pub(super) fn upgrade(api: &Api, package: &Package, yes: bool, json: bool) -> Result<(), Problem> {
    let installed = api.get(&["blocks", &package.manifest.name], &[])?;
    if installed.status == 404 {
        return Err(Problem::Failed(format!(
            "not_found: No block `{}` is installed. `blockbase block install` installs it.",
            package.manifest.name
        )));
    }
    let before = inert(installed.data()?["version"].as_str().unwrap_or_default()).into_owned();
    progress(COMPILING);
    let mut reply = api.upload(&package.file, &[("upgrade", "true")])?;
    if asks_for_more(&reply) {
        note(&format!("{} asks for more than {before} has.", package.title()));
        let refusal = reply.json()?;
        // The names that are shown and the consent have to be from the same moment.
        let inspected = if yes { Value::Null } else { api.inspect(&package.file)?.data()? };
        let shown = if inspected["newPermissions"].is_object() { &inspected } else { &refusal };
        let consent = consent_of(&inspected)?;
        for line in new_permissions(shown, &refusal) {
            note(&line);
        }
        if !confirmed("Grant this too?", yes, WITHOUT_TERMINAL)? {
            return Err(Problem::Failed(format!("Nothing was changed; {before} goes on serving.")));
        }
        let allowed = [("upgrade", "true"), ("allowNewPermissions", "true")];
        reply = api.upload(&package.file, &allowed.into_iter().chain(consent).collect::<Vec<_>>())?;
    }
    report(api, package, &reply.expect()?, &format!("is in the place of {before}"), json)
}

fn asks_for_more(reply: &Reply) -> bool {
    reply.status == 409 && reply.code().as_deref() == Some("new_permissions")
}

/// The list `newPermissions` of an answer. If the list is empty, the message of the refusal, which has the same content.
fn new_permissions(shown: &Value, refusal: &Value) -> Vec<String> {
    let lines = consent::additions(&shown["newPermissions"]);
    match lines.is_empty() {
        true => vec![inert(refusal["message"].as_str().unwrap_or_default()).into_owned()],
        false => lines,
    }
}

/// Reports what the command has done, and shows the data that the server shows only once.
pub(super) fn report(api: &Api, package: &Package, answer: &Value, done: &str, json: bool) -> Result<(), Problem> {
    if json {
        return print_json(answer);
    }
    let digest = inert(answer["data"]["digest"].as_str().unwrap_or_default());
    print_line(&format!("{} {done} ({digest}).", package.title()));
    let webhooks = answer["report"]["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let secrets = webhooks.iter().filter_map(|webhook| Some((webhook["name"].as_str()?, webhook["secret"].as_str()?)));
    let lines: Vec<String> = secrets.map(|(name, secret)| format!("  {}  {}", inert(name), inert(secret))).collect();
    if !lines.is_empty() {
        print_line("The secrets that sign its webhooks' calls, shown this once:");
        for line in lines {
            print_line(&line);
        }
    }
    for warning in answer["report"]["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        note(&inert(warning));
    }
    for name in unset_secrets(api, &package.manifest) {
        note(&format!("It reads the secret {0}: `blockbase block secret set {1} {0}`", inert(name), package.manifest.name));
    }
    Ok(())
}

/// The secrets that the block reads and that are not set. If the caller may not see which secrets are set, all that the block
/// reads.
fn unset_secrets<'a>(api: &Api, manifest: &'a Manifest) -> Vec<&'a String> {
    let read = &manifest.permissions.secrets;
    if read.is_empty() {
        return Vec::new();
    }
    let listed = api.get(&["blocks", &manifest.name, "secrets"], &[]).and_then(|reply| reply.data()).unwrap_or_default();
    let listed = listed.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_set = |name: &String| listed.iter().any(|secret| secret["name"] == name.as_str() && secret["isSet"] == true);
    read.iter().filter(|name| !is_set(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_as_a_reference_is_one() {
        let source = |text: &str| text.parse::<Source>().expect("a source");
        assert_eq!(source("oci://localhost:5000/tasks:1"), Source::Registry("localhost:5000/tasks:1".to_owned()));
        assert_eq!(source("ghcr.io/acme/tasks:1"), Source::File("ghcr.io/acme/tasks:1".into()));
    }

    #[test]
    fn nobody_consents_to_permissions_that_the_server_cannot_resolve() {
        let consent = |shown: &Value| consent_of(shown).map(|found| found.map(|(name, text)| format!("{name}={text}")));
        assert!(matches!(consent(&json!({ "consent": "0a" })), Ok(Some(found)) if found == "consent=0a"));
        // Without a question, and on an older server.
        assert!(matches!(consent(&Value::Null), Ok(None)));
        assert!(matches!(consent(&json!({ "permissions": {} })), Ok(None)));
        let unresolved =
            json!({ "consent": null, "problems": [{ "error": "invalid_block", "message": "There is no field `a`." }] });
        assert!(matches!(consent(&unresolved), Err(Problem::Failed(why)) if why.contains("There is no field `a`.")));
    }
}
