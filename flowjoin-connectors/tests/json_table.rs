//! JSON Lines read as a table: the forms of a line, which of them a line has, and lines that have none.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Directory, Read, batch, changes, gzip, in_words, write};
use flowjoin_connectors::{JsonLines, JsonTable, OnBad};
use flowjoin_core::Keyed;
use flowjoin_core::io::{TableChange, TableSource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

macro_rules! keyed {
    ($row:ident, $key:ty, $name:literal, $of:expr) => {
        impl Keyed for $row {
            type Key = $key;
            fn key(&self) -> $key {
                let of: fn(&$row) -> $key = $of;
                of(self)
            }
            fn key_name() -> &'static str {
                $name
            }
        }
    };
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Product {
    id: u64,
    name: Option<String>,
}
keyed!(Product, u64, "id", |row| row.id);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stock {
    store_id: String,
    product: u64,
    count: i64,
}
keyed!(Stock, (String, u64), "(store_id, product)", |row| (row.store_id.clone(), row.product));

/// Has a field `op`, as a row of an audit table may.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Audit {
    id: u64,
    op: String,
}
keyed!(Audit, u64, "id", |row| row.id);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Setting {
    key: String,
    value: Option<String>,
}
keyed!(Setting, String, "key", |row| row.key.clone());

/// Has fields that its type does not tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Open {
    id: u64,
    #[serde(flatten)]
    more: BTreeMap<String, serde_json::Value>,
}
keyed!(Open, u64, "id", |row| row.id);

/// Everything in it may be missing, so that a wrong reading would not fail by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Both {
    id: Option<u64>,
    op: Option<String>,
    row: Option<u64>,
}
keyed!(Both, Option<u64>, "id", |row| row.id);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    row: u64,
}
keyed!(Line, u64, "row", |line| line.row);

fn read<T: Keyed>(text: &str, with: impl FnOnce(JsonTable) -> JsonTable) -> Read<TableChange<T>>
where
    T::Key: DeserializeOwned,
{
    let directory = Directory::new();
    changes(&with(JsonLines::table(directory.write("table.jsonl", text))))
}

/// Each line and what it is read as; `bad: ` stands before a reason.
#[track_caller]
fn check<T: Keyed + std::fmt::Debug>(with: fn(JsonTable) -> JsonTable, expected: &[(&str, &str)])
where
    T::Key: DeserializeOwned,
{
    for (line, told) in expected {
        let all = read::<T>(line, with);
        let mut found = all.told();
        found.extend(all.bad.iter().map(|bad| format!("bad: {}", bad.reason)));
        assert_eq!(found, [*told], "{line}");
    }
}

fn by_names(table: JsonTable) -> JsonTable {
    table
}

