//! What a step must give, read from its `expect`.

use flowjoin_core::RowKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cell::{CellRow, cells};
use super::engine::{AlignmentView, OutRow, SideRow, Status};
use super::model::{Case, Step, Strict};

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
        let written = step.expect.clone().unwrap_or_default();
        if written.lookups.is_some() || case.strict.contains(&Strict::Lookups) {
            return Err("nothing here counts look-ups".to_string());
        }
        let is_strict = |what: Strict| case.strict.contains(&what);
        let state = written.state.unwrap_or_default();
        let late = [written.side.late_left, written.side.late_right];
        Ok(Expected {
            out: written.out.into_iter().map(WrittenRow::into_out).collect(),
            late: late.map(|rows| rows.into_iter().map(WrittenSide::into_side).collect()),
            watermarks: written.watermark.or(is_strict(Strict::Watermark).then(OneOrMany::default)).map(|list| list.0),
            statuses: written.status.or(is_strict(Strict::Status).then(OneOrMany::default)).map(|list| list.0),
            state_rows: state.rows,
            alignment: state.max_allowed.map(|max_allowed| AlignmentView { max_allowed, paused: state.paused }),
        })
    }
}

/// What a step must give, as it is written. What is absent is not asserted, except that no `out` is no output.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenExpect {
    #[serde(default)]
    out: Vec<WrittenRow>,
    #[serde(default)]
    side: WrittenSides,
    #[serde(default, deserialize_with = "present")]
    watermark: Option<OneOrMany<i64>>,
    #[serde(default, deserialize_with = "present")]
    status: Option<OneOrMany<Status>>,
    #[serde(default)]
    state: Option<WrittenState>,
    #[serde(default)]
    lookups: Option<Value>,
}

// Null is none, a value is one.
#[derive(Clone, Debug)]
struct OneOrMany<T>(Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = match Value::deserialize(deserializer)? {
            Value::Null => Vec::new(),
            Value::Array(values) => values,
            value => vec![value],
        };
        serde_json::from_value(Value::Array(list)).map(OneOrMany).map_err(serde::de::Error::custom)
    }
}

// Keeps apart a field that is absent and one that is null.
fn present<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    kind: RowKind,
    row: WrittenValues,
    #[serde(default)]
    ts: Option<i64>,
}

// The values of a row, of which there is one at least.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Vec<Value>")]
struct WrittenValues(CellRow);

impl TryFrom<Vec<Value>> for WrittenValues {
    type Error = &'static str;

    fn try_from(row: Vec<Value>) -> Result<WrittenValues, &'static str> {
        if row.is_empty() { Err("a row without values") } else { Ok(WrittenValues(cells(&row))) }
    }
}

impl WrittenRow {
    fn into_out(self) -> OutRow {
        OutRow { kind: self.kind, row: self.row.0, ts: self.ts }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSides {
    #[serde(default)]
    late_left: Vec<WrittenSide>,
    #[serde(default)]
    late_right: Vec<WrittenSide>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSide {
    row: WrittenValues,
    #[serde(default)]
    ts: Option<i64>,
}

impl WrittenSide {
    fn into_side(self) -> SideRow {
        SideRow { row: self.row.0, ts: self.ts }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenState {
    #[serde(default)]
    rows: Option<Vec<u64>>,
    #[serde(default)]
    max_allowed: Option<i64>,
    #[serde(default)]
    paused: Vec<usize>,
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
        let reason = "nothing here counts look-ups";
        assert_eq!(expected("[]", r#"{"lookups":1}"#).unwrap_err(), reason);
        assert_eq!(expected(r#"["lookups"]"#, "{}").unwrap_err(), reason);
    }

    #[test]
    fn an_assertion_that_is_not_of_the_format_is_refused() {
        for (expect, reason) in [
            (r#"{"mood":1}"#, "unknown field `mood`"),
            (r#"{"side":{"unmatched_left":[]}}"#, "unknown field `unmatched_left`"),
            (r#"{"state":{"bytes":1}}"#, "unknown field `bytes`"),
            (r#"{"out":[{"kind":"+I","row":[]}]}"#, "a row without values"),
            (r#"{"out":[{"kind":"+I","row":[1],"tts":1}]}"#, "unknown field `tts`"),
            (r#"{"watermark":"soon"}"#, "invalid type"),
            (r#"{"status":"asleep"}"#, "unknown variant `asleep`"),
        ] {
            let error = serde_json::from_str::<WrittenExpect>(expect).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
