//! Limits how many bytes of stored records one write may change or delete. Bulk changes, bulk deletions, cascades and batches
//! have the same limit.
//!
//! The database adds up the sizes before rows are read. The rows are counted again while they are read, because their JSON can be
//! longer. So their bytes in memory never exceed the limit.

use blockbase_schema::{Code, Error, Result};

/// The maximum number of bytes of the records that one write changes or deletes, together with their new values. A transaction
/// keeps each record several times: before the change, after it, and in its event.
const TOUCHED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The maximum number of further records that one call may delete or change, besides those that the request names.
const BEYOND_MAX: usize = 10_000;
/// The maximum number of links that one call may name or remove, unless it only changes the links of one record.
pub(crate) const LINKS_BEYOND_MAX: usize = 20_000;
/// The number of bytes of events that are written together.
pub(crate) const EVENT_BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// The amount of data that a write has touched so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    records: usize,
    bytes: usize,
    /// The bytes of values that references of a batch have copied.
    copied: usize,
    /// The records that depend on deleted ones.
    beyond: usize,
    links: usize,
    /// Whether the call is a batch of a block. Version 0.1.0 of the block interface counts no new records, and its limits on
    /// dependent records and links apply to each deletion.
    is_of_block: bool,
}

impl Touched {
    /// The count of a batch of a block.
    pub(crate) fn of_block() -> Touched {
        Touched { is_of_block: true, ..Touched::default() }
    }

    /// Counts records that were read, or bytes of their new values. A single record may have any size, because otherwise nobody
    /// could change or delete it.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn count(&mut self, records: usize, bytes: usize) -> Result<()> {
        self.records += records;
        self.bytes = self.bytes.saturating_add(bytes);
        // A later record makes the links of the first one count too, so the order of operations does not matter.
        match self.records > 1 && (self.bytes > TOUCHED_BYTES_MAX || self.links > LINKS_BEYOND_MAX) {
            true => Err(too_large()),
            false => Ok(()),
        }
    }

    /// Counts a record that is created or upserted.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn count_new(&mut self, bytes: usize) -> Result<()> {
        if self.is_of_block { Ok(()) } else { self.count(1, bytes) }
    }

    /// Counts values that references copy. Without a limit, a small request could store any amount of data.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn count_copied(&mut self, bytes: usize) -> Result<()> {
        self.copied = self.copied.saturating_add(bytes);
        if self.copied > TOUCHED_BYTES_MAX { Err(too_large()) } else { Ok(()) }
    }

    /// Returns how many further records may be deleted or changed because they depend on deleted ones.
    pub(crate) fn beyond_left(&self) -> usize {
        BEYOND_MAX.saturating_sub(self.beyond)
    }

    /// Counts records that depend on deleted ones.
    pub(crate) fn count_beyond(&mut self, records: usize) {
        if !self.is_of_block {
            self.beyond += records;
        }
    }

    /// Counts links that a change names, or that a deletion removes. The links of a single record have their own limits.
    ///
    /// # Errors
    /// `answer_too_large`.
    pub(crate) fn count_links(&mut self, links: usize) -> Result<()> {
        if self.is_of_block {
            return Ok(());
        }
        self.links += links;
        match self.records > 1 && self.links > LINKS_BEYOND_MAX {
            true => Err(too_large()),
            false => Ok(()),
        }
    }

    /// Returns how many bytes the next `records` records may have together. If the call touches only one record, there is no
    /// limit.
    pub(super) fn bytes_left(&self, records: usize) -> usize {
        match self.records + records {
            0 | 1 => usize::MAX,
            _ => TOUCHED_BYTES_MAX.saturating_sub(self.bytes),
        }
    }
}

/// The error of a write that would touch too much data.
pub(crate) fn too_large() -> Error {
    Error::new(
        Code::AnswerTooLarge,
        format!(
            "This call is too large. The records that it changes or deletes, together with their dependent records, have more than \
             {} MiB, or there are more than {BEYOND_MAX} dependent records or {LINKS_BEYOND_MAX} links. Name fewer records in one \
             call, or first delete, in parts, the records that refer to them or are linked with them.",
            TOUCHED_BYTES_MAX / 1024 / 1024
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_record_may_have_any_size_and_several_have_a_bound() {
        let mut touched = Touched::default();
        assert_eq!((touched.bytes_left(1), touched.bytes_left(2)), (usize::MAX, TOUCHED_BYTES_MAX));
        touched.count(1, 2 * TOUCHED_BYTES_MAX).expect("a single record");
        assert_eq!(touched.bytes_left(1), 0);
        assert_eq!(touched.count(1, 0).expect_err("another one").code, Code::AnswerTooLarge);

        let mut touched = Touched::default();
        touched.count(2, TOUCHED_BYTES_MAX).expect("as much as may be");
        touched.count_links(LINKS_BEYOND_MAX).expect("as many as may be");
        assert_eq!(touched.count_links(1).expect_err("a link more").code, Code::AnswerTooLarge);
        assert_eq!(touched.count(0, 1).expect_err("a byte more").code, Code::AnswerTooLarge);
    }

    #[test]
    fn the_limit_of_links_does_not_depend_on_the_order() {
        let mut touched = Touched::default();
        touched.count(1, 0).expect("a record");
        touched.count_links(LINKS_BEYOND_MAX + 1).expect("the links of one record");
        assert_eq!(touched.count(1, 0).expect_err("another record").code, Code::AnswerTooLarge);
    }

    #[test]
    fn a_batch_of_a_block_has_limits_for_each_deletion() {
        let mut touched = Touched::of_block();
        for _ in 0..2 {
            touched.count_new(TOUCHED_BYTES_MAX).expect("a new record");
            touched.count_links(LINKS_BEYOND_MAX).expect("links");
            touched.count_beyond(BEYOND_MAX);
        }
        assert_eq!(touched.beyond_left(), BEYOND_MAX);
        touched.count(2, TOUCHED_BYTES_MAX).expect("changed records");
        assert_eq!(touched.count(1, 1).expect_err("a byte more").code, Code::AnswerTooLarge);
    }
}
