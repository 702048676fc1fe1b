//! Running a flow: everything is opened first, then the tasks run, then the accounting is made.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use flowjoin_core::Flow;
use flowjoin_core::io::Endpoint;
use flowjoin_core::op::key_by::Batching;
use flowjoin_core::plan::{Build, Node, NodeId, Plan};
use flowjoin_core::task::{Deployment, Reading, Task, TaskId};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::aligned::Aligned;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::{Error, Result, warn};
use crate::files;
use crate::inbox::{Inbox, Letter};
use crate::pace::Pace;
use crate::progress;
use crate::report::Report;
use crate::shell::{Figures, Shared, Shell, Source, io_error};
use crate::signals::{self, Listening};
use crate::writing::Writing;

/// Runs a [`Flow`] on tokio.
pub trait RunFlow {
    /// Runs the flow until all its sources have ended, or Ctrl-C has stopped them and what was read has gone through.
    /// Prints the accounting at the end, if the configuration says so, also of a run that fails.
    ///
    /// # Errors
    /// If the plan is refused, a source or sink cannot be opened or go on, a bad record meets the policy to fail, or user
    /// code panics. All tasks are stopped then; at a bad record, once what was read before it has gone through.
    /// [`Error::Stopped`] if Ctrl-C has ended it before its sources have: a
    /// `main` that returns the error tells so by its exit code.
    fn run(&self, config: Config) -> impl Future<Output = Result<()>> + Send;

    /// Opens all sources and sinks and starts the flow, for those who want its figures while it runs.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the plan is refused, or a source or sink cannot be opened.
    fn start(&self, config: Config) -> Result<Running>;
}

impl RunFlow for Flow {
    async fn run(&self, config: Config) -> Result<()> {
        let print = config.report;
        let mut running = self.start(config)?;
        let ended = running.end().await;
        let report = running.figures();
        if print {
            if ended.is_err() {
                warn(format_args!("the flow has failed; this is where rows had gone by then"));
            }
            warn(format_args!("{report}"));
        }
        ended?;
        if report.stopped { Err(Error::Stopped) } else { Ok(()) }
    }

    fn start(&self, config: Config) -> Result<Running> {
        let config = config.checked()?;
        let plan = Arc::new(self.plan()?);
        let opened = open(&plan, &config)?;
        Ok(launch(opened, &config))
    }
}

/// A flow that runs.
pub struct Running {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    began: Instant,
    tasks: JoinHandle<Result<()>>,
    watchers: Vec<JoinHandle<()>>,
    // Listened for as long as this is there.
    _signals: Option<Listening>,
}

impl Running {
    /// Where all rows have gone so far, at most a fifth of a second old.
    pub fn figures(&self) -> Report {
        let all = self.shared.figures.lock().unwrap_or_else(PoisonError::into_inner);
        Report::of(&self.shared, &all, self.began.elapsed())
    }

    /// Stops reading; what has been read goes through to the sinks.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }

    /// Waits for the end, and leaves the figures to be asked for: also those of a run that has failed. To be called once.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn ended(&mut self) -> Result<()> {
        self.end().await
    }

    /// Waits for the end. A run that was stopped is none that failed: [`Report::stopped`] tells.
    ///
    /// # Errors
    /// As [`RunFlow::run`], but for [`Error::Stopped`].
    pub async fn wait(mut self) -> Result<Report> {
        self.end().await?;
        Ok(self.figures())
    }

    async fn end(&mut self) -> Result<()> {
        let ended = (&mut self.tasks).await.unwrap_or(Err(Error::Cancelled));
        let failed = self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut ended = failed.map_or(ended, Err);
        for watcher in &self.watchers {
            watcher.abort();
        }
        for (node, policy) in &self.shared.bad {
            let mut policy = policy.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = policy.close().map_err(|cause| io_error(&self.shared.plan, *node, cause));
            ended = ended.and(closed);
        }
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.abort();
        for watcher in &self.watchers {
            watcher.abort();
        }
    }
}

// All that a run needs, opened.
struct Opened {
    tasks: Vec<Task>,
    links: Vec<(TaskId, TaskId)>,
    readers: BTreeMap<TaskId, Vec<Source>>,
    writers: BTreeMap<TaskId, BTreeMap<NodeId, Writing>>,
    paces: BTreeMap<TaskId, (Arc<Pace>, usize)>,
    shared: Arc<Shared>,
    readings: Vec<Reading>,
}

