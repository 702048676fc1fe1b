//! Change events read as a table: messages and envelopes, what each operation does, and lines that are no events.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Directory, Read, changes, gzip, in_words};
use flowjoin_connectors::{Debezium, OnBad};
use flowjoin_core::Keyed;
use flowjoin_core::io::{TableChange, TableSource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Customer {
    id: u64,
    email: Option<String>,
}

impl Keyed for Customer {
    type Key = u64;
    fn key(&self) -> u64 {
        self.id
    }
    fn key_name() -> &'static str {
        "id"
    }
}

/// Has what the damaged lines are about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Dated {
    id: u64,
    email: Option<String>,
    at: Option<serde_json::Value>,
}

impl Keyed for Dated {
    type Key = u64;
    fn key(&self) -> u64 {
        self.id
    }
    fn key_name() -> &'static str {
        "id"
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stock {
    store: String,
    product: i64,
    count: i64,
}

impl Keyed for Stock {
    type Key = (String, i64);
    fn key(&self) -> (String, i64) {
        (self.store.clone(), self.product)
    }
    fn key_name() -> &'static str {
        "(store, product)"
    }
}

fn read<T: Keyed>(text: &str, with: impl FnOnce(Debezium) -> Debezium) -> Read<TableChange<T>>
where
    T::Key: DeserializeOwned,
{
    let directory = Directory::new();
    changes(&with(Debezium::json(directory.write("events.jsonl", text))))
}

/// A line, and what it is read as: changes, `bad: ` and a reason, or nothing.
#[track_caller]
fn check_with<T: Keyed + std::fmt::Debug>(with: impl FnOnce(Debezium) -> Debezium, line: &str, told: &[&str])
where
    T::Key: DeserializeOwned,
{
    let all = read::<T>(line, with);
    let mut found = all.told();
    found.extend(all.bad.iter().map(|bad| format!("bad: {}", bad.reason)));
    assert_eq!(found, told, "{line}");
}

#[track_caller]
fn check(line: &str, told: &[&str]) {
    check_with::<Customer>(|source| source, line, told);
}

const SOURCE: &str = r#"{"connector":"postgresql","ts_ms":7,"snapshot":"false","db":"shop","sequence":"[null,\"5\"]","schema":"public","table":"customers","lsn":5,"xmin":null}"#;

