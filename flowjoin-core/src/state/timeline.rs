//! Rows by key and time, on two sides or one.
//!
//! A side with one row holds it in the entry; a side with more is an ordered set beside the table, so that the rows of
//! a span of time are found by a seek and never by a scan of all rows of the key. Rows that have got all that they wait
//! for can be settled: they stand in a set of their own, and who looks for the others does not pass them.

mod keep;

use std::collections::BTreeSet;
use std::ops::{Bound, RangeInclusive};

use super::Ahead;
use super::RowId;
use super::table::{Guess, Place, Table};
use crate::key::Key;
use crate::time::EventTime;

/// The rows of inputs, two as a rule, by key and time.
#[derive(Debug)]
pub struct Timeline<K, const S: usize = 2> {
    table: Table<K, Sides<S>, Spill>,
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
struct Sides<const S: usize> {
    // A row, a spilled line (top bit set), or missing.
    ids: [RowId; S],
    // The time of the only row.
    times: [EventTime; S],
    // Whether the only row is settled.
    settled: [bool; S],
}

#[derive(Debug, Default)]
struct Spill {
    lines: Vec<Line>,
    free: Vec<u32>,
}

// The rows of one side of a key, where they are more than one.
#[derive(Debug, Default)]
struct Line {
    open: BTreeSet<At>,
    settled: BTreeSet<At>,
}

type At = (EventTime, RowId);

const SPILLED: u32 = 1 << 31;

fn spilled(id: RowId) -> Option<usize> {
    let raw = id.index() as u32;
    (!id.is_missing() && raw & SPILLED != 0).then_some((raw & !SPILLED) as usize)
}

fn range((from, to): (EventTime, EventTime)) -> RangeInclusive<At> {
    (from, RowId::new(0))..=(to, RowId::MISSING)
}

impl<const S: usize> Default for Sides<S> {
    fn default() -> Self {
        Sides { ids: [RowId::MISSING; S], times: [EventTime::MIN; S], settled: [false; S] }
    }
}

impl Line {
    fn insert(&mut self, at: At, settled: bool) {
        match settled {
            true => self.settled.insert(at),
            false => self.open.insert(at),
        };
    }

    // The only row that is left, if it is one, and whether it is settled.
    fn take_only(&mut self) -> Option<(At, bool)> {
        if self.open.len() + self.settled.len() != 1 {
            return None;
        }
        let open = self.open.pop_first().map(|at| (at, false));
        open.or_else(|| self.settled.pop_first().map(|at| (at, true)))
    }
}

impl<const S: usize> Sides<S> {
    #[inline]
    fn insert(&mut self, side: usize, (time, id): At, settled: bool, spill: &mut Spill) {
        let held = self.ids[side];
        if held.is_missing() {
            self.ids[side] = id;
            self.times[side] = time;
            self.settled[side] = settled;
        } else if let Some(line) = spilled(held) {
            spill.lines[line].insert((time, id), settled);
        } else {
            let number = spill.free.pop().unwrap_or_else(|| {
                spill.lines.push(Line::default());
                (spill.lines.len() - 1) as u32
            });
            let line = &mut spill.lines[number as usize];
            line.insert((self.times[side], held), self.settled[side]);
            line.insert((time, id), settled);
            self.ids[side] = RowId::new(SPILLED | number);
        }
    }

    fn remove(&mut self, side: usize, at: At, spill: &mut Spill) {
        let Some(number) = spilled(self.ids[side]) else {
            self.ids[side] = RowId::MISSING;
            return;
        };
        let line = &mut spill.lines[number];
        let _ = line.open.remove(&at) || line.settled.remove(&at);
        if let Some(((time, id), settled)) = line.take_only() {
            (self.times[side], self.ids[side], self.settled[side]) = (time, id, settled);
            spill.free.push(number as u32);
        }
    }

    fn contains(&self, side: usize, at: At, spill: &Spill) -> bool {
        match spilled(self.ids[side]) {
            Some(line) => spill.lines[line].open.contains(&at) || spill.lines[line].settled.contains(&at),
            None => self.ids[side] == at.1,
        }
    }

    // The time of the only row of a side, if it has one and that lies in a span.
    #[inline]
    fn only(&self, side: usize, (from, to): (EventTime, EventTime)) -> Option<EventTime> {
        let time = self.times[side];
        (!self.ids[side].is_missing() && from <= time && time <= to).then_some(time)
    }

