//! The session cookie. It contains the token and a signature, so that a forged cookie is refused without a query.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Signs and checks session cookies with the master secret.
#[derive(Clone)]
pub struct CookieSigner {
    key: Hmac<Sha256>,
    name: &'static str,
    secure: bool,
}

/// The lifetime of a cookie in seconds: seven days.
const MAX_AGE_SECONDS: u64 = 604_800;

/// The beginning of the signed text in a cookie of a sign-up. No token of a session has this form, so neither cookie can be used
/// as the other.
const SIGN_UP: &str = "signed-up:";
/// The maximum number of accounts that a cookie of sign-ups names.
const SIGN_UPS_MAX: usize = 5;

fn encode_component(text: &str) -> String {
    // `encodeURIComponent` for base64 and base62. Of their characters, it only has to escape these three.
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// Decodes what [`encode_component`] escapes, and nothing else.
fn decode_component(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('%') else { return Cow::Borrowed(text) };
    let mut decoded = String::with_capacity(text.len());
    let (plain, mut rest) = text.split_at(first);
    decoded.push_str(plain);
    while let Some(from) = rest.strip_prefix('%') {
        let character = match from.as_bytes() {
            [b'2', b'B' | b'b', ..] => Some('+'),
            [b'2', b'F' | b'f', ..] => Some('/'),
            [b'3', b'D' | b'd', ..] => Some('='),
            _ => None,
        };
        decoded.push(character.unwrap_or('%'));
        let from = if character.is_some() { &from[2..] } else { from };
        let (plain, next) = from.split_at(from.find('%').unwrap_or(from.len()));
        decoded.push_str(plain);
        rest = next;
    }
    Cow::Owned(decoded)
}

impl CookieSigner {
    /// # Errors
    /// If the secret cannot be used as a key.
    pub fn new(secret: &[u8], is_https: bool) -> Result<CookieSigner, String> {
        let key = Hmac::new_from_slice(secret).map_err(|error| error.to_string())?;
        let name = if is_https { "__Secure-svc.session_token" } else { "svc.session_token" };
        Ok(CookieSigner { key, name, secure: is_https })
    }

    /// The cookie's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self, token: &str) -> Vec<u8> {
        let mut mac = self.key.clone();
        mac.update(token.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    fn signed(&self, token: &str) -> String {
        format!("{token}.{}", STANDARD.encode(self.signature(token)))
    }

    /// The `Set-Cookie` value that sets `token`. Without `remember`, the session ends with the browser.
    pub fn set_cookie(&self, token: &str, remember: bool) -> String {
        let age = if remember { format!("Max-Age={MAX_AGE_SECONDS}; ") } else { String::new() };
        self.cookie(&encode_component(&self.signed(token)), &age)
    }

    /// The `Set-Cookie` value that deletes the cookie.
    pub fn clear_cookie(&self) -> String {
        self.cookie("", "Max-Age=0; ")
    }

    fn cookie(&self, value: &str, age: &str) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{}={value}; {age}Path=/; HttpOnly; SameSite=Lax{secure}", self.name)
    }

    /// The first token with a valid signature in a `Cookie` header. A browser may send several cookies with the same name, so an
    /// attacker's cookie with this name does not hide the valid one.
    pub fn token_of_cookies(&self, header: &str) -> Option<String> {
        let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.name).find_map(|(_, value)| self.verified(&decode_component(value)))
    }

    /// Whether a `Cookie` header has a cookie with this name. Its value does not matter.
    pub fn names_session(&self, header: &str) -> bool {
        header.split(';').filter_map(|pair| pair.trim().split_once('=')).any(|(name, _)| name == self.name)
    }

    /// The token of a bearer value. The value is a token, or a token with its signature, plain or percent-encoded.
    pub fn token_of_bearer(&self, value: &str) -> Option<String> {
        match value.contains('.') {
            true => self.verified(&decode_component(value)),
            false => Some(value.to_owned()),
        }
    }

    /// The `Set-Cookie` value with which a browser can later show that it made an account whose address is not proved yet, or
    /// that its user knows the password. `header` is the request's `Cookie` header. The newest accounts in it are kept.
    pub fn set_sign_up(&self, header: &str, user_id: &str) -> String {
        let mut accounts = self.sign_ups_of_cookies(header);
        accounts.retain(|known| known != user_id);
        accounts.push(user_id.to_owned());
        let first = accounts.len().saturating_sub(SIGN_UPS_MAX);
        let value = encode_component(&self.signed(&format!("{SIGN_UP}{}", accounts[first..].join(","))));
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{}={value}; Max-Age={MAX_AGE_SECONDS}; Path=/; HttpOnly; SameSite=Lax{secure}", self.sign_up_name())
    }

    /// The accounts that the browser of a `Cookie` header made.
    pub fn sign_ups_of_cookies(&self, header: &str) -> Vec<String> {
        let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        let signed = pairs.filter(|(name, _)| *name == self.sign_up_name());
        let verified = signed.filter_map(|(_, value)| self.verified(&decode_component(value)));
        let lists = verified.filter_map(|value| value.strip_prefix(SIGN_UP).map(str::to_owned));
        lists.flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    fn sign_up_name(&self) -> &'static str {
        if self.secure { "__Secure-svc.signed_up" } else { "svc.signed_up" }
    }

    fn verified(&self, signed: &str) -> Option<String> {
        let (token, signature) = signed.split_once('.')?;
        let mut mac = self.key.clone();
        mac.update(token.as_bytes());
        // This comparison takes constant time.
        mac.verify_slice(&STANDARD.decode(signature).ok()?).ok().map(|()| token.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_signature_is_believed() {
        let signer = CookieSigner::new(b"a secret of thirty-two characters", false).expect("a key");
        let other = CookieSigner::new(b"another secret of as many characters", false).expect("a key");
        let cookie = signer.set_cookie("token", true);
        let pair = cookie.split(';').next().expect("a pair");
        assert_eq!(signer.token_of_cookies(&format!("a=b; {pair}")).as_deref(), Some("token"));
        assert_eq!(other.token_of_cookies(pair), None);
        assert_eq!(signer.token_of_cookies(&pair[..pair.len() - 4]), None);
        assert_eq!(signer.token_of_cookies("svc.session_token=token"), None);
        assert_eq!(signer.token_of_cookies(&format!("svc.session_token=planted; {pair}")).as_deref(), Some("token"));
        assert_eq!(signer.token_of_bearer("token").as_deref(), Some("token"));
        assert_eq!(signer.token_of_bearer(&signer.signed("token")).as_deref(), Some("token"));
        assert_eq!(signer.token_of_bearer("token.AAAA"), None);
    }

    #[test]
    fn only_the_characters_of_base64_are_decoded() {
        let by_replacements = |text: &str| {
            let escapes = [("%2B", "+"), ("%2b", "+"), ("%2F", "/"), ("%2f", "/"), ("%3D", "="), ("%3d", "=")];
            escapes.iter().fold(text.to_owned(), |text, (escape, character)| text.replace(escape, character))
        };
        let parts = ["%", "2", "3", "B", "b", "f", "D", "%2B", "%3d", "x", "é", ""];
        for number in 0..parts.len().pow(4) {
            let text: String = (0..4).map(|place| parts[number / parts.len().pow(place) % parts.len()]).collect();
            assert_eq!(decode_component(&text), by_replacements(&text), "{text}");
        }
        assert!(matches!(decode_component("token.c2lnbmVk"), Cow::Borrowed("token.c2lnbmVk")));
        assert_eq!(decode_component(&encode_component("a+b/c==")), "a+b/c==");
    }

    #[test]
    fn a_sign_up_is_no_session() {
        let signer = CookieSigner::new(b"a secret of thirty-two characters", true).expect("a key");
        let pair = |cookie: &str| cookie.split(';').next().expect("a pair").to_owned();
        let (sign_up, session) = (pair(&signer.set_sign_up("", "u1")), pair(&signer.set_cookie("token", true)));
        assert_eq!(signer.sign_ups_of_cookies(&format!("{session}; {sign_up}")), ["u1"]);
        assert_eq!(signer.token_of_cookies(&sign_up), None);
        // A second sign-up does not remove the first one. The oldest ones are removed.
        let both = pair(&signer.set_sign_up(&sign_up, "u2"));
        assert_eq!(signer.sign_ups_of_cookies(&both), ["u1", "u2"]);
        let many = (3..9).fold(both, |header, number| pair(&signer.set_sign_up(&header, &format!("u{number}"))));
        assert_eq!(signer.sign_ups_of_cookies(&many), ["u4", "u5", "u6", "u7", "u8"]);
        // Neither of the two values is accepted under the name of the other cookie.
        let (_, of_sign_up) = sign_up.split_once('=').expect("a value");
        let (name, of_session) = session.split_once('=').expect("a value");
        assert!(signer.sign_ups_of_cookies(&format!("{}={of_session}", signer.sign_up_name())).is_empty());
        let moved = signer.token_of_cookies(&format!("{name}={of_sign_up}")).expect("a text that was signed");
        assert!(moved.starts_with(SIGN_UP), "no session has this token: {moved}");
        assert!(signer.sign_ups_of_cookies(&sign_up[..sign_up.len() - 4]).is_empty());
    }

    #[test]
    fn no_other_text_is_believed() {
        use blockbase_tests::fuzz::{changed, for_a_while};

        let signer = CookieSigner::new(b"a secret of thirty-two characters", false).expect("a key");
        let cookie = signer.set_cookie("token", true);
        let pair = cookie.split(';').next().expect("a pair");
        for_a_while(|input| {
            let words = [";", "=", "%", "%2", "%41", ".", " ", "svc.session_token=", pair];
            let text = changed(input, &format!("a=b; {pair}; c=d"), &words)?;
            let token = signer.token_of_cookies(&text);
            assert!(token.as_ref().is_none_or(|token| token == "token"), "{text}");
            let value = changed(input, &signer.signed("token"), &["%", "%2E", ".", "=", "A"])?;
            // A token without a dot needs no signature.
            assert!(signer.token_of_bearer(&value).is_none_or(|token| token == "token" || !value.contains('.')), "{value}");
            Ok(token.is_some())
        });
    }
}
