//! The test driver: a user's own flow, synchronous, with both clocks in the hand of the test.
//!
//! The tasks are those that a runtime would run, with the same exchanges and the same operators; only the waiting is
//! left out. Sources and sinks are not opened: rows are sent by the name of a source and read by the name of a sink.

mod kept;
mod output;
mod script;
mod tables;
#[cfg(test)]
mod tests;
mod unread;

pub use kept::crashing;
pub use output::Output;
pub use script::ScriptError;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use flowjoin_core::io::Page;
use flowjoin_core::io::erased::AnySource;
use flowjoin_core::op::key_by::Batching;
use flowjoin_core::op::source::AnyPage;
use flowjoin_core::plan::{Build, ChangeMode, Node, NodeId, Op, Plan};
use flowjoin_core::task::{Deployment, Effect, Inlet, Message, Reading, Task, TaskId, TaskInput, times_of};
use flowjoin_core::watermark::{Merge, Rejoin};
use flowjoin_core::{
    Event, EventTime, Flow, MatchDelays, OpFigures, PlanErrors, ProcTime, Progress, RecordError, Span, TimeFigures,
    Watermark, millis,
};
use kept::Kept;
use unread::Unread;

/// A flow under test.
///
/// ```
/// use flowjoin_testkit::TestFlow;
/// # use flowjoin_core::{*, io::*};
/// # #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// # struct Row { id: u64 }
/// # impl Event for Row {
/// #     fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> { Ok(arrival) }
/// #     fn watermarks() -> Watermarks { Watermarks::ingestion() }
/// # }
/// # use flowjoin_testkit::{TestSink, TestSource};
/// fn flow(flow: &Flow) {
///     let rows = flow.stream::<Row>(TestSource::new("rows"));
///     rows.filter(|row| row.id > 1).sink_to(TestSink::new("big"));
/// }
///
/// let mut t = TestFlow::new(flow);
/// t.send("rows", Row { id: 1 }).send("rows", Row { id: 2 });
/// assert_eq!(t.text("big"), "+I id 2");
/// ```
pub struct TestFlow {
    parallelism: usize,
    plan: Arc<Plan>,
    tasks: Vec<Task>,
    mail: VecDeque<(TaskId, Inlet, Message)>,
    // Who reads each partition of each source, and as which of its own.
    readers: BTreeMap<(NodeId, usize), (TaskId, usize)>,
    readings: Vec<Reading>,
    // The partitions that give no more rows.
    ended: BTreeSet<(NodeId, usize)>,
    now: ProcTime,
    newest: EventTime,
    sinks: BTreeMap<NodeId, SinkLog>,
    bad: Vec<RecordError>,
    unread: Unread,
    partitions: Vec<(String, usize)>,
    kept: Option<Kept>,
    // Whether it is to crash after each step.
    crashes: bool,
}

struct SinkLog {
    rows: Vec<Output>,
    reached: Merge,
    progress: Vec<Progress>,
}

impl TestFlow {
    /// The flow that the function builds, at a parallelism of one.
    ///
    /// # Panics
    /// With the errors of its plan, if it cannot run.
    pub fn new(build: impl FnOnce(&Flow)) -> TestFlow {
        TestFlow::parallel(1, build)
    }

    /// The flow that the function builds, with so many tasks a stage.
    ///
    /// # Panics
    /// With the errors of its plan, if it cannot run.
    pub fn parallel(parallelism: usize, build: impl FnOnce(&Flow)) -> TestFlow {
        match TestFlow::try_parallel(parallelism, build) {
            Ok(flow) => flow,
            Err(errors) => panic!("{errors}"),
        }
    }

    /// As [`parallel`](Self::parallel), for tests of what a plan is refused for.
    ///
    /// # Errors
    /// The errors of its plan, if it cannot run.
    pub fn try_parallel(parallelism: usize, build: impl FnOnce(&Flow)) -> Result<TestFlow, PlanErrors> {
        TestFlow::try_partitioned(parallelism, &[], build)
    }

    /// The flow that the function builds, with so many tasks a stage, and so many partitions of the sources of these
    /// names; other sources have one.
    ///
    /// # Panics
    /// With the errors of its plan, if it cannot run.
    pub fn partitioned(parallelism: usize, partitions: &[(&str, usize)], build: impl FnOnce(&Flow)) -> TestFlow {
        match TestFlow::try_partitioned(parallelism, partitions, build) {
            Ok(flow) => flow,
            Err(errors) => panic!("{errors}"),
        }
    }

