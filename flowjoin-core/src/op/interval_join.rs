//! Interval join: pairs of one key whose times lie within bounds of each other.
//!
//! A pair is in the result iff `right.time` is in `[left.time + lower, left.time + upper]`; it is emitted when its
//! second row arrives. A left row leaves when W > left.time + upper, a right row when W > right.time − lower: from then
//! on a partner could only be late. A row that leaves without a partner comes out once, as padding where the other
//! side is optional, else on the side output; so the result is append-only, and its watermark is held back to the
//! oldest row that may still come out.

use super::joined::{Arrival, Arrivals, Combo, JoinRows, Lateness, unmatched_port};
use super::{Cx, InputId, Operator, Outbox};
use crate::account::{Account, OpFigures, Reason};
use crate::batch::AnyBatch;
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Bits, Due, Expiry, RowId, Side, Timeline};
use crate::time::{EventTime, Span, Watermark};

/// Which times make a pair: `right.time − left.time` from `lower` to `upper`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The least difference.
    pub lower: Span,
    /// The greatest difference.
    pub upper: Span,
}

impl Bounds {
    // The first and the last time of the other side that make a pair with a row of this side; the first is after the
    // last where no time there is would do, at the ends of time.
    fn partners(&self, side: Side, time: EventTime) -> (EventTime, EventTime) {
        let (first, last) = match side {
            Side::Left => (self.lower, self.upper),
            Side::Right => (-self.upper, -self.lower),
        };
        let past_the_end = time.as_millis().checked_add(first.as_millis()).is_none() && !first.is_negative();
        let before_all = time.as_millis().checked_add(last.as_millis()).is_none() && last.is_negative();
        match past_the_end || before_all {
            true => (EventTime::MAX, EventTime::MIN),
            false => (time.plus(first), time.plus(last)),
        }
    }

    // The last watermark at which a row of this side can still get a partner that is not late.
    fn closes(&self, side: Side, time: EventTime) -> EventTime {
        match side {
            Side::Left => time.plus(self.upper),
            Side::Right => time.minus(self.lower),
        }
    }

    // The time of a row that closes then; saturated times come out as the earliest they can have been.
    fn time_of(&self, side: Side, closes: EventTime) -> EventTime {
        match side {
            _ if closes == EventTime::MAX || closes == EventTime::MIN => EventTime::MIN,
            Side::Left => closes.minus(self.upper),
            Side::Right => closes.plus(self.lower),
        }
    }

    // How far behind the watermark a pair may be if late rows are joined.
    fn widest_wait(&self) -> Span {
        Span::ZERO.max(self.upper).max(-self.lower)
    }
}

/// What becomes of rows behind the watermark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateRows {
    /// They join nothing and go to the late output.
    Aside,
    /// They join what is still held; the result's watermark is held back by the wider bound all the time.
    Join,
}

/// A join of two inputs on one key and an interval of time.
pub struct IntervalJoin<K: Key> {
    bounds: Bounds,
    optional: [bool; 2],
    late_rows: LateRows,
    rows: Box<dyn JoinRows<K, 2>>,
    line: Timeline<K>,
    closing: [Expiry; 2],
    met: [Bits; 2],
    accounts: [Account; 2],
    watermark: Watermark,
    // Whether the unmatched rows of a side are read: the watermark then waits for them too.
    told: [bool; 2],
    arrivals: Arrivals<K>,
    combos: Vec<Combo<2>>,
    passing: Vec<(usize, RowId)>,
    found: Vec<RowId>,
}

impl<K: Key> IntervalJoin<K> {
    /// A join with these bounds and one optional flag an input.
    pub fn new(bounds: Bounds, optional: [bool; 2], late_rows: LateRows, rows: Box<dyn JoinRows<K, 2>>) -> Self {
        let stay = bounds.upper.plus(-bounds.lower).as_millis();
        IntervalJoin {
            bounds,
            optional,
            late_rows,
            rows,
            line: Timeline::default(),
            closing: [Expiry::new(stay), Expiry::new(stay)],
            met: [Bits::default(), Bits::default()],
            accounts: [Account::default(); 2],
            watermark: Watermark::NONE,
            told: [false; 2],
            arrivals: Arrivals::default(),
            combos: Vec::new(),
            passing: Vec::new(),
            found: Vec::new(),
        }
    }

    fn take_in(&mut self, side: Side, arrivals: &mut Arrivals<K>, out: &mut Outbox) {
        let account = &mut self.accounts[side.index()];
        account.rows += arrivals.rows.len() as u64 + arrivals.late;
        account.late += arrivals.late;
        let mut rows = arrivals.rows.drain(..);
        while let Some(Arrival { key, hash, time, id }) = rows.next() {
            if let Some(next) = rows.as_slice().get(AHEAD) {
                self.line.prefetch(next.hash);
            }
            if let Some(next) = rows.as_slice().get(AHEAD / 2) {
                self.line.prefetch_entry(next.hash);
            }
            if key.is_null() {
                self.on_null(side, id, time, out);
            } else {
                self.on_row(side, hash, key, id, time, out);
            }
            if self.combos.len() >= COMBOS_MAX {
                self.select(out);
            }
        }
        self.select(out);
    }

