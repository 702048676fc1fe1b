//! Files written: whole lines, right kinds, one file for all tasks.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{Directory, batch, gunzip, inserts, read, run, write};
use flowjoin_connectors::{Csv, JsonLines};
use flowjoin_core::io::{Sink, TakesAppend};
use flowjoin_core::{EventTime, Keyed};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    status: Option<String>,
}

impl Keyed for Order {
    type Key = u64;
    fn key(&self) -> u64 {
        self.id
    }
}

fn order(id: u64, status: &str) -> Order {
    Order { id, status: Some(status.to_string()) }
}

#[test]
fn rows_are_lines_and_can_be_read_back() {
    let directory = Directory::new();
    let path = directory.path("a/new/place/orders.jsonl");
    let sink = JsonLines::sink(&path);
    assert_eq!(Sink::<Order>::endpoint(&sink).name, "orders");
    let rows = [Order { id: u64::MAX, status: None }, order(1, "line\nend \"quoted\" é")];
    write(&sink, [inserts(rows.clone()), inserts([])]).unwrap();
    assert_eq!(read::<Order>(&JsonLines::file(&path)).rows, rows);
    write(&sink, [inserts([order(2, "x")])]).unwrap();
    assert_eq!(read::<Order>(&JsonLines::file(&path)).rows, [order(2, "x")], "a new run begins with an empty file");
    write::<Order>(&sink, []).unwrap();
    assert_eq!(directory.text("a/new/place/orders.jsonl"), "");
}

#[test]
fn a_changelog_says_what_each_line_does() {
    let directory = Directory::new();
    let sink = JsonLines::changelog(directory.path("out.jsonl"));
    let changes = [("+I", order(1, "a")), ("-U", order(1, "a")), ("+U", order(1, "b")), ("-D", order(1, "b"))];
    write(&sink, [batch(changes)]).unwrap();
    assert_eq!(
        directory.text("out.jsonl"),
        "{\"op\":\"+I\",\"id\":1,\"status\":\"a\"}\n\
         {\"op\":\"-U\",\"id\":1,\"status\":\"a\"}\n\
         {\"op\":\"+U\",\"id\":1,\"status\":\"b\"}\n\
         {\"op\":\"-D\",\"id\":1,\"status\":\"b\"}\n"
    );
}

