//! Rows of a database whose key changes while a part of them is not sent: nothing of them is lost, on any number of tasks.

use std::path::PathBuf;

use flowjoin::connectors::{Memory, MemorySink};
use flowjoin::prelude::*;
use flowjoin::{Account, Report};

use super::flow::*;

#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize, Event, Keyed)]
#[event(time = at, unit = "ms")]
struct Document {
    #[key]
    id: u64,
    at: i64,
    body: String,
}

fn document(id: u64, body: &str) -> Document {
    Document { id, at: 5, body: body.to_string() }
}

const GONE: &str = "__debezium_unavailable_value";

fn image(id: u64, body: &str) -> String {
    format!(r#"{{"id":{id},"at":5,"body":"{body}"}}"#)
}

// A row that is there, an update of the key from one to the other, without the body.
fn events(op: &str, from: u64, to: u64) -> String {
    let moved = format!(r#"{{"before":{{"id":{from}}},"after":{},"op":"u"}}"#, image(to, GONE));
    match op {
        "moved" => format!("{{\"before\":null,\"after\":{},\"op\":\"c\"}}\n{moved}\n", image(from, "long")),
        _ => moved + "\n",
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("moved-{name}-{}.jsonl", std::process::id()));
    std::fs::write(&path, text).expect("a file can be written");
    path
}

// The table as it stands, and as each way of holding one has it: on its own, in a join, and as versions.
fn check(name: &str, text: &str, expected: &[Document], of_source: Account) {
    let path = file(name, text);
    let source = || Debezium::json(&path).named("documents").on_bad(OnBad::Skip);
    let ids = || Memory::rows("lefts", (0..300).map(|id| Left { id, at: 9 }).collect());
    let told = |report: &Report| assert_eq!(account(report, "documents", 0), of_source, "{report}");
    for tasks in [1, 2, 4, 7] {
        let out = MemorySink::new("out");
        let alone = |flow: &Flow| flow.table::<Document>(source()).sink_to(out.clone());
        told(&run_flow(tasks, alone).expect("it runs"));
        assert_eq!(table(&out), expected, "{name}, {tasks} tasks");
        let out = MemorySink::new("out");
        let joined = |flow: &Flow| {
            let join = flow.table::<Document>(source()).join(flow.stream(ids()).keyed()).keep_forever();
            join.select(|document, _| document.clone()).sink_to(out.clone());
        };
        told(&run_flow(tasks, joined).expect("it runs"));
        assert_eq!(table(&out), expected, "{name}, joined, {tasks} tasks");
        let out = MemorySink::new("out");
        let as_of = |flow: &Flow| {
            let join = flow.stream(ids()).keyed().temporal_join(flow.table::<Document>(source()));
            join.select(|_, document| document.clone()).sink_to(out.clone());
        };
        told(&run_flow(tasks, as_of).expect("it runs"));
        assert_eq!(table(&out), expected, "{name}, as of, {tasks} tasks");
    }
    std::fs::remove_file(path).expect("its own file can be removed");
}

fn table(out: &MemorySink<Document>) -> Vec<Document> {
    let mut standing: Vec<Document> = Vec::new();
    for change in out.changes() {
        match change.kind.adds() {
            true => standing.push(change.row),
            false => {
                let at = standing.iter().position(|row| *row == change.row).expect("only what stands is taken back");
                standing.remove(at);
            }
        }
    }
    standing.sort_by_key(|row| row.id);
    standing
}

#[test]
fn a_row_whose_key_changes_takes_what_was_not_sent_with_it() {
    // Keys of all tasks.
    let text: String = (0..100).map(|id| events("moved", id, id + 100)).collect();
    let expected: Vec<Document> = (100..200).map(|id| document(id, "long")).collect();
    check("all", &text, &expected, Account { rows: 300, matched: 300, ..Account::default() });
    // From key to key, and back to the first.
    let text: String = events("moved", 1, 2) + &events("", 2, 3) + &events("", 3, 1);
    check("round", &text, &[document(1, "long")], Account { rows: 7, matched: 7, ..Account::default() });
    // Told once more, as after a restart of the connector.
    let text: String = events("moved", 1, 2) + &events("", 1, 2);
    check("again", &text, &[document(2, "long")], Account { rows: 4, matched: 4, ..Account::default() });
    // A new primary key, as the connector tells it: a delete and an insert of one place in the log, and a tombstone between.
    let source = r#""source":{"lsn":77,"ts_ms":5}"#;
    let put = format!("{{\"after\":{},\"op\":\"c\"}}\n", image(1, "long"));
    let delete = format!("{{\"before\":{{\"id\":1}},\"after\":null,{source},\"op\":\"d\"}}\n");
    let insert = |lsn: u64| {
        format!("{{\"before\":null,\"after\":{},{source},\"op\":\"c\"}}\n", image(2, GONE))
            .replace("77", &lsn.to_string())
    };
    let text = put.clone() + &delete + "{\"key\":{\"id\":1},\"value\":null}\n" + &insert(77);
    check("primary", &text, &[document(2, "long")], Account { rows: 4, matched: 4, ..Account::default() });
    // The insert of another place has nothing to do with it.
    let text = put + &delete + &insert(78);
    check("other", &text, &[], Account { rows: 3, matched: 2, bad: 1, ..Account::default() });
}

#[test]
fn a_change_of_key_that_cannot_be_made_whole_is_bad_and_changes_neither_key() {
    let lost = events("", 1, 2);
    check("lost", &lost, &[], Account { rows: 1, bad: 1, ..Account::default() });
    // The row is whole, but its time cannot be.
    let whole = |id: u64, at: &str| format!(r#"{{"id":{id},"at":{at},"body":"b"}}"#);
    let put = format!(r#"{{"before":null,"after":{},"op":"c"}}"#, whole(1, "5"));
    let text = format!("{put}\n{{\"before\":{{\"id\":1}},\"after\":{},\"op\":\"u\"}}\n", whole(2, "99999999999999999"));
    check("time", &text, &[document(1, "b")], Account { rows: 2, matched: 1, bad: 1, ..Account::default() });
}
