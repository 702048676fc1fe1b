//! Temporal join: each probe with the version of its key that held at its time.
//!
//! A probe waits until W > probe.time: then all versions up to its time have come, and all probes before it, so it is
//! looked up and comes out, in order of time. Of the versions of a key, those before the newest that is not after W are
//! dropped, by a calendar, whether the key is quiet or not. A version behind W serves the probes that still wait or come;
//! what has been said stands, unless probes are kept for a time to be corrected (`correct`).

mod correct;
mod keep;

use super::joined::{Arrival, Arrivals, Combo, JoinRows, Lateness};
use super::{Cx, InputId, Operator, Outbox};
use crate::account::{Account, OpFigures, Reason};
use crate::batch::AnyBatch;
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Agenda, Bits, Due, Expiry, Found, RowId, Sealed, Sealing, Version, Versions};
use crate::time::{EventTime, ProcTime, Span, Watermark};
use correct::Kept;
use keep::Journal;

/// What a temporal join is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Whether a probe without a version is in the result.
    pub optional: bool,
    /// How long a version holds at the most.
    pub keep: Option<Span>,
    /// How long probes are kept to be corrected by late versions.
    pub correct: Option<Span>,
}

/// A join of probes (input 0) with the versions of a table (input 1).
///
/// The rows of a version that deletes are placeholders: their kind says that there is none.
pub struct TemporalJoin<K: Key> {
    optional: bool,
    rows: Box<dyn JoinRows<K, 2>>,
    versions: Versions<K>,
    waiting: Agenda<Probe<K>>,
    // When there may be something to drop among the versions of a hash.
    pruning: Expiry,
    // Versions that have been counted: as matched, when they first serve a probe, or on arrival.
    counted: Bits,
    kept: Option<Kept<K>>,
    // Where state is kept: which probes have come and gone.
    journal: Option<Box<Journal>>,
    accounts: [Account; 2],
    watermark: Watermark,
    // What the watermark that has come last still has to do.
    to_do: Option<ToDo>,
    arrivals: Arrivals<K>,
    // Probes that have been taken out of those that wait, or of those that are kept, the last one first.
    due: Vec<(EventTime, Probe<K>)>,
    combos: Vec<Combo<2>>,
    // Probes that are dropped once the combinations that name them have been selected, and versions likewise.
    told: Vec<RowId>,
    dropped: Vec<Version>,
    // Probes to go to the unmatched output, by reason.
    alone: [Vec<RowId>; 3],
}

/// A probe, by its key and place.
#[derive(Debug)]
struct Probe<K> {
    key: K,
    hash: u64,
    id: RowId,
}

// What is to be done as the watermark moves, in this order.
#[derive(Clone, Copy, Debug)]
enum ToDo {
    // Probes before it are told.
    Tell(Watermark),
    // Probes that are corrected no more are let go, and versions that are not needed any more are dropped.
    LetGo,
}

const PROBES: usize = 0;
const VERSIONS: usize = 1;

impl<K: Key> TemporalJoin<K> {
    /// A join that does what the spec says, over these rows.
    pub fn new(spec: Spec, rows: Box<dyn JoinRows<K, 2>>) -> Self {
        TemporalJoin {
            optional: spec.optional,
            rows,
            versions: Versions::new(spec.keep),
            waiting: Agenda::default(),
            pruning: Expiry::new(spec.keep.map_or(PRUNING_MS, Span::as_millis)),
            counted: Bits::default(),
            kept: spec.correct.map(Kept::new),
            journal: None,
            accounts: [Account::default(); 2],
            watermark: Watermark::NONE,
            to_do: None,
            arrivals: Arrivals::default(),
            due: Vec::new(),
            combos: Vec::new(),
            told: Vec::new(),
            dropped: Vec::new(),
            alone: Default::default(),
        }
    }

    fn take_probes(&mut self, arrivals: &mut Arrivals<K>, out: &mut Outbox) {
        let mut nulls = Vec::new();
        for Arrival { key, hash, time, id } in arrivals.rows.drain(..) {
            if key.is_null() {
                nulls.push((id, time));
            } else {
                self.accounts[PROBES].open += 1;
                if let Some(journal) = &mut self.journal {
                    journal.on_probe(time, id);
                }
                self.waiting.push(time, Probe { key, hash, id });
            }
        }
        self.accounts[PROBES].null_key += nulls.len() as u64;
        if self.optional {
            let padded = |&(id, cause)| Combo { ids: [id, RowId::MISSING], kind: RowKind::Insert, cause };
            self.combos.extend(nulls.iter().map(padded));
            self.told.extend(nulls.iter().map(|(id, _)| *id));
            self.select(out);
        } else if !nulls.is_empty() {
            let ids: Vec<RowId> = nulls.into_iter().map(|(id, _)| id).collect();
            self.rows.unmatched(PROBES, &ids, Reason::NullKey, EventTime::MIN, out);
        }
    }

