//! Random input for code that reads text by hand. It runs by the long command, for a bounded time, on stable Rust.

use std::time::Duration;

use arbtest::arbitrary::Result;
pub use arbtest::arbitrary::Unstructured;

/// How long one property is tried.
const BUDGET: Duration = Duration::from_secs(10);
/// Random bytes that one try begins with at most.
const BYTES_MAX: u32 = 256;
/// Words of a text. Few make a valid one more often.
const WORDS_MAX: usize = 16;

/// Tries a property with random input until the time is over. If it panics, the seed of the input is printed. The property returns
/// whether the reader accepted the input. If it never did, the property was never tried, so that is a failure too.
pub fn for_a_while(mut property: impl FnMut(&mut Unstructured<'_>) -> Result<bool>) {
    let mut accepted = 0_u64;
    let counted = |input: &mut Unstructured<'_>| {
        accepted += u64::from(property(input)?);
        Ok(())
    };
    arbtest::arbtest(counted).size_max(BYTES_MAX).budget(BUDGET).run();
    assert!(accepted >= 100, "{accepted} inputs were accepted");
}

/// Text of words that the reader knows, with any characters in between.
///
/// # Errors
/// There are no random bytes left.
pub fn text_of(input: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    let mut text = String::new();
    for _ in 0..input.int_in_range(1..=WORDS_MAX)? {
        match input.ratio(7, 8)? {
            true => text.push_str(input.choose(words)?),
            false => text.push(input.arbitrary()?),
        }
    }
    Ok(text)
}

/// A text with some of its parts left out, repeated or replaced by a word.
///
/// # Errors
/// There are no random bytes left.
pub fn changed(input: &mut Unstructured<'_>, text: &str, words: &[&str]) -> Result<String> {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..input.int_in_range(1..=8)? {
        let begin = input.int_in_range(0..=characters.len())?;
        let end = input.int_in_range(begin..=characters.len().min(begin + 20))?;
        let put: Vec<char> = match input.int_in_range(0..=2)? {
            0 => Vec::new(),
            1 => characters[begin..end].repeat(2),
            _ => input.choose(words)?.chars().collect(),
        };
        characters.splice(begin..end, put);
    }
    Ok(characters.into_iter().collect())
}
