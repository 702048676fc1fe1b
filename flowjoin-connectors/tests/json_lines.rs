//! JSON Lines read: good files, odd files and hostile ones.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Directory, Read, gzip, read, read_partition};
use flowjoin_connectors::{JsonLines, OnBad};
use flowjoin_core::EventTime;
use flowjoin_core::io::StreamSource;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    #[serde(default)]
    amount: i64,
    note: Option<String>,
}

fn order(id: u64) -> Order {
    Order { id, amount: 0, note: None }
}

fn lines(bytes: impl AsRef<[u8]>) -> Read<Order> {
    let directory = Directory::new();
    read(&JsonLines::file(directory.write("orders.jsonl", bytes)))
}

#[test]
fn each_line_is_a_row_with_its_line_number() {
    let all =
        lines("{\"id\":1}\n{\"id\":2,\"amount\":-5,\"note\":\"x\"}\n\n  \n{\"id\":3,\"note\":null,\"more\":[1,{}]}\n");
    assert_eq!(all.rows, [order(1), Order { id: 2, amount: -5, note: Some("x".into()) }, order(3)]);
    assert_eq!(all.lines, [1, 2, 5]);
    assert!(all.bad.is_empty() && all.error.is_none());
}

#[test]
fn files_without_rows_have_no_rows() {
    for text in ["", "\n", "\r\n\r\n", "\u{feff}", "\u{feff}\n", "   "] {
        let all = lines(text);
        assert!(all.rows.is_empty() && all.bad.is_empty() && all.error.is_none(), "{text:?}: {all:?}");
    }
}

#[test]
fn line_ends_marks_and_a_missing_last_end_do_not_matter() {
    for text in ["{\"id\":1}\r\n{\"id\":2}\r\n", "\u{feff}{\"id\":1}\n{\"id\":2}", "{\"id\":1}\n{\"id\":2}\r"] {
        assert_eq!(lines(text).rows, [order(1), order(2)], "{text:?}");
    }
    // Files that were put together, each with its mark.
    assert_eq!(lines("\u{feff}{\"id\":1}\n\u{feff}{\"id\":2}\n\u{feff}").rows, [order(1), order(2)]);
}

#[test]
fn each_row_has_its_line_as_it_came() {
    let [first, second] = [r#"{ "id" :1,"more":[1,{}]} "#, r#"{"id":2,  "note":"\u00e9 é"}"#];
    let texts = [
        format!("{first}\n{{}}\n\n{second}\n"),
        format!("\u{feff}{first}\r\n[]\r\n{second}"),
        format!("{first}\n\u{feff}{second}\r"),
    ];
    let directory = Directory::new();
    for text in texts {
        let source = JsonLines::file(directory.write("orders.jsonl", &text));
        assert_eq!(read::<Order>(&source).texts(), [first, second], "{text:?}");
        let source = JsonLines::file(directory.write("orders.jsonl.gz", gzip(text.as_bytes())));
        assert_eq!(read_partition::<Order>(&source, 0, 1_000).texts(), [first, second], "{text:?}");
    }
}

#[cfg(unix)]
#[test]
fn each_row_of_a_pipe_has_its_line_as_it_came() {
    let directory = Directory::new();
    let pipe = directory.path("orders.pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let lines: Vec<String> = (0..2_000).map(|id| format!("{{\"id\":{id}, \"more\":{{}}}}")).collect();
    let text = lines.join("\n{}\n");
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, text)
    });
    let all = read_partition::<Order>(&JsonLines::file(pipe), 0, 100);
    writer.join().unwrap().unwrap();
    assert_eq!(
        (all.texts(), all.rows.len(), all.bad.len()),
        (lines.iter().map(String::as_str).collect(), 2_000, 1_999)
    );
}

