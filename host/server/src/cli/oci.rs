//! Blocks in OCI registries, in the format of the CNCF's WebAssembly artifacts: one layer `application/wasm`, and a config that names the
//! component's imports and exports. Only the command line pulls and pushes. The server never calls a registry.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use blockbase_app::Manifest;
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::StreamExt;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::docker_config::{self, Known};
use super::terminal::{inert, note, print_json, print_line, read_secret};
use super::{Problem, build, client};

/// The beginning of a reference on the command line.
pub(super) const SCHEME: &str = "oci://";
const CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";
const LAYER_MEDIA_TYPE: &str = "application/wasm";
/// The maximum size of a layer, in bytes. By default, a server does not accept a larger block.
const LAYER_BYTES_MAX: usize = 64 << 20;
/// The maximum size of a manifest in bytes, as the specification recommends.
const MANIFEST_BYTES_MAX: usize = 4 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for which a registry may send nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// As whom a registry is asked, and how.
#[derive(clap::Args)]
pub(super) struct RegistryAccess {
    /// User of the registry [default: what `docker login` has left]
    #[arg(long, env = "SVC_REGISTRY_USER", value_name = "USER", help_heading = "Registry")]
    registry_user: Option<String>,
    /// Read the registry's password from standard input, instead of SVC_REGISTRY_PASSWORD
    #[arg(long, help_heading = "Registry")]
    registry_password_stdin: bool,
    /// Speak HTTP without TLS to a registry that is not this machine
    #[arg(long, help_heading = "Registry")]
    plain_http: bool,
}

impl RegistryAccess {
    fn auth(&self, registry: &str) -> Result<(RegistryAuth, bool), Problem> {
        if let Some(user) = self.registry_user.as_ref().filter(|user| !user.is_empty()) {
            let set = std::env::var("SVC_REGISTRY_PASSWORD").ok().filter(|password| !password.is_empty());
            let password = match set {
                Some(password) if !self.registry_password_stdin => password,
                _ => read_secret(&format!("Password of {user} at {registry}: "))?,
            };
            return Ok((RegistryAuth::Basic(user.clone(), password), false));
        }
        if self.registry_password_stdin {
            return Err(Problem::Usage("--registry-password-stdin needs --registry-user.".to_owned()));
        }
        let Some(file) = docker_config::path() else { return Ok((RegistryAuth::Anonymous, false)) };
        Ok(match docker_config::credential(&file, registry)? {
            Known::Basic { user, password } => (RegistryAuth::Basic(user, password), false),
            Known::Nothing => (RegistryAuth::Anonymous, false),
            Known::InHelper => (RegistryAuth::Anonymous, true),
        })
    }
}

/// One repository of a registry.
struct Repository {
    reference: Reference,
    client: Client,
    auth: RegistryAuth,
    /// Whether a helper program has the credential. Then the credential is not used.
    is_in_helper: bool,
    runtime: Runtime,
}

/// A pulled file.
pub(super) struct Pulled {
    pub(super) file: Vec<u8>,
    /// `oci://…@sha256:…`. This address always leads to the same bytes.
    pub(super) address: String,
}

/// Reads a reference. It has to name its registry, and a tag or a digest. There are no defaults.
fn parse(text: &str) -> Result<Reference, Problem> {
    let form = || {
        Problem::Usage(format!(
            "{text:?} is not a reference. A reference has the form oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:…, such as oci://ghcr.io/acme/tasks:0.1.0."
        ))
    };
    let (host, rest) = text.split_once('/').ok_or_else(form)?;
    let is_host = host == "localhost" || host.contains(['.', ':']);
    if !is_host || !rest.contains([':', '@']) {
        return Err(form());
    }
    let reference: Reference = text.parse().map_err(|_| form())?;
    match reference.digest() {
        Some(digest) if !digest.starts_with("sha256:") => {
            Err(Problem::Usage("A digest is one of SHA-256: @sha256: and 64 hexadecimal digits.".to_owned()))
        }
        _ => Ok(reference),
    }
}

/// Whether a registry is on this machine. Then nobody can listen to the connection.
fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    host == "localhost" || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

