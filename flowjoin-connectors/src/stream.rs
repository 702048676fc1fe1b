//! Rows from a `futures::Stream`, and changes to a channel: a flow inside an async program.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use flowjoin_core::io::{Endpoint, Page, ReadStatus, Reader, Sink, StreamSource, TakesAppend, TakesChanges, Writer};
use flowjoin_core::{Batch, Change, Data, IoError, RowKind};
use futures::Stream;
use tokio::sync::mpsc::Sender;

type Rows<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// A `futures::Stream` of rows, as a source.
///
/// What is ready is handed over at once, without waiting for more. A stream given as a value can be read by one run;
/// [`FromStream::factory`] makes a new one for each.
///
/// ```
/// use flowjoin_connectors::FromStream;
/// use flowjoin_core::io::{Page, StreamSource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let numbers = FromStream::new("numbers", futures::stream::iter([1, 2, 3]));
/// let mut page = Page::default();
/// numbers.open(0)?.read(&mut page, 1024).await?;
/// assert_eq!(page.rows, [1, 2, 3]);
/// assert!(numbers.open(0).is_err());
/// # Ok(())
/// # }
/// ```
pub struct FromStream<T> {
    name: String,
    origin: Origin<T>,
}

enum Origin<T> {
    /// One a partition; taken when it is opened.
    Values(Vec<Mutex<Option<Rows<T>>>>),
    Factory {
        partitions: usize,
        make: Arc<dyn Fn(usize) -> Rows<T> + Send + Sync>,
    },
}

impl<T: Data> FromStream<T> {
    /// One stream, which one run can read.
    pub fn new(name: impl Into<String>, stream: impl Stream<Item = T> + Send + 'static) -> FromStream<T> {
        FromStream::partitions(name, [stream])
    }

    /// Several streams, each a partition, which one run can read; between them there is no order.
    pub fn partitions<S>(name: impl Into<String>, streams: impl IntoIterator<Item = S>) -> FromStream<T>
    where
        S: Stream<Item = T> + Send + 'static,
    {
        let values = streams.into_iter().map(|stream| Mutex::new(Some(Box::pin(stream) as Rows<T>))).collect();
        FromStream { name: name.into(), origin: Origin::Values(values) }
    }

    /// So many partitions, whose streams are made anew for each run.
    pub fn factory<S>(
        name: impl Into<String>,
        partitions: usize,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> FromStream<T>
    where
        S: Stream<Item = T> + Send + 'static,
    {
        let make = Arc::new(move |partition| Box::pin(make(partition)) as Rows<T>);
        FromStream { name: name.into(), origin: Origin::Factory { partitions, make } }
    }

    fn count(&self) -> usize {
        match &self.origin {
            Origin::Values(values) => values.len(),
            Origin::Factory { partitions, .. } => *partitions,
        }
    }
}

impl<T> std::fmt::Debug for FromStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FromStream({})", self.name)
    }
}

impl<T: Data> StreamSource<T> for FromStream<T> {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("stream", &self.name)
    }

    fn partitions(&self) -> Result<usize, IoError> {
        match self.count() {
            0 => Err(IoError::new(format!("`{}` has no streams; give it at least one", self.name))),
            count => Ok(count),
        }
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<T>>, IoError> {
        let count = self.count();
        if partition >= count {
            return Err(IoError::new(format!("`{}` has {count} streams and no {partition}", self.name)));
        }
        let stream = match &self.origin {
            Origin::Factory { make, .. } => make(partition),
            Origin::Values(values) => {
                let mut value = values[partition].lock().unwrap_or_else(PoisonError::into_inner);
                value.take().ok_or_else(|| {
                    let name = &self.name;
                    IoError::new(format!("`{name}` was read by an earlier run; use `FromStream::factory` to run again"))
                })?
            }
        };
        Ok(Box::new(StreamReader { stream: Some(stream) }))
    }
}

struct StreamReader<T> {
    /// Dropped at its end, after which it must not be polled.
    stream: Option<Rows<T>>,
}

