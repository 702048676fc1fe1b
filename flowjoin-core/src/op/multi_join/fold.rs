//! The changes of a batch, folded: for each key, the rows that go and the rows that come.
//!
//! Nothing is told while a batch is taken in. Of a row that comes and goes within it, nothing is left; of a row that
//! is replaced several times, the first that stood and the last that stands. Then each key that was touched changes
//! once. So an update is one change, and no gap shows between its two halves.

use super::super::joined::Located;
use super::super::kernel::Pair;
use super::super::{Cx, Outbox};
use super::pairs::{Pairs, Rows};
use super::{COMBOS_MAX, MultiJoin};
use crate::change::RowKind;
use crate::key::Key;
use crate::state::{Place, RowId};
use crate::time::{EventTime, ProcTime};

/// The keys that a batch has touched. The lists of a key hold the rows that stay; those that go and come are here.
#[derive(Default)]
pub struct Folding {
    pub(super) groups: Vec<Group>,
    used: usize,
    // How many of them have been told.
    told: usize,
    input: usize,
}

/// What happens under one key.
#[derive(Default)]
pub struct Group {
    pub place: Option<Place>,
    pub hash: u64,
    pub pairs: Pairs,
    pub cause: Option<EventTime>,
    // The row that the first half of an update took back, until its second half comes.
    updating: bool,
    // Rows that go and are still in the list: where they are many they are taken out of it at once.
    leaving: Vec<RowId>,
}

impl Folding {
    /// Begins with the changes of an input.
    pub(super) fn begin(&mut self, input: usize) {
        self.input = input;
    }

    fn group(&mut self, place: Place, hash: u64) -> u16 {
        if self.used == self.groups.len() {
            self.groups.push(Group::default());
        }
        let group = &mut self.groups[self.used];
        group.place = Some(place);
        group.hash = hash;
        group.pairs.clear();
        group.cause = None;
        group.updating = false;
        self.used += 1;
        self.used as u16
    }

    /// Whether keys have been touched of which it has not been told what has changed.
    pub(super) fn is_pending(&self) -> bool {
        self.used > 0
    }

