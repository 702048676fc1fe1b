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
use crate::key::{Key, KeyGroup};
use crate::record::Data;
use crate::state::{Sealed, Sealing, decode, encode};
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
    // The task of rows with a null key, unless they have one as other rows do.
    nulls_to: Option<usize>,
    outgoing: Vec<KeyedBatch<K, T>>,
    scratch: Vec<u8>,
}

/// Puts rows into a batch for each of the tasks that own their keys.
pub trait Deal: Send {
    /// The rows.
    type Row: Clone + Send + 'static;

    /// Adds the rows of a batch to those that wait.
    fn deal(&mut self, batch: Batch<Self::Row>);

    /// How many tasks there are.
    fn tasks(&self) -> usize;

    /// Takes out what waits for a task.
    fn take(&mut self, task: usize) -> AnyBatch;
}

/// The sending half of an exchange: rows wait for company, and leave together; port `p` leads to task `p`.
pub struct Exchange<D> {
    dealer: D,
    linger: Linger,
}

impl<D: Deal> Exchange<D> {
    /// An exchange that deals rows so, and makes its batches so.
    pub fn new(dealer: D, batching: Batching) -> Self {
        Exchange { dealer, linger: Linger::new(batching) }
    }
}

/// How long buffered rows have waited, and how far they hold the watermark back.
struct Linger {
    batching: Batching,
    buffered: usize,
    earliest: Option<EventTime>,
    leave_at: Option<ProcTime>,
    rows: u64,
}

impl Linger {
    fn new(batching: Batching) -> Linger {
        Linger { batching, buffered: 0, earliest: None, leave_at: None, rows: 0 }
    }

    /// Rows of these times are buffered for so many tasks; returns whether they should leave.
    fn note(&mut self, times: &[EventTime], tasks: usize, now: ProcTime) -> bool {
        self.rows += times.len() as u64;
        self.buffered += times.len();
        self.earliest = self.earliest.into_iter().chain(times.iter().copied()).min();
        self.leave_at = self.leave_at.or(Some(now.plus(self.batching.linger)));
        self.buffered >= self.batching.rows_max.saturating_mul(tasks) || self.is_over(now)
    }

    /// Whether rows have waited long enough.
    fn is_over(&self, now: ProcTime) -> bool {
        self.leave_at.is_some_and(|at| at <= now)
    }

    /// All that was buffered has left.
    fn left(&mut self) {
        (self.buffered, self.earliest, self.leave_at) = (0, None, None);
    }

    /// What has come in.
    fn figures(&self) -> OpFigures {
        let account = Account { rows: self.rows, matched: self.rows, ..Account::default() };
        OpFigures { accounts: vec![account], emitted: self.rows - self.buffered as u64, ..OpFigures::default() }
    }
}

/// Rows of one batch mostly spread evenly over the tasks; a little room more saves growing.
pub(super) const fn room(rows: usize, tasks: usize) -> usize {
    rows / tasks + rows / (8 * tasks) + 1
}

impl<K: Key, T: Data> KeyBy<K, T> {
    /// The exchange of task `own` of `tasks`. Rows with a null key match nothing, and stay where they are.
    pub fn exchange(key: KeyOf<K, T>, batching: Batching, own: usize, tasks: usize) -> Exchange<Self> {
        KeyBy::dealing(key, batching, Some(own), tasks)
    }

    /// The exchange of one of so many tasks before a table, which has one row of the key null, as of any other.
    pub fn before_table(key: KeyOf<K, T>, batching: Batching, tasks: usize) -> Exchange<Self> {
        KeyBy::dealing(key, batching, None, tasks)
    }

    fn dealing(key: KeyOf<K, T>, batching: Batching, nulls_to: Option<usize>, tasks: usize) -> Exchange<Self> {
        let outgoing = (0..tasks).map(|_| KeyedBatch::default()).collect();
        Exchange::new(KeyBy { key, nulls_to, outgoing, scratch: Vec::new() }, batching)
    }

    #[inline]
    fn put(&mut self, key: K, row: T, time: EventTime, kind: RowKind) {
        let (task, hash) = match self.nulls_to {
            Some(own) if key.is_null() => (own, 0),
            _ => {
                let hash = key.stable_hash(&mut self.scratch);
                (KeyGroup::of(hash).task(self.outgoing.len()), hash)
            }
        };
        self.outgoing[task].push(KeyedRow { key, hash, time, row }, kind);
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
}

impl<K: Key, T: Data> Deal for KeyBy<K, T> {
    type Row = T;

    fn deal(&mut self, batch: Batch<T>) {
        let (rows, times, kinds) = batch.into_parts();
        let room = room(rows.len(), self.outgoing.len());
        for target in &mut self.outgoing {
            target.reserve(room);
        }
        if let Kinds::Each(kinds) = kinds {
            return self.deal_changes(rows, times, kinds);
        }
        for (row, time) in rows.into_iter().zip(times) {
            let key = (self.key)(&row);
            self.put(key, row, time, RowKind::Insert);
        }
    }

    fn tasks(&self) -> usize {
        self.outgoing.len()
    }

    fn take(&mut self, task: usize) -> AnyBatch {
        AnyBatch::new(std::mem::take(&mut self.outgoing[task]))
    }
}

impl<D: Deal> Exchange<D> {
    fn send_all(&mut self, cx: &mut Cx<'_>) {
        for task in 0..self.dealer.tasks() {
            let batch = self.dealer.take(task);
            if !batch.is_empty() {
                cx.out.send(Port(task), batch);
            }
        }
        self.linger.left();
    }
}

impl<D: Deal> Operator for Exchange<D> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let batch: Batch<D::Row> = batch.take()?;
        let leaves = self.linger.note(batch.times(), self.dealer.tasks(), cx.now);
        self.dealer.deal(batch);
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

    fn keep(&mut self) {}

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        debug_assert_eq!(self.linger.buffered, 0, "what waits for company has been sent before");
        into.put_own(0, &[], &encode(&self.linger.rows));
        Ok(())
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        self.linger.rows = decode(sealed.value)?;
        Ok(())
    }
}
