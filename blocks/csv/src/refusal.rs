//! What the service refuses, as a caller of an action hears of it.

use blockbase_sdk::Error;

/// Of the service's codes those that have a status; whatever else it refuses is a mistake in the call.
pub fn shown(error: Error) -> Error {
    let code = match error.code.as_str() {
        "not_found" | "forbidden" | "conflict" | "unavailable" | "internal" => return error,
        "unauthorized" => "forbidden",
        "unique_violation" | "foreign_key_violation" => "conflict",
        _ => "invalid_request",
    };
    Error { code: code.to_owned(), ..error }
}

/// Whether a refusal is of the whole object, not of one row.
pub fn is_of_all(error: &Error) -> bool {
    matches!(error.code.as_str(), "not_found" | "forbidden" | "unauthorized" | "unavailable" | "internal")
}

/// The place of the record at fault, which the service's message begins with, and the rest of the message.
pub fn place(message: &str) -> Option<(usize, &str)> {
    let (place, rest) = message.strip_prefix("At index ")?.split_once(": ")?;
    Some((place.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_taken_from_the_message() {
        assert_eq!(place("At index 12: `price` (decimal): needs a number."), Some((12, "`price` (decimal): needs a number.")));
        assert_eq!(place("`price` (decimal): needs a number."), None);
        assert_eq!(place("At index of: x"), None);
    }

    #[test]
    fn every_code_has_a_status() {
        let code = |code: &str| shown(Error::new(code, "")).code;
        assert_eq!(
            ["forbidden", "unique_violation", "CONSTRAINT_VIOLATION", "unknown_field", "unauthorized"].map(code),
            ["forbidden", "conflict", "invalid_request", "invalid_request", "forbidden"]
        );
    }
}