#[test]
fn integers_of_64_bits_are_exact() {
    let all = lines(
        "{\"id\":18446744073709551615,\"amount\":-9223372036854775808}\n\
         {\"id\":9007199254740993,\"amount\":9223372036854775807}\n",
    );
    assert_eq!((all.rows[0].id, all.rows[0].amount), (u64::MAX, i64::MIN));
    assert_eq!((all.rows[1].id, all.rows[1].amount), ((1 << 53) + 1, i64::MAX));
}

#[test]
fn numbers_that_do_not_fit_are_bad_records_that_name_the_field() {
    let all = lines(
        "{\"id\":18446744073709551616}\n\
         {\"id\":1,\"amount\":9223372036854775808}\n\
         {\"id\":1e400}\n\
         {\"id\":1.0}\n\
         {\"id\":-1}\n\
         {\"id\":7}\n",
    );
    assert_eq!(all.rows, [order(7)]);
    assert_eq!(
        all.reasons(),
        [
            "1: `id`: the integer 18446744073709551616 does not fit, expected u64",
            "2: `amount`: invalid value: integer `9223372036854775808`, expected i64",
            "3: `id`: number out of range at column 11",
            "4: `id`: invalid type: floating point `1.0`, expected u64",
            "5: `id`: invalid value: integer `-1`, expected u64",
        ]
    );
}

#[test]
fn what_is_not_a_row_is_a_bad_record_with_its_bytes() {
    let all =
        lines(b"{}\n[1]\n{\"id\":\"1\"}\n{\"id\":1\n\xff\n{\"id\":4,\"x\":\"\xc3\x28\"}\nnull\n{\"id\":1,\"id\":2}\n");
    assert!(all.rows.is_empty());
    assert_eq!(
        all.reasons(),
        [
            "1: missing field `id`",
            "2: this is a list, and a row is an object with the fields `id`, `amount`, `note`",
            "3: `id`: invalid type: string \"1\", expected u64",
            "4: `id`: EOF while parsing an object at column 7",
            "5: not UTF-8 at byte 1 of the line",
            "6: not UTF-8 at byte 14 of the line",
            "7: invalid type: null, expected struct Order",
            "8: `id`: duplicate field `id`",
        ]
    );
    assert_eq!(all.bad[4].raw, b"\xff");
    assert_eq!(all.bad[5].raw, b"{\"id\":4,\"x\":\"\xc3\x28\"}");
}

#[test]
fn nesting_without_end_is_a_bad_record() {
    let all = lines(format!("{{\"id\":1,\"x\":{}\n{{\"id\":2}}\n", "[".repeat(100_000)));
    assert_eq!(all.rows, [order(2)]);
    assert_eq!(all.bad.len(), 1);
}

#[test]
fn nested_values_are_rows_too() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Nested {
        at: EventTime,
        inner: Vec<Order>,
        any: serde_json::Value,
    }
    let directory = Directory::new();
    let text = "{\"at\":\"1970-01-01T00:00:01Z\",\"inner\":[{\"id\":1},{\"id\":2}],\"any\":{\"a\":[]}}\n{\"at\":5,\"inner\":[],\"any\":0}";
    let all = read::<Nested>(&JsonLines::file(directory.write("nested.jsonl", text)));
    assert_eq!(all.rows[0].inner, [order(1), order(2)]);
    assert_eq!(all.rows[0].at, EventTime::from_millis(1_000));
    assert_eq!(all.rows[1].at, EventTime::from_millis(5));
}

