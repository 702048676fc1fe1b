//! What the three tables keep over a crash: the rows that stand under each key, and what waits for the watermark.
//!
//! A key that has changed is written whole. How many rows have been sent is kept with the account.

use std::collections::BTreeSet;

use super::history::History;
use super::replace::Replace;
use super::settled::{Settled, Waits};
use super::stack::{Rows, Stack};
use crate::account::Account;
use crate::batch::KeyedRow;
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::record::{Data, Keyed};
use crate::state::{Fields, ReadFields, RowId, Sealed, Sealing, Slab, Spill, decode, encode, read_row, write_row};
use crate::time::EventTime;

const RECORD: u8 = 0;
const KEYS: u8 = 1;
const WAITING: u8 = 2;

fn unknown(part: u8) -> OpError {
    OpError::unreadable("a part of a table", &part)
}

fn seal_record(account: Account, emitted: u64, into: &mut Sealing<'_>) {
    into.put_own(RECORD, &[], &encode(&(account, emitted)));
}

fn key_of<K: Key>(mut bytes: &[u8]) -> Result<K, OpError> {
    K::decode(&mut bytes).map_err(|error| OpError::unreadable("a key", &error))
}

fn write_held<T: Data>(slab: &Slab<T>, id: RowId, out: &mut Vec<u8>) -> Result<(), OpError> {
    let held = slab.get(id).expect("a row that stands is held");
    Fields(out).signed(held.time().as_millis()).bytes(|out| write_row(&held.row, out))?;
    Ok(())
}

fn read_held<T: Data>(slab: &mut Slab<T>, from: &mut ReadFields<'_>) -> Result<RowId, OpError> {
    let time = EventTime::from_millis(from.signed()?);
    slab.insert(read_row(from.bytes()?)?, time)
}

fn write_stack<T: Data>(stack: &Stack, spill: &Spill, rows: &Rows<T>, out: &mut Vec<u8>) -> Result<(), OpError> {
    let ids = stack.ids(spill);
    Fields(out).number(ids.len() as u64);
    ids.into_iter().try_for_each(|id| write_held(&rows.slab, id, out))
}

fn read_stack<T: Data>(
    stack: &mut Stack,
    spill: &mut Spill,
    rows: &mut Rows<T>,
    from: &mut ReadFields<'_>,
) -> Result<(), OpError> {
    for _ in 0..from.number()? {
        let id = read_held(&mut rows.slab, from)?;
        stack.push(id, spill, rows);
    }
    Ok(())
}

impl<T: Keyed> Replace<T> {
    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        seal_record(self.input.0, self.touched.emitted, into);
        let rows = &self.rows;
        self.table.seal(KEYS, into, |table, place, out| {
            let standing = table.get(place);
            Fields(out).number(u64::from(standing.deleted));
            write_held(rows, standing.row, out)
        })
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => (self.input.0, self.touched.emitted) = decode(sealed.value)?,
            KEYS => {
                let key: T::Key = key_of(sealed.key)?;
                let hash = key.stable_hash(&mut self.scratch);
                let mut from = ReadFields(sealed.value);
                let deleted = from.number()? == 1;
                let row = read_held(&mut self.rows, &mut from)?;
                let place = self.table.upsert(hash, key);
                let standing = self.table.at(place).0;
                (standing.row, standing.deleted) = (row, deleted);
                self.standing += u64::from(!deleted);
            }
            part => return Err(unknown(part)),
        }
        Ok(())
    }
}

impl<K: Key, T: Data> History<K, T> {
    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        seal_record(self.input.0, self.touched.emitted, into);
        let rows = &self.rows;
        self.table.seal(KEYS, into, |table, place, out| {
            let (standing, spill) = table.view(place);
            write_stack(&standing.stack, spill, rows, out)
        })
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => (self.input.0, self.touched.emitted) = decode(sealed.value)?,
            KEYS => {
                let key: K = key_of(sealed.key)?;
                let place = self.table.upsert(key.stable_hash(&mut Vec::new()), key);
                let (standing, spill) = self.table.at(place);
                read_stack(&mut standing.stack, spill, &mut self.rows, &mut ReadFields(sealed.value))?;
            }
            part => return Err(unknown(part)),
        }
        Ok(())
    }
}

