//! A table out of a changelog whose changes of one key may come in any order between their upstream keys.

use super::net::{Through, Touched};
use super::stack::{End, Rows, Stack};
use crate::account::OpFigures;
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::error::OpError;
use crate::key::Key;
use crate::op::joined::Identity;
use crate::op::{Cx, InputId, Operator, Outbox};
use crate::record::Data;
use crate::state::{Place, Sealed, Sealing, Spill, Table};
use crate::time::EventTime;

/// Holds the rows that stand under each key, the newest last.
pub struct History<K: Key, T> {
    pub(super) table: Table<K, Standing, Spill>,
    pub(super) rows: Rows<T>,
    pub(super) touched: Touched<T>,
    pub(super) input: Through,
}

#[derive(Default)]
pub(super) struct Standing {
    pub(super) stack: Stack,
    touched: u32,
}

impl<K: Key, T: Data> History<K, T> {
    /// An empty table. With an identity, rows that it says are the same replace each other in place, and one is taken
    /// back whatever its other fields are; without, a row is taken back by an equal one.
    pub fn new(identity: Option<Identity<T>>) -> Self {
        History {
            table: Table::default(),
            rows: Rows::new(identity),
            touched: Touched::default(),
            input: Through::default(),
        }
    }

    fn touch(&mut self, key: K, hash: u64, time: EventTime) -> Place {
        let place = self.table.upsert(hash, key);
        if self.table.get(place).touched == 0 {
            let (standing, spill) = self.table.at(place);
            let newest = standing.stack.at_end(End::Newest, spill);
            let before = newest.and_then(|id| self.rows.slab.get(id)).map(|held| held.row.clone());
            let number = self.touched.first(place, hash);
            self.touched.was(number, before);
            standing.touched = number;
        }
        self.touched.at(self.table.get(place).touched, time);
        place
    }

    fn add(&mut self, place: Place, row: T, time: EventTime) -> Result<(), OpError> {
        let (standing, spill) = self.table.at(place);
        let replaced = match self.rows.has_identity() {
            true => standing.stack.find(&row, End::Newest, spill, &mut self.rows),
            false => None,
        };
        match replaced {
            Some(id) => {
                self.rows.slab.replace(id, row, time);
            }
            None => {
                let id = self.rows.slab.insert(row, time)?;
                standing.stack.push(id, spill, &mut self.rows);
            }
        }
        Ok(())
    }

    // Returns whether the row stood.
    fn take_back(&mut self, place: Place, row: &T) -> bool {
        let (standing, spill) = self.table.at(place);
        let taken = standing.stack.take(row, End::Newest, spill, &mut self.rows);
        taken.and_then(|id| self.rows.slab.remove(id)).is_some()
    }

    fn send(&mut self, out: &mut Outbox) {
        let (table, rows) = (&mut self.table, &self.rows.slab);
        let now = |place| {
            let (standing, spill) = table.at(place);
            standing.touched = 0;
            let newest = standing.stack.at_end(End::Newest, spill);
            let key = if newest.is_none() { table.remove(place).0 } else { table.key_at(place).clone() };
            (key, newest.and_then(|id| rows.get(id)).map(|held| &held.row))
        };
        self.touched.send(now, out);
    }
}

impl<K: Key, T: Data> Operator for History<K, T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        for (KeyedRow { key, hash, time, row }, kind) in batch.take::<KeyedBatch<K, T>>()?.into_rows() {
            let place = self.touch(key, hash, time);
            if kind.adds() {
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
            state_rows: vec![self.rows.slab.len() as u64],
            state_bytes: self.rows.bytes() + self.table.bytes(Spill::bytes),
            emitted: self.touched.emitted,
            ..OpFigures::default()
        }
    }

    fn keep(&mut self) {
        self.table.keep();
    }

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        self.seal_state(into)
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        self.take_back_state(sealed)
    }
}
