//! The TLS configuration of the outbound client.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// The certificates of the authorities that the machine trusts (`SSL_CERT_FILE` names another file of certificates).
pub(crate) fn machine_certificates() -> Vec<CertificateDer<'static>> {
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(error.cause = %error, "some of the machine's certificate authorities cannot be read");
    }
    native.certs
}

/// TLS 1.2 and 1.3 on ring, with the machine's trusted certificates.
///
/// # Errors
/// A sentence for the operator.
pub(crate) fn config() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(machine_certificates());
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
