//! Columns of change events: decimals, times, and what was not sent.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Directory, Read, changes};
use flowjoin_connectors::{Debezium, TimeForm};
use flowjoin_core::io::TableChange;
use flowjoin_core::{EventTime, Keyed, TimeUnit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Takes columns of any type, to see them as they are handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u64,
    a: Option<Value>,
    b: Option<Value>,
}

macro_rules! keyed_by_id {
    ($($row:ident),*) => {$(
        impl Keyed for $row {
            type Key = u64;
            fn key(&self) -> u64 {
                self.id
            }
            fn key_name() -> &'static str {
                "id"
            }
        }
    )*};
}
keyed_by_id!(Row, Order, Document, Short, Renamed);

/// The types that a program would use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    at: EventTime,
    price: String,
    count: i64,
}

fn read<T: Keyed<Key = u64>>(text: &str, with: impl FnOnce(Debezium) -> Debezium) -> Read<TableChange<T>> {
    let directory = Directory::new();
    changes(&with(Debezium::json(directory.write("events.jsonl", text))))
}

fn event(op: &str, before: &Value, after: &Value) -> Value {
    json!({"before": before, "after": after, "source": {"ts_ms": 7, "schema": "public", "table": "orders"}, "op": op})
}

fn with_schema(columns: &Value, event: &Value) -> Value {
    let image = |name| json!({"type": "struct", "fields": columns, "optional": true, "field": name});
    json!({"schema": {"type": "struct", "fields": [image("before"), image("after")]}, "payload": event})
}

/// What a column `a` of this type and value is handed over as; a reason if it is bad.
fn by_schema(mut column: Value, value: &Value, form: TimeForm) -> Result<Value, String> {
    column["field"] = json!("a");
    let event = event("c", &Value::Null, &json!({"id": 1, "a": value}));
    handed_over(&with_schema(&json!([{"type": "int64", "field": "id"}, column]), &event), |source| source.times(form))
}

fn by_setting(value: &Value, with: impl FnOnce(Debezium) -> Debezium) -> Result<Value, String> {
    handed_over(&event("c", &Value::Null, &json!({"id": 1, "a": value})), with)
}

fn handed_over(line: &Value, with: impl FnOnce(Debezium) -> Debezium) -> Result<Value, String> {
    let mut all = read::<Row>(&line.to_string(), with);
    match (all.rows.pop(), all.bad.pop()) {
        (Some(TableChange::Put(row)), None) => Ok(row.a.unwrap_or_default()),
        (None, Some(bad)) => Err(bad.reason),
        other => panic!("{other:?}"),
    }
}

fn named(kind: &str, name: &str) -> Value {
    json!({"type": kind, "name": name})
}

fn decimal(scale: &str) -> Value {
    json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": scale}})
}

#[test]
fn timestamps_become_milliseconds_or_text() {
    let micros = 1_357_034_400_123_456_i64;
    for (name, value, millis, text) in [
        ("io.debezium.time.Timestamp", 1_357_034_400_123, 1_357_034_400_123_i64, "2013-01-01T10:00:00.123Z"),
        ("org.apache.kafka.connect.data.Timestamp", 1_357_034_400_123, 1_357_034_400_123, "2013-01-01T10:00:00.123Z"),
        ("io.debezium.time.MicroTimestamp", micros, 1_357_034_400_123, "2013-01-01T10:00:00.123456Z"),
        ("io.debezium.time.NanoTimestamp", micros * 1_000 + 789, 1_357_034_400_123, "2013-01-01T10:00:00.123456789Z"),
        ("io.debezium.time.Date", 15_706, 1_356_998_400_000, "2013-01-01"),
        ("org.apache.kafka.connect.data.Date", -1, -86_400_000, "1969-12-31"),
    ] {
        let column = named("int64", name);
        assert_eq!(by_schema(column.clone(), &json!(value), TimeForm::Millis), Ok(json!(millis)), "{name}");
        assert_eq!(by_schema(column.clone(), &json!(value), TimeForm::Text), Ok(json!(text)), "{name}");
        assert_eq!(by_schema(column.clone(), &json!(value), TimeForm::AsSent), Ok(json!(value)), "{name}");
        assert_eq!(by_schema(column, &Value::Null, TimeForm::Text), Ok(Value::Null), "{name}");
    }
}

