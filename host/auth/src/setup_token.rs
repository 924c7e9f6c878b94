//! The token that the first sign-up of a fresh server has to send, if the configuration lets the server derive it (`auto`).

use hkdf::Hkdf;
use sha2::Sha256;

const TOKEN_BYTES: usize = 16;

/// Derives the token of a database. All instances with the same master secret derive the same token, also after a restart.
///
/// # Errors
/// If no key can be derived from the secret.
pub fn setup_token(master_secret: &[u8], database_id: &str) -> Result<String, String> {
    let derive = Hkdf::<Sha256>::new(Some(b"blockbase setup token"), master_secret);
    let mut token = [0; TOKEN_BYTES];
    derive.expand(database_id.as_bytes(), &mut token).map_err(|error| error.to_string())?;
    Ok(hex::encode(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_one_secret_and_one_database() {
        let token = setup_token(b"a secret", "a database").expect("a token");
        assert_eq!(token.len(), 32);
        assert_eq!(setup_token(b"a secret", "a database").as_ref(), Ok(&token));
        assert_ne!(setup_token(b"another secret", "a database").as_ref(), Ok(&token));
        assert_ne!(setup_token(b"a secret", "another database").as_ref(), Ok(&token));
    }
}
