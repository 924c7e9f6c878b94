//! Encryption of stored secrets, and of values that clients send back. Each has a key of its own, which is derived from the master
//! secret. The id of the first key is stored with each stored secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const KEY_ID_BYTES: usize = 8;

/// A secret as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The id of the key that encrypted it, in hex. It reveals nothing about the key.
    pub key_id: String,
    /// The nonce and the ciphertext with its tag, in hex.
    pub ciphertext: String,
}

/// The reason why a stored secret cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// The secret was encrypted under another master secret.
    OtherKey,
    /// The stored value was changed, or it was sealed for another purpose.
    Broken,
}

/// Encrypts values that have to be read again later.
#[derive(Clone)]
pub struct SecretBox {
    cipher: XChaCha20Poly1305,
    key_id: String,
    /// Encrypts what clients keep.
    client_cipher: XChaCha20Poly1305,
}

impl SecretBox {
    /// # Errors
    /// If no key can be derived from the secret.
    pub fn new(master_secret: &[u8]) -> Result<SecretBox, String> {
        let derive = Hkdf::<Sha256>::new(Some(b"blockbase secrets at rest"), master_secret);
        let (mut key, mut key_id) = ([0; 32], [0; KEY_ID_BYTES]);
        derive.expand(b"key 1", &mut key).map_err(|error| error.to_string())?;
        derive.expand(b"key id 1", &mut key_id).map_err(|error| error.to_string())?;
        let cipher = XChaCha20Poly1305::new_from_slice(&key).map_err(|error| error.to_string())?;
        let derive = Hkdf::<Sha256>::new(Some(b"blockbase texts of clients"), master_secret);
        derive.expand(b"key 1", &mut key).map_err(|error| error.to_string())?;
        let client_cipher = XChaCha20Poly1305::new_from_slice(&key).map_err(|error| error.to_string())?;
        Ok(SecretBox { cipher, key_id: hex::encode(key_id), client_cipher })
    }

    /// The id of the key that encrypts. It reveals nothing about the key.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Encrypts `secret`. `purpose` says what the secret is used for, and is needed to decrypt it.
    ///
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn seal(&self, purpose: &str, secret: &str) -> Result<Sealed, String> {
        Ok(Sealed { key_id: self.key_id.clone(), ciphertext: hex::encode(encrypted(&self.cipher, purpose, secret.as_bytes())?) })
    }

    /// Does the same as [`SecretBox::seal`] for a large value. Returns the key's id, the nonce, and the ciphertext with its tag
    /// as bytes.
    ///
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn seal_bytes(&self, purpose: &str, secret: &[u8]) -> Result<Vec<u8>, String> {
        Ok([self.key_id.as_bytes(), &encrypted(&self.cipher, purpose, secret)?].concat())
    }

    /// Decrypts a value from [`SecretBox::seal_bytes`].
    ///
    /// # Errors
    /// The same as for [`SecretBox::open`].
    pub fn open_bytes(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, Unsealed> {
        let (key_id, encrypted) = sealed.split_at_checked(self.key_id.len()).ok_or(Unsealed::Broken)?;
        if key_id != self.key_id.as_bytes() {
            return Err(Unsealed::OtherKey);
        }
        decrypted(&self.cipher, purpose, encrypted)
    }

    /// Encrypts a value for a client that sends it back, as text for URLs.
    ///
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn seal_text(&self, purpose: &str, secret: &[u8]) -> Result<String, String> {
        Ok(URL_SAFE_NO_PAD.encode(encrypted(&self.client_cipher, purpose, secret)?))
    }

    /// Decrypts a value from [`SecretBox::seal_text`].
    ///
    /// # Errors
    /// If the value was encrypted under another key or for another purpose, or if it was changed.
    pub fn open_text(&self, purpose: &str, sealed: &str) -> Result<Vec<u8>, Unsealed> {
        decrypted(&self.client_cipher, purpose, &URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Unsealed::Broken)?)
    }

    /// The number of characters of a value that [`SecretBox::seal_text`] has made from this number of bytes.
    pub const fn sealed_chars(bytes: usize) -> usize {
        ((NONCE_BYTES + bytes + TAG_BYTES) * 4).div_ceil(3)
    }

    /// # Errors
    /// If the value was encrypted under another key or for another purpose, or if it was changed.
    pub fn open(&self, purpose: &str, sealed: &Sealed) -> Result<String, Unsealed> {
        if sealed.key_id != self.key_id {
            return Err(Unsealed::OtherKey);
        }
        let bytes = hex::decode(&sealed.ciphertext).map_err(|_| Unsealed::Broken)?;
        String::from_utf8(decrypted(&self.cipher, purpose, &bytes)?).map_err(|_| Unsealed::Broken)
    }
}

