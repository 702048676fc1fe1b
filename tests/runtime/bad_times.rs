//! Records that can be read and whose time is bad: what is kept of them is the record as it came, and not the row.

use std::path::{Path, PathBuf};

use flowjoin::Event;
use flowjoin::connectors::MemorySink;
use flowjoin::prelude::*;

use super::flow::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, unit = "s")]
struct InSeconds {
    #[key]
    id: u64,
    at: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = at)]
struct InText {
    #[key]
    id: u64,
    at: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event, Keyed)]
#[event(time = at)]
struct InTime {
    #[key]
    id: u64,
    at: EventTime,
}

// A source of this file, opened as what it is a source of.
type Open = fn(&Flow, &Path, OnBad);

// A kind of file: how it begins, what stands around the columns of a record, and how it is opened.
struct Format {
    kind: &'static str,
    name: &'static str,
    header: &'static str,
    record: fn(id: u64, time: &str) -> String,
    open: Open,
    // How many changes of rows a record is.
    changes: u64,
}

// The records have a column `seen` that no row has, and spaces that nobody would write anew.
fn formats<T: Event + Keyed<Key = u64>>() -> Vec<Format> {
    let json = |id: u64, time: &str| format!(r#"{{"seen": "1" , "id":{id},"at":  {time}}}"#);
    let quoted = |id: u64, time: &str| {
        let time = time.trim_matches('"');
        format!("\"by hand,\n or \"\"so\"\"\",{id},\"{time}\"")
    };
    let change = |id: u64, time: &str| format!(r#"{{"op":"+U","seen": 1,"id":{id},"at":{time}}}"#);
    let message =
        |id: u64, time: &str| format!(r#"{{"key":{{"id":{id}}}, "value":{{"seen":1,"id":{id},"at":{time}}}}}"#);
    let event = |id: u64, time: &str| {
        format!(r#"{{"op":"c","before":null, "after":{{"seen":1,"id":{id},"at":{time}}},"source":{{"x":1}}}}"#)
    };
    let moved = |id: u64, time: &str| {
        let before = id + 100;
        format!(
            r#"{{"op":"u","before":{{"seen":1,"id":{before},"at":{time}}},"after":{{"seen":1,"id":{id},"at":{time}}}}}"#
        )
    };
    let rows: Open = |flow, path, on_bad| {
        flow.stream::<T>(JsonLines::file(path).on_bad(on_bad).named("rows")).sink_to(MemorySink::new("out"));
    };
    let csv: Open = |flow, path, on_bad| {
        flow.stream::<T>(Csv::file(path).on_bad(on_bad).named("rows")).sink_to(MemorySink::new("out"));
    };
    let table: Open = |flow, path, on_bad| {
        flow.table::<T>(JsonLines::table(path).on_bad(on_bad).named("rows")).sink_to(MemorySink::new("out"));
    };
    let debezium: Open = |flow, path, on_bad| {
        flow.table::<T>(Debezium::json(path).on_bad(on_bad).named("rows")).sink_to(MemorySink::new("out"));
    };
    vec![
        Format { kind: "lines", name: "rows.jsonl", header: "", record: json, open: rows, changes: 1 },
        Format { kind: "a table", name: "rows.jsonl", header: "", record: json, open: table, changes: 1 },
        Format { kind: "csv", name: "rows.csv", header: "seen,id,at\n", record: quoted, open: csv, changes: 1 },
        Format { kind: "changes", name: "rows.jsonl", header: "", record: change, open: table, changes: 1 },
        Format { kind: "messages", name: "rows.jsonl", header: "", record: message, open: table, changes: 1 },
        Format { kind: "events", name: "rows.jsonl", header: "", record: event, open: debezium, changes: 1 },
        Format { kind: "moves", name: "rows.jsonl", header: "", record: moved, open: debezium, changes: 2 },
    ]
}

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bad-times-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

// Of a file with good records around a bad one, the bad one is kept and told as it stands there, with this reason.
#[track_caller]
fn check<T: Event + Keyed<Key = u64>>(test: &str, [good, bad]: [&str; 2], reason: &str) {
    let folder = folder(test);
    for Format { kind, name, header, record, open, changes } in formats::<T>() {
        let (path, letters) = (folder.join(name), folder.join("bad.jsonl"));
        let records = [record(1, good), record(2, bad), record(3, good)];
        std::fs::write(&path, format!("{header}{}\r\n", records.join("\r\n"))).expect("a file can be written");
        let line = 1 + header.matches('\n').count() + 1 + records[0].matches('\n').count();
        for tasks in [1, 2] {
            let report = run_flow(tasks, |flow| open(flow, &path, OnBad::dead_letter(&letters))).expect("it runs");
            let found = account(&report, "rows", 0);
            assert_eq!((found.rows, found.matched, found.bad), (2 * changes + 1, 2 * changes, 1), "{kind}\n{report}");
            let letter = std::fs::read_to_string(&letters).expect("there are dead letters");
            let letter: serde_json::Value = serde_json::from_str(&letter).expect("there is one");
            let told = letter["reason"].as_str().expect("it has a reason");
            assert!(told.starts_with(reason), "{kind}: {told}");
            assert_eq!(letter["line"], line, "{kind}: {letter}");
            assert_eq!(letter["raw"].as_str(), Some(records[1].as_str()), "{kind}");

            let error = run_flow(tasks, |flow| open(flow, &path, OnBad::Fail)).expect_err("it fails").to_string();
            assert!(error.contains(&format!("\n  in {}\n", records[1])), "{kind}: {error}");
            assert!(error.contains(&format!("{name}:{line}: {reason}")), "{kind}: {error}");
        }
    }
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}

#[test]
fn a_time_too_far_ahead_of_the_clock_keeps_the_record_as_it_came() {
    check::<InTime>(
        "ahead",
        ["5", "99999999999999999"],
        "`at` is 99999999999999999 ms since 1970, too far ahead of the clock",
    );
    check::<InSeconds>("ahead-int", ["5", "99999999999999"], "`at` is 99999999999999000 ms since 1970, too far ahead");
    let times = ["\"2013-01-01T10:00:00Z\"", "\"2113-01-01T10:00:00.000+01:00\""];
    check::<InText>("ahead-text", times, "`at` is 4512704400000 ms since 1970 (2113-01-01T09:00:00.000Z), too far");
}

#[test]
fn a_text_that_is_no_time_keeps_the_record_as_it_came_and_names_the_field() {
    let times = ["\"2013-01-01T10:00:00Z\"", "\"yesterday\""];
    check::<InText>("text", times, "`at`: `yesterday` is not a time; write ISO 8601");
}

#[test]
fn an_integer_beyond_its_unit_keeps_the_record_as_it_came_and_names_the_field() {
    let times = ["5", "9223372036854775807"];
    check::<InSeconds>("unit", times, "`at`: the time 9223372036854775807 does not fit; is its unit right?");
}