#[test]
fn what_is_no_instant_and_what_is_text_stays_as_it_was_sent() {
    for form in [TimeForm::Millis, TimeForm::Text] {
        for (kind, name, value) in [
            ("int64", "io.debezium.time.MicroTime", json!(36_000_000_001_i64)),
            ("int32", "io.debezium.time.Time", json!(36_000_000)),
            ("int64", "io.debezium.time.MicroDuration", json!(5)),
            ("int32", "io.debezium.time.Year", json!(2013)),
            ("string", "io.debezium.time.ZonedTimestamp", json!("2013-01-01T10:00:00.123456Z")),
            ("string", "io.debezium.data.Json", json!("{\"a\":1}")),
            ("int64", "a.name.of.ones.own", json!(i64::MAX)),
        ] {
            assert_eq!(by_schema(named(kind, name), &value, form), Ok(value), "{name}");
        }
        assert_eq!(by_schema(json!({"type": "int64"}), &json!(i64::MIN), form), Ok(json!(i64::MIN)));
    }
}

#[test]
fn decimals_become_their_digits() {
    let read = |scale, value| by_schema(decimal(scale), &value, TimeForm::Millis);
    assert_eq!(read("2", json!("BOI=")), Ok(json!("12.50")));
    assert_eq!(read("0", json!("/w==")), Ok(json!("-1")));
    assert_eq!(read("-2", json!("AQ==")), Ok(json!("100")));
    // 2^128 takes 17 bytes.
    assert_eq!(read("2", json!("AQAAAAAAAAAAAAAAAAAAAAA=")), Ok(json!("3402823669209384634633746074317682114.56")));
    assert_eq!(read("2", json!(12.5)), Ok(json!(12.5)), "decimal.format of the converter is NUMERIC");
    assert_eq!(read("2", Value::Null), Ok(Value::Null));
    let variable =
        |value| by_schema(named("struct", "io.debezium.data.VariableScaleDecimal"), &value, TimeForm::Millis);
    assert_eq!(variable(json!({"scale": 3, "value": "BOI="})), Ok(json!("1.250")));
    assert_eq!(variable(Value::Null), Ok(Value::Null));
    // decimal.handling.mode string and double have no name.
    for (kind, value) in [("string", json!("12.50")), ("string", json!("NaN")), ("double", json!(12.5))] {
        assert_eq!(by_schema(json!({"type": kind}), &value, TimeForm::Millis), Ok(value));
    }
    let array = json!({"type": "array", "items": decimal("1")});
    assert_eq!(by_schema(array, &json!(["AQ==", null]), TimeForm::Millis), Ok(json!(["0.1", null])));
}

#[test]
fn settings_tell_what_a_schema_would() {
    let at = by_setting(&json!(1_357_034_400_000_005_i64), |source| source.timestamp_unit("a", TimeUnit::Micros));
    assert_eq!(at, Ok(json!(1_357_034_400_000_i64)));
    let at = |source: Debezium| source.timestamp_unit("a", TimeUnit::Seconds).times(TimeForm::Text);
    assert_eq!(by_setting(&json!(1_357_034_400), at), Ok(json!("2013-01-01T10:00:00.000Z")));
    assert_eq!(by_setting(&json!(1), |source| source.date("a")), Ok(json!(86_400_000)));
    assert_eq!(by_setting(&json!("BOI="), |source| source.decimal_scale("a", 1)), Ok(json!("125.0")));
    assert_eq!(by_setting(&json!({"scale": 2, "value": "BOI="}), |source| source), Ok(json!("12.50")));
    let other = json!({"scale": 2, "value": "BOI=", "more": 1});
    assert_eq!(by_setting(&other, |source| source), Ok(other));
    assert!(by_setting(&json!("BOI="), |source| source.decimal_scale("b", 1)).unwrap_err().contains(".decimal_scale"));
    // The schema knows better.
    let line = with_schema(
        &json!([{"type": "int64", "name": "io.debezium.time.MicroTimestamp", "field": "a"}]),
        &event("c", &Value::Null, &json!({"id": 1, "a": 5_000})),
    );
    assert_eq!(handed_over(&line, |source| source.timestamp_unit("a", TimeUnit::Nanos)), Ok(json!(5)));
}

