//! What is wrong with a changelog, told so that its cause can be found.

use std::fmt::{self, Display};

use flowjoin_core::RowKind;

/// A retraction of a row that was not standing at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStanding {
    /// Which change it was, counted from 0 over the life of the checker.
    pub position: usize,
    /// Its kind, `-D` or `-U`.
    pub kind: RowKind,
    pub(super) row: String,
    pub(super) taken_back_at: Option<usize>,
    pub(super) standing: Vec<(String, u64)>,
}

/// Two rows or more that stand, at the end of a batch, under a key that one may stand under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnique {
    /// How many changes there have been.
    pub changes: usize,
    pub(super) key: String,
    pub(super) rows: Vec<(String, u64)>,
}

/// What is wrong with a batch of changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalChange {
    /// One takes back a row that is not standing.
    #[error(transparent)]
    NotStanding(#[from] NotStanding),
    /// They leave two rows under a key that one may stand under.
    #[error(transparent)]
    NotUnique(#[from] NotUnique),
}

impl Display for NotStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotStanding { position, kind, row, .. } = self;
        write!(f, "change {position} takes back a row that is not standing: {kind} {row}, which ")?;
        match self.taken_back_at {
            Some(at) => write!(f, "change {at} has taken back already; ")?,
            None => f.write_str("never came; ")?,
        }
        match self.standing.iter().map(|(_, copies)| copies).sum::<u64>() {
            0 => return f.write_str("nothing is standing"),
            1 => f.write_str("standing is")?,
            rows => write!(f, "standing are {rows} rows:")?,
        }
        write_rows(f, &self.standing)
    }
}

impl Display for NotUnique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Changes are counted from 0, so the last one is one less than there are.
        let (last, key) = (self.changes.saturating_sub(1), &self.key);
        write!(f, "after change {last} two rows or more stand under one key, {key}:")?;
        write_rows(f, &self.rows)
    }
}

impl std::error::Error for NotStanding {}
impl std::error::Error for NotUnique {}

fn write_rows(f: &mut fmt::Formatter<'_>, rows: &[(String, u64)]) -> fmt::Result {
    for (row, copies) in rows.iter().take(SHOWN) {
        match copies {
            1 => write!(f, " {row}")?,
            _ => write!(f, " {row} x{copies}")?,
        }
    }
    if rows.len() > SHOWN { f.write_str(" …") } else { Ok(()) }
}

// How many rows an error shows.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use crate::ChangelogChecker;
    use flowjoin_core::RowKind::{Delete, Insert, UpdateBefore};

    #[test]
    fn an_error_shows_a_few_of_the_rows_that_stand() {
        let mut checker = ChangelogChecker::new();
        assert!(checker.apply(Delete, 9).unwrap_err().to_string().ends_with("; nothing is standing"));
        checker.apply_all([0, 0, 1, 2, 3, 4, 5].map(|row| (Insert, row))).unwrap();
        let wrong = checker.apply(UpdateBefore, 9).unwrap_err().to_string();
        assert!(wrong.ends_with("-U 9, which never came; standing are 7 rows: 0 x2 1 2 3 4 …"), "{wrong}");
        checker.apply(Delete, 5).unwrap();
        let wrong = checker.apply(Delete, 5).unwrap_err().to_string();
        assert!(wrong.contains("-D 5, which change 9 has taken back already;"), "{wrong}");
    }
}
