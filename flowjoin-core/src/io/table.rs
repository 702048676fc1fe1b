//! Sources of tables: changes of rows that each have a key, as the outside tells them.
//!
//! What comes in need not be well-formed: a row may be put twice, deleted though it was never there, or patched. The
//! operator behind the source (`normalize`) holds the rows as they stand and turns all that
//! into a legal changelog.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{BadRecords, Endpoint, FailOnBad, Reader};
use crate::batch::{ErasedBatch, KeyedRow};
use crate::error::{IoError, RecordError};
use crate::record::Keyed;
use crate::time::EventTime;

/// A change of a table, as its source tells it.
#[derive(Clone)]
pub enum TableChange<T: Keyed> {
    /// The row of its key is this one now, whether there was one before or not.
    Put(T),
    /// The row of a key is the one before with some fields changed: the source was not told the others.
    Patch {
        /// Whose row.
        key: T::Key,
        /// When, if the source knows it.
        time: Option<EventTime>,
        /// Makes the row of now out of the one before.
        patch: Box<Patch<T>>,
    },
    /// There is no row of this key any more, if there was one.
    Delete {
        /// Whose row.
        key: T::Key,
        /// When, if the source knows it.
        time: Option<EventTime>,
        /// The row as it was when it went, if the source knows all of it. Where rows have versions, it says the version
        /// of the delete: a newer row stays. Without it, the row goes whatever its version is.
        row: Option<Box<T>>,
    },
    /// There are no rows any more.
    Truncate {
        /// When, if the source knows it.
        time: Option<EventTime>,
    },
}

/// How the row of now is made out of the one before.
#[derive(Clone)]
pub struct Patch<T> {
    make: Arc<Make<T>>,
    record: Vec<u8>,
    origin: Option<(Arc<str>, u64)>,
}

type Make<T> = dyn Fn(Option<&T>) -> Result<T, String> + Send + Sync;

impl<T> Patch<T> {
    /// By a function of the row before; there may be none. What it says instead of a row is why that cannot be done: the
    /// change is then a bad record.
    pub fn new(make: impl Fn(Option<&T>) -> Result<T, String> + Send + Sync + 'static) -> Patch<T> {
        Patch { make: Arc::new(make), record: Vec::new(), origin: None }
    }

    /// Keeps the record that told it, for the case that it is a bad one.
    pub fn of_record(mut self, record: impl Into<Vec<u8>>) -> Patch<T> {
        self.record = record.into();
        self
    }

    /// Keeps what the record was read from, and the line or offset there.
    pub(crate) fn read_from(&mut self, origin: (Arc<str>, u64)) {
        self.origin = Some(origin);
    }

    /// Makes the row of now.
    ///
    /// # Errors
    /// If that cannot be done, the reason.
    pub fn apply(&self, before: Option<&T>) -> Result<T, String> {
        (self.make)(before)
    }

    /// The bad record that it is, if it cannot be applied to the row of this key.
    pub(crate) fn failed(self, key: &dyn fmt::Debug, table: &str, reason: String) -> RecordError {
        let raw = if self.record.is_empty() { format!("{key:?}").into_bytes() } else { self.record };
        let (origin, position) = match self.origin {
            Some((origin, position)) => (origin.to_string(), Some(position)),
            None => (table.to_string(), None),
        };
        RecordError { reason, raw, origin, position }
    }
}

impl<T: Keyed> TableChange<T> {
    /// The row of this key is gone; nothing else is known of it.
    pub const fn delete(key: T::Key) -> TableChange<T> {
        TableChange::Delete { key, time: None, row: None }
    }

    /// This row is gone.
    pub fn delete_row(row: T) -> TableChange<T> {
        TableChange::Delete { key: row.key(), time: None, row: Some(Box::new(row)) }
    }
}

/// What happens to the row of a key, as it travels from the exchange to whoever holds the rows.
#[derive(Clone)]
pub(crate) enum RowChange<T> {
    /// It is this one now.
    Put(T),
    /// It is the one before with some fields changed.
    Patch(Box<Patch<T>>),
    /// It is gone; with the row as it was, if the source knows it.
    Delete(Option<Box<T>>),
}

/// Changes of a table by key, as an exchange carries them.
#[derive(Clone)]
pub(crate) struct TableBatch<K, T> {
    /// The changes.
    pub rows: Vec<KeyedRow<K, RowChange<T>>>,
    /// Before which of them all rows of the table go, and when; ascending.
    pub truncations: Vec<(usize, EventTime)>,
}

impl<K, T> Default for TableBatch<K, T> {
    fn default() -> Self {
        TableBatch { rows: Vec::new(), truncations: Vec::new() }
    }
}

impl<K: Clone + Send + 'static, T: Clone + Send + 'static> ErasedBatch for TableBatch<K, T> {
    fn row_count(&self) -> usize {
        self.rows.len() + self.truncations.len()
    }
    fn duplicate(&self) -> Box<dyn ErasedBatch> {
        Box::new(self.clone())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<T: Keyed + fmt::Debug> fmt::Debug for TableChange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableChange::Put(row) => f.debug_tuple("Put").field(row).finish(),
            TableChange::Patch { key, .. } => f.debug_tuple("Patch").field(key).finish(),
            TableChange::Delete { key, .. } => f.debug_tuple("Delete").field(key).finish(),
            TableChange::Truncate { .. } => f.write_str("Truncate"),
        }
    }
}

/// Where a table comes from.
///
/// Its partitions divide the keys: all changes of a key are in one partition, in order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be opened as a table of `{T}`",
    label = "not a source of this table",
    note = "a table takes sources of changes: `JsonLines::table(path)`, `Debezium::json(path)`; for facts use `flow.stream(..)`, and `.latest_by_key()` on the stream for the newest row of each key"
)]
pub trait TableSource<T: Keyed>: Send + Sync + 'static {
    /// What explain says about it.
    fn endpoint(&self) -> Endpoint;

    /// How many partitions it has: each is read in order, by one task.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn partitions(&self) -> Result<usize, IoError>;

    /// Opens one partition.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, partition: usize) -> Result<Box<dyn Reader<TableChange<T>>>, IoError>;

    /// Where records go that cannot become changes. Called once a run.
    ///
    /// # Errors
    /// If the dead-letter file cannot be opened.
    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        Ok(Box::new(FailOnBad))
    }

    /// A change given as a value, as a test writes it: by default a row that is put, and `{"op": "-D", ..row}` for one
    /// that is deleted.
    ///
    /// # Errors
    /// If the value is no change of this table.
    fn change_of(&self, value: serde_json::Value) -> Result<TableChange<T>, serde_json::Error> {
        plain_change(value)
    }
}

fn plain_change<T: Keyed>(mut value: serde_json::Value) -> Result<TableChange<T>, serde_json::Error> {
    let deleted = match value.as_object_mut() {
        Some(fields) if fields.get("op").is_some_and(|op| op == "-D" || op == "-U") => fields.remove("op").is_some(),
        Some(fields) if fields.get("op").is_some_and(|op| op == "+I" || op == "+U") => fields.remove("op").is_none(),
        _ => false,
    };
    let row: T = serde_json::from_value(value)?;
    Ok(if deleted { TableChange::delete_row(row) } else { TableChange::Put(row) })
}
