//! Interval join: pairs of one key whose times lie within bounds of each other.
//!
//! A pair is in the result iff `right.time` is in `[left.time + lower, left.time + upper]`; it is emitted when its
//! second row arrives. A left row leaves when W > left.time + upper, a right row when W > right.time − lower: from then
//! on a partner could only be late. A row that leaves without a partner comes out once, as padding where the other
//! side may be empty, else on the side output; so the result is append-only, and its watermark is held back to the
//! oldest row that may still come out. Where a gap is told earlier, the first partner takes it back. A semi join gives
//! a left row with its first partner, an anti join the ones that leave without.

mod bounds;
mod closing;
mod exists;
mod gaps;
mod keep;
mod waits;

pub use bounds::Bounds;

use super::joined::{Arrival, Arrivals, Combo, JoinRows, Lateness, unmatched_port};
use super::kernel::Kind;
use super::multi_join::Emit;
use super::{Cx, InputId, Operator, Outbox};
use crate::account::{Account, OpFigures, Reason};
use crate::batch::AnyBatch;
use crate::change::RowKind;
use crate::delays::MatchDelays;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Bits, Due, Expiry, Guess, RowId, Sealed, Sealing, Side, Timeline};
use crate::time::{EventTime, ProcTime, Watermark};
use gaps::Gaps;
use waits::Waits;

/// What becomes of rows behind the watermark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateRows {
    /// They join nothing and go to the late output.
    Aside,
    /// They join what is still held; the result's watermark is held back by the wider bound all the time.
    Join,
}

/// What an interval join is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Which times make a pair.
    pub bounds: Bounds,
    /// What each input does to the result; a left one is required or optional.
    pub kinds: [Kind; 2],
    /// When a gap of each input is told.
    pub emit: [Emit; 2],
    /// Whether a pair has to fulfil a condition besides.
    pub condition: bool,
    /// What becomes of rows behind the watermark.
    pub late_rows: LateRows,
}

impl Spec {
    // When the gap beside a row of this input is told, which is a gap of the other.
    fn gaps(&self, input: usize) -> Gaps {
        match self.kinds[1 - input] {
            Kind::Required | Kind::Exists => Gaps::Never,
            Kind::Optional => Gaps::of(self.emit[1 - input]),
            Kind::NotExists => Gaps::Final,
        }
    }
}

/// A join of two inputs on one key and an interval of time.
pub struct IntervalJoin<K: Key> {
    spec: Spec,
    rows: Box<dyn JoinRows<K, 2>>,
    line: Timeline<K>,
    closing: [Expiry; 2],
    // Rows that close until this time are still to leave.
    close_until: Option<i64>,
    // By time, the rows that had no partner when they came and may come out by themselves; and some that no longer will.
    waiting: [Expiry; 2],
    met: [Bits; 2],
    // Of the gaps beside the rows of each side.
    gaps: [Gaps; 2],
    waits: Waits,
    accounts: [Account; 2],
    watermark: Watermark,
    // Whether the unmatched rows of a side are read: the watermark then waits for them too.
    read: [bool; 2],
    // The rows of a batch that are still to be joined, the last one first, and their side.
    arrivals: Arrivals<K>,
    coming: Side,
    combos: Vec<Combo<2>>,
    passing: Vec<(usize, RowId)>,
    found: Vec<RowId>,
    due: Vec<Due>,
}

// Puts the rows of two sides in the order of the inputs.
fn in_order(side: Side, id: RowId, other: RowId) -> [RowId; 2] {
    if side == Side::Left { [id, other] } else { [other, id] }
}

