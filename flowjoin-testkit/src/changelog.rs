//! Whether a changelog is legal, and what it leaves standing.
//!
//! A changelog is legal when at every instant the changes applied so far make a valid multiset: nothing is taken
//! back that is not standing. The checker applies one change after the other and names the first that is not legal.
//! Where rows have a key that at most one of them may stand under, it checks that too, at the end of each batch:
//! within a batch a new row may come before the old one has gone.

mod error;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use flowjoin_core::RowKind;

pub use error::{IllegalChange, NotStanding, NotUnique};

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
/// let wrong = checker.apply(RowKind::Delete, ("order 1", None)).unwrap_err();
/// assert_eq!(
///     wrong.to_string(),
///     "change 3 takes back a row that is not standing: -D (\"order 1\", None), which change 1 has taken back already; \
///      standing is (\"order 1\", Some(\"paid\"))"
/// );
/// ```
///
/// [`unique_by`](Self::unique_by) adds the check for keys that one row may stand under.
#[derive(Clone)]
pub struct ChangelogChecker<R, U = ()> {
    // Of each row that has ever stood: rows that have gone are kept to say when they went.
    rows: BTreeMap<R, Life>,
    changes: usize,
    unique: Option<Unique<R, U>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    copies: u64,
    taken_back_at: Option<usize>,
}

#[derive(Clone)]
struct Unique<R, U> {
    key: Arc<dyn Fn(&R) -> U + Send + Sync>,
    standing: BTreeMap<U, u64>,
    // The keys that changes of this batch have touched.
    touched: BTreeSet<U>,
}

impl<R> Default for ChangelogChecker<R> {
    fn default() -> ChangelogChecker<R> {
        ChangelogChecker { rows: BTreeMap::new(), changes: 0, unique: None }
    }
}

impl<R: Ord + Debug> ChangelogChecker<R> {
    /// A checker to which nothing has been said yet.
    pub fn new() -> ChangelogChecker<R> {
        ChangelogChecker::default()
    }

    /// A checker that besides holds each batch to this: at its end at most one row stands under each key.
    ///
    /// It looks at the end of each batch: call [`apply_batch`](Self::apply_batch), or [`end_batch`](Self::end_batch).
    ///
    /// ```
    /// use flowjoin_core::RowKind::{Delete, Insert};
    /// use flowjoin_testkit::ChangelogChecker;
    ///
    /// let mut checker = ChangelogChecker::new().unique_by(|row: &(u64, &str)| row.0);
    /// checker.apply_batch([(Insert, (7, "new"))]).unwrap();
    /// checker.apply_batch([(Insert, (7, "paid")), (Delete, (7, "new"))]).unwrap();
    /// let wrong = checker.apply_batch([(Insert, (7, "sent"))]).unwrap_err();
    /// assert_eq!(
    ///     wrong.to_string(),
    ///     "after change 3 two rows or more stand under one key, 7: (7, \"paid\") (7, \"sent\")"
    /// );
    /// ```
    ///
    /// # Panics
    /// If changes have been applied already.
    pub fn unique_by<U: Ord>(self, key: impl Fn(&R) -> U + Send + Sync + 'static) -> ChangelogChecker<R, U> {
        assert_eq!(self.changes, 0, "a key is named before the first change");
        let unique = Unique { key: Arc::new(key), standing: BTreeMap::new(), touched: BTreeSet::new() };
        ChangelogChecker { rows: self.rows, changes: self.changes, unique: Some(unique) }
    }
}

impl<R: Ord + Debug, U: Ord + Debug> ChangelogChecker<R, U> {
    /// Applies one change; a change that is not legal is left out.
    ///
    /// # Errors
    /// If the change takes back a row that is not standing.
    pub fn apply(&mut self, kind: RowKind, row: R) -> Result<(), NotStanding> {
        let position = self.changes;
        self.changes += 1;
        let before = self.rows.get(&row).copied().unwrap_or_default();
        if !kind.adds() && before.copies == 0 {
            let standing = self.standing().into_iter().map(|(row, copies)| (format!("{row:?}"), copies)).collect();
            let taken_back_at = before.taken_back_at;
            return Err(NotStanding { position, kind, row: format!("{row:?}"), taken_back_at, standing });
        }
        if let Some(unique) = &mut self.unique {
            unique.apply(kind, &row);
        }
        let after = match kind.adds() {
            true => Life { copies: before.copies + 1, ..before },
            false => Life { copies: before.copies - 1, taken_back_at: Some(position) },
        };
        self.rows.insert(row, after);
        Ok(())
    }

