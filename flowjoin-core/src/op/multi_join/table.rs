//! Inputs that are tables: the join takes the changes of a table's source itself.
//!
//! The join holds the one row of each key, so that it is the table: a row that is put takes the place of the one that
//! stands, a delete takes that away. A change without a key changes nothing.

use super::super::joined::{Located, table_change};
use super::super::kernel::Pair;
use super::super::{Cx, Outbox};
use super::MultiJoin;
use super::pairs::Rows;
use crate::key::Key;
use crate::state::{Place, RowId};
use crate::time::EventTime;

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Takes in the changes of a block; returns false when the outbox is full.
    pub(super) fn fold_table(&mut self, input: usize, cx: &mut Cx<'_>) -> bool {
        while let Some(change) = self.coming.next() {
            let Located { hash, time, place, id, kind, is_null, .. } = change;
            match (place, kind) {
                _ if is_null => self.on_null_key(input, id),
                (Some(place), table_change::PUT) => {
                    self.enter(input, place, (hash, id, time), cx.now);
                    self.put(input, (place, hash), (id, time));
                }
                (Some(place), _) if self.take_away(input, (place, hash), time, true) => {}
                _ => self.accounts[input].orphan += 1,
            }
        }
        !self.folding.is_full() || self.unfold(cx.out)
    }

    fn on_null_key(&mut self, input: usize, row: RowId) {
        self.accounts[input].null_key += 1;
        if !row.is_missing() {
            self.rows.discard(input, &[row]);
        }
    }

    fn put(&mut self, input: usize, (place, hash): (Place, u64), (id, time): (RowId, EventTime)) {
        let number = self.touch((place, hash), time);
        if self.folding.groups[number].pairs.only().is_some() {
            let rows = &mut Rows { rows: &mut *self.rows, input };
            let before = self.folding.groups[number].pairs.replace(0, id, rows);
            if !before.is_missing() {
                self.gone(input, before, false);
            }
            return;
        }
        let old = self.take_first(input, place);
        let rows = &mut Rows { rows: &mut *self.rows, input };
        match old {
            Some(old) => {
                self.folding.groups[number].pairs.push(Pair::updated(old, id), rows);
                self.gone(input, old, false);
            }
            None => self.folding.groups[number].pairs.push(Pair::added(id), rows),
        }
    }

    // Takes the row of a key away, by a change of its own or with all others; returns whether there was one.
    fn take_away(&mut self, input: usize, at: (Place, u64), time: EventTime, by_retraction: bool) -> bool {
        let number = self.touch(at, time);
        let pairs = &mut self.folding.groups[number].pairs;
        let rows = &mut Rows { rows: &mut *self.rows, input };
        let old = if let Some(pair) = pairs.only() {
            if pair.new.is_missing() {
                return false;
            }
            pairs.retract(0, rows).0
        } else {
            let Some(old) = self.take_first(input, at.0) else { return false };
            let rows = &mut Rows { rows: &mut *self.rows, input };
            self.folding.groups[number].pairs.push(Pair::removed(old), rows);
            old
        };
        self.gone(input, old, by_retraction);
        true
    }

    fn take_first(&mut self, input: usize, place: Place) -> Option<RowId> {
        let (lists, spill) = self.table.at(place);
        let old = lists.list(input, spill).0.first().copied()?;
        lists.remove(input, old, spill);
        Some(old)
    }

    /// All rows of the table go. Whatever that changes is told at once.
    pub(super) fn truncate(&mut self, input: usize, time: EventTime, out: &mut Outbox) {
        self.accounts[input].matched += 1;
        let limited = out.limit(false);
        self.unfold(out);
        for place in self.table.places() {
            if self.table.view(place).0.present() >> input & 1 == 1 {
                self.take_away(input, (place, 0), time, false);
            }
            if self.folding.is_full() {
                self.unfold(out);
            }
        }
        self.unfold(out);
        out.limit(limited);
    }
}
