//! ETags of records. An ETag is a keyed MAC of the record's version, so it does not reveal how often the record was changed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The number of bytes of the MAC in an ETag. Encoded, these are 22 characters, or 24 with the quotes.
const TAG_BYTES: usize = 16;

/// Makes ETags with a key from the master secret. All instances make the same ETags. They stay the same after a restart.
#[derive(Clone)]
pub struct EtagKey(Hmac<Sha256>);

/// The version of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordVersion {
    /// The object's number and its revision. The revision is included because a change of the object changes the form of its
    /// records.
    pub object: (i64, i64),
    /// The record's id.
    pub id: [u8; 16],
    /// The record's version number. Each change of the record adds one.
    pub version: i64,
}

impl EtagKey {
    /// # Errors
    /// If no key can be derived from the secret.
    pub fn new(master_secret: &[u8]) -> Result<EtagKey, String> {
        let derive = Hkdf::<Sha256>::new(Some(b"blockbase record etags"), master_secret);
        let mut key = [0; 32];
        derive.expand(b"key 1", &mut key).map_err(|error| error.to_string())?;
        Hmac::new_from_slice(&key).map(EtagKey).map_err(|error| error.to_string())
    }

    /// A strong ETag, with its quotes.
    pub fn etag(&self, of: &RecordVersion) -> String {
        let mut mac = self.0.clone();
        for number in [of.object.0, of.object.1, of.version] {
            mac.update(&number.to_be_bytes());
        }
        mac.update(&of.id);
        format!("\"{}\"", URL_SAFE_NO_PAD.encode(&mac.finalize().into_bytes()[..TAG_BYTES]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_belongs_to_one_key_and_one_state_of_one_record() {
        let key = EtagKey::new(b"a master secret of some length").expect("a key");
        let of = RecordVersion { object: (1, 2), id: [3; 16], version: 4 };
        let etag = key.etag(&of);
        assert_eq!(etag.len(), 24);
        assert!(etag.trim_matches('"').chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character)));
        assert_eq!(EtagKey::new(b"a master secret of some length").expect("a key").etag(&of), etag);
        assert_ne!(EtagKey::new(b"another master secret of length").expect("a key").etag(&of), etag);
        for other in [
            RecordVersion { object: (2, 1), ..of },
            RecordVersion { object: (1, 3), ..of },
            RecordVersion { id: [4; 16], ..of },
            RecordVersion { version: 5, ..of },
        ] {
            assert_ne!(key.etag(&other), etag, "{other:?}");
        }
    }
}
