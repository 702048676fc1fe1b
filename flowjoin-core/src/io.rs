//! The two ends of a flow: sources and sinks, as connectors implement them.
//!
//! A source is a factory of [`Reader`]s, one a partition; a sink is a factory of [`Writer`]s, one a task. Only the
//! readers and writers are async, and only a runtime calls them: the test driver feeds and empties a flow without.

pub(crate) mod aligned;
pub(crate) mod by_key;
pub mod erased;
mod raws;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::batch::Batch;
use crate::error::{IoError, RecordError};
use crate::record::Data;

pub use by_key::ByKey;
pub(crate) use by_key::changes;
pub use raws::Raws;
pub use table::{Moved, MovedTo, Patch, TableChange, TableSource};
pub(crate) use table::{RowChange, TableBatch, WholeChange};

/// What explain and the accounting say about a source or sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The name by which tests and figures find it: the stem of the file, the topic.
    pub name: String,
    /// The kind of connector: `json lines`, `csv`, `memory`.
    pub kind: String,
    /// Further settings worth a word in explain, or nothing.
    pub detail: String,
    /// The files that it reads, so that a host can refuse to write to them.
    pub reads: Vec<PathBuf>,
    /// The files that it writes; no two endpoints of a flow may write to one.
    pub writes: Vec<PathBuf>,
}

impl Endpoint {
    /// An endpoint of this kind and name.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Endpoint {
        Endpoint { name: name.into(), kind: kind.into(), detail: String::new(), reads: Vec::new(), writes: Vec::new() }
    }

    /// Says which files it reads.
    pub fn reading(mut self, files: impl IntoIterator<Item = PathBuf>) -> Endpoint {
        self.reads.extend(files);
        self
    }

    /// Says which files it writes.
    pub fn writing(mut self, files: impl IntoIterator<Item = PathBuf>) -> Endpoint {
        self.writes.extend(files);
        self
    }

    /// Adds further settings.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Endpoint {
        self.detail = detail.into();
        self
    }
}

/// Where a stream of facts comes from.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be opened as a stream of `{T}`",
    label = "not a source of this stream",
    note = "a stream takes append-only sources of its rows: `JsonLines::file(path)`, `Csv::file(path)`, `Memory`, `Generate`, `FromStream`",
    note = "changes of rows, as of `Debezium::json(path)` and `JsonLines::table(path)`, are opened with `flow.table(..)`"
)]
pub trait StreamSource<T: Data>: Send + Sync + 'static {
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
    fn open(&self, partition: usize) -> Result<Box<dyn Reader<T>>, IoError>;

    /// Where records go that cannot become rows. Called once a run.
    ///
    /// # Errors
    /// If the dead-letter file cannot be opened.
    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        Ok(Box::new(FailOnBad))
    }
}

/// A page of rows as a reader hands them over.
#[derive(Debug)]
pub struct Page<T> {
    /// The rows, in order.
    pub rows: Vec<T>,
    /// Records that could not become rows. Where the first stops the flow ([`BadRecords::stops`]), a page ends with it:
    /// all rows of the page came before.
    pub bad: Vec<RecordError>,
    /// What the rows were read from and the line or offset there, one a row, or none at all if the reader does not
    /// know: for the report when a row's time is bad. The name is shared, as one row in a million needs it.
    pub origins: Vec<(Arc<str>, u64)>,
    /// The records that the rows were read from, as they came, one a row, or none at all if the reader does not have them.
    /// A row with a bad time is reported by its record; without one, by the row as serde writes it, which lacks what the
    /// row has no field for.
    pub raws: Raws,
    /// Records that it was told to pass over.
    pub passed_over: PassedOver,
}

/// Records that say nothing of what was asked for, as they are of something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// How many.
    pub records: u64,
    /// Of what they were: a few names, for a person who has asked for the wrong one.
    pub of: BTreeSet<String>,
}

impl PassedOver {
    /// Counts one more.
    pub fn note(&mut self, of: String) {
        self.records += 1;
        self.name(of);
    }

