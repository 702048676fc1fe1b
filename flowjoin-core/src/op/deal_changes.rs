//! `key_by` for the changes of a table: each goes where the rows of its key are held, and a truncation to all.

use super::key_by::{Batching, Deal, Exchange, room};
use crate::batch::{AnyBatch, Batch, KeyedRow};
use crate::io::{RowChange, TableBatch, WholeChange};
use crate::key::{Key, KeyGroup};
use crate::record::Keyed;
use crate::time::EventTime;

/// Deals the changes of one task out to the tasks that own their keys.
pub struct DealChanges<T: Keyed> {
    outgoing: Vec<TableBatch<T::Key, T>>,
    scratch: Vec<u8>,
}

impl<T: Keyed> DealChanges<T> {
    /// The exchange of one of so many tasks.
    pub fn exchange(batching: Batching, tasks: usize) -> Exchange<Self> {
        let outgoing = (0..tasks).map(|_| TableBatch::default()).collect();
        Exchange::new(DealChanges { outgoing, scratch: Vec::new() }, batching)
    }

    fn truncate(&mut self, time: EventTime) {
        for target in &mut self.outgoing {
            target.truncations.push((target.rows.len(), time));
        }
    }
}

impl<T: Keyed> Deal for DealChanges<T> {
    type Row = WholeChange<T>;

    fn deal(&mut self, batch: Batch<WholeChange<T>>) {
        let (changes, times, _) = batch.into_parts();
        let room = room(changes.len(), self.outgoing.len());
        for target in &mut self.outgoing {
            target.rows.reserve(room);
        }
        for (change, time) in changes.into_iter().zip(times) {
            let (key, row) = match change {
                WholeChange::Put(row) => (row.key(), RowChange::Put(row)),
                WholeChange::Delete { key, row } => (key, RowChange::Delete(row)),
                WholeChange::Truncate => {
                    self.truncate(time);
                    continue;
                }
            };
            // A table has one row of the key null, as of any other.
            let hash = key.stable_hash(&mut self.scratch);
            let task = KeyGroup::of(hash).task(self.outgoing.len());
            self.outgoing[task].rows.push(KeyedRow { key, hash, time, row });
        }
    }

    fn tasks(&self) -> usize {
        self.outgoing.len()
    }

    fn take(&mut self, task: usize) -> AnyBatch {
        AnyBatch::new(std::mem::take(&mut self.outgoing[task]))
    }
}
