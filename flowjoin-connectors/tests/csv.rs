//! CSV read: good files, odd files and hostile ones.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Directory, Read, gzip, read, read_partition};
use flowjoin_connectors::Csv;
use flowjoin_core::io::StreamSource;
use flowjoin_core::{Data, EventTime};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    amount: i32,
    note: Option<String>,
}

fn order(id: u64, amount: i32, note: Option<&str>) -> Order {
    Order { id, amount, note: note.map(str::to_string) }
}

fn parse<T: Data>(bytes: impl AsRef<[u8]>, set: impl Fn(Csv) -> Csv) -> Read<T> {
    let directory = Directory::new();
    read(&set(Csv::file(directory.write("orders.csv", bytes))))
}

fn orders(bytes: impl AsRef<[u8]>) -> Read<Order> {
    parse(bytes, |csv| csv)
}

#[test]
fn fields_are_found_by_header() {
    let all = orders("note,id,more,amount\nx,1,?,-5\n,2,,7\n");
    assert_eq!(all.rows, [order(1, -5, Some("x")), order(2, 7, None)]);
    assert_eq!(all.lines, [2, 3]);
    assert!(all.bad.is_empty() && all.error.is_none());
}

#[test]
fn files_without_rows_have_no_rows() {
    for text in ["", "\n", "\r\n", "\u{feff}", "id,amount,note", "id,amount,note\n", "\u{feff}id,amount,note\r\n\r\n"] {
        let all = orders(text);
        assert!(all.rows.is_empty() && all.bad.is_empty() && all.error.is_none(), "{text:?}: {all:?}");
    }
}

#[test]
fn line_ends_marks_and_a_missing_last_end_do_not_matter() {
    for text in [
        "id,amount,note\r\n1,2,\r\n3,4,x\r\n",
        "\u{feff}id,amount,note\n1,2,\n3,4,x",
        "id , amount,\"note\"\n1,2,\n3,4,x",
    ] {
        let all = orders(text);
        assert_eq!(all.rows, [order(1, 2, None), order(3, 4, Some("x"))], "{text:?}: {all:?}");
        assert_eq!(all.lines, [2, 3], "{text:?}");
    }
}

#[test]
fn each_row_has_its_record_as_it_came() {
    let records = ["1,2,\"one, \"\"and\"\"\r\ntwo\"".to_string(), "3,4,".to_string(), "5,6,\"\n\n\"".to_string()];
    for end in ["\n", "\r\n", "\n\n", "\r\n\n\r\n"] {
        let all = orders(format!("\u{feff}id,amount,note{end}{}{end}7,8{end}", records.join(end)));
        assert_eq!((all.texts(), all.bad.len()), (records.iter().map(String::as_str).collect(), 1), "{end:?}: {all:?}");
    }
    // Over the blocks that are read at once.
    let many: Vec<String> = (0..60_000).map(|id| format!("{id},{id},\"of\n {id}\"")).collect();
    assert_eq!(orders(format!("id,amount,note\n{}", many.join("\n"))).texts(), many);
}

#[test]
fn line_numbers_stay_right_over_quoted_ends_and_empty_lines() {
    for end in ["\n", "\r\n"] {
        let text =
            ["id,amount,note", "1,2,\"a", "b\"\"", "\"", "", "2,3,", "", "", "3,4,\"x,y\"", "bad,1,", "5,6,"].join(end);
        let all = orders(text);
        assert_eq!(all.lines, [2, 6, 9, 11], "{end:?}");
        assert_eq!(all.rows[0].note.as_deref(), Some(format!("a{end}b\"{end}").as_str()));
        assert_eq!(all.reasons(), ["10: `id`: `bad` is not an integer, expected u64"]);
        assert_eq!(all.bad[0].raw, b"bad,1,", "without the end of any line");
    }
}

#[test]
fn records_that_are_not_rows_are_bad_and_name_the_field() {
    let all = orders(
        b"id,amount,note\n18446744073709551616,1,\n1,2147483648,\n1,-2147483649,\n-1,1,\n,1,\n1.5,1,\n1e400,1,\n1\n1,2,3,4\n1,2,\xff\xfe\n18446744073709551615,1,ok\n",
    );
    assert_eq!(all.rows, [order(u64::MAX, 1, Some("ok"))]);
    assert_eq!(
        all.reasons(),
        [
            "2: `id`: the number 18446744073709551616 is too large for u64",
            "3: `amount`: the number 2147483648 is too large for i32",
            "4: `amount`: the number -2147483649 is too small for i32",
            "5: `id`: `-1` is not an integer, expected u64",
            "6: `id`: `` is not an integer, expected u64",
            "7: `id`: `1.5` is not an integer, expected u64",
            "8: `id`: `1e400` is not an integer, expected u64",
            "9: missing field `amount`: 1 fields under a header of 3",
            "10: 4 fields under a header of 3; quote a field that holds the delimiter",
            "11: `note`: not UTF-8 at byte 1 of the field",
        ]
    );
    assert_eq!(all.bad[9].raw, b"1,2,\xff\xfe");
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let all = orders("ident,amount,note\n1,2,x\n");
    assert_eq!(all.reasons(), ["2: missing field `id`; the header has `ident`, `amount`, `note`"]);
    let all = orders("id,note\n1,x\n");
    assert_eq!(all.reasons(), ["2: missing field `amount`; the header has `id`, `note`"]);
}

