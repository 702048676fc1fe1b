//! Regular and N-way joins: rows by key in N lists, and a kernel over them.
//!
//! A row is taken in once, looked up once and never copied (`coming`); the combinations it completes are collected as
//! ids, and the user's `select` runs over them once a batch. There is no place for intermediate results. Facts change the result
//! as they come (here); where rows update and go, or partners only have to exist, or there are conditions, the changes
//! of a batch are folded by key first (`fold`). With a TTL, rows leave by the clock (`leave`): what was said stands, and
//! what stands is remembered so that nothing is retracted that does not (`said`).

mod coming;
mod delays;
mod emit;
mod fold;
mod index;
mod keep;
mod leave;
mod nulls;
mod owed;
mod pairs;
mod said;
mod spec;
mod table;

use std::collections::BTreeMap;

use super::conditional::Steps;
use super::joined::{Combo, JoinRows, Lateness, Located, unmatched_port};
use super::product::{self, Shape, Step, Wheels};
use super::{Cx, InputId, Operator};
use crate::account::{Account, OpFigures};
use crate::batch::AnyBatch;
use crate::change::RowKind;
use crate::delays::MatchDelays;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Clock, Due, Expiry, KeyedRows, Lists, Met, Place, RowId, Sealed, Sealing, Spill};
use crate::time::{EventTime, ProcTime, Span, Watermark};
use coming::Coming;
use delays::Delays;
use fold::Folding;
use index::Index;
use said::{Gaps, Said};
pub use spec::{Emit, OnExpiry, Spec};

/// A join of N inputs on one key.
pub struct MultiJoin<K: Key, const N: usize> {
    spec: Spec<N>,
    shape: Shape,
    // The other kernel, where there are conditions.
    steps: Option<Steps<N>>,
    // Inputs whose rows change the result one by one, as they come.
    at_once: [bool; N],
    // Whether what stands follows from the lists, by the product of all of them.
    simple: bool,
    rows: Box<dyn JoinRows<K, N>>,
    table: KeyedRows<K, N>,
    met: Met<N>,
    accounts: [Account; N],
    leaving: [Option<Leaving>; N],
    said: Said<K, N>,
    gaps: Option<Gaps<N>>,
    // How long rows wait for each other, where they expire.
    delays: Option<Box<Delays<N>>>,
    // Inputs whose rows are noted as they come: when they leave or are told, how long they wait, that they are not said.
    notes: [bool; N],
    // The rows of a batch that have not been joined yet.
    coming: Coming<K>,
    // Inputs whose rows stand beside those of the others.
    side_by_side: [bool; N],
    // The rows of inputs that change, by key and unique key (or all of the row): how one is found that is replaced or
    // taken back, where a key may have many.
    index: [Option<Index>; N],
    // The rows with null keys of inputs that change, where such rows stand alone.
    nulls: [Option<Index>; N],
    folding: Folding,
    combos: Vec<Combo<N>>,
    // How many of them have been selected.
    selected: usize,
    // Rows that are dropped once the combinations that name them have been selected.
    passing: Vec<(usize, RowId)>,
    // The last watermark before the end: nothing that comes out may be older.
    frontier: EventTime,
    // Rows that have left with the end, though nobody asked for them: they are not looked for.
    left: [u64; N],
    // Which unmatched rows are read.
    read: [bool; N],
    // Whether gaps that wait for the end are still to be told, if it is known.
    owes_gaps: Option<bool>,
    ended: bool,
}

struct Leaving {
    ttl: Span,
    clock: Clock,
    expiry: Expiry,
    // When rows leave that were written again since they were noted in the calendar.
    renewed: BTreeMap<RowId, i64>,
    // When each row leaves, by its index, where that is to be kept.
    due: Option<Vec<i64>>,
}

impl Leaving {
    // Notes when a row leaves that has come.
    #[inline]
    fn enter(&mut self, hash: u64, (id, time): (RowId, EventTime), now: ProcTime) {
        let written = match self.clock {
            Clock::Processing => now.as_millis(),
            Clock::Event => time.as_millis(),
        };
        self.leave_at(written.saturating_add(self.ttl.as_millis()), id, hash);
    }

