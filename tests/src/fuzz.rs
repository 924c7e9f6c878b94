//! Random input for code that parses text without a parser library. The gate tries the same inputs each time. The long command
//! tries other inputs, for a limited time, on stable Rust.

use std::time::Duration;

pub use arbtest::arbitrary::{Result, Unstructured};

/// How long the long command tests one property.
const BUDGET: Duration = Duration::from_secs(10);
/// The maximum number of random bytes for one try.
const BYTES_MAX: u32 = 256;
/// The minimum number of tries in the gate, and the maximum if the reader accepts few inputs.
const TRIES: std::ops::Range<usize> = 2_000..100_000;
/// The number of inputs that a reader has to accept. With fewer, the property would not be tested.
const ACCEPTED_MIN: u64 = 100;
/// The maximum number of words in a text. A text of few words is valid more often.
const WORDS_MAX: usize = 16;

/// Tests a property with random inputs. The property returns whether the reader accepted the input. If an input makes it panic, the long
/// command prints the seed.
pub fn for_a_while(mut property: impl FnMut(&mut Unstructured<'_>) -> Result<bool>) {
    let mut accepted = 0_u64;
    let mut counted = |input: &mut Unstructured<'_>| {
        accepted += u64::from(property(input)?);
        Ok(accepted)
    };
    if crate::is_long() {
        arbtest::arbtest(|input| counted(input).map(drop)).size_max(BYTES_MAX).budget(BUDGET).run();
    } else {
        let mut random = fastrand::Rng::with_seed(1);
        let mut bytes = [0; BYTES_MAX as usize];
        for tried in 1..TRIES.end {
            random.fill(&mut bytes);
            // If a property ran out of random bytes, it is tried with other bytes.
            let is_enough = counted(&mut Unstructured::new(&bytes)).is_ok_and(|accepted| accepted >= ACCEPTED_MIN);
            if is_enough && tried >= TRIES.start {
                break;
            }
        }
    }
    assert!(accepted >= ACCEPTED_MIN, "{accepted} inputs were accepted");
}

/// A text made of words that the reader knows, with any characters in between.
///
/// # Errors
/// If no random bytes are left.
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

/// A text in which some parts are left out, repeated, or replaced by a word.
///
/// # Errors
/// If no random bytes are left.
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
