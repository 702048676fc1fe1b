//! The case format as it is on disk: files, cases, steps.
//!
//! What is not known is kept or ignored, never a crash: an operator, an operation or an assertion that nobody here
//! can play makes its case not applicable later. What is not of the format at all is refused with file, line and column.

use std::fmt;
use std::path::{Path, PathBuf};

use flowjoin_core::RowKind;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One file of cases.
#[derive(Clone, Debug, Deserialize)]
pub struct CaseFile {
    /// The version of the format; this crate reads 1.
    pub schema: u64,
    /// What the cases are about.
    #[serde(default)]
    pub family: String,
    /// The cases, in the order of the file.
    pub cases: Vec<Case>,
}

/// A file that cannot be read as cases.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file itself cannot be read.
    #[error("{} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not of the case format; the text ends with line and column.
    #[error("{} is not a file of conformance cases: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was found instead, and where.
        source: serde_json::Error,
    },
    /// The file is of another version of the format.
    #[error("{} is of schema {schema}; this runner reads schema {SCHEMA}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        schema: u64,
    },
}

impl CaseFile {
    /// Reads a file of cases.
    ///
    /// # Errors
    /// If it cannot be read, is not of the format, or is of another version of it.
    pub fn read(path: &Path) -> Result<CaseFile, ReadError> {
        let text = std::fs::read_to_string(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
        CaseFile::parse(&text, path)
    }

    /// Reads the text of a file of cases; `path` is for the error.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<CaseFile, ReadError> {
        let format = |source| ReadError::Format { path: path.into(), source };
        let file: CaseFile = serde_json::from_str(text).map_err(format)?;
        if file.schema != SCHEMA {
            return Err(ReadError::Schema { path: path.into(), schema: file.schema });
        }
        Ok(file)
    }
}

/// One case: a sequence of inputs, and what must come out at each.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Unique over all files.
    pub id: String,
    /// What is played.
    pub operator: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// The options of the operator.
    #[serde(default)]
    pub config: Value,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// Whether the output of a step is a sequence or a multiset.
    #[serde(default)]
    pub order: Order,
    /// The assertions of which absence means that nothing was emitted.
    #[serde(default)]
    pub strict: Vec<String>,
    /// Whether Flink does what is expected.
    #[serde(default)]
    pub verdict: Verdict,
    /// An error that must come.
    #[serde(default)]
    pub expect_error: Option<ExpectError>,
    /// False if the input is not a legal changelog, so that the output need not be one.
    #[serde(default = "yes")]
    pub changelog_check: bool,
}

/// How the output of a step is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As a sequence.
    Exact,
    /// As a multiset.
    #[default]
    Any,
}

/// What the case says about Flink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Flink does this.
    #[default]
    Match,
    /// Flink does not, or refuses: a restriction may be lifted.
    Improve,
}

/// An error that a case asks for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ExpectError {
    /// `build`, or `step`.
    pub phase: String,
    /// Which step, counted from 0.
    #[serde(default)]
    pub step: Option<usize>,
    /// What is wrong, in one word.
    #[serde(default)]
    pub kind: String,
}

/// One step of a case, as it is written.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// What happens.
    pub op: String,
    /// What must come out; absent where nothing must.
    #[serde(default)]
    pub expect: Option<Value>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// What happens in a step, as far as this crate knows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A row comes in.
    Record {
        /// On which input.
        input: usize,
        /// What it does.
        kind: RowKind,
        /// Its values.
        row: Vec<Value>,
        /// Its event time, where it matters.
        ts: Option<i64>,
    },
    /// No row with a time at or before `t` will come on this input.
    Watermark {
        /// On which input.
        input: usize,
        /// In Flink's numbers.
        t: i64,
    },
    /// The input is quiet, and need not be waited for.
    Idle(usize),
    /// The input is back.
    Active(usize),
    /// The input has ended.
    EndOfInput(usize),
    /// The clock moves, and timers that are due fire.
    ProcessingTime(i64),
    /// The watermark is emitted periodically: now.
    Tick(i64),
    /// The coordinator of an alignment publishes.
    Announce,
}