impl<T> StreamReader<T> {
    /// Takes what is ready; waits only while there is nothing, so that giving up the wait loses nothing.
    fn poll(&mut self, cx: &mut Context<'_>, page: &mut Page<T>, rows_max: usize) -> Poll<ReadStatus> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(ReadStatus::End) };
        while page.rows.len() < rows_max {
            match stream.as_mut().poll_next(cx) {
                Poll::Ready(Some(row)) => page.rows.push(row),
                Poll::Ready(None) => {
                    self.stream = None;
                    return Poll::Ready(ReadStatus::End);
                }
                Poll::Pending if page.rows.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(ReadStatus::More)
    }
}

#[async_trait]
impl<T: Data> Reader<T> for StreamReader<T> {
    async fn read(&mut self, page: &mut Page<T>, max_rows: usize) -> Result<ReadStatus, IoError> {
        Ok(poll_fn(|cx| self.poll(cx, page, max_rows.max(1))).await)
    }
}

/// Sends every change to a `tokio` channel, as a sink; [`ToChannel::rows`] makes one that sends the rows of an
/// append-only stream.
///
/// A full channel holds the flow back; one whose receiver is gone stops it. The sink gives its sender up to the run that
/// opens it, so the receiver sees the end when that run ends, and a second run is refused.
///
/// ```
/// use flowjoin_connectors::ToChannel;
/// use flowjoin_core::io::Sink;
/// use flowjoin_core::{Batch, EventTime};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (sender, mut receiver) = tokio::sync::mpsc::channel(16);
/// let sink = ToChannel::changes("out", sender);
/// let mut writer = Sink::<u64>::open(&sink, 0, 1)?;
/// writer.write(Batch::from_rows(vec![7], vec![EventTime::MIN])).await?;
/// drop(writer);
/// assert_eq!(receiver.recv().await.map(|change| change.row), Some(7));
/// assert_eq!(receiver.recv().await, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToChannel<T> {
    end: ChannelEnd<Change<T>>,
}

/// Sends the rows of an append-only stream to a `tokio` channel; made by [`ToChannel::rows`].
#[derive(Debug)]
pub struct RowsToChannel<T> {
    end: ChannelEnd<T>,
}

impl<T: Data> ToChannel<T> {
    /// A sink of inserts, updates and deletes.
    pub fn changes(name: impl Into<String>, sender: Sender<Change<T>>) -> ToChannel<T> {
        ToChannel { end: ChannelEnd::new(name.into(), sender) }
    }

    /// A sink of plain rows. Takes inserts only.
    pub fn rows(name: impl Into<String>, sender: Sender<T>) -> RowsToChannel<T> {
        RowsToChannel { end: ChannelEnd::new(name.into(), sender) }
    }
}

impl<T: Data> Sink<T> for ToChannel<T> {
    type Takes = TakesChanges;

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("channel", &self.end.name)
    }

    fn open(&self, _: usize, tasks: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        let convert = |change| Ok(change);
        Ok(Box::new(ChannelWriter { sender: self.end.open(tasks)?, name: self.end.name.clone(), convert }))
    }
}

impl<T: Data> Sink<T> for RowsToChannel<T> {
    type Takes = TakesAppend;

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("channel", &self.end.name)
    }

    fn open(&self, _: usize, tasks: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        let convert = |change: Change<T>| match change.kind {
            RowKind::Insert => Ok(change.row),
            kind => Err(IoError::new(format!("a sink of rows was handed a {kind}; please report this"))),
        };
        Ok(Box::new(ChannelWriter { sender: self.end.open(tasks)?, name: self.end.name.clone(), convert }))
    }
}

#[derive(Debug)]
struct ChannelEnd<I> {
    name: String,
    state: Mutex<Opening<I>>,
}

#[derive(Debug)]
struct Opening<I> {
    /// Until all tasks have theirs.
    sender: Option<Sender<I>>,
    opened: usize,
}

impl<I> ChannelEnd<I> {
    fn new(name: String, sender: Sender<I>) -> ChannelEnd<I> {
        ChannelEnd { name, state: Mutex::new(Opening { sender: Some(sender), opened: 0 }) }
    }

    /// A sender for one of so many tasks.
    fn open(&self, tasks: usize) -> Result<Sender<I>, IoError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.opened += 1;
        let sender = match state.opened >= tasks {
            true => state.sender.take(),
            false => state.sender.clone(),
        };
        sender.ok_or_else(|| IoError::new(format!("channel `{}` was written to by an earlier run", self.name)))
    }
}

struct ChannelWriter<T, I> {
    sender: Sender<I>,
    name: String,
    convert: fn(Change<T>) -> Result<I, IoError>,
}

#[async_trait]
impl<T: Data, I: Send + 'static> Writer<T> for ChannelWriter<T, I> {
    fn buffers(&self) -> bool {
        false
    }

    async fn write(&mut self, batch: Batch<T>) -> Result<(), IoError> {
        let items: Vec<I> = batch.into_changes().map(self.convert).collect::<Result<_, _>>()?;
        for item in items {
            self.sender.send(item).await.map_err(|_| {
                IoError::new(format!("nobody receives from channel `{}` any more; keep its receiver", self.name))
            })?;
        }
        Ok(())
    }
}
