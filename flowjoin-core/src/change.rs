//! What a row does to a result: it is added, or taken back.
//!
//! A stream is append-only when all its rows are `+I`. In a changelog every row has a kind, and the rows applied
//! so far always make a valid multiset: nothing is taken back that is not standing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a change, named as in SQL changelogs: `+I -U +U -D`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum RowKind {
    /// `+I`: a row that was not there.
    #[default]
    #[serde(rename = "+I")]
    Insert,
    /// `-U`: the old version of an updated row is taken back; the new one follows.
    #[serde(rename = "-U")]
    UpdateBefore,
    /// `+U`: the new version of an updated row.
    #[serde(rename = "+U")]
    UpdateAfter,
    /// `-D`: the row is taken back.
    #[serde(rename = "-D")]
    Delete,
}

impl RowKind {
    /// The kind of this number, `kind as u8`, which state that is kept goes by.
    pub fn numbered(number: u8) -> Option<RowKind> {
        let all = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];
        all.into_iter().find(|&kind| kind as u8 == number)
    }

    /// Whether the row is added (`+I`, `+U`) rather than taken back (`-U`, `-D`).
    pub const fn adds(self) -> bool {
        matches!(self, RowKind::Insert | RowKind::UpdateAfter)
    }

    /// The kind that undoes this one.
    pub const fn inverse(self) -> RowKind {
        match self {
            RowKind::Insert => RowKind::Delete,
            RowKind::UpdateBefore => RowKind::UpdateAfter,
            RowKind::UpdateAfter => RowKind::UpdateBefore,
            RowKind::Delete => RowKind::Insert,
        }
    }

    /// The two-letter name: `+I`, `-U`, `+U`, `-D`.
    pub const fn symbol(self) -> &'static str {
        match self {
            RowKind::Insert => "+I",
            RowKind::UpdateBefore => "-U",
            RowKind::UpdateAfter => "+U",
            RowKind::Delete => "-D",
        }
    }
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// One row of a stream, with its time and what it does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change<T> {
    /// What the row does to the result.
    pub kind: RowKind,
    /// The row.
    pub row: T,
    /// Its event time.
    pub time: crate::EventTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_of_the_inverse_is_the_kind_itself() {
        for kind in [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete] {
            assert_eq!(kind.inverse().inverse(), kind);
            assert_ne!(kind.adds(), kind.inverse().adds());
        }
    }
}