    /// Counts others too.
    pub fn add(&mut self, other: PassedOver) {
        self.records += other.records;
        other.of.into_iter().for_each(|of| self.name(of));
    }

    fn name(&mut self, of: String) {
        if self.of.len() < NAMES_MAX && !of.is_empty() {
            self.of.insert(of);
        }
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Page {
            rows: Vec::new(),
            bad: Vec::new(),
            origins: Vec::new(),
            raws: Raws::default(),
            passed_over: PassedOver::default(),
        }
    }
}

/// What a reader says after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// There may be more.
    More,
    /// This partition has ended.
    End,
}

/// Reads one partition.
#[async_trait]
pub trait Reader<T>: Send {
    /// Reads at most `max_rows` rows into the page (empty when handed in) and returns as soon as there is something;
    /// waits while there is nothing. Must be safe to drop while waiting: no row may be lost by that.
    async fn read(&mut self, page: &mut Page<T>, max_rows: usize) -> Result<ReadStatus, IoError>;

    /// How much of how much has been read, in whatever unit the source has (bytes of a file), if it has an end.
    fn done(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Takes the records that could not become rows.
pub trait BadRecords: Send {
    /// Notes one.
    ///
    /// # Errors
    /// If the policy is to fail, or it cannot be written.
    fn note(&mut self, record: &RecordError) -> Result<(), IoError>;

    /// Whether the first one stops the flow. Its source is then read up to there: what came before goes on, and what
    /// comes behind it is not counted.
    fn stops(&self) -> bool {
        false
    }

    /// All have been noted.
    ///
    /// # Errors
    /// If they cannot be written out.
    fn close(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

/// The policy that a bad record stops the flow.
#[derive(Clone, Copy, Debug)]
pub struct FailOnBad;

impl BadRecords for FailOnBad {
    fn note(&mut self, record: &RecordError) -> Result<(), IoError> {
        Err(IoError::new(format!(
            "bad record at {record}\n  fix it, or choose a policy on the source: `.on_bad(OnBad::Skip)` counts it, `.on_bad(OnBad::dead_letter(path))` \
             keeps it"
        )))
    }

    fn stops(&self) -> bool {
        true
    }
}

/// Where a stream goes to.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take rows of `{T}`",
    label = "not a sink for this stream",
    note = "sinks are `JsonLines::sink(path)`, `JsonLines::upsert(path)`, `Csv::sink(path)`, `MemorySink`, `ToChannel`"
)]
pub trait Sink<T: Data>: Send + Sync + 'static {
    /// [`TakesAppend`] if only inserts can be taken, [`TakesChanges`] if updates and deletes can be too.
    type Takes;

    /// What explain says about it.
    fn endpoint(&self) -> Endpoint;

    /// Whether it keeps the newest row of each key: `Some(ByKey::of())` then.
    fn by_key(&self) -> Option<ByKey<T>> {
        None
    }

    /// Opens the writer of one task of so many. All are opened before the first row is written.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, task: usize, tasks: usize) -> Result<Box<dyn Writer<T>>, IoError>;
}

/// The sink takes inserts only.
#[derive(Debug)]
pub enum TakesAppend {}

/// The sink takes inserts, updates and deletes.
#[derive(Debug)]
pub enum TakesChanges {}

/// Writes the rows of one task.
#[async_trait]
pub trait Writer<T>: Send {
    /// Takes a batch; may wait, which holds the flow back.
    async fn write(&mut self, batch: Batch<T>) -> Result<(), IoError>;

    /// Whether rows that were taken may wait for [`flush`](Self::flush) or [`close`](Self::close) before they are where
    /// they belong. The accounting then counts them as open until one of these has returned.
    fn buffers(&self) -> bool {
        true
    }

    /// Makes visible what was taken so far; called when nothing has come for a while.
    async fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }

    /// Nothing will come any more.
    async fn close(&mut self) -> Result<(), IoError> {
        self.flush().await
    }
}

/// So many names are told of what was passed over.
const NAMES_MAX: usize = 5;