fn open(plan: &Arc<Plan>, config: &Config) -> Result<Opened> {
    let clock = Clock::start();
    let batching = Batching { rows_max: config.batch_rows, linger: config.linger };
    for node in plan.nodes() {
        if let Build::Source(source) = &node.build {
            source.partitions().map_err(|cause| io_error(plan, node.id, cause))?;
        }
    }
    check_files(plan)?;
    let deployment =
        Deployment::new(plan.clone(), config.parallelism, batching, clock.now(), |source| source.partitions());
    let name = plan.name().to_string();
    let deployment = deployment.map_err(|cause| Error::Io { name, cause })?;
    let Deployment { mut tasks, readings, links, alignments, .. } = deployment;
    let mut bad = BTreeMap::new();
    for node in plan.nodes() {
        if let Build::Source(source) = &node.build {
            let policy = source.bad_records().map_err(|cause| io_error(plan, node.id, cause))?;
            if policy.stops() {
                tasks.iter_mut().for_each(|task| task.stop_at_bad(node.id));
            }
            bad.insert(node.id, Mutex::new(policy));
        }
    }
    let readers = open_readers(plan, &readings)?;
    let writers = open_writers(plan, &tasks, config.parallelism)?;
    let shared = Arc::new(Shared {
        plan: plan.clone(),
        clock,
        page_rows: config.page_rows,
        figures: Mutex::new(vec![Figures::default(); tasks.len()]),
        readings: readings.clone(),
        bad,
        done: readings.iter().map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect(),
        longest_call: AtomicU64::new(0),
        cut_short: AtomicBool::new(false),
        failed: Mutex::new(None),
        aligned: Aligned::new(alignments),
    });
    let paces = paces(&tasks, &links, &readers);
    Ok(Opened { tasks, links, readers, writers, paces, shared, readings })
}

/// Refuses a flow that would write a file twice, or read it too.
pub(crate) fn check_files(plan: &Plan) -> Result<()> {
    let endpoints: Vec<Endpoint> = plan.nodes().iter().filter_map(endpoint).collect();
    files::clash(&endpoints).map_or(Ok(()), |clash| Err(Error::Config(clash)))
}

fn endpoint(node: &Node) -> Option<Endpoint> {
    match &node.build {
        Build::Source(source) => Some(source.endpoint()),
        Build::Sink(sink) => Some(sink.endpoint()),
        Build::Operator(_) => None,
    }
}

fn open_readers(plan: &Plan, readings: &[Reading]) -> Result<BTreeMap<TaskId, Vec<Source>>> {
    let mut readers: BTreeMap<TaskId, Vec<Source>> = BTreeMap::new();
    for (number, reading) in readings.iter().enumerate() {
        if let Build::Source(source) = &plan.node(reading.source).build {
            let reader = source.open(reading.partition).map_err(|cause| io_error(plan, reading.source, cause))?;
            let source = Source { node: reading.source, slot: reading.slot, reading: number, reader };
            readers.entry(reading.task).or_default().push(source);
        }
    }
    Ok(readers)
}

fn open_writers(
    plan: &Plan,
    tasks: &[Task],
    parallelism: usize,
) -> Result<BTreeMap<TaskId, BTreeMap<NodeId, Writing>>> {
    let mut writers: BTreeMap<TaskId, BTreeMap<NodeId, Writing>> = BTreeMap::new();
    for task in tasks {
        for node in task.nodes() {
            if let Build::Sink(sink) = &plan.node(node).build {
                let writer = sink.open(task.id().0 % parallelism, parallelism);
                let writer = writer.map_err(|cause| io_error(plan, node, cause))?;
                writers.entry(task.id()).or_default().insert(node, Writing::new(writer));
            }
        }
    }
    Ok(writers)
}

// One pace for each connected part of the flow: parts that never meet do not wait for each other.
fn paces(
    tasks: &[Task],
    links: &[(TaskId, TaskId)],
    readers: &BTreeMap<TaskId, Vec<Source>>,
) -> BTreeMap<TaskId, (Arc<Pace>, usize)> {
    let mut part: Vec<usize> = (0..tasks.len()).collect();
    // Few tasks and few links: relabelling until nothing changes is short enough.
    let mut changed = true;
    while changed {
        changed = false;
        for &(TaskId(a), TaskId(b)) in links {
            let least = part[a].min(part[b]);
            changed |= part[a] != part[b];
            (part[a], part[b]) = (least, least);
        }
    }
    let mut parts: BTreeMap<usize, Vec<TaskId>> = BTreeMap::new();
    for task in readers.keys() {
        parts.entry(part[task.0]).or_default().push(*task);
    }
    let mut paces = BTreeMap::new();
    for members in parts.values() {
        let pace = Arc::new(Pace::new(members.len()));
        paces.extend(members.iter().enumerate().map(|(member, task)| (*task, (pace.clone(), member))));
    }
    paces
}

