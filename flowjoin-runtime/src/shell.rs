//! The shell around one task: it waits for input, hands it in, and carries out what comes of it.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowjoin_core::io::erased::AnyReader;
use flowjoin_core::io::{BadRecords, ReadStatus};
use flowjoin_core::op::source::AnyPage;
use flowjoin_core::plan::{NodeId, Plan};
use flowjoin_core::task::{Effect, Reading, Task, TaskError, TaskInput, TimeRange};
use flowjoin_core::{IoError, MatchDelays, OpFigures, ProcTime, Progress, RecordError, TimeFigures};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, watch};

use crate::aligned::Aligned;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::inbox::{Inbox, Letter};
use crate::pace::Pace;
use crate::writing::Writing;

/// What all tasks of a run share.
pub struct Shared {
    pub plan: Arc<Plan>,
    pub clock: Clock,
    pub page_rows: usize,
    /// The last figures of each task.
    pub figures: Mutex<Vec<Figures>>,
    /// Which task reads which partition.
    pub readings: Vec<Reading>,
    /// The policy for bad records of each source.
    pub bad: BTreeMap<NodeId, Mutex<Box<dyn BadRecords>>>,
    /// How much of how much each reading has done.
    pub done: Vec<(AtomicU64, AtomicU64)>,
    /// The longest call of an operator so far, in nanoseconds.
    pub longest_call: AtomicU64,
    /// Whether the run was stopped before all that there is was read.
    pub cut_short: AtomicBool,
    /// Why the run has failed, though what was read before goes through.
    pub failed: Mutex<Option<Error>>,
    /// Which partitions may be read.
    pub aligned: Aligned,
}

/// What a task tells of its operators.
#[derive(Clone, Default)]
pub struct Figures {
    pub rows: Vec<(NodeId, OpFigures)>,
    pub times: Vec<(NodeId, TimeFigures)>,
    pub delays: Vec<(NodeId, MatchDelays)>,
    pub seen: Vec<(NodeId, TimeRange)>,
}

/// A partition that a task reads.
pub struct Source {
    pub node: NodeId,
    pub slot: usize,
    /// Its number among all readings of the run.
    pub reading: usize,
    pub reader: Box<dyn AnyReader>,
}

/// One task with all that it needs.
pub struct Shell {
    pub task: Task,
    pub inbox: Inbox,
    /// By task.
    pub outputs: Vec<Option<mpsc::Sender<Letter>>>,
    pub sources: Vec<Source>,
    pub writers: BTreeMap<NodeId, Writing>,
    pub pace: Option<(Arc<Pace>, usize)>,
    pub stop: watch::Receiver<bool>,
    /// What tells all tasks to stop.
    pub stop_all: watch::Sender<bool>,
    pub shared: Arc<Shared>,
    /// Since the clock is due: how many pages are still taken before.
    pub before_clock: Option<usize>,
}

type Read = (Source, std::result::Result<(AnyPage, ReadStatus), IoError>);
type Reads = FuturesUnordered<BoxFuture<'static, Read>>;

enum Event {
    Letter(Letter),
    Inboxless,
    Page(Read),
    Paced,
    Freed,
    Publish,
    Clock,
    Stop,
}

impl Shell {
    /// Runs the task to its end.
    pub async fn run(mut self) -> Result<()> {
        let ended = self.work().await;
        if ended.is_err() {
            // What was written before the failure is there, as far as that can be; the failure is what is told.
            for writing in self.writers.values_mut() {
                let _ = writing.flush().await;
            }
        }
        ended
    }