    #[inline]
    fn within(&self, side: usize, span: (EventTime, EventTime), spill: &Spill, found: &mut Vec<RowId>) {
        match spilled(self.ids[side]) {
            Some(_) if span.0 > span.1 => {}
            Some(line) => found.extend(spill.lines[line].open.range(range(span)).map(|&(_, id)| id)),
            None if self.settled[side] => {}
            None => found.extend(self.only(side, span).map(|_| self.ids[side])),
        }
    }

    fn is_empty(&self) -> bool {
        self.ids.iter().all(|id| id.is_missing())
    }
}

impl<K: Key, const S: usize> Default for Timeline<K, S> {
    fn default() -> Self {
        Timeline { table: Table::default() }
    }
}

impl<K: Key, const S: usize> Timeline<K, S> {
    /// Begins a run of look-ups; `hash` tells that of the row so many places after the first, if there is one.
    #[inline]
    pub fn look_ahead(&self, hash: impl Fn(usize) -> Option<u64>) -> Ahead {
        Ahead::begin(&self.table, hash)
    }

    /// The guess for the row of a run whose turn it is; `hash` tells that of the row so many places after it.
    #[inline]
    pub fn guess(&self, ahead: &mut Ahead, hash: impl Fn(usize) -> Option<u64>) -> Guess {
        ahead.next(&self.table, hash)
    }

    /// The place of a key, for what is then asked of its rows; one without rows is to get one at once.
    #[inline]
    pub fn upsert(&mut self, hash: u64, key: K, guess: Guess) -> Place {
        self.table.upsert_guessed(hash, key, guess)
    }

    /// The place of a key, if it has rows.
    #[inline]
    pub fn find(&self, hash: u64, key: &K) -> Option<Place> {
        self.table.find(hash, key)
    }

    /// Puts a row in on one side of the key at a place.
    #[inline]
    pub fn insert(&mut self, place: Place, (side, time, id): (Side, EventTime, RowId), settled: bool) {
        let (sides, spill) = self.table.at(place);
        sides.insert(side.index(), (time, id), settled, spill);
    }

    /// Finds the rows of one side with a time from `from` to `to`, both included, in order of time; where rows settle,
    /// those that are not settled.
    #[inline]
    pub fn within(&self, hash: u64, key: &K, side: Side, span: (EventTime, EventTime), found: &mut Vec<RowId>) {
        if let Some(place) = self.table.find(hash, key) {
            let (sides, spill) = self.table.view(place);
            sides.within(side.index(), span, spill, found);
        }
    }

    /// Settles the rows of one side within a span that the test holds for, and finds them in order of time. A row that
    /// is settled is not looked at here again. Returns the time and the number of the first.
    pub fn settle_within(
        &mut self,
        place: Place,
        side: Side,
        span: (EventTime, EventTime),
        mut test: impl FnMut(RowId) -> bool,
        found: &mut Vec<RowId>,
    ) -> Option<(EventTime, RowId)> {
        let (sides, spill) = self.table.at(place);
        let side = side.index();
        let Some(number) = spilled(sides.ids[side]) else {
            let (time, id) = (sides.only(side, span)?, sides.ids[side]);
            if sides.settled[side] || !test(id) {
                return None;
            }
            sides.settled[side] = true;
            found.push(id);
            return Some((time, id));
        };
        if span.0 > span.1 {
            return None;
        }
        let Line { open, settled } = &mut spill.lines[number];
        let settling: Vec<At> = open.range(range(span)).copied().filter(|&(_, id)| test(id)).collect();
        for at in &settling {
            open.remove(at);
            settled.insert(*at);
            found.push(at.1);
        }
        settling.first().copied()
    }

    /// The earliest row of one side within a span that is settled and that the test holds for, with its time.
    pub fn first_settled(
        &self,
        place: Place,
        side: Side,
        span: (EventTime, EventTime),
        mut test: impl FnMut(RowId) -> bool,
    ) -> Option<(EventTime, RowId)> {
        let (sides, spill) = self.table.view(place);
        let side = side.index();
        match spilled(sides.ids[side]) {
            Some(_) if span.0 > span.1 => None,
            Some(line) => spill.lines[line].settled.range(range(span)).copied().find(|&(_, id)| test(id)),
            None => {
                let (time, id) = (sides.only(side, span)?, sides.ids[side]);
                (sides.settled[side] && test(id)).then_some((time, id))
            }
        }
    }

    /// Finds the last row of one side at or before a time, and the first after it.
    pub fn around(&self, hash: u64, key: &K, side: Side, time: EventTime, found: &mut Vec<RowId>) {
        let Some(place) = self.table.find(hash, key) else { return };
        let (sides, spill) = self.table.view(place);
        let id = sides.ids[side.index()];
        match spilled(id) {
            Some(line) => {
                let open = &spill.lines[line].open;
                let after = (Bound::Excluded((time, RowId::MISSING)), Bound::Unbounded);
                found.extend(open.range(..=(time, RowId::MISSING)).next_back().map(|&(_, id)| id));
                found.extend(open.range(after).next().map(|&(_, id)| id));
            }
            None => found.extend(Some(id).filter(|id| !id.is_missing())),
        }
    }