    /// Applies changes in order, up to the first that is not legal.
    ///
    /// # Errors
    /// If a change takes back a row that is not standing.
    pub fn apply_all(&mut self, changes: impl IntoIterator<Item = (RowKind, R)>) -> Result<(), NotStanding> {
        changes.into_iter().try_for_each(|(kind, row)| self.apply(kind, row))
    }

    /// Applies the changes of one batch in order, up to the first that is not legal, and ends it.
    ///
    /// # Errors
    /// If a change takes back a row that is not standing, or the batch leaves two rows standing under a key that one
    /// may stand under.
    pub fn apply_batch(&mut self, changes: impl IntoIterator<Item = (RowKind, R)>) -> Result<(), IllegalChange> {
        self.apply_all(changes)?;
        self.end_batch()?;
        Ok(())
    }

    /// Ends a batch of changes. Without [`unique_by`](ChangelogChecker::unique_by) there is nothing to check then.
    ///
    /// # Errors
    /// If two rows stand under a key that one may stand under.
    pub fn end_batch(&mut self) -> Result<(), NotUnique> {
        let Some(unique) = &mut self.unique else { return Ok(()) };
        let touched = std::mem::take(&mut unique.touched);
        let Some(key) = touched.into_iter().find(|key| unique.standing.get(key).is_some_and(|&rows| rows > 1)) else {
            return Ok(());
        };
        let of_key = self.rows.iter().filter(|(row, life)| life.copies > 0 && (unique.key)(row) == key);
        let rows = of_key.map(|(row, life)| (format!("{row:?}"), life.copies)).collect();
        Err(NotUnique { changes: self.changes, key: format!("{key:?}"), rows })
    }

    /// The rows that stand, each with its number of copies, in the order of the rows.
    pub fn standing(&self) -> BTreeMap<&R, u64> {
        let stands = self.rows.iter().filter(|(_, life)| life.copies > 0);
        stands.map(|(row, life)| (row, life.copies)).collect()
    }

    /// How many copies of a row stand.
    pub fn copies(&self, row: &R) -> u64 {
        self.rows.get(row).map_or(0, |life| life.copies)
    }

    /// How many changes have been applied, the refused ones among them.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// The final table: every copy of every row that stands, in the order of the rows.
    pub fn table(&self) -> Vec<R>
    where
        R: Clone,
    {
        let copies = |(row, life): (&R, &Life)| (0..life.copies).map(|_| row.clone()).collect::<Vec<_>>();
        self.rows.iter().flat_map(copies).collect()
    }
}

impl<R, U: Ord> Unique<R, U> {
    fn apply(&mut self, kind: RowKind, row: &R) {
        let standing = self.standing.entry((self.key)(row)).or_insert(0);
        if kind.adds() {
            *standing += 1;
        } else {
            *standing -= 1;
        }
        self.touched.insert((self.key)(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};

    #[test]
    fn equal_rows_are_counted() {
        let mut checker = ChangelogChecker::new();
        checker.apply_all([(Insert, 'a'), (Insert, 'a'), (UpdateAfter, 'b'), (UpdateBefore, 'a')]).unwrap();
        assert_eq!(checker.table(), ['a', 'b']);
        assert_eq!((checker.copies(&'a'), checker.copies(&'c')), (1, 0));
        checker.apply(Delete, 'a').unwrap();
        assert_eq!((checker.copies(&'a'), checker.changes()), (0, 5));
        assert_eq!(checker.standing(), BTreeMap::from([(&'b', 1)]));
    }

    #[test]
    fn a_retraction_before_its_row_is_refused_even_if_the_sum_is_right() {
        let mut checker = ChangelogChecker::new();
        let wrong = checker.apply_all([(Insert, 1), (Delete, 2), (Insert, 2)]).unwrap_err();
        assert_eq!(wrong.position, 1);
        let text = "change 1 takes back a row that is not standing: -D 2, which never came; standing is 1";
        assert_eq!(wrong.to_string(), text);
        assert_eq!(checker.table(), [1]);
    }

    #[test]
    fn under_a_key_one_row_may_stand_at_the_end_of_each_batch() {
        let mut checker = ChangelogChecker::new().unique_by(|row: &(u8, char)| row.0);
        let (a, b) = ((1, 'a'), (1, 'b'));
        checker.apply_batch([(Insert, a), (Insert, b), (Delete, a)]).unwrap();
        let copy = checker.apply_batch([(Insert, (2, 'x')), (Insert, b)]).unwrap_err().to_string();
        assert_eq!(copy, "after change 4 two rows or more stand under one key, 1: (1, 'b') x2");
        checker.apply_batch([(UpdateBefore, b)]).unwrap();
        let wrong = checker.apply_batch([(Delete, a), (Insert, a)]).unwrap_err();
        assert!(matches!(wrong, IllegalChange::NotStanding(NotStanding { position: 6, .. })));
    }
}
