//! The error codes: the one list of them, with the status that HTTP has for each and what the documentation says.
//!
//! REST, GraphQL and MCP take statuses from here. The remedies are for the documentation alone, whose page is written for
//! clients of REST, so they may name its parameters; no error carries them. Tests compare `docs/errors.md` and the codes that the
//! SDKs name with the list.

/// Makes the enum, the list of its variants and what is known of each out of one table.
macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $when:literal $remedy:literal;)+) => {
        /// Stable error codes, as the specification's tables name them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($variant,)+
        }

        impl Code {
            /// All of them, in the order of the documentation: by status.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The string that callers see in `error`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)+
                }
            }

            /// The status that HTTP has for it.
            pub const fn status(self) -> u16 {
                match self {
                    $(Code::$variant => $status,)+
                }
            }

            /// When it comes, for the documentation.
            pub const fn when(self) -> &'static str {
                match self {
                    $(Code::$variant => $when,)+
                }
            }

            /// What its caller does about it, for the documentation.
            pub const fn remedy(self) -> &'static str {
                match self {
                    $(Code::$variant => $remedy,)+
                }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" 400
        "The request is malformed: a parameter, a header, the JSON, a key that the body may not have."
        "Read the message, and change the request.";
    UnknownField "unknown_field" 400
        "A record, a filter or a sort names a field that the object does not have."
        "Take the name from the object's fields; `field` has the one that is wrong.";
    InvalidValue "invalid_value" 400
        "A value does not fit its type."
        "Send a value of the field's type; `field` has its name.";
    NotNullViolation "not_null_violation" 400
        "A required value is missing or null."
        "Send a value for `field`.";
    ConstraintViolation "CONSTRAINT_VIOLATION" 400
        "A value fits its type, and breaks a rule of its field: `min`, `max`, `pattern`, `options`."
        "Send a value that keeps the rule in the message.";
    InvalidAtomicOp "INVALID_ATOMIC_OP" 400
        "`$inc` or `$dec` stands where it cannot: at a field that is no number, without a number, or with other keys."
        "Use one of them alone, with a number, on a numeric field.";
    AnswerTooLarge "answer_too_large" 400
        "The answer, or the events of a call, would have more bytes than the server allows. Nothing has changed."
        "Ask for fewer fields or records, or divide the call.";
    InvalidUpsertTarget "invalid_upsert_target" 400
        "`on_conflict` names no unique target, or one of its columns is missing in the body."
        "Name a target that the message lists, and send all of its columns.";
    InvalidSchema "invalid_schema" 400
        "A definition of an object, a field or a relationship cannot be."
        "Read the message, and change the definition.";
    InvalidSchemaChange "invalid_schema_change" 400
        "The change does not fit the schema, or records that are there would break it. Nothing has changed."
        "Change those records first; `?dryRun=true` counts them.";
    InvalidBlock "invalid_block" 400
        "What was uploaded is no block that this server can run, or its manifest is wrong."
        "Read the message, and build the block anew.";
    MissingRequirement "missing_requirement" 400
        "A block needs what this server does not have."
        "Install what the message names, then the block.";
    ValidationFailed "validation_failed" 400
        "The input of an action does not match its schema."
        "Mend each place that `issues` names.";
    Unauthorized "unauthorized" 401
        "The request needs a credential and has none, or the one that it has is not valid."
        "Sign in, or send a valid key or token.";
    Forbidden "forbidden" 403
        "The caller may not do this, or the server does not take the request from there."
        "Ask for the permission that the message names.";
    KeySuspended "key_suspended" 403
        "The API key is suspended."
        "Use another key, or let somebody who holds its rights adopt it.";
    SetupTokenRequired "setup_token_required" 403
        "The first sign-up of this server needs its setup token."
        "Send the token as `x-setup-token`.";
    NotFound "not_found" 404
        "There is no such thing, or the caller may not know of it."
        "Check the name or the id.";
    MethodNotAllowed "method_not_allowed" 405
        "The path does not answer this method."
        "Use one that the header `Allow` lists.";
    UniqueViolation "unique_violation" 409
        "Another record has the same unique value."
        "Send another value, or change that record.";
    ForeignKeyViolation "foreign_key_violation" 409
        "The value refers to a record that is not there, or others refer to the record that would go."
        "Refer to a record that is there, or delete first what refers to this one.";
    ObjectExists "object_exists" 409
        "There is an object of this name."
        "Choose another name.";
    ObjectInUse "object_in_use" 409
        "A relationship of another object needs the object."
        "Delete the relationship first, or let it go along with `?cascade=true`.";
    BlockExists "block_exists" 409
        "A block of this name is installed."
        "Upgrade it with `?upgrade=true`, or remove it first.";
    NewPermissions "new_permissions" 409
        "The new version of a block asks for more than was granted; `newPermissions` lists it."
        "Look at it, and consent to it.";
    NoPendingClaim "no_pending_claim" 409
        "There is no account to claim, or this session may not claim it."
        "Sign in as usual.";
    OwnsThings "owns_things" 409
        "A user who made something cannot just be deleted; `things` lists it."
        "Say what becomes of it.";
    Conflict "conflict" 409
        "The request does not fit the state of what it is about."
        "Read the message, and look at the present state.";
    PreconditionFailed "precondition_failed" 412
        "The record was changed since the ETag of `If-Match`."
        "Read the record again, and decide anew.";
    PayloadTooLarge "payload_too_large" 413
        "The body has more bytes than the server takes."
        "Send less in one request.";
    UnsupportedMediaType "unsupported_media_type" 415
        "The body has a type that the route does not take."
        "Send the `Content-Type` that the message names.";
    RateLimited "rate_limited" 429
        "The caller has made more requests, or has more open, than one caller may."
        "Wait for the seconds of `Retry-After`, and try again.";
    ActionFailed "action_failed" 500
        "An action or a hook of a block failed."
        "Read the message, or the block's log.";
    Internal "internal" 500
        "The server failed."
        "Look for `x-request-id` in the server's log, which has the cause.";
    Unavailable "unavailable" 503
        "The server has no room for the request now, or is about to stop."
        "Try again, after the seconds of `Retry-After` where it is there.";
    ActionTimeout "action_timeout" 504
        "An action or a hook of a block took too long."
        "Try again with less, or raise the limit that the message names.";
    StorageFull "storage_full" 507
        "The disk of the database has no room left. Reads and deletions go on."
        "Make room, then try again.";
}

