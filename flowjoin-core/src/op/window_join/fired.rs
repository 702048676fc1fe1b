//! The rows of a key in a window that has fired, for rows that come late.
//!
//! What a late row changes follows from the rows of the other inputs. With two inputs it is noted besides which rows have
//! a partner in this window: where a partner only has to exist or not, a row that has one is not looked at again, and
//! where there are conditions it is known whether a gap stands without asking for all pairs anew.

use std::collections::BTreeMap;

use crate::key::Key;
use crate::state::{Place, RowId, Runs, Table};

/// The rows of a key in a window that has fired.
#[derive(Debug)]
pub struct FiredRows<const N: usize> {
    sides: [Side; N],
}

// Those that have a partner come first, where that is noted.
#[derive(Debug, Default)]
struct Side {
    rows: Vec<RowId>,
    settled: usize,
}

impl<const N: usize> Default for FiredRows<N> {
    fn default() -> Self {
        FiredRows { sides: std::array::from_fn(|_| Side::default()) }
    }
}

impl<const N: usize> FiredRows<N> {
    /// These rows, of which it is not noted which have a partner.
    pub fn of(lists: [Vec<RowId>; N]) -> Self {
        FiredRows { sides: lists.map(|rows| Side { rows, settled: 0 }) }
    }

    /// The lists, but of one input a row at most: for those who only ask whether it is empty.
    pub fn lists_beside(&self, input: usize) -> [Runs<'_>; N] {
        std::array::from_fn(|other| {
            let rows = &self.sides[other].rows[..];
            (if other == input { &rows[..rows.len().min(1)] } else { rows }, &[][..])
        })
    }

    /// The lists.
    pub fn lists(&self) -> [Runs<'_>; N] {
        std::array::from_fn(|input| (&self.sides[input].rows[..], &[][..]))
    }

    /// A row comes, of which it is not noted whether it has a partner.
    pub fn push(&mut self, input: usize, id: RowId) {
        self.sides[input].rows.push(id);
    }

    /// A row of one of two inputs comes. Tells each partner that it finds, and whether it is the first of that one; of those
    /// that have one already, all or just as many as it takes to know that there is one. Returns whether there is any.
    pub fn meet(
        &mut self,
        (input, id): (usize, RowId),
        all: bool,
        mut holds: impl FnMut(RowId) -> bool,
        mut tell: impl FnMut(RowId, bool),
    ) -> bool {
        let Side { rows, settled } = &mut self.sides[1 - input];
        let before = *settled;
        let mut met = false;
        for at in before..rows.len() {
            let other = rows[at];
            if holds(other) {
                rows.swap(at, *settled);
                *settled += 1;
                met = true;
                tell(other, true);
            }
        }
        for &other in &rows[..before] {
            if met && !all {
                break;
            }
            if holds(other) {
                met = true;
                tell(other, false);
            }
        }
        let own = &mut self.sides[input];
        own.rows.push(id);
        if met {
            let last = own.rows.len() - 1;
            own.rows.swap(last, own.settled);
            own.settled += 1;
        }
        met
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        (self.sides.iter().map(|side| side.rows.capacity()).sum::<usize>() * size_of::<RowId>()) as u64
    }
}

/// Windows that have fired and have got rows since, by key. What is held of one is forgotten when that is over.
#[derive(Debug)]
pub struct Revisited<K: Key, const N: usize> {
    table: Table<K, BTreeMap<i128, FiredRows<N>>, ()>,
    keys: BTreeMap<i128, Vec<Place>>,
    rows: u64,
}

impl<K: Key, const N: usize> Default for Revisited<K, N> {
    fn default() -> Self {
        Revisited { table: Table::default(), keys: BTreeMap::new(), rows: 0 }
    }
}

