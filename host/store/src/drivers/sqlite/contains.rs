//! `svc_contains(text, folds, term, …)`: whether a text contains all terms. It searches in pieces, so that a search of a long text can
//! be stopped.

use std::sync::Arc;

use blockbase_schema::{fold, fold_into};
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Result, ffi};

use super::meter::{Meter, Spent};

/// The number of bytes of a text that are searched before the meter is checked.
const PIECE_BYTES: usize = 64 * 1024;

impl From<Spent> for rusqlite::Error {
    /// The error of a statement that the engine itself interrupts.
    fn from(_: Spent) -> Self {
        rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None)
    }
}

/// Returns null if the value is null or not a text.
pub(super) fn call(context: &Context<'_>, meter: &Meter) -> Result<Option<bool>> {
    let ValueRef::Text(bytes) = context.get_raw(0) else { return Ok(None) };
    let folds: bool = context.get(1)?;
    let mut terms: Vec<Arc<String>> = Vec::with_capacity(context.len().saturating_sub(2));
    for place in 2..context.len() {
        // SQLite keeps the terms from row to row, so each is folded only once for each statement.
        let place = std::ffi::c_int::try_from(place).map_err(|error| rusqlite::Error::UserFunctionError(error.into()))?;
        terms.push(context.get_or_create_aux(place, |term| -> Result<String> {
            let term = term.as_str()?;
            Ok(if folds { fold(term) } else { term.to_owned() })
        })?);
    }
    let text = String::from_utf8_lossy(bytes);
    let mut terms: Vec<&str> = terms.iter().map(|term| term.as_str()).filter(|term| !term.is_empty()).collect();
    Ok(Some(contains_all(&text, folds, &mut terms, &mut |bytes| meter.bytes(bytes))?))
}

/// Whether `text` contains all `terms`, after folding it if `folds` is set. `spend` is called for each piece that was searched.
fn contains_all(
    text: &str,
    folds: bool,
    terms: &mut Vec<&str>,
    spend: &mut dyn FnMut(usize) -> Result<(), Spent>,
) -> Result<bool, Spent> {
    let overlap = terms.iter().map(|term| term.len()).max().unwrap_or(0).saturating_sub(1);
    // A piece is at least as long as the overlap. The overlap is searched twice.
    let piece_bytes = PIECE_BYTES.max(overlap);
    // The piece, with the end of the previous piece before it, because a term may begin there.
    let mut window = String::new();
    let mut rest = text;
    while !terms.is_empty() && !rest.is_empty() {
        let (piece, next) = rest.split_at(rest.floor_char_boundary(piece_bytes.max(4)));
        rest = next;
        match folds {
            true => fold_into(piece, &mut window),
            false => window.push_str(piece),
        }
        terms.retain(|term| !window.contains(term));
        spend(piece.len())?;
        let tail = window.floor_char_boundary(window.len().saturating_sub(overlap));
        window.drain(..tail);
    }
    Ok(terms.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, folds: bool, terms: &[&str]) -> bool {
        contains_all(text, folds, &mut terms.to_vec(), &mut |_| Ok(())).is_ok_and(|found| found)
    }

    #[test]
    fn terms_are_found_across_the_ends_of_pieces() {
        for shift in 0..8 {
            let text = format!("{}straße und ZÜGE{}", "ö".repeat((PIECE_BYTES - shift) / 2), "x".repeat(PIECE_BYTES));
            assert!(found(&text, true, &["STRASSE", "UND ZÜ", "X"]), "{shift}");
            assert!(found(&text, false, &["straße", "ZÜGE"]), "{shift}");
            assert!(!found(&text, false, &["straße", "züge"]), "{shift}");
        }
        assert!(found("", true, &[]) && !found("", true, &["A"]));
    }

    #[test]
    fn a_long_term_is_found() {
        let term = "ab".repeat(PIECE_BYTES);
        assert!(found(&format!("x{term}y"), false, &[&term]));
        assert!(!found(&term[1..], false, &[&term]));
    }

    #[test]
    fn a_long_text_can_be_ended() {
        let text = "x".repeat(PIECE_BYTES * 10);
        let mut pieces = 0;
        let ended = contains_all(&text, true, &mut vec!["Y"], &mut |_| {
            pieces += 1;
            if pieces == 3 { Err(Spent) } else { Ok(()) }
        });
        assert!(ended.is_err() && pieces == 3);
    }
}
