//! Batches: what travels between operators.
//!
//! Columns of bookkeeping stand beside the rows; an append-only batch stores no kinds. Between operators a batch
//! is erased to an [`AnyBatch`], with one downcast a batch and none a row.

use std::any::Any;

use crate::change::{Change, RowKind};
use crate::error::OpError;
use crate::time::EventTime;

/// Rows with their times and kinds.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    rows: Vec<T>,
    times: Vec<EventTime>,
    kinds: Kinds,
}

/// The kinds of a batch; nothing is stored while all rows are inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// Every row is `+I`.
    AllInsert,
    /// One kind a row.
    Each(Vec<RowKind>),
}

impl Kinds {
    /// The kind of row `index`.
    #[inline]
    pub fn at(&self, index: usize) -> RowKind {
        match self {
            Kinds::AllInsert => RowKind::Insert,
            Kinds::Each(kinds) => kinds[index],
        }
    }

    /// Notes the kind of the next row, of which `before` came already.
    #[inline]
    pub fn push(&mut self, kind: RowKind, before: usize) {
        match self {
            Kinds::AllInsert if kind == RowKind::Insert => {}
            Kinds::AllInsert => self.begin(kind, before),
            Kinds::Each(kinds) => kinds.push(kind),
        }
    }

    #[cold]
    fn begin(&mut self, kind: RowKind, before: usize) {
        // As much room again as rows have come: kinds that differ seldom come alone.
        let mut kinds = Vec::with_capacity(2 * (before + 1));
        kinds.resize(before, RowKind::Insert);
        kinds.push(kind);
        *self = Kinds::Each(kinds);
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Batch::with_capacity(0)
    }
}

impl<T> Batch<T> {
    /// An empty batch with room for `rows` rows.
    pub fn with_capacity(rows: usize) -> Batch<T> {
        Batch { rows: Vec::with_capacity(rows), times: Vec::with_capacity(rows), kinds: Kinds::AllInsert }
    }

    /// An append-only batch of rows and their times.
    ///
    /// # Panics
    /// If the two are not of one length.
    pub fn from_rows(rows: Vec<T>, times: Vec<EventTime>) -> Batch<T> {
        assert_eq!(rows.len(), times.len(), "a row has one time");
        Batch { rows, times, kinds: Kinds::AllInsert }
    }

    /// Makes room for so many rows more.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.times.reserve(rows);
    }

    /// Appends one row.
    #[inline]
    pub fn push(&mut self, row: T, time: EventTime, kind: RowKind) {
        self.kinds.push(kind, self.rows.len());
        self.rows.push(row);
        self.times.push(time);
    }

    /// Takes the last row out.
    pub fn pop(&mut self) -> Option<Change<T>> {
        let (row, time) = (self.rows.pop()?, self.times.pop()?);
        let kind = match &mut self.kinds {
            Kinds::AllInsert => RowKind::Insert,
            Kinds::Each(kinds) => kinds.pop()?,
        };
        Some(Change { kind, row, time })
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// The times, one a row.
    pub fn times(&self) -> &[EventTime] {
        &self.times
    }

    /// The kinds.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The columns.
    pub fn into_parts(self) -> (Vec<T>, Vec<EventTime>, Kinds) {
        (self.rows, self.times, self.kinds)
    }

    /// Row by row.
    pub fn into_changes(self) -> impl Iterator<Item = Change<T>> {
        let kinds = self.kinds;
        self.rows.into_iter().zip(self.times).enumerate().map(move |(index, (row, time))| Change {
            kind: kinds.at(index),
            row,
            time,
        })
    }

    /// Row by row, borrowed.
    pub fn iter(&self) -> impl Iterator<Item = (RowKind, &T, EventTime)> {
        self.rows.iter().zip(&self.times).enumerate().map(|(index, (row, time))| (self.kinds.at(index), row, *time))
    }
}

/// A row with its key and the key's hash, computed once by the sender of an exchange.
#[derive(Clone, Debug)]
pub struct KeyedRow<K, T> {
    /// The key.
    pub key: K,
    /// Its stable hash.
    pub hash: u64,
    /// The row's event time.
    pub time: EventTime,
    /// The row.
    pub row: T,
}

/// What an exchange knows of a row besides the row itself.
#[derive(Clone, Copy, Debug)]
pub struct Head<K> {
    /// The key.
    pub key: K,
    /// Its stable hash.
    pub hash: u64,
    /// The row's event time.
    pub time: EventTime,
}

