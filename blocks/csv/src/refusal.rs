//! The service's errors, in the form that an action's caller gets.

use blockbase_sdk::Error;

/// Keeps the service's codes that have a status. Any other refusal is a mistake in the call.
pub fn shown(error: Error) -> Error {
    let code = match error.code.as_str() {
        "not_found" | "forbidden" | "conflict" | "unavailable" | "internal" => return error,
        "unauthorized" => "forbidden",
        "unique_violation" | "foreign_key_violation" => "conflict",
        _ => "invalid_request",
    };
    Error { code: code.to_owned(), ..error }
}

/// Whether an error concerns the whole object, and not only one row.
pub fn is_of_all(error: &Error) -> bool {
    matches!(error.code.as_str(), "not_found" | "forbidden" | "unauthorized" | "unavailable" | "internal")
}

/// The index of the record at fault, with which the service's message begins, and the rest of the message.
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