impl<K: Key> IntervalJoin<K> {
    /// A join that does what the spec says, over these rows.
    pub fn new(spec: Spec, rows: Box<dyn JoinRows<K, 2>>) -> Self {
        let stay = spec.bounds.stay();
        IntervalJoin {
            spec,
            rows,
            line: Timeline::default(),
            closing: [Expiry::new(stay), Expiry::new(stay)],
            close_until: None,
            waiting: [Expiry::new(stay), Expiry::new(stay)],
            met: [Bits::default(), Bits::default()],
            gaps: [spec.gaps(0), spec.gaps(1)],
            waits: Waits::default(),
            accounts: [Account::default(); 2],
            watermark: Watermark::NONE,
            read: [false; 2],
            arrivals: Arrivals::default(),
            coming: Side::Left,
            combos: Vec::new(),
            passing: Vec::new(),
            found: Vec::new(),
            due: Vec::new(),
        }
    }

    // Joins the rows that have come, until the outbox is full.
    fn take_in(&mut self, cx: &mut Cx<'_>) {
        let side = self.coming;
        let mut rows = std::mem::take(&mut self.arrivals.rows);
        let hash = |rows: &[Arrival<K>], after: usize| Some(rows.get(rows.len().checked_sub(after + 1)?)?.hash);
        let mut ahead = self.line.look_ahead(|after| hash(&rows, after));
        while !cx.out.is_full() && !rows.is_empty() {
            let guess = self.line.guess(&mut ahead, |after| hash(&rows, after));
            let Some(Arrival { key, hash, time, id }) = rows.pop() else { break };
            if key.is_null() {
                self.on_null(side, id, time, cx.out);
            } else {
                self.on_row(side, (hash, key, guess), (id, time), cx);
            }
            if self.combos.len() >= COMBOS_MAX {
                self.select(cx.out);
            }
        }
        self.arrivals.rows = rows;
        self.select(cx.out);
    }

    #[inline]
    fn on_row(&mut self, side: Side, key: (u64, K, Guess), (id, time): (RowId, EventTime), cx: &mut Cx<'_>) {
        let hash = key.0;
        let own = side.index();
        let closes = self.spec.bounds.closes(side, time);
        let stays = self.watermark.time() <= closes;
        self.accounts[own].open += 1;
        self.found.clear();
        if stays {
            self.closing[own].push(Due { at: closes.as_millis(), id, hash });
        }
        let has_partner = match self.spec.kinds[1].shows() {
            true => self.find_partners(side, key, (id, time), stays),
            false => self.settle_partners(side, key, (id, time), stays),
        };
        if has_partner && self.waits.takes(hash) {
            let (rows, found, other) = (&self.rows, &self.found, side.other().index());
            self.waits.take(side, time, found.len(), |partner| rows.time(other, found[partner]));
        }
        if has_partner {
            self.meets(own, id);
            if !stays {
                self.met[own].remove(id);
                self.passing.push((own, id));
            }
        } else if !stays {
            // Partners could only be late: it is not kept.
            self.leave_alone(side, &[id], cx.out);
        } else {
            if self.may_come_out(side) {
                self.waiting[own].push(Due { at: time.as_millis(), id, hash });
            }
            if self.gaps[own].opens(id, hash, cx.now) {
                self.combos.push(self.padded(side, id, RowKind::Insert, self.oldest_late()));
            }
        }
    }

    // Takes a row in, if it stays, and tells the pairs that it makes; returns whether there is one.
    #[inline]
    fn find_partners(
        &mut self,
        side: Side,
        (hash, key, guess): (u64, K, Guess),
        (id, time): (RowId, EventTime),
        stays: bool,
    ) -> bool {
        let span = self.spec.bounds.partners(side, time);
        if stays {
            self.line.insert_and_find((hash, key, guess), (side, time, id), span, &mut self.found);
        } else {
            self.line.within(hash, &key, side.other(), span, &mut self.found);
            // That they meet a row which is not held changes nothing else of their key.
            if !self.found.is_empty() {
                self.line.on_change_of(hash, &key);
            }
        }
        if self.spec.condition {
            let rows = &self.rows;
            self.found.retain(|&other| rows.holds(1, &in_order(side, id, other)));
        }
        self.pair(side, id, time.max(self.oldest_late()));
        !self.found.is_empty()
    }

