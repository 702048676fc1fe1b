//! Rows by pane: a pane is a stretch of time in which all rows belong to the same windows.
//!
//! A pane is a log. A row is put at its end and nothing is looked up, as its key matters only when a window fires, which
//! takes in all panes of its time; and a pane goes as a whole, however many keys it has and however quiet they are. A row
//! stands in one pane, whatever the number of its windows.
//!
//! Where rows of one key are looked for in a pane that has fired already, it gets an index, once.

use std::collections::BTreeMap;

use super::RowId;
use crate::key::Key;

/// A row in a pane.
#[derive(Clone, Debug)]
pub struct Logged<K> {
    /// The hash of its key.
    pub hash: u64,
    /// Its key.
    pub key: K,
    /// Where it is.
    pub id: RowId,
    /// Its input.
    pub input: u8,
}

/// Where a row stands in a pane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    pane: u32,
    row: u32,
}

/// The rows of a pane.
#[derive(Debug)]
pub struct Pane<K> {
    rows: Vec<Logged<K>>,
    index: Option<Chains>,
}

/// All panes that hold rows, by the last time that lies in each. That time can be beyond those a row can have.
#[derive(Debug)]
pub struct Panes<K> {
    by_last: BTreeMap<i128, usize>,
    panes: Vec<Pane<K>>,
    free: Vec<usize>,
    // Rows mostly come into the pane into which the one before came.
    hint: Option<(i128, usize)>,
}

// The rows of a pane by the hash of their key: the newest row of each bucket, and for each row the one before it there.
#[derive(Debug)]
struct Chains {
    newest: Vec<u32>,
    before: Vec<u32>,
}

impl<K> Default for Panes<K> {
    fn default() -> Self {
        Panes { by_last: BTreeMap::new(), panes: Vec::new(), free: Vec::new(), hint: None }
    }
}

impl<K: Key> Panes<K> {
    /// Puts a row into the pane that ends with this time; says where it stands while the pane is there.
    #[inline]
    pub fn log(&mut self, last: i128, row: Logged<K>) -> Standing {
        let place = match self.hint {
            Some((at, place)) if at == last => place,
            _ => self.place(last),
        };
        Standing { pane: place as u32, row: self.panes[place].log(row) }
    }

    /// The row that stands there.
    pub fn row_at(&self, standing: Standing) -> &Logged<K> {
        &self.panes[standing.pane as usize].rows[standing.row as usize]
    }

    #[cold]
    fn place(&mut self, last: i128) -> usize {
        let place = match self.by_last.get(&last) {
            Some(&place) => place,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.panes.push(Pane { rows: Vec::new(), index: None });
                    self.panes.len() - 1
                });
                self.by_last.insert(last, place);
                place
            }
        };
        self.hint = Some((last, place));
        place
    }

    /// The end of the earliest pane that ends at or after this time.
    pub fn first_from(&self, time: i128) -> Option<i128> {
        self.by_last.range(time..).next().map(|(&last, _)| last)
    }

    /// The rows of the panes that end in a span of time, both ends included, a slice a pane, in order of time.
    pub fn rows(&self, from: i128, to: i128) -> impl Iterator<Item = &[Logged<K>]> {
        self.by_last.range(from..=to).map(|(_, &place)| &self.panes[place].rows[..])
    }

    /// Puts the rows of one key, in the panes that end in a span of time, into lists by input, in order of arrival
    /// within a pane.
    pub fn rows_of(&mut self, (from, to): (i128, i128), hash: u64, key: &K, lists: &mut [Vec<RowId>]) {
        for (_, &place) in self.by_last.range(from..=to) {
            self.panes[place].rows_of(hash, key, lists);
        }
    }

    /// The rows of the pane that ends with this time, in order of arrival.
    pub fn rows_at(&self, last: i128) -> &[Logged<K>] {
        self.by_last.get(&last).map_or(&[], |&place| &self.panes[place].rows)
    }

    /// Lets the pane go that ends with this time.
    pub fn remove(&mut self, last: i128) {
        let Some(place) = self.by_last.remove(&last) else { return };
        self.hint = None;
        let pane = &mut self.panes[place];
        pane.index = None;
        pane.rows.clear();
        // The next pane will need about as much.
        if self.free.len() >= SPARE {
            pane.rows = Vec::new();
        }
        self.free.push(place);
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let of = |pane: &Pane<K>| {
            let index = pane.index.as_ref().map_or(0, |index| (index.newest.capacity() + index.before.capacity()) * 4);
            pane.rows.capacity() * size_of::<Logged<K>>() + index
        };
        (self.panes.iter().map(of).sum::<usize>() + self.panes.capacity() * size_of::<Pane<K>>()) as u64
    }
}

