//! Alignment on the tokio host: readers ahead of their group wait, and nobody waits for ever.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flowjoin::connectors::MemorySink;
use flowjoin::io::{Endpoint, Page, ReadStatus, Reader, StreamSource};
use flowjoin::prelude::*;
use flowjoin::{IoError, async_trait};

use super::flow::{quiet, run};

#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize, Event)]
#[event(time = at, unit = "s", idle = "50ms")]
struct Tick {
    at: i64,
}

/// A row every so many seconds, for 30 days; each partition notes how far it has been read, and how far ahead of the
/// slowest it was when it was read on.
#[derive(Clone)]
struct Ticks {
    name: &'static str,
    every: Vec<i64>,
    from: usize,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    newest: Mutex<Vec<i64>>,
    most_ahead: AtomicI64,
    // After how many pages, of all readers, the process has no time for longer than a source may be quiet.
    stalls: AtomicI64,
    pages: AtomicI64,
}

const MONTH: i64 = 30 * 24 * 3_600;

impl Ticks {
    // Partitions are numbered over all the sources of a log.
    fn new(name: &'static str, every: &[i64], log: &Arc<Log>) -> Ticks {
        let mut newest = log.newest.lock().expect("no task panics while it notes");
        let from = newest.len();
        newest.extend(every.iter().map(|_| 0));
        Ticks { name, every: every.to_vec(), from, log: log.clone() }
    }
}

impl StreamSource<Tick> for Ticks {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("ticks", self.name)
    }

    fn partitions(&self) -> Result<usize, IoError> {
        Ok(self.every.len())
    }

    fn open(&self, partition: usize) -> Result<Box<dyn Reader<Tick>>, IoError> {
        let reader =
            TickReader { at: 0, every: self.every[partition], place: self.from + partition, log: self.log.clone() };
        Ok(Box::new(reader))
    }
}

struct TickReader {
    at: i64,
    every: i64,
    place: usize,
    log: Arc<Log>,
}

#[async_trait]
impl Reader<Tick> for TickReader {
    async fn read(&mut self, page: &mut Page<Tick>, max_rows: usize) -> Result<ReadStatus, IoError> {
        // Nothing in this place is ever ready.
        if self.every == NEVER {
            std::future::pending::<()>().await;
        }
        let stalls = self.log.stalls.load(Ordering::Relaxed);
        if stalls > 0 && self.log.pages.fetch_add(1, Ordering::Relaxed) % stalls == stalls - 1 {
            std::thread::sleep(Duration::from_millis(70));
        }
        {
            let newest = self.log.newest.lock().expect("no task panics while it notes");
            let ahead = newest[self.place] - newest.iter().min().copied().unwrap_or_default();
            self.log.most_ahead.fetch_max(ahead, Ordering::Relaxed);
        }
        for _ in 0..max_rows {
            if self.at >= MONTH {
                self.log.newest.lock().expect("no task panics while it notes")[self.place] = i64::MAX;
                return Ok(ReadStatus::End);
            }
            page.rows.push(Tick { at: self.at });
            self.log.newest.lock().expect("no task panics while it notes")[self.place] = self.at;
            self.at += self.every;
        }
        Ok(ReadStatus::More)
    }
}

const NEVER: i64 = 0;
const DRIFT: i64 = 6 * 3_600;

// How far ahead of the slowest a partition was at most when it was read on, in seconds.
fn most_ahead(tasks: usize, every: &[&[i64]], align: bool) -> i64 {
    most_ahead_with_stalls(tasks, every, align, 0)
}

fn most_ahead_with_stalls(tasks: usize, every: &[&[i64]], align: bool, stalls: i64) -> i64 {
    let log = Arc::new(Log { stalls: AtomicI64::new(stalls), ..Log::default() });
    let flow = Flow::new("test");
    let mut expected = 0;
    let sink = MemorySink::<Tick>::new("out");
    let mut all: Option<Stream<Tick>> = None;
    for (name, every) in ["a", "b", "c"].into_iter().zip(every) {
        let source = flow.stream::<Tick>(Ticks::new(name, every, &log));
        let source = if align { source.align("ticks", secs(DRIFT)) } else { source };
        expected += every.iter().map(|every| (MONTH + every - 1) / every).sum::<i64>();
        all = Some(match all {
            None => source,
            Some(before) => before.union(source),
        });
    }
    all.expect("there is a source").sink_to(sink.clone());
    let mut config = quiet(tasks);
    config.page_rows = 32;
    run(async { flow.start(config)?.wait().await }).expect("the run ends");
    assert_eq!(sink.rows().len() as i64, expected);
    log.most_ahead.load(Ordering::Relaxed)
}