    /// Gives a row that is not settled, found by its hash, time and id, another time.
    pub fn move_to(&mut self, hash: u64, side: Side, (time, id): (EventTime, RowId), to: EventTime) {
        let side = side.index();
        let place = self.table.find_by(hash, |sides, spill| sides.contains(side, (time, id), spill));
        let Some(place) = place else { return };
        let (sides, spill) = self.table.at(place);
        match spilled(sides.ids[side]) {
            Some(line) => {
                spill.lines[line].open.remove(&(time, id));
                spill.lines[line].open.insert((to, id));
            }
            None => sides.times[side] = to,
        }
    }

    /// The key of a row that is held, found by its hash, time and id.
    pub fn key_of(&self, hash: u64, side: Side, (time, id): (EventTime, RowId)) -> Option<&K> {
        let place = self.table.find_by(hash, |sides, spill| sides.contains(side.index(), (time, id), spill))?;
        Some(self.table.key_at(place))
    }

    /// Takes a row out, found by its hash, time and id; returns whether it was there.
    pub fn remove(&mut self, hash: u64, side: Side, (time, id): (EventTime, RowId), guess: Guess) -> bool {
        let is_it = |sides: &Sides<S>, spill: &Spill| sides.contains(side.index(), (time, id), spill);
        let place = self.table.find_by_guessed(hash, guess, is_it);
        let Some(place) = place else { return false };
        let (sides, spill) = self.table.at(place);
        sides.remove(side.index(), (time, id), spill);
        if sides.is_empty() {
            self.table.remove(place);
        }
        true
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
        let of_line = |line: &Line| (line.open.len() + line.settled.len()) * size_of::<At>() * 3 / 2;
        self.table.bytes(|spill| {
            let lines: usize = spill.lines.iter().map(of_line).sum();
            (lines + spill.lines.capacity() * size_of::<Line>()) as u64
        })
    }
}

impl<K: Key> Timeline<K, 2> {
    /// Puts a row in on one side, and finds the rows of the other side as [`within`](Self::within) does.
    #[inline]
    pub fn insert_and_find(
        &mut self,
        (hash, key, guess): (u64, K, Guess),
        (side, time, id): (Side, EventTime, RowId),
        span: (EventTime, EventTime),
        found: &mut Vec<RowId>,
    ) {
        let place = self.table.upsert_guessed(hash, key, guess);
        let (sides, spill) = self.table.at(place);
        sides.within(side.other().index(), span, spill, found);
        sides.insert(side.index(), (time, id), false, spill);
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
        let mut line: Timeline<u8> = Timeline::default();
        for (id, time) in [(0, 30), (1, 10), (2, 20), (3, 20)] {
            let row = (Side::Left, at(time), RowId::new(id));
            line.insert_and_find((3, 1, Guess::default()), row, (at(0), at(99)), &mut Vec::new());
            assert_eq!(found(&mut line, Side::Left, time, time).last(), Some(&(id as usize)));
        }
        assert_eq!(found(&mut line, Side::Left, 10, 20), [1, 2, 3]);
        assert_eq!(found(&mut line, Side::Left, 11, 19), [0usize; 0]);
        assert_eq!(found(&mut line, Side::Left, 25, 5), [0usize; 0]);
        assert_eq!(found(&mut line, Side::Right, 0, 99), [0usize; 0]);
        let mut ids = Vec::new();
        line.insert_and_find((3, 1, Guess::default()), (Side::Right, at(5), RowId::new(0)), (at(20), at(30)), &mut ids);
        assert_eq!(ids, [RowId::new(2), RowId::new(3), RowId::new(0)]);
    }

    // Were all rows of the key looked at for each, this would take hours.
    #[test]
    fn a_key_with_a_million_rows_is_as_quick_as_any() {
        let mut line: Timeline<u8> = Timeline::default();
        let rows = 1_000_000u32;
        // In no order, and each once.
        let time_of = |n: u32| i64::from(n) * 7_919 % i64::from(rows);
        let mut ids = Vec::new();
        for n in 0..rows {
            let time = time_of(n);
            let near = (at(time - 2), at(time + 2));
            line.insert_and_find((3, 1, Guess::default()), (Side::Left, at(time), RowId::new(n)), near, &mut ids);
            if n % 64 == 0 {
                line.within(3, &1, Side::Left, near, &mut ids);
                assert!(!ids.is_empty() && ids.len() <= 5);
                ids.clear();
            }
        }
        for n in 0..rows {
            let time = time_of(n);
            assert!(line.remove(3, Side::Left, (at(time), RowId::new(n)), Guess::default()));
        }
        assert!(line.is_empty());
    }