    #[inline]
    fn leave_at(&mut self, at: i64, id: RowId, hash: u64) {
        self.expiry.push(Due { at, id, hash });
        if let Some(due) = &mut self.due {
            if due.len() <= id.index() {
                due.resize(id.index() + 1, i64::MAX);
            }
            due[id.index()] = at;
        }
    }
}

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// A join that does what the spec says, over these rows.
    pub fn new(spec: Spec<N>, rows: Box<dyn JoinRows<K, N>>) -> Self {
        let leaving = spec.ttls.map(|ttl| {
            let (ttl, clock) = ttl.span()?;
            Some(Leaving { ttl, clock, expiry: Expiry::new(ttl.as_millis()), renewed: BTreeMap::new(), due: None })
        });
        let plain = spec.conditions == 0 && spec.kinds.iter().all(|kind| kind.shows()) && !spec.waits();
        let said = Said::of(&spec);
        // A row that stands alone is noted as it is told, which is done where changes are folded.
        let noted = matches!(said, Said::Alone(_));
        // The id of a row that the calendar still has may name no other, and the place in a slot is soon that of another.
        let side_by_side = |input: usize| {
            let replaced = spec.changes[input] || rows.has_identity(input);
            rows.are_small() && (leaving[input].is_none() || !replaced)
        };
        let (gaps, delays) = (Gaps::of(&spec), Delays::of(&spec));
        let always = gaps.is_some() || delays.is_some() || matches!(said, Said::Numbered(_));
        MultiJoin {
            notes: std::array::from_fn(|input| always || leaving[input].is_some()),
            shape: Shape::of(&spec.kinds),
            steps: spec.steps(),
            simple: plain && matches!(said, Said::AsHeld),
            at_once: spec.changes.map(|changes| plain && !noted && !changes),
            side_by_side: std::array::from_fn(side_by_side),
            table: KeyedRows::default(),
            met: Met::default(),
            accounts: [Account::default(); N],
            leaving,
            said,
            gaps,
            delays,
            coming: Coming::default(),
            index: std::array::from_fn(|input| (spec.changes[input] && !spec.one_a_key[input]).then(Index::default)),
            nulls: std::array::from_fn(|input| {
                let taken_back =
                    spec.changes[input] || spec.expiry_retracts(input) && spec.ttls[input].span().is_some();
                let stand = taken_back && spec.stands_alone(input) && !spec.is_table(input);
                stand.then(Index::default)
            }),
            folding: Folding::default(),
            combos: Vec::new(),
            selected: 0,
            passing: Vec::new(),
            frontier: EventTime::MIN,
            left: [0; N],
            read: [false; N],
            owes_gaps: None,
            ended: false,
            rows,
            spec,
        }
    }

    // Notes that a row has come under a key.
    #[inline]
    fn enter(&mut self, input: usize, place: Place, row: (u64, RowId, EventTime), now: ProcTime) {
        self.accounts[input].open += 1;
        if self.notes[input] {
            self.note(input, place, row, now);
        }
    }

    fn note(&mut self, input: usize, place: Place, (hash, id, time): (u64, RowId, EventTime), now: ProcTime) {
        if let Some(delays) = &mut self.delays
            && delays.takes(hash)
        {
            delays.on_arrival(input, (hash, id), self.table.view(place).0.present(), now);
        }
        if let Some(leaving) = &mut self.leaving[input] {
            leaving.enter(hash, (id, time), now);
        }
        self.said.on_arrival(input, id);
        if let Some(gaps) = &mut self.gaps {
            gaps.on_arrival(input, id, hash, now);
        }
    }

    #[inline]
    fn on_insert(&mut self, input: usize, place: Place, row: &Located, now: ProcTime) {
        let &Located { hash, id, time, .. } = row;
        let before = self.combos.len();
        self.enter(input, place, (hash, id, time), now);
        if self.leaving[input].is_some() {
            self.renew_equals((place, hash), input, id, now);
        }
        let (mut lists, mut spill) = self.table.at(place);
        // Whoever the others met may have expired since.
        let others_met = lists.met() >> input & 1 == 1 && lists.present() & !(1 << input) != 0;
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
                (lists, spill) = self.table.at(place);
            }
            self.combos.push(Combo { ids, kind: RowKind::Insert, cause: time });
        } else if self.shape.is_inner() {
            Self::emit_inner((lists, spill), (input, id), time, &mut self.combos);
        } else {
            self.emit_product(place, Step { input, row: id, enters: true, alone }, time);
            (lists, spill) = self.table.at(place);
        }
        if others_met {
            // Of a long list only the new row has not met yet.
            lists.set_met_of(input);
            if self.met.insert(input, id) {
                self.accounts[input].meets();
            }
        }
        Self::meet_all(place, (lists, spill), &mut self.met, &mut self.accounts);
        let was_hushed = lists.hushed() >> input & 1 == 1;
        if self.looks_at(hash) {
            self.take_waits(input, hash, before);
        }
        if was_hushed {
            self.announced(place, input);
        }
    }

    // The rows of a key have come out, each with all rows of the other inputs, if any other input has one.
    #[inline]
    fn meet_all(place: Place, (lists, spill): (&mut Lists<N>, &Spill), met: &mut Met<N>, accounts: &mut [Account; N]) {
        let present = lists.present();
        if present.count_ones() < 2 {
            return;
        }
        let mut news = present & !lists.met();
        let mut in_slot = 0;
        while news != 0 {
            let input = news.trailing_zeros() as usize;
            news &= news - 1;
            // Those in slots are marked together: an input has one there at most.
            let mut meet = |id: RowId| match id.slot() {
                Some(_) => in_slot |= 1 << input,
                None if met.insert(input, id) => accounts[input].meets(),
                None => {}
            };
            if lists.many() >> input & 1 == 0 {
                meet(lists.firsts()[input]);
            } else {
                let (front, back) = lists.list(input, spill);
                front.iter().chain(back).for_each(|&id| meet(id));
            }
        }
        let mut first = if in_slot == 0 { 0 } else { met.insert_in_slot(place.number(), in_slot) };
        while first != 0 {
            accounts[first.trailing_zeros() as usize].meets();
            first &= first - 1;
        }
        lists.set_met();
    }

    // A row that is told again, equal and of the same time, is written again: the copies held stay as long as the new
    // one. Only the last few rows of the list are looked at, so that a key with many rows does not pay for each; and
    // rows of another time, which nearly all are, cost no comparison of bytes. By event time, equal times are due
    // together anyway.
    #[inline]
    fn renew_equals(&mut self, (place, hash): (Place, u64), input: usize, id: RowId, now: ProcTime) {
        let (lists, spill) = self.table.at(place);
        let Some(leaving) = &mut self.leaving[input] else { return };
        if lists.present() >> input & 1 == 0 || leaving.clock == Clock::Event {
            return;
        }
        let due = now.plus(leaving.ttl).as_millis();
        let (front, back) = lists.list(input, spill);
        let time = self.rows.time(input, id);
        for &other in front.iter().chain(back).rev().take(COPIES_MAX) {
            if self.rows.time(input, other) == time && self.rows.same(input, id, other) {
                leaving.renewed.insert(other, due);
                if let Some(delays) = &mut self.delays
                    && delays.takes(hash)
                {
                    delays.on_renewal(input, (hash, other), now);
                }
            }
        }
    }

    // All that could miss a row of this input has now been told of it, one way or the other.
    fn announced(&mut self, place: Place, input: usize) {
        self.table.at(place).0.set_hushed(input, false);
        if let Said::Numbered(hushed) = &mut self.said {
            hushed.on_announced(self.table.key_at(place), input);
        }
    }

    fn emit_gap(&mut self, place: Place, ids: [RowId; N], time: EventTime) {
        if self.stands(place, &ids) {
            self.combos.push(Combo { ids, kind: RowKind::Delete, cause: time });
        }
    }

    fn stands(&mut self, place: Place, ids: &[RowId; N]) -> bool {
        let (lists, _) = self.table.at(place);
        match &self.said {
            Said::Numbered(hushed) if lists.hushed() != 0 => hushed.stands(self.table.key_at(place), ids),
            _ => true,
        }
    }

    // A row has come where no input is optional: nothing is taken back, and only inputs with several rows turn.
    #[inline]
    fn emit_inner(
        (lists, spill): (&Lists<N>, &Spill),
        (input, row): (usize, RowId),
        time: EventTime,
        combos: &mut Vec<Combo<N>>,
    ) {
        let mut ids = *lists.firsts();
        let mut wheels = Wheels::default();
        let mut many = lists.many();
        while many != 0 {
            let other = many.trailing_zeros() as usize;
            many &= many - 1;
            if other != input {
                ids[other] = wheels.add(other, lists.list(other, spill));
            }
        }
        ids[input] = row;
        product::turn(ids, &wheels, &mut |&ids| combos.push(Combo { ids, kind: RowKind::Insert, cause: time }));
    }

    fn emit_product(&mut self, place: Place, step: Step, time: EventTime) {
        let (lists, spill) = self.table.view(place);
        let runs = std::array::from_fn(|input| lists.list(input, spill));
        let hushed = match &self.said {
            Said::Numbered(hushed) if lists.hushed() != 0 => Some((hushed, self.table.key_at(place))),
            _ => None,
        };
        let combos = &mut self.combos;
        product::delta(&self.shape, &runs, step, &mut |adds, ids| {
            // What was never said is not taken back.
            if adds || hushed.is_none_or(|(hushed, key)| hushed.stands(key, ids)) {
                let kind = if adds { RowKind::Insert } else { RowKind::Delete };
                combos.push(Combo { ids: *ids, kind, cause: time });
            }
        });
    }

    fn forget(&mut self, place: Place) {
        let (key, _) = self.table.remove(place);
        if let Said::Numbered(hushed) = &mut self.said {
            hushed.on_gone(&key);
        }
    }
}

