//! A table out of a changelog whose changes of one key may come in any order between their upstream keys.

use super::net::{Through, Touched};
use crate::account::OpFigures;
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::error::OpError;
use crate::key::Key;
use crate::op::joined::Identity;
use crate::op::{Cx, InputId, Operator, Outbox};
use crate::record::Data;
use crate::state::{Equality, Lists, Place, RowId, Slab, Spill, Table};
use crate::time::EventTime;

/// Holds the rows that stand under each key, the newest last.
pub struct History<K: Key, T> {
    table: Table<K, Stack, Spill>,
    rows: Slab<T>,
    identity: Option<Identity<T>>,
    equality: Equality,
    touched: Touched<T>,
    input: Through,
}

#[derive(Default)]
struct Stack {
    rows: Lists<1>,
    touched: u32,
}

impl<K: Key, T: Data> History<K, T> {
    /// An empty table. With an identity, rows that it says are the same replace each other in place, and one is taken
    /// back whatever its other fields are; without, a row is taken back by an equal one.
    pub fn new(identity: Option<Identity<T>>) -> Self {
        History {
            table: Table::default(),
            rows: Slab::default(),
            identity,
            equality: Equality::default(),
            touched: Touched::default(),
            input: Through::default(),
        }
    }

    fn touch(&mut self, key: K, hash: u64, time: EventTime) -> Place {
        let place = self.table.upsert(hash, key);
        if self.table.get(place).touched == 0 {
            let (stack, spill) = self.table.at(place);
            let before = stack.rows.newest(0, spill).and_then(|id| self.rows.get(id)).map(|held| held.row.clone());
            let number = self.touched.first(place, hash);
            self.touched.was(number, before);
            self.table.at(place).0.touched = number;
        }
        self.touched.at(self.table.get(place).touched, time);
        place
    }

    // The newest row under a key that is the same as this one.
    fn same(&mut self, place: Place, row: &T) -> Option<RowId> {
        let (stack, spill) = self.table.at(place);
        let (front, back) = stack.rows.list(0, spill);
        let rows = &self.rows;
        front.iter().chain(back).rev().copied().find(|&id| {
            let held = rows.get(id).expect("a row that stands is held");
            match &self.identity {
                Some(identity) => (identity.same)(&held.row, row),
                None => self.equality.holds(&held.row, row),
            }
        })
    }

    fn add(&mut self, place: Place, row: T, time: EventTime) -> Result<(), OpError> {
        let replaced = if self.identity.is_some() { self.same(place, &row) } else { None };
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
        Ok(())
    }

    // Returns whether the row stood.
    fn take_back(&mut self, place: Place, row: &T) -> bool {
        let Some(id) = self.same(place, row) else { return false };
        let (stack, spill) = self.table.at(place);
        stack.rows.remove(0, id, spill);
        self.rows.remove(id);
        true
    }

    fn send(&mut self, out: &mut Outbox) {
        let (table, rows) = (&mut self.table, &self.rows);
        let now = |place| {
            let (stack, spill) = table.at(place);
            stack.touched = 0;
            let newest = stack.rows.newest(0, spill);
            let key = if newest.is_none() { table.remove(place).0 } else { table.key_at(place).clone() };
            (key, newest.and_then(|id| rows.get(id)).map(|held| &held.row))
        };
        self.touched.send(now, out);
    }
}

impl<K: Key, T: Data> Operator for History<K, T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let KeyedBatch { rows, kinds } = batch.take::<KeyedBatch<K, T>>()?;
        for (index, KeyedRow { key, hash, time, row }) in rows.into_iter().enumerate() {
            if key.is_null() {
                self.input.null_key();
                continue;
            }
            let place = self.touch(key, hash, time);
            if kinds.at(index).adds() {
                self.add(place, row, time)?;
                self.input.taken();
            } else if self.take_back(place, &row) {
                self.input.taken();
            } else {
                self.input.orphan();
            }
        }
        self.send(cx.out);
        Ok(())
    }

    fn figures(&self) -> OpFigures {
        OpFigures {
            accounts: vec![self.input.0],
            state_rows: vec![self.rows.len() as u64],
            state_bytes: self.rows.bytes() + self.table.bytes(Spill::bytes),
            emitted: self.touched.emitted,
        }
    }
}
