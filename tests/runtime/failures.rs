//! What stops a flow, and how it says so; and records that cannot become rows, by policy.

use std::path::PathBuf;

use async_trait::async_trait;
use flowjoin::connectors::{Generate, Memory, MemorySink};
use flowjoin::io::{
    Endpoint, Page, ReadStatus, Reader, Sink, StreamSource, TableChange, TableSource, TakesChanges, Writer,
};
use flowjoin::prelude::*;
use flowjoin::{Account, Batch, Data, Error, IoError};

use super::flow::*;

// Runs a flow that fails, and gives its error.
fn failure(tasks: usize, build: impl FnOnce(&Flow)) -> Error {
    run_flow(tasks, build).expect_err("it fails")
}

#[track_caller]
fn is_panic(error: Error, of: &str, says: &str) {
    let Error::Panic { operator, message } = &error else { panic!("not a panic: {error}") };
    assert_eq!((operator.as_str(), message.as_str()), (of, says));
    assert!(error.to_string().contains(of) && error.to_string().contains(says), "{error}");
}

#[test]
fn a_panic_in_a_function_of_the_user_stops_the_flow_and_names_the_step() {
    for tasks in [1, 2] {
        let error = failure(tasks, |flow| {
            let lefts = flow.stream(Generate::new("lefts", left)).map(|left| {
                assert!(left.id < 7, "no order {} here", left.id);
                left
            });
            lefts.sink_to(MemorySink::new("out"));
        });
        is_panic(error, "map", "no order 7 here");
        let error = failure(tasks, |flow| {
            let keyed = flow
                .stream(Generate::new("lefts", left))
                .key_by(|left| if left.id < 7 { left.id } else { panic!("no key") });
            keyed.clone().join(keyed).ttl(hours(1)).into_tuples().sink_to(MemorySink::new("out"));
        });
        is_panic(error, "key_by", "no key");
        let error = failure(tasks, |flow| {
            let (lefts, rights) = generated(flow, 2);
            let join = lefts.join(rights.optional()).ttl(hours(1)).named("my-join");
            join.select(|_, b| b.expect("always paid").at).sink_to(MemorySink::new("out"));
        });
        is_panic(error, "my-join", "always paid");
        let error = failure(tasks, |flow| {
            let (lefts, rights) = generated(flow, 2);
            let join = lefts.interval_join(rights).between(secs(0), secs(0)).named("my-interval");
            join.select(|a, _| if a.id < 500 { a.id } else { panic!("too large") }).sink_to(MemorySink::new("out"));
        });
        is_panic(error, "my-interval", "too large");
    }
}

/// Two ends that fail: a reader after so many rows, a writer at its first batch; or when they are opened.
struct Broken {
    name: &'static str,
    at_open: bool,
}

impl Broken {
    fn error(&self) -> IoError {
        IoError::new("the disk is on fire; put it out")
    }
}

impl StreamSource<Left> for Broken {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("broken", self.name)
    }
    fn partitions(&self) -> Result<usize, IoError> {
        Ok(1)
    }
    fn open(&self, _: usize) -> Result<Box<dyn Reader<Left>>, IoError> {
        if self.at_open { Err(self.error()) } else { Ok(Box::new(Broken { name: self.name, at_open: false })) }
    }
}

impl<T: Data> Sink<T> for Broken {
    type Takes = TakesChanges;
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("broken", self.name)
    }
    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        if self.at_open { Err(self.error()) } else { Ok(Box::new(Broken { name: self.name, at_open: false })) }
    }
}

#[async_trait]
impl Reader<Left> for Broken {
    async fn read(&mut self, page: &mut Page<Left>, _: usize) -> Result<ReadStatus, IoError> {
        page.rows.push(left(1));
        Err(self.error())
    }
}

#[async_trait]
impl<T: Data> Writer<T> for Broken {
    async fn write(&mut self, _: Batch<T>) -> Result<(), IoError> {
        Err(self.error())
    }
}

