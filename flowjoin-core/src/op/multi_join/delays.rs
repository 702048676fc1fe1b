//! Takes the time that rows wait for each other, over a sample of the keys.
//!
//! A match is taken when it comes about: for the row that came, how long each of its partners had waited for it on the
//! clock that the partner expires by. Event time is in the rows. When rows came is noted beside them, for the keys of the
//! sample; what is noted is bounded, since the sample is halved where it grows too large.

use std::collections::BTreeMap;

use super::super::kernel::Pair;
use super::{MultiJoin, Spec};
use crate::delays::{Histogram, MatchDelays, PairDelays};
use crate::key::Key;
use crate::state::{Clock, Expired, Place, RowId, Sample, Ttl};
use crate::time::{EventTime, ProcTime, Span};

/// How long rows wait for each other, where rows expire.
pub(super) struct Delays<const N: usize> {
    sample: Sample,
    ttls: [Ttl; N],
    // When rows came that expire on the clock of the machine, by the hash of their key.
    came: BTreeMap<(u64, usize, RowId), ProcTime>,
    now: ProcTime,
    waits: [[Waits; N]; N],
    expired: [Option<Expired>; N],
    found: Vec<(RowId, usize, RowId)>,
}

// Of the rows of one input for those of another.
#[derive(Default)]
struct Waits {
    delays: Option<Histogram>,
    missed: u64,
}

impl<const N: usize> Delays<N> {
    /// What such a join takes; nothing if none of its rows expires.
    pub(super) fn of(spec: &Spec<N>) -> Option<Box<Delays<N>>> {
        spec.ttls.iter().any(|&ttl| ttl != Ttl::Forever).then(|| {
            Box::new(Delays {
                sample: Sample::default(),
                ttls: spec.ttls,
                came: BTreeMap::new(),
                now: ProcTime::default(),
                waits: std::array::from_fn(|_| std::array::from_fn(|_| Waits::default())),
                expired: std::array::from_fn(|_| None),
                found: Vec::new(),
            })
        })
    }

    /// Whether the rows of a key are looked at.
    #[inline]
    pub(super) fn takes(&self, hash: u64) -> bool {
        self.sample.takes(hash)
    }

    /// A row of a key that is looked at has come, where these inputs have rows.
    #[cold]
    pub(super) fn on_arrival(&mut self, input: usize, (hash, id): (u64, RowId), present: u16, now: ProcTime) {
        self.now = now;
        for other in (0..N).filter(|&other| other != input && present >> other & 1 == 0) {
            if self.expired[other].as_ref().is_some_and(|expired| expired.contains(hash)) {
                self.waits[other][input].missed += self.sample.one_in();
            }
        }
        if let Some(expired) = &mut self.expired[input] {
            expired.remove(hash);
        }
        if self.clock(input) == Some(Clock::Processing) {
            self.came.insert((hash, input, id), now);
        }
        self.sample.on_row();
        if self.came.len() > CAME_MAX && self.sample.halve() {
            let sample = self.sample;
            self.came.retain(|&(hash, ..), _| sample.takes(hash));
        }
        // One key may have more rows than there is room for; it is then looked at no further.
        if self.came.len() > 2 * CAME_MAX {
            self.came.clear();
        }
    }

    /// A row of a key that is looked at is written again.
    pub(super) fn on_renewal(&mut self, input: usize, (hash, id): (u64, RowId), now: ProcTime) {
        if let Some(came) = self.came.get_mut(&(hash, input, id)) {
            *came = now;
        }
    }

    /// The time of a row of a key that is looked at is over: nothing else will have its id before this.
    #[cold]
    pub(super) fn on_due(&mut self, input: usize, hash: u64, id: RowId) {
        self.came.remove(&(hash, input, id));
    }

    /// The last row of a key that is looked at has expired.
    #[cold]
    pub(super) fn on_last_expired(&mut self, input: usize, hash: u64) {
        self.expired[input].get_or_insert_default().insert(hash);
    }

    // Takes the waits of the pairs that were found: a row that came, with its partner on another input.
    fn take_found(&mut self, input: usize, hash: u64, time: &dyn Fn(usize, RowId) -> EventTime) {
        let mut found = std::mem::take(&mut self.found);
        // A pair may be in many results.
        found.sort_unstable();
        found.dedup();
        let step = found.len().div_ceil(PAIRS_MAX).max(1);
        let stands_for = self.sample.one_in() * step as u64;
        for &(new, other, id) in found.iter().step_by(step) {
            if let Some((waits, comes, wait)) = self.wait(input, new, (other, id), hash, time) {
                self.waits[waits][comes].delays.get_or_insert_default().add(wait, stands_for);
            }
        }
        found.clear();
        self.found = found;
    }

