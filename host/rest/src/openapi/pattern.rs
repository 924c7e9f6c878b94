//! Finds patterns of fields that mean the same in JSON Schema.

/// Whether a pattern of the `regex` crate is clearly also valid in ECMA-262, with and without its Unicode mode.
///
/// It accepts literals, classes, groups and quantifiers that both have. It rejects flags, names, Unicode classes, set operations,
/// and escapes that only one of the two has.
pub(crate) fn is_plain(pattern: &str) -> bool {
    let mut characters = pattern.chars().peekable();
    let mut groups = 0_usize;
    // Whether a quantifier may follow.
    let mut can_repeat = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let Some(escaped) = characters.next() else { return false };
                if !is_common_escape(escaped) {
                    return false;
                }
                can_repeat = !matches!(escaped, 'b' | 'B');
            }
            '[' => {
                if !skip_class(&mut characters) {
                    return false;
                }
                can_repeat = true;
            }
            '(' => {
                if characters.next_if_eq(&'?').is_some() && characters.next() != Some(':') {
                    return false;
                }
                groups += 1;
                can_repeat = false;
            }
            ')' => {
                let Some(open) = groups.checked_sub(1) else { return false };
                groups = open;
                can_repeat = true;
            }
            '*' | '+' | '?' | '{' => {
                if !can_repeat || (character == '{' && !skip_count(&mut characters)) {
                    return false;
                }
                // A lazy quantifier.
                let _ = characters.next_if_eq(&'?');
                can_repeat = false;
            }
            ']' | '}' => return false,
            '^' | '$' | '|' => can_repeat = false,
            _ => can_repeat = true,
        }
    }
    groups == 0
}

fn is_common_escape(escaped: char) -> bool {
    matches!(
        escaped,
        'd' | 'D'
            | 'w'
            | 'W'
            | 's'
            | 'S'
            | 'b'
            | 'B'
            | 'n'
            | 'r'
            | 't'
            | 'f'
            | 'v'
            | '^'
            | '$'
            | '\\'
            | '.'
            | '*'
            | '+'
            | '?'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '|'
            | '/'
    )
}

/// The rest of a class, without another class or a set operation in it.
fn skip_class(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let _ = characters.next_if_eq(&'^');
    // At the start of a class, the `regex` crate reads a `]` as a literal. ECMA-262 reads it as the end of the class.
    if characters.peek() == Some(&']') {
        return false;
    }
    let mut before = None;
    while let Some(character) = characters.next() {
        match character {
            ']' => return true,
            '[' => return false,
            '&' | '-' | '~' if before == Some(character) => return false,
            '\\' => match characters.next() {
                Some(escaped) if escaped == '-' || (is_common_escape(escaped) && !matches!(escaped, 'b' | 'B')) => {}
                _ => return false,
            },
            _ => {}
        }
        before = Some(character);
    }
    false
}

/// `2}`, `2,}` or `2,5}`.
fn skip_count(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let count: String = characters.by_ref().take_while(|character| *character != '}').collect();
    let (least, most) = count.split_once(',').unwrap_or((&count, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn only_what_both_dialects_have_is_plain() {
        for plain in ["^[A-Z]{2}-\\d+$", "a|b", "(?:ab)+?c", "[^a-z0-9_]", "^\\+?[0-9 ()-]{5,20}$", "x{2}", "é", "^a.c$"] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "(?i)a",
            "(?P<n>a)",
            "\\p{L}",
            "[[:alpha:]]",
            "[a-z&&[^b]]",
            "a**",
            "\\Aab\\z",
            "[]a]",
            "a]",
            "x{,3}",
            "\\x{41}",
            "^*",
            "\\-",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