#[test]
fn a_quote_left_open_is_a_bad_record_and_not_a_long_field() {
    let all = orders("id,amount,note\n1,2,\"x\n2,3,y\n3,4,z\n");
    assert_eq!(all.reasons(), ["2: the file ends within a quoted field; a quote is left open"]);
    assert_eq!(all.bad[0].raw, b"1,2,\"x\n2,3,y\n3,4,z");
    for closed in ["1,2,\"x\"", "1,2,\"x\"\"\"", "1,2,5\" pipe", "1,2,\"\"", "1,2,"] {
        assert_eq!(orders(format!("id,amount,note\n{closed}")).rows.len(), 1, "{closed}");
    }
    assert!(orders("id,amount,\"note\n1,2,x\n").error().contains("left open"));
}

#[test]
fn null_texts_are_chosen_and_count_for_options_only() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Land {
        code: String,
        people: Option<u64>,
        name: Option<String>,
    }
    let land =
        |code: &str, people, name: Option<&str>| Land { code: code.into(), people, name: name.map(str::to_string) };
    let text = "code,people,name\nNA,3,\n,NA,NA\n";
    let all = parse::<Land>(text, |csv| csv.nulls(["NA"]));
    assert_eq!(all.rows, [land("NA", Some(3), Some("")), land("", None, None)]);
    let all = parse::<Land>(text, |csv| csv.nulls(["NA", ""]));
    assert_eq!(all.rows, [land("NA", Some(3), None), land("", None, None)]);
    let all = parse::<Land>(text, |csv| csv);
    assert_eq!(all.rows, [land("NA", Some(3), None)]);
    assert_eq!(all.reasons(), ["3: `people`: `NA` is not an integer, expected u64"]);
}

#[test]
fn all_flat_types_are_read() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Card,
        Cash,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Key(u128);
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Rest {
        at: EventTime,
        big: Option<u64>,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Wide {
        key: Key,
        kind: Kind,
        ok: bool,
        share: f64,
        letter: char,
        when: EventTime,
        #[serde(flatten)]
        rest: Rest,
    }
    let text = "key,kind,ok,share,letter,when,at,big\n\
                340282366920938463463374607431768211455,cash,True,1.5,é,2013-01-01T10:00:00Z,1357034400000,18446744073709551615\n\
                1,card,false,-inf,x,1357034400000,2013-01-01T10:00:00Z,\n\
                1,card,false,1,x,1,1,18446744073709551616\n\
                1,card,false,1e400,x,1,1,1\n\
                1,cheque,false,1,x,1,1,1\n\
                1,card,maybe,1,x,1,1,1\n\
                1,card,true,1,x,yesterday,1,1\n\
                1,card,true,1,x,18446744073709551615,1,1\n";
    let all = parse::<Wide>(text, |csv| csv);
    let at = EventTime::from_millis(1_357_034_400_000);
    let first = Wide {
        key: Key(u128::MAX),
        kind: Kind::Cash,
        ok: true,
        share: 1.5,
        letter: 'é',
        when: at,
        rest: Rest { at, big: Some(u64::MAX) },
    };
    assert_eq!(all.rows[0], first);
    assert_eq!((all.rows[1].when, all.rows[1].rest.big, all.rows[1].share), (at, None, f64::NEG_INFINITY));
    let reasons = all.reasons();
    assert!(reasons[0].contains("invalid type: string \"18446744073709551616\", expected u64"), "{}", reasons[0]);
    assert_eq!(reasons[1], "5: `share`: the number 1e400 is too large for a float");
    assert!(reasons[2].starts_with("6: `kind`: unknown variant `cheque`"), "{}", reasons[2]);
    assert_eq!(reasons[3], "7: `ok`: `maybe` is neither `true` nor `false`");
    assert!(reasons[4].starts_with("8: `when`: `yesterday` is not a time"), "{}", reasons[4]);
    assert!(reasons[5].starts_with("9: `when`: invalid value"), "{}", reasons[5]);
    assert_eq!(reasons.len(), 6);
}