impl<K: Key, const N: usize> Revisited<K, N> {
    /// The rows of a key in the window with this last time, which are read when they are asked for the first time; one more
    /// is going to come.
    pub fn of(&mut self, last: i128, (hash, key): (u64, &K), read: impl FnOnce() -> FiredRows<N>) -> &mut FiredRows<N> {
        let place = self.table.find(hash, key).unwrap_or_else(|| self.table.upsert(hash, key.clone()));
        self.rows += 1;
        self.table.at(place).0.entry(last).or_insert_with(|| {
            self.keys.entry(last).or_default().push(place);
            let rows = read();
            self.rows += rows.sides.iter().map(|side| side.rows.len() as u64).sum::<u64>();
            rows
        })
    }

    /// Forgets all windows that end before a time.
    pub fn forget_before(&mut self, time: i128) {
        while let Some(first) = self.keys.first_entry().filter(|first| *first.key() < time) {
            let (last, places) = first.remove_entry();
            for place in places {
                let windows = self.table.at(place).0;
                let gone = windows.remove(&last);
                self.rows -= gone.map_or(0, |gone| gone.sides.iter().map(|side| side.rows.len() as u64).sum());
                if windows.is_empty() {
                    self.table.remove(place);
                }
            }
        }
    }

    /// Bytes taken; the vectors are counted as if they were three quarters full.
    pub fn bytes(&self) -> u64 {
        let keys: usize = self.keys.values().map(Vec::capacity).sum();
        let windows = (keys * (size_of::<Place>() + size_of::<(i128, FiredRows<N>)>())) as u64;
        self.table.bytes(|()| 0) + windows + self.rows * size_of::<RowId>() as u64 * 4 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A row of input 1 is a partner of those of input 0 that it is above.
    fn meet(rows: &mut FiredRows<2>, input: usize, id: u32, all: bool) -> (bool, Vec<(usize, bool)>, usize) {
        let (mut told, mut asked) = (Vec::new(), 0);
        let holds = |other: RowId| {
            asked += 1;
            if input == 1 { other.index() < id as usize } else { (id as usize) < other.index() }
        };
        let met = rows.meet((input, RowId::new(id)), all, holds, |other, first| told.push((other.index(), first)));
        told.sort_unstable();
        (met, told, asked)
    }

    #[test]
    fn a_row_that_has_a_partner_is_asked_again_only_for_all_pairs() {
        let mut rows = FiredRows::default();
        for id in [1, 2, 9] {
            assert_eq!(meet(&mut rows, 0, id, false), (false, vec![], 0));
        }
        assert_eq!(meet(&mut rows, 1, 5, false), (true, vec![(1, true), (2, true)], 3));
        // Only 9 has none; it has to be asked, and one of the others to know that there is a partner.
        assert_eq!(meet(&mut rows, 1, 6, false), (true, vec![(1, false)], 2));
        assert_eq!(meet(&mut rows, 1, 7, true), (true, vec![(1, false), (2, false)], 3));
        assert_eq!(meet(&mut rows, 1, 0, true), (false, vec![], 3));
        // 0 of input 1 is still without a partner, and finds none here.
        assert_eq!(meet(&mut rows, 0, 8, true), (false, vec![], 4));
        assert_eq!(meet(&mut rows, 1, 10, false).1, [(8, true), (9, true)]);
    }

    #[test]
    fn windows_are_read_once_and_forgotten_when_they_are_over() {
        let mut revisited: Revisited<u8, 2> = Revisited::default();
        let mut read = 0;
        for (last, key) in [(9, 1u8), (19, 1), (9, 2), (9, 1)] {
            let rows = revisited.of(last, (u64::from(key), &key), || {
                read += 1;
                FiredRows::of([vec![RowId::new(1)], vec![]])
            });
            rows.push(1, RowId::new(2));
        }
        assert_eq!((read, revisited.rows, revisited.table.len()), (3, 7, 2));
        revisited.forget_before(10);
        assert_eq!((revisited.rows, revisited.table.len(), revisited.keys.len()), (2, 1, 1));
        revisited.forget_before(20);
        assert_eq!((revisited.rows, revisited.table.len()), (0, 0));
    }
}
