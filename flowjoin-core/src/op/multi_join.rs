//! Regular and N-way joins: rows by key in N lists, and the product kernel over them.
//!
//! A row is taken in once, looked up once and never copied; the combinations it completes are collected as ids, and
//! the user's `select` runs over them once a batch. There is no place for intermediate results. With a TTL, rows leave
//! by the clock and in silence: what was said stands, and what stands is remembered so that nothing is retracted that
//! does not ([`Hushed`]).

use std::collections::BTreeMap;

use super::joined::{Arrival, Arrivals, Combo, JoinRows, unmatched_port};
use super::product::{self, Shape, Step};
use super::{Cx, InputId, Operator, Outbox};
use crate::account::{Account, OpFigures, Reason};
use crate::batch::AnyBatch;
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Bits, Clock, Due, Expiry, Hushed, KeyedRows, Lists, Met, Place, RowId, Ttl};
use crate::time::{EventTime, ProcTime, Span, Watermark};

/// A join of N inputs on one key.
pub struct MultiJoin<K: Key, const N: usize> {
    shape: Shape,
    rows: Box<dyn JoinRows<K, N>>,
    table: KeyedRows<K, N>,
    met: Met<N>,
    accounts: [Account; N],
    leaving: [Option<Leaving>; N],
    // Only where optional inputs can expire: a gap may then be one that was never announced.
    hushed: Option<Hushed<K, N>>,
    arrivals: Arrivals<K>,
    combos: Vec<Combo<N>>,
    // Rows that are dropped once the combinations that name them have been selected.
    passing: Vec<(usize, RowId)>,
    // The last watermark before the end: nothing that comes out may be older.
    frontier: EventTime,
    // Rows that have left with the end, though nobody asked for them: they are not looked for.
    left: [u64; N],
    ended: bool,
}

