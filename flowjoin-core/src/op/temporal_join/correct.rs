//! Late versions that correct what was said: probes are kept for a time after they have come out.
//!
//! A version of time t that comes late changes what held from t until the next version of its key; so the probes that are
//! kept in between are told anew. Before it, one version held in all that time: the one before it.

use super::{COMBOS_MAX, PART, PROBES, Probe, TemporalJoin};
use crate::change::RowKind;
use crate::key::Key;
use crate::op::Outbox;
use crate::op::joined::Combo;
use crate::state::{Agenda, Bits, Guess, Inserted, RowId, Side, Timeline, Version};
use crate::time::{EventTime, Span, Watermark, millis};

/// The probes that have come out and may be corrected.
pub(super) struct Kept<K> {
    span: Span,
    line: Timeline<K>,
    leaving: Agenda<Probe<K>>,
    // Those that a version stands beside.
    matched: Bits,
}

impl<K: Key> Kept<K> {
    /// Keeps probes until the watermark passes their time by so much.
    pub fn new(span: Span) -> Kept<K> {
        Kept { span, line: Timeline::default(), leaving: Agenda::default(), matched: Bits::default() }
    }

    /// How far behind the watermark probes are corrected.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Keeps a probe that has come out.
    pub fn push(&mut self, time: EventTime, probe: Probe<K>, matched: bool) {
        if matched {
            self.matched.insert(probe.id);
        }
        // There is nothing on the other side to be found.
        let row = (Side::Left, time, probe.id);
        self.line.insert_and_find(
            (probe.hash, probe.key.clone(), Guess::default()),
            row,
            (time, time),
            &mut Vec::new(),
        );
        self.leaving.push(time, probe);
    }

    /// The time of the oldest probe.
    pub fn earliest(&self) -> Option<EventTime> {
        self.leaving.earliest()
    }

    /// The probes with times in a stretch, as of an [`Agenda`].
    pub fn of_stretch(&self, stretch: i64) -> &[(EventTime, Probe<K>)] {
        self.leaving.of_stretch(stretch)
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.line.bytes() + self.leaving.bytes() + self.matched.bytes()
    }
}

impl<K: Key> TemporalJoin<K> {
    /// Tells anew the probes whose version a late one has changed.
    pub(super) fn correct(&mut self, (hash, key): (u64, &K), version: Version, inserted: Inserted) {
        let Some(kept) = &self.kept else { return };
        let last = inserted.until.map_or(EventTime::MAX, |until| until.plus(millis(-1)));
        let mut probes = Vec::new();
        kept.line.within(hash, key, Side::Left, (version.time, last), &mut probes);
        let before = inserted.replaced.or(inserted.before);
        for id in probes {
            let time = self.rows.time(PROBES, id);
            let row = |version: &Version| !version.deletes && self.versions.holds(*version, time);
            let old = before.filter(row).map(|version| version.id);
            let new = Some(version).filter(row).map(|version| version.id);
            self.change((id, time), old, new);
        }
    }

    fn change(&mut self, (id, time): (RowId, EventTime), old: Option<RowId>, new: Option<RowId>) {
        let combo = |version, kind| Combo { ids: [id, version], kind, cause: time };
        match (old, new) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                self.combos.extend([combo(old, RowKind::UpdateBefore), combo(new, RowKind::UpdateAfter)]);
            }
            (None, Some(new)) => {
                self.combos.extend(self.optional.then(|| combo(RowId::MISSING, RowKind::Delete)));
                self.combos.push(combo(new, RowKind::Insert));
            }
            (Some(old), None) => {
                self.combos.push(combo(old, RowKind::Delete));
                self.combos.extend(self.optional.then(|| combo(RowId::MISSING, RowKind::Insert)));
            }
        }
        if let Some(new) = new {
            self.serves(new);
        }
        let Some(kept) = &mut self.kept else { return };
        let account = &mut self.accounts[PROBES];
        match new {
            Some(_) if kept.matched.insert(id) => {
                account.matched += 1;
                account.open -= 1;
            }
            None if kept.matched.remove(id) => {
                account.matched -= 1;
                account.open += 1;
            }
            Some(_) | None => {}
        }
    }

    /// Lets go of the probes that are corrected no more; returns false when the outbox is full. What they found is what
    /// stands.
    pub(super) fn let_go(&mut self, out: &mut Outbox) -> bool {
        let horizon = match self.watermark {
            Watermark::END => Watermark::END,
            _ => Watermark::at(self.horizon()),
        };
        loop {
            let Some(kept) = &mut self.kept else { return true };
            let Some((time, Probe { key, hash, id })) = self.due.pop() else {
                kept.leaving.take_part_before(horizon, PART, &mut self.due);
                if self.due.is_empty() {
                    self.select(out);
                    return true;
                }
                self.due.reverse();
                continue;
            };
            kept.line.remove(hash, Side::Left, (time, id), Guess::default());
            let has_matched = kept.matched.remove(id);
            self.on_gone(hash, time, id);
            if has_matched {
                self.told.push(id);
            } else {
                let found = self.versions.at(hash, &key, time);
                self.part_with(id, found);
            }
            if self.told.len() + self.alone.iter().map(Vec::len).sum::<usize>() >= COMBOS_MAX {
                self.select(out);
                if out.is_full() {
                    return false;
                }
            }
        }
    }
}