#[test]
fn a_line_beyond_the_limit_is_a_bad_record_and_the_next_is_read() {
    let directory = Directory::new();
    for huge in [101, 102, 103, 300_000] {
        let text = format!("{{\"id\":1}}\n{}\n{{\"id\":2}}\n{}", "x".repeat(huge), "y".repeat(huge));
        let path = directory.write("orders.jsonl", text);
        let all = read::<Order>(&JsonLines::file(path).record_bytes_max(100));
        assert_eq!(all.rows, [order(1), order(2)]);
        assert_eq!(all.lines, [1, 3]);
        assert_eq!(all.bad.iter().map(|bad| bad.position).collect::<Vec<_>>(), [Some(2), Some(4)]);
        assert!(all.bad[0].reason.contains("longer than 100 bytes"), "{}", all.bad[0].reason);
        assert!(all.bad[0].raw.len() <= 1024);
    }
    let path = directory.write("exact.jsonl", format!("{:<100}\r\n{:<99}\n", "{\"id\":1}", "{\"id\":2}"));
    assert_eq!(read::<Order>(&JsonLines::file(path).record_bytes_max(100)).rows, [order(1), order(2)]);
}

#[test]
fn gzip_of_several_members_is_one_file() {
    let directory = Directory::new();
    let bytes = [gzip(b"{\"id\":1}\n{\"id\""), gzip(b""), gzip(b":2}\n{\"id\":3}")].concat();
    let source = JsonLines::file(directory.write("orders.jsonl.gz", bytes));
    assert_eq!(StreamSource::<Order>::endpoint(&source).name, "orders");
    assert_eq!(read::<Order>(&source).rows, [order(1), order(2), order(3)]);
}

#[test]
fn gzip_that_ends_in_the_middle_gives_the_rows_before_and_one_bad_record() {
    let directory = Directory::new();
    let text: String = (0..10_000u64).map(|id| format!("{{\"id\":{id},\"amount\":{}}}\n", id * 7919 % 1000)).collect();
    let whole = gzip(text.as_bytes());
    let read = |cut: usize| {
        let path = directory.write("orders.jsonl.gz", &whole[..cut]);
        read_partition::<Order>(&JsonLines::file(&path), 0, 1000)
    };
    for cut in [whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let all = read(cut);
        assert!(all.error.is_none() && all.rows.len() > 1_000, "{cut}: {}", all.rows.len());
        assert!(all.rows.iter().map(|order| order.id).eq(0..all.rows.len() as u64));
        let [bad] = &all.bad[..] else { panic!("{cut}: {:?}", all.reasons()) };
        assert!(bad.origin.ends_with("orders.jsonl.gz") && bad.reason.contains("ends in the middle"), "{bad}");
        assert!(bad.reason.contains(&format!("at or before byte {cut} of the file")), "{bad}");
        // What there is of the line that was cut, and where it is.
        let rest = &text.as_bytes()[text.match_indices('\n').nth(all.rows.len() - 1).unwrap().0 + 1..];
        assert!(rest.starts_with(&bad.raw) && bad.position == Some(all.rows.len() as u64 + 1), "{bad}");
    }
    // It may end before its first row does.
    for cut in [0, 1, 5] {
        let all = read(cut);
        let [bad] = &all.bad[..] else { panic!("{:?}", all.reasons()) };
        assert!(all.error.is_none() && all.rows.is_empty() && bad.position == Some(1), "{cut}: {bad}");
        assert!(bad.reason.contains("orders.jsonl.gz") && bad.reason.contains("ends in the middle"), "{cut}: {bad}");
    }
}

#[test]
fn what_stands_behind_the_end_of_gzip_is_one_bad_record() {
    let directory = Directory::new();
    for (garbage, shown) in [("x", "\"x\""), ("more", "\"more\""), ("garbage, and more of it", "\"garbage, and mor\"")]
    {
        let bytes = [gzip(b"{\"id\":1}\n{\"id\":2}\n"), garbage.as_bytes().to_vec()].concat();
        let path = directory.write("orders.jsonl.gz", bytes);
        let all = read::<Order>(&JsonLines::file(&path));
        assert_eq!((&all.rows[..], all.error.is_none()), (&[order(1), order(2)][..], true));
        let [bad] = &all.bad[..] else { panic!("{:?}", all.reasons()) };
        let told = format!(
            "cut that off, if all rows are there without it: behind the end of what is gzip stands what is not: {shown}"
        );
        assert!(bad.position == Some(3) && bad.reason.ends_with(&told), "{bad}");
    }
}