impl<K: Key, const N: usize> Operator for MultiJoin<K, N> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        // What is due leaves before anything comes.
        let limited = cx.out.limit(false);
        self.on_clock(cx)?;
        cx.out.limit(limited);
        let input = input.0;
        self.read = std::array::from_fn(|input| cx.out.wants(unmatched_port(input)));
        self.owes_gaps = None;
        let lateness = match self.spec.changes[input] {
            true => Lateness::changes(cx.watermark),
            false => Lateness::facts(cx.watermark),
        };
        let (staged, truncations) = match self.spec.is_table(input) {
            true => self.rows.stage_table(input, batch, lateness.not_before)?,
            false => (self.rows.stage(input, batch, lateness, cx.out)?, Vec::new()),
        };
        let late = staged.late;
        self.coming.begin(input, staged, truncations);
        self.accounts[input].rows += self.coming.len() as u64 + late;
        self.accounts[input].late += late;
        self.proceed(cx)
    }

    fn has_more(&self) -> bool {
        self.selected < self.combos.len() || self.folding.is_pending() || !self.coming.is_done()
    }

    fn on_more(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if self.select(cx.out) && self.unfold(cx.out) { self.proceed(cx) } else { Ok(()) }
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if cx.watermark != Watermark::END {
            self.frontier = cx.watermark.time();
        }
        let limited = cx.out.limit(false);
        self.expire(Clock::Event, cx.watermark.time().as_millis(), cx.out);
        cx.out.limit(limited);
        Ok(())
    }

    fn on_clock(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.tell_delayed(cx);
        self.expire(Clock::Processing, cx.now.as_millis(), cx.out);
        Ok(())
    }

    fn on_end(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.ended = true;
        self.end(cx.out);
        Ok(())
    }

    fn owes(&mut self) -> bool {
        !self.ended && (self.owes_rows() || self.owes_gaps())
    }

    fn deadline(&mut self) -> Option<ProcTime> {
        if self.ended {
            return None;
        }
        let timed = self.leaving.iter_mut().flatten().filter(|leaving| leaving.clock == Clock::Processing);
        let delayed = self.gaps.as_mut().and_then(Gaps::earliest);
        timed.filter_map(|leaving| leaving.expiry.earliest()).chain(delayed).min().map(ProcTime::from_millis)
    }

    fn delays(&self) -> Option<MatchDelays> {
        self.delays.as_ref().map(|delays| delays.figures())
    }

    fn figures(&self) -> OpFigures {
        let renewed = |leaving: &Leaving| {
            let due = leaving.due.as_ref().map_or(0, Vec::capacity) * size_of::<i64>();
            (leaving.renewed.len() * size_of::<(RowId, i64)>() + due) as u64
        };
        let index: u64 = self.index.iter().chain(&self.nulls).flatten().map(Index::bytes).sum();
        let calendars: u64 = self.leaving.iter().flatten().map(|it| it.expiry.bytes() + renewed(it)).sum();
        let met = self.met.bytes();
        let said = self.said.bytes() + self.gaps.as_ref().map_or(0, Gaps::bytes);
        let delays = self.delays.as_ref().map_or(0, |delays| delays.bytes());
        OpFigures {
            accounts: self.accounts.to_vec(),
            state_rows: (0..N).map(|input| self.rows.len(input) as u64 - self.left[input]).collect(),
            state_bytes: self.rows.bytes() + self.table.total_bytes() + calendars + met + said + index + delays,
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
}

/// Combinations that are collected before they are selected.
const COMBOS_MAX: usize = 1_024;

/// Rows whose place is asked for ahead of use.
const AHEAD: usize = 24;

/// Rows of a list that are looked at for copies of one that comes.
const COPIES_MAX: usize = 8;
