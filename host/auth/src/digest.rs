//! Digests of texts.

use sha2::{Digest, Sha256};

/// SHA-256 of a text, in hexadecimal.
pub fn sha256_hex(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
