//! Snapshot join: each probe with the rows of its key that stand in a table when it arrives.
//!
//! What was said stands, whatever becomes of the table; so the result is append-only. Event time is that of the probes
//! alone: the table does not hold it back. A join that waits for its table holds the probes, in order, until that has been
//! loaded.

mod keep;

use super::joined::{Arrival, Arrivals, Combo, JoinRows, Lateness};
use super::{Cx, InputId, Operator, Outbox};
use crate::account::{Account, OpFigures, Reason};
use crate::batch::AnyBatch;
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Bits, Lists, RowId, Sealed, Sealing, Spill, Table};
use crate::time::{EventTime, ProcTime, Span, Watermark};
use crate::watermark::Progress;
use keep::Journal;

/// When a table counts as loaded: when its source has ended or is idle, and besides as soon as what it says here holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    at: Option<EventTime>,
    quiet: Option<Span>,
}

impl Loaded {
    /// When its source has ended, as a file does, or counts as idle by the `idle` of its rows: it has caught up.
    pub const fn caught_up() -> Loaded {
        Loaded { at: None, quiet: None }
    }

    /// Also when the watermark of the table has reached this time: all changes before it have come.
    pub const fn at(time: EventTime) -> Loaded {
        Loaded { at: Some(time), quiet: None }
    }

    /// Also when no change has come for so long, on the clock of the machine, since the flow began or the last one came.
    pub const fn quiet_for(span: Span) -> Loaded {
        Loaded { at: None, quiet: Some(span) }
    }

    /// Or when no change has come for so long.
    pub const fn or_quiet_for(mut self, span: Span) -> Loaded {
        self.quiet = Some(span);
        self
    }

    /// How long it has to be quiet, if that is asked for.
    pub const fn quiet(&self) -> Option<Span> {
        self.quiet
    }
}

impl std::fmt::Display for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("has caught up")?;
        self.at.map_or(Ok(()), |at| write!(f, ", has reached {at}"))?;
        self.quiet.map_or(Ok(()), |span| write!(f, ", or is quiet for {span}"))
    }
}

/// A join of probes (input 0) with a table (input 1).
pub struct SnapshotJoin<K: Key> {
    optional: bool,
    // None once the table has been loaded.
    load: Option<Loading<K>>,
    rows: Box<dyn JoinRows<K, 2>>,
    table: Table<K, Lists<1>, Spill>,
    // Rows of the table that have been in a result.
    met: Bits,
    // Where state is kept: which of the probes that wait have been sealed.
    journal: Option<Box<Journal>>,
    accounts: [Account; 2],
    arrivals: Arrivals<K>,
    combos: Vec<Combo<2>>,
    // Rows that are dropped once the combinations that name them have been selected.
    passing: Vec<(usize, RowId)>,
}

struct Loading<K> {
    until: Loaded,
    held: Vec<Arrival<K>>,
    earliest: Option<EventTime>,
    quiet_since: ProcTime,
}

impl<K> Loading<K> {
    fn deadline(&self) -> Option<ProcTime> {
        Some(self.quiet_since.plus(self.until.quiet?))
    }
}

const PROBES: usize = 0;
const TABLE: usize = 1;

impl<K: Key> SnapshotJoin<K> {
    /// A join over these rows, that waits for its table if it is said until when, and from when on.
    pub fn new(optional: bool, load: Option<(Loaded, ProcTime)>, rows: Box<dyn JoinRows<K, 2>>) -> Self {
        let loading = |(until, quiet_since)| Loading { until, held: Vec::new(), earliest: None, quiet_since };
        SnapshotJoin {
            optional,
            load: load.map(loading),
            rows,
            table: Table::default(),
            met: Bits::default(),
            journal: None,
            accounts: [Account::default(); 2],
            arrivals: Arrivals::default(),
            combos: Vec::new(),
            passing: Vec::new(),
        }
    }

