//! Rows that are in memory, as source and sink: for tests, examples and small programs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use flowjoin_core::io::{Endpoint, Page, ReadStatus, Reader, Sink, StreamSource, TakesChanges, Writer};
use flowjoin_core::{Batch, Change, Data, IoError};

/// Rows that are there already, as a source. It can be read any number of times.
///
/// ```
/// use flowjoin_connectors::Memory;
/// use flowjoin_core::io::{Page, StreamSource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let numbers = Memory::partitions("numbers", vec![vec![1, 3], vec![2]]);
/// assert_eq!(StreamSource::partitions(&numbers)?, 2);
/// let mut page = Page::default();
/// numbers.open(0)?.read(&mut page, 1024).await?;
/// assert_eq!(page.rows, [1, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Memory<T> {
    name: String,
    partitions: Arc<Vec<Vec<T>>>,
}

impl<T: Data> Memory<T> {
    /// One partition of rows, in order.
    pub fn rows(name: impl Into<String>, rows: Vec<T>) -> Memory<T> {
        Memory::partitions(name, vec![rows])
    }

    /// Several partitions; between them there is no order.
    pub fn partitions(name: impl Into<String>, partitions: Vec<Vec<T>>) -> Memory<T> {
        Memory { name: name.into(), partitions: Arc::new(partitions) }
    }
}

impl<T: Data> StreamSource<T> for Memory<T> {
    fn endpoint(&self) -> Endpoint {
        let rows: usize = self.partitions.iter().map(Vec::len).sum();
        Endpoint::new("memory", &self.name).with_detail(format!("{rows} rows"))
    }

    fn partitions(&self) -> Result<usize, IoError> {
        match self.partitions.len() {
            0 => Err(IoError::new(format!("`{}` has no partitions; give it at least one, if empty", self.name))),
            count => Ok(count),
        }
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<T>>, IoError> {
        let count = self.partitions.len();
        if partition >= count {
            return Err(IoError::new(format!("`{}` has {count} partitions and no {partition}", self.name)));
        }
        Ok(Box::new(MemoryReader { partitions: self.partitions.clone(), partition, next: 0 }))
    }
}

struct MemoryReader<T> {
    partitions: Arc<Vec<Vec<T>>>,
    partition: usize,
    next: usize,
}

#[async_trait]
impl<T: Data> Reader<T> for MemoryReader<T> {
    async fn read(&mut self, page: &mut Page<T>, max_rows: usize) -> Result<ReadStatus, IoError> {
        let left = &self.partitions[self.partition][self.next..];
        let count = left.len().min(max_rows.max(1));
        page.rows.extend_from_slice(&left[..count]);
        self.next += count;
        Ok(if count == left.len() { ReadStatus::End } else { ReadStatus::More })
    }

    fn done(&self) -> Option<(u64, u64)> {
        Some((self.next as u64, self.partitions[self.partition].len() as u64))
    }
}

/// Keeps all changes, to be looked at. Clones are the same sink: give one to the flow and keep the other.
///
/// ```
/// use flowjoin_connectors::MemorySink;
/// use flowjoin_core::io::Sink;
/// use flowjoin_core::{Batch, EventTime, RowKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sink = MemorySink::new("out");
/// let mut batch = Batch::default();
/// batch.push("a".to_string(), EventTime::from_millis(1), RowKind::Insert);
/// batch.push("b".to_string(), EventTime::from_millis(2), RowKind::Insert);
/// batch.push("a".to_string(), EventTime::from_millis(3), RowKind::Delete);
/// sink.clone().open(0, 1)?.write(batch).await?;
/// assert_eq!(sink.changes().len(), 3);
/// assert_eq!(sink.rows(), ["b"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MemorySink<T> {
    name: String,
    changes: Arc<Mutex<Vec<Change<T>>>>,
}

// Derived, it would ask for `T: Clone`.
impl<T> Clone for MemorySink<T> {
    fn clone(&self) -> Self {
        MemorySink { name: self.name.clone(), changes: self.changes.clone() }
    }
}

impl<T: Data> MemorySink<T> {
    /// An empty sink.
    pub fn new(name: impl Into<String>) -> MemorySink<T> {
        MemorySink { name: name.into(), changes: Arc::default() }
    }

    /// All changes so far, in the order in which they came; of several runs, one after the other.
    pub fn changes(&self) -> Vec<Change<T>> {
        held(&self.changes).clone()
    }

    /// The rows that stand after all changes so far, in the order in which they were added.
    ///
    /// A row that is taken back leaves with the latest that equals it. Between tasks there is no order, so one that is
    /// taken back before it was added is not added later.
    pub fn rows(&self) -> Vec<T>
    where
        T: PartialEq,
    {
        let mut standing: Vec<T> = Vec::new();
        let mut owed: Vec<T> = Vec::new();
        for change in held(&self.changes).iter() {
            let (from, to) = match change.kind.adds() {
                true => (&mut owed, &mut standing),
                false => (&mut standing, &mut owed),
            };
            match from.iter().rposition(|row| *row == change.row) {
                Some(index) => drop(from.remove(index)),
                None => to.push(change.row.clone()),
            }
        }
        standing
    }
}

impl<T: Data> Sink<T> for MemorySink<T> {
    type Takes = TakesChanges;

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("memory", &self.name)
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(MemoryWriter { changes: self.changes.clone() }))
    }
}

struct MemoryWriter<T> {
    changes: Arc<Mutex<Vec<Change<T>>>>,
}

#[async_trait]
impl<T: Data> Writer<T> for MemoryWriter<T> {
    fn buffers(&self) -> bool {
        false
    }

    async fn write(&mut self, batch: Batch<T>) -> Result<(), IoError> {
        held(&self.changes).extend(batch.into_changes());
        Ok(())
    }
}

/// A list of changes is whole whatever panicked.
fn held<T>(changes: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}
