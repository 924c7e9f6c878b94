//! Signatures of outbound webhooks, in Stripe's form.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The prefix of webhook secrets.
pub const WEBHOOK_SECRET_PREFIX: &str = "whsec_";

/// A new webhook secret: the prefix and 256 random bits in base62.
///
/// # Errors
/// If the system cannot provide randomness.
pub fn new_webhook_secret() -> Result<String, String> {
    crate::token::random().map(|digits| format!("{WEBHOOK_SECRET_PREFIX}{digits}"))
}

/// The value of `x-svc-signature`: `t=<unix seconds>,v1=<hex>`, with one `v1` for each secret.
///
/// Each `v1` is the HMAC-SHA256 of `<t>.<body>`. Its key is the complete secret, with the prefix.
///
/// # Errors
/// If a secret cannot be used as a key.
pub fn webhook_signature(secrets: &[String], unix_seconds: i64, body: &[u8]) -> Result<String, String> {
    let mut header = format!("t={unix_seconds}");
    for secret in secrets {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
        mac.update(unix_seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        header.push_str(",v1=");
        header.push_str(&hex::encode(mac.finalize().into_bytes()));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_that_others_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_test
        let expected = "t=1700000000,v1=38877139021993b830af32feea6e18a8da83eb2f6e49ee50bd9e4cf4ca4d3789";
        let header = webhook_signature(&["whsec_test".to_owned()], 1_700_000_000, b"{\"a\":1}").expect("a header");
        assert_eq!(header, expected);
        let both = webhook_signature(&["whsec_test".to_owned(), "whsec_old".to_owned()], 1_700_000_000, b"{\"a\":1}");
        assert!(both.expect("a header").starts_with(&format!("{expected},v1=")));
        let secret = new_webhook_secret().expect("randomness");
        assert!(secret.starts_with("whsec_") && secret.len() == 49, "{secret}");
    }
}
