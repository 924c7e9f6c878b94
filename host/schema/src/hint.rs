//! Hints: what a caller can do about an error. The crates below the surfaces must not know the words of a surface for it.
//!
//! Paths, parameters and headers belong to one surface. For example, a GraphQL client has no `?cascade=true`. So an error has a
//! hint, and each surface has one function that returns its words for every hint.

use std::borrow::Cow;

/// What the caller of a failed operation can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Present a credential.
    Authenticate,
    /// List the objects that the caller may use.
    ListObjects,
    /// List the installed blocks.
    ListBlocks,
    /// Ask for fewer fields or for fewer records.
    FewerRecords,
    /// Ask for fewer events, for older ones, or for a single one.
    FewerEvents,
    /// Somebody who has the key's rights can adopt it.
    AdoptKey,
    /// Give the block the secret.
    SetSecret { block: String },
    /// Replace the installed version by the new one.
    Upgrade,
    /// Consent to the rights that the new version asks for in addition.
    AllowNewPermissions,
    /// Hand over the things that the user made, or suspend them.
    HandOver,
    /// Hand over to another user.
    AnotherHeir,
    /// View the service with one's own rights, not as a role.
    OwnView,
    /// Read the data again, and follow events from now on.
    FollowFromNow,
    /// List events, beginning with the newest.
    FromNewestEvent,
    /// Delete the things that need the object, before it or together with it.
    Cascade,
    /// Read the record again, and require its new state.
    ReadAgain,
    /// Send each filter by itself, under the name of its field.
    FilterByField,
    /// Encode the plus sign.
    EncodePlus,
    /// Send the filter in this server's form.
    Filter { field: String, operator: &'static str, value: String },
}

/// A surface's words for a hint, in complete sentences. `None` if the surface lacks the operation that the hint names.
pub type HintWords = fn(&Hint) -> Option<Cow<'static, str>>;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use regex::Regex;

    /// The crates below the surfaces.
    const CRATES: [&str; 8] = ["schema", "query", "store", "auth", "events", "quota", "outbound", "app"];
    /// Files whose literals are not looked at. One has the remedies for `docs/errors.md`, a page for readers of the REST
    /// API. Another has the form of the mail server's URL, which is a setting. The last two have the names of what is the same on
    /// every surface: the members of a batch's operations, and ETags.
    const OUTSIDE: [&str; 4] =
        ["schema/src/code.rs", "outbound/src/mail.rs", "records/writes/operations.rs", "records/versions.rs"];

    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => sources(&path, found),
                false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
                false => {}
            }
        }
    }

    /// The string literals of Rust source, without comments and without the tests at its end.
    fn literals(source: &str) -> Vec<String> {
        // The expression always takes the complete token that begins first. So a quote in a comment or in a character literal
        // does not begin a string.
        let tokens = Regex::new(
            r####"(?xs) //[^\n]* | /\*.*?\*/ | '(?:\\.[^']*|[^\\'])' | r\#\#"(.*?)"\#\# | r\#"(.*?)"\# | \br"([^"]*)" | "((?:\\.|[^"\\])*)" "####,
        );
        let source = source.split("#[cfg(test)]\nmod tests {").next().expect("a first part");
        let captures = tokens.expect("an expression");
        let text = |captures: regex::Captures<'_>| captures.iter().skip(1).flatten().next().map(|text| text.as_str().to_owned());
        captures.captures_iter(source).filter_map(text).collect()
    }

    /// The words in a literal that belong to a surface.
    fn words_of_surfaces(literal: &str) -> Option<String> {
        let words = r"/api/|\?[a-z][A-Za-z]*=|(?:GET|POST|PUT|PATCH|DELETE) /|Authorization|Bearer|ETag|If-(?:None-)?Match|on_?[cC]onflict|x-svc-view-as|handOverTo|`(?:since|before)`";
        let words = Regex::new(words).expect("an expression");
        words.find(literal).map(|found| found.as_str().to_owned())
    }

    #[test]
    fn messages_below_the_surfaces_name_no_path_query_or_header_of_theirs() {
        let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' directory");
        let (mut looked_at, mut faults) = (0, Vec::new());
        for name in CRATES {
            let mut files = Vec::new();
            sources(&host.join(name).join("src"), &mut files);
            for file in files.into_iter().filter(|file| !OUTSIDE.iter().any(|outside| file.ends_with(outside))) {
                let source = std::fs::read_to_string(&file).expect("source");
                for literal in literals(&source) {
                    looked_at += 1;
                    if let Some(words) = words_of_surfaces(&literal) {
                        faults.push(format!("{}: {words:?} in {literal:?}", file.display()));
                    }
                }
            }
        }
        assert!(faults.is_empty(), "give the error a Hint, and let the surfaces say it:\n{}", faults.join("\n"));
        assert!(looked_at > 1000, "{looked_at} literals");
    }

    #[test]
    fn literals_are_found_where_they_are() {
        let source = r####"
            // "a comment"
            let quote = '"'; let escaped = '\''; let life: &'static str = "one";
            let raw = (r"two\", r#"th"ree"#, "fo\"ur", /* "none" */ "five \
                six");
#[cfg(test)]
mod tests { "seven" }
"####;
        assert_eq!(literals(source), ["one", r"two\", r#"th"ree"#, r#"fo\"ur"#, "five \\\n                six"]);
        for literal in [
            "see /api/v1/data",
            "add ?cascade=true.",
            "GET /x",
            "send Authorization: x",
            "leave out `x-svc-view-as`",
            "handOverTo",
            "send its new ETag",
            "a column of `on_conflict`",
            "open a stream without `since`",
            "an event older than that of `before`",
        ] {
            assert!(words_of_surfaces(literal).is_some(), "{literal}");
        }
        for literal in ["Is it so? yes = no", "ON DELETE CASCADE", "DELETE FROM svc_users", "the event before it, since then"] {
            assert_eq!(words_of_surfaces(literal), None, "{literal}");
        }
    }
}
