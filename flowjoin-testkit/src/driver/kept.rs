//! Commits and crashes of a flow under test.
//!
//! After a crash the flow goes on from the last commit, as it would in another process: its tasks are made anew and take
//! back what was sealed. What came since then has not been, neither rows nor the words of a source: a source that goes
//! back to its committed position gives it once more, and so does the test.

use std::cell::Cell;

use flowjoin_core::plan::NodeId;
use flowjoin_core::state::{Changes, Epoch, MemStore, StateStore, decode, encode};
use flowjoin_core::task::{CommitRecord, Deployment, Task, TaskInput, restore};
use flowjoin_core::watermark::Merge;
use flowjoin_core::{EventTime, ProcTime, Progress};

use super::TestFlow;

/// Where a flow keeps its state, and what else it was at the last commit.
pub(super) struct Kept {
    store: Box<dyn StateStore>,
    // The end of the epoch that is under way: how many tasks have sealed it, and what has changed.
    sealed: usize,
    changes: Changes,
    committed: Committed,
}

struct Committed {
    newest: EventTime,
    bad: usize,
    sinks: Vec<(NodeId, usize, Merge, Vec<Progress>)>,
    has_read_on: bool,
}

thread_local! {
    static CRASHES: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test with a commit and a crash after each step of every [`TestFlow`] that it makes: nothing that comes out may
/// be changed by that. It holds for flows that are made on this thread while the function runs.
///
/// With `FLOWJOIN_CRASHES=1` in the environment all tests of a program run so.
///
/// ```
/// # use flowjoin_testkit::{TestFlow, TestSink, TestSource, crashing};
/// # use flowjoin_core::{*, io::*};
/// # #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// # struct Row { id: u64 }
/// # impl Event for Row {
/// #     fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> { Ok(arrival) }
/// #     fn watermarks() -> Watermarks { Watermarks::ingestion() }
/// # }
/// # fn flow(flow: &Flow) {
/// #     flow.stream::<Row>(TestSource::new("rows")).filter(|row| row.id > 1).sink_to(TestSink::new("big"));
/// # }
/// crashing(|| {
///     let mut t = TestFlow::new(flow);
///     t.send("rows", Row { id: 1 }).send("rows", Row { id: 2 });
///     assert_eq!(t.text("big"), "+I id 2");
/// });
/// ```
pub fn crashing<R>(test: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            CRASHES.set(self.0);
        }
    }
    let _before = Before(CRASHES.replace(true));
    test()
}

fn crashes() -> bool {
    CRASHES.get() || std::env::var("FLOWJOIN_CRASHES").is_ok_and(|value| value == "1")
}

impl TestFlow {
    /// Keeps the state of the flow in a store from now on. If an epoch was committed there, by such a flow at the same
    /// parallelism, it goes on from there.
    ///
    /// # Panics
    /// If the store cannot be read, or what it holds is not state of this flow.
    #[must_use]
    pub fn keep_in(mut self, store: impl StateStore + 'static) -> TestFlow {
        if self.kept.take().is_some() {
            // It was to crash after each step; now the test itself says when.
            self.crashes = false;
            self.tasks = self.deploy().tasks;
            self.start();
        }
        self.keep(Box::new(store));
        self
    }

    pub(super) fn keep_if_crashing(&mut self) {
        self.crashes = crashes();
        if self.crashes {
            self.keep(Box::<MemStore>::default());
        }
    }

    fn keep(&mut self, store: Box<dyn StateStore>) {
        if store.epoch().is_some() {
            let record = CommitRecord::from_bytes(store.record()).unwrap_or_else(|error| panic!("{error}"));
            let clocks: Result<(ProcTime, EventTime), _> = decode(&record.host);
            let (now, newest) = clocks.unwrap_or_else(|error| panic!("{error}"));
            (self.now, self.newest) = (self.now.max(now), newest);
            self.take_back(&*store);
        }
        self.tasks.iter_mut().for_each(Task::keep);
        let committed = self.committed();
        let is_new = store.epoch().is_none();
        self.kept = Some(Kept { store, sealed: 0, changes: Changes::default(), committed });
        if is_new {
            self.commit();
        }
    }