#[test]
fn the_types_of_a_program_are_read_exactly() {
    let columns = json!([
        {"type": "int64", "field": "id"},
        {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "field": "at"},
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}, "field": "price"},
        {"type": "int64", "field": "count"},
    ]);
    let row = json!({"id": u64::MAX, "at": -1, "price": "BOI=", "count": i64::MIN});
    let order = Order { id: u64::MAX, at: EventTime::from_millis(-1), price: "12.50".to_string(), count: i64::MIN };
    let lines = [
        with_schema(&columns, &event("c", &Value::Null, &row)),
        // The schema changes from one line to the next.
        event("c", &Value::Null, &json!({"id": u64::MAX, "at": -1, "price": "12.50", "count": i64::MIN})),
        with_schema(&columns, &event("d", &row, &Value::Null)),
    ];
    let all = read::<Order>(&lines.map(|line| line.to_string()).join("\n"), |source| source);
    assert!(
        matches!(&all.rows[..], [TableChange::Put(first), TableChange::Put(second), TableChange::Delete { .. }]
        if *first == order && *second == order),
        "{all:?}"
    );
}

#[test]
fn a_key_is_read_by_schema_too() {
    let schema = json!({"type": "struct", "fields": [{"type": "int64", "name": "io.debezium.time.MicroTimestamp", "field": "id"}]});
    let tombstone = json!({"key": {"schema": schema, "payload": {"id": 5_000}}, "value": null});
    let all = read::<Row>(&tombstone.to_string(), |source| source);
    assert_eq!(all.told(), ["delete 5"]);
    let tombstone = json!({"key": {"id": 5_000}, "value": null}).to_string();
    assert_eq!(read::<Row>(&tombstone, |source| source.timestamp_unit("id", TimeUnit::Micros)).told(), ["delete 5"]);
}

#[test]
fn columns_that_cannot_be_read_name_table_column_and_setting() {
    let bad = |value, with: fn(Debezium) -> Debezium| by_setting(&value, with).unwrap_err();
    let prefix = "`public.orders`: `a`: ";
    for (found, reason) in [
        (
            bad(json!("12.50"), |source| source.decimal_scale("a", 2)),
            "\"12.50\" is not the base64 of a decimal; is `.decimal_scale` right? with decimal.handling.mode string or double, there is nothing to set",
        ),
        (
            bad(json!("AQ=="), |source| source.decimal_scale("a", i32::MIN)),
            "a decimal cannot have the scale -2147483648; is `.decimal_scale` right? with decimal.handling.mode string or double, there is nothing to set",
        ),
        (
            bad(json!("2013-01-01T10:00:00Z"), |source| source.timestamp_unit("a", TimeUnit::Micros)),
            "\"2013-01-01T10:00:00Z\" is not an integer of 64 bits; is `.timestamp_unit` right? text of ISO 8601 needs no setting",
        ),
        (
            bad(json!(i64::MAX), |source| source.timestamp_unit("a", TimeUnit::Seconds)),
            "the time 9223372036854775807 in seconds does not fit; is its unit right?; is `.timestamp_unit` right? text of ISO 8601 needs no setting",
        ),
        (
            bad(json!(u64::MAX), |source| source.date("a")),
            "18446744073709551615 is not an integer of 64 bits; is `.date` right? text of ISO 8601 needs no setting",
        ),
        (by_schema(decimal("2"), &json!("?"), TimeForm::Millis).unwrap_err(), "\"?\" is not the base64 of a decimal"),
    ] {
        assert_eq!(found, format!("{prefix}{reason}"));
    }
    for (column, reason) in [
        (decimal("two"), "the scale \"two\" is not an integer"),
        (named("bytes", "org.apache.kafka.connect.data.Decimal"), "a decimal has to have the parameter `scale`"),
    ] {
        let found = by_schema(column, &json!("AQ=="), TimeForm::Millis).unwrap_err();
        assert_eq!(found, format!("`public.orders`: in the schema: `a`: {reason}"));
    }
}

