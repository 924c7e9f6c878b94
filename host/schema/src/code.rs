//! The only list of error codes, each with its HTTP status and its text in the documentation.
//!
//! REST, GraphQL and MCP take statuses from here. The remedies are only for the documentation, and no error contains them. That
//! page is for clients of REST, so remedies may name parameters of REST. Tests compare the list with `docs/errors.md` and with
//! the codes that the SDKs name.

/// Makes the enum, the list of its variants and their properties from one table.
macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $when:literal $remedy:literal;)+) => {
        /// Stable error codes, as the tables of the documentation name them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($variant,)+
        }

        impl Code {
            /// All codes, in the order of the documentation: by status.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The string that callers see in `error`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)+
                }
            }

            /// The status of HTTP for this code.
            pub const fn status(self) -> u16 {
                match self {
                    $(Code::$variant => $status,)+
                }
            }

            /// When the error occurs, for the documentation.
            pub const fn when(self) -> &'static str {
                match self {
                    $(Code::$variant => $when,)+
                }
            }

            /// What the caller can do about it, for the documentation.
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
        "A value fits its type, but breaks a rule of its field: `min`, `max`, `pattern`, `options`."
        "Send a value that follows the rule in the message.";
    InvalidAtomicOp "INVALID_ATOMIC_OP" 400
        "`$inc` or `$dec` is not possible here: the field is not numeric, the amount is not a number, or there are other keys."
        "Use one of them alone, with a number, on a numeric field.";
    AnswerTooLarge "answer_too_large" 400
        "The answer, or the events of a call, would have more bytes than the server allows. Nothing has changed."
        "Ask for fewer fields or records, or divide the call.";
    InvalidUpsertTarget "invalid_upsert_target" 400
        "`on_conflict` does not name a unique target, or the body lacks one of its columns."
        "Name a target that the message lists, and send all of its columns.";
    InvalidSchema "invalid_schema" 400
        "The definition of an object, a field or a relationship is not valid."
        "Read the message, and correct the definition.";
    InvalidSchemaChange "invalid_schema_change" 400
        "The change does not fit the schema, or existing records would break it. Nothing has changed."
        "Change those records first; `?dryRun=true` counts them.";
    InvalidBlock "invalid_block" 400
        "The uploaded file is not a block that this server can run, or its manifest is wrong."
        "Read the message, and build the block again.";
    MissingRequirement "missing_requirement" 400
        "A block needs something that this server does not have."
        "Install what the message names, then the block.";
    ValidationFailed "validation_failed" 400
        "The input of an action does not match its schema."
        "Correct each place that `issues` names.";
    Unauthorized "unauthorized" 401
        "The request needs a credential and has none, or its credential is not valid."
        "Sign in, or send a valid key or token.";
    Forbidden "forbidden" 403
        "The caller may not do this, or the server does not accept the request from this address or under this host name."
        "Ask for the permission that the message names.";
    KeySuspended "key_suspended" 403
        "The API key is suspended."
        "Use another key, or let somebody who has its rights adopt it.";
    SetupTokenRequired "setup_token_required" 403
        "The first sign-up of this server needs its setup token."
        "Send the token as `x-setup-token`.";
    SetupRequired "setup_required" 403
        "Nobody has signed up yet, so there is no admin, and accounts cannot be made in this way."
        "Sign up first: the first account becomes admin.";
    NotFound "not_found" 404
        "The request names something that does not exist, or that the caller may not know of."
        "Check the name or the id.";
    MethodNotAllowed "method_not_allowed" 405
        "The path does not answer this method."
        "Use one that the header `Allow` lists.";
    UniqueViolation "unique_violation" 409
        "Another record has the same unique value."
        "Send another value, or change that record.";
    ForeignKeyViolation "foreign_key_violation" 409
        "The value refers to a record that does not exist, or other records refer to the record that would be deleted."
        "Refer to an existing record, or first delete the records that refer to this one.";
    ObjectExists "object_exists" 409
        "An object of this name exists."
        "Choose another name.";
    ObjectInUse "object_in_use" 409
        "A relationship of another object needs the object."
        "Delete the relationship first, or delete both with `?cascade=true`.";
    BlockExists "block_exists" 409
        "A block of this name is installed."
        "Upgrade it with `?upgrade=true`, or remove it first.";
    NewPermissions "new_permissions" 409
        "The new version of a block asks for more than was granted; `newPermissions` lists it."
        "Check the additions, and consent to them.";
    NoPendingClaim "no_pending_claim" 409
        "There is no account to claim, or this session may not claim it."
        "Sign in as usual.";
    OwnsThings "owns_things" 409
        "The user made things that would be left without a maker; `things` lists them."
        "Repeat the request with `?handOverTo=<user id>` or `?suspend=true`.";
    Conflict "conflict" 409
        "The request does not fit the current state of the server or of the thing that it changes."
        "Read the message, and look at the current state.";
    PreconditionFailed "precondition_failed" 412
        "The record has changed since the answer that had the ETag in `If-Match`."
        "Read the record again, and decide again.";
    PayloadTooLarge "payload_too_large" 413
        "The body has more bytes than the server accepts."
        "Send less in one request.";
    UnsupportedMediaType "unsupported_media_type" 415
        "The body has a type that the route does not accept."
        "Send the `Content-Type` that the message names.";
    RateLimited "rate_limited" 429
        "The caller has sent too many requests, or has too many open streams, exports or unused tickets."
        "Wait for the seconds of `Retry-After`, and try again.";
    ActionFailed "action_failed" 500
        "An action or a hook of a block failed."
        "Read the message, or the block's log.";
    Internal "internal" 500
        "The server failed."
        "Look for `x-request-id` in the server's log, which has the cause.";
    Unavailable "unavailable" 503
        "The server has no room for the request now, or is about to stop."
        "Try again. If the answer has `Retry-After`, wait for its seconds first.";
    ActionTimeout "action_timeout" 504
        "An action or a hook of a block took too long."
        "Try again with less, or raise the limit that the message names.";
    StorageFull "storage_full" 507
        "The disk of the database has no room left. Reads and deletions still work."
        "Make room, then try again.";
}

impl Code {
    /// The codes that a handler of a block may return. The response has the code's status. If a handler returns any other code,
    /// the response is that of a failed action.
    pub const OF_HANDLERS: [Code; 5] = [Code::NotFound, Code::InvalidRequest, Code::Forbidden, Code::Conflict, Code::Unavailable];

    /// The status of a request over GraphQL or MCP that is not executed. An error inside the document is 400 there. 404, for example,
    /// would mean that the endpoint is missing.
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