    #[inline]
    fn on_row(&mut self, side: Side, hash: u64, key: K, id: RowId, time: EventTime, out: &mut Outbox) {
        let own = side.index();
        let span = self.bounds.partners(side, time);
        let closes = self.bounds.closes(side, time);
        let stays = self.watermark.time() <= closes;
        self.found.clear();
        if stays {
            self.closing[own].push(Due { at: closes.as_millis(), id, hash });
            self.line.insert_and_find(hash, key, (side, time, id), span, &mut self.found);
        } else {
            self.line.within(hash, &key, side.other(), span, &mut self.found);
        }
        self.accounts[own].open += 1;
        let cause = time.max(self.oldest_late());
        for index in 0..self.found.len() {
            let other = self.found[index];
            let ids = if side == Side::Left { [id, other] } else { [other, id] };
            self.combos.push(Combo { ids, kind: RowKind::Insert, cause });
            self.meets(side.other().index(), other);
        }
        let matched = !self.found.is_empty();
        if matched {
            self.meets(own, id);
        }
        if !stays {
            // Partners could only be late: it is not kept.
            if matched {
                self.met[own].remove(id);
                self.passing.push((own, id));
            } else {
                self.unmatched(side, &[id], out);
            }
        }
    }

    fn meets(&mut self, side: usize, id: RowId) {
        if self.met[side].insert(id) {
            self.accounts[side].matched += 1;
            self.accounts[side].open -= 1;
        }
    }

    fn on_null(&mut self, side: Side, id: RowId, time: EventTime, out: &mut Outbox) {
        self.accounts[side.index()].null_key += 1;
        if self.optional[side.other().index()] {
            self.combos.push(self.padded(side, id, time));
            self.passing.push((side.index(), id));
        } else {
            self.rows.unmatched(side.index(), &[id], Reason::NullKey, EventTime::MIN, out);
        }
    }

    fn padded(&self, side: Side, id: RowId, cause: EventTime) -> Combo<2> {
        let ids = if side == Side::Left { [id, RowId::MISSING] } else { [RowId::MISSING, id] };
        Combo { ids, kind: RowKind::Insert, cause }
    }

    fn unmatched(&mut self, side: Side, ids: &[RowId], out: &mut Outbox) {
        let account = &mut self.accounts[side.index()];
        account.open -= ids.len() as u64;
        account.unmatched += ids.len() as u64;
        if self.optional[side.other().index()] {
            let cause = self.oldest_late();
            for &id in ids {
                self.combos.push(self.padded(side, id, cause));
                self.passing.push((side.index(), id));
            }
        } else {
            self.rows.unmatched(side.index(), ids, Reason::IntervalClosed, EventTime::MIN, out);
        }
    }

    // The oldest time that a result may have when late rows are joined.
    fn oldest_late(&self) -> EventTime {
        match self.late_rows {
            LateRows::Aside => EventTime::MIN,
            LateRows::Join => self.watermark.time().minus(self.bounds.widest_wait()),
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

    fn close(&mut self, side: Side, before: i64, out: &mut Outbox) {
        let own = side.index();
        let mut due = Vec::new();
        self.closing[own].take_due(before, &mut due);
        let (mut unmet, mut met) = (Vec::new(), Vec::new());
        for (index, &Due { at, id, hash }) in due.iter().enumerate() {
            if let Some(next) = due.get(index + AHEAD) {
                self.line.prefetch(next.hash);
            }
            if let Some(next) = due.get(index + AHEAD / 2) {
                self.line.prefetch_entry(next.hash);
            }
            // A saturated close does not tell the row's time; the row itself does.
            let time = match self.bounds.time_of(side, EventTime::from_millis(at)) {
                EventTime::MIN => self.rows.time(own, id),
                time => time,
            };
            let held = self.line.remove(hash, side, time, id);
            debug_assert!(held, "a row that closes is held");
            if self.met[own].remove(id) { met.push(id) } else { unmet.push(id) }
        }
        self.rows.discard(own, &met);
        self.unmatched(side, &unmet, out);
        self.select(out);
    }
}

impl<K: Key> Operator for IntervalJoin<K> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let side = if input.0 == 0 { Side::Left } else { Side::Right };
        self.told = [0, 1].map(|input| cx.out.wants(unmatched_port(input)));
        let late_before = match self.late_rows {
            LateRows::Aside => cx.watermark,
            LateRows::Join => Watermark::NONE,
        };
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let taken = self.rows.arrive(input.0, batch, Lateness::facts(late_before), &mut arrivals, cx.out);
        self.take_in(side, &mut arrivals, cx.out);
        self.arrivals = arrivals;
        taken
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.watermark = cx.watermark;
        let before = match cx.watermark {
            Watermark::END => i64::MAX,
            at => at.time().as_millis().saturating_sub(1),
        };
        self.close(Side::Left, before, cx.out);
        self.close(Side::Right, before, cx.out);
        Ok(())
    }

    fn earliest_output(&mut self) -> Option<EventTime> {
        if self.late_rows == LateRows::Join {
            return (self.watermark != Watermark::END).then(|| self.oldest_late());
        }
        let mut earliest = None;
        for side in [Side::Left, Side::Right] {
            if self.optional[side.other().index()] || self.told[side.index()] {
                let met = &self.met[side.index()];
                let closes = self.closing[side.index()].earliest_of(|id| !met.contains(id));
                let time = closes.map(|at| self.bounds.time_of(side, EventTime::from_millis(at)));
                earliest = earliest.into_iter().chain(time).min();
            }
        }
        earliest
    }

    fn figures(&self) -> OpFigures {
        let calendars: u64 = self.closing.iter().map(Expiry::bytes).sum();
        let met: u64 = self.met.iter().map(Bits::bytes).sum();
        OpFigures {
            accounts: self.accounts.to_vec(),
            state_rows: (0..2).map(|input| self.rows.len(input) as u64).collect(),
            state_bytes: self.rows.bytes() + self.line.bytes() + calendars + met,
            emitted: self.rows.emitted(),
        }
    }
}

const COMBOS_MAX: usize = 1_024;
const AHEAD: usize = 16;