#[test]
fn files_without_a_header_are_given_one() {
    let all = parse::<Order>("1;2;x\n3;4;\n", |csv| csv.headers(["id", "amount", "note"]).delimiter(b';'));
    assert_eq!(all.rows, [order(1, 2, Some("x")), order(3, 4, None)]);
    assert_eq!(all.lines, [1, 2]);
    let all = parse::<(u64, i32)>("1,2\n", |csv| csv.headers(["a", "b"]));
    assert_eq!(all.rows, [(1, 2)]);
}

#[test]
fn a_record_beyond_the_limit_stops_the_flow() {
    let long = format!("id,amount,note\n1,2,x\n1,2,\"{}\n", "y\n".repeat(500_000));
    for limit in [100, 200_000] {
        let all = parse::<Order>(&long, |csv| csv.record_bytes_max(limit));
        assert_eq!(all.rows.len(), 1, "the row before is delivered");
        let error = all.error();
        assert!(error.contains("orders.csv:3 is longer than") && error.contains("quote left open"), "{error}");
    }
}

#[test]
fn large_files_are_read_block_by_block() {
    let directory = Directory::new();
    let mut text = "id,amount,note\n".to_string();
    for id in 0..50_000 {
        text.push_str(&format!("{id},{},\"n{}\n\"\n", id % 7, "z".repeat(id % 50)));
    }
    text.push_str("x,1,bad\n");
    let source = Csv::file(directory.write("orders.csv.gz", gzip(text.as_bytes())));
    assert_eq!(StreamSource::<Order>::endpoint(&source).name, "orders");
    let all = read_partition::<Order>(&source, 0, 1000);
    assert!(all.rows.iter().map(|order| order.id).eq(0..50_000));
    assert!(all.lines.iter().copied().eq((0..50_000).map(|id| 2 + 2 * id)));
    assert_eq!(all.bad[0].raw, b"x,1,bad");
    assert_eq!(all.bad[0].position, Some(100_002));
}

#[test]
fn gzip_that_ends_in_the_middle_gives_the_rows_before_and_one_bad_record() {
    let directory = Directory::new();
    let text: String = (0..10_000).map(|id| format!("{id},{},\n", id * 7919 % 1000)).collect();
    let whole = gzip(format!("id,amount,note\n{text}").as_bytes());
    for cut in [whole.len() / 2, whole.len() - 1] {
        let all = read_partition::<Order>(&Csv::file(directory.write("orders.csv.gz", &whole[..cut])), 0, 1000);
        let [bad] = &all.bad[..] else { panic!("{:?}", all.reasons()) };
        assert!(bad.reason.contains("ends in the middle"), "{bad}");
        assert!(all.error.is_none() && all.rows.len() > 1_000);
        assert!(all.rows.iter().map(|order| order.id).eq(0..all.rows.len() as u64));
    }
    // Also where it is the header that is damaged.
    for cut in [0, 5] {
        let nothing = read::<Order>(&Csv::file(directory.write("orders.csv.gz", &whole[..cut])));
        assert!(nothing.reasons()[0].contains("ends in the middle"), "{:?}", nothing.reasons());
        assert!(nothing.error.is_none() && nothing.bad.len() == 1, "{nothing:?}");
    }
    let together = orders("\u{feff}id,amount,note\n1,2,\n\u{feff}3,4,x\n5,6,\n");
    assert_eq!(together.rows, [order(1, 2, None), order(5, 6, None)]);
    assert!(together.reasons()[0].contains("the record begins with a byte-order mark"), "{:?}", together.reasons());
    let hidden = read::<Order>(&Csv::file(directory.write("orders.csv", &whole))).error();
    assert!(hidden.contains("give it a name that ends in `.gz`"), "{hidden}");
}

#[test]
fn a_header_without_any_column_of_the_row_is_refused_with_or_without_rows() {
    for (text, first) in [("a,b,c", "a,b,c"), ("7,8,x\n", "7,8,x"), ("id;amount;note\n1;2;x\n", "id;amount;note")] {
        let directory = Directory::new();
        let csv = Csv::file(directory.write("orders.csv", text));
        let Err(error) = StreamSource::<Order>::open(&csv, 0) else { panic!("{text:?} is read") };
        let error = error.to_string();
        assert!(error.contains(&format!("is `{first}`, and none of these is a column of the row (id, amount, note)")));
        assert!(error.contains("`.headers([..])`") && error.contains("`.delimiter(..)`"), "{error}");
    }
    // One column of it is enough to say that it is a header.
    assert_eq!(orders("note,other\n").rows, []);
}