impl<K: Key> Pane<K> {
    #[inline]
    fn log(&mut self, row: Logged<K>) -> u32 {
        if let Some(index) = &mut self.index {
            index.push(row.hash);
        }
        self.rows.push(row);
        (self.rows.len() - 1) as u32
    }

    fn rows_of(&mut self, hash: u64, key: &K, lists: &mut [Vec<RowId>]) {
        let index = self.index.get_or_insert_with(|| Chains::of(self.rows.iter().map(|row| row.hash)));
        let begin: Vec<usize> = lists.iter().map(Vec::len).collect();
        let mut next = index.newest_of(hash);
        while next != END {
            let row = &self.rows[next as usize];
            if row.hash == hash && row.key == *key {
                lists[usize::from(row.input)].push(row.id);
            }
            next = index.before[next as usize];
        }
        for (list, begin) in lists.iter_mut().zip(begin) {
            list[begin..].reverse();
        }
    }
}

impl Chains {
    fn of(hashes: impl ExactSizeIterator<Item = u64>) -> Chains {
        let buckets = (hashes.len() * 2).next_power_of_two().max(16);
        let mut chains = Chains { newest: vec![END; buckets], before: Vec::with_capacity(hashes.len()) };
        hashes.for_each(|hash| chains.push(hash));
        chains
    }

    // As many rows come late as come in time only if something is badly wrong, so the buckets do not grow.
    fn push(&mut self, hash: u64) {
        let bucket = hash as usize & (self.newest.len() - 1);
        self.before.push(self.newest[bucket]);
        self.newest[bucket] = (self.before.len() - 1) as u32;
    }

    fn newest_of(&self, hash: u64) -> u32 {
        self.newest[hash as usize & (self.newest.len() - 1)]
    }
}

const END: u32 = u32::MAX;

/// Empty panes that keep their memory for the next ones.
const SPARE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: u8, id: u32, input: u8) -> Logged<u8> {
        // All keys share few buckets.
        Logged { hash: u64::from(key % 2), key, id: RowId::new(id), input }
    }

    fn of(panes: &mut Panes<u8>, from: i128, to: i128, key: u8) -> [Vec<usize>; 2] {
        let mut lists = [Vec::new(), Vec::new()];
        panes.rows_of((from, to), u64::from(key % 2), &key, &mut lists);
        lists.map(|list| list.iter().map(|id| id.index()).collect())
    }

    #[test]
    fn the_rows_of_a_key_are_found_in_the_panes_of_a_span_whenever_they_came() {
        let mut panes = Panes::default();
        for (last, key, id, input) in [(19, 1, 0, 0), (9, 1, 1, 0), (9, 3, 2, 1), (9, 1, 3, 1), (9, 1, 4, 0)] {
            panes.log(last, row(key, id, input));
        }
        assert_eq!(of(&mut panes, 0, 9, 1), [vec![1, 4], vec![3]]);
        panes.log(9, row(1, 5, 0));
        assert_eq!(of(&mut panes, 9, 19, 1), [vec![1, 4, 5, 0], vec![3]]);
        assert!(of(&mut panes, 10, 18, 1).iter().all(Vec::is_empty));
        assert_eq!(
            (panes.first_from(i128::MIN), panes.first_from(10), panes.first_from(20)),
            (Some(9), Some(19), None)
        );
    }

    #[test]
    fn a_pane_goes_as_a_whole() {
        let mut panes = Panes::default();
        for id in 0..5 {
            panes.log(9, row(1, id, 0));
        }
        let gone: Vec<_> = panes.rows_at(9).iter().map(|row| row.id.index()).collect();
        panes.remove(9);
        assert!(panes.rows_at(9).is_empty());
        assert_eq!((gone, panes.first_from(i128::MIN)), (vec![0, 1, 2, 3, 4], None));
        panes.log(9, row(1, 7, 0));
        assert_eq!(of(&mut panes, 9, 9, 1), [vec![7], vec![]]);
    }
}