    // Whether rows of this side may come out by themselves long after they came, as results or aside.
    fn may_come_out(&self, side: Side) -> bool {
        self.gaps[side.index()].waits() || self.read[side.index()] && !self.pads(side)
    }

    // Tells what a row gives with the partners that it has found, in order of their times.
    #[inline]
    fn pair(&mut self, side: Side, id: RowId, cause: EventTime) {
        for index in 0..self.found.len() {
            let other = self.found[index];
            self.rows.prefetch(side.other().index(), other);
            self.meet_first(side.other(), other, cause);
            self.combos.push(Combo { ids: in_order(side, id, other), kind: RowKind::Insert, cause });
        }
    }

    // A row that is held meets a partner, before which the gap beside it goes; returns whether it is the first.
    #[inline]
    fn meet_first(&mut self, side: Side, id: RowId, cause: EventTime) -> bool {
        let own = side.index();
        let first = self.meets(own, id);
        if first && self.gaps[own].stands(id) {
            self.combos.push(self.padded(side, id, RowKind::Delete, cause));
        }
        if first {
            self.gaps[own].close(id);
        }
        first
    }

    // Returns whether it is the first partner that the row meets.
    fn meets(&mut self, side: usize, id: RowId) -> bool {
        let first = self.met[side].insert(id);
        if first {
            self.accounts[side].matched += 1;
            self.accounts[side].open -= 1;
        }
        first
    }

    fn on_null(&mut self, side: Side, id: RowId, time: EventTime, out: &mut Outbox) {
        self.accounts[side.index()].null_key += 1;
        if self.pads(side) {
            self.combos.push(self.padded(side, id, RowKind::Insert, time));
            self.passing.push((side.index(), id));
        } else {
            self.rows.unmatched(side.index(), &[id], Reason::NullKey, EventTime::MIN, out);
        }
    }

    // Whether a row of this side without a partner is in the result.
    fn pads(&self, side: Side) -> bool {
        self.spec.kinds[side.other().index()].may_be_empty()
    }

    fn padded(&self, side: Side, id: RowId, kind: RowKind, cause: EventTime) -> Combo<2> {
        Combo { ids: in_order(side, id, RowId::MISSING), kind, cause }
    }

    // Rows that leave without having met a partner.
    fn leave_alone(&mut self, side: Side, ids: &[RowId], out: &mut Outbox) {
        let own = side.index();
        let account = &mut self.accounts[own];
        account.open -= ids.len() as u64;
        account.unmatched += ids.len() as u64;
        if !self.pads(side) {
            self.rows.unmatched(own, ids, Reason::IntervalClosed, EventTime::MIN, out);
            return;
        }
        let cause = self.oldest_late();
        for &id in ids {
            // What was never kept has no gap that was told before.
            self.combos.push(self.padded(side, id, RowKind::Insert, cause));
            self.passing.push((own, id));
        }
    }

    // The oldest time that a result may have when late rows are joined.
    fn oldest_late(&self) -> EventTime {
        match self.spec.late_rows {
            LateRows::Aside => EventTime::MIN,
            LateRows::Join => self.watermark.time().minus(self.spec.bounds.widest_wait()),
        }
    }

    fn select(&mut self, out: &mut Outbox) {
        if !self.combos.is_empty() {
            self.rows.select(&self.combos, out);
            self.combos.clear();
        }
        for (side, id) in self.passing.drain(..) {
            self.rows.discard(side, &[id]);
        }
    }

    // Tells the gaps whose delay is over.
    fn tell_due(&mut self, cx: &mut Cx<'_>) {
        for side in [Side::Left, Side::Right] {
            for Due { id, hash, .. } in self.gaps[side.index()].take_due(cx.now) {
                self.line.on_change(hash, side, (self.rows.time(side.index(), id), id));
                self.combos.push(self.padded(side, id, RowKind::Insert, self.oldest_late()));
            }
        }
        self.select(cx.out);
    }

