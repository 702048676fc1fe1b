//! Sources and sinks as the plan and the hosts see them: without the row type.

use std::sync::Arc;

use async_trait::async_trait;

use super::{BadRecords, Endpoint, Page, ReadStatus, Reader, Sink, StreamSource, TableChange, TableSource, Writer};
use crate::batch::{AnyBatch, Batch};
use crate::change::RowKind;
use crate::error::IoError;
use crate::names::field_names;
use crate::op::normalize::Versions;
use crate::op::source::{AnyPage, EventStamp, Stamp, Standing, TableStamp};
use crate::record::{Data, Event, Keyed};
use crate::time::EventTime;
use crate::watermark::{Align, Watermarks};

/// A source of any row type.
pub trait AnySource: Send + Sync {
    /// What explain says about it.
    fn endpoint(&self) -> Endpoint;
    /// How its watermarks are made.
    fn strategy(&self) -> Watermarks;
    /// The group that it is read in step with, if there is one.
    fn align(&self) -> Option<&Align> {
        None
    }
    /// How many partitions it has.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn partitions(&self) -> Result<usize, IoError>;
    /// Opens one partition.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, partition: usize) -> Result<Box<dyn AnyReader>, IoError>;
    /// Where records go that cannot become rows.
    ///
    /// # Errors
    /// If the dead-letter file cannot be opened.
    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError>;
    /// What makes batches of its pages.
    fn stamp(&self) -> Box<dyn Stamp>;
    /// The names that a row is read by, as far as its type tells.
    fn field_names(&self) -> Option<&'static [&'static str]>;
    /// A page of rows given as values, and the newest of their times: for scripts of tests.
    ///
    /// # Errors
    /// If a value is no row of this source.
    fn page_of(
        &self,
        rows: Vec<serde_json::Value>,
        arrival: EventTime,
    ) -> Result<(AnyPage, Option<EventTime>), serde_json::Error>;
}

/// A reader of any row type.
#[async_trait]
pub trait AnyReader: Send {
    /// Reads a page of at most so many rows.
    async fn read(&mut self, max_rows: usize) -> Result<(AnyPage, ReadStatus), IoError>;
    /// How much of how much has been read.
    fn done(&self) -> Option<(u64, u64)>;
}

/// A sink of any row type.
pub trait AnySink: Send + Sync {
    /// What explain says about it.
    fn endpoint(&self) -> Endpoint;
    /// Opens the writer of one task of so many.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, task: usize, tasks: usize) -> Result<Box<dyn AnyWriter>, IoError>;
    /// The rows of a batch as values, for tests and for people.
    fn values(&self, batch: AnyBatch) -> Vec<(RowKind, serde_json::Value, EventTime)>;
}

/// A writer of any row type.
#[async_trait]
pub trait AnyWriter: Send {
    /// Whether rows that were taken may wait for a flush.
    fn buffers(&self) -> bool;
    /// Takes a batch.
    async fn write(&mut self, batch: AnyBatch) -> Result<(), IoError>;
    /// Makes visible what was taken so far.
    async fn flush(&mut self) -> Result<(), IoError>;
    /// Nothing will come any more.
    async fn close(&mut self) -> Result<(), IoError>;
}

/// Erases a source.
pub fn erase_source<T: Event>(source: impl StreamSource<T>) -> Arc<dyn AnySource> {
    Arc::new(TypedSource { source, rows: std::marker::PhantomData::<fn() -> T> })
}

/// Erases a source of a table; what says which of two rows is newer is asked for when the source is to run.
pub fn erase_table<T: Event + Keyed>(
    source: impl TableSource<T>,
    versions: impl Fn() -> Option<Versions<T>> + Send + Sync + 'static,
) -> Arc<dyn AnySource> {
    Arc::new(TypedTable { source, versions, rows: std::marker::PhantomData::<fn() -> T> })
}

/// Erases a sink.
pub fn erase_sink<T: Data>(sink: impl Sink<T>) -> Arc<dyn AnySink> {
    Arc::new(TypedSink { sink, rows: std::marker::PhantomData::<fn() -> T> })
}

struct TypedSource<S, T> {
    source: S,
    rows: std::marker::PhantomData<fn() -> T>,
}