    fn take_versions(&mut self, arrivals: &mut Arrivals<K>, out: &mut Outbox) {
        let kinds = &arrivals.kinds;
        let mut rows = arrivals.rows.drain(..);
        let mut index = 0;
        while let Some(Arrival { key, hash, time, id }) = rows.next() {
            self.prefetch(rows.as_slice(), |row| row.hash);
            let deletes = !kinds.at(index).adds();
            index += 1;
            if key.is_null() {
                self.accounts[VERSIONS].null_key += 1;
                self.rows.discard(VERSIONS, &[id]);
                continue;
            }
            self.take_version(hash, key, Version { time, id, deletes }, out);
        }
        self.select(out);
    }

    fn take_version(&mut self, hash: u64, key: K, version: Version, out: &mut Outbox) {
        let Version { time, id, deletes } = version;
        let is_late = self.watermark.is_late(time);
        let account = &mut self.accounts[VERSIONS];
        if is_late || deletes {
            *(if is_late { &mut account.late } else { &mut account.matched }) += 1;
            self.counted.insert(id);
        } else {
            account.open += 1;
        }
        let correcting = (is_late && self.kept.is_some()).then(|| key.clone());
        let inserted = self.versions.insert(hash, key, version);
        if let Some(key) = correcting {
            self.correct((hash, &key), version, inserted);
        }
        self.dropped.extend(inserted.replaced);
        // When the newer of two neighbours holds, the older is not needed any more.
        let superseded = if inserted.before.is_some() { Some(time) } else { inserted.until };
        let horizon = self.horizon();
        let mut is_over = false;
        for at in superseded.into_iter().chain(self.versions.end_of(time)) {
            match at <= horizon {
                true => is_over = true,
                false => self.pruning.push(Due { at: at.as_millis(), id: RowId::MISSING, hash }),
            }
        }
        if is_over {
            self.versions.prune(hash, horizon, &mut self.dropped);
        }
        if self.dropped.len() + self.combos.len() >= COMBOS_MAX {
            self.select(out);
        }
    }

    // No time before this is looked up any more.
    fn horizon(&self) -> EventTime {
        match (&self.kept, self.watermark) {
            (Some(kept), watermark) if watermark != Watermark::END => watermark.time().minus(kept.span()),
            (_, watermark) => watermark.time(),
        }
    }

    // Does what there is to do, until the outbox is full.
    fn go_on(&mut self, out: &mut Outbox) {
        if let Some(ToDo::Tell(watermark)) = self.to_do
            && self.tell(watermark, out)
        {
            self.watermark = watermark;
            self.to_do = Some(ToDo::LetGo);
        }
        if let Some(ToDo::LetGo) = self.to_do
            && self.let_go(out)
        {
            self.to_do = None;
            self.prune(out);
        }
    }

    // Looks up all that waits for a time before the watermark; returns false when the outbox is full.
    fn tell(&mut self, watermark: Watermark, out: &mut Outbox) -> bool {
        loop {
            while let Some((time, probe)) = self.due.pop() {
                let coming = &self.due[..];
                if let Some(next) = coming.len().checked_sub(AHEAD) {
                    self.versions.prefetch(coming[next].1.hash);
                }
                if let Some(next) = coming.len().checked_sub(AHEAD / 2) {
                    self.versions.prefetch_entry(coming[next].1.hash);
                }
                let found = self.versions.at(probe.hash, &probe.key, time);
                self.tell_probe(time, probe, found);
                if self.combos.len() + self.told.len() >= COMBOS_MAX {
                    self.select(out);
                    if out.is_full() {
                        return false;
                    }
                }
            }
            self.select(out);
            self.waiting.take_part_before(watermark, PART, &mut self.due);
            if self.due.is_empty() {
                return true;
            }
            // The next one is always the last of those that are left.
            self.due.reverse();
        }
    }

    #[inline]
    fn tell_probe(&mut self, time: EventTime, probe: Probe<K>, found: Found) {
        let id = probe.id;
        let mut version = RowId::MISSING;
        if let Found::Row(row) = found {
            version = row;
            if self.serves(row) {
                self.versions.on_change_of(probe.hash, &probe.key);
            }
        }
        if self.optional || !version.is_missing() {
            self.combos.push(Combo { ids: [id, version], kind: RowKind::Insert, cause: time });
        }
        if let Some(kept) = &mut self.kept {
            let matched = u64::from(!version.is_missing());
            self.accounts[PROBES].matched += matched;
            self.accounts[PROBES].open -= matched;
            return kept.push(time, probe, matched == 1);
        }
        self.on_gone(probe.hash, time, id);
        self.part_with(id, found);
    }

    // A version is in a result; returns whether it was in none before.
    #[inline]
    fn serves(&mut self, version: RowId) -> bool {
        let first = self.counted.insert(version);
        if first {
            self.accounts[VERSIONS].matched += 1;
            self.accounts[VERSIONS].open -= 1;
        }
        first
    }

