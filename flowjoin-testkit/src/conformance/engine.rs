//! What one case is played on.

use std::fmt;

use flowjoin_core::RowKind;
use serde::Deserialize;
use serde_json::Value;

use super::cell::{CellRow, row_text};

/// One operator under test, fed step by step.
///
/// All work that a call causes is finished when it returns. An operation that the operator has no use for is
/// [`EngineError::Unsupported`], which makes the case not applicable. Times and watermarks come in the numbers of the
/// case file: watermark `t` means that no row with a time at or before `t` will come.
pub trait Engine {
    /// A row comes in.
    ///
    /// # Errors
    /// If the operator refuses the row, or takes none.
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        let _ = record;
        Err(EngineError::Unsupported("record"))
    }

    /// No row with a time at or before `t` will come on this input.
    ///
    /// # Errors
    /// If the operator takes no watermarks.
    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        let _ = (input, t);
        Err(EngineError::Unsupported("watermark"))
    }

    /// The input is quiet.
    ///
    /// # Errors
    /// If the operator does not know idle inputs.
    fn idle(&mut self, input: usize) -> Result<(), EngineError> {
        let _ = input;
        Err(EngineError::Unsupported("idle"))
    }

    /// The input is back.
    ///
    /// # Errors
    /// If the operator does not know idle inputs.
    fn active(&mut self, input: usize) -> Result<(), EngineError> {
        let _ = input;
        Err(EngineError::Unsupported("active"))
    }

    /// The input has ended.
    ///
    /// # Errors
    /// If the operator does not know ends.
    fn end_of_input(&mut self, input: usize) -> Result<(), EngineError> {
        let _ = input;
        Err(EngineError::Unsupported("end_of_input"))
    }

    /// The clock moves to `t`, and timers that are due fire.
    ///
    /// # Errors
    /// If the operator has no clock.
    fn processing_time(&mut self, t: i64) -> Result<(), EngineError> {
        let _ = t;
        Err(EngineError::Unsupported("processing_time"))
    }

    /// Periodic emission of the watermark at `t`.
    ///
    /// # Errors
    /// If the operator makes no watermarks.
    fn tick(&mut self, t: i64) -> Result<(), EngineError> {
        let _ = t;
        Err(EngineError::Unsupported("tick"))
    }

    /// The coordinator of an alignment publishes.
    ///
    /// # Errors
    /// If the operator is none.
    fn announce(&mut self) -> Result<(), EngineError> {
        Err(EngineError::Unsupported("announce"))
    }

    /// What waits in a mini-batch is worked on.
    ///
    /// # Errors
    /// If the operator has none.
    fn flush(&mut self) -> Result<(), EngineError> {
        Err(EngineError::Unsupported("flush"))
    }

    /// All that came out since this was last called; called after each step.
    fn observe(&mut self) -> Observed;
}

/// A row that comes in.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The input.
    pub input: usize,
    /// What the row does.
    pub kind: RowKind,
    /// Its values.
    pub row: Vec<Value>,
    /// Its event time, where it matters.
    pub ts: Option<i64>,
}

/// What came out of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The main output, in order.
    pub out: Vec<OutRow>,
    /// Rows given up as late, one list an input.
    pub late: Vec<Vec<SideRow>>,
    /// Watermarks sent on, in Flink's numbers: a frontier W is W - 1, and the end of time `i64::MAX`.
    pub watermarks: Vec<i64>,
    /// States sent on.
    pub statuses: Vec<Status>,
    /// Rows held, one number an input; none if the engine cannot tell.
    pub state_rows: Option<Vec<u64>>,
    /// The state of an alignment, after an announcement.
    pub alignment: Option<AlignmentView>,
}

/// A row of the main output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutRow {
    /// What it does.
    pub kind: RowKind,
    /// Its values.
    pub row: CellRow,
    /// Its event time, if the engine has one.
    pub ts: Option<i64>,
}

/// A row of a side output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideRow {
    /// Its values.
    pub row: CellRow,
    /// Its event time, if the engine has one.
    pub ts: Option<i64>,
}

/// Whether those downstream should wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// They need not.
    Idle,
    /// They should.
    Active,
}

/// What an alignment has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignmentView {
    /// The greatest watermark that a source may have, in Flink's numbers.
    pub max_allowed: i64,
    /// The sources beyond it.
    pub paused: Vec<usize>,
}

/// Why an engine did not take a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The operator has no such operation: the case is not applicable.
    #[error("the engine has no `{0}`")]
    Unsupported(&'static str),
    /// The operator refuses this, as it should if the case asks for an error.
    #[error("refused: {0}")]
    Refused(String),
}

/// Why there is no engine for a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unbuilt {
    /// Nothing here plays this; the text is the reason.
    NotApplicable(String),
    /// The operator exists and refuses this configuration, by design.
    Refused(String),
    /// The configuration is none: what it says does not exist, or is misspelt.
    Malformed(String),
}

impl fmt::Display for OutRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind, row_text(&self.row))?;
        self.ts.map_or(Ok(()), |ts| write!(f, " @{ts}"))
    }
}

impl fmt::Display for SideRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&row_text(&self.row))?;
        self.ts.map_or(Ok(()), |ts| write!(f, " @{ts}"))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Idle => "idle",
            Status::Active => "active",
        })
    }
}

impl fmt::Display for AlignmentView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max allowed {}, paused {:?}", self.max_allowed, self.paused)
    }
}