#[test]
fn a_changelog_row_without_fields_or_with_its_own_op_stands_whole() {
    let directory = Directory::new();
    let sink = JsonLines::changelog(directory.path("out.jsonl"));
    let row = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let rows = ["7", "[1]", "null", "{}", r#"{"op":1}"#, r#"{"a":{"op":1}}"#, r#"{"a":"\"op\":"}"#, "\"{\""];
    write(&sink, [inserts(rows.map(row))]).unwrap();
    assert_eq!(
        directory.text("out.jsonl").lines().collect::<Vec<_>>(),
        [
            r#"{"op":"+I","row":7}"#,
            r#"{"op":"+I","row":[1]}"#,
            r#"{"op":"+I","row":null}"#,
            r#"{"op":"+I"}"#,
            r#"{"op":"+I","row":{"op":1}}"#,
            r#"{"op":"+I","a":{"op":1}}"#,
            r#"{"op":"+I","a":"\"op\":"}"#,
            r#"{"op":"+I","row":"{"}"#,
        ]
    );
}

#[test]
fn an_upsert_writes_the_last_change_of_a_key_in_each_batch() {
    let directory = Directory::new();
    let sink = JsonLines::upsert(directory.path("out.jsonl"));
    let first = batch([
        ("+I", order(1, "a")),
        ("+I", order(2, "a")),
        ("-U", order(1, "a")),
        ("+U", order(1, "b")),
        ("+I", order(3, "a")),
        ("-D", order(3, "a")),
    ]);
    let second = batch([("-D", order(1, "b")), ("-U", order(2, "a"))]);
    write(&sink, [first, second, batch([("+U", order(2, "c"))])]).unwrap();
    assert_eq!(
        directory.text("out.jsonl").lines().collect::<Vec<_>>(),
        [
            r#"{"op":"+U","id":2,"status":"a"}"#,
            r#"{"op":"+U","id":1,"status":"b"}"#,
            r#"{"op":"-D","id":3,"status":"a"}"#,
            r#"{"op":"-D","id":1,"status":"b"}"#,
            r#"{"op":"-D","id":2,"status":"a"}"#,
            r#"{"op":"+U","id":2,"status":"c"}"#,
        ]
    );
}

#[test]
fn tasks_share_a_file_and_never_cut_a_line() {
    let directory = Directory::new();
    let json = JsonLines::sink(directory.path("out.jsonl.gz"));
    let csv = Csv::sink(directory.path("out.csv"));
    let tasks = 4;
    let open = |sink: &dyn Sink<Order, Takes = TakesAppend>| {
        (0..tasks).map(|task| sink.open(task, tasks).unwrap()).collect::<Vec<_>>()
    };
    let writers = open(&json).into_iter().zip(open(&csv));
    std::thread::scope(|scope| {
        for (task, (mut json, mut csv)) in writers.enumerate() {
            scope.spawn(move || {
                run(async {
                    for round in 0..200u64 {
                        let row = |index| order(task as u64, &format!("{round}-{index}-{}", "x".repeat(90)));
                        json.write(inserts((0..20).map(row))).await.unwrap();
                        csv.write(inserts((0..20).map(row))).await.unwrap();
                        json.flush().await.unwrap();
                    }
                    json.close().await.unwrap();
                    csv.close().await.unwrap();
                });
            });
        }
    });
    for all in [
        read::<Order>(&JsonLines::file(directory.path("out.jsonl.gz"))),
        read::<Order>(&Csv::file(directory.path("out.csv"))),
    ] {
        assert!(all.error.is_none() && all.bad.is_empty());
        let mut count: BTreeMap<u64, usize> = BTreeMap::new();
        all.rows.iter().for_each(|row| *count.entry(row.id).or_default() += 1);
        assert_eq!(count.into_values().collect::<Vec<_>>(), [4_000; 4]);
    }
}

#[test]
fn what_was_flushed_is_visible_and_what_was_dropped_is_not_lost() {
    let directory = Directory::new();
    let sink = JsonLines::sink(directory.path("out.jsonl"));
    let mut writer = Sink::<Order>::open(&sink, 0, 1).unwrap();
    run(writer.write(inserts([order(1, "x")]))).unwrap();
    run(writer.flush()).unwrap();
    assert_eq!(directory.text("out.jsonl").lines().count(), 1);
    run(writer.write(inserts([order(2, "x")]))).unwrap();
    drop(writer);
    assert_eq!(directory.text("out.jsonl").lines().count(), 2);
}

#[test]
fn gzip_by_suffix_is_finished_by_the_last_task_to_close() {
    let directory = Directory::new();
    let sink = Csv::sink(directory.path("out.csv.gz"));
    let mut first = Sink::<Order>::open(&sink, 0, 2).unwrap();
    let mut second = Sink::<Order>::open(&sink, 1, 2).unwrap();
    run(async {
        first.close().await.unwrap();
        second.write(inserts([order(1, "a,b")])).await.unwrap();
        second.close().await.unwrap();
    });
    assert_eq!(gunzip(&directory.path("out.csv.gz")), "id,status\n1,\"a,b\"\n");
}

#[test]
fn a_csv_has_one_header_and_reads_back() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Paid {
        id: i64,
        at: EventTime,
        method: Option<String>,
        share: f64,
    }
    let directory = Directory::new();
    let path = directory.path("paid.csv");
    let row = |id| Paid { id, at: EventTime::from_millis(id), method: Some("a\nb;\"c\"".into()), share: 0.5 };
    let rows = [row(i64::MIN), Paid { method: None, ..row(2) }, row(3)];
    write(&Csv::sink(&path).delimiter(b';'), [inserts([]), inserts(rows[..2].to_vec()), inserts(rows[2..].to_vec())])
        .unwrap();
    assert_eq!(directory.text("paid.csv").matches("id;at;method;share").count(), 1);
    assert_eq!(read::<Paid>(&Csv::file(&path).delimiter(b';')).rows, rows);
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Nested {
    orders: Vec<Order>,
}

#[test]
fn what_cannot_be_written_is_told() {
    let directory = Directory::new();
    let folder = write(&JsonLines::sink(directory.path("")), [inserts([1u64])]).unwrap_err().to_string();
    assert!(folder.contains("it is a directory; name a file in it"), "{folder}");
    directory.write("file", "");
    let below = write(&JsonLines::sink(directory.path("file/out.jsonl")), [inserts([1u64])]).unwrap_err().to_string();
    assert!(below.contains("its directory cannot be created"), "{below}");
    let nested = write(&Csv::sink(directory.path("out.csv")), [inserts([Nested { orders: vec![order(1, "x")] }])]);
    let nested = nested.unwrap_err().to_string();
    assert!(nested.contains("a row cannot be written as CSV"), "{nested}");
    let map: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    let keys = write(&JsonLines::sink(directory.path("map.jsonl")), [inserts([map])]).unwrap_err().to_string();
    assert!(keys.contains("a row cannot be written as JSON"), "{keys}");
    let kinds = write(&JsonLines::sink(directory.path("kinds.jsonl")), [batch([("-D", 1u64)])]).unwrap_err();
    assert!(kinds.to_string().contains("please report this"));
}

#[test]
fn names_can_be_given() {
    assert_eq!(Sink::<Order>::endpoint(&JsonLines::sink("x/out.jsonl.gz")).name, "out");
    let upsert = Sink::<Order>::endpoint(&JsonLines::upsert("x/out.jsonl").named("fulfilled"));
    assert_eq!((upsert.name.as_str(), upsert.kind.as_str()), ("fulfilled", "json lines upsert"));
    assert_eq!(upsert.detail, "x/out.jsonl");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_by_flush_and_close() {
    let sink = JsonLines::sink("/dev/full");
    let mut writer = Sink::<Order>::open(&sink, 0, 1).unwrap();
    run(async {
        writer.write(inserts([order(1, "x")])).await.unwrap();
        let error = writer.flush().await.unwrap_err().to_string();
        assert!(error.contains("cannot write `/dev/full`"), "{error}");
        assert!(writer.close().await.is_err());
    });
}

#[test]
fn rows_without_names_get_a_header_so_that_none_is_taken_for_it() {
    let directory = Directory::new();
    let sink = Csv::sink(directory.path("pairs.csv"));
    let pairs = [(1_u64, "a,b".to_string()), (2, "c".to_string())];
    write(&sink, [inserts(pairs.clone())]).unwrap();
    assert_eq!(directory.text("pairs.csv"), "column_1,column_2\n1,\"a,b\"\n2,c\n");
    assert_eq!(read::<(u64, String)>(&Csv::file(directory.path("pairs.csv"))).rows, pairs);
    write(&sink.delimiter(b';'), [inserts([7_u64, 8])]).unwrap();
    assert_eq!(directory.text("pairs.csv"), "column_1\n7\n8\n");
}

#[test]
fn a_field_that_csv_has_no_form_for_is_named() {
    #[derive(Clone, Serialize, Deserialize)]
    struct Basket {
        id: u64,
        items: Vec<u64>,
    }
    let directory = Directory::new();
    let sink = Csv::sink(directory.path("baskets.csv"));
    let refused = write(&sink, [inserts([Basket { id: 1, items: vec![2, 3] }])]).unwrap_err().to_string();
    let told = "a row cannot be written as CSV: its field `items` is a list or an object, and CSV has no form for these; make a text of it with `.map(..)`, or write to `JsonLines::sink(path)`";
    assert_eq!(refused, told);
}