    // The time of the oldest row held that may come out by itself.
    fn earliest_held(&mut self) -> Option<EventTime> {
        let mut earliest = None;
        for side in [Side::Left, Side::Right] {
            let own = side.index();
            let (met, gaps, bounds, now) = (&self.met[own], &self.gaps[own], self.spec.bounds, self.watermark.time());
            // A row that has left is told by its time; its number may be that of another.
            let held = |time| now <= bounds.closes(side, time) && self.watermark != Watermark::END;
            let waits =
                |due: &Due| held(EventTime::from_millis(due.at)) && !met.contains(due.id) && !gaps.stands(due.id);
            let time = self.waiting[own].first_of(waits).map(EventTime::from_millis);
            earliest = earliest.into_iter().chain(time).min();
        }
        earliest
    }
}

impl<K: Key> Operator for IntervalJoin<K> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        // What is due is told before anything comes.
        self.tell_due(cx);
        self.coming = if input.0 == 0 { Side::Left } else { Side::Right };
        self.read = [0, 1].map(|input| cx.out.wants(unmatched_port(input)));
        let late_before = match self.spec.late_rows {
            LateRows::Aside => cx.watermark,
            LateRows::Join => Watermark::NONE,
        };
        let lateness = Lateness::facts(late_before);
        let taken = self.rows.arrive(input.0, batch, lateness, &mut self.arrivals, cx.out);
        let account = &mut self.accounts[input.0];
        account.rows += self.arrivals.rows.len() as u64 + self.arrivals.late;
        account.late += self.arrivals.late;
        // The next one is always the last of those that are left.
        self.arrivals.rows.reverse();
        self.take_in(cx);
        taken
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.watermark = cx.watermark;
        self.close_until = Some(match cx.watermark {
            Watermark::END => i64::MAX,
            at => at.time().as_millis().saturating_sub(1),
        });
        self.close(cx.out);
        Ok(())
    }

    fn has_more(&self) -> bool {
        self.close_until.is_some() || !self.arrivals.rows.is_empty()
    }

    fn on_more(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.take_in(cx);
        self.close(cx.out);
        Ok(())
    }

    fn on_clock(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.tell_due(cx);
        Ok(())
    }

    fn earliest_output(&mut self) -> Option<EventTime> {
        match self.spec.late_rows {
            LateRows::Aside => self.earliest_held(),
            LateRows::Join => (self.watermark != Watermark::END).then(|| self.oldest_late()),
        }
    }

    fn owes(&mut self) -> bool {
        self.earliest_held().is_some()
    }

    fn deadline(&mut self) -> Option<ProcTime> {
        self.gaps.iter_mut().filter_map(Gaps::deadline).min()
    }

    fn delays(&self) -> Option<MatchDelays> {
        Some(self.waits.figures(self.spec.bounds))
    }

    fn figures(&self) -> OpFigures {
        let calendars: u64 = self.closing.iter().chain(&self.waiting).map(Expiry::bytes).sum();
        let met: u64 = self.met.iter().map(Bits::bytes).sum();
        let gaps: u64 = self.gaps.iter().map(Gaps::bytes).sum();
        OpFigures {
            accounts: self.accounts.to_vec(),
            state_rows: (0..2).map(|input| self.rows.len(input) as u64).collect(),
            state_bytes: self.rows.bytes() + self.line.bytes() + calendars + met + gaps + self.waits.bytes(),
            emitted: self.rows.emitted(),
            ..OpFigures::default()
        }
    }

    fn keep(&mut self) {
        self.keep_state();
    }

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        self.seal_state(into)
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        self.take_back_state(sealed)
    }

    fn resume(&mut self, watermark: Watermark, _: ProcTime) {
        self.resume_at(watermark);
    }
}

const COMBOS_MAX: usize = 1_024;
