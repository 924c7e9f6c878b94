//! Passwords, tokens and cookies, and the principals that they identify.
//!
//! This crate does no I/O, and must not know of tables, routes or blocks. It makes, hashes and compares secrets, and has the
//! types for callers whom the store has identified.
#![forbid(unsafe_code)]

mod cookie;
mod digest;
mod etag;
mod password;
mod principal;
mod secret_box;
mod setup_token;
mod signature;
mod token;

pub use cookie::CookieSigner;
pub use digest::sha256_hex;
pub use etag::{EtagKey, RecordVersion};
pub use password::{HashError, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, PasswordHasher, PasswordProblem, check_password};
pub use principal::{Actor, Principal, Via};
pub use secret_box::{Sealed, SecretBox, Unsealed};
pub use setup_token::setup_token;
pub use signature::{WEBHOOK_SECRET_PREFIX, new_webhook_secret, webhook_signature};
pub use token::{API_KEY_PREFIX, ApiKey, LinkToken, SessionToken, StreamTicket, TokenHash, hash_token};