    // Makes the tasks anew, and lets them go on from what was committed.
    fn take_back(&mut self, store: &dyn StateStore) {
        let Deployment { tasks, alignments, .. } = self.deploy();
        self.tasks = tasks;
        self.unread.go_back(alignments);
        if let Err(error) = restore(&self.plan, &mut self.tasks, store, self.now) {
            panic!("{error}");
        }
        self.ended.clear();
        for (&place, &(task, slot)) in &self.readers {
            if self.tasks[task.0].ended_partitions().contains(&(place.0, slot)) {
                self.ended.insert(place);
            }
        }
        // They tell how far their partitions are.
        (0..self.tasks.len()).for_each(|task| self.run_task(task, |_, _| Ok(())));
    }

    /// Ends an epoch, and commits all that belongs to it.
    ///
    /// # Panics
    /// If the flow keeps no state, or the store cannot be written.
    pub fn commit(&mut self) -> &mut Self {
        let last = self.kept().store.epoch();
        let epoch = last.map_or(Epoch(1), Epoch::next);
        for task in 0..self.tasks.len() {
            self.run_task(task, |task, now| task.handle(TaskInput::Barrier(epoch), now));
        }
        self.settle();
        let (tasks, committed) = (self.tasks.len(), self.committed());
        let record = CommitRecord::new(&self.plan, self.parallelism, encode(&(self.now, self.newest))).to_bytes();
        let kept = self.kept();
        assert_eq!(std::mem::take(&mut kept.sealed), tasks, "each task seals an epoch once");
        let mut changes = std::mem::take(&mut kept.changes);
        changes.sort();
        if let Err(error) = kept.store.commit(epoch, &changes, &record) {
            panic!("{error}");
        }
        kept.committed = committed;
        self
    }

    /// Crashes: the flow goes on from its last commit. All that has happened since has not: what was sent is to be sent
    /// again, and what came out since then is gone, but for the rows that were taken. The processing clock goes on.
    ///
    /// # Panics
    /// If the flow keeps no state, or rows that waited in front of an aligned source have been read since the last commit.
    pub fn crash(&mut self) -> &mut Self {
        let mut kept = self.kept.take().expect("`keep_in` says where the flow keeps its state");
        assert!(!kept.committed.has_read_on, "an aligned source has been read since the last commit: commit before");
        self.mail.clear();
        self.take_back(&*kept.store);
        self.tasks.iter_mut().for_each(Task::keep);
        let Committed { newest, bad, sinks, .. } = &kept.committed;
        self.newest = *newest;
        self.bad.truncate(*bad);
        for (id, rows, reached, progress) in sinks {
            if let Some(log) = self.sinks.get_mut(id) {
                log.rows.truncate(*rows);
                (log.reached, log.progress) = (reached.clone(), progress.clone());
            }
        }
        (kept.sealed, kept.changes) = (0, Changes::default());
        self.kept = Some(kept);
        self.settle();
        self.read_on();
        self
    }

    /// Ends here, and returns the store, in which another flow can go on from the last commit.
    ///
    /// # Panics
    /// If the flow keeps no state.
    pub fn into_store(self) -> Box<dyn StateStore> {
        self.kept.expect("`keep_in` says where the flow keeps its state").store
    }

    // After each step of a test that is run so.
    pub(super) fn crash_if_asked(&mut self) {
        if self.crashes {
            self.crashes = false;
            self.commit().crash();
            self.crashes = true;
        }
    }

    pub(super) fn on_sealed(&mut self, changes: &Changes) {
        let kept = self.kept();
        kept.sealed += 1;
        kept.changes.append_all(changes);
    }

    pub(super) fn on_read_on(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.committed.has_read_on = true;
        }
    }

    fn kept(&mut self) -> &mut Kept {
        self.kept.as_mut().expect("`keep_in` says where the flow keeps its state")
    }

    fn committed(&self) -> Committed {
        let sinks = self.sinks.iter();
        let sinks = sinks.map(|(&id, log)| (id, log.rows.len(), log.reached.clone(), log.progress.clone())).collect();
        Committed { newest: self.newest, bad: self.bad.len(), sinks, has_read_on: false }
    }
}