#[test]
fn a_plain_line_puts_its_row() {
    check::<Product>(
        by_names,
        &[
            (r#"{"id":1,"name":"pen"}"#, r#"put {"id":1,"name":"pen"}"#),
            (r#"{"id":18446744073709551615,"more":[{}]}"#, r#"put {"id":18446744073709551615,"name":null}"#),
        ],
    );
}

#[test]
fn a_change_puts_or_deletes() {
    check::<Product>(
        by_names,
        &[
            (r#"{"op":"+I","id":1,"name":"pen"}"#, r#"put {"id":1,"name":"pen"}"#),
            (r#"{"id":1,"op":"+U","name":"pen"}"#, r#"put {"id":1,"name":"pen"}"#),
            (r#"{"op":"-U","id":1,"name":"pen"}"#, r#"delete 1, {"id":1,"name":"pen"}"#),
            (r#"{"op":"-D","id":1,"name":"pen"}"#, r#"delete 1, {"id":1,"name":"pen"}"#),
            (r#"{"op":"-D","id":1,"more":1}"#, "delete 1"),
            (r#"{"\u006fp":"-\u0044","id":1,"more":1}"#, "delete 1"),
            (r#"{"op":"\u002BI","id":1,"name":"pen"}"#, r#"put {"id":1,"name":"pen"}"#),
            (r#"{"op":"-D","id":1,"name":{"no":"row"}}"#, "delete 1"),
            (r#"{ "row" : {"id":1}, "op" : "-D" }"#, "delete 1"),
            (r#"{"op":"+U","row":{"id":1,"name":"pen"}}"#, r#"put {"id":1,"name":"pen"}"#),
        ],
    );
    check::<Stock>(
        by_names,
        &[(
            r#"{"op":"-D","storeId":"a","product":1,"count":3}"#,
            r#"delete ("a", 1), {"storeId":"a","product":1,"count":3}"#,
        )],
    );
}

#[test]
fn a_message_puts_its_value_or_deletes_its_key() {
    check::<Product>(
        by_names,
        &[
            (r#"{"key":{"id":1},"value":{"id":1,"name":"pen"}}"#, r#"put {"id":1,"name":"pen"}"#),
            (r#"{"key":{"id":1},"value":null}"#, "delete 1"),
            (r#"{"value":null,"key":18446744073709551615}"#, "delete 18446744073709551615"),
            (r#"{"key":[92],"value":null}"#, "delete 92"),
            (r#"{"key":null,"value":{"id":1}}"#, r#"put {"id":1,"name":null}"#),
        ],
    );
    let renamed = |table: JsonTable| table.key_fields(["storeId", "product"]);
    check::<Stock>(
        renamed,
        &[
            (r#"{"key":{"product":7,"storeId":"a","more":0},"value":null}"#, r#"delete ("a", 7)"#),
            (r#"{"key":["a",7],"value":null}"#, r#"delete ("a", 7)"#),
        ],
    );
}

#[test]
fn what_a_sink_wrote_is_read_as_a_table() {
    let directory = Directory::new();
    let product = |id, name: &str| Product { id, name: Some(name.to_string()) };
    let written = [batch([("+I", product(1, "pen")), ("+I", product(2, "ink"))]), batch([("-D", product(1, "pen"))])];
    write(&JsonLines::upsert(directory.path("upsert.jsonl")), written).unwrap();
    let all = changes::<Product>(&JsonLines::table(directory.path("upsert.jsonl")));
    assert_eq!(
        all.told(),
        [r#"put {"id":1,"name":"pen"}"#, r#"put {"id":2,"name":"ink"}"#, r#"delete 1, {"id":1,"name":"pen"}"#]
    );

    let audit = |op: &str| Audit { id: 1, op: op.to_string() };
    let written = [batch([("+I", audit("+I")), ("-U", audit("+I")), ("+U", audit("-D"))])];
    write(&JsonLines::changelog(directory.path("audit.jsonl.gz")), written).unwrap();
    let all = changes::<Audit>(&JsonLines::table(directory.path("audit.jsonl.gz")));
    assert_eq!(
        all.told(),
        [r#"put {"id":1,"op":"+I"}"#, r#"delete 1, {"id":1,"op":"+I"}"#, r#"put {"id":1,"op":"-D"}"#]
    );

    write(&JsonLines::upsert(directory.path("row.jsonl")), [batch([("+I", Line { row: 7 })])]).unwrap();
    let all = changes::<Line>(&JsonLines::table(directory.path("row.jsonl")));
    assert_eq!(all.told(), [r#"put {"row":7}"#]);
}

#[test]
fn an_op_that_is_a_column_stays_one() {
    check::<Audit>(
        by_names,
        &[
            (r#"{"id":1,"op":"-D"}"#, r#"put {"id":1,"op":"-D"}"#),
            (r#"{"op":"login","id":1}"#, r#"put {"id":1,"op":"login"}"#),
            (r#"{"op":"-D","row":{"id":1,"op":"login"}}"#, r#"delete 1, {"id":1,"op":"login"}"#),
        ],
    );
    let changes = JsonTable::changes;
    check::<Audit>(changes, &[(r#"{"op":"+I","row":{"id":1,"op":"-D"}}"#, r#"put {"id":1,"op":"-D"}"#)]);
    check::<Audit>(changes, &[(r#"{"op":"+I","id":1}"#, "bad: missing field `op`")]);
    check::<Product>(JsonTable::plain, &[(r#"{"op":"-D","id":1}"#, r#"put {"id":1,"name":null}"#)]);
}

#[test]
fn what_has_two_readings_is_bad_until_it_is_said_which() {
    let op = "bad: `op` can be what the line does or a column of the row; say `.changes()` for the one, `.plain()` for the other";
    let value = "bad: `key` and `value` can be those of a message or columns of the row; say `.key_value()` for the one, `.plain()` for the other";
    check::<Open>(by_names, &[(r#"{"op":"-D","id":1}"#, op), (r#"{"key":1,"value":null}"#, value)]);
    check::<Open>(
        by_names,
        &[
            (r#"{"op":"login","id":1}"#, r#"put {"id":1,"op":"login"}"#),
            (r#"{"id":1,"key":1,"value":2}"#, r#"put {"id":1,"key":1,"value":2}"#),
        ],
    );
    check::<Both>(by_names, &[(r#"{"op":"-D","row":{"id":1}}"#, op)]);
    check::<Both>(by_names, &[(r#"{"op":"-D","id":1}"#, r#"put {"id":1,"op":"-D","row":null}"#)]);
    check::<Open>(JsonTable::changes, &[(r#"{"op":"-D","id":1,"a":2}"#, r#"delete 1, {"id":1,"a":2}"#)]);

    check::<Setting>(by_names, &[(r#"{"key":"a","value":null}"#, value), (r#"{"key":"a","value":"b"}"#, value)]);
    check::<Setting>(JsonTable::plain, &[(r#"{"key":"a","value":null}"#, r#"put {"key":"a","value":null}"#)]);
    check::<Setting>(
        JsonTable::key_value,
        &[
            (r#"{"key":"a","value":null}"#, r#"delete "a""#),
            (r#"{"offset":3,"key":"a","value":{"key":"a","value":"b"}}"#, r#"put {"key":"a","value":"b"}"#),
        ],
    );
}

#[test]
fn a_line_of_no_form_is_bad_and_says_why() {
    check::<Product>(
        by_names,
        &[
            ("{", "bad: EOF while parsing an object at column 1"),
            ("[1]", "bad: this is a list, and a row is an object with the fields `id`, `name`"),
            (
                r#"{"op":"c","id":1}"#,
                "bad: `op` is \"c\", and has to be one of \"+I\", \"+U\", \"-U\", \"-D\"; if it is a column that the row leaves out, say `.plain()`",
            ),
            (r#"{"op":"-D","name":"pen"}"#, "bad: missing field `id`"),
            (r#"{"op":"+I","op":"-D","id":1}"#, "bad: duplicate field `op`"),
            (r#"{"op":"+I","id":-1}"#, "bad: `id`: invalid value: integer `-1`, expected u64"),
            (
                r#"{"op":"+I","id":18446744073709551616}"#,
                "bad: `id`: the integer 18446744073709551616 does not fit, expected u64",
            ),
            (r#"{"key":null,"value":null}"#, "bad: there is no `key`, and the value is null: whose row is gone?"),
            (r#"{"key":{"id":1},"value":{"id":2}}"#, "bad: `key` is 1, and the key of the row in `value` is 2"),
            (
                r#"{"key":{"id":1},"value":{"id":"1"}}"#,
                "bad: in `value`: `id`: invalid type: string \"1\", expected u64",
            ),
            (
                r#"{"key":{"sku":1},"value":null}"#,
                "bad: there is no field `id`, and the key is `id`; `.key_fields` says what its fields are called in JSON",
            ),
            (r#"{"key":"1","value":null}"#, "bad: the key \"1\": invalid type: string \"1\", expected u64"),
            (r#"{"key":{"id":null},"value":null}"#, "bad: the key `id`: invalid type: null, expected u64"),
        ],
    );
    let changes = JsonTable::changes;
    check::<Product>(changes, &[(r#"{"id":1}"#, "bad: there is no `op`: a change says +I, +U, -U or -D")]);
    let key_value = JsonTable::key_value;
    check::<Product>(key_value, &[(r#"{"key":1}"#, "bad: there is no `value`; a row that is gone has the value null")]);
    check::<Stock>(
        key_value,
        &[(r#"{"key":7,"value":null}"#, "bad: the key 7 is one value, and has to have `store_id`, `product`")],
    );
}

#[test]
fn key_fields_that_are_not_as_many_as_the_key_has_are_refused() {
    let error = read::<Stock>("", |table| table.key_fields(["storeId"])).error();
    assert_eq!(error, "`.key_fields` names 1 fields, and the key is `(store_id, product)`; name as many");
}

#[test]
fn files_are_as_for_streams() {
    let directory = Directory::new();
    let first = directory.write("a.jsonl.gz", gzip(b"\xef\xbb\xbf{\"id\":1}\r\n\n{\"op\":\"-D\",\"id\":1}"));
    let second = directory.write("b.jsonl", format!("{}\n{{\"id\":2}}\n", "x".repeat(101)));
    let table = JsonLines::tables([first, second]).named("products").record_bytes_max(100).on_bad(OnBad::Skip);
    let endpoint = TableSource::<Product>::endpoint(&table);
    assert_eq!((endpoint.name.as_str(), endpoint.kind.as_str()), ("products", "json lines table"));
    assert_eq!(endpoint.reads.len(), TableSource::<Product>::partitions(&table).unwrap());
    let all = changes::<Product>(&table);
    assert_eq!(all.told(), [r#"put {"id":1,"name":null}"#, "delete 1"]);
    assert_eq!(all.lines, [1, 3]);
    let all = changes::<Product>(&JsonLines::table(directory.path("b.jsonl")).record_bytes_max(100));
    assert!(all.bad[0].reason.contains("longer than 100 bytes"), "{:?}", all.bad);
    assert_eq!(all.told(), [r#"put {"id":2,"name":null}"#]);
    assert!(read::<Product>("", by_names).rows.is_empty());
    TableSource::<Product>::bad_records(&table).unwrap().note(&all.bad[0]).unwrap();
}

#[test]
fn a_test_gives_changes_in_the_same_forms() {
    let table = JsonLines::table("none.jsonl");
    for (value, told) in [
        (serde_json::json!({"id": 1}), r#"put {"id":1,"name":null}"#),
        (serde_json::json!({"op": "-D", "id": 1}), "delete 1"),
        (serde_json::json!({"key": 1, "value": null}), "delete 1"),
    ] {
        assert_eq!(in_words::<Product>(&table.change_of(value).unwrap()), told);
    }
    assert!(TableSource::<Product>::change_of(&table, serde_json::json!(5)).is_err());
}

#[test]
fn lines_of_damaged_bytes_are_changes_or_bad_but_never_a_panic() {
    let lines = [
        r#"{"op":"+U","id":1,"name":"pen"}"#,
        r#"{"key":{"id":1},"value":{"id":1,"name":"é\"\\"}}"#,
        r#"{"op":"-D","row":{"id":1,"op":"x"}}"#,
    ];
    let directory = Directory::new();
    let damaged = common::damaged(&lines, 2_000);
    let path = directory.write("table.jsonl", &damaged);
    for form in [by_names, JsonTable::plain, JsonTable::changes, JsonTable::key_value] {
        let all = changes::<Product>(&form(JsonLines::table(&path)));
        assert!(all.error.is_none() && all.rows.len() + all.bad.len() > 1_000);
        assert!(changes::<Open>(&form(JsonLines::table(&path))).error.is_none());
        assert!(changes::<Stock>(&form(JsonLines::table(&path))).error.is_none());
    }
}

#[test]
fn an_event_of_a_database_that_is_read_as_a_row_says_how_to_open_it() {
    let events = [
        r#"{"before":null,"after":{"id":1,"name":"a"},"op":"c"}"#,
        r#"{"payload":{"before":null,"after":{"id":1,"name":"a"},"op":"c"}}"#,
        r#"{"key":{"id":1},"value":{"before":null,"after":{"id":1,"name":"a"},"op":"c"}}"#,
    ];
    let all = read::<Product>(&events.join("\n"), |source| source);
    assert_eq!((all.rows.len(), all.bad.len()), (0, 3));
    let hint = "open it as a table, `flow.table(Debezium::json(path))`";
    assert!(all.reasons().iter().all(|reason| reason.ends_with(hint)), "{:?}", all.reasons());
    let list = read::<Product>("[1,\"a\"]", |source| source);
    assert!(list.reasons()[0].starts_with("1: this is a list, and a row is an object"), "{:?}", list.reasons());
}
