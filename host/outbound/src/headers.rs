//! The only list of headers that the author of an outbound request may not set.

/// Headers that belong to the connection, or that the client sets itself, in lower case.
const RESERVED: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// Further headers that cannot be added to a message that the service composes. They belong to the form of the message's body, to
/// the responses that the sender can read, or to the connection.
const RESERVED_OF_MESSAGES: [&str; 7] =
    ["content-type", "content-encoding", "proxy-authenticate", "trailers", "accept-encoding", "range", "http2-settings"];

/// Whether the author of a request may not set this header. The name is in lower case.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Whether this header cannot be added to a message that the service composes. The name is in lower case.
pub fn is_reserved_of_messages(name: &str) -> bool {
    is_reserved(name) || RESERVED_OF_MESSAGES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_connection_is_reserved_everywhere() {
        for (name, of_requests, of_messages) in [
            ("host", true, true),
            ("transfer-encoding", true, true),
            ("content-type", false, true),
            ("range", false, true),
            ("authorization", false, false),
        ] {
            assert_eq!((is_reserved(name), is_reserved_of_messages(name)), (of_requests, of_messages), "{name}");
        }
    }

    #[test]
    fn each_name_stands_once_in_lower_case() {
        let names: Vec<&str> = RESERVED.into_iter().chain(RESERVED_OF_MESSAGES).collect();
        for (place, name) in names.iter().enumerate() {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(!names[..place].contains(name), "{name} is in the list twice");
        }
    }
}
