//! What a snapshot join keeps over a crash: the rows of the table by key and which of them have been in a result, and the
//! probes that wait until the table has been loaded, each by itself.
//!
//! The probes that wait only become more until all of them go at once. For how long the table has been quiet is kept as
//! that: the time in which there was no process does not count.

use serde::{Deserialize, Serialize};

use super::{PROBES, SnapshotJoin, TABLE};
use crate::account::Account;
use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::op::joined::Arrival;
use crate::state::{Fields, ReadFields, Sealed, Sealing, decode, encode};
use crate::time::{EventTime, ProcTime, Span};

// What belongs to the task.
#[derive(Serialize, Deserialize)]
struct Record {
    accounts: [Account; 2],
    emitted: u64,
    // None once the table has been loaded.
    quiet_for: Option<Span>,
}

const RECORD: u8 = 0;
const OF_TABLE: u8 = 1;
const OF_PROBES: u8 = 2;

/// Which of the probes that wait have been sealed.
#[derive(Debug, Default)]
pub(super) struct Journal {
    // The numbers under which they were, of the first of those that wait.
    sealed: Vec<u64>,
    next: u64,
    // Of those that have left.
    gone: Vec<(KeyGroup, u64)>,
    // How long the table had been quiet in another process.
    quiet_before: Span,
}

impl Journal {
    /// All that wait leave.
    pub fn on_gone<K>(&mut self, waiting: &[Arrival<K>]) {
        let groups = waiting.iter().map(|probe| KeyGroup::of(probe.hash));
        self.gone.extend(groups.zip(self.sealed.drain(..)));
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        (self.sealed.capacity() * size_of::<u64>() + self.gone.capacity() * size_of::<(KeyGroup, u64)>()) as u64
    }
}

fn key_of_probe(number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    number.encode(&mut key);
    key
}

impl<K: Key> SnapshotJoin<K> {
    pub(super) fn keep_state(&mut self) {
        self.table.keep();
        self.journal.get_or_insert_default();
    }

    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let quiet_for = self.load.as_ref().map(|loading| into.now.since(loading.quiet_since));
        let record = Record { accounts: self.accounts, emitted: self.rows.emitted(), quiet_for };
        into.put_own(RECORD, &[], &encode(&record));
        let (rows, met) = (&self.rows, &self.met);
        self.table.seal(OF_TABLE, into, |table, place, out| {
            let (lists, spill) = table.view(place);
            let (front, back) = lists.list(0, spill);
            for &id in front.iter().chain(back) {
                Fields(out)
                    .signed(rows.time(TABLE, id).as_millis())
                    .number(u64::from(met.contains(id)))
                    .bytes(|out| rows.write_row(TABLE, id, out))?;
            }
            Ok(())
        })?;
        self.seal_probes(into)
    }

    fn seal_probes(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        for (group, number) in journal.gone.drain(..) {
            into.delete(group, OF_PROBES, &key_of_probe(number));
        }
        let held = self.load.as_ref().map_or(&[][..], |loading| &loading.held);
        let mut value = Vec::new();
        for Arrival { key, hash, time, id } in &held[journal.sealed.len()..] {
            value.clear();
            Fields(&mut value)
                .signed(time.as_millis())
                .bytes(|out| {
                    key.encode(out);
                    Ok(())
                })?
                .bytes(|out| self.rows.write_row(PROBES, *id, out))?;
            into.put(KeyGroup::of(*hash), OF_PROBES, &key_of_probe(journal.next), &value);
            journal.sealed.push(journal.next);
            journal.next += 1;
        }
        Ok(())
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => self.take_back_record(decode(sealed.value)?),
            OF_TABLE => self.take_back_rows(sealed)?,
            OF_PROBES => self.take_back_probe(sealed)?,
            part => return Err(OpError::unreadable("a part of a snapshot join", &part)),
        }
        Ok(())
    }

    fn take_back_record(&mut self, record: Record) {
        self.accounts = record.accounts;
        self.rows.go_on(record.emitted);
        match record.quiet_for {
            Some(quiet) => self.journal.get_or_insert_default().quiet_before = quiet,
            None => self.load = None,
        }
    }

    fn take_back_rows(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let key: K = sealed.key_as()?;
        let place = self.table.upsert(key.stable_hash(&mut Vec::new()), key);
        let mut from = ReadFields(sealed.value);
        while !from.is_empty() {
            let (time, has_met) = (EventTime::from_millis(from.signed()?), from.number()? == 1);
            let id = self.rows.read_row(TABLE, from.bytes()?, time, None)?;
            if has_met {
                self.met.insert(id);
            }
            let (lists, spill) = self.table.at(place);
            lists.push(0, id, spill);
        }
        Ok(())
    }

    fn take_back_probe(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let number: u64 = sealed.key_as()?;
        let mut from = ReadFields(sealed.value);
        let time = EventTime::from_millis(from.signed()?);
        let mut bytes = from.bytes()?;
        let key = K::decode(&mut bytes).map_err(|error| OpError::unreadable("a key", &error))?;
        let hash = key.stable_hash(&mut Vec::new());
        let id = self.rows.read_row(PROBES, from.bytes()?, time, None)?;
        let Some(loading) = &mut self.load else {
            return Err(OpError::unreadable("a row that waits", &"this join does not wait for its table"));
        };
        loading.earliest = loading.earliest.into_iter().chain([time]).min();
        loading.held.push(Arrival { key, hash, time, id });
        let journal = self.journal.get_or_insert_default();
        journal.sealed.push(number);
        journal.next = journal.next.max(number + 1);
        Ok(())
    }

    pub(super) fn resume_at(&mut self, now: ProcTime) {
        let (Some(loading), Some(journal)) = (&mut self.load, &mut self.journal) else { return };
        loading.quiet_since = now.plus(-journal.quiet_before);
        // They have come back a group after the other, and are joined in the order in which they came.
        let numbers = std::mem::take(&mut journal.sealed);
        let mut probes: Vec<(u64, Arrival<K>)> = numbers.into_iter().zip(loading.held.drain(..)).collect();
        probes.sort_by_key(|(number, _)| *number);
        (journal.sealed, loading.held) = probes.into_iter().unzip();
    }
}