impl Repository {
    fn open(reference: Reference, access: &RegistryAccess) -> Result<Repository, Problem> {
        let registry = reference.resolve_registry().to_owned();
        let protocol = match access.plain_http || is_loopback(&registry) {
            true => ClientProtocol::HttpsExcept(vec![registry.clone()]),
            false => ClientProtocol::Https,
        };
        let (auth, is_in_helper) = access.auth(&registry)?;
        // reqwest uses the process's provider of cryptography. If this is called a second time, it changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = ClientConfig {
            protocol,
            // A block runs on every platform, so an index of platforms is not a block.
            platform_resolver: None,
            read_timeout: Some(READ_TIMEOUT),
            connect_timeout: Some(CONNECT_TIMEOUT),
            user_agent: concat!("Blockbase/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config)
            .map_err(|error| format!("The client of registries cannot be made: {}", innermost(&error)))?;
        Ok(Repository { reference, client, auth, is_in_helper, runtime: client::runtime()? })
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, OciDistributionError>>) -> Result<T, Problem> {
        self.runtime.block_on(call).map_err(|error| self.explain(&error))
    }

    fn sign_in(&self, operation: RegistryOperation) -> Result<(), Problem> {
        self.wait(self.client.auth(&self.reference, &self.auth, operation)).map(|_| ())
    }

    /// `oci://…@sha256:…`
    fn address(&self, digest: &str) -> String {
        format!("{SCHEME}{}/{}@{digest}", self.reference.registry(), self.reference.repository())
    }

    /// Explains a registry's error in a line or two.
    fn explain(&self, error: &OciDistributionError) -> Problem {
        let registry = self.reference.registry();
        let has_code = |code: &OciErrorCode| match error {
            OciDistributionError::RegistryError { envelope, .. } => envelope.errors.iter().any(|error| error.code == *code),
            _ => false,
        };
        let refused = matches!(
            error,
            OciDistributionError::UnauthorizedError { .. }
                | OciDistributionError::AuthenticationFailure(_)
                | OciDistributionError::ServerError { code: 401 | 403, .. }
        ) || has_code(&OciErrorCode::Unauthorized)
            || has_code(&OciErrorCode::Denied);
        let text = if refused {
            let helper = match self.is_in_helper {
                true => " Docker's configuration keeps the credential in a helper program, which is not run.",
                false => "",
            };
            format!(
                "{registry} does not let you at {}.{helper} `docker login {registry}` leaves a credential, or say --registry-user and set SVC_REGISTRY_PASSWORD.",
                self.reference.repository()
            )
        } else if has_code(&OciErrorCode::ManifestUnknown)
            || has_code(&OciErrorCode::NameUnknown)
            || has_code(&OciErrorCode::NotFound)
            || matches!(
                error,
                OciDistributionError::ServerError { code: 404, .. } | OciDistributionError::ImageManifestNotFoundError(_)
            )
        {
            format!("There is no {SCHEME}{}.", self.reference)
        } else if let OciDistributionError::RequestError(error) = error {
            format!("{registry} cannot be reached, or broke off: {}", inert(&innermost(error)))
        } else if let OciDistributionError::DigestError(error) = error {
            format!("{registry} sent other bytes than the digest names, and they are refused: {}", inert(&error.to_string()))
        } else {
            format!("{registry}: {}", inert(&error.to_string()))
        };
        Problem::Failed(text)
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Pulls the packed file that a reference names. A tag is first resolved to a digest, and all parts are checked against their
/// digests.
pub(super) fn pull(reference: &str, access: &RegistryAccess) -> Result<Pulled, Problem> {
    let repository = Repository::open(parse(reference)?, access)?;
    repository.sign_in(RegistryOperation::Pull)?;
    let (client, reference) = (&repository.client, &repository.reference);
    let (bytes, _) = repository.wait(client.pull_manifest_raw(reference, &repository.auth, &[OCI_IMAGE_MEDIA_TYPE]))?;
    let digest = sha256(&bytes);
    if let Some(wanted) = reference.digest().filter(|wanted| *wanted != digest) {
        return Err(Problem::Failed(format!("{} sent {digest} for {wanted}, and it is refused.", reference.registry())));
    }
    let layer = layer_of(&bytes)
        .map_err(|problem| Problem::Failed(format!("{} is not a block: {problem}", repository.address(&digest))))?;
    let file = repository.runtime.block_on(download(&repository, &layer))?;
    Ok(Pulled { file, address: repository.address(&digest) })
}

/// The single layer in the manifest of a WebAssembly artifact.
fn layer_of(manifest: &[u8]) -> Result<OciDescriptor, String> {
    if manifest.len() > MANIFEST_BYTES_MAX {
        return Err(format!("its manifest has more than {MANIFEST_BYTES_MAX} bytes."));
    }
    let value: Value = serde_json::from_slice(manifest).map_err(|error| format!("its manifest is not valid JSON: {error}."))?;
    if value.get("manifests").is_some() {
        return Err("it is an index of several manifests; name one of them by its digest.".to_owned());
    }
    let manifest: OciImageManifest =
        serde_json::from_value(value).map_err(|error| format!("its manifest is not of the expected form: {error}."))?;
    if manifest.config.media_type != CONFIG_MEDIA_TYPE {
        return Err(format!("its config is {}, not {CONFIG_MEDIA_TYPE}.", inert(&manifest.config.media_type)));
    }
    let [layer] = <[OciDescriptor; 1]>::try_from(manifest.layers)
        .map_err(|layers| format!("it has {} layers instead of one {LAYER_MEDIA_TYPE}.", layers.len()))?;
    if layer.media_type != LAYER_MEDIA_TYPE {
        return Err(format!("its layer is {}, not {LAYER_MEDIA_TYPE}.", inert(&layer.media_type)));
    }
    match usize::try_from(layer.size) {
        // A manifest may name other addresses for the layer. The command does not use them.
        Ok(1..=LAYER_BYTES_MAX) => Ok(OciDescriptor { urls: None, ..layer }),
        _ => Err(format!("its layer has {} bytes; a block has {LAYER_BYTES_MAX} at most.", layer.size)),
    }
}

/// Reads a layer up to the size in the manifest, and checks its digest.
async fn download(repository: &Repository, layer: &OciDescriptor) -> Result<Vec<u8>, Problem> {
    let registry = repository.reference.registry();
    let size = usize::try_from(layer.size).unwrap_or(0);
    let mut blob =
        repository.client.pull_blob_stream(&repository.reference, layer).await.map_err(|error| repository.explain(&error))?;
    let wrong = || {
        Problem::Failed(format!(
            "{registry} sent other bytes than {}, which the manifest names, and they are refused.",
            inert(&layer.digest)
        ))
    };
    let mut file = Vec::new();
    while let Some(chunk) = blob.next().await {
        let chunk = chunk.map_err(|error| match error.get_ref().and_then(|cause| cause.downcast_ref()) {
            Some(oci_client::errors::DigestError::VerificationError { .. }) => wrong(),
            _ => Problem::Failed(format!("{registry} broke off: {}", inert(&innermost(&error)))),
        })?;
        if file.len() + chunk.len() > size {
            return Err(wrong());
        }
        file.extend_from_slice(&chunk);
    }
    if file.len() == size { Ok(file) } else { Err(wrong()) }
}

/// `block push`: pushes the layer, the config, and then the manifest, which names both.
pub(super) fn push(file: &Path, reference: &str, access: &RegistryAccess, json: bool) -> Result<(), Problem> {
    let reference = parse(reference.strip_prefix(SCHEME).unwrap_or(reference))?;
    if reference.digest().is_some() {
        return Err(Problem::Usage("A block is pushed to a tag. Its digest is computed from the pushed bytes.".to_owned()));
    }
    let layer = build::read(file)?;
    let manifest = build::manifest(&layer)?;
    if layer.len() > LAYER_BYTES_MAX {
        return Err(Problem::Failed(format!("{} has more than {LAYER_BYTES_MAX} bytes.", file.display())));
    }
    let artifact = Artifact::of(&manifest, layer, created(file)?)?;

    let repository = Repository::open(reference, access)?;
    repository.sign_in(RegistryOperation::Push)?;
    for blob in [&artifact.layer, &artifact.config] {
        let digest = sha256(blob);
        // If the registry does not say whether it has the bytes, they are sent again.
        let exists = repository.runtime.block_on(repository.client.blob_exists(&repository.reference, &digest));
        if !exists.unwrap_or(false) {
            repository.wait(repository.client.push_blob(&repository.reference, blob.clone(), &digest))?;
        }
    }
    let media_type = HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
    repository.wait(repository.client.push_manifest_raw(&repository.reference, artifact.manifest.clone(), media_type))?;
    let digest = sha256(&artifact.manifest);
    let address = repository.address(&digest);
    if json {
        return print_json(&json!({ "digest": digest, "reference": address }));
    }
    note(&format!("{} {} is at {SCHEME}{}.", manifest.name, inert(&manifest.version), repository.reference));
    print_line(&address);
    Ok(())
}

/// The time of the file is `SOURCE_DATE_EPOCH`. If this is not set, it is the time of its last change. So pushing the same file
/// twice gives the same digest.
fn created(file: &Path) -> Result<DateTime<Utc>, Problem> {
    if let Some(seconds) = std::env::var("SOURCE_DATE_EPOCH").ok().filter(|seconds| !seconds.is_empty()) {
        let moment = seconds.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        return moment.ok_or_else(|| Problem::Usage(format!("SOURCE_DATE_EPOCH needs whole seconds; it is {seconds:?}.")));
    }
    let changed = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    Ok(changed.unwrap_or(SystemTime::UNIX_EPOCH).into())
}

/// The parts that are pushed.
struct Artifact {
    layer: Vec<u8>,
    config: Vec<u8>,
    manifest: Vec<u8>,
}

impl Artifact {
    fn of(manifest: &Manifest, layer: Vec<u8>, created: DateTime<Utc>) -> Result<Artifact, Problem> {
        let interface = blockbase_authoring::interface_of(&layer).map_err(|error| error.to_string())?;
        let created = created.to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut config = json!({
            "created": created,
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [sha256(&layer)],
            "component": { "exports": interface.exports, "imports": interface.imports },
        });
        if let Some(authors) = &manifest.authors {
            config["author"] = json!(authors);
        }
        let config = config.to_string().into_bytes();
        let annotations: BTreeMap<String, String> = [
            ("title", Some(manifest.name.as_str())),
            ("version", Some(manifest.version.as_str())),
            ("description", Some(manifest.description.as_str())),
            ("authors", manifest.authors.as_deref()),
            ("licenses", manifest.license.as_deref()),
            ("source", manifest.source.as_deref()),
            ("created", Some(created.as_str())),
        ]
        .into_iter()
        .filter_map(|(name, value)| {
            let value = value.filter(|value| !value.is_empty())?;
            Some((format!("org.opencontainers.image.{name}"), value.to_owned()))
        })
        .collect();
        let descriptor = |media_type: &str, bytes: &[u8]| OciDescriptor {
            media_type: media_type.to_owned(),
            digest: sha256(bytes),
            size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            ..OciDescriptor::default()
        };
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: descriptor(CONFIG_MEDIA_TYPE, &config),
            layers: vec![descriptor(LAYER_MEDIA_TYPE, &layer)],
            annotations: Some(annotations),
            ..OciImageManifest::default()
        };
        let manifest = serde_json::to_vec(&manifest).map_err(|error| error.to_string())?;
        Ok(Artifact { layer, config, manifest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_its_registry_and_what_it_means_there() {
        let digest = "a".repeat(64);
        for good in ["localhost:5000/tasks:1.0.0", "ghcr.io/acme/tasks:latest", &format!("ghcr.io/acme/tasks@sha256:{digest}")] {
            assert_eq!(parse(good).expect(good).whole(), good);
        }
        let sha512 = format!("ghcr.io/acme/tasks@sha512:{}", "a".repeat(128));
        for bad in
            ["tasks", "tasks:1", "acme/tasks:1", "ghcr.io/acme/tasks", "ghcr.io/Acme/tasks:1", "ghcr.io/a@sha256:ab", &sha512]
        {
            assert!(matches!(parse(bad), Err(Problem::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear() {
        for here in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.8.0.1"] {
            assert!(is_loopback(here), "{here}");
        }
        for there in ["ghcr.io", "10.0.0.1:5000", "localhost.example.com", "127.0.0.1.example.com:80"] {
            assert!(!is_loopback(there), "{there}");
        }
    }

    #[test]
    fn what_is_no_webassembly_artifact_of_one_layer_is_refused() {
        let manifest = |config: &str, layers: Value| {
            let config = json!({ "mediaType": config, "digest": sha256(b""), "size": 2 });
            layer_of(json!({ "schemaVersion": 2, "config": config, "layers": layers }).to_string().as_bytes())
        };
        let layer = |media_type: &str, size: i64| json!({ "mediaType": media_type, "digest": sha256(b"x"), "size": size });
        assert!(manifest(CONFIG_MEDIA_TYPE, json!([layer(LAYER_MEDIA_TYPE, 1)])).is_ok());
        for refused in [
            manifest("application/vnd.oci.image.config.v1+json", json!([layer(LAYER_MEDIA_TYPE, 1)])),
            manifest(CONFIG_MEDIA_TYPE, json!([])),
            manifest(CONFIG_MEDIA_TYPE, json!([layer(LAYER_MEDIA_TYPE, 1), layer(LAYER_MEDIA_TYPE, 1)])),
            manifest(CONFIG_MEDIA_TYPE, json!([layer("application/gzip", 1)])),
            manifest(CONFIG_MEDIA_TYPE, json!([layer(LAYER_MEDIA_TYPE, (64 << 20) + 1)])),
            manifest(CONFIG_MEDIA_TYPE, json!([layer(LAYER_MEDIA_TYPE, -1)])),
            layer_of(br#"{ "schemaVersion": 2, "manifests": [] }"#),
            layer_of(b"[]"),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
        let elsewhere =
            json!([{ "mediaType": LAYER_MEDIA_TYPE, "digest": sha256(b"x"), "size": 1, "urls": ["http://10.0.0.1/"] }]);
        assert_eq!(manifest(CONFIG_MEDIA_TYPE, elsewhere).expect("a layer").urls, None);
    }
}
