//! Rows by key and time, on two sides.
//!
//! A side with one row holds it in the entry; a side with more is an ordered set beside the table, so that the rows of
//! a span of time are found by a seek and never by a scan of all rows of the key.

use std::collections::BTreeSet;

use super::RowId;
use super::table::{Place, Table};
use crate::key::Key;
use crate::time::EventTime;

/// The rows of two inputs by key and time.
#[derive(Debug)]
pub struct Timeline<K> {
    table: Table<K, Sides, Spill>,
}

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The first input.
    Left,
    /// The second input.
    Right,
}

impl Side {
    /// 0 for left, 1 for right.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other side.
    pub const fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[derive(Debug)]
struct Sides {
    // A row, a spilled set (top bit set), or missing.
    ids: [RowId; 2],
    // The time of the only row.
    times: [EventTime; 2],
}

#[derive(Debug, Default)]
struct Spill {
    sets: Vec<BTreeSet<(EventTime, RowId)>>,
    free: Vec<u32>,
}

const SPILLED: u32 = 1 << 31;

fn spilled(id: RowId) -> Option<usize> {
    let raw = id.index() as u32;
    (!id.is_missing() && raw & SPILLED != 0).then_some((raw & !SPILLED) as usize)
}

impl Default for Sides {
    fn default() -> Self {
        Sides { ids: [RowId::MISSING; 2], times: [EventTime::MIN; 2] }
    }
}

impl Sides {
    #[inline]
    fn insert(&mut self, side: usize, time: EventTime, id: RowId, spill: &mut Spill) {
        let held = self.ids[side];
        if held.is_missing() {
            self.ids[side] = id;
            self.times[side] = time;
        } else if let Some(set) = spilled(held) {
            spill.sets[set].insert((time, id));
        } else {
            let set = spill.free.pop().unwrap_or_else(|| {
                spill.sets.push(BTreeSet::new());
                (spill.sets.len() - 1) as u32
            });
            spill.sets[set as usize].extend([(self.times[side], held), (time, id)]);
            self.ids[side] = RowId::new(SPILLED | set);
        }
    }

    fn remove(&mut self, side: usize, time: EventTime, id: RowId, spill: &mut Spill) {
        let Some(index) = spilled(self.ids[side]) else {
            self.ids[side] = RowId::MISSING;
            return;
        };
        let set = &mut spill.sets[index];
        set.remove(&(time, id));
        if set.len() == 1
            && let Some((time, id)) = set.pop_first()
        {
            (self.times[side], self.ids[side]) = (time, id);
            spill.free.push(index as u32);
        }
    }

    fn contains(&self, side: usize, time: EventTime, id: RowId, spill: &Spill) -> bool {
        match spilled(self.ids[side]) {
            Some(set) => spill.sets[set].contains(&(time, id)),
            None => self.ids[side] == id,
        }
    }

    #[inline]
    fn within(&self, side: usize, from: EventTime, to: EventTime, spill: &Spill, found: &mut Vec<RowId>) {
        let held = self.ids[side];
        if held.is_missing() {
            return;
        }
        match spilled(held) {
            Some(_) if from > to => {}
            Some(set) => {
                let range = (from, RowId::new(0))..=(to, RowId::MISSING);
                found.extend(spill.sets[set].range(range).map(|&(_, id)| id));
            }
            None if self.times[side] >= from && self.times[side] <= to => found.push(held),
            None => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.ids.iter().all(|id| id.is_missing())
    }
}

impl<K: Key> Default for Timeline<K> {
    fn default() -> Self {
        Timeline { table: Table::default() }
    }
}

impl<K: Key> Timeline<K> {
    /// Asks the processor for the place of this hash, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.table.prefetch(hash);
    }

    /// Asks the processor for the rows of this hash, once its place in the index is near.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        self.table.prefetch_entry(hash);
    }

    /// Finds the rows of one side with a time from `from` to `to`, both included, in order of time.
    #[inline]
    pub fn within(&mut self, hash: u64, key: &K, side: Side, span: (EventTime, EventTime), found: &mut Vec<RowId>) {
        if let Some(place) = self.table.find(hash, key) {
            let (sides, spill) = self.table.at(place);
            sides.within(side.index(), span.0, span.1, spill, found);
        }
    }

    /// Puts a row in on one side, and finds the rows of the other side as [`within`](Self::within) does.
    #[inline]
    pub fn insert_and_find(
        &mut self,
        hash: u64,
        key: K,
        (side, time, id): (Side, EventTime, RowId),
        span: (EventTime, EventTime),
        found: &mut Vec<RowId>,
    ) {
        let place = self.table.upsert(hash, key);
        let (sides, spill) = self.table.at(place);
        sides.within(side.other().index(), span.0, span.1, spill, found);
        sides.insert(side.index(), time, id, spill);
    }

