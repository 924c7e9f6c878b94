//! Unpredictable randomness from the host.

use crate::bindings::wasi::random::random;

/// Fills a buffer with random bytes.
pub fn fill(buffer: &mut [u8]) {
    buffer.copy_from_slice(&random::get_random_bytes(buffer.len() as u64));
}

/// An array of random bytes.
pub fn bytes<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    fill(&mut bytes);
    bytes
}

/// A random number of 64 bits.
pub fn number() -> u64 {
    random::get_random_u64()
}

/// A UUID of version 4 as text.
pub fn uuid() -> String {
    uuid_of(bytes())
}

fn uuid_of(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_tells_its_version() {
        assert_eq!(uuid_of([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid_of([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
