//! Rows that leave by their time-to-live, and at the end.

use super::super::Outbox;
use super::super::joined::unmatched_port;
use super::MultiJoin;
use super::said::Said;
use super::spec::OnExpiry;
use crate::account::Reason;
use crate::key::Key;
use crate::state::{Clock, Due, Place, RowId};

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Lets all rows go that are due by a clock.
    pub(super) fn expire(&mut self, clock: Clock, now: i64, out: &mut Outbox) {
        if self.spec.on_expiry == OnExpiry::Silent {
            return (0..N).for_each(|input| self.expire_input(input, clock, now, out));
        }
        // What is told depends on who leaves first, however far the clock has moved at once.
        loop {
            let earliest: [Option<i64>; N] = std::array::from_fn(|input| match &mut self.leaving[input] {
                Some(leaving) if leaving.clock == clock => leaving.expiry.earliest(),
                _ => None,
            });
            let next = (0..N).filter_map(|input| earliest[input].map(|at| (at, input))).min();
            let Some((at, input)) = next.filter(|&(at, _)| at <= now) else { return };
            let others = (0..N).filter(|&other| other != input).filter_map(|other| earliest[other]);
            let until = others.min().map_or(now, |other| now.min(at.max(other - 1)));
            self.expire_input(input, clock, until, out);
        }
    }

    fn expire_input(&mut self, input: usize, clock: Clock, now: i64, out: &mut Outbox) {
        let mut due = Vec::new();
        match &mut self.leaving[input] {
            Some(leaving) if leaving.clock == clock => leaving.expiry.take_due(now, &mut due),
            _ => return,
        }
        if !due.is_empty() {
            self.owes_gaps = None;
        }
        due.retain(|&Due { hash, id, .. }| !self.is_renewed(input, hash, id, now));
        self.tell_leaving(input, &due, out);
        let (mut met, mut unmet) = (Vec::new(), Vec::new());
        self.folding.begin(input);
        for (index, &Due { hash, id, .. }) in due.iter().enumerate() {
            if let Some(next) = due.get(index + super::AHEAD) {
                self.table.prefetch(next.hash);
            }
            if let Some(delays) = &mut self.delays
                && delays.takes(hash)
            {
                delays.on_due(input, hash, id);
            }
            let Some(place) = self.table.place_of(hash, input, id) else {
                if !self.expire_null(input, id) {
                    // It was retracted before its time.
                    self.rows.release(input, id);
                }
                continue;
            };
            self.leave(input, (place, hash), id);
            let left = if self.met.remove(input, id) { &mut met } else { &mut unmet };
            left.push(id);
            if self.folding.is_full() {
                self.unfold(out);
            }
        }
        self.unfold(out);
        self.rows.discard(input, &met);
        self.accounts[input].open -= unmet.len() as u64;
        self.accounts[input].expired += unmet.len() as u64;
        self.let_go(input, &unmet, Reason::Expired, out);
    }

    // Tells the gaps that waited beside rows which leave now, before any of them does: a row that is told with another one
    // has met it, and does not leave unmatched.
    fn tell_leaving(&mut self, input: usize, due: &[Due], out: &mut Outbox) {
        if self.gaps.is_none() {
            return;
        }
        for &Due { hash, id, .. } in due {
            if let Some(place) = self.table.place_of(hash, input, id) {
                self.tell_waiting(place, input, id, self.frontier, true);
            }
            if self.combos.len() >= super::COMBOS_MAX {
                self.select(out);
            }
        }
        self.select(out);
    }

    // Whether the row was written again and is not due yet; it is then noted for its new time.
    fn is_renewed(&mut self, input: usize, hash: u64, id: RowId, now: i64) -> bool {
        let Some(leaving) = &mut self.leaving[input] else { return false };
        let at = leaving.renewed.remove(&id).filter(|&at| at > now);
        if let Some(at) = at {
            leaving.leave_at(at, id, hash);
        }
        at.is_some()
    }

    fn leave(&mut self, input: usize, (place, hash): (Place, u64), id: RowId) {
        if let Some(index) = &mut self.index[input] {
            index.remove(hash, self.rows.print(input, id), id);
        }
        let (lists, spill) = self.table.at(place);
        lists.remove(input, id, spill);
        if let Some(delays) = &mut self.delays
            && lists.present() >> input & 1 == 0
            && delays.takes(hash)
        {
            delays.on_last_expired(input, hash);
        }
        if self.spec.expiry_retracts(input) {
            return self.fold_expired((place, hash), id, self.frontier);
        }
        self.said.on_gone(input, id);
        let present = lists.present();
        if present == 0 {
            self.forget(place);
        } else if present >> input & 1 == 0
            && self.spec.hushes(input)
            && let Said::Numbered(hushed) = &mut self.said
        {
            lists.set_hushed(input, true);
            hushed.on_emptied(self.table.key_at(place), input);
        }
    }

    // A row that stood in the result with gaps has come out already.
    fn let_go(&mut self, input: usize, ids: &[RowId], reason: Reason, out: &mut Outbox) {
        if self.spec.stands_alone(input) {
            self.rows.discard(input, ids);
        } else {
            self.rows.unmatched(input, ids, reason, self.frontier, out);
        }
    }

    /// All inputs have ended: what has found no partner will find none.
    pub(super) fn end(&mut self, out: &mut Outbox) {
        self.tell_all(out);
        for input in 0..N {
            let unmet = std::mem::take(&mut self.accounts[input].open);
            self.accounts[input].unmatched += unmet;
            // Rows that nobody asks for need not be looked for.
            if unmet > 0 && out.wants(unmatched_port(input)) {
                let mut rows = self.rows.held(input);
                rows.retain(|&id| !self.met.contains(input, id));
                self.let_go(input, &rows, Reason::EndOfInput, out);
            } else {
                self.left[input] = unmet;
            }
        }
    }
}
