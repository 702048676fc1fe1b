//! What the two kernels of a join share: the kinds of its inputs, what changes in one of them, and what comes out.
//!
//! A kernel answers what a change of one input does to the result under one key. It knows rows by their ids alone.
//! [`product`](super::product) is for inputs that share a key and nothing else, [`conditional`](super::conditional)
//! for conditions beyond the key. Both take the lists in the same form and tell the difference in the same order:
//! first all that goes, then all that is updated, then all that comes. So nothing is taken back that does not stand,
//! and a gap and what fills it never stand together.

use crate::state::{RowId, Runs};

/// What an input of a join does to the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A result needs a row of it.
    Required,
    /// A result has a row of it, or a gap where there is none.
    Optional,
    /// A result needs that there is a row of it, but does not show it.
    Exists,
    /// A result needs that there is no row of it.
    NotExists,
}

impl Kind {
    /// Whether results show rows of the input.
    pub const fn shows(self) -> bool {
        matches!(self, Kind::Required | Kind::Optional)
    }

    /// Whether the input may hold nothing and a result still stand.
    pub const fn may_be_empty(self) -> bool {
        matches!(self, Kind::Optional | Kind::NotExists)
    }
}

/// A row that changes: one that goes, one that comes, or one that takes the place of another.
///
/// No row both goes and comes, not even in different pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The row that goes, or [`RowId::MISSING`].
    pub old: RowId,
    /// The row that comes, or [`RowId::MISSING`].
    pub new: RowId,
}

impl Pair {
    /// A row that comes.
    pub const fn added(new: RowId) -> Pair {
        Pair { old: RowId::MISSING, new }
    }

    /// A row that goes.
    pub const fn removed(old: RowId) -> Pair {
        Pair { old, new: RowId::MISSING }
    }

    /// A row that takes the place of another.
    pub const fn updated(old: RowId, new: RowId) -> Pair {
        Pair { old, new }
    }
}

/// One thing that changes in a result: a combination has one row an input, with gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Out<const N: usize> {
    /// The combination is taken back.
    Delete([RowId; N]),
    /// The combination is added.
    Insert([RowId; N]),
    /// A combination takes the place of another, which differs only in the row that was updated.
    Update {
        /// What is taken back.
        old: [RowId; N],
        /// What is added, right after.
        new: [RowId; N],
    },
}

impl<const N: usize> Out<N> {
    /// The combination that goes, and the one that comes.
    pub fn parts(self) -> (Option<[RowId; N]>, Option<[RowId; N]>) {
        match self {
            Out::Delete(old) => (Some(old), None),
            Out::Insert(new) => (None, Some(new)),
            Out::Update { old, new } => (Some(old), Some(new)),
        }
    }

    /// What it means that one combination goes and one comes; nothing if there is neither.
    pub(super) fn of(old: Option<[RowId; N]>, new: Option<[RowId; N]>) -> Option<Out<N>> {
        match (old, new) {
            (None, None) => None,
            (Some(old), None) => Some(Out::Delete(old)),
            (None, Some(new)) => Some(Out::Insert(new)),
            (Some(old), Some(new)) => Some(Out::Update { old, new }),
        }
    }

    /// The combination that goes.
    pub fn goes(&self) -> Option<&[RowId; N]> {
        match self {
            Out::Delete(old) | Out::Update { old, .. } => Some(old),
            Out::Insert(_) => None,
        }
    }

    /// The combination that comes.
    pub fn comes(&self) -> Option<&[RowId; N]> {
        match self {
            Out::Insert(new) | Out::Update { new, .. } => Some(new),
            Out::Delete(_) => None,
        }
    }
}

/// Holds a caller to its word: no row takes its own place, and no row that changes is among those that stay.
pub(super) fn check(stay: Runs<'_>, pairs: &[Pair]) {
    for &Pair { old, new } in pairs {
        assert!(old != new || old.is_missing(), "a row that stays is no change");
    }
    // Only when debugging: it looks through the whole list.
    if cfg!(debug_assertions) {
        let mut changing: Vec<RowId> = pairs.iter().flat_map(|pair| [pair.old, pair.new]).collect();
        changing.sort_unstable();
        assert!(rows(stay).all(|row| changing.binary_search(&row).is_err()), "a row that changes does not stay");
    }
}

/// Whether a list holds no row.
pub(super) fn is_empty(list: Runs<'_>) -> bool {
    list.0.is_empty() && list.1.is_empty()
}

/// The rows of a list in order.
pub(super) fn rows<'a>((front, back): Runs<'a>) -> impl Iterator<Item = RowId> + 'a {
    front.iter().chain(back).copied()
}

#[cfg(test)]
pub(super) mod tests;