    /// Whether what has changed should be told before further keys are touched.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used >= KEYS_MAX
    }
}

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Takes in the rows of a block of an input that may update and take back, or whose partners need more than the
    /// product; returns false when the outbox is full.
    pub(super) fn fold_block(&mut self, input: usize, cx: &mut Cx<'_>) -> bool {
        while let Some(row) = self.coming.next() {
            let Located { hash, time, place, id, kind, is_null, .. } = row;
            if is_null {
                self.on_null_change(input, (id, time), kind, cx);
                continue;
            }
            let Some(place) = place else {
                self.passing.push((input, id));
                self.accounts[input].orphan += 1;
                continue;
            };
            if self.fold_update(input, place, &row, cx.now) {
                continue;
            }
            if kind.adds() {
                self.enter(input, place, (hash, id, time), cx.now);
                if !self.rows.has_identity(input) {
                    self.renew_equals((place, hash), input, id, cx.now);
                }
                self.fold_add(input, (place, hash), (id, time), kind);
            } else {
                self.passing.push((input, id));
                self.fold_retract(input, (place, hash), (id, time), kind);
            }
        }
        // Only between blocks do keys go that have no rows left.
        !self.folding.is_full() || self.unfold(cx.out)
    }

    pub(super) fn touch(&mut self, (place, hash): (Place, u64), time: EventTime) -> usize {
        let lists = self.table.at(place).0;
        let mut number = lists.touched();
        if number == 0 {
            number = self.folding.group(place, hash);
            lists.touch(number);
        }
        let group = &mut self.folding.groups[number as usize - 1];
        group.cause = Some(group.cause.map_or(time, |cause| cause.max(time)));
        number as usize - 1
    }

    fn fold_add(&mut self, input: usize, (place, hash): (Place, u64), (id, time): (RowId, EventTime), kind: RowKind) {
        let number = self.touch((place, hash), time);
        let updates = std::mem::take(&mut self.folding.groups[number].updating) && kind == RowKind::UpdateAfter;
        if self.rows.has_identity(input) {
            return self.fold_put(input, (place, hash), number, id);
        }
        let (pairs, rows) = (&mut self.folding.groups[number].pairs, &mut Rows { rows: &mut *self.rows, input });
        // A row that was taken back in this batch and comes again as it was is an update of nothing.
        // What had taken its place has come on its own then.
        if let Some(at) = pairs.that_goes(id, rows) {
            let other = pairs.replace(at, id, rows);
            if !other.is_missing() {
                pairs.push(Pair::added(other), rows);
            }
            return;
        }
        match pairs.last_that_goes() {
            Some(at) if updates => {
                pairs.replace(at, id, rows);
            }
            _ => pairs.push(Pair::added(id), rows),
        }
    }

    // Both halves of an update at once, where the key has one row of the input and has not been touched before; returns
    // whether that is so. It comes to the same as one half after the other, with less to look at.
    fn fold_update(&mut self, input: usize, place: Place, before: &Located, now: ProcTime) -> bool {
        if before.kind != RowKind::UpdateBefore || !self.spec.one_a_key[input] {
            return false;
        }
        let after = self.coming.block.get(self.coming.joined).copied();
        let Some(after) = after.filter(|after| after.kind == RowKind::UpdateAfter && after.place == before.place)
        else {
            return false;
        };
        let (lists, spill) = self.table.at(place);
        let (0, &([old], [])) = (lists.touched(), &lists.list(input, spill)) else { return false };
        let old = *old;
        lists.remove(input, old, spill);
        self.coming.joined += 1;
        let number = self.touch((place, after.hash), after.time.max(before.time));
        let rows = &mut Rows { rows: &mut *self.rows, input };
        self.folding.groups[number].pairs.push(Pair::updated(old, after.id), rows);
        self.passing.push((input, before.id));
        self.gone(input, old, true);
        self.enter(input, place, (after.hash, after.id, after.time), now);
        true
    }

    // A row of an input with a unique key takes the place of the one with its unique key.
    fn fold_put(&mut self, input: usize, (place, hash): (Place, u64), number: usize, id: RowId) {
        let (pairs, rows) = (&mut self.folding.groups[number].pairs, &mut Rows { rows: &mut *self.rows, input });
        if let Some(at) = pairs.that_comes(id, rows) {
            let before = pairs.replace(at, id, rows);
            return self.gone(input, before, false);
        }
        let standing = self.take_standing(input, (place, hash), number, id);
        let (pairs, rows) = (&mut self.folding.groups[number].pairs, &mut Rows { rows: &mut *self.rows, input });
        if let Some(old) = standing {
            pairs.push(Pair::updated(old, id), rows);
            return self.gone(input, old, false);
        }
        match pairs.that_goes(id, rows) {
            Some(at) => {
                pairs.replace(at, id, rows);
            }
            None => pairs.push(Pair::added(id), rows),
        }
    }

    fn fold_retract(
        &mut self,
        input: usize,
        (place, hash): (Place, u64),
        (id, time): (RowId, EventTime),
        kind: RowKind,
    ) {
        let number = self.touch((place, hash), time);
        let (pairs, rows) = (&mut self.folding.groups[number].pairs, &mut Rows { rows: &mut *self.rows, input });
        if let Some(at) = pairs.that_comes(id, rows) {
            // The second half of an update finds what goes at the end.
            let (new, goes) = pairs.retract(at, rows);
            if goes {
                self.folding.groups[number].updating = kind == RowKind::UpdateBefore;
            }
            return self.gone(input, new, true);
        }
        let Some(old) = self.take_standing(input, (place, hash), number, id) else {
            self.accounts[input].orphan += 1;
            return;
        };
        let group = &mut self.folding.groups[number];
        group.pairs.push(Pair::removed(old), &mut Rows { rows: &mut *self.rows, input });
        group.updating = kind == RowKind::UpdateBefore;
        self.gone(input, old, true);
    }

    // Takes the row out of a list that is the same as this one.
    fn take_standing(&mut self, input: usize, (place, hash): (Place, u64), number: usize, id: RowId) -> Option<RowId> {
        let rows = &mut self.rows;
        let old = match &mut self.index[input] {
            Some(index) => {
                let print = rows.print(input, id);
                let old = index.find(hash, print, |other| rows.same(input, other, id))?;
                index.remove(hash, print, old);
                // By the index it is not found again, so the list need not be looked through for each.
                let group = &mut self.folding.groups[number];
                if group.pairs.are_many() {
                    group.leaving.push(old);
                    return Some(old);
                }
                old
            }
            None => {
                let (lists, spill) = self.table.view(place);
                let (front, back) = lists.list(input, spill);
                front.iter().chain(back).copied().find(|&other| rows.same(input, other, id))?
            }
        };
        let (lists, spill) = self.table.at(place);
        lists.remove(input, old, spill);
        Some(old)
    }

    // Takes rows out of a list: one by one, or where they are many by putting those that stay in their places.
    fn take_out(&mut self, place: Place, input: usize, mut leaving: Vec<RowId>) {
        let (lists, spill) = self.table.at(place);
        if leaving.len() <= FEW_LEAVING {
            for id in leaving {
                lists.remove(input, id, spill);
            }
            return;
        }
        leaving.sort_unstable();
        let (front, back) = lists.list(input, spill);
        let all: Vec<RowId> = front.iter().chain(back).copied().collect();
        for &id in &all {
            // Each is the first one when its turn comes.
            lists.remove(input, id, spill);
        }
        for id in all.into_iter().filter(|id| leaving.binary_search(id).is_err()) {
            lists.push(input, id, spill);
        }
    }

    /// A row leaves that has come, by a retraction of its own or because another takes its place.
    pub(super) fn gone(&mut self, input: usize, id: RowId, by_retraction: bool) {
        let account = &mut self.accounts[input];
        if self.met.remove(input, id) {
            account.matched += u64::from(by_retraction);
        } else {
            account.open -= 1;
            account.retracted += 1 + u64::from(by_retraction);
        }
        self.drop_later(input, id);
    }

    /// Drops a row once the combinations that name it have been selected.
    pub(super) fn drop_later(&mut self, input: usize, id: RowId) {
        match self.leaving[input] {
            // Its id must not name another row while the calendar still has it.
            Some(_) => self.passing.push((input + N, id)),
            None => self.passing.push((input, id)),
        }
    }

    /// Notes a row of a key that goes by its expiry.
    pub(super) fn fold_expired(&mut self, (place, hash): (Place, u64), id: RowId, time: EventTime) {
        let number = self.touch((place, hash), time);
        let rows = &mut Rows { rows: &mut *self.rows, input: self.folding.input };
        self.folding.groups[number].pairs.push(Pair::removed(id), rows);
    }

    /// Tells what has changed under each key that was touched, until the outbox is full; returns whether that is all.
    pub(super) fn unfold(&mut self, out: &mut Outbox) -> bool {
        let input = self.folding.input;
        while self.folding.told < self.folding.used {
            if self.combos.len() >= COMBOS_MAX && !self.select(out) {
                return false;
            }
            let group = &mut self.folding.groups[self.folding.told];
            let (place, hash, cause) = (group.place.take(), group.hash, group.cause.unwrap_or(EventTime::MIN));
            let place = place.expect("a group has a place until it is told");
            let pairs = group.pairs.take();
            let leaving = std::mem::take(&mut group.leaving);
            self.table.at(place).0.touch(0);
            self.take_out(place, input, leaving);
            let before = self.combos.len();
            self.emit_change(place, input, &pairs, cause);
            if self.looks_at(hash) {
                self.take_waits(input, hash, before);
            }
            let (lists, spill) = self.table.at(place);
            for pair in pairs.iter().filter(|pair| !pair.new.is_missing()) {
                lists.push(input, pair.new, spill);
                if let Some(index) = &mut self.index[input] {
                    index.insert(hash, self.rows.print(input, pair.new), pair.new);
                }
            }
            // A retraction of what is not held tells nobody anything.
            if !pairs.is_empty() {
                self.announced(place, input);
            }
            self.mark_partners((place, hash), input, &pairs);
            if self.table.view(place).0.present() == 0 {
                self.forget(place);
            }
            self.folding.groups[self.folding.told].pairs.give_back(pairs);
            self.folding.told += 1;
        }
        (self.folding.used, self.folding.told) = (0, 0);
        self.select(out)
    }
}

/// Keys whose changes are folded together, to which those of one block may be added. Their entries and rows fit the
/// second-level cache, so that telling what has changed costs no second trip to memory.
const KEYS_MAX: usize = 384;

/// So many rows are taken out of a list one by one.
const FEW_LEAVING: usize = 16;