    fn take_probes(&mut self, arrivals: &mut Arrivals<K>, out: &mut Outbox) {
        if let Some(loading) = &mut self.load {
            // For a null there is nothing to wait for.
            let mut nulls: Vec<Arrival<K>> = arrivals.rows.extract_if(.., |row| row.key.is_null()).collect();
            let times = arrivals.rows.iter().map(|row| row.time);
            loading.earliest = loading.earliest.into_iter().chain(times).min();
            self.accounts[PROBES].open += (arrivals.rows.len() + nulls.len()) as u64;
            loading.held.append(&mut arrivals.rows);
            return self.join(&mut nulls, out);
        }
        self.accounts[PROBES].open += arrivals.rows.len() as u64;
        self.join(&mut arrivals.rows, out);
    }

    // Joins probes with what stands.
    fn join(&mut self, probes: &mut Vec<Arrival<K>>, out: &mut Outbox) {
        let mut rows = probes.drain(..);
        while let Some(Arrival { key, hash, time, id }) = rows.next() {
            if let Some(next) = rows.as_slice().get(AHEAD) {
                self.table.prefetch(next.hash);
            }
            if let Some(next) = rows.as_slice().get(AHEAD / 2) {
                self.table.prefetch_entry(next.hash);
            }
            self.accounts[PROBES].open -= 1;
            let place = if key.is_null() { None } else { self.table.find(hash, &key) };
            let Some(place) = place else {
                self.alone(id, time, key.is_null(), out);
                continue;
            };
            self.accounts[PROBES].matched += 1;
            let (lists, spill) = self.table.view(place);
            let (front, back) = lists.list(0, spill);
            let mut first = false;
            for &row in front.iter().chain(back) {
                if self.met.insert(row) {
                    first = true;
                    self.accounts[TABLE].matched += 1;
                    self.accounts[TABLE].open -= 1;
                }
                self.combos.push(Combo { ids: [id, row], kind: RowKind::Insert, cause: time });
            }
            if first && self.table.is_kept() {
                // That its rows have met is kept with them.
                self.table.at(place);
            }
            self.passing.push((PROBES, id));
            if self.combos.len() >= COMBOS_MAX {
                self.select(out);
            }
        }
        drop(rows);
        self.select(out);
    }

    fn alone(&mut self, id: RowId, cause: EventTime, is_null: bool, out: &mut Outbox) {
        let account = &mut self.accounts[PROBES];
        *(if is_null { &mut account.null_key } else { &mut account.unmatched }) += 1;
        account.no_version += u64::from(!is_null);
        if self.optional {
            self.combos.push(Combo { ids: [id, RowId::MISSING], kind: RowKind::Insert, cause });
            self.passing.push((PROBES, id));
        } else {
            let reason = if is_null { Reason::NullKey } else { Reason::NoVersion };
            self.rows.unmatched(PROBES, &[id], reason, EventTime::MIN, out);
        }
    }

    fn change_table(&mut self, arrivals: &mut Arrivals<K>, out: &mut Outbox) {
        let kinds = &arrivals.kinds;
        for (index, Arrival { key, hash, id, .. }) in arrivals.rows.drain(..).enumerate() {
            if key.is_null() {
                self.accounts[TABLE].null_key += 1;
                self.passing.push((TABLE, id));
            } else if kinds.at(index).adds() {
                self.put(hash, key, id);
            } else {
                self.take_back(hash, &key, id);
            }
        }
        self.select(out);
    }

    fn put(&mut self, hash: u64, key: K, id: RowId) {
        self.accounts[TABLE].open += 1;
        if self.rows.has_identity(TABLE)
            && let Some(old) = self.take_standing(hash, &key, id)
        {
            self.gone(old, false);
        }
        let place = self.table.upsert(hash, key);
        let (lists, spill) = self.table.at(place);
        lists.push(0, id, spill);
    }

    fn take_back(&mut self, hash: u64, key: &K, id: RowId) {
        match self.take_standing(hash, key, id) {
            Some(old) => self.gone(old, true),
            None => self.accounts[TABLE].orphan += 1,
        }
        self.passing.push((TABLE, id));
    }

    // Takes the row out that is the same as this one.
    fn take_standing(&mut self, hash: u64, key: &K, id: RowId) -> Option<RowId> {
        let place = self.table.find(hash, key)?;
        let (lists, spill) = self.table.view(place);
        let (front, back) = lists.list(0, spill);
        let rows = &mut self.rows;
        let old = front.iter().chain(back).copied().find(|&other| rows.same(TABLE, other, id))?;
        let (lists, spill) = self.table.at(place);
        lists.remove(0, old, spill);
        if lists.present() == 0 {
            self.table.remove(place);
        }
        Some(old)
    }

