//! Sources of tables: changes of rows that each have a key, as the outside tells them.
//!
//! What comes in need not be well-formed: a row may be put twice, deleted though it was never there, or patched. Patches
//! are made whole where the source is read; the operator behind it (`normalize`) holds the rows as they stand and turns
//! all that into a legal changelog.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{BadRecords, Endpoint, FailOnBad, Reader};
use crate::batch::{ErasedBatch, KeyedRow};
use crate::error::IoError;
use crate::record::{Event, Keyed};
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
    /// The row of one key is that of another now. Both keys change, or, where the record is a bad one, neither does.
    Move(Box<Moved<T>>),
    /// There are no rows any more.
    Truncate {
        /// When, if the source knows it.
        time: Option<EventTime>,
    },
}

/// A row that has got another key.
#[derive(Clone)]
pub struct Moved<T: Keyed> {
    /// The key that has no row any more.
    pub from: T::Key,
    /// The row as it was under that key, if the source knows all of it.
    pub row: Option<Box<T>>,
    /// When, if the source knows it.
    pub time: Option<EventTime>,
    /// What it is now.
    pub to: MovedTo<T>,
}

/// What a row is that has got another key.
#[derive(Clone)]
pub enum MovedTo<T: Keyed> {
    /// This one.
    Row(T),
    /// The one that stood under the key before, with some fields changed.
    Patch {
        /// The key that it has now.
        key: T::Key,
        /// Makes the row of now out of the one before.
        patch: Patch<T>,
    },
}

/// How the row of now is made out of the one before.
#[derive(Clone)]
pub struct Patch<T> {
    make: Arc<Make<T>>,
    record: Vec<u8>,
}

type Make<T> = dyn Fn(Option<&T>) -> Result<T, String> + Send + Sync;

impl<T> Patch<T> {
    /// By a function of the row before; there may be none. What it says instead of a row is why that cannot be done: the
    /// change is then a bad record.
    pub fn new(make: impl Fn(Option<&T>) -> Result<T, String> + Send + Sync + 'static) -> Patch<T> {
        Patch { make: Arc::new(make), record: Vec::new() }
    }

    /// Keeps the record that told it, for the case that it is a bad one.
    pub fn of_record(mut self, record: impl Into<Vec<u8>>) -> Patch<T> {
        self.record = record.into();
        self
    }

    /// Makes the row of now.
    ///
    /// # Errors
    /// If that cannot be done, the reason.
    pub fn apply(&self, before: Option<&T>) -> Result<T, String> {
        (self.make)(before)
    }

    /// The record that told it, or else the key of the row.
    pub(crate) fn record(&self, key: &dyn fmt::Debug) -> Vec<u8> {
        if self.record.is_empty() { format!("{key:?}").into_bytes() } else { self.record.clone() }
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

    /// The event time of a change that comes at this time, as far as it says one.
    pub fn event_time(&self, arrival: EventTime) -> Option<EventTime>
    where
        T: Event,
    {
        match self {
            TableChange::Put(row) => row.event_time(arrival).ok(),
            TableChange::Patch { time, .. } | TableChange::Delete { time, .. } | TableChange::Truncate { time } => {
                *time
            }
            TableChange::Move(moved) => match &moved.to {
                MovedTo::Row(row) => row.event_time(arrival).ok(),
                MovedTo::Patch { .. } => moved.time,
            },
        }
    }
}

/// A change of a table that needs no more than itself: what was told in part has been made whole.
#[derive(Clone)]
pub enum WholeChange<T: Keyed> {
    /// The row of its key is this one now.
    Put(T),
    /// There is no row of this key any more; with the row as it was, if the source knows it.
    Delete {
        /// Whose row.
        key: T::Key,
        /// As it was.
        row: Option<Box<T>>,
    },
    /// There are no rows any more.
    Truncate,
}

/// What happens to the row of a key, as it travels from the exchange to whoever holds the rows.
#[derive(Clone)]
pub(crate) enum RowChange<T> {
    /// It is this one now.
    Put(T),
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
            TableChange::Move(moved) => f.debug_tuple("Move").field(&moved.from).finish(),
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

    /// Whether it promises to tell every row as a whole, and never to delete all. A temporal join then needs nothing to be
    /// held of the table besides its versions.
    fn tells_whole_rows(&self) -> bool {
        false
    }

    /// Whether it tells rows in part ([`TableChange::Patch`], [`MovedTo::Patch`]). Each task then holds the rows of the
    /// partitions that it reads, to make such changes whole; without this, they are bad records.
    fn tells_patches(&self) -> bool {
        false
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