/// Which changes wait that have not been sealed, and which have been and wait no more.
#[derive(Default)]
pub(super) struct WaitJournal {
    // Those with lower numbers have been sealed.
    sealed: u64,
    // The times at which others wait.
    times: BTreeSet<EventTime>,
    gone: Vec<(KeyGroup, EventTime, u64)>,
}

impl WaitJournal {
    /// A change waits.
    pub(super) fn on_wait(&mut self, time: EventTime) {
        self.times.insert(time);
    }

    /// A change of a key with this hash waits no more.
    pub(super) fn on_gone(&mut self, hash: u64, time: EventTime, number: u64) {
        if number < self.sealed {
            self.gone.push((KeyGroup::of(hash), time, number));
        }
    }
}

fn waiting_key(time: EventTime, number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    (time, number).encode(&mut key);
    key
}

impl<K: Key, T: Data> Settled<K, T> {
    pub(super) fn keep_state(&mut self) {
        self.table.keep();
        self.journal = Some(WaitJournal { sealed: self.next, ..WaitJournal::default() });
    }

    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        seal_record(self.account, self.touched.emitted, into);
        let rows = &self.rows;
        self.table.seal(KEYS, into, |table, place, out| {
            let (standing, spill) = table.view(place);
            write_stack(&standing.stack, spill, rows, out)?;
            write_stack(&standing.owed, spill, rows, out)
        })?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        for (group, time, number) in journal.gone.drain(..) {
            into.delete(group, WAITING, &waiting_key(time, number));
        }
        let mut value = Vec::new();
        for time in std::mem::take(&mut journal.times) {
            let waits = self.waiting.get(&time).map_or(&[][..], |waits| waits);
            // Those that came last stand last.
            let new = waits.partition_point(|wait| wait.number < journal.sealed);
            for Waits { number, kind, keyed } in &waits[new..] {
                value.clear();
                value.push(*kind as u8);
                Fields(&mut value)
                    .signed(keyed.time.as_millis())
                    .bytes(|out| {
                        keyed.key.encode(out);
                        Ok(())
                    })?
                    .bytes(|out| write_row(&keyed.row, out))?;
                into.put(KeyGroup::of(keyed.hash), WAITING, &waiting_key(time, *number), &value);
            }
        }
        journal.sealed = self.next;
        Ok(())
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => (self.account, self.touched.emitted) = decode(sealed.value)?,
            KEYS => {
                let key: K = key_of(sealed.key)?;
                let place = self.table.upsert(key.stable_hash(&mut Vec::new()), key);
                let (standing, spill) = self.table.at(place);
                let mut from = ReadFields(sealed.value);
                read_stack(&mut standing.stack, spill, &mut self.rows, &mut from)?;
                read_stack(&mut standing.owed, spill, &mut self.rows, &mut from)?;
            }
            WAITING => self.take_back_waiting(sealed)?,
            part => return Err(unknown(part)),
        }
        Ok(())
    }

    fn take_back_waiting(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let (at, number): (EventTime, u64) = key_of(sealed.key)?;
        let (&kind, rest) = sealed.value.split_first().ok_or_else(|| unknown(WAITING))?;
        let kind = RowKind::numbered(kind).ok_or_else(|| OpError::unreadable("a kind of change", &kind))?;
        let mut from = ReadFields(rest);
        let time = EventTime::from_millis(from.signed()?);
        let key: K = key_of(from.bytes()?)?;
        let row: T = read_row(from.bytes()?)?;
        let hash = key.stable_hash(&mut Vec::new());
        self.next = self.next.max(number + 1);
        if self.rows.has_identity() {
            let last = self.last.entry((hash, self.rows.print(&row))).or_insert(at);
            *last = at.max(*last);
        }
        let keyed = KeyedRow { key, hash, time, row };
        let waits = self.waiting.entry(at).or_default();
        // Groups come one after the other, and what waits under one time is made in the order in which it came.
        let place = waits.partition_point(|wait| wait.number < number);
        waits.insert(place, Waits { number, kind, keyed });
        Ok(())
    }
}
