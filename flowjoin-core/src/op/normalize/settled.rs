//! A table out of a changelog that is told as of the watermark: one net change a key each time it moves on.
//!
//! Changes wait until the watermark has passed them, and are then made in the order of their times. What came and went
//! in between is never told, and neither is the disorder between upstream keys of one instant.

use std::collections::BTreeMap;

use super::net::Touched;
use crate::account::{Account, OpFigures};
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::op::joined::Identity;
use crate::op::{Cx, InputId, Operator, Outbox};
use crate::record::Data;
use crate::state::{Equality, Lists, Place, RowId, Slab, Spill, Table};
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
    waiting: BTreeMap<EventTime, Vec<(RowKind, KeyedRow<K, T>)>>,
    table: Table<K, Stack, Spill>,
    rows: Slab<T>,
    identity: Option<Identity<T>>,
    conflict: Conflict,
    equality: Equality,
    touched: Touched<T>,
    account: Account,
}

#[derive(Default)]
struct Stack {
    rows: Lists<1>,
    // Rows that were taken back before they came, as one that is told anew with an earlier time is.
    owed: Lists<1>,
    touched: u32,
}

impl<K: Key, T: Data> Settled<K, T> {
    /// An empty table. With an identity, rows that it says are the same replace each other in place; a row is taken back
    /// by an equal one in either case.
    pub fn new(identity: Option<Identity<T>>, conflict: Conflict) -> Self {
        Settled {
            waiting: BTreeMap::new(),
            table: Table::default(),
            rows: Slab::default(),
            identity,
            conflict,
            equality: Equality::default(),
            touched: Touched::default(),
            account: Account::default(),
        }
    }

    fn settle(&mut self, before: Watermark, out: &mut Outbox) -> Result<(), OpError> {
        let later = match before {
            Watermark::END => BTreeMap::new(),
            before => self.waiting.split_off(&before.time()),
        };
        for (time, changes) in std::mem::replace(&mut self.waiting, later) {
            for (kind, KeyedRow { key, hash, row, .. }) in changes {
                self.account.open -= 1;
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
        let (table, rows) = (&mut self.table, &self.rows);
        let now = |place| {
            table.at(place).0.touched = 0;
            let first = first_of(table, place);
            let goes = first.is_none() && table.get(place).owed.present() == 0;
            let key = if goes { table.remove(place).0 } else { table.key_at(place).clone() };
            (key, first.and_then(|id| rows.get(id)).map(|held| &held.row))
        };
        self.touched.send(now, out);
        Ok(())
    }

    fn touch(&mut self, key: K, hash: u64, time: EventTime) -> Place {
        let place = self.table.upsert(hash, key);
        if self.table.get(place).touched == 0 {
            let before = first_of(&self.table, place).and_then(|id| self.rows.get(id)).map(|held| held.row.clone());
            let number = self.touched.first(place, hash);
            self.touched.was(number, before);
            self.table.at(place).0.touched = number;
        }
        self.touched.at(self.table.get(place).touched, time);
        place
    }

    fn find(&mut self, place: Place, mut test: impl FnMut(&T, &mut Equality) -> bool) -> Option<RowId> {
        let (stack, spill) = self.table.view(place);
        let (front, back) = stack.rows.list(0, spill);
        let (rows, equality) = (&self.rows, &mut self.equality);
        let mut ids = front.iter().chain(back).copied();
        ids.find(|&id| test(&rows.get(id).expect("a row that stands is held").row, equality))
    }

    fn add(&mut self, place: Place, row: T, time: EventTime) -> Result<bool, OpError> {
        let same = self.identity.as_ref().map(|identity| identity.same.clone());
        if same.is_none() && self.settle_debt(place, &row) {
            return Ok(true);
        }
        let replaced = same.and_then(|same| self.find(place, |held, _| same(held, &row)));
        match replaced {
            Some(id) => {
                self.rows.replace(id, row, time);
            }
            None => {
                let id = self.rows.insert(row, time)?;
                let (stack, spill) = self.table.at(place);
                stack.rows.push(0, id, spill);
            }
        }
        Ok(true)
    }

    fn take_back(&mut self, place: Place, row: T, time: EventTime) -> Result<bool, OpError> {
        match self.find(place, |held, equality| equality.holds(held, &row)) {
            Some(id) => {
                let (stack, spill) = self.table.at(place);
                stack.rows.remove(0, id, spill);
                self.rows.remove(id);
                Ok(true)
            }
            // The times of changes need not be in the order of the changes: the row may come yet.
            None if self.identity.is_none() => {
                let id = self.rows.insert(row, time)?;
                let (stack, spill) = self.table.at(place);
                stack.owed.push(0, id, spill);
                Ok(false)
            }
            None => Ok(false),
        }
    }

    // Whether a row that comes has been taken back already.
    fn settle_debt(&mut self, place: Place, row: &T) -> bool {
        let (stack, spill) = self.table.view(place);
        let (front, back) = stack.owed.list(0, spill);
        let (rows, equality) = (&self.rows, &mut self.equality);
        let held = |id: RowId| &rows.get(id).expect("a row that is owed is held").row;
        let Some(id) = front.iter().chain(back).copied().find(|&id| equality.holds(held(id), row)) else {
            return false;
        };
        let (stack, spill) = self.table.at(place);
        stack.owed.remove(0, id, spill);
        self.rows.remove(id);
        true
    }

    fn must_be_alone(&mut self) -> Result<(), OpError> {
        for place in self.touched.places() {
            if self.table.get(place).rows.many() != 0 {
                return Err(OpError::conflict(format!("{:?}", self.table.key_at(place))));
            }
        }
        Ok(())
    }
}

fn first_of<K: Key>(table: &Table<K, Stack, Spill>, place: Place) -> Option<RowId> {
    let (stack, spill) = table.view(place);
    let (front, back) = stack.rows.list(0, spill);
    front.iter().chain(back).next().copied()
}

impl<K: Key, T: Data> Operator for Settled<K, T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let KeyedBatch { rows, kinds } = batch.take::<KeyedBatch<K, T>>()?;
        self.account.rows += rows.len() as u64;
        for (index, keyed) in rows.into_iter().enumerate() {
            if keyed.key.is_null() {
                self.account.null_key += 1;
                continue;
            }
            // A change that comes late is made with the next ones.
            let time = keyed.time.max(cx.watermark.time());
            self.account.open += 1;
            self.waiting.entry(time).or_default().push((kinds.at(index), keyed));
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
        OpFigures {
            accounts: vec![self.account],
            state_rows: vec![self.rows.len() as u64 + self.account.open],
            state_bytes: self.rows.bytes()
                + self.table.bytes(Spill::bytes)
                + (waiting * size_of::<(RowKind, KeyedRow<K, T>)>()) as u64,
            emitted: self.touched.emitted,
        }
    }
}
