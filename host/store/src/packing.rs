//! Payloads of events as the outbox stores them: small ones as text, large ones compressed. Only this file knows the format.
//!
//! zstd compresses payloads of more than 8 KiB. An update's payload contains the record twice, and the second image may begin megabytes
//! after the first. The windows of deflate and lz4 do not reach that far.

use std::borrow::Cow;

use crate::error::DbError;
use crate::row::Row;

/// Larger payloads are compressed. The payloads of most records are smaller. They stay readable text and need no work.
const PLAIN_BYTES_MAX: usize = 8 * 1024;
/// The fastest level that finds repetitions of long texts.
const LEVEL: i32 = 1;
/// Above this size, the compressor searches the complete payload for repetitions, because `before` and `after` are nearly the
/// same text but far apart.
const LONG_BYTES_MIN: usize = 128 * 1024;
/// The largest window, as a power of two: 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;
/// The maximum size of an unpacked payload, in bytes. It is several times the size of the largest payload that one write can
/// make. With this limit, a damaged row cannot demand more memory.
const UNPACKED_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The maximum number of bytes of payloads that are read at once. The first event is read even if it is larger.
pub(crate) const PAGE_BYTES_MAX: i64 = 4 * 1024 * 1024;

/// The size by which pages of the outbox are measured: the bytes of the payload itself.
macro_rules! payload_bytes {
    () => {
        "coalesce(payload_bytes, octet_length(payload))"
    };
}
pub(crate) use payload_bytes;

/// The approximate disk space of an event: its stored payload, and a fixed number of bytes for its row, its indexes and its deliveries.
macro_rules! stored_bytes {
    () => {
        "octet_length(payload) + coalesce(octet_length(packed), 0) + 500"
    };
}
pub(crate) use stored_bytes;

/// A payload as its columns store it.
pub(crate) struct Stored<'a> {
    /// The text, or an empty text if it is packed.
    pub(crate) payload: Cow<'a, str>,
    /// The number of bytes of the text, if it is packed.
    pub(crate) payload_bytes: Option<i64>,
    pub(crate) packed: Option<Vec<u8>>,
}

/// Packs a payload if it is large.
pub(crate) fn pack(payload: &str) -> Result<Stored<'_>, DbError> {
    let plain = Stored { payload: Cow::Borrowed(payload), payload_bytes: None, packed: None };
    if payload.len() <= PLAIN_BYTES_MAX {
        return Ok(plain);
    }
    let packed = compress(payload.as_bytes()).map_err(|error| DbError::Other(error.into()))?;
    // Text that does not become smaller stays readable.
    if packed.len() >= payload.len() {
        return Ok(plain);
    }
    Ok(Stored { payload: Cow::Borrowed(""), payload_bytes: i64::try_from(payload.len()).ok(), packed: Some(packed) })
}

fn compress(payload: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    if payload.len() >= LONG_BYTES_MIN {
        compressor.long_distance_matching(true)?;
        compressor.window_log((usize::BITS - payload.len().leading_zeros()).min(WINDOW_LOG_MAX))?;
    }
    compressor.compress(payload)
}

/// The payload of a row. `text` is the index of the column `payload`. The columns `payload_bytes` and `packed` follow it.
///
/// # Errors
/// If the row is damaged.
pub(crate) fn payload_of(row: &Row, text: usize) -> Result<String, DbError> {
    let payload = match row.optional_integer(text + 1)? {
        None => row.text(text)?,
        Some(bytes) => unpack(&row.bytes(text + 2)?, bytes)?,
    };
    // The stored row may be damaged, so only valid JSON is returned.
    serde_json::from_str::<serde::de::IgnoredAny>(&payload).map_err(|error| DbError::Other(error.into()))?;
    Ok(payload)
}

fn unpack(packed: &[u8], bytes: i64) -> Result<String, DbError> {
    let damaged = || DbError::Other("a packed payload is damaged".into());
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= UNPACKED_BYTES_MAX).ok_or_else(damaged)?;
    let mut decompressor = zstd::bulk::Decompressor::new().map_err(|error| DbError::Other(error.into()))?;
    decompressor.window_log_max(WINDOW_LOG_MAX).map_err(|error| DbError::Other(error.into()))?;
    let text = decompressor.decompress(packed, bytes).map_err(|error| DbError::Other(error.into()))?;
    String::from_utf8(text).ok().filter(|text| text.len() == bytes).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that a compressor can hardly make smaller.
    fn noise(bytes: usize) -> String {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut text = String::with_capacity(bytes);
        while text.len() < bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(&format!("{state:016x}"));
        }
        text.truncate(bytes);
        text
    }

    #[test]
    fn two_images_of_one_record_cost_about_one() {
        let image = noise(4 * 1024 * 1024);
        let payload = format!(r#"{{"before":{{"n":1,"text":"{image}"}},"after":{{"n":2,"text":"{image}"}}}}"#);
        let stored = pack(&payload).expect("packed");
        let packed = stored.packed.expect("a large payload is packed");
        // Hexadecimal digits carry four bits, so one image takes half its bytes.
        assert!(packed.len() < image.len() * 6 / 10, "{} bytes of {}", packed.len(), payload.len());
        let back = unpack(&packed, stored.payload_bytes.expect("its bytes")).expect("unpacked");
        assert!(back == payload);
    }

    #[test]
    fn small_payloads_stay_text() {
        let payload = format!("\"{}\"", "a".repeat(PLAIN_BYTES_MAX - 2));
        assert!(pack(&payload).expect("stored").packed.is_none());
        let payload = format!("\"{}\"", "a".repeat(PLAIN_BYTES_MAX));
        assert!(pack(&payload).expect("stored").packed.is_some());
    }

    #[test]
    fn damaged_payloads_are_refused_and_claim_no_memory() {
        let payload = format!("\"{}\"", noise(20_000));
        let stored = pack(&payload).expect("packed");
        let (packed, bytes) = (stored.packed.expect("packed"), stored.payload_bytes.expect("its bytes"));
        assert!(unpack(&packed, bytes - 1).is_err());
        assert!(unpack(&packed, bytes + 1).is_err());
        assert!(unpack(&packed, i64::MAX).is_err());
        assert!(unpack(&packed, -1).is_err());
        assert!(unpack(&packed[..packed.len() / 2], bytes).is_err());
        assert!(unpack(b"not zstd", bytes).is_err());
    }
}