#[test]
fn what_is_called_gzip_and_is_not_is_bad_and_the_reverse_fails() {
    let directory = Directory::new();
    let not_gzip = read::<Order>(&JsonLines::file(directory.write("orders.jsonl.gz", "{\"id\":1}\n")));
    assert!(not_gzip.reasons()[0].contains("is it gzip") && not_gzip.error.is_none(), "{:?}", not_gzip.reasons());
    let mut header = gzip(b"{\"id\":1}\n");
    header[2] ^= 1;
    let header = read::<Order>(&JsonLines::file(directory.write("header.jsonl.gz", header)));
    assert!(header.reasons()[0].contains("is it gzip") && header.error.is_none(), "{:?}", header.reasons());
    let hidden = read::<Order>(&JsonLines::file(directory.write("orders.jsonl", gzip(b"{\"id\":1}\n")))).error();
    assert!(hidden.contains("give it a name that ends in `.gz`"), "{hidden}");
    let mut damaged = gzip(b"{\"id\":1}\n");
    let crc = damaged.len() - 8;
    damaged[crc] ^= 1;
    let damaged = read::<Order>(&JsonLines::file(directory.write("damaged.jsonl.gz", damaged)));
    assert!(damaged.reasons()[0].contains("damaged.jsonl.gz") && damaged.rows == [order(1)]);
}

#[test]
fn a_missing_file_and_a_directory_are_told_apart() {
    let directory = Directory::new();
    let missing = read::<Order>(&JsonLines::file(directory.path("none.jsonl"))).error();
    assert!(missing.contains("none.jsonl") && missing.contains("check the path"), "{missing}");
    let missing = read::<Order>(&JsonLines::file("no/such.jsonl")).error();
    assert!(missing.contains("looked for from"), "{missing}");
    let folder = read::<Order>(&JsonLines::file(directory.path(""))).error();
    assert!(folder.contains("it is a directory"), "{folder}");
    let none = StreamSource::<Order>::partitions(&JsonLines::files(Vec::<String>::new())).unwrap_err();
    assert!(none.to_string().contains("no files"));
}

#[test]
fn each_file_is_a_partition() {
    let directory = Directory::new();
    let first = directory.write("a.jsonl", "{\"id\":1}\n");
    let second = directory.write("b.jsonl", "{\"id\":2}\n");
    let source = JsonLines::files([first, second]).named("both");
    let endpoint = StreamSource::<Order>::endpoint(&source);
    assert_eq!((endpoint.name.as_str(), endpoint.kind.as_str()), ("both", "json lines"));
    assert_eq!(StreamSource::<Order>::partitions(&source).unwrap(), 2);
    assert_eq!(read_partition::<Order>(&source, 1, 10).rows, [order(2)]);
    assert!(StreamSource::<Order>::open(&source, 2).is_err());
}