    fn try_partitioned(
        parallelism: usize,
        partitions: &[(&str, usize)],
        build: impl FnOnce(&Flow),
    ) -> Result<TestFlow, PlanErrors> {
        let flow = Flow::new("test");
        build(&flow);
        let plan = Arc::new(flow.plan()?);
        let now = ProcTime::from_millis(0);
        let partitions: Vec<_> = partitions.iter().map(|&(name, count)| (name.to_string(), count)).collect();
        let Deployment { tasks, readings, alignments, .. } = deployment(&plan, parallelism, &partitions, now);
        let mut sinks = BTreeMap::new();
        for node in plan.nodes().iter().filter(|node| plan.sink(&node.name).is_some_and(|(id, _)| id == node.id)) {
            let reached = Merge::new(parallelism, Rejoin::AtOnce);
            sinks.insert(node.id, SinkLog { rows: Vec::new(), reached, progress: Vec::new() });
        }
        let reader = |reading: &Reading| ((reading.source, reading.partition), (reading.task, reading.slot));
        let readers = readings.iter().map(reader).collect();
        let mut test = TestFlow {
            parallelism,
            plan,
            tasks,
            mail: VecDeque::new(),
            readers,
            readings,
            ended: BTreeSet::new(),
            now,
            newest: EventTime::MIN,
            sinks,
            bad: Vec::new(),
            unread: Unread::new(alignments),
            partitions,
            kept: None,
            crashes: false,
        };
        test.start();
        test.keep_if_crashing();
        Ok(test)
    }

    fn start(&mut self) {
        for task in 0..self.tasks.len() {
            self.run_task(task, |task, now| task.start(now));
        }
        self.settle();
    }

    fn deploy(&self) -> Deployment {
        deployment(&self.plan, self.parallelism, &self.partitions, self.now)
    }

    /// Sends a row to a source, and does all that comes of it. A source that was idle wakes by that.
    ///
    /// # Panics
    /// If there is no such source, it has ended, it is one of a table, or its rows are of another type.
    pub fn send<T: Event>(&mut self, source: &str, row: T) -> &mut Self {
        self.send_all(source, vec![row])
    }

