//! What a timeline keeps over a crash: under each key its rows, in order of time.
//!
//! A key that has changed is written whole. What else is known of a row is written and read by its owner, who says when
//! that has changed.

use super::{At, Side, Sides, Spill, Timeline, spilled};
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Fields, ReadFields, RowId, Sealed, Sealing};
use crate::time::EventTime;

impl<const S: usize> Sides<S> {
    // The rows of a side, in order of time and number, and whether each is settled.
    fn rows(&self, side: Side, spill: &Spill) -> Vec<(At, bool)> {
        let side = side.index();
        let Some(line) = spilled(self.ids[side]) else {
            let only = ((self.times[side], self.ids[side]), self.settled[side]);
            return Some(only).filter(|((_, id), _)| !id.is_missing()).into_iter().collect();
        };
        let line = &spill.lines[line];
        let open = line.open.iter().map(|&at| (at, false));
        let mut rows: Vec<(At, bool)> = open.chain(line.settled.iter().map(|&at| (at, true))).collect();
        rows.sort_unstable();
        rows
    }
}

impl<K: Key, const S: usize> Timeline<K, S> {
    /// Notes from now on which keys change, so that they can be sealed. Those that are there count as sealed.
    pub fn keep(&mut self) {
        self.table.keep();
    }

    /// What its owner knows of a row has changed, which is found by its hash, time and id.
    pub fn on_change(&mut self, hash: u64, side: Side, at: (EventTime, RowId)) {
        if !self.table.is_kept() {
            return;
        }
        let is_it = |sides: &Sides<S>, spill: &Spill| sides.contains(side.index(), at, spill);
        if let Some(place) = self.table.find_by(hash, is_it) {
            self.table.at(place);
        }
    }

    /// What its owner knows of some row of a key has changed.
    pub fn on_change_of(&mut self, hash: u64, key: &K) {
        self.table.note(hash, key);
    }

    /// Tells the keys that have changed or gone since the last time; `write` appends all else that is known of a row.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn seal(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        mut write: impl FnMut(Side, RowId, &mut Vec<u8>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.table.seal(part, into, |table, place, out| {
            let (sides, spill) = table.view(place);
            for side in sides_of::<S>() {
                let rows = sides.rows(side, spill);
                Fields(out).number(rows.len() as u64);
                for ((time, id), settled) in rows {
                    Fields(out).signed(time.as_millis()).number(u64::from(settled));
                    write(side, id, out)?;
                }
            }
            Ok(())
        })
    }

    /// Takes a key back; `read` is told the side, the time and the hash of each row, and reads what was written of it.
    ///
    /// # Errors
    /// If it is none of a timeline, or cannot be read.
    pub fn take_back(
        &mut self,
        sealed: Sealed<'_>,
        mut read: impl FnMut(Side, EventTime, u64, &mut ReadFields<'_>) -> Result<RowId, OpError>,
    ) -> Result<(), OpError> {
        let key: K = sealed.key_as()?;
        let hash = key.stable_hash(&mut Vec::new());
        let place = self.table.upsert(hash, key);
        let mut from = ReadFields(sealed.value);
        for side in sides_of::<S>() {
            for _ in 0..from.number()? {
                let (time, settled) = (EventTime::from_millis(from.signed()?), from.number()? == 1);
                let id = read(side, time, hash, &mut from)?;
                self.insert(place, (side, time, id), settled);
            }
        }
        Ok(())
    }
}

fn sides_of<const S: usize>() -> impl Iterator<Item = Side> {
    [Side::Left, Side::Right].into_iter().take(S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Changes, Guess};
    use crate::time::ProcTime;

    fn at(t: i64) -> EventTime {
        EventTime::from_millis(t)
    }

    // The changes of an epoch; what is known of a row is its number.
    fn sealed(line: &mut Timeline<u64>) -> Changes {
        let mut changes = Changes::default();
        let write = |_: Side, id: RowId, out: &mut Vec<u8>| {
            Fields(out).number(id.index() as u64);
            Ok(())
        };
        line.seal(1, &mut Sealing::new(&mut changes, 0, 0, ProcTime::default()), write).unwrap();
        changes
    }

    fn put(line: &mut Timeline<u64>, key: u64, side: Side, (time, id): (i64, u32), settled: bool) {
        let place = line.upsert(key.stable_hash(&mut Vec::new()), key, Guess::default());
        line.insert(place, (side, at(time), RowId::new(id)), settled);
    }

    #[test]
    fn rows_come_back_in_order_on_their_sides_and_settled_as_they_were() {
        let mut line = Timeline::default();
        line.keep();
        for (id, time) in [(0, 30), (1, 10), (2, 20), (3, 20)] {
            put(&mut line, 1, Side::Left, (time, id), id == 3);
        }
        put(&mut line, 1, Side::Right, (-5, 7), false);
        put(&mut line, 2, Side::Right, (40, 8), true);
        let changes = sealed(&mut line);
        let mut back: Timeline<u64> = Timeline::default();
        let mut seen = Vec::new();
        for (key, value) in changes.iter() {
            let piece = Sealed::of(key, value.expect("nothing has gone")).unwrap();
            let read = |side: Side, time: EventTime, _: u64, from: &mut ReadFields<'_>| {
                seen.push((side.index(), time.as_millis(), from.number()?));
                Ok(RowId::new(seen.len() as u32))
            };
            back.take_back(piece, read).unwrap();
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 10, 1), (0, 20, 2), (0, 20, 3), (0, 30, 0), (1, -5, 7), (1, 40, 8)]);
        let count = |key: u64, side| {
            let hash = key.stable_hash(&mut Vec::new());
            let (mut open, span) = (Vec::new(), (at(-99), at(99)));
            back.within(hash, &key, side, span, &mut open);
            let place = back.find(hash, &key).unwrap();
            (open.len(), back.first_settled(place, side, span, |_| true).map(|(time, _)| time.as_millis()))
        };
        assert_eq!((count(1, Side::Left), count(1, Side::Right)), ((3, Some(20)), (1, None)));
        assert_eq!(count(2, Side::Right), (0, Some(40)));
    }

    #[test]
    fn a_key_is_told_of_when_its_rows_change_or_what_is_known_of_them() {
        let mut line = Timeline::default();
        line.keep();
        put(&mut line, 1, Side::Left, (10, 0), false);
        put(&mut line, 2, Side::Left, (20, 1), false);
        assert_eq!((sealed(&mut line).len(), sealed(&mut line).len()), (2, 0));
        let hash = 1u64.stable_hash(&mut Vec::new());
        line.within(hash, &1, Side::Left, (at(0), at(99)), &mut Vec::new());
        line.on_change(hash, Side::Right, (at(10), RowId::new(0)));
        line.on_change_of(hash, &3);
        assert_eq!(sealed(&mut line).len(), 0, "there are no such rows");
        line.on_change(hash, Side::Left, (at(10), RowId::new(0)));
        assert_eq!(sealed(&mut line).len(), 1);
        line.on_change_of(hash, &1);
        assert_eq!(sealed(&mut line).len(), 1);
        // One goes that was sealed, and another that was not.
        put(&mut line, 3, Side::Left, (30, 2), false);
        for (key, at_id) in [(1u64, (at(10), RowId::new(0))), (3, (at(30), RowId::new(2)))] {
            assert!(line.remove(key.stable_hash(&mut Vec::new()), Side::Left, at_id, Guess::default()));
        }
        let gone: Vec<bool> = sealed(&mut line).iter().map(|(_, value)| value.is_none()).collect();
        assert_eq!(gone, [true]);
    }
}