    // Which of two rows waited for the other, and how long.
    fn wait(
        &self,
        input: usize,
        new: RowId,
        (other, id): (usize, RowId),
        hash: u64,
        time: &dyn Fn(usize, RowId) -> EventTime,
    ) -> Option<(usize, usize, Span)> {
        let ahead = || time(other, id).since(time(input, new));
        match self.clock(other) {
            Some(Clock::Processing) => {
                let came = *self.came.get(&(hash, other, id))?;
                Some((other, input, self.now.since(came)))
            }
            // By event time, which of them came first does not count.
            Some(Clock::Event) if ahead() > Span::ZERO && self.clock(input) == Some(Clock::Event) => {
                Some((input, other, ahead()))
            }
            Some(Clock::Event) => Some((other, input, -ahead())),
            None => {
                let waits = self.clock(input) == Some(Clock::Event) && ahead() > Span::ZERO;
                waits.then(|| (input, other, ahead()))
            }
        }
    }

    fn clock(&self, input: usize) -> Option<Clock> {
        self.ttls[input].span().map(|(_, clock)| clock)
    }

    /// What was found.
    pub(super) fn figures(&self) -> MatchDelays {
        let mut pairs = Vec::new();
        for (waits, row) in self.waits.iter().enumerate() {
            let Some((limit, clock)) = self.ttls[waits].span() else { continue };
            for (comes, Waits { delays, missed }) in row.iter().enumerate() {
                if delays.is_some() || *missed > 0 {
                    let delays = delays.clone().unwrap_or_default();
                    pairs.push(PairDelays { waits, comes, clock, limit, delays, missed: *missed });
                }
            }
        }
        MatchDelays { pairs, bounds: None, one_in: self.sample.one_in() }
    }

    /// Bytes taken, about.
    pub(super) fn bytes(&self) -> u64 {
        let waits = self.waits.iter().flatten().filter(|waits| waits.delays.is_some()).count() as u64;
        let expired = self.expired.iter().flatten().count() as u64;
        let came = self.came.len() * size_of::<((u64, usize, RowId), ProcTime)>();
        waits * Histogram::bytes() + expired * Expired::bytes() + (came + size_of::<Self>()) as u64
    }
}

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Whether the rows of a key are looked at.
    #[inline]
    pub(super) fn looks_at(&self, hash: u64) -> bool {
        self.delays.as_ref().is_some_and(|delays| delays.takes(hash))
    }

    /// Takes the waits in the results that rows of an input have brought about: the combinations from this one on.
    #[cold]
    pub(super) fn take_waits(&mut self, input: usize, hash: u64, from: usize) {
        let Some(delays) = &mut self.delays else { return };
        for combo in self.combos[from..].iter().filter(|combo| combo.kind.adds() && !combo.ids[input].is_missing()) {
            let partners = combo.ids.iter().enumerate().filter(|(other, id)| *other != input && !id.is_missing());
            delays.found.extend(partners.map(|(other, &id)| (combo.ids[input], other, id)));
        }
        let rows = &self.rows;
        delays.take_found(input, hash, &|input, id| rows.time(input, id));
    }

    /// As [`take_waits`](Self::take_waits), where partners only have to exist, or not: the rows that have come with all of
    /// the other input.
    #[cold]
    pub(super) fn take_waits_of_unseen(&mut self, place: Place, input: usize, pairs: &[Pair], hash: u64) {
        let Some(delays) = &mut self.delays else { return };
        let (lists, spill) = self.table.view(place);
        let (front, back) = lists.list(1 - input, spill);
        for new in pairs.iter().map(|pair| pair.new).filter(|new| !new.is_missing()) {
            for &other in front.iter().chain(back) {
                let mut ids = [RowId::MISSING; N];
                (ids[input], ids[1 - input]) = (new, other);
                if self.steps.is_none() || self.rows.holds(1, &ids) {
                    delays.found.push((new, 1 - input, other));
                }
            }
        }
        let rows = &self.rows;
        delays.take_found(input, hash, &|input, id| rows.time(input, id));
    }
}

/// Rows of which it is noted when they came, at the most, over all inputs; for a moment twice as many.
const CAME_MAX: usize = 16_384;

/// Pairs of one key that are taken at once; of more, every second, every third and so on.
const PAIRS_MAX: usize = 256;
