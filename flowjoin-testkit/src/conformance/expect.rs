//! What a step must give, read from its `expect`.

use std::collections::BTreeMap;

use flowjoin_core::RowKind;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::cell::{CellRow, cells};
use super::engine::{AlignmentView, OutRow, SideRow, Status};
use super::model::{Case, Step};

/// What a step must give. Of what is optional here, none means that nothing is asserted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The main output; the times only where they are asserted.
    pub out: Vec<ExpectedRow>,
    /// Rows given up as late, left and right.
    pub late: [Vec<SideRow>; 2],
    /// The watermarks sent on.
    pub watermarks: Option<Vec<i64>>,
    /// The states sent on.
    pub statuses: Option<Vec<Status>>,
    /// Rows held, one number an input.
    pub state_rows: Option<Vec<u64>>,
    /// The state of an alignment.
    pub alignment: Option<AlignmentView>,
}

/// A row that must come out; its time is none where it is not asserted.
pub type ExpectedRow = OutRow;

impl Expected {
    /// What a step of a case must give.
    ///
    /// # Errors
    /// If it asserts something that nothing here can compare; the text is the reason.
    pub fn of(case: &Case, step: &Step) -> Result<Expected, String> {
        let written: Written = match &step.expect {
            None => Written::default(),
            Some(value) => serde_json::from_value(value.clone()).map_err(|e| format!("`expect`: {e}"))?,
        };
        let is_strict = |what: &str| case.strict.iter().any(|name| name == what);
        if let Some(name) = written.other.keys().next() {
            return Err(format!("nothing here compares the assertion `{name}`"));
        }
        if let Some(name) = case.strict.iter().find(|name| !matches!(name.as_str(), "watermark" | "status")) {
            return Err(format!("nothing here observes `{name}`"));
        }
        let [late_left, late_right] = [written.side.late_left, written.side.late_right].map(Vec::from_iter);
        if let Some(name) = written.side.other.keys().next() {
            return Err(format!("nothing here compares the side output `{name}`"));
        }
        let state = written.state.unwrap_or_default();
        if let Some(name) = state.other.keys().next() {
            return Err(format!("nothing here compares the state `{name}`"));
        }
        Ok(Expected {
            out: written.out.into_iter().map(WrittenRow::into_out).collect(),
            late: [late_left, late_right].map(|rows| rows.into_iter().map(WrittenSide::into_side).collect()),
            watermarks: one_or_many(written.watermark.as_ref(), is_strict("watermark"))?,
            statuses: one_or_many(written.status.as_ref(), is_strict("status"))?
                .map(|statuses: Vec<WrittenStatus>| statuses.into_iter().map(WrittenStatus::into_status).collect()),
            state_rows: state.rows,
            alignment: state.max_allowed.map(|max_allowed| AlignmentView { max_allowed, paused: state.paused }),
        })
    }
}

// Absent is no assertion, or none of it if strict; null is none of it; else one value or a list.
fn one_or_many<T: serde::de::DeserializeOwned>(
    written: Option<&Option<Value>>,
    strict: bool,
) -> Result<Option<Vec<T>>, String> {
    let list = match written {
        None => return Ok(strict.then(Vec::new)),
        Some(None) => return Ok(Some(Vec::new())),
        Some(Some(Value::Array(values))) => Value::Array(values.clone()),
        Some(Some(value)) => Value::Array(vec![value.clone()]),
    };
    serde_json::from_value(list).map(Some).map_err(|error| format!("`expect`: {error}"))
}

