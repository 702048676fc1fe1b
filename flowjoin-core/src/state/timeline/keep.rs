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
        if self.table.is_kept()
            && let Some(place) = self.table.find(hash, key)
        {
            self.table.at(place);
        }
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