impl Code {
    /// The codes that are a handler's own to give. Each becomes its status; all others are a failed action.
    pub const OF_HANDLERS: [Code; 5] = [Code::NotFound, Code::InvalidRequest, Code::Forbidden, Code::Conflict, Code::Unavailable];

    /// The status of a request of another protocol on top of HTTP (GraphQL, MCP) that is not executed. What is wrong inside of the
    /// document is 400 there: 404, say, would be about the endpoint.
    pub const fn outer_status(self) -> u16 {
        match self.status() {
            status @ (401 | 403 | 413 | 415 | 429 | 500..) => status,
            _ => 400,
        }
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::listed::table_rows;

    #[test]
    fn the_documentation_has_every_code_with_its_status() {
        let rows = table_rows(include_str!("../../../docs/errors.md"), "| code | status |");
        let wanted: Vec<String> = Code::ALL
            .iter()
            .map(|code| format!("| `{}` | {} | {} | {} |", code.as_str(), code.status(), code.when(), code.remedy()))
            .collect();
        assert_eq!(rows, wanted, "the table in docs/errors.md");
    }

    #[test]
    fn codes_are_listed_by_status_and_each_name_is_one_code() {
        assert!(Code::ALL.is_sorted_by_key(|code| code.status()));
        let names: std::collections::HashSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn the_sdks_name_the_codes_of_handlers_and_no_others_that_there_are_not() {
        let expression = |text: &str| Regex::new(text).expect("an expression");
        let handlers: Vec<&str> = Code::OF_HANDLERS.iter().map(|code| code.as_str()).collect();
        let word = expression(r#"(?:^|["`])([a-z_]+)(?:["`]|$)"#);
        for (file, text, constant) in [
            ("sdk/js/index.d.ts", include_str!("../../../sdk/js/index.d.ts"), expression(r#"type StatusCode = (.*);"#)),
            ("sdk/go/error.go", include_str!("../../../sdk/go/error.go"), expression(r#"Code: "([a-z_]+)""#)),
            ("sdk/rust/src/error.rs", include_str!("../../../sdk/rust/src/error.rs"), expression(r#"Error::new\("([a-z_]+)""#)),
            (
                "sdk/python/blockbase/_errors.py",
                include_str!("../../../sdk/python/blockbase/_errors.py"),
                expression("(?s)(the codes .*?status)"),
            ),
            ("sdk/c/blockbase.h", include_str!("../../../sdk/c/blockbase.h"), expression(r#"The codes ("not_found".*)"#)),
            ("sdk/c/exports.c", include_str!("../../../sdk/c/exports.c"), expression(r#"bb_fail\("([a-z_]+)""#)),
            ("sdk/c/host.c", include_str!("../../../sdk/c/host.c"), expression(r#"bb_fail\("([a-z_]+)""#)),
        ] {
            let found: Vec<&str> = constant.captures_iter(text).map(|found| found.get(1).expect("a group").as_str()).collect();
            assert!(!found.is_empty(), "{file} names no code");
            let named: Vec<&str> = found
                .iter()
                .flat_map(|text| word.captures_iter(text))
                .map(|word| word.get(1).expect("a group").as_str())
                .collect();
            for name in &named {
                assert!(Code::ALL.iter().any(|code| code.as_str() == *name), "{file}: there is no code {name}");
            }
            if !file.ends_with(".c") {
                let missing: Vec<&&str> = handlers.iter().filter(|code| !named.contains(*code)).collect();
                assert!(missing.is_empty(), "{file} lacks {missing:?}");
            }
        }
    }
}