    async fn work(&mut self) -> Result<()> {
        let now = self.shared.clock.now();
        self.task.start(now)?;
        self.perform().await?;
        let mut reads: Reads = FuturesUnordered::new();
        // Readers that wait until the lead rule lets them read on.
        let mut parked: Vec<Source> = std::mem::take(&mut self.sources);
        // Readers that are ahead of others of their group.
        let mut ahead: Vec<Source> = Vec::new();
        // When the figures were last published, and whether they have changed since.
        let mut published = Instant::now();
        let mut stale = false;
        let mut written = None;
        let mut has_inbox = true;
        while !self.task.is_done() {
            // Nothing can come any more, and the end has not: a neighbour failed, and will say why.
            if !has_inbox && reads.is_empty() && parked.is_empty() && ahead.is_empty() {
                return Err(Error::Cancelled);
            }
            let event = self
                .wait(&mut reads, (parked.len(), slots(&ahead)), has_inbox, (written, stale.then_some(published)))
                .await;
            match event {
                Event::Letter((inlet, message)) => self.hand_in(TaskInput::Message(inlet, message))?,
                Event::Inboxless => has_inbox = false,
                Event::Paced => self.read(&mut parked, &mut reads, &mut ahead)?,
                Event::Freed => self.free(&mut ahead, &mut parked)?,
                Event::Page((source, page)) => {
                    parked.extend(self.on_page(source, page)?);
                }
                Event::Publish => {}
                Event::Clock => {
                    self.hand_in(TaskInput::Clock)?;
                    self.flush(&mut written).await?;
                }
                Event::Stop => {
                    ahead.clear();
                    self.stop(&mut reads, &mut parked).await?;
                }
            }
            if self.perform().await? {
                written.get_or_insert_with(Instant::now);
            }
            stale = published.elapsed() <= PUBLISH_EVERY;
            if !stale {
                self.publish();
                published = Instant::now();
            }
        }
        if let Some((pace, member)) = &self.pace {
            pace.on_end(*member);
        }
        for (node, writing) in &mut self.writers {
            writing.close().await.map_err(|cause| io_error(&self.shared.plan, *node, cause))?;
        }
        Ok(())
    }

    // Reads on, but for those that are too far ahead of their group.
    fn read(&mut self, parked: &mut Vec<Source>, reads: &mut Reads, ahead: &mut Vec<Source>) -> Result<()> {
        for source in parked.drain(..) {
            if self.is_ahead(&source) {
                self.hand_in(TaskInput::Paused { source: source.node, slot: source.slot })?;
                ahead.push(source);
            } else {
                reads.push(read(source, self.shared.page_rows));
            }
        }
        Ok(())
    }

    // Others of their group have come near.
    fn free(&mut self, ahead: &mut Vec<Source>, parked: &mut Vec<Source>) -> Result<()> {
        for source in std::mem::take(ahead) {
            if self.is_ahead(&source) {
                ahead.push(source);
            } else {
                self.hand_in(TaskInput::Resumed { source: source.node, slot: source.slot })?;
                parked.push(source);
            }
        }
        Ok(())
    }

    fn is_ahead(&self, source: &Source) -> bool {
        self.shared.aligned.is_paused(self.task.id(), source.node, source.slot)
    }

    async fn wait(
        &mut self,
        reads: &mut Reads,
        (parked, ahead): (usize, Vec<(NodeId, usize)>),
        has_inbox: bool,
        (written, unpublished): (Option<Instant>, Option<Instant>),
    ) -> Event {
        let clock = self.shared.clock;
        let deadline = self.task.deadline().map(|at| clock.instant(at));
        let flush = written.map(|at| tokio::time::Instant::from_std(at + FLUSH_AFTER));
        let wake = deadline.into_iter().chain(flush).min();
        let publish = unpublished.map(|at| tokio::time::Instant::from_std(at + PUBLISH_EVERY));
        let pace = self.pace.clone();
        let (aligned, task) = (&self.shared.aligned, self.task.id());
        // A source that always has rows must not keep the task from the rest.
        let to_read = !reads.is_empty() || parked > 0 || !ahead.is_empty();
        if *self.stop.borrow() && to_read {
            return Event::Stop;
        }
        if wake.is_some_and(|at| at <= tokio::time::Instant::now()) {
            // Nor is a source idle that has rows, though the process had no time to look at it.
            let pages = self.before_clock.get_or_insert(reads.len() + parked);
            if *pages > 0 {
                if parked > 0 && futures::poll!(std::pin::pin!(may_read(self.pace.clone()))).is_ready() {
                    return Event::Paced;
                }
                if let std::task::Poll::Ready(Some(read)) = futures::poll!(reads.next()) {
                    *pages -= 1;
                    return Event::Page(read);
                }
            }
            self.before_clock = None;
            return Event::Clock;
        }
        self.before_clock = None;
        // Nor is a task waited for that reads nothing because others of its group are behind.
        if let Some((pace, member)) = &pace
            && parked == 0
            && reads.is_empty()
            && !ahead.is_empty()
        {
            pace.on_wait(*member);
        }
        // A reader that has nothing ready is not waited for by its peers.
        if let Some((pace, member)) = &pace
            && parked == 0
            && !reads.is_empty()
        {
            match futures::poll!(reads.next()) {
                std::task::Poll::Ready(Some(read)) => {
                    tokio::task::yield_now().await;
                    return Event::Page(read);
                }
                _ => pace.on_wait(*member),
            }
        }
        tokio::select! {
            letter = self.inbox.next(), if has_inbox => letter.map_or(Event::Inboxless, Event::Letter),
            Some(read) = reads.next(), if !reads.is_empty() => Event::Page(read),
            () = may_read(pace), if parked > 0 => Event::Paced,
            () = aligned.freed(task, &ahead), if !ahead.is_empty() => Event::Freed,
            () = sleep(wake), if wake.is_some() => Event::Clock,
            () = sleep(publish), if publish.is_some() => Event::Publish,
            () = stopped(&mut self.stop), if to_read => Event::Stop,
        }
    }

