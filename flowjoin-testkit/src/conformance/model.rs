//! The case format as it is on disk: files, cases, steps.
//!
//! What is not of the format is refused when a file is read, with the file, the case and the step: an operation, a
//! field, a kind or an option that there is not is a case that is wrong, not one that cannot be played. All wrong cases
//! of a file are told at once. What is of the format and what nobody here can play is found out later.

mod format;
mod step;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

pub use step::{Action, Step};

/// One file of cases.
#[derive(Clone, Debug)]
pub struct CaseFile {
    /// What the cases are about.
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
    /// Some cases are not of the format.
    #[error("{}", lines(path, cases))]
    Cases {
        /// The file.
        path: PathBuf,
        /// Which, and why.
        cases: Vec<CaseError>,
    },
}

/// A case that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The case: its id, or else its number in the file, from 0.
    pub case: Result<String, usize>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.case {
            Ok(id) => write!(f, "case {id}: {}", self.reason),
            Err(number) => write!(f, "case number {number}: {}", self.reason),
        }
    }
}

fn lines(path: &Path, cases: &[CaseError]) -> String {
    let line = |case: &CaseError| format!("{}, {case}", path.display());
    cases.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl CaseFile {
    /// Reads a file of cases.
    ///
    /// # Errors
    /// If it cannot be read, is not of the format, is of another version of it, or has cases that are not of it.
    pub fn read(path: &Path) -> Result<CaseFile, ReadError> {
        let text = std::fs::read_to_string(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
        CaseFile::parse(&text, path)
    }

    /// Reads files of cases whose ids are unique over all of them.
    ///
    /// A file is an error if [`read`](Self::read) says so, or if one of its cases has the id of a case of a file before.
    pub fn read_all<P: AsRef<Path>>(paths: &[P]) -> Vec<Result<CaseFile, ReadError>> {
        let whole = |(path, read): (&P, Result<Sorted, ReadError>)| read.and_then(|sorted| sorted.whole(path.as_ref()));
        paths.iter().zip(CaseFile::read_each(paths)).map(whole).collect()
    }

    /// As [`read_all`](Self::read_all), with the cases of a file that are of the format apart from those that are not.
    pub fn read_each<'a, P: AsRef<Path>>(paths: &'a [P]) -> Vec<Result<Sorted, ReadError>> {
        let mut ids: BTreeMap<String, &'a Path> = BTreeMap::new();
        let mut read = |path: &'a Path| {
            let text = std::fs::read_to_string(path).map_err(|source| ReadError::Io { path: path.into(), source })?;
            let mut sorted = Sorted::parse(&text, path)?;
            let (good, again): (Vec<Case>, Vec<Case>) =
                sorted.file.cases.into_iter().partition(|case| !ids.contains_key(&case.id));
            sorted.wrong.extend(again.into_iter().map(|case| {
                let reason = format!("{} has a case with this id", ids[&case.id].display());
                CaseError { case: Ok(case.id), reason }
            }));
            ids.extend(good.iter().map(|case| (case.id.clone(), path)));
            sorted.file.cases = good;
            Ok(sorted)
        };
        paths.iter().map(|path| read(path.as_ref())).collect()
    }

    /// Reads the text of a file of cases; `path` is for the error.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str, path: &Path) -> Result<CaseFile, ReadError> {
        Sorted::parse(text, path)?.whole(path)
    }
}

/// A file of which some cases may not be of the format.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// Those that are.
    pub file: CaseFile,
    /// Those that are not.
    pub wrong: Vec<CaseError>,
}

