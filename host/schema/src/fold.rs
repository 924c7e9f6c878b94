//! The folding of letters for `ilike` and `search`. It is the same for every engine and index.
//!
//! A text is first changed to lower case, and the result to upper case. The first step makes letters equal that have no common
//! upper case, such as ẞ and ß (both become `SS`), or the Kelvin sign and k. The upper case of a letter does not depend on its
//! neighbors. The lower case does: a sigma at the end of a word has another form. Postgres computes the same with
//! `upper(lower(…))` in the Unicode root locale.

/// Appends the folded form of `text`.
pub fn fold_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        let start = out.len();
        out.push_str(text);
        out[start..].make_ascii_uppercase();
        return;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
        let (plain, others) = rest.split_at(ascii);
        let start = out.len();
        out.push_str(plain);
        out[start..].make_ascii_uppercase();
        let end = others.bytes().position(|byte| byte.is_ascii()).unwrap_or(others.len());
        let (letters, next) = others.split_at(end);
        for letter in letters.chars() {
            out.extend(letter.to_lowercase().flat_map(char::to_uppercase));
        }
        rest = next;
    }
}

/// The folded form of `text`.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_into(text, &mut folded);
    folded
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn letters_of_one_case_fold_are_equal() {
        for (left, right) in [
            ("ẞ", "ß"),
            ("ß", "ss"),
            ("é", "É"),
            ("ΟΔΟΣ", "οδος"),
            ("\u{212a}", "k"),
            ("\u{2126}", "ω"),
            ("\u{212b}", "å"),
            ("İ", "i\u{307}"),
            ("ﬃ", "FFI"),
            ("Straße 7", "STRASSE 7"),
        ] {
            assert_eq!(fold(left), fold(right), "{left} {right}");
        }
        assert_ne!(fold("e"), fold("é"));
    }

    #[test]
    fn a_text_folds_as_its_letters_do() {
        let text = "abc ΑΣ ς xß-İ";
        let one_by_one: String = text.chars().map(|letter| fold(&letter.to_string())).collect();
        assert_eq!(fold(text), one_by_one);
    }
}