// The edges on circles of stages. A table that is read in its own task and by another key makes one: its stage sends to
// one that sends to it. If each waited for room at the other, none would ever go on, so there these do not.
fn circles(edges: impl Iterator<Item = (usize, usize)>) -> BTreeSet<(usize, usize)> {
    let edges: BTreeSet<(usize, usize)> = edges.collect();
    let reaches = |from: usize, to: usize| {
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(stage) = open.pop() {
            if stage == to {
                return true;
            }
            let next = edges.iter().filter(|&&(a, _)| a == stage).map(|&(_, b)| b);
            open.extend(next.filter(|&b| seen.insert(b)));
        }
        false
    };
    edges.iter().copied().filter(|&(from, to)| reaches(to, from)).collect()
}

fn launch(opened: Opened, config: &Config) -> Running {
    let Opened { tasks, links, mut readers, mut writers, mut paces, shared, readings } = opened;
    let (stop, stopped) = watch::channel(false);
    let count = tasks.len();
    let mut outputs: Vec<Vec<Option<mpsc::Sender<Letter>>>> = (0..count).map(|_| vec![None; count]).collect();
    let mut inboxes: Vec<Vec<mpsc::Receiver<Letter>>> = (0..count).map(|_| Vec::new()).collect();
    let stage = |task: TaskId| task.0 / config.parallelism;
    let circles = circles(links.iter().map(|&(from, to)| (stage(from), stage(to))));
    for (from, to) in links {
        let room = match circles.contains(&(stage(from), stage(to))) {
            true => Semaphore::MAX_PERMITS,
            false => config.channel_batches.min(Semaphore::MAX_PERMITS),
        };
        let (sender, receiver) = mpsc::channel(room);
        outputs[from.0][to.0] = Some(sender);
        inboxes[to.0].push(receiver);
    }
    let mut set = JoinSet::new();
    for ((task, outputs), inbox) in tasks.into_iter().zip(outputs).zip(inboxes) {
        let id = task.id();
        let shell = Shell {
            task,
            inbox: Inbox::new(inbox),
            outputs,
            sources: readers.remove(&id).unwrap_or_default(),
            writers: writers.remove(&id).unwrap_or_default(),
            pace: paces.remove(&id),
            stop: stopped.clone(),
            stop_all: stop.clone(),
            shared: shared.clone(),
            before_clock: None,
        };
        set.spawn(shell.run());
    }
    let signals = config.stop_on_ctrl_c.then(|| signals::listen(stop.clone())).flatten();
    let mut watchers = Vec::new();
    if config.progress {
        watchers.extend(progress::show(&shared, &readings));
    }
    Running { shared, stop, began: Instant::now(), tasks: tokio::spawn(all(set)), watchers, _signals: signals }
}

// Ends with the first real error; the others are cancelled with it.
async fn all(mut set: JoinSet<Result<()>>) -> Result<()> {
    let mut cancelled = false;
    while let Some(ended) = set.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            // Its neighbour failed, and will say why.
            Ok(Err(Error::Cancelled)) => cancelled = true,
            Ok(Err(error)) => {
                set.shutdown().await;
                return Err(error);
            }
            Err(join) => {
                set.shutdown().await;
                let message = if join.is_panic() { "a task panicked" } else { "a task was cancelled" };
                return Err(Error::Panic { operator: "runtime".to_string(), message: message.to_string() });
            }
        }
    }
    if cancelled { Err(Error::Cancelled) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_edges_on_a_circle_of_stages_have_room_without_end() {
        assert!(circles([(0, 1), (1, 2), (0, 2)].into_iter()).is_empty());
        assert_eq!(circles([(0, 0), (0, 1)].into_iter()), BTreeSet::from([(0, 0)]));
        let circle = [(1, 2), (2, 3), (3, 1)];
        assert_eq!(circles([(0, 1)].into_iter().chain(circle)), BTreeSet::from(circle));
    }
}