    // A row leaves, by a retraction of its own or because another takes its place.
    fn gone(&mut self, id: RowId, by_retraction: bool) {
        let account = &mut self.accounts[TABLE];
        if self.met.remove(id) {
            account.matched += u64::from(by_retraction);
        } else {
            account.open -= 1;
            account.retracted += 1 + u64::from(by_retraction);
        }
        self.passing.push((TABLE, id));
    }

    fn select(&mut self, out: &mut Outbox) {
        if !self.combos.is_empty() {
            self.rows.select(&self.combos, out);
            self.combos.clear();
        }
        for (input, id) in self.passing.drain(..) {
            self.rows.discard(input, &[id]);
        }
    }

    // Something has come: where it is of the table, that is not quiet.
    fn stir(&mut self, input: usize, now: ProcTime) {
        if let Some(loading) = &mut self.load
            && input == TABLE
        {
            loading.quiet_since = now;
        }
    }

    fn end_loading(&mut self, out: &mut Outbox) {
        if let Some(mut loading) = self.load.take() {
            if let Some(journal) = &mut self.journal {
                journal.on_gone(&loading.held);
            }
            self.join(&mut loading.held, out);
        }
    }
}

impl<K: Key> Operator for SnapshotJoin<K> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.on_clock(cx)?;
        self.stir(input.0, cx.now);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let lateness = if input.0 == PROBES { Lateness::facts(cx.watermark) } else { Lateness::TIMELESS };
        let taken = self.rows.arrive(input.0, batch, lateness, &mut arrivals, cx.out);
        let account = &mut self.accounts[input.0];
        account.rows += arrivals.rows.len() as u64 + arrivals.late;
        account.late += arrivals.late;
        match input.0 {
            PROBES => self.take_probes(&mut arrivals, cx.out),
            _ => self.change_table(&mut arrivals, cx.out),
        }
        self.arrivals = arrivals;
        taken
    }

    fn waits_for(&self, input: InputId) -> bool {
        input.0 != TABLE
    }

    fn on_progress(&mut self, input: InputId, progress: Progress, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.on_clock(cx)?;
        self.stir(input.0, cx.now);
        let Some(loading) = &self.load else { return Ok(()) };
        let is_loaded = match progress {
            Progress::At(watermark) => loading.until.at.is_some_and(|at| watermark.time() >= at),
            Progress::Idle | Progress::End => true,
            Progress::Active | Progress::Stopped => false,
        };
        if is_loaded {
            self.end_loading(cx.out);
        }
        Ok(())
    }

    fn on_clock(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if self.deadline().is_some_and(|at| at <= cx.now) {
            self.end_loading(cx.out);
        }
        Ok(())
    }

    fn on_end(&mut self, _: &mut Cx<'_>) -> Result<(), OpError> {
        let account = &mut self.accounts[TABLE];
        account.unmatched += std::mem::take(&mut account.open);
        Ok(())
    }

    fn earliest_output(&mut self) -> Option<EventTime> {
        self.load.as_ref().and_then(|loading| loading.earliest)
    }

    fn deadline(&mut self) -> Option<ProcTime> {
        self.load.as_ref().and_then(Loading::deadline)
    }

    fn figures(&self) -> OpFigures {
        let held = self.load.as_ref().map_or(0, |loading| loading.held.capacity() * size_of::<Arrival<K>>()) as u64;
        let journal = self.journal.as_ref().map_or(0, |journal| journal.bytes());
        OpFigures {
            accounts: self.accounts.to_vec(),
            state_rows: (0..2).map(|input| self.rows.len(input) as u64).collect(),
            state_bytes: self.rows.bytes() + self.table.bytes(Spill::bytes) + self.met.bytes() + held + journal,
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

    fn resume(&mut self, _: Watermark, now: ProcTime) {
        self.resume_at(now);
    }
}

const COMBOS_MAX: usize = 1_024;

/// Rows whose place is asked for ahead of use.
const AHEAD: usize = 16;