    #[test]
    fn an_entry_goes_with_its_last_row() {
        let mut line: Timeline<u8> = Timeline::default();
        for id in 0..3 {
            line.insert_and_find(
                (3, 1, Guess::default()),
                (Side::Left, at(7), RowId::new(id)),
                (at(0), at(0)),
                &mut Vec::new(),
            );
        }
        for id in [1, 0] {
            assert!(line.remove(3, Side::Left, (at(7), RowId::new(id)), Guess::default()));
            assert!(!line.remove(3, Side::Left, (at(7), RowId::new(id)), Guess::default()));
        }
        assert_eq!(found(&mut line, Side::Left, 0, 9), [2]);
        assert!(line.remove(3, Side::Left, (at(7), RowId::new(2)), Guess::default()) && line.is_empty());
    }

    #[test]
    fn rows_that_are_settled_are_found_apart_from_the_others() {
        let mut line: Timeline<u8> = Timeline::default();
        let place = line.upsert(3, 1, Guess::default());
        let settle = |line: &mut Timeline<u8>, from, to, odd: bool| {
            let mut ids = Vec::new();
            let test = |id: RowId| !odd || id.index() % 2 == 1;
            let first = line.settle_within(place, Side::Left, (at(from), at(to)), test, &mut ids);
            assert_eq!(first.map(|(_, id)| id), ids.first().copied());
            ids.iter().map(|id| id.index()).collect::<Vec<_>>()
        };
        line.insert(place, (Side::Left, at(10), RowId::new(0)), false);
        assert_eq!((settle(&mut line, 11, 20, false), settle(&mut line, 0, 10, true)), (vec![], vec![]));
        assert_eq!((settle(&mut line, 0, 10, false), settle(&mut line, 0, 10, false)), (vec![0], vec![]));
        for id in 1..5 {
            line.insert(place, (Side::Left, at(10 * i64::from(id)), RowId::new(id)), id == 4);
        }
        // Row 0 stays settled as others come, and 4 came so.
        assert_eq!(settle(&mut line, 0, 30, true), [1, 3]);
        assert_eq!(found(&mut line, Side::Left, 0, 99), [2]);
        let first = |line: &Timeline<u8>, from, to, least| {
            line.first_settled(place, Side::Left, (at(from), at(to)), |id| id.index() >= least)
                .map(|(_, id)| id.index())
        };
        assert_eq!((first(&line, 0, 99, 0), first(&line, 0, 99, 2), first(&line, 31, 39, 0)), (Some(0), Some(3), None));
        for (id, time) in [(0, 10), (1, 10), (4, 40), (2, 20)] {
            assert!(line.remove(3, Side::Left, (at(time), RowId::new(id)), Guess::default()));
        }
        assert_eq!((first(&line, 0, 99, 0), found(&mut line, Side::Left, 0, 99)), (Some(3), vec![]));
    }

    #[test]
    fn the_rows_around_a_time_are_the_last_one_at_or_before_it_and_the_first_after() {
        let mut line: Timeline<u8, 1> = Timeline::default();
        let around = |line: &Timeline<u8, 1>, time| {
            let mut ids = Vec::new();
            line.around(3, &1, Side::Left, at(time), &mut ids);
            ids.iter().map(|id| id.index()).collect::<Vec<_>>()
        };
        assert_eq!(around(&line, 7), [0usize; 0]);
        let place = line.upsert(3, 1, Guess::default());
        line.insert(place, (Side::Left, at(50), RowId::new(7)), false);
        assert_eq!((around(&line, 49), around(&line, 51)), (vec![7], vec![7]));
        line.insert(place, (Side::Left, at(20), RowId::new(8)), false);
        line.insert(place, (Side::Left, at(90), RowId::new(9)), false);
        assert_eq!(
            [19, 20, 49, 50, 90].map(|time| around(&line, time)),
            [vec![8], vec![8, 7], vec![8, 7], vec![7, 9], vec![9]]
        );
        line.move_to(3, Side::Left, (at(50), RowId::new(7)), at(30));
        assert_eq!(around(&line, 30), [7, 9]);
        assert!(line.remove(3, Side::Left, (at(30), RowId::new(7)), Guess::default()));
    }
}