/// The nonce and the ciphertext with its tag.
fn encrypted(cipher: &XChaCha20Poly1305, purpose: &str, secret: &[u8]) -> Result<Vec<u8>, String> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
    let payload = Payload { msg: secret, aad: purpose.as_bytes() };
    let encrypted = cipher.encrypt(&XNonce::from(nonce), payload).map_err(|error| error.to_string())?;
    Ok([&nonce[..], &encrypted].concat())
}

fn decrypted(cipher: &XChaCha20Poly1305, purpose: &str, bytes: &[u8]) -> Result<Vec<u8>, Unsealed> {
    let (nonce, encrypted) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(Unsealed::Broken)?;
    let payload = Payload { msg: encrypted, aad: purpose.as_bytes() };
    cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| Unsealed::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_purpose_open_a_secret() {
        let here = SecretBox::new(b"a master secret of some length").expect("a box");
        let elsewhere = SecretBox::new(b"another master secret of length").expect("a box");
        let sealed = here.seal("webhook:1", "whsec_x").expect("randomness");
        assert_eq!(here.open("webhook:1", &sealed).as_deref(), Ok("whsec_x"));
        assert!(!sealed.ciphertext.contains(&hex::encode("whsec_x")));
        assert_ne!(here.seal("webhook:1", "whsec_x").expect("randomness"), sealed);
        assert_eq!(here.open("webhook:2", &sealed), Err(Unsealed::Broken));
        assert_eq!(elsewhere.open("webhook:1", &sealed), Err(Unsealed::OtherKey));
        let mut changed = sealed.clone();
        changed.ciphertext.replace_range(50..52, if changed.ciphertext[50..52] == *"00" { "01" } else { "00" });
        assert_eq!(here.open("webhook:1", &changed), Err(Unsealed::Broken));
        for broken in ["", "zz", "00"] {
            changed.ciphertext = broken.to_owned();
            assert_eq!(here.open("webhook:1", &changed), Err(Unsealed::Broken));
        }
        let sealed = here.seal_bytes("package:1", b"\0asm").expect("randomness");
        assert_eq!(here.open_bytes("package:1", &sealed).as_deref(), Ok(&b"\0asm"[..]));
        assert_eq!(here.open_bytes("package:2", &sealed), Err(Unsealed::Broken));
        assert_eq!(elsewhere.open_bytes("package:1", &sealed), Err(Unsealed::OtherKey));
        for broken in [&sealed[..10], &sealed[..30], &sealed[..sealed.len() - 1]] {
            assert_eq!(here.open_bytes("package:1", broken), Err(Unsealed::Broken));
        }
    }

    #[test]
    fn a_text_for_a_client_opens_only_unchanged_and_for_its_purpose() {
        let here = SecretBox::new(b"a master secret of some length").expect("a box");
        let elsewhere = SecretBox::new(b"another master secret of length").expect("a box");
        for bytes in 0..7 {
            let secret = vec![b'x'; bytes];
            let sealed = here.seal_text("cursor:1", &secret).expect("randomness");
            assert_eq!(sealed.len(), SecretBox::sealed_chars(bytes));
            assert!(sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{sealed}");
            assert_eq!(here.open_text("cursor:1", &sealed), Ok(secret));
            assert_eq!(here.open_text("cursor:2", &sealed), Err(Unsealed::Broken));
            assert_eq!(elsewhere.open_text("cursor:1", &sealed), Err(Unsealed::Broken));
            // Stored secrets have another key.
            let bytes = URL_SAFE_NO_PAD.decode(&sealed).expect("a text for URLs");
            assert_eq!(decrypted(&here.cipher, "cursor:1", &bytes), Err(Unsealed::Broken));
            for place in 0..sealed.len() {
                let other = if sealed.as_bytes()[place] == b'A' { "B" } else { "A" };
                let mut changed = sealed.clone();
                changed.replace_range(place..=place, other);
                assert_eq!(here.open_text("cursor:1", &changed), Err(Unsealed::Broken), "{place} of {sealed}");
            }
            for changed in [&sealed[1..], &sealed[..sealed.len() - 1], &format!("{sealed}="), &format!("{sealed}A"), "", "!"] {
                assert_eq!(here.open_text("cursor:1", changed), Err(Unsealed::Broken), "{changed}");
            }
        }
    }
}
