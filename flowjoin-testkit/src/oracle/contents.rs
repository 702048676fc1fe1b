//! What an input holds when changes have been applied to it: a bag of rows, or one row a unique key.

use std::fmt;
use std::sync::Arc;

use flowjoin_core::RowKind;

use super::relation::Relation;

/// The rows of one input, change by change, however well or ill the changes are formed.
///
/// In a *bag* a row is added whatever else is there, and a retraction takes one equal row, the newest. Under a *unique
/// key* a row replaces, in its place, the one of its unique key, whether it comes as `+I` or as `+U` and though that was
/// not taken back; a retraction takes the row of its unique key, whatever its other fields. The retraction of a row that
/// is not held does nothing, and counts as an orphan.
///
/// ```
/// use flowjoin_core::RowKind::{Delete, Insert, UpdateAfter};
/// use flowjoin_testkit::oracle::Contents;
///
/// let changes = [(Insert, (1, "new")), (UpdateAfter, (1, "paid")), (Delete, (2, "new")), (Insert, (1, "paid"))];
/// let bag = Contents::bag().after(changes);
/// assert_eq!((bag.rows(), bag.orphans()), (&[(1, "new"), (1, "paid"), (1, "paid")][..], 1));
/// let table = Contents::unique_by(|row: &(u64, &str)| row.0).after(changes);
/// assert_eq!((table.rows(), table.orphans()), (&[(1, "paid")][..], 1));
/// ```
#[derive(Clone)]
pub struct Contents<T> {
    rows: Vec<T>,
    orphans: u64,
    unique: Option<Arc<SameUnique<T>>>,
}

type SameUnique<T> = dyn Fn(&T, &T) -> bool + Send + Sync;

/// What a change did to what is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// The row is one more.
    Added,
    /// The row has taken the place of this one, which had its unique key.
    Replaced(T),
    /// This row was taken back.
    Removed(T),
    /// A row was to be taken back that is not held: nothing happened.
    Orphan,
}

impl<T: PartialEq> Contents<T> {
    /// Nothing yet, in which equal rows will be kept one beside the other.
    pub fn bag() -> Contents<T> {
        Contents { rows: Vec::new(), orphans: 0, unique: None }
    }

    /// Nothing yet, in which there will be one row a unique key.
    ///
    /// The rows of one key of a join are held apart from those of another. So where a unique key can move from one key
    /// to another without being taken back, let the key of the join be a part of it.
    pub fn unique_by<U: PartialEq>(unique: impl Fn(&T) -> U + Send + Sync + 'static) -> Contents<T> {
        let is_same = move |one: &T, other: &T| unique(one) == unique(other);
        Contents { unique: Some(Arc::new(is_same)), ..Contents::bag() }
    }

    /// Applies one change.
    pub fn apply(&mut self, kind: RowKind, row: T) -> Effect<T> {
        let place = match &self.unique {
            Some(is_same) => self.rows.iter().rposition(|held| is_same(held, &row)),
            None if kind.adds() => None,
            None => self.rows.iter().rposition(|held| *held == row),
        };
        match (kind.adds(), place) {
            (true, None) => {
                self.rows.push(row);
                Effect::Added
            }
            (true, Some(place)) => Effect::Replaced(std::mem::replace(&mut self.rows[place], row)),
            (false, Some(place)) => Effect::Removed(self.rows.remove(place)),
            (false, None) => {
                self.orphans += 1;
                Effect::Orphan
            }
        }
    }

    /// Applies changes in order.
    pub fn apply_all(&mut self, changes: impl IntoIterator<Item = (RowKind, T)>) {
        for (kind, row) in changes {
            self.apply(kind, row);
        }
    }

    /// The same, as what the contents are after these changes.
    pub fn after(mut self, changes: impl IntoIterator<Item = (RowKind, T)>) -> Contents<T> {
        self.apply_all(changes);
        self
    }

    /// The rows that are held, in the order in which they came; one that replaced another has its place.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// How many retractions were of rows that were not held.
    pub fn orphans(&self) -> u64 {
        self.orphans
    }

