//! `key_by`: the sending half of an exchange.
//!
//! Each row's key is taken and hashed once, and the row is appended to one of P batches, which leave together when
//! they are full or when the linger is over. While rows are buffered they hold the watermark back, so that none of
//! them is late where it goes. A row with a null key stays on its own partition: nulls never crowd one task.

use std::sync::Arc;

use super::{Cx, InputId, Operator, Port};
use crate::account::{Account, OpFigures};
use crate::batch::{AnyBatch, Batch, KeyedBatch, KeyedRow};
use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::record::Data;
use crate::time::{EventTime, ProcTime, Span};

/// How an exchange makes its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Rows for one receiver that leave without waiting for more.
    pub rows_max: usize,
    /// How long a row may wait for others.
    pub linger: Span,
}

/// Deals the rows of one task out to the tasks that own their keys.
pub struct KeyBy<K, T> {
    key: Arc<dyn Fn(&T) -> K + Send + Sync>,
    batching: Batching,
    own: usize,
    outgoing: Vec<KeyedBatch<K, T>>,
    buffered: usize,
    earliest: Option<EventTime>,
    leave_at: Option<ProcTime>,
    scratch: Vec<u8>,
    rows: u64,
}

impl<K: Key, T: Data> KeyBy<K, T> {
    /// The exchange of task `own` of `tasks`; port `p` leads to task `p`.
    pub fn new(key: Arc<dyn Fn(&T) -> K + Send + Sync>, batching: Batching, own: usize, tasks: usize) -> Self {
        let outgoing = (0..tasks).map(|_| KeyedBatch::default()).collect();
        KeyBy {
            key,
            batching,
            own,
            outgoing,
            buffered: 0,
            earliest: None,
            leave_at: None,
            scratch: Vec::new(),
            rows: 0,
        }
    }

    fn deal(&mut self, batch: Batch<T>) {
        let (rows, times, kinds) = batch.into_parts();
        let tasks = self.outgoing.len();
        // Rows of one batch mostly spread evenly; a little room more saves growing.
        let room = rows.len() / tasks + rows.len() / (8 * tasks) + 1;
        for target in &mut self.outgoing {
            target.rows.reserve(room);
        }
        for (index, (row, time)) in rows.into_iter().zip(times).enumerate() {
            let key = (self.key)(&row);
            let (hash, task) = if key.is_null() {
                (0, self.own)
            } else {
                let hash = key.stable_hash(&mut self.scratch);
                (hash, KeyGroup::of(hash).task(tasks))
            };
            self.outgoing[task].push(KeyedRow { key, hash, time, row }, kinds.at(index));
        }
    }

    fn send_all(&mut self, cx: &mut Cx<'_>) {
        for (task, outgoing) in self.outgoing.iter_mut().enumerate() {
            if !outgoing.rows.is_empty() {
                cx.out.send(Port(task), AnyBatch::new(std::mem::take(outgoing)));
            }
        }
        self.buffered = 0;
        self.earliest = None;
        self.leave_at = None;
    }
}

impl<K: Key, T: Data> Operator for KeyBy<K, T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let batch: Batch<T> = batch.take()?;
        self.rows += batch.len() as u64;
        self.buffered += batch.len();
        self.earliest = self.earliest.into_iter().chain(batch.times().iter().copied()).min();
        self.leave_at = self.leave_at.or(Some(cx.now.plus(self.batching.linger)));
        self.deal(batch);
        let full = self.batching.rows_max * self.outgoing.len();
        if self.buffered >= full || self.leave_at.is_some_and(|at| at <= cx.now) {
            self.send_all(cx);
        }
        Ok(())
    }

    fn on_clock(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if self.leave_at.is_some_and(|at| at <= cx.now) {
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
        self.earliest
    }

    fn deadline(&mut self) -> Option<ProcTime> {
        self.leave_at
    }

    fn figures(&self) -> OpFigures {
        let account = Account { rows: self.rows, matched: self.rows, ..Account::default() };
        OpFigures { accounts: vec![account], emitted: self.rows - self.buffered as u64, ..OpFigures::default() }
    }
}
