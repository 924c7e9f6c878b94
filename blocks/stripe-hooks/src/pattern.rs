//! The types of events that are stored.

/// Whether a type matches one of the patterns. Without patterns, every type matches.
pub fn is_wanted(patterns: &[String], kind: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, kind))
}

/// `*` matches any text, including dots and the empty text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("payment_intent.*", "payment_intent.succeeded", true),
            ("payment_intent.*", "payment_intent", false),
            ("charge.*", "charge.dispute.created", true),
            ("charge.refunded", "charge.refunded", true),
            ("charge.refunded", "charge.refunded.twice", false),
            ("*", "anything", true),
            ("*.created", "charge.dispute.created", true),
            ("*.created", "created", false),
            ("charge.*.*", "charge.refunded", false),
            ("a*a", "a", false),
            ("", "charge", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(is_wanted(&[], "anything"));
        assert!(!is_wanted(&["charge.*".to_owned(), "payout.*".to_owned()], "invoice.paid"));
    }
}