impl Sorted {
    fn parse(text: &str, path: &Path) -> Result<Sorted, ReadError> {
        let format = |source| ReadError::Format { path: path.into(), source };
        let written: WrittenFile = serde_json::from_str(text).map_err(format)?;
        if written.schema != SCHEMA {
            return Err(ReadError::Schema { path: path.into(), schema: written.schema });
        }
        let mut cases: Vec<Case> = Vec::new();
        let mut wrong = Vec::new();
        for (number, value) in written.cases.into_iter().enumerate() {
            let id = value.get("id").and_then(Value::as_str).map(String::from).ok_or(number);
            match Case::read(value) {
                Ok(case) if cases.iter().any(|other| other.id == case.id) => {
                    wrong.push(CaseError { case: id, reason: "another case of the file has this id".to_string() });
                }
                Ok(case) => cases.push(case),
                Err(reason) => wrong.push(CaseError { case: id, reason }),
            }
        }
        Ok(Sorted { file: CaseFile { family: written.family, cases }, wrong })
    }

    fn whole(self, path: &Path) -> Result<CaseFile, ReadError> {
        if self.wrong.is_empty() {
            Ok(self.file)
        } else {
            Err(ReadError::Cases { path: path.into(), cases: self.wrong })
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    schema: u64,
    #[serde(default)]
    family: String,
    cases: Vec<Value>,
}

/// One case: a sequence of inputs, and what must come out at each.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "WrittenCase")]
pub struct Case {
    /// Unique over all files.
    pub id: String,
    /// What is played.
    pub operator: String,
    /// One line for people.
    pub title: String,
    /// The options of the operator.
    pub config: Value,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// Whether the output of a step is a sequence or a multiset.
    pub order: Order,
    /// The assertions of which absence means that nothing was emitted.
    pub strict: Vec<Strict>,
    /// Whether Flink does what is expected.
    pub verdict: Verdict,
    /// An error that must come.
    pub expect_error: Option<ExpectError>,
    /// False if the input is not a legal changelog, so that the output need not be one.
    pub changelog_check: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    id: String,
    operator: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    config: Value,
    steps: Vec<Value>,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    strict: Vec<Strict>,
    #[serde(default)]
    verdict: Verdict,
    #[serde(default)]
    expect_error: Option<ExpectError>,
    #[serde(default = "yes")]
    changelog_check: bool,
    // For other checks than the runner's, and for people.
    #[serde(default, rename = "sql_check")]
    _sql_check: bool,
    #[serde(default, rename = "confidence")]
    _confidence: Option<Confidence>,
    #[serde(default, rename = "notes")]
    _notes: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Confidence {
    High,
    Medium,
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

/// An assertion of which absence means that there was nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strict {
    /// No watermark was sent on.
    Watermark,
    /// No state was sent on.
    Status,
    /// Nothing was looked up.
    Lookups,
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
#[serde(deny_unknown_fields)]
pub struct ExpectError {
    /// When it comes.
    pub phase: Phase,
    /// Which step, counted from 0.
    #[serde(default)]
    pub step: Option<usize>,
    /// What is wrong, in one word.
    #[serde(default)]
    pub kind: String,
}

/// When an error comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// When the operator is built.
    Build,
    /// In a step.
    Step,
}

impl Case {
    // A case of a file, of which the operator and its options are known besides.
    fn read(value: Value) -> Result<Case, String> {
        let case: Case = serde_json::from_value(value).map_err(|error| error.to_string())?;
        format::check(&case)?;
        Ok(case)
    }
}

impl TryFrom<WrittenCase> for Case {
    type Error = String;

    fn try_from(written: WrittenCase) -> Result<Case, String> {
        let read = |(index, step)| {
            serde_json::from_value(step).map_err(|error: serde_json::Error| format!("step {index}: {error}"))
        };
        let steps: Vec<Step> = written.steps.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        if let Some(step) = written.expect_error.as_ref().and_then(|error| error.step).filter(|&at| at >= steps.len()) {
            return Err(format!("an error is expected at step {step}, and there are {} steps", steps.len()));
        }
        Ok(Case {
            id: written.id,
            operator: written.operator,
            title: written.title,
            config: written.config,
            steps,
            order: written.order,
            strict: written.strict,
            verdict: written.verdict,
            expect_error: written.expect_error,
            changelog_check: written.changelog_check,
        })
    }
}

fn yes() -> bool {
    true
}

const SCHEMA: u64 = 1;

#[cfg(test)]
mod tests;