impl Step {
    /// What happens in this step.
    ///
    /// # Errors
    /// If the operation is not known or lacks a field; the text is the reason.
    pub fn action(&self) -> Result<Action, String> {
        Ok(match self.op.as_str() {
            "record" => Action::Record {
                input: self.input()?,
                kind: self.field("kind")?,
                row: self.field("row")?,
                ts: self.optional("ts")?,
            },
            "watermark" => Action::Watermark { input: self.input()?, t: self.field("t")? },
            "idle" => Action::Idle(self.input()?),
            "active" => Action::Active(self.input()?),
            "end_of_input" => Action::EndOfInput(self.input()?),
            "processing_time" => Action::ProcessingTime(self.field("t")?),
            "tick" => Action::Tick(self.field("t")?),
            "announce" => Action::Announce,
            other => return Err(format!("nothing here plays the step `{other}`")),
        })
    }

    fn input(&self) -> Result<usize, String> {
        Ok(self.optional("input")?.unwrap_or(0))
    }

    fn field<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        self.optional(name)?.ok_or_else(|| format!("the step `{}` has no `{name}`", self.op))
    }

    fn optional<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value.clone())
                .map(Some)
                .map_err(|error| format!("`{name}` of the step `{}`: {error}", self.op)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.op)?;
        for (name, value) in &self.fields {
            if name != "flink_2_3" {
                write!(f, " {name} {value}")?;
            }
        }
        Ok(())
    }
}

fn yes() -> bool {
    true
}

const SCHEMA: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CaseFile, ReadError> {
        CaseFile::parse(text, Path::new("some.json"))
    }

    #[test]
    fn what_is_not_known_is_no_error_until_it_is_played() {
        let text = r#"{"schema":1,"family":"f","later":2,"cases":[{"id":"x","operator":"op of tomorrow","config":{"a":1},
            "mood":"good","steps":[{"op":"dance","input":3},{"op":"watermark","t":7},{"op":"record","row":[1]}]}]}"#;
        let case = &parse(text).unwrap().cases[0];
        assert_eq!(case.steps[0].action().unwrap_err(), "nothing here plays the step `dance`");
        assert_eq!(case.steps[1].action().unwrap(), Action::Watermark { input: 0, t: 7 });
        assert_eq!(case.steps[2].action().unwrap_err(), "the step `record` has no `kind`");
        assert!(case.changelog_check && case.order == Order::Any && case.expect_error.is_none());
    }

    #[test]
    fn a_file_of_something_else_is_refused_with_its_place() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            said("{\"schema\":1,\n\"cases\":[{\"operator\":\"x\"}]}"),
            "some.json is not a file of conformance cases: missing field `id` at line 2 column 25"
        );
        assert!(said("<html>").ends_with("expected value at line 1 column 1"));
        assert_eq!(said("{\"schema\":2,\"cases\":[]}"), "some.json is of schema 2; this runner reads schema 1");
        let missing = CaseFile::read(Path::new("no/such/file.json")).unwrap_err();
        assert_eq!(missing.to_string(), "no/such/file.json cannot be read");
    }

    #[test]
    fn a_step_is_printed_without_what_is_expected() {
        let step: Step =
            serde_json::from_str(r#"{"op":"record","input":1,"kind":"+I","row":[1,"a"],"expect":{},"flink_2_3":{}}"#)
                .unwrap();
        let Action::Record { kind, row, ts, .. } = step.action().unwrap() else { panic!("not a record") };
        assert_eq!((kind, row.len(), ts), (RowKind::Insert, 2, None));
        assert_eq!(step.to_string(), r#"record input 1 kind "+I" row [1,"a"]"#);
    }
}