/// Rows with their keys, as an exchange carries them: the rows in one column, and what is known of them beside it, so that
/// neither has to be touched for the other.
#[derive(Clone, Debug)]
pub struct KeyedBatch<K, T> {
    heads: Vec<Head<K>>,
    rows: Vec<T>,
    kinds: Kinds,
}

impl<K, T> Default for KeyedBatch<K, T> {
    fn default() -> Self {
        KeyedBatch { heads: Vec::new(), rows: Vec::new(), kinds: Kinds::AllInsert }
    }
}

impl<K, T> KeyedBatch<K, T> {
    /// Makes room for so many rows more.
    pub fn reserve(&mut self, rows: usize) {
        self.heads.reserve(rows);
        self.rows.reserve(rows);
    }

    /// Appends one row.
    #[inline]
    pub fn push(&mut self, KeyedRow { key, hash, time, row }: KeyedRow<K, T>, kind: RowKind) {
        self.kinds.push(kind, self.rows.len());
        self.heads.push(Head { key, hash, time });
        self.rows.push(row);
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns.
    pub fn into_parts(self) -> (Vec<Head<K>>, Vec<T>, Kinds) {
        (self.heads, self.rows, self.kinds)
    }

    /// Row by row, with the kind of each.
    pub fn into_rows(self) -> impl ExactSizeIterator<Item = (KeyedRow<K, T>, RowKind)> {
        let kinds = self.kinds;
        let rows = self.heads.into_iter().zip(self.rows).enumerate();
        rows.map(move |(index, (Head { key, hash, time }, row))| (KeyedRow { key, hash, time, row }, kinds.at(index)))
    }
}

/// What can be erased to an [`AnyBatch`]; implemented for the two kinds of batch.
pub trait ErasedBatch: Any + Send {
    /// How many rows it has.
    fn row_count(&self) -> usize;
    /// The times of its rows, if they stand together: those of a batch with keys stand with the rows.
    fn times_together(&self) -> Option<&[EventTime]> {
        None
    }
    /// A second batch with the same rows, for a second consumer.
    fn duplicate(&self) -> Box<dyn ErasedBatch>;
    /// For the downcast.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Clone + Send + 'static> ErasedBatch for Batch<T> {
    fn row_count(&self) -> usize {
        self.len()
    }
    fn times_together(&self) -> Option<&[EventTime]> {
        Some(&self.times)
    }
    fn duplicate(&self) -> Box<dyn ErasedBatch> {
        Box::new(self.clone())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<K: Clone + Send + 'static, T: Clone + Send + 'static> ErasedBatch for KeyedBatch<K, T> {
    fn row_count(&self) -> usize {
        self.rows.len()
    }
    fn duplicate(&self) -> Box<dyn ErasedBatch> {
        Box::new(self.clone())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A batch whose row type is known only to the two ends of an edge.
pub struct AnyBatch(Box<dyn ErasedBatch>);

impl AnyBatch {
    /// Erases a batch.
    pub fn new<B: ErasedBatch>(batch: B) -> AnyBatch {
        AnyBatch(Box::new(batch))
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.0.row_count()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The times of its rows, if they stand together.
    pub fn times(&self) -> Option<&[EventTime]> {
        self.0.times_together()
    }

    /// A second batch with the same rows.
    pub fn duplicate(&self) -> AnyBatch {
        AnyBatch(self.0.duplicate())
    }

    /// The typed batch.
    ///
    /// # Errors
    /// If it is of another type, which is a mistake of flowjoin itself.
    pub fn take<B: ErasedBatch>(self) -> Result<B, OpError> {
        match self.0.into_any().downcast::<B>() {
            Ok(batch) => Ok(*batch),
            Err(_) => Err(OpError::wrong_batch(std::any::type_name::<B>())),
        }
    }
}

impl std::fmt::Debug for AnyBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AnyBatch({} rows)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_stored_only_when_a_row_is_not_an_insert() {
        let mut batch = Batch::default();
        batch.push("a", EventTime::from_millis(1), RowKind::Insert);
        assert_eq!(batch.kinds(), &Kinds::AllInsert);
        batch.push("b", EventTime::from_millis(2), RowKind::Delete);
        batch.push("c", EventTime::from_millis(3), RowKind::Insert);
        let kinds: Vec<_> = batch.into_changes().map(|c| c.kind.symbol()).collect();
        assert_eq!(kinds, ["+I", "-D", "+I"]);
    }

    #[test]
    fn a_batch_of_another_type_is_refused() {
        let any = AnyBatch::new(Batch::from_rows(vec![1u8], vec![EventTime::MIN]));
        assert!(any.take::<Batch<u16>>().is_err());
    }
}
