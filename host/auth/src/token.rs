//! Session tokens, API keys, tickets and the tokens of links: 256 random bits in base62. Only their SHA-256 is stored.

use crate::digest::{SHA256_BYTES, hex_of, sha256};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_BYTES: usize = 32;
/// The number of base62 digits for 256 bits.
const TOKEN_CHARS: usize = 43;

/// The prefix of API keys. No session token begins with it.
pub const API_KEY_PREFIX: &str = "svc_";
/// The number of a key's characters that lists show: the prefix and four of the 43 digits.
const KEY_PREFIX_CHARS: usize = API_KEY_PREFIX.len() + 4;

pub(crate) fn random() -> Result<String, String> {
    let mut bytes = [0_u8; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(base62(bytes))
}

/// A new API key. It is shown to its maker only once.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn random() -> Result<ApiKey, String> {
        random().map(|digits| ApiKey(format!("{API_KEY_PREFIX}{digits}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The beginning of the key, which lists show, so that users can distinguish keys.
    pub fn prefix(&self) -> &str {
        self.0.get(..KEY_PREFIX_CHARS).unwrap_or(API_KEY_PREFIX)
    }

    /// The key's hash, which is stored.
    pub fn hash(&self) -> String {
        hash_token(&self.0)
    }
}

/// A new session token. It is sent to its user only once.
#[derive(Clone)]
pub struct SessionToken(String);

impl SessionToken {
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn random() -> Result<SessionToken, String> {
        random().map(SessionToken)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token's hash, which is stored.
    pub fn hash(&self) -> String {
        hash_token(&self.0)
    }
}

/// A new token of a link to set a password. Only the link contains it.
#[derive(Clone)]
pub struct LinkToken(String);

impl LinkToken {
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn random() -> Result<LinkToken, String> {
        random().map(LinkToken)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token's hash, which is stored.
    pub fn hash(&self) -> String {
        hash_token(&self.0)
    }
}

/// A new ticket that opens one event stream. It is shown to its maker only once.
#[derive(Clone)]
pub struct StreamTicket(String);

impl StreamTicket {
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn random() -> Result<StreamTicket, String> {
        random().map(StreamTicket)
    }

    /// A ticket as a client sent it. `None` if the text does not have the form of a ticket.
    pub fn parse(text: &str) -> Option<StreamTicket> {
        let is_ticket = text.len() == TOKEN_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte));
        is_ticket.then(|| StreamTicket(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ticket's hash, which is stored.
    pub fn hash(&self) -> String {
        hash_token(&self.0)
    }
}

/// SHA-256 of a token, in hexadecimal, as it is stored. A token has 256 random bits, so it needs no salt and no slow hash.
pub fn hash_token(token: &str) -> String {
    TokenHash::of(token).hex()
}

/// The bytes of the SHA-256 of a token. Every request looks for its credential by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; SHA256_BYTES]);

impl TokenHash {
    pub fn of(token: &str) -> TokenHash {
        TokenHash(sha256(token))
    }

    /// Reads a hash in its stored form. `None` if the text does not have this form.
    pub fn parse(hex: &str) -> Option<TokenHash> {
        let mut bytes = [0; SHA256_BYTES];
        hex::decode_to_slice(hex, &mut bytes).ok()?;
        Some(TokenHash(bytes))
    }

    /// The stored form.
    pub fn hex(&self) -> String {
        hex_of(&self.0)
    }
}

/// A big-endian number in base 62, padded to its full width.
fn base62(mut number: [u8; RANDOM_BYTES]) -> String {
    let mut digits = vec![0_u8; TOKEN_CHARS];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = (remainder << 8) | u32::from(*byte);
            *byte = (value / 62) as u8;
            remainder = value % 62;
        }
        *digit = ALPHABET[remainder as usize];
    }
    String::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_has_one_form() {
        let ticket = StreamTicket::random().expect("randomness");
        assert_eq!(StreamTicket::parse(ticket.as_str()).expect("a ticket").hash(), ticket.hash());
        let digits = "0".repeat(TOKEN_CHARS - 1);
        for other in ["", &digits, &format!("{digits}00"), &format!("{digits}-"), &format!("{digits}\u{0}"), "svc_"] {
            assert!(StreamTicket::parse(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_hash_is_read_from_its_stored_form() {
        let hash = TokenHash::of("abc");
        assert_eq!(hash.hex(), hash_token("abc"));
        assert_eq!(TokenHash::parse(&hash.hex()), Some(hash));
        assert_ne!(TokenHash::of("abd"), hash);
        let digits = "0".repeat(2 * SHA256_BYTES - 1);
        for other in ["", &digits, &format!("{digits}00"), &format!("{digits}g")] {
            assert!(TokenHash::parse(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn base62_has_one_width_and_all_bits() {
        assert_eq!(base62([0; 32]), "0".repeat(43));
        let greatest = base62([255; 32]);
        assert_eq!(greatest.len(), 43);
        assert_ne!(
            greatest,
            base62({
                let mut number = [255; 32];
                number[31] = 254;
                number
            })
        );
        assert_ne!(SessionToken::random().expect("randomness").as_str(), SessionToken::random().expect("randomness").as_str());
    }
}
