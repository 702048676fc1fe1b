//! `key_by` for the changes of a table: each goes where the rows of its key are held, and a truncation to all.

use super::key_by::{Batching, Linger, hash_of, room};
use super::{Cx, InputId, Operator, Port};
use crate::account::OpFigures;
use crate::batch::{AnyBatch, Batch, KeyedRow};
use crate::error::OpError;
use crate::io::{RowChange, TableBatch, TableChange};
use crate::key::KeyGroup;
use crate::record::Keyed;
use crate::time::{EventTime, ProcTime};

/// Deals the changes of one task out to the tasks that own their keys.
pub struct DealChanges<T: Keyed> {
    own: usize,
    outgoing: Vec<TableBatch<T::Key, T>>,
    linger: Linger,
    scratch: Vec<u8>,
}

impl<T: Keyed> DealChanges<T> {
    /// The exchange of task `own` of `tasks`; port `p` leads to task `p`.
    pub fn new(batching: Batching, own: usize, tasks: usize) -> Self {
        let outgoing = (0..tasks).map(|_| TableBatch::default()).collect();
        DealChanges { own, outgoing, linger: Linger::new(batching), scratch: Vec::new() }
    }

    fn deal(&mut self, batch: Batch<TableChange<T>>) {
        let (changes, times, _) = batch.into_parts();
        let room = room(changes.len(), self.outgoing.len());
        for target in &mut self.outgoing {
            target.rows.reserve(room);
        }
        for (change, time) in changes.into_iter().zip(times) {
            let (key, row) = match change {
                TableChange::Put(row) => (row.key(), RowChange::Put(row)),
                TableChange::Patch { key, patch, .. } => (key, RowChange::Patch(patch)),
                TableChange::Delete { key, row, .. } => (key, RowChange::Delete(row)),
                TableChange::Truncate { .. } => {
                    self.truncate(time);
                    continue;
                }
            };
            let (task, hash) = match hash_of(&key, &mut self.scratch) {
                Some(hash) => (KeyGroup::of(hash).task(self.outgoing.len()), hash),
                None => (self.own, 0),
            };
            self.outgoing[task].rows.push(KeyedRow { key, hash, time, row });
        }
    }

    fn truncate(&mut self, time: EventTime) {
        for target in &mut self.outgoing {
            target.truncations.push((target.rows.len(), time));
        }
    }

    fn send_all(&mut self, cx: &mut Cx<'_>) {
        for (task, outgoing) in self.outgoing.iter_mut().enumerate() {
            if !outgoing.rows.is_empty() || !outgoing.truncations.is_empty() {
                cx.out.send(Port(task), AnyBatch::new(std::mem::take(outgoing)));
            }
        }
        self.linger.left();
    }
}

impl<T: Keyed> Operator for DealChanges<T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let batch: Batch<TableChange<T>> = batch.take()?;
        let leaves = self.linger.note(batch.times(), self.outgoing.len(), cx.now);
        self.deal(batch);
        if leaves {
            self.send_all(cx);
        }
        Ok(())
    }

    fn on_clock(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if self.linger.is_over(cx.now) {
            self.send_all(cx);
        }
        Ok(())
    }

    fn on_flush(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.send_all(cx);
        Ok(())
    }

    fn on_end(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        self.send_all(cx);
        Ok(())
    }

    fn earliest_output(&mut self) -> Option<EventTime> {
        self.linger.earliest
    }

    fn deadline(&mut self) -> Option<ProcTime> {
        self.linger.leave_at
    }

    fn figures(&self) -> OpFigures {
        self.linger.figures()
    }
}
