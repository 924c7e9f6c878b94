//! Signatures of webhooks: HMAC with SHA-256. The time of a comparison does not show how many characters of a signature were
//! right.
//!
//! ```
//! use blockbase_sdk::signature;
//! let signature = signature::hmac_sha256_hex(b"secret", b"body");
//! assert!(signature::is_hmac_sha256_hex(b"secret", b"body", &signature));
//! assert!(!signature::is_hmac_sha256_hex(b"secret", b"another body", &signature));
//! ```

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The HMAC of a message.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The HMAC of a message in lower-case hexadecimal.
pub fn hmac_sha256_hex(key: &[u8], message: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    hmac_sha256(key, message).into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Whether a hexadecimal signature is the signature of a message. The case of the digits does not matter.
pub fn is_hmac_sha256_hex(key: &[u8], message: &[u8], signature: &str) -> bool {
    equal(hmac_sha256_hex(key, message).as_bytes(), signature.to_ascii_lowercase().as_bytes())
}

/// Whether two values are equal. The time depends only on their lengths.
pub fn equal(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hmac_is_that_of_rfc_4231() {
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hmac_sha256_hex(b"Jefe", b"what do ya want for nothing?"), expected);
        assert!(is_hmac_sha256_hex(b"Jefe", b"what do ya want for nothing?", &expected.to_uppercase()));
        assert!(!is_hmac_sha256_hex(b"Jefe", b"what do ya want for nothing?", &expected[1..]));
    }
}