    // A probe that waits no longer leaves, with what was found for it.
    #[inline]
    fn part_with(&mut self, id: RowId, found: Found) {
        let account = &mut self.accounts[PROBES];
        account.open -= 1;
        let Some(reason) = reason_of(found) else {
            account.matched += 1;
            return self.told.push(id);
        };
        account.unmatched += 1;
        match reason {
            Reason::NeverSeen => account.never_seen += 1,
            Reason::NoVersion => account.no_version += 1,
            _ => {}
        }
        match REASONS.iter().position(|other| *other == reason) {
            Some(place) if !self.optional => self.alone[place].push(id),
            _ => self.told.push(id),
        }
    }

    // Sends what has been put together, and lets go of what is not needed any more.
    fn select(&mut self, out: &mut Outbox) {
        if !self.combos.is_empty() {
            self.rows.select(&self.combos, out);
            self.combos.clear();
        }
        self.rows.discard(PROBES, &self.told);
        self.told.clear();
        for (reason, ids) in REASONS.into_iter().zip(&mut self.alone) {
            if !ids.is_empty() {
                self.rows.unmatched(PROBES, ids, reason, EventTime::MIN, out);
                ids.clear();
            }
        }
        let account = &mut self.accounts[VERSIONS];
        for Version { id, .. } in self.dropped.drain(..) {
            if !self.counted.remove(id) {
                account.open -= 1;
                account.unmatched += 1;
            }
            self.rows.discard(VERSIONS, &[id]);
        }
    }

    // Drops the versions that no time is looked up for any more.
    fn prune(&mut self, out: &mut Outbox) {
        let horizon = self.horizon();
        let mut due = Vec::new();
        self.pruning.take_due(horizon.as_millis(), &mut due);
        for (index, Due { hash, .. }) in due.iter().enumerate() {
            self.prefetch(&due[index + 1..], |due| due.hash);
            self.versions.prune(*hash, horizon, &mut self.dropped);
        }
        self.select(out);
    }

    // Asks for the versions of rows to come: first for the place of a key in the index, then for the entry it names.
    #[inline]
    fn prefetch<T>(&self, coming: &[T], hash: impl Fn(&T) -> u64) {
        if let Some(next) = coming.get(AHEAD) {
            self.versions.prefetch(hash(next));
        }
        if let Some(next) = coming.get(AHEAD / 2) {
            self.versions.prefetch_entry(hash(next));
        }
    }
}

// Why a probe is left alone with what was found for it, if it is.
fn reason_of(found: Found) -> Option<Reason> {
    match found {
        Found::Row(_) => None,
        Found::NeverSeen => Some(Reason::NeverSeen),
        Found::NoVersion => Some(Reason::NoVersion),
        Found::Deleted => Some(Reason::Deleted),
    }
}

impl<K: Key> Operator for TemporalJoin<K> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let lateness = if input.0 == PROBES { Lateness::facts(cx.watermark) } else { Lateness::NONE };
        let taken = self.rows.arrive(input.0, batch, lateness, &mut arrivals, cx.out);
        let account = &mut self.accounts[input.0];
        account.rows += arrivals.rows.len() as u64 + arrivals.late;
        account.late += arrivals.late;
        match input.0 {
            PROBES => self.take_probes(&mut arrivals, cx.out),
            _ => self.take_versions(&mut arrivals, cx.out),
        }
        self.arrivals = arrivals;
        taken
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.to_do = Some(ToDo::Tell(cx.watermark));
        self.go_on(cx.out);
        Ok(())
    }

    fn has_more(&self) -> bool {
        self.to_do.is_some()
    }

    fn on_more(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.go_on(cx.out);
        Ok(())
    }

    fn on_end(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        // Rows at the end of time may have come after the watermark had reached that.
        self.tell(Watermark::END, cx.out);
        self.let_go(cx.out);
        // What is held of the table serves nobody any more.
        let account = &mut self.accounts[VERSIONS];
        account.unmatched += std::mem::take(&mut account.open);
        Ok(())
    }

    /// What waits is not before the watermark; what may be corrected is.
    fn earliest_output(&mut self) -> Option<EventTime> {
        self.kept.as_ref().and_then(Kept::earliest)
    }

    fn figures(&self) -> OpFigures {
        let calendars = self.waiting.bytes() + self.pruning.bytes() + self.counted.bytes();
        OpFigures {
            accounts: self.accounts.to_vec(),
            state_rows: (0..2).map(|input| self.rows.len(input) as u64).collect(),
            state_bytes: self.rows.bytes()
                + self.versions.bytes()
                + calendars
                + self.kept.as_ref().map_or(0, Kept::bytes)
                + self.journal.as_ref().map_or(0, |journal| journal.bytes()),
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

/// Why probes come out on the unmatched output.
const REASONS: [Reason; 3] = [Reason::NeverSeen, Reason::NoVersion, Reason::Deleted];

const COMBOS_MAX: usize = 1_024;

/// So many probes, or a little more, are looked up together.
const PART: usize = 4_096;

/// Rows whose place is asked for ahead of use.
const AHEAD: usize = 16;

/// Updates of a key are presumed to be needed so long, where nothing else says how far ahead the calendar reaches.
const PRUNING_MS: i64 = 60_000;