struct Leaving {
    ttl: Span,
    clock: Clock,
    expiry: Expiry,
    // When rows leave that were written again since they were noted in the calendar.
    renewed: BTreeMap<RowId, i64>,
}

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// A join with one optional flag and one TTL an input.
    pub fn new(optional: [bool; N], ttls: [Ttl; N], rows: Box<dyn JoinRows<K, N>>) -> Self {
        let leaving = ttls.map(|ttl| {
            let (ttl, clock) = ttl.span()?;
            Some(Leaving { ttl, clock, expiry: Expiry::new(ttl.as_millis()), renewed: BTreeMap::new() })
        });
        let may_hush = (0..N).any(|input| optional[input] && leaving[input].is_some());
        MultiJoin {
            shape: Shape::new(&optional),
            rows,
            table: KeyedRows::default(),
            met: std::array::from_fn(|_| Bits::default()),
            accounts: [Account::default(); N],
            leaving,
            hushed: may_hush.then(Hushed::default),
            arrivals: Arrivals::default(),
            combos: Vec::new(),
            passing: Vec::new(),
            frontier: EventTime::MIN,
            left: [0; N],
            ended: false,
        }
    }

    fn take_in(&mut self, input: usize, arrivals: &mut Arrivals<K>, cx: &mut Cx<'_>) {
        self.accounts[input].rows += arrivals.rows.len() as u64 + arrivals.late;
        self.accounts[input].late += arrivals.late;
        let kinds = &arrivals.kinds;
        let mut rows = arrivals.rows.drain(..);
        let mut index = 0;
        while let Some(Arrival { key, hash, time, id }) = rows.next() {
            // First the place of a key in the index is asked for, then the entry that it names, then the lists of that.
            let coming = rows.as_slice();
            if let Some(next) = coming.get(AHEAD) {
                self.table.prefetch(next.hash);
            }
            if let Some(next) = coming.get(AHEAD * 2 / 3) {
                self.table.prefetch_entry(next.hash);
            }
            if let Some(next) = coming.get(AHEAD / 3) {
                self.table.peek(next.hash, Lists::prefetch);
            }
            let kind = kinds.at(index);
            index += 1;
            if key.is_null() {
                self.on_null(input, id, time, kind, cx.out);
            } else if kind.adds() {
                self.on_insert(input, hash, key, id, time, cx.now);
            } else {
                self.on_retract(input, hash, &key, id, time, kind);
            }
            if self.combos.len() >= COMBOS_MAX {
                self.select(cx.out);
            }
        }
        self.select(cx.out);
    }

    #[inline]
    fn on_insert(&mut self, input: usize, hash: u64, key: K, id: RowId, time: EventTime, now: ProcTime) {
        self.accounts[input].open += 1;
        if let Some(leaving) = &mut self.leaving[input] {
            let written = match leaving.clock {
                Clock::Processing => now.as_millis(),
                Clock::Event => time.as_millis(),
            };
            leaving.expiry.push(Due { at: written.saturating_add(leaving.ttl.as_millis()), id, hash });
        }
        if let Some(hushed) = &mut self.hushed {
            hushed.on_arrival(input, id);
        }
        let place = self.table.upsert(hash, key);
        if self.leaving[input].is_some() {
            self.renew_equals(place, input, id, now);
        }
        let (lists, spill) = self.table.at(place);
        let alone = lists.push(input, id, spill);
        if self.shape.required() & !lists.present() != 0 {
            return;
        }
        if lists.many() == 0 {
            let ids = *lists.singles();
            let partners = lists.present() & !(1 << input) != 0;
            if alone && partners && self.shape.is_optional(input) {
                let mut gap = ids;
                gap[input] = RowId::MISSING;
                self.emit_gap(place, gap, time);
            }
            self.combos.push(Combo { ids, kind: RowKind::Insert, cause: time });
        } else {
            self.emit_product(place, Step { input, row: id, enters: true, alone }, time);
        }
        self.announced(place, input);
    }

    // A row that is told again, equal and of the same time, is written again: the copies held stay as long as the new
    // one. Only the last few rows of the list are looked at, so that a key with many rows does not pay for each; and
    // rows of another time, which nearly all are, cost no comparison of bytes. By event time, equal times are due
    // together anyway.
    #[inline]
    fn renew_equals(&mut self, place: Place, input: usize, id: RowId, now: ProcTime) {
        let (lists, spill) = self.table.at(place);
        let Some(leaving) = &mut self.leaving[input] else { return };
        if lists.present() >> input & 1 == 0 || leaving.clock == Clock::Event {
            return;
        }
        let due = now.plus(leaving.ttl).as_millis();
        let (front, back) = lists.list(input, spill);
        let time = self.rows.time(input, id);
        for &other in front.iter().chain(back).rev().take(COPIES_MAX) {
            if self.rows.time(input, other) == time && self.rows.equal(input, id, other) {
                leaving.renewed.insert(other, due);
            }
        }
    }

    // All that could miss a row of this input has now been told of it, one way or the other.
    fn announced(&mut self, place: Place, input: usize) {
        let (lists, _) = self.table.at(place);
        if lists.hushed() >> input & 1 == 1 {
            lists.set_hushed(input, false);
            if let Some(hushed) = &mut self.hushed {
                hushed.on_announced(self.table.key_at(place), input);
            }
        }
    }

    fn emit_gap(&mut self, place: Place, ids: [RowId; N], time: EventTime) {
        if self.stands(place, &ids) {
            self.combos.push(Combo { ids, kind: RowKind::Delete, cause: time });
        }
    }

    fn stands(&mut self, place: Place, ids: &[RowId; N]) -> bool {
        let (lists, _) = self.table.at(place);
        match &self.hushed {
            Some(hushed) if lists.hushed() != 0 => hushed.stands(self.table.key_at(place), ids),
            _ => true,
        }
    }

    fn emit_product(&mut self, place: Place, step: Step, time: EventTime) {
        let silent = self.hushed.is_some() && self.table.at(place).0.hushed() != 0;
        let hushed = self.hushed.as_ref().filter(|_| silent).map(|hushed| (hushed, self.table.key_at(place).clone()));
        let (lists, spill) = self.table.at(place);
        let runs = std::array::from_fn(|input| lists.list(input, spill));
        let combos = &mut self.combos;
        product::delta(&self.shape, &runs, step, &mut |adds, ids| {
            // What was never said is not taken back; and when a row leaves, what stood with it in silence stays silent.
            let said = match &hushed {
                Some((hushed, key)) if adds == step.enters => step.enters || hushed.stands(key, ids),
                Some((hushed, key)) => {
                    let mut with = *ids;
                    with[step.input] = if step.enters { RowId::MISSING } else { step.row };
                    hushed.stands(key, &with)
                }
                None => true,
            };
            if said {
                let kind = if adds { RowKind::Insert } else { RowKind::Delete };
                combos.push(Combo { ids: *ids, kind, cause: time });
            }
        });
    }

    fn on_null(&mut self, input: usize, id: RowId, time: EventTime, kind: RowKind, out: &mut Outbox) {
        self.accounts[input].null_key += 1;
        if self.shape.stands_alone(input) {
            let mut ids = [RowId::MISSING; N];
            ids[input] = id;
            self.combos.push(Combo { ids, kind, cause: time });
            self.passing.push((input, id));
        } else if kind.adds() {
            self.rows.unmatched(input, &[id], Reason::NullKey, self.frontier, out);
        } else {
            self.rows.discard(input, &[id]);
        }
    }

    fn on_retract(&mut self, input: usize, hash: u64, key: &K, id: RowId, time: EventTime, kind: RowKind) {
        debug_assert!(!kind.adds(), "an insert is not a retraction");
        self.passing.push((input, id));
        let held = self.table.find(hash, key).and_then(|place| {
            let (lists, spill) = self.table.at(place);
            let (front, back) = lists.list(input, spill);
            let rows = &self.rows;
            let held = front.iter().chain(back).copied().find(|&other| rows.equal(input, id, other))?;
            lists.remove(input, held, spill);
            Some((place, held))
        });
        let Some((place, held)) = held else {
            self.accounts[input].orphan += 1;
            return;
        };
        if self.met[input].remove(held) {
            self.accounts[input].matched += 1;
        } else {
            self.accounts[input].open -= 1;
            self.accounts[input].retracted += 2;
        }
        let alone = self.table.at(place).0.present() >> input & 1 == 0;
        self.emit_product(place, Step { input, row: held, enters: false, alone }, time);
        self.announced(place, input);
        if self.table.at(place).0.present() == 0 {
            self.forget(place);
        }
        match self.leaving[input] {
            // Its id must not name another row while the calendar still has it.
            Some(_) => self.passing.push((input + N, held)),
            None => self.passing.push((input, held)),
        }
    }

    fn forget(&mut self, place: Place) {
        let (key, _) = self.table.remove(place);
        if let Some(hushed) = &mut self.hushed {
            hushed.on_gone(&key);
        }
    }

    fn select(&mut self, out: &mut Outbox) {
        // Combinations of one step share most of their rows, which need to be marked once.
        let mut marked = [RowId::MISSING; N];
        for combo in self.combos.iter().filter(|combo| combo.kind.adds()) {
            let present = combo.ids.iter().filter(|id| !id.is_missing()).count();
            if present < 2 {
                continue;
            }
            for (input, &id) in combo.ids.iter().enumerate() {
                let again = std::mem::replace(&mut marked[input], id) == id;
                if !again && !id.is_missing() && self.met[input].insert(id) {
                    self.accounts[input].matched += 1;
                    self.accounts[input].open -= 1;
                }
            }
        }
        if !self.combos.is_empty() {
            self.rows.select(&self.combos, out);
            self.combos.clear();
        }
        for (input, id) in self.passing.drain(..) {
            if input < N {
                self.rows.discard(input, &[id]);
            } else {
                self.rows.vacate(input - N, id);
            }
        }
    }

    fn expire(&mut self, clock: Clock, now: i64, out: &mut Outbox) {
        let mut due = Vec::new();
        for input in 0..N {
            match &mut self.leaving[input] {
                Some(leaving) if leaving.clock == clock => leaving.expiry.take_due(now, &mut due),
                _ => continue,
            }
            let mut unmet = Vec::new();
            for (index, &Due { hash, id, .. }) in due.iter().enumerate() {
                if let Some(next) = due.get(index + AHEAD) {
                    self.table.prefetch(next.hash);
                }
                if !self.is_renewed(input, hash, id, now) && self.leave(input, hash, id) {
                    unmet.push(id);
                }
            }
            due.clear();
            self.accounts[input].open -= unmet.len() as u64;
            self.accounts[input].expired += unmet.len() as u64;
            self.let_go(input, &unmet, Reason::Expired, out);
        }
    }

    // Whether the row was written again and is not due yet; it is then noted for its new time.
    fn is_renewed(&mut self, input: usize, hash: u64, id: RowId, now: i64) -> bool {
        let Some(leaving) = &mut self.leaving[input] else { return false };
        let at = leaving.renewed.remove(&id).filter(|&at| at > now);
        if let Some(at) = at {
            leaving.expiry.push(Due { at, id, hash });
        }
        at.is_some()
    }

    // Returns whether the row leaves without having met a partner; else it is dropped here.
    fn leave(&mut self, input: usize, hash: u64, id: RowId) -> bool {
        let Some(place) = self.table.find_by(hash, |lists, spill| lists.contains(input, id, spill)) else {
            // It was retracted before its time.
            self.rows.release(input, id);
            return false;
        };
        let (lists, spill) = self.table.at(place);
        lists.remove(input, id, spill);
        let present = lists.present();
        if present == 0 {
            self.forget(place);
        } else if present >> input & 1 == 0 && self.shape.is_optional(input) {
            lists.set_hushed(input, true);
            if let Some(hushed) = &mut self.hushed {
                hushed.on_emptied(self.table.key_at(place), input);
            }
        }
        if self.met[input].remove(id) {
            self.rows.discard(input, &[id]);
            return false;
        }
        true
    }

    // A row that stood in the result with gaps has come out already.
    fn let_go(&mut self, input: usize, ids: &[RowId], reason: Reason, out: &mut Outbox) {
        if self.shape.stands_alone(input) {
            self.rows.discard(input, ids);
        } else {
            self.rows.unmatched(input, ids, reason, self.frontier, out);
        }
    }
}