#[test]
fn an_error_of_a_source_or_sink_stops_the_flow_and_names_it() {
    for at_open in [false, true] {
        for tasks in [1, 2] {
            let error = failure(tasks, |flow| {
                let bad = flow.stream::<Left>(Broken { name: "bad-source", at_open });
                bad.union(flow.stream(Generate::new("endless", left))).sink_to(MemorySink::new("out"));
            });
            assert_eq!(error.to_string(), "`bad-source`: the disk is on fire; put it out");
            let error = failure(tasks, |flow| {
                let (lefts, rights) = generated(flow, 1);
                let join = lefts.join(rights).ttl(hours(1));
                join.select(|a, _| a.clone()).sink_to(Broken { name: "bad-sink", at_open });
            });
            assert_eq!(error.to_string(), "`bad-sink`: the disk is on fire; put it out");
            assert!(matches!(error, Error::Io { .. }));
        }
    }
}

#[test]
fn a_panic_in_a_source_or_sink_stops_the_flow_and_names_it() {
    for tasks in [1, 2] {
        let error = failure(tasks, |flow| {
            let rows = Generate::new("my-rows", |i| if i < 7 { left(i) } else { panic!("no row {i}") });
            let pairs = flow.stream(rows).keyed().join(flow.stream(Generate::new("rights", right)).keyed());
            pairs.ttl(hours(1)).into_tuples().sink_to(MemorySink::new("out"));
        });
        assert_eq!(error.to_string(), "`my-rows`: reading panicked: no row 7");
    }
}

// Which of several tasks sees the failure first is chance; the one that failed is named whatever it is.
#[test]
fn the_task_that_failed_is_named_and_not_its_neighbours() {
    for _ in 0..50 {
        let error = failure(4, |flow| {
            let (lefts, rights) = generated(flow, 4);
            let lefts = lefts.join(rights).ttl(hours(1)).named("join").select(|a, _| a.id);
            let again = lefts.key_by(|id| if *id < 600 { *id } else { panic!("600 is too many") });
            again.clone().join(again).ttl(hours(1)).named("twice").into_tuples().sink_to(MemorySink::new("out"));
        });
        is_panic(error, "key_by", "600 is too many");
    }
}

#[test]
fn a_plan_that_is_refused_and_a_setting_that_cannot_be_are_told_before_anything_runs() {
    let error = failure(1, |flow| drop(flow.stream(Generate::new("lefts", left))));
    assert!(matches!(&error, Error::Plan(errors) if errors.0.len() == 1), "{error}");
    let flow = Flow::new("test");
    flow.stream(Generate::new("lefts", left)).sink_to(MemorySink::new("out"));
    for (tasks, told) in
        [(0, "parallelism must be above zero"), (129, "parallelism is 129; a flow has 128 key groups, so at most 128")]
    {
        let error = run(async { flow.start(quiet(tasks)).err() }).expect("it is refused");
        assert!(matches!(&error, Error::Config(message) if message == told), "{error}");
    }
}

