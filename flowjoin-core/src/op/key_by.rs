//! `key_by`: the sending half of an exchange.
//!
//! Each row's key is taken and hashed once, and the row is appended to one of P batches, which leave together when
//! they are full or when the linger is over. While rows are buffered they hold the watermark back, so that none of
//! them is late where it goes. A row with a null key stays on its own partition: nulls never crowd one task. An update
//! that changes the key of its row is a delete under the old key and an insert under the new one.

use std::sync::Arc;

use super::{Cx, InputId, Operator, Port};
use crate::account::{Account, OpFigures};
use crate::batch::{AnyBatch, Batch, KeyedBatch, KeyedRow, Kinds};
use crate::change::RowKind;
use crate::error::OpError;
use crate::io::TableChange;
use crate::key::{Key, KeyGroup};
use crate::record::{Data, Keyed};
use crate::time::{EventTime, ProcTime, Span};

/// How an exchange makes its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Rows for one receiver that leave without waiting for more.
    pub rows_max: usize,
    /// How long a row may wait for others.
    pub linger: Span,
}

/// Takes the key of a row.
pub type KeyOf<K, T> = Arc<dyn Fn(&T) -> K + Send + Sync>;

/// Deals the rows of one task out to the tasks that own their keys.
pub struct KeyBy<K, T> {
    key: KeyOf<K, T>,
    hash: HashOf<K>,
    nulls: Nulls,
    batching: Batching,
    own: usize,
    outgoing: Vec<KeyedBatch<K, T>>,
    buffered: usize,
    earliest: Option<EventTime>,
    leave_at: Option<ProcTime>,
    scratch: Vec<u8>,
    rows: u64,
}

// The hash of a key, if it is not null.
type HashOf<K> = fn(&K, &mut Vec<u8>) -> Option<u64>;

// Where rows without a key go.
#[derive(Clone, Copy)]
enum Nulls {
    Stay,
    ToAll,
}

fn hash_of<K: Key>(key: &K, scratch: &mut Vec<u8>) -> Option<u64> {
    (!key.is_null()).then(|| key.stable_hash(scratch))
}

impl<T: Keyed> KeyBy<Option<T::Key>, TableChange<T>> {
    /// The exchange of the changes of a table: each goes where the rows of its key go; a truncation goes to all.
    pub fn of_table(batching: Batching, own: usize, tasks: usize) -> Self {
        let key = |change: &TableChange<T>| match change {
            TableChange::Put(row) => Some(row.key()),
            TableChange::Patch { key, .. } | TableChange::Delete { key, .. } => Some(key.clone()),
            TableChange::Truncate { .. } => None,
        };
        let hash: HashOf<Option<T::Key>> = |key, scratch| key.as_ref().and_then(|key| hash_of(key, scratch));
        KeyBy::with(Arc::new(key), hash, Nulls::ToAll, batching, own, tasks)
    }
}

impl<K: Key, T: Data> KeyBy<K, T> {
    /// The exchange of task `own` of `tasks`; port `p` leads to task `p`.
    pub fn new(key: KeyOf<K, T>, batching: Batching, own: usize, tasks: usize) -> Self {
        KeyBy::with(key, hash_of, Nulls::Stay, batching, own, tasks)
    }
}

impl<K: Key, T: Clone + Send + 'static> KeyBy<K, T> {
    fn with(key: KeyOf<K, T>, hash: HashOf<K>, nulls: Nulls, batching: Batching, own: usize, tasks: usize) -> Self {
        let outgoing = (0..tasks).map(|_| KeyedBatch::default()).collect();
        KeyBy {
            key,
            hash,
            nulls,
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
        if let Kinds::Each(kinds) = kinds {
            return self.deal_changes(rows, times, kinds);
        }
        for (row, time) in rows.into_iter().zip(times) {
            let key = (self.key)(&row);
            self.put(key, row, time, RowKind::Insert);
        }
    }

    #[inline]
    fn put(&mut self, key: K, row: T, time: EventTime, kind: RowKind) {
        match ((self.hash)(&key, &mut self.scratch), self.nulls) {
            (Some(hash), _) => {
                let task = KeyGroup::of(hash).task(self.outgoing.len());
                self.outgoing[task].push(KeyedRow { key, hash, time, row }, kind);
            }
            (None, Nulls::Stay) => self.outgoing[self.own].push(KeyedRow { key, hash: 0, time, row }, kind),
            (None, Nulls::ToAll) => {
                for target in &mut self.outgoing {
                    target.push(KeyedRow { key: key.clone(), hash: 0, time, row: row.clone() }, kind);
                }
            }
        }
    }

    // The two halves of an update stand side by side; where they part, each is a change of its own.
    fn deal_changes(&mut self, rows: Vec<T>, times: Vec<EventTime>, kinds: Vec<RowKind>) {
        let mut changes = rows.into_iter().zip(times).zip(kinds).peekable();
        while let Some(((row, time), kind)) = changes.next() {
            let key = (self.key)(&row);
            let after = changes.next_if(|(_, next)| kind == RowKind::UpdateBefore && *next == RowKind::UpdateAfter);
            let Some(((new_row, new_time), _)) = after else {
                self.put(key, row, time, kind);
                continue;
            };
            let new_key = (self.key)(&new_row);
            let (leaves, comes) = match key == new_key && !key.is_null() {
                true => (RowKind::UpdateBefore, RowKind::UpdateAfter),
                false => (RowKind::Delete, RowKind::Insert),
            };
            self.put(key, row, time, leaves);
            self.put(new_key, new_row, new_time, comes);
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

impl<K: Key, T: Clone + Send + 'static> Operator for KeyBy<K, T> {
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