#[test]
fn a_field_of_another_type_is_told_what_may_be_amiss() {
    let order = |price: Value, at: Value| json!({"id": 1, "at": at, "price": price, "count": 1});
    let reason = |row: &Value, with: fn(Debezium) -> Debezium| {
        read::<Order>(&event("c", &Value::Null, row).to_string(), with).bad[0].reason.clone()
    };
    assert_eq!(
        reason(&order(json!(5), json!(1)), |source| source),
        "`public.orders`: `price`: invalid type: integer `5`, expected a string; the event has no schema: if this is a decimal, a timestamp or a date, say so with `.decimal_scale`, `.timestamp_unit` or `.date`"
    );
    let row = json!({"id": 1, "at": 1, "price": "1", "count": "AQ=="});
    assert!(reason(&row, |source| source.decimal_scale("count", 0)).contains("a decimal is handed over as text"));
    let row = json!({"id": 1, "at": 1, "price": 5, "count": 1});
    assert!(reason(&row, |source| source.timestamp_unit("price", TimeUnit::Millis)).contains("`.times` says"));
}

const GONE: &str = "__debezium_unavailable_value";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Document {
    id: u64,
    title: String,
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

/// Leaves the large column out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Short {
    id: u64,
    title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
struct Renamed {
    id: u64,
    body: Option<String>,
}

fn document(title: &str, body: &str) -> Document {
    Document { id: 1, title: title.to_string(), body: Some(body.to_string()), blob: None }
}

fn patch_of(line: &Value, with: impl FnOnce(Debezium) -> Debezium) -> Box<flowjoin_core::io::Patch<Document>> {
    let mut all = read::<Document>(&line.to_string(), with);
    assert_eq!(all.told(), ["patch 1 at 7"], "{:?}", all.reasons());
    let Some(TableChange::Patch { patch, .. }) = all.rows.pop() else { panic!("a patch") };
    patch
}

#[test]
fn a_column_that_was_not_sent_keeps_its_value() {
    let line = event("u", &Value::Null, &json!({"id": 1, "title": "new", "body": GONE, "blob": null}));
    let patch = patch_of(&line, |source| source);
    assert_eq!(patch.apply(Some(&document("old", "long \"text\""))).unwrap(), document("new", "long \"text\""));
    let gone = Document { body: None, ..document("old", "") };
    assert_eq!(patch.apply(Some(&gone)).unwrap(), Document { body: None, ..document("new", "") });
    assert_eq!(
        patch.apply(None).unwrap_err(),
        "`public.orders`: what has not changed was not sent (`body`), and there is no row before to take it from; set REPLICA IDENTITY FULL on the table, or begin with an initial snapshot"
    );
}

#[test]
fn bytes_that_were_not_sent_keep_their_value() {
    let line = event(
        "u",
        &Value::Null,
        &json!({"id": 1, "title": "new", "body": GONE, "blob": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}),
    );
    let patch = patch_of(&line, |source| source);
    let old = Document { blob: Some("AQID".to_string()), ..document("old", "text") };
    assert_eq!(patch.apply(Some(&old)).unwrap(), Document { title: "new".to_string(), ..old });
    assert_eq!(
        patch.apply(Some(&document("old", "text"))).unwrap(),
        document("new", "text"),
        "a field that is not written"
    );
    assert!(patch.apply(None).unwrap_err().contains("(`body`, `blob`)"));
}

#[test]
fn the_word_for_what_was_not_sent_can_be_another() {
    let line = event("u", &Value::Null, &json!({"id": 1, "title": GONE, "body": "<none>"}));
    let patch = patch_of(&line, |source| source.unavailable_value("<none>"));
    assert_eq!(patch.apply(Some(&document("old", "text"))).unwrap(), document(GONE, "text"));
}

#[test]
fn the_image_before_spares_the_patch() {
    let before = json!({"id": 1, "title": "old", "body": "text"});
    let line = event("u", &before, &json!({"id": 2, "title": "new", "body": GONE})).to_string();
    let all = read::<Document>(&line, |source| source);
    assert_eq!(
        all.told(),
        [r#"move 1 at 7, {"id":1,"title":"old","body":"text"} to {"id":2,"title":"new","body":"text"}"#]
    );
    // Without REPLICA IDENTITY FULL the other columns of the image are null.
    let before = json!({"id": 1, "title": null, "body": null});
    patch_of(&event("u", &before, &json!({"id": 1, "title": "new", "body": GONE})), |source| source);
}

#[test]
fn a_row_without_the_column_needs_no_patch() {
    let line = event("u", &Value::Null, &json!({"id": 1, "title": "new", "body": GONE})).to_string();
    assert_eq!(read::<Short>(&line, |source| source).told(), [r#"put {"id":1,"title":"new"}"#]);
}

#[test]
fn the_key_of_a_patch_is_the_rows_or_else_the_messages() {
    let value = event("u", &Value::Null, &json!({"ID": 1, "BODY": GONE}));
    let bad = read::<Renamed>(&value.to_string(), |source| source).bad;
    assert!(bad[0].reason.contains("there is no field `id`, and the key is `id`"), "{}", bad[0].reason);
    let message = json!({"key": 1, "value": value}).to_string();
    assert_eq!(read::<Renamed>(&message, |source| source).told(), ["patch 1 at 7"]);
    assert_eq!(read::<Renamed>(&value.to_string(), |source| source.key_fields(["ID"])).told(), ["patch 1 at 7"]);
}

#[test]
fn a_patch_that_fits_no_row_says_why() {
    let line = event("u", &Value::Null, &json!({"id": 1, "title": 5, "body": GONE}));
    let reason = patch_of(&line, |source| source).apply(Some(&document("old", "text"))).unwrap_err();
    assert_eq!(reason, "`public.orders`: `title`: invalid type: integer `5`, expected a string");
}

#[test]
fn a_decimal_of_which_nothing_says_the_scale_is_refused_with_the_setting() {
    let same = |source| source;
    for bytes in ["BOI=", "AQ==", "AAAAAAAAAAAAAAAAAAAAAA=="] {
        let refused = by_setting(&json!(bytes), same).unwrap_err();
        let told = format!(
            "`public.orders`: `a`: \"{bytes}\" looks like a decimal as bytes, and the event has no schema that says its scale; say `.decimal_scale(\"a\", digits)`, or `.text(\"a\")` if it is what it says"
        );
        assert_eq!(refused, told);
        assert_eq!(by_setting(&json!(bytes), |source| source.text("a")), Ok(json!(bytes)));
    }
    assert_eq!(by_setting(&json!("BOI="), |source| source.decimal_scale("a", 2)), Ok(json!("12.50")));
    // What a schema does not call a decimal is none, and these look like nothing else than they are.
    assert_eq!(by_schema(json!({"type": "string"}), &json!("BOI="), TimeForm::Millis), Ok(json!("BOI=")));
    for text in ["a = b", "x=", "BOI", "", "=", "AAAAAAAAAAAAAAAAAAAAAAAAAA=="] {
        assert_eq!(by_setting(&json!(text), same), Ok(json!(text)), "{text}");
    }
    // A column that the row has no field for is not looked at.
    let other = event("c", &Value::Null, &json!({"id": 1, "a": 1, "price": "BOI="}));
    assert_eq!(handed_over(&other, same), Ok(json!(1)));
}