    /// The rows as one side of a join, each with its key; a key of none is null.
    pub fn keyed<K>(&self, key: impl Fn(&T) -> Option<K>) -> Relation<K, T>
    where
        T: Clone,
    {
        Relation::of(&self.rows, key)
    }

    /// The table that these rows are under a primary key: of each key the newest row.
    ///
    /// When that row is taken back, the one before it is seen again.
    ///
    /// ```
    /// use flowjoin_core::RowKind::{Delete, Insert};
    /// use flowjoin_testkit::oracle::Contents;
    ///
    /// let mut owners = Contents::bag();
    /// owners.apply_all([(Insert, ("house", "Ann")), (Insert, ("house", "Bob")), (Insert, ("boat", "Cy"))]);
    /// assert_eq!(owners.newest_by(|row| row.0), [("house", "Bob"), ("boat", "Cy")]);
    /// owners.apply(Delete, ("house", "Bob"));
    /// assert_eq!(owners.newest_by(|row| row.0), [("house", "Ann"), ("boat", "Cy")]);
    /// ```
    pub fn newest_by<P: PartialEq>(&self, primary_key: impl Fn(&T) -> P) -> Vec<T>
    where
        T: Clone,
    {
        let is_newest = |place: &usize| {
            let key = primary_key(&self.rows[*place]);
            self.rows[place + 1..].iter().all(|later| primary_key(later) != key)
        };
        (0..self.rows.len()).filter(is_newest).map(|place| self.rows[place].clone()).collect()
    }
}

impl<T: fmt::Debug> fmt::Debug for Contents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.unique.is_some() { "unique" } else { "bag" };
        f.debug_struct("Contents").field(name, &self.rows).field("orphans", &self.orphans).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{Added, Orphan, Removed, Replaced};
    use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};

    fn effects(mut held: Contents<(u8, char)>, changes: &[(RowKind, (u8, char))]) -> Vec<Effect<(u8, char)>> {
        changes.iter().map(|&(kind, row)| held.apply(kind, row)).collect()
    }

    #[test]
    fn a_bag_counts_copies_and_takes_equal_rows_only() {
        let (a, b) = ((1, 'a'), (1, 'b'));
        let changes = [(Insert, a), (UpdateAfter, a), (Delete, b), (UpdateBefore, a), (Delete, a), (Delete, a)];
        let told = effects(Contents::bag(), &changes);
        assert_eq!(told, [Added, Added, Orphan, Removed(a), Removed(a), Orphan]);
    }

    #[test]
    fn under_a_unique_key_a_row_replaces_and_a_retraction_needs_the_key_only() {
        let (a, b) = ((1, 'a'), (1, 'b'));
        let changes = [(Insert, a), (Insert, a), (UpdateAfter, b), (Delete, a), (UpdateBefore, b), (UpdateAfter, a)];
        let told = effects(Contents::unique_by(|row: &(u8, char)| row.0), &changes);
        assert_eq!(told, [Added, Replaced(a), Replaced(a), Removed(b), Orphan, Added]);
    }

    #[test]
    fn a_row_that_replaces_another_has_its_place_among_those_of_a_primary_key() {
        let table = Contents::unique_by(|row: &(u8, char, u8)| row.1);
        let table = table.after([(Insert, (1, 'a', 0)), (Insert, (1, 'b', 0)), (UpdateAfter, (1, 'a', 5))]);
        assert_eq!(table.newest_by(|row| row.0), [(1, 'b', 0)]);
        assert_eq!(table.after([(Delete, (1, 'b', 9))]).newest_by(|row| row.0), [(1, 'a', 5)]);
    }

    #[test]
    fn of_equal_rows_the_newest_is_taken_back() {
        let bag = Contents::bag().after([(Insert, (1, 'a')), (Insert, (1, 'b')), (Insert, (1, 'a'))]);
        assert_eq!(bag.after([(Delete, (1, 'a'))]).newest_by(|row| row.0), [(1, 'b')]);
    }
}
