//! Groups by key: what a window holds, as dense lists, one an input and key.
//!
//! The rows of a window are read twice. First each finds its group in an index, and is counted; then the lists stand at
//! their places in one vector of ids, and each row is put at the end of its list. All memory is kept from one window to
//! the next. Groups and lists are in the order in which their rows came.

use super::table::prefetch;
use super::{Logged, RowId, Runs};
use crate::key::Key;

/// Rows by key, of as many inputs as `N`.
#[derive(Debug, Default)]
pub struct Grouping<const N: usize> {
    index: Vec<Mark>,
    groups: Vec<Group<N>>,
    // The group of each row.
    of: Vec<u32>,
    ids: Vec<RowId>,
}

// A place of the index: free, or the tag of a hash and the number of its group.
#[derive(Clone, Copy, Debug)]
struct Mark {
    tag: u32,
    group: u32,
}

impl Mark {
    const FREE: Mark = Mark { tag: 0, group: u32::MAX };

    fn is_free(self) -> bool {
        self.group == u32::MAX
    }
}

#[derive(Clone, Debug)]
struct Group<const N: usize> {
    tag: u32,
    // Its first row: which slice, and where in it.
    slice: u32,
    row: u32,
    // Where its lists begin.
    begin: u32,
    // How many rows each has; then where each ends.
    lists: [u32; N],
}

impl<const N: usize> Grouping<N> {
    /// Groups these rows; what was grouped before is forgotten.
    pub fn fill<K: Key>(&mut self, slices: &[&[Logged<K>]]) {
        self.clear();
        for (number, slice) in slices.iter().enumerate() {
            for (place, row) in slice.iter().enumerate() {
                if let Some(next) = slice.get(place + AHEAD) {
                    prefetch(&self.index[home(next.hash as u32, self.index.len())]);
                }
                let group = self.group_of(slices, row, (number, place));
                self.groups[group as usize].lists[usize::from(row.input)] += 1;
                self.of.push(group);
            }
        }
        let mut begin = 0;
        for group in &mut self.groups {
            group.begin = begin;
            for list in &mut group.lists {
                begin += std::mem::replace(list, begin);
            }
        }
        self.ids.resize(begin as usize, RowId::MISSING);
        let rows = slices.iter().flat_map(|slice| slice.iter());
        for (row, &group) in rows.zip(&self.of) {
            let end = &mut self.groups[group as usize].lists[usize::from(row.input)];
            self.ids[*end as usize] = row.id;
            *end += 1;
        }
    }

    fn clear(&mut self) {
        // Windows are about alike: the next one will have about as many keys.
        let places = (self.groups.len() * 2).next_power_of_two().max(SMALLEST);
        self.index.clear();
        self.index.resize(places, Mark::FREE);
        self.groups.clear();
        self.of.clear();
        self.ids.clear();
    }

    #[inline]
    fn group_of<K: Key>(&mut self, slices: &[&[Logged<K>]], row: &Logged<K>, at: (usize, usize)) -> u32 {
        let tag = row.hash as u32;
        let mask = self.index.len() - 1;
        let mut place = home(tag, self.index.len());
        loop {
            let mark = self.index[place];
            if mark.is_free() {
                break;
            }
            if mark.tag == tag {
                let group = &self.groups[mark.group as usize];
                if slices[group.slice as usize][group.row as usize].key == row.key {
                    return mark.group;
                }
            }
            place = (place + 1) & mask;
        }
        let group = self.groups.len() as u32;
        self.index[place] = Mark { tag, group };
        self.groups.push(Group { tag, slice: at.0 as u32, row: at.1 as u32, begin: 0, lists: [0; N] });
        if self.groups.len() * 2 > self.index.len() {
            self.grow();
        }
        group
    }

    #[cold]
    fn grow(&mut self) {
        let places = self.index.len() * 2;
        self.index.clear();
        self.index.resize(places, Mark::FREE);
        for (number, group) in self.groups.iter().enumerate() {
            let mut place = home(group.tag, places);
            while !self.index[place].is_free() {
                place = (place + 1) & (places - 1);
            }
            self.index[place] = Mark { tag: group.tag, group: number as u32 };
        }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The lists of a group, one an input.
    #[inline]
    pub fn lists(&self, group: usize) -> [Runs<'_>; N] {
        let Group { begin, lists, .. } = &self.groups[group];
        let mut from = *begin as usize;
        std::array::from_fn(|input| {
            let to = lists[input] as usize;
            (&self.ids[std::mem::replace(&mut from, to)..to], &[][..])
        })
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let numbers = (self.of.capacity() + self.ids.capacity()) * 4 + self.index.capacity() * size_of::<Mark>();
        (numbers + self.groups.capacity() * size_of::<Group<N>>()) as u64
    }
}

#[inline]
fn home(tag: u32, places: usize) -> usize {
    tag as usize & (places - 1)
}

const SMALLEST: usize = 16;
const AHEAD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn each_key_has_the_rows_of_each_input_in_order(
            slices in prop::collection::vec(prop::collection::vec((0..40u16, 0..3u8), 0..60), 0..4), same_hash: bool,
        ) {
            let mut model: BTreeMap<u16, [Vec<RowId>; 3]> = BTreeMap::new();
            let mut next = 0;
            let mut log = |&(key, input): &(u16, u8)| {
                let id = RowId::new(next);
                next += 1;
                model.entry(key).or_default()[usize::from(input)].push(id);
                let hash = if same_hash { 7 } else { u64::from(key) * 0x9E37_79B9 };
                Logged { hash, key, id, input }
            };
            let logs: Vec<Vec<_>> = slices.iter().map(|slice| slice.iter().map(&mut log).collect()).collect();
            let logs: Vec<&[_]> = logs.iter().map(Vec::as_slice).collect();
            let mut grouping = Grouping::<3>::default();
            // What was there before is forgotten.
            for _ in 0..2 {
                grouping.fill(&logs);
                let mut found: Vec<_> = (0..grouping.len()).map(|at| grouping.lists(at).map(|list| list.0.to_vec())).collect();
                let mut expected: Vec<_> = model.values().cloned().collect();
                found.sort();
                expected.sort();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