// A folder of its own for a test, and three orders in it of which the second has no time and the third no id.
fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("runtime-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let lines = "{\"id\":1,\"at\":5}\n{\"id\":2,\"at\":99999999999999999}\n{\"at\":6}\n{\"id\":4,\"at\":7}\n";
    std::fs::write(folder.join("lefts.jsonl"), lines).expect("a file can be written");
    folder
}

#[test]
fn a_bad_record_stops_the_flow_unless_it_is_skipped_or_kept_apart() {
    let folder = folder("policies");
    let file = folder.join("lefts.jsonl");
    let flow = |policy: OnBad, out: &MemorySink<u64>| {
        let (file, out) = (file.clone(), out.clone());
        move |flow: &Flow| {
            let lefts = flow.stream::<Left>(JsonLines::file(file).on_bad(policy));
            let rights = flow.stream(Memory::rows("rights", vec![right(1), right(4)])).keyed();
            let join = lefts.keyed().join(rights).ttl(hours(1)).named("join");
            join.select(|a, _| a.id).sink_to(out);
        }
    };
    for tasks in [1, 2] {
        let out = MemorySink::new("out");
        let error = failure(tasks, flow(OnBad::Fail, &out)).to_string();
        assert!(error.starts_with("`lefts`: bad record at ") && error.contains("lefts.jsonl:"), "{error}");
        assert!(error.contains("OnBad::Skip") && error.contains("OnBad::dead_letter"), "no remedy in: {error}");

        let letters = folder.join(format!("bad-{tasks}.jsonl"));
        for policy in [OnBad::Skip, OnBad::dead_letter(&letters)] {
            let out = MemorySink::new("out");
            let report = run_flow(tasks, flow(policy, &out)).unwrap();
            let expected = Account { rows: 4, matched: 2, bad: 2, ..Account::default() };
            assert_eq!(account(&report, "lefts", 0), expected);
            assert_eq!(account(&report, "join", 0), Account { rows: 2, matched: 2, ..Account::default() });
            assert_eq!(standing(&out), [1, 4]);
        }
        let letters = std::fs::read_to_string(letters).unwrap();
        let letters: Vec<serde_json::Value> = letters.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut lines: Vec<_> = letters.iter().map(|letter| letter["line"].as_u64()).collect();
        lines.sort();
        assert_eq!(lines, [Some(2), Some(3)], "{letters:?}");
        let reasons: Vec<_> = letters.iter().map(|letter| letter["reason"].as_str().unwrap().to_string()).collect();
        assert!(reasons.iter().any(|reason| reason.contains("`at` is 99999999999999999")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("id")), "{reasons:?}");
    }
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}

// The figures of a run that fails, at the end.
fn figures_of_failure(config: Config, build: impl FnOnce(&Flow)) -> flowjoin::Report {
    let flow = Flow::new("test");
    build(&flow);
    run(async {
        let mut running = flow.start(config)?;
        running.ended().await.expect_err("it fails");
        Ok::<_, Error>(running.figures())
    })
    .expect("it starts")
}

#[test]
fn a_run_that_stops_at_a_bad_record_has_taken_all_before_it_and_nothing_behind() {
    let folder = folder("counts");
    let (file, out) = (folder.join("many.jsonl"), folder.join("out.jsonl"));
    let good = |id: u64| format!("{{\"id\":{id},\"at\":{id}}}\n");
    let late = "{\"id\":9,\"at\":99999999999999999}\n";
    // What is no row, and what is one with a time that cannot be: each in the middle of good ones, and before the other.
    for bad in [["{}\n", "[]\n"], [late, late], ["{}\n", late], [late, "{}\n"]] {
        let lines = [good(1), good(2), good(3), bad[0].into(), good(4), bad[1].into(), good(5)];
        std::fs::write(&file, lines.concat()).unwrap();
        for page_rows in [1, 2, 3, 4, 5, 100] {
            let mut config = quiet(1);
            config.page_rows = page_rows;
            let report = figures_of_failure(config, |flow| {
                flow.stream::<Left>(JsonLines::file(&file).named("many")).sink_to(JsonLines::sink(&out));
            });
            assert_eq!(account(&report, "many", 0), Account { rows: 4, matched: 3, bad: 1, ..Account::default() });
            assert_eq!(account(&report, "out", 0), Account { rows: 3, matched: 3, ..Account::default() });
            let found = std::fs::read_to_string(&out).unwrap();
            assert_eq!(found, lines[..3].concat(), "{bad:?}, {page_rows} a page");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

// What stood before the bad record is not lost on its way: through exchanges, tables and joins it comes to the sinks.
#[test]
fn what_came_before_the_bad_record_that_stops_a_run_goes_through_exchanges_tables_and_joins() {
    let folder = folder("goes-through");
    let (file, empty) = (folder.join("some.jsonl"), folder.join("empty.jsonl"));
    let rows: String = (0..20_000).map(|id| format!("{{\"id\":{id},\"at\":1}}\n")).collect();
    std::fs::write(&file, rows + "no row\n{\"id\":99999,\"at\":1}\n").unwrap();
    std::fs::write(&empty, "").unwrap();
    for (tasks, page_rows) in [(1, 7), (2, 4_096), (4, 4_096)] {
        let mut config = quiet(tasks);
        config.page_rows = page_rows;
        let report = figures_of_failure(config.clone(), |flow| {
            let table = flow.table::<Left>(JsonLines::table(&file).named("some"));
            table.changes().sink_to(MemorySink::new("table"));
        });
        assert_eq!(account(&report, "table", 0).rows, 20_000, "{report}");
        let report = figures_of_failure(config, |flow| {
            let lefts = flow.stream::<Left>(JsonLines::file(&file).named("some")).keyed();
            let rights = flow.stream::<Right>(JsonLines::file(&empty).named("none")).keyed();
            lefts.join(rights.optional()).keep_forever().select(|left, _| left.id).sink_to(MemorySink::new("pairs"));
        });
        assert_eq!(
            account(&report, "some", 0),
            Account { rows: 20_001, matched: 20_000, bad: 1, ..Account::default() }
        );
        assert_eq!(account(&report, "pairs", 0).rows, 20_000, "{report}");
        assert!(report.is_balanced(), "{report}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

// Who knows what the record was to say: the source has not ended with it, and nothing is told as if all had come.
#[test]
fn what_was_read_up_to_a_bad_record_has_not_ended() {
    for tasks in [1, 2] {
        for bad in [right(1 << 60), Right { id: 1, at: 1 << 60 }] {
            let rights = || Memory::rows("rights", vec![bad.clone(), right(1)]);
            let lefts = || Memory::rows("lefts", vec![left(1), left(2)]);
            let outs = ["alone", "none-of", "windows-of"].map(MemorySink::new);
            let [unmatched, gaps, windows] = outs.clone();
            let report = figures_of_failure(quiet(tasks), |flow| {
                let (lefts, rights) = (flow.stream(lefts()).keyed(), flow.stream(rights()).keyed());
                let near = lefts.clone().interval_join(rights.clone()).between(secs(0), secs(5)).named("near");
                let (pairs, (alone, _)) = near.select_with_unmatched(|a, _| a.id);
                pairs.sink_to(MemorySink::new("pairs"));
                alone.map(|it| it.row.id).sink_to(unmatched);
                let none = lefts.clone().where_not_exists(rights.clone()).between(secs(0), secs(5)).named("none");
                none.into_rows().map(|a| a.id).sink_to(gaps);
                let windows_of = lefts.window_join(rights.optional()).tumbling(secs(1)).named("windows");
                windows_of.select(|a, _| a.id).sink_to(windows);
            });
            assert_eq!(outs.map(|out| standing(&out)), [const { Vec::<u64>::new() }; 3], "{report}");
            assert_eq!(account(&report, "near", 0), Account { rows: 2, open: 2, ..Account::default() }, "{report}");
        }
    }
}

/// A table that promises never to delete all rows, and does.
struct Liar;

impl TableSource<Left> for Liar {
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("liar", "levels")
    }
    fn partitions(&self) -> Result<usize, IoError> {
        Ok(1)
    }
    fn open(&self, _: usize) -> Result<Box<dyn Reader<TableChange<Left>>>, IoError> {
        Ok(Box::new(Liar))
    }
    fn tells_whole_rows(&self) -> bool {
        true
    }
}

#[async_trait]
impl Reader<TableChange<Left>> for Liar {
    async fn read(&mut self, page: &mut Page<TableChange<Left>>, _: usize) -> Result<ReadStatus, IoError> {
        page.rows.extend([TableChange::Put(left(1)), TableChange::Truncate { time: None }]);
        Ok(ReadStatus::End)
    }
}

// Such a record is found behind the exchange, when the source has ended.
#[test]
fn a_table_in_which_a_bad_record_is_found_has_not_ended_with_its_source() {
    for tasks in [1, 2] {
        let out = MemorySink::new("out");
        let sink = out.clone();
        let report = figures_of_failure(quiet(tasks), |flow| {
            let lefts = flow.stream(Memory::rows("lefts", vec![left(1), left(2)])).keyed();
            let levels = flow.table::<Left>(Liar);
            lefts.temporal_join(levels.optional()).named("then").select(|a, _| a.id).sink_to(sink);
        });
        assert_eq!(standing(&out), [0u64; 0], "{report}");
        assert_eq!(account(&report, "then", 0), Account { rows: 2, open: 2, ..Account::default() }, "{report}");
    }
}

// A writer that holds all rows back until it is flushed, which it cannot be.
struct Holding;

#[async_trait]
impl<T: Data> Writer<T> for Holding {
    async fn write(&mut self, _: Batch<T>) -> Result<(), IoError> {
        Ok(())
    }
    async fn flush(&mut self) -> Result<(), IoError> {
        Err(IoError::new("the disk is full"))
    }
}

impl<T: Data> Sink<T> for Holding {
    type Takes = TakesChanges;
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("holding", "out")
    }
    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(Holding))
    }
}

#[test]
fn rows_that_a_sink_holds_back_and_cannot_write_are_open() {
    let report = figures_of_failure(quiet(1), |flow| {
        flow.stream(Memory::rows("lefts", vec![left(1), left(2)])).sink_to(Holding);
    });
    assert_eq!(account(&report, "out", 0), Account { rows: 2, open: 2, ..Account::default() });
}

#[test]
fn events_of_other_tables_are_passed_over_and_a_name_that_none_has_is_warned_of() {
    let folder = folder("passed-over");
    let file = folder.join("shop.jsonl");
    let event = |table: &str, id: u64| {
        format!("{{\"after\":{{\"id\":{id},\"body\":\"b\"}},\"source\":{{\"table\":\"{table}\"}},\"op\":\"c\"}}\n")
    };
    std::fs::write(&file, event("documents", 1) + &event("notes", 2) + &event("documents", 3)).unwrap();
    for tasks in [1, 2] {
        let report = |name: &str| {
            let source = Debezium::json(&file).table(name).named("shop");
            run_flow(tasks, |flow| flow.table::<Document>(source).sink_to(MemorySink::new("out"))).unwrap()
        };
        let some = report("documents");
        let expected = Account { rows: 3, matched: 2, passed_over: 1, ..Account::default() };
        assert_eq!(account(&some, "shop", 0), expected);
        assert!(some.is_balanced() && !some.to_string().contains("warning"), "{some}");
        let none = report("documnets");
        assert_eq!(account(&none, "shop", 0), Account { rows: 3, passed_over: 3, ..Account::default() });
        let warning = "warning: source shop: all 3 records were passed over; they are of `documents`, `notes`; is what it was asked for misspelt?\n";
        assert!(none.to_string().contains(warning), "{none}");
        assert!(none.to_string().lines().all(|line| line.trim_end() == line), "{none}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_read_is_not_emptied_by_a_sink() {
    let file = std::env::temp_dir().join(format!("flowjoin-same-{}.jsonl", std::process::id()));
    let rows = "{\"id\":1,\"at\":1}\n";
    std::fs::write(&file, rows).unwrap();
    let path = file.clone();
    let refused = run_flow(2, move |flow| {
        flow.stream::<Left>(JsonLines::file(&path)).sink_to(JsonLines::sink(&path));
    });
    let sentence = refused.unwrap_err().to_string();
    assert!(sentence.contains("would be lost"), "{sentence}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), rows);
    std::fs::remove_file(file).unwrap();
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Document {
    #[key]
    id: u64,
    body: String,
}

#[test]
fn a_patch_that_fits_no_row_is_a_dead_letter_with_its_line_and_the_record() {
    let folder = folder("patch");
    let (file, letters) = (folder.join("documents.jsonl"), folder.join("bad.jsonl"));
    let event = |id: u64, body: &str| format!(r#"{{"before":null,"after":{{"id":{id},"body":"{body}"}},"op":"u"}}"#);
    let patch = event(2, "__debezium_unavailable_value");
    let stopping = [event(1, "text"), patch.clone(), event(3, "text"), patch.clone()].map(|line| line + "\n");
    std::fs::write(&file, stopping.concat()).unwrap();
    let report = figures_of_failure(quiet(1), |flow| {
        flow.table::<Document>(Debezium::json(&file)).sink_to(MemorySink::new("out"));
    });
    assert_eq!(account(&report, "documents", 0), Account { rows: 2, matched: 1, bad: 1, ..Account::default() });
    std::fs::write(&file, format!("{}\n{patch}\n", event(1, "text"))).unwrap();
    for tasks in [1, 2] {
        let out = MemorySink::new("out");
        let (source, sink) = (Debezium::json(&file).on_bad(OnBad::dead_letter(&letters)), out.clone());
        let report = run_flow(tasks, |flow| flow.table::<Document>(source).sink_to(sink)).unwrap();
        assert_eq!(account(&report, "documents", 0), Account { rows: 2, matched: 1, bad: 1, ..Account::default() });
        let letter: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&letters).unwrap()).unwrap();
        assert_eq!(letter["line"], 2, "{letter}");
        assert_eq!((letter["raw"].as_str(), letter["file"].as_str()), (Some(patch.as_str()), file.to_str()));
        assert!(letter["reason"].as_str().unwrap().contains("there is no row before"), "{letter}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

// What stands behind the record is not known, so nothing is said that needs to know it: no gap, and no older version.
#[test]
fn behind_a_bad_record_no_other_input_moves_event_time() {
    let folder = folder("event-time");
    let file = |name: &str, lines: Vec<String>| {
        let path = folder.join(name);
        std::fs::write(&path, lines.join("\n")).expect("its own folder can be written to");
        path
    };
    let line = |id: u64, at: u64| format!(r#"{{"id":{id},"at":{}}}"#, 1_000 * at);
    let rows = || (1..2_000).map(|n| line(n, 300 * n));
    let with_bad = || rows().take(5).chain(["bad".to_string()]).chain(rows().skip(5)).collect();
    let [good, bad] = [file("good.jsonl", rows().collect()), file("bad.jsonl", with_bad())];
    let mut config = quiet(1);
    for (tasks, page_rows) in [(1, 20), (1, 4_096), (4, 20), (4, 4_096)] {
        (config.parallelism, config.page_rows) = (tasks, page_rows);
        let (pairs, alone) = (MemorySink::new("pairs"), MemorySink::new("alone"));
        let flow = Flow::new("test");
        let left = |flow: &Flow, name: &str, path: &PathBuf| flow.stream::<Left>(JsonLines::file(path).named(name));
        let (a, b) = (left(&flow, "a", &bad).keyed(), left(&flow, "b", &good).keyed());
        let full = a.clone().optional().interval_join(b.clone().optional()).between(secs(0), millis(5));
        full.select(|a, b| (a.map(|a| a.id), b.map(|b| b.id))).sink_to(pairs.clone());
        b.where_not_exists(a).tumbling(millis(10)).into_rows().map(|b| b.id).sink_to(alone.clone());
        let error = run(async { flow.start(config.clone())?.wait().await }).expect_err("a record is bad");
        assert!(error.to_string().contains("bad.jsonl:6"), "{error}");
        let gaps: Vec<_> = pairs.rows().into_iter().filter(|pair| pair.0 != pair.1).collect();
        assert_eq!((gaps, alone.rows()), (Vec::new(), Vec::<u64>::new()), "{tasks} tasks, pages of {page_rows}");
    }
}
