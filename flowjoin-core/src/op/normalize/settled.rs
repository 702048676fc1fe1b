//! A table out of a changelog that is told as of the watermark: one net change a key each time it moves on.
//!
//! Changes wait until the watermark has passed them, and are then made in the order of their times. What came and went
//! in between is never told, and neither is the disorder between upstream keys of one instant.
//!
//! The times of the changes of a row need not be in the order of the changes. Where rows have an upstream key, none of its
//! changes is made before the one that came before it, and what is taken back after another has taken its place is gone
//! already. Where they have none, a row may be taken back before it comes: it is owed then.

use std::collections::BTreeMap;

use super::keep::WaitJournal;
use super::net::Touched;
use super::stack::{End, Rows, Stack};
use crate::account::{Account, OpFigures};
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::op::joined::Identity;
use crate::op::{Cx, InputId, Operator, Outbox};
use crate::record::Data;
use crate::state::{Place, RowId, Sealed, Sealing, Spill, Table};
use crate::time::{EventTime, Watermark};

/// What to do where two rows stand under one key when the watermark has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conflict {
    /// The one that came first counts, until it goes.
    KeepFirst,
    /// The flow stops.
    Fail,
}

/// Holds the rows that stand under each key as of the watermark, and the changes after it.
pub struct Settled<K: Key, T> {
    pub(super) waiting: BTreeMap<EventTime, Vec<Waits<K, T>>>,
    // The number of the next change that waits.
    pub(super) next: u64,
    // When the last change waits of each upstream key of which one does, by the hashes of the key and the upstream key.
    pub(super) last: BTreeMap<(u64, u64), EventTime>,
    pub(super) table: Table<K, Standing, Spill>,
    pub(super) rows: Rows<T>,
    conflict: Conflict,
    pub(super) touched: Touched<T>,
    pub(super) account: Account,
    pub(super) journal: Option<WaitJournal>,
}

/// A change that waits for the watermark; the numbers are in the order in which changes came.
pub(super) struct Waits<K, T> {
    pub(super) number: u64,
    pub(super) kind: RowKind,
    pub(super) keyed: KeyedRow<K, T>,
}

#[derive(Default)]
pub(super) struct Standing {
    pub(super) stack: Stack,
    // Rows that were taken back before they came, as one that is told anew with an earlier time is.
    pub(super) owed: Stack,
    touched: u32,
}

impl<K: Key, T: Data> Settled<K, T> {
    /// An empty table. With an identity, rows that it says are the same replace each other in place; a row is taken back
    /// by an equal one in either case.
    pub fn new(identity: Option<Identity<T>>, conflict: Conflict) -> Self {
        Settled {
            waiting: BTreeMap::new(),
            last: BTreeMap::new(),
            table: Table::default(),
            rows: Rows::new(identity),
            conflict,
            touched: Touched::default(),
            account: Account::default(),
            next: 0,
            journal: None,
        }
    }

    // When a change is made: not before the one of its upstream key that came before it.
    fn time_of(&mut self, keyed: &KeyedRow<K, T>, watermark: Watermark) -> EventTime {
        // A change that comes late is made with the next ones.
        let time = keyed.time.max(watermark.time());
        if !self.rows.has_identity() {
            return time;
        }
        let last = self.last.entry((keyed.hash, self.rows.print(&keyed.row))).or_insert(time);
        *last = time.max(*last);
        *last
    }

    fn settle(&mut self, before: Watermark, out: &mut Outbox) -> Result<(), OpError> {
        let later = match before {
            Watermark::END => BTreeMap::new(),
            before => self.waiting.split_off(&before.time()),
        };
        for (time, changes) in std::mem::replace(&mut self.waiting, later) {
            for Waits { number, kind, keyed: KeyedRow { key, hash, row, .. } } in changes {
                self.account.open -= 1;
                if let Some(journal) = &mut self.journal {
                    journal.on_gone(hash, time, number);
                }
                self.forget_wait(hash, &row, time);
                let place = self.touch(key, hash, time);
                let made = match kind.adds() {
                    true => self.add(place, row, time)?,
                    false => self.take_back(place, row, time)?,
                };
                *(if made { &mut self.account.matched } else { &mut self.account.orphan }) += 1;
            }
        }
        if self.conflict == Conflict::Fail {
            self.must_be_alone()?;
        }
        let (table, rows) = (&mut self.table, &self.rows.slab);
        let now = |place| {
            let (standing, spill) = table.at(place);
            standing.touched = 0;
            let first = standing.stack.at_end(End::Oldest, spill);
            let goes = first.is_none() && standing.owed.is_empty();
            let key = if goes { table.remove(place).0 } else { table.key_at(place).clone() };
            (key, first.and_then(|id| rows.get(id)).map(|held| &held.row))
        };
        self.touched.send(now, out);
        Ok(())
    }

