use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::*;

// Each row is equal to itself and to none of the others, and rows that are equal have one print.
fn all_differ<T: Data + std::fmt::Debug>(rows: &[T]) {
    let mut equality = Equality::default();
    for (at, one) in rows.iter().enumerate() {
        for (beside, other) in rows.iter().enumerate() {
            assert_eq!(equality.holds(one, other), at == beside, "{one:?} and {other:?}");
            assert_eq!(equality.print(one) == equality.print(other), at == beside, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn rows_are_equal_when_all_their_fields_are() {
    let row = |name: &str, rate: f64| (1u64, name.to_string(), Some(rate));
    all_differ(&[row("a", 0.5), row("b", 0.5), row("ab", 0.5), row("a", f64::NAN), row("a", 0.0), row("a", -0.0)]);
    all_differ(&[(vec![], vec![0u8]), (vec![0u8], vec![]), (vec![], vec![]), (vec![0, 0], vec![0])]);
    all_differ(&[None, Some(None), Some(Some(false)), Some(Some(true))]);
    all_differ(&[("".to_string(), 'a'), ("a".to_string(), 'a'), ("".to_string(), 'b')]);
    all_differ(&[(i128::MIN, u128::MAX), (i128::MAX, u128::MAX), (i128::MIN, 0)]);
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Sparse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    third: Vec<u8>,
}

#[test]
fn a_field_that_is_left_out_is_not_taken_for_the_next_one() {
    let one = Some(1);
    all_differ(&[
        Sparse::default(),
        Sparse { first: one, ..Sparse::default() },
        Sparse { second: one, ..Sparse::default() },
        Sparse { first: one, second: one, third: vec![] },
        Sparse { third: vec![18, 7, 1], ..Sparse::default() },
    ]);
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    id: u64,
    #[serde(flatten)]
    inner: Sparse,
    #[serde(flatten)]
    more: BTreeMap<String, u8>,
}

#[test]
fn what_is_flattened_is_compared() {
    let open = |id, first, more: &[(&str, u8)]| Open {
        id,
        inner: Sparse { first, ..Sparse::default() },
        more: more.iter().map(|&(name, value)| (name.to_string(), value)).collect(),
    };
    all_differ(&[
        open(1, None, &[]),
        open(2, None, &[]),
        open(1, Some(1), &[]),
        open(1, None, &[("a", 1)]),
        open(1, None, &[("b", 1)]),
        open(1, None, &[("a", 1), ("b", 1)]),
    ]);
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u32),
    Bytes([u8; 4]),
    Text(String),
    Wide { width: u8 },
    High { height: u8 },
    Nothing,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Wide { width: u8 },
    High { width: u8 },
    Sparse(Sparse),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", content = "of")]
enum Beside {
    A(u8),
    B(u8),
    C(u8, u8),
    D { d: u8 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Plain {
    A(u8),
    B(u8),
    C(u8, u8),
    D { d: u8 },
    E,
    F,
}

#[test]
fn the_variants_of_an_enum_differ_however_it_is_tagged() {
    all_differ(&[
        Untagged::Number(1),
        Untagged::Bytes([1, 0, 0, 0]),
        Untagged::Text("\u{1}\0\0\0".to_string()),
        Untagged::Wide { width: 1 },
        Untagged::High { height: 1 },
        Untagged::Nothing,
    ]);
    let sparse = Sparse { second: Some(1), ..Sparse::default() };
    all_differ(&[
        Tagged::Wide { width: 1 },
        Tagged::High { width: 1 },
        Tagged::Sparse(sparse),
        Tagged::Sparse(Sparse { first: Some(1), ..Sparse::default() }),
    ]);
    all_differ(&[Beside::A(1), Beside::B(1), Beside::C(1, 1), Beside::D { d: 1 }]);
    all_differ(&[Plain::A(1), Plain::B(1), Plain::C(1, 1), Plain::D { d: 1 }, Plain::E, Plain::F]);
}

#[test]
fn a_map_has_no_order() {
    let map = |keys: &[u32]| keys.iter().map(|&key| (key, vec![key])).collect::<HashMap<u32, Vec<u32>>>();
    let forward: Vec<u32> = (0..100).collect();
    let backward: Vec<u32> = (0..100).rev().collect();
    let mut equality = Equality::default();
    // Each map of the standard library hashes in its own way, so these two differ in order.
    let (one, other) = (map(&forward), map(&backward));
    assert!(!one.keys().eq(other.keys()), "this test needs two orders");
    assert!(equality.holds(&one, &other));
    assert_eq!(equality.print(&one), equality.print(&other));
    all_differ(&[map(&[]), map(&[1]), map(&[2]), map(&[1, 2])]);
    let nested = |key, value| HashMap::from([(key, HashMap::from([(value, 1u8)]))]);
    all_differ(&[nested(1, 2), nested(2, 1), HashMap::new()]);
}

#[test]
fn json_within_a_row_is_compared() {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    all_differ(&["null", "1", "1.0", "-1", "\"1\"", "[]", "[1]", "[[1]]", "[1,1]", "{}", r#"{"a":1}"#].map(json));
    assert!(equal_rows(&json(r#"{"a":1,"b":{"c":2,"d":3}}"#), &json(r#"{"b":{"d":3,"c":2},"a":1}"#)));
}

#[test]
#[should_panic(expected = "cannot be compared with others, as its `Serialize` refuses to write it: the enum variant")]
fn a_row_that_serde_refuses_to_write_is_not_taken_for_another() {
    #[derive(Clone, Serialize, Deserialize)]
    enum Event {
        Known,
        #[serde(skip)]
        Unknown,
    }
    assert!(!equal_rows(&Event::Known, &Event::Unknown));
}