    /// Takes a row out, found by its hash, time and id; returns whether it was there.
    pub fn remove(&mut self, hash: u64, side: Side, time: EventTime, id: RowId) -> bool {
        let place = self.table.find_by(hash, |sides, spill| sides.contains(side.index(), time, id, spill));
        let Some(place) = place else { return false };
        self.remove_at(place, side, time, id);
        true
    }

    fn remove_at(&mut self, place: Place, side: Side, time: EventTime, id: RowId) {
        let (sides, spill) = self.table.at(place);
        sides.remove(side.index(), time, id, spill);
        if sides.is_empty() {
            self.table.remove(place);
        }
    }

    /// How many keys are held.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes taken; an ordered set is counted as if its leaves were two thirds full.
    pub fn bytes(&self) -> u64 {
        let of_set = |set: &BTreeSet<(EventTime, RowId)>| set.len() * size_of::<(EventTime, RowId)>() * 3 / 2;
        self.table.bytes(|spill| {
            let sets: usize = spill.sets.iter().map(of_set).sum();
            (sets + spill.sets.capacity() * size_of::<BTreeSet<(EventTime, RowId)>>()) as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(t: i64) -> EventTime {
        EventTime::from_millis(t)
    }

    fn found(line: &mut Timeline<u8>, side: Side, from: i64, to: i64) -> Vec<usize> {
        let mut ids = Vec::new();
        line.within(3, &1, side, (at(from), at(to)), &mut ids);
        ids.iter().map(|id| id.index()).collect()
    }

    #[test]
    fn rows_are_found_by_time_with_both_ends_included() {
        let mut line = Timeline::default();
        for (id, time) in [(0, 30), (1, 10), (2, 20), (3, 20)] {
            let row = (Side::Left, at(time), RowId::new(id));
            line.insert_and_find(3, 1, row, (at(0), at(99)), &mut Vec::new());
            assert_eq!(found(&mut line, Side::Left, time, time).last(), Some(&(id as usize)));
        }
        assert_eq!(found(&mut line, Side::Left, 10, 20), [1, 2, 3]);
        assert_eq!(found(&mut line, Side::Left, 11, 19), [0usize; 0]);
        assert_eq!(found(&mut line, Side::Left, 25, 5), [0usize; 0]);
        assert_eq!(found(&mut line, Side::Right, 0, 99), [0usize; 0]);
        let mut ids = Vec::new();
        line.insert_and_find(3, 1, (Side::Right, at(5), RowId::new(0)), (at(20), at(30)), &mut ids);
        assert_eq!(ids, [RowId::new(2), RowId::new(3), RowId::new(0)]);
    }

    // Were all rows of the key looked at for each, this would take hours.
    #[test]
    fn a_key_with_a_million_rows_is_as_quick_as_any() {
        let mut line = Timeline::default();
        let rows = 1_000_000u32;
        // In no order, and each once.
        let time_of = |n: u32| i64::from(n) * 7_919 % i64::from(rows);
        let mut ids = Vec::new();
        for n in 0..rows {
            let time = time_of(n);
            let near = (at(time - 2), at(time + 2));
            line.insert_and_find(3, 1u8, (Side::Left, at(time), RowId::new(n)), near, &mut ids);
            if n % 64 == 0 {
                line.within(3, &1, Side::Left, near, &mut ids);
                assert!(!ids.is_empty() && ids.len() <= 5);
                ids.clear();
            }
        }
        for n in 0..rows {
            let time = time_of(n);
            assert!(line.remove(3, Side::Left, at(time), RowId::new(n)));
        }
        assert!(line.is_empty());
    }

    #[test]
    fn an_entry_goes_with_its_last_row() {
        let mut line = Timeline::default();
        for id in 0..3 {
            line.insert_and_find(3, 1u8, (Side::Left, at(7), RowId::new(id)), (at(0), at(0)), &mut Vec::new());
        }
        for id in [1, 0] {
            assert!(line.remove(3, Side::Left, at(7), RowId::new(id)));
            assert!(!line.remove(3, Side::Left, at(7), RowId::new(id)));
        }
        assert_eq!(found(&mut line, Side::Left, 0, 9), [2]);
        assert!(line.remove(3, Side::Left, at(7), RowId::new(2)) && line.is_empty());
    }
}