impl<T: Event, S: StreamSource<T>> AnySource for TypedSource<S, T> {
    fn endpoint(&self) -> Endpoint {
        self.source.endpoint()
    }
    fn strategy(&self) -> Watermarks {
        T::watermarks()
    }
    fn partitions(&self) -> Result<usize, IoError> {
        self.source.partitions()
    }
    fn open(&self, partition: usize) -> Result<Box<dyn AnyReader>, IoError> {
        Ok(Box::new(TypedReader(self.source.open(partition)?)))
    }
    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.source.bad_records()
    }
    fn stamp(&self) -> Box<dyn Stamp> {
        Box::new(EventStamp::<T>::new(self.endpoint().name))
    }
    fn field_names(&self) -> Option<&'static [&'static str]> {
        field_names::<T>()
    }
    fn page_of(
        &self,
        rows: Vec<serde_json::Value>,
        arrival: EventTime,
    ) -> Result<(AnyPage, Option<EventTime>), serde_json::Error> {
        let rows: Vec<T> = rows.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
        let newest = rows.iter().filter_map(|row| row.event_time(arrival).ok()).max();
        Ok((AnyPage::new(Page { rows, ..Page::default() }), newest))
    }
}

struct TypedReader<T>(Box<dyn Reader<T>>);

struct TypedTable<S, V, T> {
    source: S,
    versions: V,
    rows: std::marker::PhantomData<fn() -> T>,
}

impl<T, S, V> AnySource for TypedTable<S, V, T>
where
    T: Event + Keyed,
    S: TableSource<T>,
    V: Fn() -> Option<Versions<T>> + Send + Sync,
{
    fn endpoint(&self) -> Endpoint {
        self.source.endpoint()
    }
    fn strategy(&self) -> Watermarks {
        T::watermarks()
    }
    fn partitions(&self) -> Result<usize, IoError> {
        self.source.partitions()
    }
    fn open(&self, partition: usize) -> Result<Box<dyn AnyReader>, IoError> {
        Ok(Box::new(TypedReader(self.source.open(partition)?)))
    }
    fn bad_records(&self) -> Result<Box<dyn BadRecords>, IoError> {
        self.source.bad_records()
    }
    fn stamp(&self) -> Box<dyn Stamp> {
        let standing = self.source.tells_patches().then(|| Standing::new((self.versions)()));
        Box::new(TableStamp::<T>::new(self.endpoint().name, standing))
    }
    fn field_names(&self) -> Option<&'static [&'static str]> {
        field_names::<T>()
    }
    fn page_of(
        &self,
        rows: Vec<serde_json::Value>,
        arrival: EventTime,
    ) -> Result<(AnyPage, Option<EventTime>), serde_json::Error> {
        let change = |value| self.source.change_of(value);
        let rows: Vec<TableChange<T>> = rows.into_iter().map(change).collect::<Result<_, _>>()?;
        let newest = rows.iter().filter_map(|change| change.event_time(arrival)).max();
        Ok((AnyPage::new(Page { rows, ..Page::default() }), newest))
    }
}

#[async_trait]
impl<R: Send + 'static> AnyReader for TypedReader<R> {
    async fn read(&mut self, max_rows: usize) -> Result<(AnyPage, ReadStatus), IoError> {
        let mut page = Page::default();
        let status = self.0.read(&mut page, max_rows).await?;
        Ok((AnyPage::new(page), status))
    }
    fn done(&self) -> Option<(u64, u64)> {
        self.0.done()
    }
}

struct TypedSink<S, T> {
    sink: S,
    rows: std::marker::PhantomData<fn() -> T>,
}

impl<T: Data, S: Sink<T>> AnySink for TypedSink<S, T> {
    fn endpoint(&self) -> Endpoint {
        self.sink.endpoint()
    }
    fn open(&self, task: usize, tasks: usize) -> Result<Box<dyn AnyWriter>, IoError> {
        Ok(Box::new(TypedWriter(self.sink.open(task, tasks)?)))
    }
    fn values(&self, batch: AnyBatch) -> Vec<(RowKind, serde_json::Value, EventTime)> {
        let Ok(batch) = batch.take::<Batch<T>>() else { return Vec::new() };
        let value = |row: &T| serde_json::to_value(row).unwrap_or_else(|e| serde_json::Value::String(e.to_string()));
        batch.iter().map(|(kind, row, time)| (kind, value(row), time)).collect()
    }
}

struct TypedWriter<T>(Box<dyn Writer<T>>);

#[async_trait]
impl<T: Data> AnyWriter for TypedWriter<T> {
    async fn write(&mut self, batch: AnyBatch) -> Result<(), IoError> {
        let batch = batch.take().map_err(|e| IoError::caused("a sink got rows of another type", e))?;
        self.0.write(batch).await
    }
    fn buffers(&self) -> bool {
        self.0.buffers()
    }
    async fn flush(&mut self) -> Result<(), IoError> {
        self.0.flush().await
    }
    async fn close(&mut self) -> Result<(), IoError> {
        self.0.close().await
    }
}
