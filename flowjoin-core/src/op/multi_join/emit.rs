//! What comes out: combinations out of the kernel, as far as they were not said before, and the rows made of them.

use std::ops::Range;

use super::super::conditional;
use super::super::joined::Combo;
use super::super::kernel::{Out, Pair};
use super::super::product;
use super::super::{Cx, Outbox};
use super::said::{Said, Told};
use super::{COMBOS_MAX, MultiJoin};
use crate::change::RowKind;
use crate::key::Key;
use crate::state::{Place, RowId, Runs};
use crate::time::EventTime;

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Collects what a change of one input does under a key. The list of that input holds the rows that stay.
    pub(super) fn emit_change(&mut self, place: Place, input: usize, pairs: &[Pair], cause: EventTime) {
        if self.simple && self.emit_single(place, input, pairs, cause) {
            return;
        }
        let (lists, spill) = self.table.view(place);
        let runs: [Runs<'_>; N] = std::array::from_fn(|input| lists.list(input, spill));
        let key = self.table.key_at(place);
        let (said, gaps, combos, rows) = (&mut self.said, self.gaps.as_ref(), &mut self.combos, &self.rows);
        let mut say = |out: Out<N>| {
            if let Some(out) = said.filter(key, gaps, out) {
                collect(combos, out, cause);
            }
        };
        match &self.steps {
            Some(steps) => {
                conditional::change(steps, &runs, input, pairs, &mut |step, ids| rows.holds(step, ids), &mut say);
            }
            None => product::change(&self.shape, &runs, input, pairs, &mut say),
        }
        // A row that stood because a partner existed, which has expired in silence since.
        for pair in pairs.iter().filter(|pair| !pair.old.is_missing()) {
            if self.said.on_gone(input, pair.old) {
                let mut ids = [RowId::MISSING; N];
                ids[input] = pair.old;
                self.combos.push(Combo { ids, kind: RowKind::Delete, cause });
            }
        }
    }

    // Collects what the change of one row does where no input has a second one, as is common: that takes no product.
    // Returns whether it is so.
    fn emit_single(&mut self, place: Place, input: usize, pairs: &[Pair], cause: EventTime) -> bool {
        let (lists, _) = self.table.view(place);
        let present = lists.present();
        let &[Pair { old, new }] = pairs else { return false };
        if lists.many() != 0 || present >> input & 1 == 1 {
            return false;
        }
        if self.shape.required() & !(present | 1 << input) != 0 {
            return true;
        }
        let others = *lists.singles();
        let mut push = |id: RowId, kind: RowKind| {
            let mut ids = others;
            ids[input] = id;
            self.combos.push(Combo { ids, kind, cause });
        };
        let gap = present != 0 && self.shape.is_optional(input);
        match (old.is_missing(), new.is_missing()) {
            (true, true) => {}
            (false, false) => {
                push(old, RowKind::UpdateBefore);
                push(new, RowKind::UpdateAfter);
            }
            (true, false) => {
                if gap {
                    push(RowId::MISSING, RowKind::Delete);
                }
                push(new, RowKind::Insert);
            }
            (false, true) => {
                push(old, RowKind::Delete);
                if gap {
                    push(RowId::MISSING, RowKind::Insert);
                }
            }
        }
        true
    }

    // Partners that are not in any combination, since they only have to exist or not, have met all the same.
    pub(super) fn mark_partners(&mut self, (place, hash): (Place, u64), input: usize, pairs: &[Pair]) {
        if N != 2 || self.spec.kinds[1].shows() {
            return;
        }
        if self.looks_at(hash) {
            self.take_waits_of_unseen(place, input, pairs, hash);
        }
        let (lists, spill) = self.table.view(place);
        let (front, back) = lists.list(1 - input, spill);
        let others = || front.iter().chain(back).copied();
        let news = || pairs.iter().map(|pair| pair.new).filter(|new| !new.is_missing());
        let (own_front, own_back) = lists.list(input, spill);
        let was_empty = own_front.len() + own_back.len() == news().count();
        let mut meet = |side: usize, id: RowId| {
            if self.met.insert(side, id) {
                self.accounts[side].meets();
            }
        };
        if self.steps.is_none() {
            if others().next().is_some() {
                news().for_each(|new| meet(input, new));
            }
            // Those that were there before have met the first row of the other side.
            if was_empty && news().next().is_some() {
                others().for_each(|other| meet(1 - input, other));
            }
            return;
        }
        for new in news() {
            for other in others() {
                let mut ids = [RowId::MISSING; N];
                (ids[input], ids[1 - input]) = (new, other);
                if self.rows.holds(1, &ids) {
                    meet(input, new);
                    meet(1 - input, other);
                }
            }
        }
    }

    /// Tells the gaps beside a row that have waited until now: for its delay, or until it leaves.
    pub(super) fn tell_waiting(&mut self, place: Place, input: usize, id: RowId, cause: EventTime, leaves: bool) {
        let Some(gaps) = &self.gaps else { return };
        let (lists, spill) = self.table.view(place);
        let mut runs: [Runs<'_>; N] = std::array::from_fn(|input| lists.list(input, spill));
        runs[input] = (&[], &[]);
        let key = self.table.key_at(place);
        let (said, met, combos) = (&mut self.said, &self.met, &mut self.combos);
        let mut say = |out: Out<N>| {
            let Out::Insert(ids) = out else { return };
            let now = match gaps.told(&ids) {
                // Where all gaps are told at once, they were when the last of the rows came.
                Told::Now => !leaves && gaps.has_waited(&ids),
                Told::AfterDelay | Told::AtTheEnd => leaves,
            };
            if now && said.waits(key, &ids, met) {
                said.tell(&ids);
                combos.push(Combo { ids, kind: RowKind::Insert, cause });
            }
        };
        match &self.steps {
            Some(steps) => {
                let holds = &mut |step: usize, ids: &[RowId; N]| self.rows.holds(step, ids);
                conditional::change(steps, &runs, input, &[Pair::added(id)], holds, &mut say);
            }
            None => product::change(&self.shape, &runs, input, &[Pair::added(id)], &mut say),
        }
    }

    /// Tells the gaps whose delay is over.
    pub(super) fn tell_delayed(&mut self, cx: &mut Cx<'_>) {
        for input in 0..N {
            let Some(gaps) = &mut self.gaps else { return };
            for due in gaps.take_due(input, cx.now) {
                let Some(place) = self.table.place_of(due.hash, input, due.id) else { continue };
                // That it is told changes what is known of the row.
                self.table.at(place);
                if self.gaps.as_mut().is_some_and(|gaps| gaps.fire(input, due.id)) {
                    self.tell_waiting(place, input, due.id, self.frontier, false);
                }
                if self.combos.len() >= COMBOS_MAX {
                    self.select(cx.out);
                }
            }
        }
        self.select(cx.out);
    }

    /// Tells all gaps that still wait, as nothing can fill them any more.
    pub(super) fn tell_all(&mut self, out: &mut Outbox) {
        if self.gaps.is_none() {
            return;
        }
        for place in self.table.places() {
            // All that stands under a key is beside some row of any list that is not empty.
            let lists = self.table.view(place).0;
            let input = lists.present().trailing_zeros() as usize;
            let (front, back) = self.table.view(place).0.list(input, self.table.view(place).1);
            let mut rows: Vec<(usize, RowId)> = front.iter().chain(back).map(|&id| (input, id)).collect();
            if let (2, Said::Alone(_)) = (N, &self.said) {
                let (lists, spill) = self.table.view(place);
                let (front, back) = lists.list(1 - input, spill);
                rows.extend(front.iter().chain(back).map(|&id| (1 - input, id)));
            }
            for (input, id) in rows {
                self.tell_waiting(place, input, id, self.frontier, true);
            }
            if self.combos.len() >= COMBOS_MAX {
                self.select(out);
            }
        }
        self.select(out);
    }

    /// Makes rows of the combinations that were collected, until the outbox is full; returns whether that was all. Then
    /// the rows are dropped that have left with them.
    pub(super) fn select(&mut self, out: &mut Outbox) -> bool {
        while self.selected < self.combos.len() {
            if out.is_full() {
                return false;
            }
            let mut until = self.combos.len().min(self.selected + COMBOS_MAX);
            // The halves of an update stay together.
            until += usize::from(self.combos[until - 1].kind == RowKind::UpdateBefore);
            // Where all rows of a key come out at once, they were noted as they came.
            if !self.at_once[self.coming.input] {
                self.mark_met(self.selected..until);
            }
            self.rows.select(&self.combos[self.selected..until], out);
            self.selected = until;
        }
        self.combos.clear();
        self.selected = 0;
        // The keys that are still to be told name rows that have left.
        if self.folding.is_pending() {
            return true;
        }
        for (input, id) in self.passing.drain(..) {
            if input < N {
                self.rows.discard(input, &[id]);
            } else {
                self.rows.vacate(input - N, id);
            }
        }
        true
    }

    fn mark_met(&mut self, range: Range<usize>) {
        // Combinations of one step share most of their rows, which need to be marked once.
        let mut marked = [RowId::MISSING; N];
        let mut last = (u32::MAX, 0);
        for combo in self.combos[range].iter().filter(|combo| combo.kind.adds()) {
            let (mut present, mut slot, mut in_slot) = (0, None, 0u16);
            for (input, &id) in combo.ids.iter().enumerate() {
                present += usize::from(!id.is_missing());
                // All that stand in a slot stand in that of the key.
                if let Some(number) = id.slot() {
                    slot = Some(number);
                    in_slot |= 1 << input;
                }
            }
            if present < 2 {
                continue;
            }
            if let Some(slot) = slot.filter(|&slot| last != (slot, in_slot)) {
                last = (slot, in_slot);
                let mut new = self.met.insert_in_slot(slot, in_slot);
                while new != 0 {
                    self.accounts[new.trailing_zeros() as usize].meets();
                    new &= new - 1;
                }
            }
            if present == in_slot.count_ones() as usize {
                continue;
            }
            for (input, &id) in combo.ids.iter().enumerate().filter(|(_, id)| !id.is_missing() && id.slot().is_none()) {
                let again = std::mem::replace(&mut marked[input], id) == id;
                if !again && self.met.insert(input, id) {
                    self.accounts[input].meets();
                }
            }
        }
    }
}

fn collect<const N: usize>(combos: &mut Vec<Combo<N>>, out: Out<N>, cause: EventTime) {
    match out {
        Out::Delete(ids) => combos.push(Combo { ids, kind: RowKind::Delete, cause }),
        Out::Insert(ids) => combos.push(Combo { ids, kind: RowKind::Insert, cause }),
        Out::Update { old, new } => {
            combos.push(Combo { ids: old, kind: RowKind::UpdateBefore, cause });
            combos.push(Combo { ids: new, kind: RowKind::UpdateAfter, cause });
        }
    }
}
