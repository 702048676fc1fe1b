//! One step of a case: what happens, and what must come of it.

use std::fmt;

use flowjoin_core::RowKind;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conformance::expect::WrittenExpect;

/// One step of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Step {
    /// What happens.
    pub action: Action,
    /// What must come out; absent where nothing must.
    pub(in crate::conformance) expect: Option<WrittenExpect>,
    // As it is written, to be told to people.
    text: String,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// A row comes in.
    Record {
        /// On which input.
        #[serde(default)]
        input: usize,
        /// What it does.
        kind: RowKind,
        /// Its values.
        row: Vec<Value>,
        /// Its event time, where it matters.
        #[serde(default)]
        ts: Option<i64>,
        /// The name that an asynchronous look-up of it completes by.
        #[serde(default)]
        id: Option<Value>,
        /// Whether it fills its mini-batch, which is then worked on.
        #[serde(default)]
        flushed: bool,
        /// Whether the indexed table behind its input has the row.
        #[serde(default)]
        in_table: Option<bool>,
    },
    /// No row with a time at or before `t` will come on this input.
    Watermark {
        /// On which input.
        #[serde(default)]
        input: usize,
        /// In Flink's numbers.
        t: i64,
    },
    /// The input is quiet, and need not be waited for.
    Idle {
        /// Which.
        #[serde(default)]
        input: usize,
    },
    /// The input is back.
    Active {
        /// Which.
        #[serde(default)]
        input: usize,
    },
    /// The input has ended.
    EndOfInput {
        /// Which.
        #[serde(default)]
        input: usize,
    },
    /// The clock moves, and timers that are due fire.
    ProcessingTime {
        /// To when.
        t: i64,
    },
    /// The watermark is emitted periodically: now.
    Tick {
        /// When.
        t: i64,
    },
    /// The coordinator of an alignment publishes.
    Announce {},
    /// A mini-batch is worked on, full or not.
    Flush {},
    /// Rows of an external table are replaced.
    Table {
        /// The input that the table is indexed for, if it is one.
        #[serde(default)]
        input: Option<usize>,
        /// The rows of each key.
        put: Value,
    },
    /// Rows of an external table are replaced when the clock reaches a time.
    TableAt {
        /// When.
        t: i64,
        /// The rows of each key.
        put: Value,
    },
    /// An asynchronous look-up returns.
    Complete {
        /// Of which record.
        id: Value,
        /// What.
        rows: Value,
    },
}

impl Action {
    /// The input that it happens to, if it happens to one.
    pub fn input(&self) -> Option<usize> {
        match self {
            Action::Record { input, .. } | Action::Watermark { input, .. } => Some(*input),
            Action::Idle { input } | Action::Active { input } | Action::EndOfInput { input } => Some(*input),
            Action::Table { input, .. } => *input,
            Action::ProcessingTime { .. } | Action::Tick { .. } | Action::Announce {} => None,
            Action::Flush {} | Action::TableAt { .. } | Action::Complete { .. } => None,
        }
    }
}

impl TryFrom<Map<String, Value>> for Step {
    type Error = String;

    fn try_from(mut fields: Map<String, Value>) -> Result<Step, String> {
        let expect = |name: &str, fields: &mut Map<String, Value>| match fields.remove(name) {
            None => Ok(None),
            Some(value) => {
                serde_json::from_value::<WrittenExpect>(value).map(Some).map_err(|error| format!("`{name}`: {error}"))
            }
        };
        let expected = expect("expect", &mut fields)?;
        // What Flink does is for people; but what is misspelt there would mislead them.
        expect("flink_2_3", &mut fields)?;
        let text = text(&fields);
        let action: Action = serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
        match &action {
            Action::Record { row, .. } if row.is_empty() => Err("a record has a row without values".to_string()),
            _ => Ok(Step { action, expect: expected, text }),
        }
    }
}

fn text(fields: &Map<String, Value>) -> String {
    let op = fields.get("op").and_then(Value::as_str).unwrap_or_default();
    let fields = fields.iter().filter(|(name, _)| *name != "op").map(|(name, value)| format!(" {name} {value}"));
    format!("{op}{}", fields.collect::<String>())
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Result<Step, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_step_is_printed_without_what_is_expected() {
        let text = r#"{"op":"record","input":1,"kind":"+I","row":[1,"a"],"expect":{},"flink_2_3":{}}"#;
        let step = step(text).unwrap();
        let Action::Record { kind, row, ts, flushed, .. } = &step.action else { panic!("not a record") };
        assert_eq!((*kind, row.len(), *ts, *flushed), (RowKind::Insert, 2, None, false));
        assert_eq!(step.to_string(), r#"record input 1 kind "+I" row [1,"a"]"#);
    }

    #[test]
    fn all_operations_are_read() {
        for op in ["idle", "active", "end_of_input", "announce", "flush"] {
            assert_eq!(step(&format!(r#"{{"op":"{op}"}}"#)).unwrap().to_string(), op);
        }
        for op in ["processing_time", "tick", "watermark"] {
            assert_eq!(step(&format!(r#"{{"op":"{op}","t":-3}}"#)).unwrap().to_string(), format!("{op} t -3"));
        }
        for text in [r#""table","put":{}"#, r#""table_at","t":1,"put":{}"#, r#""complete","id":1,"rows":[]"#] {
            step(&format!(r#"{{"op":{text}}}"#)).unwrap();
        }
    }

    #[test]
    fn what_is_not_of_the_format_is_refused() {
        let said = |text: &str| step(text).unwrap_err();
        assert!(
            said(r#"{"op":"dance"}"#).starts_with("unknown variant `dance`, expected one of `record`, `watermark`")
        );
        assert_eq!(said(r#"{"input":1}"#), "missing field `op`");
        assert!(said(r#"{"op":"idle","inptu":1}"#).starts_with("unknown field `inptu`, expected `input`"));
        assert_eq!(said(r#"{"op":"watermark"}"#), "missing field `t`");
        assert!(
            said(r#"{"op":"record","kind":"I","row":[1]}"#).starts_with("unknown variant `I`, expected one of `+I`")
        );
        assert_eq!(said(r#"{"op":"record","kind":"+I","row":[]}"#), "a record has a row without values");
        assert!(said(r#"{"op":"announce","expect":{"outt":[]}}"#).starts_with("`expect`: unknown field `outt`"));
        assert!(said(r#"{"op":"announce","flink_2_3":{"mood":1}}"#).starts_with("`flink_2_3`: unknown field `mood`"));
    }
}
