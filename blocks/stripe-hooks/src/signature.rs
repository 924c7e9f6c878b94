//! The header `Stripe-Signature`: `t=<seconds>,v1=<hex>[,v1=<hex>…]`, each `v1` an HMAC-SHA256 of `<t>.<raw body>`.

use blockbase_sdk::signature::{equal, hmac_sha256_hex};

/// The reason why a request is not accepted as Stripe's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Malformed,
    Mismatch,
    Stale,
}

impl Refusal {
    pub fn message(self) -> &'static str {
        match self {
            Refusal::Malformed => "The header `Stripe-Signature` is missing, or not of the form `t=…,v1=…`.",
            Refusal::Mismatch => {
                "No signature of the header `Stripe-Signature` is that of this body under the endpoint's secret."
            }
            Refusal::Stale => "The time of the header `Stripe-Signature` is too far from now.",
        }
    }
}

/// Checks a body against its header.
///
/// While a secret is being replaced, Stripe signs with the old and the new one, so any matching `v1` is enough. Other schemes (`v0`) are
/// for Stripe's own tests and are ignored.
pub fn verify(secret: &[u8], header: &str, body: &[u8], now_seconds: u64, tolerance_seconds: u64) -> Result<(), Refusal> {
    let pairs = || header.split(',').filter_map(|part| part.trim().split_once('='));
    let stamp = pairs().find_map(|(key, value)| (key == "t").then_some(value)).ok_or(Refusal::Malformed)?;
    let signed_at: u64 = stamp.parse().map_err(|_| Refusal::Malformed)?;
    let mut signatures = pairs().filter_map(|(key, value)| (key == "v1").then_some(value)).peekable();
    signatures.peek().ok_or(Refusal::Malformed)?;
    // Stripe signed the text as it was sent, and not the number that it means.
    let expected = hmac_sha256_hex(secret, &[stamp.as_bytes(), b".", body].concat());
    // All signatures are compared, so that the time does not show which one matches.
    let fits = signatures.fold(false, |fits, signature| fits | equal(expected.as_bytes(), signature.as_bytes()));
    // The time is checked only once the signature has shown that it comes from Stripe.
    match (fits, now_seconds.abs_diff(signed_at) <= tolerance_seconds) {
        (false, _) => Err(Refusal::Mismatch),
        (true, false) => Err(Refusal::Stale),
        (true, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"whsec_test_secret";
    const BODY: &[u8] = br#"{"id":"evt_1"}"#;

    fn signed(secret: &[u8], stamp: &str) -> String {
        hmac_sha256_hex(secret, &[stamp.as_bytes(), b".", BODY].concat())
    }

    #[test]
    fn any_v1_of_the_secret_will_do() {
        let (good, other) = (signed(SECRET, "1000"), signed(b"whsec_old", "1000"));
        for header in [
            format!("t=1000,v1={good}"),
            format!("t=1000,v1={other},v1={good},v0=abc"),
            format!("v1={good}, t=1000"),
            format!("t=1000,v1=,v1=zz,v1={good}"),
        ] {
            assert_eq!(verify(SECRET, &header, BODY, 1000, 300), Ok(()), "{header}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = signed(SECRET, "1000");
        for (header, refusal) in [
            (String::new(), Refusal::Malformed),
            ("t=1000".to_owned(), Refusal::Malformed),
            (format!("v1={good}"), Refusal::Malformed),
            (format!("t=soon,v1={good}"), Refusal::Malformed),
            (format!("t=-1,v1={good}"), Refusal::Malformed),
            (format!("t=1000,v0={good}"), Refusal::Malformed),
            (format!("t=1001,v1={good}"), Refusal::Mismatch),
            (format!("t=01000,v1={good}"), Refusal::Mismatch),
            (format!("t=1000,v1={}", &good[1..]), Refusal::Mismatch),
            (format!("t=1000,v1={}", signed(b"whsec_other", "1000")), Refusal::Mismatch),
        ] {
            assert_eq!(verify(SECRET, &header, BODY, 1000, 300), Err(refusal), "{header}");
        }
        assert_eq!(verify(SECRET, &format!("t=1000,v1={good}"), b"{}", 1000, 300), Err(Refusal::Mismatch));
    }

    #[test]
    fn the_time_may_be_off_by_the_tolerance() {
        let header = format!("t=1000,v1={}", signed(SECRET, "1000"));
        for (now, expected) in
            [(1300, Ok(())), (700, Ok(())), (1301, Err(Refusal::Stale)), (699, Err(Refusal::Stale)), (0, Err(Refusal::Stale))]
        {
            assert_eq!(verify(SECRET, &header, BODY, now, 300), expected, "{now}");
        }
    }
}
