//! Rows with null keys: they match nothing, so that each is on its own.
//!
//! Where all other inputs may be empty such a row comes out padded at once. A fact that did is done with, unless it is taken
//! back when it expires; a row of an input that changes is kept, since it may be taken back or replaced, and only what
//! stands is.

use super::super::Cx;
use super::super::joined::Combo;
use super::MultiJoin;
use crate::account::Reason;
use crate::change::RowKind;
use crate::key::Key;
use crate::state::RowId;
use crate::time::EventTime;

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// A fact with a null key has come.
    pub(super) fn on_null(&mut self, input: usize, (id, time): (RowId, EventTime), cx: &mut Cx<'_>) {
        self.accounts[input].null_key += 1;
        if !self.spec.stands_alone(input) {
            return self.rows.unmatched(input, &[id], Reason::NullKey, self.frontier, cx.out);
        }
        self.say_alone(input, id, RowKind::Insert, time);
        if self.nulls[input].is_some() {
            let print = self.rows.print(input, id);
            self.keep_null(input, (id, time), print, cx);
        } else {
            self.passing.push((input, id));
        }
    }

    /// A change of a row with a null key has come.
    pub(super) fn on_null_change(
        &mut self,
        input: usize,
        (id, time): (RowId, EventTime),
        kind: RowKind,
        cx: &mut Cx<'_>,
    ) {
        if self.nulls[input].is_none() {
            if kind.adds() {
                return self.on_null(input, (id, time), cx);
            }
            self.accounts[input].null_key += 1;
            return self.rows.discard(input, &[id]);
        }
        let print = self.rows.print(input, id);
        let held = match &self.nulls[input] {
            Some(nulls) if !kind.adds() || self.rows.has_identity(input) => {
                nulls.find(0, print, |other| self.rows.same(input, other, id))
            }
            _ => None,
        };
        if let (Some(nulls), Some(held)) = (&mut self.nulls[input], held) {
            nulls.remove(0, print, held);
            self.drop_later(input, held);
        }
        if !kind.adds() {
            self.passing.push((input, id));
            match held {
                Some(held) => self.say_alone(input, held, RowKind::Delete, time),
                None => {
                    self.accounts[input].orphan += 1;
                    return;
                }
            }
        } else {
            if let Some(held) = held {
                self.say_alone(input, held, RowKind::UpdateBefore, time);
            }
            self.say_alone(input, id, if held.is_some() { RowKind::UpdateAfter } else { RowKind::Insert }, time);
            self.keep_null(input, (id, time), print, cx);
        }
        self.accounts[input].null_key += 1;
    }

    fn keep_null(&mut self, input: usize, (id, time): (RowId, EventTime), print: u64, cx: &mut Cx<'_>) {
        if let Some(nulls) = &mut self.nulls[input] {
            nulls.insert(0, print, id);
        }
        if let Some(leaving) = &mut self.leaving[input] {
            leaving.enter(0, (id, time), cx.now);
        }
    }

    /// The time of a row is over that stands under no key; returns whether it is one with a null key.
    pub(super) fn expire_null(&mut self, input: usize, id: RowId) -> bool {
        if !self.rows.holds_row(input, id) {
            return false;
        }
        let print = self.rows.print(input, id);
        let Some(nulls) = &mut self.nulls[input] else { return false };
        nulls.remove(0, print, id);
        if self.spec.expiry_retracts(input) {
            self.say_alone(input, id, RowKind::Delete, self.frontier);
        }
        self.passing.push((input, id));
        true
    }

    fn say_alone(&mut self, input: usize, id: RowId, kind: RowKind, cause: EventTime) {
        let mut ids = [RowId::MISSING; N];
        ids[input] = id;
        self.combos.push(Combo { ids, kind, cause });
    }
}