    // The last change of an upstream key waits no more.
    fn forget_wait(&mut self, hash: u64, row: &T, time: EventTime) {
        if self.rows.has_identity() {
            let upstream = (hash, self.rows.print(row));
            if self.last.get(&upstream) == Some(&time) {
                self.last.remove(&upstream);
            }
        }
    }

    fn touch(&mut self, key: K, hash: u64, time: EventTime) -> Place {
        let place = self.table.upsert(hash, key);
        if self.table.get(place).touched == 0 {
            let before = self.first_of(place).and_then(|id| self.rows.slab.get(id)).map(|held| held.row.clone());
            let number = self.touched.first(place, hash);
            self.touched.was(number, before);
            self.table.at(place).0.touched = number;
        }
        self.touched.at(self.table.get(place).touched, time);
        place
    }

    fn first_of(&self, place: Place) -> Option<RowId> {
        let (standing, spill) = self.table.view(place);
        standing.stack.at_end(End::Oldest, spill)
    }

    fn add(&mut self, place: Place, row: T, time: EventTime) -> Result<bool, OpError> {
        let (standing, spill) = self.table.at(place);
        let (before, debt) = match self.rows.has_identity() {
            true => (standing.stack.find(&row, End::Oldest, spill, &mut self.rows), None),
            false => (None, standing.owed.take(&row, End::Oldest, spill, &mut self.rows)),
        };
        match (before, debt) {
            (Some(id), _) => {
                self.rows.slab.replace(id, row, time);
            }
            (None, Some(debt)) => {
                self.rows.slab.remove(debt);
            }
            (None, None) => {
                let id = self.rows.slab.insert(row, time)?;
                standing.stack.push(id, spill, &mut self.rows);
            }
        }
        Ok(true)
    }

    // Returns whether the row stood.
    fn take_back(&mut self, place: Place, row: T, time: EventTime) -> Result<bool, OpError> {
        let (standing, spill) = self.table.at(place);
        // One that has been replaced is not the one that stands, though their upstream key is the same.
        let found = standing.stack.find(&row, End::Oldest, spill, &mut self.rows);
        if found.is_some_and(|id| self.rows.is_equal(id, &row)) {
            let taken = standing.stack.take(&row, End::Oldest, spill, &mut self.rows);
            return Ok(taken.and_then(|id| self.rows.slab.remove(id)).is_some());
        }
        if !self.rows.has_identity() {
            let id = self.rows.slab.insert(row, time)?;
            standing.owed.push(id, spill, &mut self.rows);
        }
        Ok(false)
    }

    fn must_be_alone(&mut self) -> Result<(), OpError> {
        for place in self.touched.places() {
            if self.table.get(place).stack.is_crowded() {
                return Err(OpError::conflict(format!("{:?}", self.table.key_at(place))));
            }
        }
        Ok(())
    }
}

impl<K: Key, T: Data> Operator for Settled<K, T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let batch = batch.take::<KeyedBatch<K, T>>()?;
        self.account.rows += batch.len() as u64;
        for (keyed, kind) in batch.into_rows() {
            let time = self.time_of(&keyed, cx.watermark);
            self.account.open += 1;
            self.waiting.entry(time).or_default().push(Waits { number: self.next, kind, keyed });
            self.next += 1;
            if let Some(journal) = &mut self.journal {
                journal.on_wait(time);
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.settle(cx.watermark, cx.out)
    }

    fn on_end(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.settle(Watermark::END, cx.out)
    }

    fn figures(&self) -> OpFigures {
        let waiting: usize = self.waiting.values().map(Vec::capacity).sum();
        let last = self.last.len() * size_of::<((u64, u64), EventTime)>();
        OpFigures {
            accounts: vec![self.account],
            state_rows: vec![self.rows.slab.len() as u64 + self.account.open],
            state_bytes: self.rows.bytes()
                + self.table.bytes(Spill::bytes)
                + (waiting * size_of::<Waits<K, T>>() + last) as u64,
            emitted: self.touched.emitted,
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
