//! Credentials of registries that `docker login` and similar tools have stored.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The names of Docker's own registry. The file has it under an old address.
const DOCKER_HUB: [&str; 2] = ["docker.io", "index.docker.io"];
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// The entry of one registry in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    Basic {
        user: String,
        password: String,
    },
    /// A helper program has the credential. This command does not run that program.
    InHelper,
}

/// `$DOCKER_CONFIG/config.json`, or else `~/.docker/config.json`.
pub(super) fn path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("DOCKER_CONFIG").or_else(|| set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".docker")));
    Some(directory?.join("config.json"))
}

/// The credential of a registry.
///
/// # Errors
/// If the file exists, but cannot be read or has another form.
pub(super) fn credential(file: &Path, registry: &str) -> Result<Known, String> {
    match std::fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Known::Nothing),
        Err(error) => Err(format!("{} cannot be read: {error}.", file.display())),
        Ok(bytes) => {
            let config: Value =
                serde_json::from_slice(&bytes).map_err(|error| format!("{} is not valid JSON: {error}.", file.display()))?;
            of_config(&config, registry).map_err(|problem| format!("{}: {problem}", file.display()))
        }
    }
}

fn of_config(config: &Value, registry: &str) -> Result<Known, String> {
    let is_hub = DOCKER_HUB.contains(&registry);
    let mut keys = vec![registry.to_owned(), format!("https://{registry}"), format!("http://{registry}")];
    if is_hub {
        keys.push(DOCKER_HUB_KEY.to_owned());
        keys.extend(DOCKER_HUB.map(str::to_owned));
    }
    let auth = keys.iter().filter_map(|key| config["auths"][key]["auth"].as_str()).find(|auth| !auth.is_empty());
    if let Some(auth) = auth {
        // The file contains a secret, so the message does not show its content.
        let wrong = || format!("the `auth` of {registry} is not the base64 text of user:password.");
        let text = STANDARD.decode(auth).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong)?;
        let (user, password) = text.split_once(':').ok_or_else(wrong)?;
        return Ok(Known::Basic { user: user.to_owned(), password: password.trim_end_matches('\0').to_owned() });
    }
    let has_helper = config["credsStore"].is_string() || keys.iter().any(|key| config["credHelpers"][key].is_string());
    Ok(if has_helper { Known::InHelper } else { Known::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_registry_is_found_however_it_is_written() {
        let config = json!({ "auths": {
            "ghcr.io": { "auth": STANDARD.encode("ann:a:b") },
            "https://r.example:5000": { "auth": STANDARD.encode("bob:x") },
            DOCKER_HUB_KEY: { "auth": STANDARD.encode("hub:y") },
            "broken.example": { "auth": "%%%" },
            "held.example": {},
        }, "credHelpers": { "held.example": "secretservice" } });
        let basic = |user: &str, password: &str| Ok(Known::Basic { user: user.to_owned(), password: password.to_owned() });
        assert_eq!(of_config(&config, "ghcr.io"), basic("ann", "a:b"));
        assert_eq!(of_config(&config, "r.example:5000"), basic("bob", "x"));
        assert_eq!(of_config(&config, "docker.io"), basic("hub", "y"));
        assert_eq!(of_config(&config, "other.example"), Ok(Known::Nothing));
        assert_eq!(of_config(&config, "held.example"), Ok(Known::InHelper));
        assert!(of_config(&config, "broken.example").is_err_and(|problem| !problem.contains('%')));
    }
}