fn event(op: &str, before: &str, after: &str) -> String {
    format!(r#"{{"before":{before},"after":{after},"source":{SOURCE},"op":"{op}","ts_ms":9,"transaction":null}}"#)
}

#[test]
fn an_event_puts_what_is_after_it() {
    let row = r#"{"id":1,"email":"a@b.c","more":{"x":[1]}}"#;
    for op in ["c", "r", "u"] {
        check(&event(op, "null", row), &[r#"put {"id":1,"email":"a@b.c"}"#]);
    }
    check(&event("u", r#"{"id":1,"email":"old"}"#, row), &[r#"put {"id":1,"email":"a@b.c"}"#]);
}

#[test]
fn a_delete_needs_no_more_than_the_key() {
    check(&event("d", r#"{"id":1}"#, "null"), &["delete 1 at 7"]);
    check(&event("d", r#"{"id":1,"email":[]}"#, "null"), &["delete 1 at 7"]);
    check(r#"{"op":"d","before":{"id":1}}"#, &["delete 1"]);
    let message = |before: &str| format!(r#"{{"key":{{"id":1}},"value":{}}}"#, event("d", before, "null"));
    check(&message("null"), &["delete 1 at 7"]);
    check(&message(r#"{"email":""}"#), &["delete 1 at 7"]);
}

#[test]
fn a_delete_tells_the_row_if_its_image_is_certain_to_be_whole() {
    check(&event("d", r#"{"id":1,"email":"a@b.c"}"#, "null"), &[r#"delete 1 at 7, {"id":1,"email":"a@b.c"}"#]);
    // PostgreSQL writes columns that it does not send as null or zero.
    for unsent in ["null", "\"\"", "\"0.00\"", "\"1970-01-01T00:00:00Z\"", "\"__debezium_unavailable_value\""] {
        check(&event("d", &format!(r#"{{"id":1,"email":{unsent}}}"#), "null"), &["delete 1 at 7"]);
    }
    let line = event("d", r#"{"id":1,"email":null}"#, "null");
    let whole = [r#"delete 1 at 7, {"id":1,"email":null}"#];
    check_with::<Customer>(Debezium::replica_identity_full, &line, &whole);
    check(&line.replace("postgresql", "mysql"), &whole);
    check(
        &event("u", r#"{"id":1,"email":"a"}"#, r#"{"id":2,"email":"b"}"#),
        &[r#"move 1 at 7, {"id":1,"email":"a"} to {"id":2,"email":"b"}"#],
    );
}

#[test]
fn a_truncate_ends_all_rows() {
    check(&event("t", "null", "null"), &["truncate at 7"]);
}

#[test]
fn a_tombstone_deletes_its_key() {
    check(r#"{"key":{"id":1},"value":null}"#, &["delete 1"]);
    check(r#"{"key":1,"value":null}"#, &["delete 1"]);
    check(r#"{"key":{"schema":{"type":"struct","fields":[]},"payload":{"id":1}},"value":null}"#, &["delete 1"]);
    check(r#"{"key":{"id":1},"value":{"schema":null,"payload":null}}"#, &["delete 1"]);
    for silent in ["null", r#"{"key":null,"value":null}"#, r#"{"schema":null,"payload":null}"#] {
        check(silent, &[]);
    }
}

#[test]
fn envelopes_come_with_and_without_schema_and_key() {
    let plain = event("c", "null", r#"{"id":18446744073709551615,"email":null}"#);
    let schema = r#"{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":true,"name":"s.Value","field":"after"}],"optional":false,"name":"s.Envelope"}"#;
    let put = [r#"put {"id":18446744073709551615,"email":null}"#];
    for value in [
        plain.clone(),
        format!(r#"{{"schema":{schema},"payload":{plain}}}"#),
        format!(r#"{{"schema":null,"payload":{plain}}}"#),
        format!(r#" {{"payload":{plain}}} "#),
    ] {
        check(&value, &put);
        check(&format!(r#"{{"key":{{"id":18446744073709551615}},"value":{value}}}"#), &put);
        check(&format!(r#"{{"offset":1,"key":null,"value":{value},"headers":[]}}"#), &put);
    }
}

#[test]
fn a_row_that_gets_another_key_leaves_the_old_one() {
    check(
        &event("u", r#"{"id":1,"email":"a"}"#, r#"{"id":2,"email":"a"}"#),
        &[r#"move 1 at 7, {"id":1,"email":"a"} to {"id":2,"email":"a"}"#],
    );
    check(&event("u", r#"{"id":1}"#, r#"{"id":2,"email":"a"}"#), &[r#"move 1 at 7 to {"id":2,"email":"a"}"#]);
    let unsent = r#"{"id":2,"email":"__debezium_unavailable_value"}"#;
    check(&event("u", r#"{"id":1}"#, unsent), &["move 1 at 7 to patch 2"]);
    check(&event("u", r#"{"id":2}"#, unsent), &["patch 2 at 7"]);
    // An image before that does not tell the key says nothing of it.
    check(&event("u", r#"{"email":"x"}"#, r#"{"id":2,"email":"a"}"#), &[r#"put {"id":2,"email":"a"}"#]);
    check(&event("u", r#"{"id":null}"#, r#"{"id":2,"email":"a"}"#), &[r#"put {"id":2,"email":"a"}"#]);
    let text = [event("u", r#"{"id":1}"#, r#"{"id":2}"#), event("c", "null", r#"{"id":3}"#)].join("\n");
    let all = read::<Customer>(&text, |source| source);
    assert_eq!(all.lines, [1, 2]);
}

#[test]
fn a_key_of_several_columns_is_read_by_its_names() {
    let same = |source| source;
    let row = r#"{"product":7,"store":"a","count":3}"#;
    check_with::<Stock>(
        same,
        &event("d", row, "null"),
        &[r#"delete ("a", 7) at 7, {"store":"a","product":7,"count":3}"#],
    );
    check_with::<Stock>(same, r#"{"key":{"product":7,"store":"a"},"value":null}"#, &[r#"delete ("a", 7)"#]);
    let moved = event("u", row, r#"{"product":7,"store":"b","count":3}"#);
    check_with::<Stock>(
        same,
        &moved,
        &[r#"move ("a", 7) at 7, {"store":"a","product":7,"count":3} to {"store":"b","product":7,"count":3}"#],
    );
    let renamed = |source: Debezium| source.key_fields(["shop", "sku"]);
    check_with::<Stock>(renamed, r#"{"key":{"sku":7,"shop":"a"},"value":null}"#, &[r#"delete ("a", 7)"#]);
}

#[test]
fn what_is_not_about_rows_is_passed_over() {
    for line in [
        event("m", "null", "null"),
        r#"{"ts_ms":5}"#.to_string(),
        r#"{"key":{"serverName":"s"},"value":{"ts_ms":5}}"#.to_string(),
        format!(r#"{{"source":{SOURCE},"ts_ms":5,"databaseName":"shop","ddl":"ALTER TABLE","tableChanges":[]}}"#),
        r#"{"schema":{"type":"struct"},"payload":{"status":"BEGIN","id":"571","event_count":null,"ts_ms":1}}"#
            .to_string(),
        "  ".to_string(),
    ] {
        check(&line, &[]);
    }
}

#[test]
fn only_the_events_of_the_chosen_table_count() {
    let line = event("c", "null", r#"{"id":1}"#);
    let put = [r#"put {"id":1,"email":null}"#];
    for name in ["customers", "public.customers", "shop.public.customers"] {
        check_with::<Customer>(|source| source.table(name), &line, &put);
    }
    for name in ["orders", "mers", "private.customers", "public", "old.shop.public.customers"] {
        check_with::<Customer>(|source| source.table(name), &line, &[]);
        // Not even looked at.
        check_with::<Customer>(|source| source.table(name), &event("c", "null", "[]"), &[]);
    }
    let chosen = |source: Debezium| source.table("customers");
    check_with::<Customer>(chosen, r#"{"key":{"id":1},"value":null}"#, &[]);
    check_with::<Customer>(
        chosen,
        r#"{"op":"c","after":{"id":1}}"#,
        &["bad: `source` does not say the table, which `.table` asks for"],
    );
}

#[test]
fn what_is_no_event_is_bad_and_says_why() {
    let of_table = |reason: &str| format!("bad: `shop.public.customers`: {reason}");
    for (line, reason) in [
        ("{", "bad: EOF while parsing an object at column 1".to_string()),
        ("5", "bad: invalid type: integer `5`, expected an object".to_string()),
        (
            r#"{"id":1,"email":"a"}"#,
            "bad: there is no `op`, so this is no change event; if the topic holds rows only (as ExtractNewRecordState makes them), read it with `JsonLines::table`".to_string(),
        ),
        (&event("x", "null", "null"), "bad: `op` is \"x\", and has to be one of c, r, u, d, t, m".to_string()),
        (r#"{"op":5}"#, "bad: `op` is 5, and has to be one of c, r, u, d, t, m".to_string()),
        (r#"{"op":"c","op":"d"}"#, "bad: duplicate field `op`".to_string()),
        (r#"{"op":"c","source":{"ts_ms":"now"}}"#, "bad: in `source`: `ts_ms`: invalid type: string \"now\", expected i64".to_string()),
        (&event("u", "null", "null"), of_table("the event has neither `before` nor `after`")),
        (&event("c", r#"{"id":1}"#, "null"), of_table("the event has no `after`, and only a delete goes without")),
        (&event("c", "null", "[1]"), of_table("in `after`: invalid type: sequence, expected an object")),
        (&event("c", "null", r#"{"email":"a"}"#), of_table("missing field `id`")),
        (&event("c", "null", r#"{"id":-1}"#), of_table("`id`: invalid value: integer `-1`, expected u64")),
        (&event("c", "null", r#"{"id":18446744073709551616}"#), of_table("`id`: the integer 18446744073709551616 does not fit, expected u64")),
        (
            &event("d", "null", "null"),
            of_table("the event says neither a row `before` nor a key, so it is not known whose row is gone; set the table's REPLICA IDENTITY, or write the lines with the keys of the messages"),
        ),
        (
            &event("d", r#"{"email":"a"}"#, "null"),
            of_table("there is no field `id`, and the key is `id`; `.key_fields` says what its fields are called in JSON; the key has to be within the table's REPLICA IDENTITY"),
        ),
        (
            r#"{"key":{"uid":1},"value":null}"#,
            "bad: in the key of the message: there is no field `id`, and the key is `id`; `.key_fields` says what its fields are called in JSON".to_string(),
        ),
        (r#"{"key":"one","value":null}"#, "bad: in the key of the message: the key \"one\": invalid type: string \"one\", expected u64".to_string()),
    ] {
        check(line, &[&reason]);
    }
}

#[test]
fn files_are_as_for_streams() {
    let directory = Directory::new();
    let line = event("c", "null", r#"{"id":1}"#);
    let first = directory.write("customers.jsonl.gz", gzip(format!("\u{feff}{line}\r\n\n{line}").as_bytes()));
    let second = directory.write("b.jsonl", format!("{}\n{line}", "x".repeat(301)));
    let source = Debezium::json_files([first, second.clone()]).record_bytes_max(300).on_bad(OnBad::Skip);
    let endpoint = TableSource::<Customer>::endpoint(&source);
    assert_eq!((endpoint.name.as_str(), endpoint.kind.as_str(), endpoint.reads.len()), ("customers", "debezium", 2));
    assert_eq!(TableSource::<Customer>::partitions(&source).unwrap(), 2);
    assert_eq!(changes::<Customer>(&source).lines, [1, 3]);
    let all = changes::<Customer>(&Debezium::json(second).record_bytes_max(300).named("b"));
    assert!(all.bad[0].reason.contains("longer than 300 bytes") && all.rows.len() == 1, "{:?}", all.reasons());
    assert!(read::<Customer>("", |source| source).rows.is_empty());
    TableSource::<Customer>::bad_records(&source).unwrap().note(&all.bad[0]).unwrap();
    assert!(read::<Stock>("", |source| source.key_fields(["one"])).error().contains("names 1 fields"));
}

#[test]
fn a_test_gives_events_or_plain_changes() {
    let source = Debezium::json("none.jsonl");
    let told = |value| TableSource::<Customer>::change_of(&source, value).map(|change| in_words(&change));
    let given = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let put = r#"put {"id":1,"email":null}"#;
    assert_eq!(told(given(event("c", "null", r#"{"id":1}"#))).unwrap(), put);
    assert_eq!(told(given(format!(r#"{{"payload":{}}}"#, event("c", "null", r#"{"id":1}"#)))).unwrap(), put);
    assert_eq!(told(serde_json::json!({"key": {"id": 1}, "value": null})).unwrap(), "delete 1");
    assert_eq!(told(serde_json::json!({"id": 1})).unwrap(), put);
    assert_eq!(told(serde_json::json!({"op": "-D", "id": 1})).unwrap(), "delete 1");
    let moved = told(given(event("u", r#"{"id":1}"#, r#"{"id":2}"#))).unwrap();
    assert_eq!(moved, r#"move 1 at 7 to {"id":2,"email":null}"#);
    assert!(told(given(event("m", "null", "null"))).is_err());
}

#[test]
fn damaged_lines_are_changes_or_bad_but_never_a_panic() {
    let lines = [
        event("u", r#"{"id":1,"email":"é"}"#, r#"{"id":2,"email":"__debezium_unavailable_value","at":"BOI="}"#),
        format!(
            r#"{{"key":{{"id":1}},"value":{{"schema":{SCHEMA},"payload":{}}}}}"#,
            event("d", r#"{"id":1}"#, "null")
        ),
        format!(
            r#"{{"schema":{SCHEMA},"payload":{}}}"#,
            event("c", "null", r#"{"id":2,"at":1,"price":"BOI=","v":{"scale":1,"value":"AQ=="}}"#)
        ),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let directory = Directory::new();
    let path = directory.write("events.jsonl", common::damaged(&lines, 3_000));
    let all = changes::<Dated>(&Debezium::json(&path).decimal_scale("at", 2));
    assert!(all.error.is_none() && all.rows.len() > 500 && all.bad.len() > 500, "{} {}", all.rows.len(), all.bad.len());
    for change in &all.rows {
        if let TableChange::Patch { patch, .. } = change {
            let _ = patch.apply(Some(&Dated { id: 2, email: Some("kept".to_string()), at: None }));
            assert!(patch.apply(None).is_err());
        }
    }
}

const SCHEMA: &str = r#"{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int64","field":"id"},{"type":"int64","name":"io.debezium.time.MicroTimestamp","field":"at"},{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"},"field":"price"}],"field":"after"}]}"#;

#[test]
fn a_setting_of_a_column_that_the_row_does_not_have_is_refused() {
    let directory = Directory::new();
    let path = directory.write("events.jsonl", "");
    let refused = |source: Debezium| {
        let opened = TableSource::<Customer>::open(&source, 0);
        opened.err().expect("it is refused").to_string()
    };
    let told = refused(Debezium::json(&path).text("emial"));
    assert!(told.contains("the column `emial`, which the row does not have; is `email` meant?"), "{told}");
    let told = refused(Debezium::json(&path).decimal_scale("amount", 2));
    assert!(told.contains("the column `amount`, which the row does not have; it has id, email"), "{told}");
    let with_key = Debezium::json(&path).key_fields(["customerId"]).decimal_scale("customerId", 0).text("email");
    assert!(TableSource::<Customer>::open(&with_key, 0).is_ok());
}