#[test]
fn progress_is_in_bytes_of_the_file_as_it_lies_there() {
    let directory = Directory::new();
    let text: String = (0..100_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let zipped = gzip(text.as_bytes());
    let size = zipped.len() as u64;
    let path = directory.write("orders.jsonl.gz", zipped);
    let mut reader = common::open::<Order>(&JsonLines::file(path));
    assert!(reader.done().is_some_and(|(read, of)| read < size && of == size));
    let mut page = flowjoin_core::io::Page::default();
    common::run(reader.read(&mut page, 10)).unwrap();
    let (read, _) = reader.done().unwrap();
    assert!(read > 0 && read < size, "{read} of {size}");
    common::run(reader.read(&mut page, usize::MAX)).unwrap();
    assert_eq!(reader.done(), Some((size, size)));
}

#[test]
fn a_bad_record_stops_the_flow_unless_told_otherwise() {
    let directory = Directory::new();
    let source = JsonLines::file(directory.write("orders.jsonl", "{\"id\":1}\n{}\n"));
    let bad = read::<Order>(&source).bad;
    let error = StreamSource::<Order>::bad_records(&source).unwrap().note(&bad[0]).unwrap_err().to_string();
    assert!(error.contains("orders.jsonl:2: missing field `id`"), "{error}");
    let skipping = source.on_bad(OnBad::Skip);
    StreamSource::<Order>::bad_records(&skipping).unwrap().note(&bad[0]).unwrap();
}

#[test]
fn dead_letters_keep_the_exact_bytes_and_are_there_at_once() {
    let directory = Directory::new();
    let path = directory.write("orders.jsonl", b"{\"note\":\"\\u00e9 \xc3\xa9\"}\n\xff\x00\"\n");
    let source = JsonLines::file(&path).on_bad(OnBad::dead_letter(directory.path("out/bad.jsonl")));
    let bad = read::<Order>(&source).bad;
    for run in 0..2 {
        let mut letters = StreamSource::<Order>::bad_records(&source).unwrap();
        assert_eq!(directory.text("out/bad.jsonl"), "", "emptied when run {run} begins");
        bad.iter().for_each(|record| letters.note(record).unwrap());
        let text = directory.text("out/bad.jsonl");
        let found: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let file = path.display().to_string();
        assert_eq!(
            found,
            [
                serde_json::json!({"file": file, "line": 1, "reason": "missing field `id`",
                    "raw": "{\"note\":\"\\u00e9 é\"}"}),
                serde_json::json!({"file": file, "line": 2, "reason": "not UTF-8 at byte 1 of the line",
                    "raw_hex": "ff0022"}),
            ]
        );
        letters.close().unwrap();
    }
}

#[test]
fn a_source_is_not_its_own_dead_letter_file() {
    let directory = Directory::new();
    let path = directory.write("orders.jsonl", "{\"id\":1}\n");
    let source = JsonLines::file(&path).on_bad(OnBad::DeadLetter(path.clone()));
    assert!(StreamSource::<Order>::bad_records(&source).is_err());
    assert_eq!(directory.text("orders.jsonl"), "{\"id\":1}\n");
}

#[test]
fn a_change_of_a_table_that_is_read_as_a_row_says_how_it_is_opened() {
    let directory = Directory::new();
    let after = r#"{"before":null,"after":{"id":1},"op":"c"}"#;
    for (line, door) in [
        (after.to_string(), "flow.table(Debezium::json(path))"),
        (format!(r#"{{"schema":{{}},"payload":{after}}}"#), "flow.table(Debezium::json(path))"),
        (format!(r#"{{"key":{{"id":1}},"value":{after}}}"#), "flow.table(Debezium::json(path))"),
        (r#"{"key":1,"value":null}"#.to_string(), "flow.table(JsonLines::table(path))"),
        (r#"{"op":"-D","row":{"id":1}}"#.to_string(), "flow.table(JsonLines::table(path))"),
    ] {
        let all = read::<Order>(&JsonLines::file(directory.write("orders.jsonl", &line)));
        assert!(all.reasons()[0].contains(door), "{line}: {:?}", all.reasons());
    }
    let plain = read::<Order>(&JsonLines::file(directory.write("orders.jsonl", r#"{"name":1}"#)));
    assert!(!plain.reasons()[0].contains("looks like"), "{:?}", plain.reasons());
}

#[test]
fn a_change_of_a_row_is_no_fact_though_it_can_be_read_as_one() {
    let text =
        "{\"op\":\"+I\",\"id\":1}\n{\"op\":\"-U\",\"id\":2}\n{\"id\":3, \"op\" : \"+U\"}\n{\"op\":\"-D\",\"id\":4}\n";
    let all = lines(text);
    assert_eq!(all.rows, [order(1)]);
    let reasons = all.reasons();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    for (reason, (line, op)) in reasons.iter().zip([(2, "-U"), (3, "+U"), (4, "-D")]) {
        assert!(reason.starts_with(&format!("{line}: `op` is \"{op}\", so the line says that ")), "{reason}");
        assert!(reason.contains("flow.table(JsonLines::table(path))"), "{reason}");
    }
    // A writer may escape any letter.
    let escaped = [r#"{"op":"\u002BU","id":1}"#, r#"{"\u006fp":"-D","id":2}"#, r#"{"op":"\u002DD","id":3}"#];
    let all = lines(escaped.join("\n"));
    assert_eq!((all.rows.len(), all.bad.len()), (0, 3), "{:?}", all.reasons());
    assert!(all.reasons()[0].starts_with("1: `op` is \"+U\", so the line says that "), "{:?}", all.reasons());
    // Other words, other places, and a text that only looks so.
    let facts = [
        r#"{"op":"sell","id":1}"#,
        r#"{"op":7,"id":2}"#,
        r#"{"op":null,"id":3}"#,
        r#"{"id":4,"more":{"op":"-D"}}"#,
        r#"{"id":5,"note":"{\"op\":\"-D\"}"}"#,
        r#"{"id":6,"more":["op","-D"],"note":"caf\u00e9"}"#,
    ];
    let all = lines(facts.join("\n"));
    assert_eq!((all.rows.len(), all.bad.len()), (6, 0), "{:?}", all.reasons());
}

#[test]
fn a_row_with_an_op_of_its_own_or_of_any_fields_is_a_fact_whatever_that_says() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Trade {
        op: String,
        id: u64,
    }
    let directory = Directory::new();
    let path = directory.write("trades.jsonl", "{\"op\":\"-D\",\"id\":1}\n");
    assert_eq!(read::<Trade>(&JsonLines::file(&path)).rows, [Trade { op: "-D".to_string(), id: 1 }]);
    let any = read::<serde_json::Value>(&JsonLines::file(&path)).rows;
    assert_eq!(any, [serde_json::json!({"op": "-D", "id": 1})]);
}

#[test]
fn a_list_is_no_row_of_named_fields() {
    let all = lines("[1,2,null]\n {\"id\":7}\n [ [1] ]");
    assert_eq!(all.rows, [order(7)]);
    let reason = "this is a list, and a row is an object with the fields `id`, `amount`, `note`";
    assert_eq!(all.reasons(), [format!("1: {reason}"), format!("3: {reason}")]);
    // The rows of a tuple are lists.
    let directory = Directory::new();
    let pairs = read::<(u64, String)>(&JsonLines::file(directory.write("pairs.jsonl", "[1,\"a\"]\n")));
    assert_eq!(pairs.rows, [(1, "a".to_string())]);
}

#[test]
fn csv_that_is_read_as_json_says_how_to_open_it() {
    let all = lines("id,amount,note\n1;2;x\n\"a\",1\n\"a,b\"\nid amount");
    let hinted: Vec<bool> =
        all.reasons().iter().map(|reason| reason.contains("open the file with `Csv::file(path)`")).collect();
    assert_eq!(hinted, [true, true, true, false, false], "{:?}", all.reasons());
}

// The shortest text of a double is that of no other, by the definition of what `{}` prints.
#[test]
fn a_float_is_the_number_that_stands_there() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(seed)
    };
    let ordinary = (0..5_000).map(|n| f64::from(n) * 7.0 / 61.0 + 0.922_188_562_469_887_5);
    let floats: Vec<f64> = (0..5_000).map(|_| next()).filter(|float| float.is_finite()).chain(ordinary).collect();
    let text: Vec<String> = floats.iter().map(f64::to_string).collect();
    let directory = Directory::new();
    let all: Read<f64> = read(&JsonLines::file(directory.write("floats.jsonl", text.join("\n"))));
    assert!(all.rows.iter().zip(&floats).all(|(read, float)| read.to_bits() == float.to_bits()));
    assert_eq!(all.rows.len(), floats.len());
}