#[derive(Default, Deserialize)]
struct Written {
    #[serde(default)]
    out: Vec<WrittenRow>,
    #[serde(default)]
    side: WrittenSides,
    #[serde(default, deserialize_with = "present")]
    watermark: Option<Option<Value>>,
    #[serde(default, deserialize_with = "present")]
    status: Option<Option<Value>>,
    #[serde(default)]
    state: Option<WrittenState>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

// Keeps apart a field that is absent (none) and one that is null (some none).
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Value>>, D::Error> {
    Option::<Value>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct WrittenRow {
    kind: RowKind,
    row: Vec<Value>,
    #[serde(default)]
    ts: Option<i64>,
}

impl WrittenRow {
    fn into_out(self) -> OutRow {
        OutRow { kind: self.kind, row: cells(&self.row), ts: self.ts }
    }
}

#[derive(Default, Deserialize)]
struct WrittenSides {
    #[serde(default)]
    late_left: Vec<WrittenSide>,
    #[serde(default)]
    late_right: Vec<WrittenSide>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct WrittenSide {
    row: Vec<Value>,
    #[serde(default)]
    ts: Option<i64>,
}

impl WrittenSide {
    fn into_side(self) -> SideRow {
        let row: CellRow = cells(&self.row);
        SideRow { row, ts: self.ts }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenStatus {
    Idle,
    Active,
}

impl WrittenStatus {
    fn into_status(self) -> Status {
        match self {
            WrittenStatus::Idle => Status::Idle,
            WrittenStatus::Active => Status::Active,
        }
    }
}

#[derive(Default, Deserialize)]
struct WrittenState {
    #[serde(default)]
    rows: Option<Vec<u64>>,
    #[serde(default)]
    max_allowed: Option<i64>,
    #[serde(default)]
    paused: Vec<usize>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(strict: &str, expect: &str) -> Result<Expected, String> {
        let text =
            format!(r#"{{"id":"x","operator":"o","strict":{strict},"steps":[{{"op":"idle","expect":{expect}}}]}}"#);
        let case: Case = serde_json::from_str(&text).unwrap();
        Expected::of(&case, &case.steps[0])
    }

    #[test]
    fn absent_null_one_and_many_watermarks_are_four_things() {
        let watermarks = |strict, expect| expected(strict, expect).unwrap().watermarks;
        assert_eq!(watermarks("[]", "{}"), None);
        assert_eq!(watermarks(r#"["watermark"]"#, "{}"), Some(vec![]));
        assert_eq!(watermarks("[]", r#"{"watermark":null}"#), Some(vec![]));
        assert_eq!(watermarks("[]", r#"{"watermark":5}"#), Some(vec![5]));
        assert_eq!(watermarks("[]", r#"{"watermark":[5,9223372036854775807]}"#), Some(vec![5, i64::MAX]));
    }

    #[test]
    fn all_of_an_expectation_is_read() {
        let all = expected(
            r#"["status"]"#,
            r#"{"out":[{"kind":"-U","row":[1],"ts":3}],"side":{"late_right":[{"row":["x"]}]},"state":{"rows":[1,0]}}"#,
        );
        let all = all.unwrap();
        assert_eq!(all.out[0].to_string(), "-U[1] @3");
        assert_eq!((all.late[0].len(), all.late[1].len()), (0, 1));
        assert_eq!((all.statuses, all.state_rows), (Some(vec![]), Some(vec![1, 0])));
        let group = expected("[]", r#"{"state":{"max_allowed":7,"paused":[1]},"status":"idle"}"#).unwrap();
        assert_eq!(group.alignment, Some(AlignmentView { max_allowed: 7, paused: vec![1] }));
        assert_eq!(group.statuses, Some(vec![Status::Idle]));
    }

    #[test]
    fn an_assertion_that_nothing_compares_is_no_pass() {
        for (strict, expect, reason) in [
            ("[]", r#"{"mood":1}"#, "nothing here compares the assertion `mood`"),
            ("[]", r#"{"lookups":1}"#, "nothing here compares the assertion `lookups`"),
            (r#"["lookups"]"#, "{}", "nothing here observes `lookups`"),
            ("[]", r#"{"side":{"unmatched_left":[]}}"#, "nothing here compares the side output `unmatched_left`"),
            ("[]", r#"{"state":{"bytes":1}}"#, "nothing here compares the state `bytes`"),
        ] {
            assert_eq!(expected(strict, expect).unwrap_err(), reason);
        }
        assert!(expected("[]", r#"{"watermark":"soon"}"#).unwrap_err().starts_with("`expect`: invalid type"));
    }
}