    fn hand_in(&mut self, input: TaskInput) -> Result<()> {
        self.call(|task, now| task.handle(input, now))
    }

    fn next_effect(&mut self) -> Result<Option<Effect>> {
        self.call(Task::poll)
    }

    fn call<R>(&mut self, work: impl FnOnce(&mut Task, ProcTime) -> std::result::Result<R, TaskError>) -> Result<R> {
        let began = Instant::now();
        let (task, now) = (&mut self.task, self.shared.clock.now());
        let done = catch_unwind(AssertUnwindSafe(|| work(task, now)));
        let took = began.elapsed().as_nanos() as u64;
        self.shared.longest_call.fetch_max(took, Ordering::Relaxed);
        match done {
            Ok(done) => Ok(done?),
            Err(panic) => {
                Err(Error::Panic { operator: self.task.at_work().to_string(), message: said(panic.as_ref()) })
            }
        }
    }

    // Returns the source if there is more to read.
    fn on_page(
        &mut self,
        source: Source,
        page: std::result::Result<(AnyPage, ReadStatus), IoError>,
    ) -> Result<Option<Source>> {
        let Source { node, slot, reading, .. } = source;
        let (page, status) = page.map_err(|cause| io_error(&self.shared.plan, node, cause))?;
        if let Some((pace, member)) = &self.pace {
            pace.on_wake(*member);
            pace.on_page(*member);
        }
        if let Some((done, total)) = source.reader.done() {
            self.shared.done[reading].0.store(done, Ordering::Relaxed);
            self.shared.done[reading].1.store(total, Ordering::Relaxed);
        }
        self.hand_in(TaskInput::Page { source: node, slot, page })?;
        if status == ReadStatus::End {
            self.hand_in(TaskInput::Source { source: node, slot, progress: Progress::End })?;
            return Ok(None);
        }
        Ok(Some(source))
    }

    // Sources are read no further; what has been read goes through to the sinks.
    async fn stop(&mut self, reads: &mut Reads, parked: &mut Vec<Source>) -> Result<()> {
        let mut slots = slots(parked);
        parked.clear();
        // A page that has just been read is not thrown away.
        while let std::task::Poll::Ready(Some((source, page))) = futures::poll!(reads.next()) {
            let slot = (source.node, source.slot);
            if self.on_page(source, page)?.is_some() {
                slots.push(slot);
            }
            self.perform().await?;
        }
        if !slots.is_empty() || !reads.is_empty() {
            self.shared.cut_short.store(true, Ordering::Relaxed);
        }
        reads.clear();
        for (source, slot) in self.open_slots(&slots) {
            self.hand_in(TaskInput::Source { source, slot, progress: Progress::Stopped })?;
        }
        Ok(())
    }