    /// Sends rows to a source as one batch.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    pub fn send_all<T: Event>(&mut self, source: &str, rows: Vec<T>) -> &mut Self {
        self.send_page(source, 0, rows)
    }

    /// Sends a row to one partition of a source, counted from 0.
    ///
    /// # Panics
    /// As [`send`](Self::send), or if there is no such partition.
    pub fn send_to<T: Event>(&mut self, source: &str, partition: usize, row: T) -> &mut Self {
        self.send_page(source, partition, vec![row])
    }

    fn send_page<T: Event>(&mut self, source: &str, partition: usize, rows: Vec<T>) -> &mut Self {
        let arrival = self.now.as_event_time();
        let newest = rows.iter().filter_map(|row| row.event_time(arrival).ok()).max();
        let id = self.source(source);
        assert!(!self.is_table(id), "`{source}` is a table: its rows are told by `put`, `delete` or `change_all`");
        self.expect_takes(id, partition, rows.len());
        self.take_page(id, partition, AnyPage::new(Page { rows, ..Page::default() }), newest)
    }

    fn is_table(&self, source: NodeId) -> bool {
        self.plan.node(source).ports[0].mode == ChangeMode::Changelog
    }

    fn expect_takes(&self, source: NodeId, partition: usize, rows: usize) {
        if rows > 0
            && let Some(reason) = self.refuses_rows(source, partition)
        {
            panic!("{reason}");
        }
    }

    // Why a partition takes no rows, if it does not.
    fn refuses_rows(&self, source: NodeId, partition: usize) -> Option<String> {
        let name = &self.plan.node(source).name;
        let has_one = !self.readers.contains_key(&(source, 1));
        let of = if has_one { String::new() } else { format!("partition {partition} of ") };
        let has_ended = self.ended.contains(&(source, partition));
        has_ended.then(|| format!("{of}`{name}` has ended, and no row comes after the end"))
    }

    fn take_page(&mut self, source: NodeId, partition: usize, page: AnyPage, newest: Option<EventTime>) -> &mut Self {
        self.newest = self.newest.max(newest.unwrap_or(EventTime::MIN));
        self.feed(source, partition, |slot| TaskInput::Page { source, slot, page })
    }

    /// Moves both clocks: processing time by this span, and event time to this span after the newest row.
    pub fn advance(&mut self, span: Span) -> &mut Self {
        if self.newest > EventTime::MIN {
            self.newest = self.newest.plus(span);
            self.progress_of_all(Progress::At(Watermark::at(self.newest)));
        }
        self.advance_processing(span)
    }

    /// Moves processing time alone.
    ///
    /// # Panics
    /// If it would go back.
    pub fn advance_processing(&mut self, span: Span) -> &mut Self {
        assert!(span >= Span::ZERO, "processing time does not go back: it is asked to go on by {span}");
        self.now = self.now.plus(span);
        for task in 0..self.tasks.len() {
            self.run_task(task, |task, now| task.handle(TaskInput::Clock, now));
        }
        self.settle();
        self.read_on();
        self.crash_if_asked();
        self
    }

    /// Processing time, in milliseconds since the test began (or as [`set_processing`](Self::set_processing) said).
    pub fn processing(&self) -> ProcTime {
        self.now
    }

    /// Sets processing time; it must not go back.
    pub fn set_processing(&mut self, now: ProcTime) -> &mut Self {
        let span = now.since(self.now);
        self.advance_processing(span)
    }

    /// Says that every row still to come from a source has a time at or after this.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn watermark(&mut self, source: &str, time: EventTime) -> &mut Self {
        let id = self.source(source);
        self.progress(id, Progress::At(Watermark::at(time)))
    }

    /// Says that a source is idle, has woken, or has ended. An idle one wakes with its next row, too.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn say(&mut self, source: &str, progress: Progress) -> &mut Self {
        let id = self.source(source);
        self.progress(id, progress)
    }

    /// Says so of one partition of a source, counted from 0.
    ///
    /// # Panics
    /// If there is no such source or partition.
    pub fn say_of(&mut self, source: &str, partition: usize, progress: Progress) -> &mut Self {
        let source = self.source(source);
        self.tell(source, partition, progress)
    }

    /// Ends a source.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn end(&mut self, source: &str) -> &mut Self {
        self.say(source, Progress::End)
    }

    /// Ends all sources.
    pub fn end_all(&mut self) -> &mut Self {
        self.progress_of_all(Progress::End);
        self
    }

    /// What a sink has been told of event time since it was last asked.
    ///
    /// # Panics
    /// If there is no such sink.
    pub fn take_progress(&mut self, sink: &str) -> Vec<Progress> {
        std::mem::take(&mut self.sink(sink).progress)
    }

    /// The records that could not become rows, since last asked.
    pub fn take_bad(&mut self) -> Vec<RecordError> {
        std::mem::take(&mut self.bad)
    }

    /// The figures of a source, join or sink, over all its tasks.
    ///
    /// # Panics
    /// If there is no step of this name.
    pub fn figures(&self, name: &str) -> OpFigures {
        self.figures_of(self.step(name))
    }

    /// How far event time has come at a source, join or sink, over all its tasks, and which input holds it back; the
    /// inputs of a source are its partitions.
    ///
    /// # Panics
    /// If there is no step of this name.
    pub fn time(&self, name: &str) -> TimeFigures {
        let id = self.step(name);
        let told =
            self.tasks.iter().flat_map(|task| task.times().into_iter().map(|(node, time)| (task.id(), node, time)));
        times_of(self.plan.nodes().len(), &self.readings, told).swap_remove(id.0)
    }

    /// How long the rows of a join waited for each other, over all its tasks; nothing if none of its rows expires.
    ///
    /// # Panics
    /// If there is no step of this name, or it has not several inputs, as every join.
    pub fn delays(&self, name: &str) -> MatchDelays {
        let id = self.step(name);
        assert!(self.plan.node(id).inputs.len() > 1, "`{name}` is no join, so that no rows wait for each other there");
        let mut sum = MatchDelays::default();
        for (_, delays) in self.tasks.iter().flat_map(Task::delays).filter(|(node, _)| *node == id) {
            sum.add(&delays);
        }
        sum
    }

    fn step(&self, name: &str) -> NodeId {
        let named = || self.plan.nodes().iter().filter(|node| node.name == name);
        // A table has the name of its source, unless it is given another.
        let node = named().find(|node| matches!(node.op, Op::Table { .. })).or(named().next());
        node.unwrap_or_else(|| panic!("no step is named `{name}`; {}", self.names_of(|_| true))).id
    }

    fn figures_of(&self, id: NodeId) -> OpFigures {
        let mut sum = OpFigures::default();
        for (_, figures) in self.tasks.iter().flat_map(Task::figures).filter(|(node, _)| *node == id) {
            sum.add(&figures);
        }
        sum
    }

    /// The figures of all steps, over all tasks.
    pub fn all_figures(&self) -> Vec<(String, OpFigures)> {
        self.plan.nodes().iter().map(|node| (node.name.clone(), self.figures_of(node.id))).collect()
    }

    /// The plan of the flow.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    fn source(&self, name: &str) -> NodeId {
        match self.plan.source(name) {
            Some((id, _)) => id,
            None => panic!("{}", self.no_source(name)),
        }
    }

    fn sink(&mut self, name: &str) -> &mut SinkLog {
        let Some((id, _)) = self.plan.sink(name) else {
            let names = self.names_of(|node| matches!(node.build, Build::Sink(_)));
            panic!("no sink is named `{name}`; {names}")
        };
        self.sinks.get_mut(&id).expect("each sink of the plan has a log")
    }

    fn no_source(&self, name: &str) -> String {
        let names = self.names_of(|node| matches!(node.build, Build::Source(_)));
        format!("no source is named `{name}`; {names}")
    }

    // Several steps can have one name, as a table has that of its source.
    fn names_of(&self, is_one: impl Fn(&Node) -> bool) -> String {
        let nodes = self.plan.nodes().iter().filter(|node| is_one(node));
        let names: BTreeSet<&str> = nodes.map(|node| &node.name[..]).collect();
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        match &names[..] {
            [] => "there is none".to_string(),
            [name] => format!("there is {name}"),
            _ => format!("there are {}", names.join(", ")),
        }
    }

    // Of all partitions of a source.
    fn progress(&mut self, source: NodeId, progress: Progress) -> &mut Self {
        let partitions = self.readers.keys().filter(|(of, _)| *of == source).count();
        for partition in 0..partitions {
            self.tell(source, partition, progress);
        }
        self
    }

    fn progress_of_all(&mut self, progress: Progress) {
        let partitions: Vec<(NodeId, usize)> = self.readers.keys().copied().collect();
        for (source, partition) in partitions {
            self.tell(source, partition, progress);
        }
    }

    fn tell(&mut self, source: NodeId, partition: usize, progress: Progress) -> &mut Self {
        if matches!(progress, Progress::End | Progress::Stopped) {
            self.ended.insert((source, partition));
        }
        self.feed(source, partition, |slot| TaskInput::Source { source, slot, progress })
    }

    fn feed(&mut self, source: NodeId, partition: usize, input: impl FnOnce(usize) -> TaskInput) -> &mut Self {
        let Some(&(task, slot)) = self.readers.get(&(source, partition)) else {
            panic!("`{}` has no partition {partition}", self.plan.node(source).name)
        };
        self.read(task, input(slot));
        self.crash_if_asked();
        self
    }

    fn run_task(
        &mut self,
        task: usize,
        work: impl FnOnce(&mut Task, ProcTime) -> Result<(), flowjoin_core::task::TaskError>,
    ) {
        if let Err(error) = work(&mut self.tasks[task], self.now) {
            panic!("{error}");
        }
        loop {
            match self.tasks[task].poll(self.now) {
                Ok(Some(effect)) => self.perform(task, effect),
                Ok(None) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn perform(&mut self, task: usize, effect: Effect) {
        match effect {
            Effect::Send(to, inlet, message) => self.mail.push_back((to, inlet, message)),
            Effect::Partition(source, slot, progress) => self.unread.hear(TaskId(task), source, slot, progress),
            Effect::Bad(_, records) => self.bad.extend(records),
            Effect::Sealed(_, changes) => self.on_sealed(&changes),
            Effect::Write(node, batch) => {
                let Build::Sink(sink) = &self.plan.node(node).build else { return };
                let rows = sink.values(batch).into_iter().map(|(kind, row, time)| Output { kind, row, time });
                if let Some(log) = self.sinks.get_mut(&node) {
                    log.rows.extend(rows);
                }
            }
            Effect::Reached(node, progress) => {
                if let Some(log) = self.sinks.get_mut(&node) {
                    let merged = log.reached.update(task % self.parallelism, progress);
                    log.progress.extend(merged.watermark.map(Progress::At).into_iter().chain(merged.status));
                }
            }
        }
    }

    // Delivers all mail, and has what is buffered sent, until nothing is on its way.
    fn settle(&mut self) {
        loop {
            while let Some((to, inlet, message)) = self.mail.pop_front() {
                self.run_task(to.0, |task, now| task.handle(TaskInput::Message(inlet, message), now));
            }
            for task in 0..self.tasks.len() {
                self.run_task(task, |task, now| task.handle(TaskInput::Flush, now));
            }
            if self.mail.is_empty() {
                return;
            }
        }
    }
}

fn deployment(plan: &Arc<Plan>, parallelism: usize, partitions: &[(String, usize)], now: ProcTime) -> Deployment {
    // Rows leave an exchange when the driver flushes it, or when so many have come.
    let batching = Batching { rows_max: 1_024, linger: millis(0) };
    let count = |source: &dyn AnySource| {
        let is_it = |(name, _): &&(String, usize)| {
            plan.source(name).is_some_and(|(_, named)| std::ptr::addr_eq(Arc::as_ptr(named), source))
        };
        Ok(partitions.iter().find(is_it).map_or(1, |&(_, count)| count))
    };
    match Deployment::new(plan.clone(), parallelism, batching, now, count) {
        Ok(deployment) => deployment,
        Err(_) => unreachable!("the count of partitions is given here"),
    }
}