#[test]
fn a_reader_ahead_of_its_group_waits_until_the_others_have_come() {
    for tasks in [1, 2, 4] {
        for every in [&[&[600][..], &[60]][..], &[&[60], &[3_600], &[300]], &[&[7_200, 90, 600]]] {
            let alone = most_ahead(tasks, every, false);
            assert!(alone > 2 * DRIFT, "without alignment it is only {alone} s ahead");
            let aligned = most_ahead(tasks, every, true);
            assert!(aligned <= DRIFT, "{aligned} s ahead of the slowest, with {tasks} tasks");
        }
    }
}

#[test]
fn a_source_that_has_rows_is_not_idle_because_the_process_had_no_time() {
    let ahead = most_ahead_with_stalls(1, &[&[600], &[60]], true, 7);
    assert!(ahead <= DRIFT, "{ahead} s ahead of the slowest");
}

#[test]
fn a_source_that_is_quiet_holds_others_until_it_is_idle_and_a_stop_finds_all() {
    for tasks in [1, 2] {
        let log = Arc::new(Log::default());
        let flow = Flow::new("test");
        let sink = MemorySink::<Tick>::new("out");
        let quick = flow.stream::<Tick>(Ticks::new("quick", &[3_600], &log)).align("ticks", secs(DRIFT));
        let silent = flow.stream::<Tick>(Ticks::new("silent", &[NEVER], &log)).align("ticks", secs(DRIFT));
        quick.union(silent).sink_to(sink.clone());
        let mut config = quiet(tasks);
        config.page_rows = 16;
        run(async {
            let running = flow.start(config)?;
            while sink.rows().len() < 720 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            running.stop();
            running.wait().await
        })
        .unwrap();
    }
}

#[test]
fn live_figures_name_who_holds_and_a_stop_finds_those_that_wait() {
    let log = Arc::new(Log::default());
    let flow = Flow::new("test");
    let sink = MemorySink::<Tick>::new("out");
    let quick = flow.stream::<Tick>(Ticks::new("quick", &[3_600], &log)).align("ticks", secs(DRIFT));
    // Without idleness it holds the other for good.
    let silent = flow.stream::<Steady>(Silent).align("ticks", secs(DRIFT));
    let join = quick.key_by(|tick| tick.at).interval_join(silent.key_by(|steady| steady.at));
    join.between(secs(0), secs(0)).named("both").select(|tick, _| tick.clone()).sink_to(sink);
    let mut config = quiet(1);
    config.page_rows = 16;
    let report = run(async {
        let running = flow.start(config)?;
        while running.figures().step("quick").is_none_or(|step| step.inputs[0].account.rows < 16) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let live = loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let live = running.figures();
            if live.step("both").is_some_and(|step| step.inputs[0].account.rows == 16) {
                break live;
            }
        };
        let time = &live.step("both").unwrap().time;
        assert_eq!(time.holding_input.as_deref(), Some("silent"));
        assert!(time.held_for >= Duration::from_millis(40), "{:?}", time.held_for);
        let said = live.to_string();
        let line = said.lines().find(|line| line.starts_with("interval join both: event time")).unwrap();
        assert!(line.starts_with("interval join both: event time none, held back by silent for "), "{line}");
        running.stop();
        running.wait().await
    })
    .unwrap();
    assert!(
        report.to_string().contains("source quick: event time 1970-01-01T15:00:00.000Z; stopped: partition 0"),
        "{report}"
    );
    assert_eq!(report.step("quick").unwrap().inputs[0].account.rows, 16);
}

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = at, unit = "s")]
struct Steady {
    at: i64,
}

struct Silent;

impl StreamSource<Steady> for Silent {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("silence", "silent")
    }

    fn partitions(&self) -> Result<usize, IoError> {
        Ok(1)
    }

    fn open(&self, _: usize) -> Result<Box<dyn Reader<Steady>>, IoError> {
        Ok(Box::new(Silent))
    }
}

#[async_trait]
impl Reader<Steady> for Silent {
    async fn read(&mut self, _: &mut Page<Steady>, _: usize) -> Result<ReadStatus, IoError> {
        std::future::pending().await
    }
}