    // All partitions of this task: those that have ended already take no notice.
    fn open_slots(&self, known: &[(NodeId, usize)]) -> Vec<(NodeId, usize)> {
        let mut slots = self.task.partitions();
        slots.extend(known);
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    // Returns whether something was written to a sink. Bad records are noted last: one that stops the flow does so behind
    // the rows that came before it.
    async fn perform(&mut self) -> Result<bool> {
        let mut bad = Vec::new();
        let performed = self.carry_out(&mut bad).await;
        for (node, records) in bad {
            self.note(node, &records)?;
        }
        performed
    }

    // A bad record that the flow cannot go on with ends the reading of all sources. What stood before it goes through.
    fn note(&self, node: NodeId, records: &[RecordError]) -> Result<()> {
        let policy = self.shared.bad.get(&node).ok_or(Error::Cancelled)?;
        let mut policy = policy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(cause) = records.iter().try_for_each(|record| policy.note(record)) {
            let mut failed = self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert_with(|| io_error(&self.shared.plan, node, cause));
            // What the record was to say has not been read, though its file may have no more.
            self.shared.cut_short.store(true, Ordering::Relaxed);
            let _ = self.stop_all.send(true);
        }
        Ok(())
    }

    async fn carry_out(&mut self, bad: &mut Vec<(NodeId, Vec<RecordError>)>) -> Result<bool> {
        let mut wrote = false;
        while let Some(effect) = self.next_effect()? {
            match effect {
                Effect::Send(to, inlet, message) => {
                    let output = self.outputs[to.0].as_ref().ok_or(Error::Cancelled)?;
                    // A full channel holds this task back; a closed one means that its reader has failed.
                    output.send((inlet, message)).await.map_err(|_| Error::Cancelled)?;
                }
                Effect::Write(node, batch) => {
                    wrote = true;
                    let writing = self.writers.get_mut(&node).ok_or(Error::Cancelled)?;
                    writing.write(batch).await.map_err(|cause| io_error(&self.shared.plan, node, cause))?;
                }
                Effect::Bad(node, records) => bad.push((node, records)),
                Effect::Partition(source, slot, progress) => {
                    self.shared.aligned.hear(self.task.id(), source, slot, progress);
                }
                // No epoch is ended here, so that none is sealed.
                Effect::Reached(..) | Effect::Sealed(..) => {}
            }
        }
        Ok(wrote)
    }

    async fn flush(&mut self, written: &mut Option<Instant>) -> Result<()> {
        if written.is_none_or(|at| at.elapsed() < FLUSH_AFTER) {
            return Ok(());
        }
        for (node, writing) in &mut self.writers {
            writing.flush().await.map_err(|cause| io_error(&self.shared.plan, *node, cause))?;
        }
        *written = None;
        Ok(())
    }

    fn publish(&self) {
        let mut rows = self.task.figures();
        for (node, figures) in &mut rows {
            if let Some(writing) = self.writers.get(node) {
                figures.accounts = vec![writing.account()];
            }
        }
        let (times, delays, seen) = (self.task.times(), self.task.delays(), self.task.times_seen());
        let figures = Figures { rows, times, delays, seen };
        let mut all = self.shared.figures.lock().unwrap_or_else(PoisonError::into_inner);
        all[self.task.id().0] = figures;
    }
}

// However a task ends, done, failed or cancelled: the accounting counts all that it did.
impl Drop for Shell {
    fn drop(&mut self) {
        // After a panic in the middle of a call the figures may be beyond reckoning; those before that count then.
        let _ = catch_unwind(AssertUnwindSafe(|| self.publish()));
    }
}

fn read(mut source: Source, page_rows: usize) -> BoxFuture<'static, Read> {
    Box::pin(async move {
        let page = guarded("reading", source.reader.read(page_rows)).await;
        (source, page)
    })
}

/// A panic of a reader or writer, or of a function that a user gave it, is an error of that end.
pub async fn guarded<T>(
    verb: &str,
    work: impl Future<Output = std::result::Result<T, IoError>>,
) -> std::result::Result<T, IoError> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|panic| Err(IoError::new(format!("{verb} panicked: {}", said(panic.as_ref())))))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
    text.unwrap_or_else(|| "without a message".to_string())
}

async fn may_read(pace: Option<(Arc<Pace>, usize)>) {
    if let Some((pace, member)) = pace {
        pace.may_read(member).await;
    }
}

fn slots(sources: &[Source]) -> Vec<(NodeId, usize)> {
    sources.iter().map(|source| (source.node, source.slot)).collect()
}

// Returns when the run is to stop; a handle that was dropped stops nothing.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn sleep(until: Option<tokio::time::Instant>) {
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
}

/// An error of a source or sink, with its name.
pub fn io_error(plan: &Plan, node: NodeId, cause: IoError) -> Error {
    Error::Io { name: plan.node(node).name.clone(), cause }
}

/// How old the live figures may be.
const PUBLISH_EVERY: Duration = Duration::from_millis(200);

/// How long rows may stay in a sink's buffer while nothing more comes.
const FLUSH_AFTER: Duration = Duration::from_millis(100);
