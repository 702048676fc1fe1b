//! Whether a changelog is legal, and what it leaves standing.
//!
//! A changelog is legal when at every instant the changes applied so far make a valid multiset: nothing is taken
//! back that is not standing. The checker applies one change after the other and names the first that is not legal.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write};

use flowjoin_core::RowKind;

/// Applies a changelog, change by change, and refuses a retraction of a row that is not standing.
///
/// ```
/// use flowjoin_core::RowKind;
/// use flowjoin_testkit::ChangelogChecker;
///
/// let mut checker = ChangelogChecker::new();
/// checker.apply(RowKind::Insert, ("order 1", None)).unwrap();
/// checker.apply(RowKind::Delete, ("order 1", None)).unwrap();
/// checker.apply(RowKind::Insert, ("order 1", Some("paid"))).unwrap();
/// assert_eq!(checker.table(), [("order 1", Some("paid"))]);
///
/// let wrong = checker.apply(RowKind::Delete, ("order 2", None)).unwrap_err();
/// assert!(wrong.to_string().starts_with("change 3 takes back a row that is not standing: -D (\"order 2\", None)"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogChecker<R> {
    standing: BTreeMap<R, u64>,
    changes: usize,
}

/// A retraction of a row that was not standing at that moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("change {position} takes back a row that is not standing: {kind} {row}; {standing}")]
pub struct NotStanding {
    /// Which change it was, counted from 0 over the life of the checker.
    pub position: usize,
    /// Its kind, `-D` or `-U`.
    pub kind: RowKind,
    row: String,
    standing: String,
}

impl<R> Default for ChangelogChecker<R> {
    fn default() -> ChangelogChecker<R> {
        ChangelogChecker { standing: BTreeMap::new(), changes: 0 }
    }
}

impl<R: Ord + Debug> ChangelogChecker<R> {
    /// A checker to which nothing has been said yet.
    pub fn new() -> ChangelogChecker<R> {
        ChangelogChecker::default()
    }

    /// Applies one change; a change that is not legal is left out.
    ///
    /// # Errors
    /// If the change takes back a row that is not standing.
    pub fn apply(&mut self, kind: RowKind, row: R) -> Result<(), NotStanding> {
        let position = self.changes;
        self.changes += 1;
        if kind.adds() {
            *self.standing.entry(row).or_insert(0) += 1;
            return Ok(());
        }
        match self.standing.get_mut(&row) {
            None => Err(NotStanding { position, kind, row: format!("{row:?}"), standing: self.describe() }),
            Some(1) => {
                self.standing.remove(&row);
                Ok(())
            }
            Some(copies) => {
                *copies -= 1;
                Ok(())
            }
        }
    }

    /// Applies changes in order, up to the first that is not legal.
    ///
    /// # Errors
    /// If a change takes back a row that is not standing.
    pub fn apply_all(&mut self, changes: impl IntoIterator<Item = (RowKind, R)>) -> Result<(), NotStanding> {
        changes.into_iter().try_for_each(|(kind, row)| self.apply(kind, row))
    }

    /// The rows that stand, each with its number of copies, in the order of the rows.
    pub fn standing(&self) -> &BTreeMap<R, u64> {
        &self.standing
    }

    /// How many copies of a row stand.
    pub fn copies(&self, row: &R) -> u64 {
        self.standing.get(row).copied().unwrap_or(0)
    }

    /// The final table: every copy of every row that stands, in the order of the rows.
    pub fn table(&self) -> Vec<R>
    where
        R: Clone,
    {
        let copies = |(row, &count): (&R, &u64)| (0..count).map(|_| row.clone()).collect::<Vec<_>>();
        self.standing.iter().flat_map(copies).collect()
    }

    fn describe(&self) -> String {
        let mut text = match self.standing.values().sum::<u64>() {
            0 => return "nothing is standing".to_string(),
            1 => "standing is".to_string(),
            rows => format!("standing are {rows} rows:"),
        };
        for (row, copies) in self.standing.iter().take(SHOWN) {
            let _infallible: fmt::Result = match copies {
                1 => write!(text, " {row:?}"),
                _ => write!(text, " {row:?} x{copies}"),
            };
        }
        if self.standing.len() > SHOWN {
            text.push_str(" …");
        }
        text
    }
}

// How many of the standing rows an error shows.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};

    #[test]
    fn equal_rows_are_counted() {
        let mut checker = ChangelogChecker::new();
        checker.apply_all([(Insert, 'a'), (Insert, 'a'), (UpdateAfter, 'b'), (UpdateBefore, 'a')]).unwrap();
        assert_eq!(checker.table(), ['a', 'b']);
        assert_eq!(checker.copies(&'a'), 1);
        checker.apply(Delete, 'a').unwrap();
        assert_eq!(checker.copies(&'a'), 0);
    }

    #[test]
    fn a_retraction_before_its_row_is_refused_even_if_the_sum_is_right() {
        let mut checker = ChangelogChecker::new();
        let wrong = checker.apply_all([(Insert, 1), (Delete, 2), (Insert, 2)]).unwrap_err();
        assert_eq!(wrong.position, 1);
        assert_eq!(wrong.to_string(), "change 1 takes back a row that is not standing: -D 2; standing is 1");
    }

    #[test]
    fn an_error_shows_a_few_of_the_rows_that_stand() {
        let mut checker = ChangelogChecker::new();
        assert!(checker.apply(Delete, 9).unwrap_err().to_string().ends_with("; nothing is standing"));
        checker.apply_all([0, 0, 1, 2, 3, 4, 5].map(|row| (Insert, row))).unwrap();
        let wrong = checker.apply(UpdateBefore, 9).unwrap_err().to_string();
        assert!(wrong.ends_with("-U 9; standing are 7 rows: 0 x2 1 2 3 4 …"), "{wrong}");
    }
}