impl<K: Key, const N: usize> Operator for MultiJoin<K, N> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.expire(Clock::Processing, cx.now.as_millis(), cx.out);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let taken = self.rows.arrive(input.0, batch, cx.watermark, &mut arrivals, cx.out);
        self.take_in(input.0, &mut arrivals, cx);
        self.arrivals = arrivals;
        taken
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if cx.watermark != Watermark::END {
            self.frontier = cx.watermark.time();
        }
        self.expire(Clock::Event, cx.watermark.time().as_millis(), cx.out);
        Ok(())
    }

    fn on_clock(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.expire(Clock::Processing, cx.now.as_millis(), cx.out);
        Ok(())
    }

    fn on_end(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.ended = true;
        for input in 0..N {
            let unmet = std::mem::take(&mut self.accounts[input].open);
            self.accounts[input].unmatched += unmet;
            // Rows that nobody asks for need not be looked for.
            if unmet > 0 && cx.out.wants(unmatched_port(input)) {
                let mut rows = self.rows.held(input);
                rows.retain(|&id| !self.met[input].contains(id));
                self.let_go(input, &rows, Reason::EndOfInput, cx.out);
            } else {
                self.left[input] = unmet;
            }
        }
        Ok(())
    }

    fn deadline(&mut self) -> Option<ProcTime> {
        if self.ended {
            return None;
        }
        let timed = self.leaving.iter_mut().flatten().filter(|leaving| leaving.clock == Clock::Processing);
        timed.filter_map(|leaving| leaving.expiry.earliest()).min().map(ProcTime::from_millis)
    }

    fn figures(&self) -> OpFigures {
        let renewed = |leaving: &Leaving| (leaving.renewed.len() * size_of::<(RowId, i64)>()) as u64;
        let calendars: u64 = self.leaving.iter().flatten().map(|it| it.expiry.bytes() + renewed(it)).sum();
        let met: u64 = self.met.iter().map(Bits::bytes).sum();
        let hushed = self.hushed.as_ref().map_or(0, Hushed::bytes);
        OpFigures {
            accounts: self.accounts.to_vec(),
            state_rows: (0..N).map(|input| self.rows.len(input) as u64 - self.left[input]).collect(),
            state_bytes: self.rows.bytes() + self.table.total_bytes() + calendars + met + hushed,
            emitted: self.rows.emitted(),
        }
    }
}

/// Combinations that are collected before they are selected.
const COMBOS_MAX: usize = 1_024;

/// Rows whose place is asked for ahead of use.
const AHEAD: usize = 24;

/// Rows of a list that are looked at for copies of one that comes.
const COPIES_MAX: usize = 8;
