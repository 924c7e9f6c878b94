//! Digests of texts.

use sha2::{Digest, Sha256};

/// The number of bytes of a SHA-256.
pub(crate) const SHA256_BYTES: usize = 32;

/// SHA-256 of a text.
pub(crate) fn sha256(text: &str) -> [u8; SHA256_BYTES] {
    Sha256::digest(text.as_bytes()).into()
}

/// SHA-256 of a text, in hexadecimal.
pub fn sha256_hex(text: &str) -> String {
    hex_of(&sha256(text))
}

/// A digest in hexadecimal. `hex::encode` takes longer.
pub(crate) fn hex_of(digest: &[u8; SHA256_BYTES]) -> String {
    let mut hex = String::with_capacity(2 * SHA256_BYTES);
    for byte in digest {
        hex.push(digit(byte >> 4));
        hex.push(digit(byte & 15));
    }
    hex
}

/// The digit of a number below 16.
fn digit(number: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(number)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_in_lower_case_with_all_digits() {
        assert_eq!(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        for number in 0..100 {
            let text = format!("text {number}");
            assert_eq!(sha256_hex(&text), hex::encode(Sha256::digest(text.as_bytes())));
        }
    }
}
