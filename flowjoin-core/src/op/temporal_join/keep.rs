//! What a temporal join keeps over a crash: the versions of each key, and each probe by itself.
//!
//! A probe is written once, under its time and a number, and deleted when it leaves. Whether it has come out is told by
//! the watermark, and what stands beside it by the versions: neither is written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{PROBES, Probe, TemporalJoin, VERSIONS};
use crate::account::Account;
use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::state::{Agenda, Due, Fields, Found, ReadFields, RowId, Sealed, Sealing, decode, encode};
use crate::time::{EventTime, Watermark};

// What belongs to the task.
#[derive(Serialize, Deserialize)]
struct Record {
    accounts: [Account; 2],
    emitted: u64,
}

const RECORD: u8 = 0;
const OF_KEYS: u8 = 1;
const OF_PROBES: u8 = 2;

/// Which probes have come since they were last sealed, and which of those that were have left.
#[derive(Debug, Default)]
pub(super) struct Journal {
    // By row, the number that its probe is sealed under.
    numbers: Vec<u64>,
    next: u64,
    // Those with lower numbers have been sealed.
    sealed: u64,
    // The stretches of time in which others are.
    stretches: BTreeSet<i64>,
    last: Option<i64>,
    gone: Vec<(KeyGroup, EventTime, u64)>,
}

impl Journal {
    fn set_number(&mut self, id: RowId, number: u64) {
        if self.numbers.len() <= id.index() {
            self.numbers.resize(id.index() + 1, 0);
        }
        self.numbers[id.index()] = number;
        self.next = self.next.max(number + 1);
    }

    /// A probe has come.
    pub fn on_probe(&mut self, time: EventTime, id: RowId) {
        self.set_number(id, self.next);
        let stretch = Agenda::<()>::stretch_of(time);
        // Most come near the one before.
        if self.last.replace(stretch) != Some(stretch) {
            self.stretches.insert(stretch);
        }
    }

    /// A probe leaves.
    pub fn on_gone(&mut self, hash: u64, time: EventTime, id: RowId) {
        let number = self.numbers[id.index()];
        if number < self.sealed {
            self.gone.push((KeyGroup::of(hash), time, number));
        }
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let gone = self.gone.capacity() * size_of::<(KeyGroup, EventTime, u64)>();
        (self.numbers.capacity() * size_of::<u64>() + gone) as u64
    }
}

fn key_of_probe(time: EventTime, number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    (time, number).encode(&mut key);
    key
}

impl<K: Key> TemporalJoin<K> {
    pub(super) fn keep_state(&mut self) {
        self.versions.keep();
        let journal = self.journal.get_or_insert_default();
        journal.sealed = journal.next;
    }

    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let record = Record { accounts: self.accounts, emitted: self.rows.emitted() };
        into.put_own(RECORD, &[], &encode(&record));
        let TemporalJoin { versions, rows, counted, .. } = self;
        versions.seal(OF_KEYS, into, |id, out| {
            Fields(out).number(u64::from(counted.contains(id))).bytes(|out| rows.write_row(VERSIONS, id, out))?;
            Ok(())
        })?;
        self.seal_probes(into)
    }

    fn seal_probes(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        for (group, time, number) in journal.gone.drain(..) {
            into.delete(group, OF_PROBES, &key_of_probe(time, number));
        }
        let mut value = Vec::new();
        for stretch in std::mem::take(&mut journal.stretches) {
            let waiting = self.waiting.of_stretch(stretch);
            let kept = self.kept.as_ref().map_or(&[][..], |kept| kept.of_stretch(stretch));
            for (time, Probe { key, hash, id }) in waiting.iter().chain(kept) {
                let number = journal.numbers[id.index()];
                if number < journal.sealed {
                    continue;
                }
                value.clear();
                Fields(&mut value)
                    .bytes(|out| {
                        key.encode(out);
                        Ok(())
                    })?
                    .bytes(|out| self.rows.write_row(PROBES, *id, out))?;
                into.put(KeyGroup::of(*hash), OF_PROBES, &key_of_probe(*time, number), &value);
            }
        }
        (journal.sealed, journal.last) = (journal.next, None);
        Ok(())
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => {
                let record: Record = decode(sealed.value)?;
                self.accounts = record.accounts;
                self.rows.go_on(record.emitted);
                Ok(())
            }
            OF_KEYS => self.take_back_versions(sealed),
            OF_PROBES => self.take_back_probe(sealed),
            part => Err(OpError::unreadable("a part of a temporal join", &part)),
        }
    }

    fn take_back_versions(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let TemporalJoin { versions, rows, counted, pruning, .. } = self;
        let (hash, times) = versions.take_back(sealed, |time, from| {
            let is_counted = from.number()? == 1;
            let id = rows.read_row(VERSIONS, from.bytes()?, time, None)?;
            if is_counted {
                counted.insert(id);
            }
            Ok(id)
        })?;
        // When each supersedes the one before it, and when each ends.
        let superseded = times.iter().skip(1).copied();
        for at in superseded.chain(times.iter().filter_map(|&time| versions.end_of(time))) {
            pruning.push(Due { at: at.as_millis(), id: RowId::MISSING, hash });
        }
        Ok(())
    }

    fn take_back_probe(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let (time, number): (EventTime, u64) = sealed.key_as()?;
        let mut from = ReadFields(sealed.value);
        let mut bytes = from.bytes()?;
        let key = K::decode(&mut bytes).map_err(|error| OpError::unreadable("a key", &error))?;
        let hash = key.stable_hash(&mut Vec::new());
        let id = self.rows.read_row(PROBES, from.bytes()?, time, None)?;
        self.journal.get_or_insert_default().set_number(id, number);
        self.waiting.push(time, Probe { key, hash, id });
        Ok(())
    }

    /// Probes that the watermark has passed have come out: they are not told again.
    pub(super) fn resume_at(&mut self, watermark: Watermark) {
        self.watermark = watermark;
        let Some(kept) = self.kept.as_mut().filter(|_| watermark != Watermark::END) else { return };
        let mut told = Vec::new();
        self.waiting.take_before(watermark, &mut told);
        for (time, probe) in told {
            let found = self.versions.at(probe.hash, &probe.key, time);
            kept.push(time, probe, matches!(found, Found::Row(_)));
        }
    }

    /// A probe leaves.
    #[inline]
    pub(super) fn on_gone(&mut self, hash: u64, time: EventTime, id: RowId) {
        if let Some(journal) = &mut self.journal {
            journal.on_gone(hash, time, id);
        }
    }
}
