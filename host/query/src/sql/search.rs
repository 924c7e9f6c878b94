//! The queries of the search indexes.

use blockbase_schema::fold;

/// The number of trigrams that one query of the search index uses at most. They only need to exclude most rows, because each
/// remaining row is checked again.
const TRIGRAMS_MAX: usize = 8;

/// The full-text query for rows that may contain `term`. It has some of the term's trigrams. A row that contains the term has all
/// of them.
pub(super) fn trigram_query(term: &str) -> String {
    let characters: Vec<char> = fold(term).chars().collect();
    let last = characters.len().saturating_sub(3);
    // The trigrams do not overlap. A trigram that overlaps another one excludes hardly any further rows, but costs the same.
    let step = (last / TRIGRAMS_MAX).max(3);
    let mut places: Vec<usize> = (0..=last).step_by(step).collect();
    if places.last() != Some(&last) {
        places.push(last);
    }
    let trigrams: Vec<String> = places
        .into_iter()
        .map(|place| {
            let trigram: String = characters[place..].iter().take(3).collect();
            format!("\"{}\"", trigram.replace('"', "\"\""))
        })
        .collect();
    trigrams.join(" AND ")
}

/// Returns a LIKE pattern for texts that contain `term`. It escapes the wildcards in `term`.
pub(super) fn like_pattern(term: &str) -> String {
    let mut pattern = String::with_capacity(term.len() + 2);
    pattern.push('%');
    for character in term.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_trigrams_of_the_folded_term() {
        assert_eq!(trigram_query("ab\"c"), r#""AB""" AND "B""C""#);
        assert_eq!(trigram_query("straße"), r#""STR" AND "ASS" AND "SSE""#);
        let long = trigram_query(&"x".repeat(1000));
        assert!(long.matches(" AND ").count() <= TRIGRAMS_MAX + 1, "{long}");
    }

    #[test]
    fn a_pattern_takes_wildcards_literally() {
        assert_eq!(like_pattern(r"50%_\x"), r"%50\%\_\\x%");
    }
}
