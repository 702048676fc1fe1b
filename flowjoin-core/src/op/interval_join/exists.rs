//! Semi and anti joins: only whether a row has a partner counts, and a row that has one is settled.
//!
//! Rows of both sides are settled with their first partner and stand apart from then on. A row that comes settles those
//! of the other side that are in its reach and are not settled yet, and asks of the others only whether there is one: so
//! each row is visited once, however many share its key. Where there is a condition besides, pairs that were found not
//! to fulfil it are all that is looked at in vain.

use super::super::joined::Combo;
use super::super::kernel::Kind;
use super::{IntervalJoin, in_order};
use crate::change::RowKind;
use crate::key::Key;
use crate::state::{Guess, RowId, Side};
use crate::time::EventTime;

impl<K: Key> IntervalJoin<K> {
    /// Takes a row in, if it stays, and tells what has found its first partner; returns whether the row has one.
    pub(super) fn settle_partners(
        &mut self,
        side: Side,
        (hash, key, guess): (u64, K, Guess),
        (id, time): (RowId, EventTime),
        stays: bool,
    ) -> bool {
        let span = self.spec.bounds.partners(side, time);
        let place = match stays {
            true => Some(self.line.upsert(hash, key, guess)),
            false => self.line.find(hash, &key),
        };
        let Some(place) = place else { return false };
        let (rows, condition) = (&self.rows, self.spec.condition);
        let holds = |other: RowId| !condition || rows.holds(1, &in_order(side, id, other));
        let new = self.line.settle_within(place, side.other(), span, holds, &mut self.found);
        // A left row is as old as its earliest partner; of a right one it only has to be known whether it has any.
        let settled = match new {
            Some(_) if side == Side::Right => None,
            Some((until, _)) => self.line.first_settled(place, side.other(), (span.0, until), holds),
            None => self.line.first_settled(place, side.other(), span, holds),
        };
        let earliest = new.into_iter().chain(settled).min();
        if stays {
            self.line.insert(place, (side, time, id), earliest.is_some());
        }
        let cause = time.max(self.oldest_late());
        let is_told = self.spec.kinds[1] == Kind::Exists;
        for index in 0..self.found.len() {
            let other = self.found[index];
            self.meet_first(side.other(), other, cause);
            if is_told && side == Side::Right {
                self.combos.push(Combo { ids: [other, id], kind: RowKind::Insert, cause });
            }
        }
        if let Some((_, other)) = earliest
            && is_told
            && side == Side::Left
        {
            self.combos.push(Combo { ids: [id, other], kind: RowKind::Insert, cause });
        }
        // A row that settles no other has found the one that was.
        if self.found.is_empty() {
            self.found.extend(earliest.map(|(_, other)| other));
        }
        earliest.is_some()
    }
}
