//! Errors, in three families by who can act on them.
//!
//! [`PlanError`]: the author of the flow; all at once, each with its place and a remedy. [`RecordError`] and
//! [`TimeError`]: one row; by policy to the dead-letter file, skipped and counted, or fatal. [`OpError`] and
//! [`IoError`]: the machine or user code; the flow stops.

use std::fmt;
use std::panic::Location;

use crate::time::EventTime;

/// A mistake in how the flow was put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// What is wrong and what to do, in a sentence.
    pub message: String,
    /// Where in the user's code the step was declared.
    pub place: &'static Location<'static>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  at {}", self.message, self.place)
    }
}

/// All the mistakes in how a flow was put together.
#[derive(Clone, PartialEq, Eq)]
pub struct PlanErrors(pub Vec<PlanError>);

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => writeln!(f, "the flow cannot run:")?,
            count => writeln!(f, "the flow cannot run, for {count} reasons:")?,
        }
        for error in &self.0 {
            writeln!(f, "- {error}")?;
        }
        Ok(())
    }
}

// `main` prints errors with Debug; a person should be able to read them.
impl fmt::Debug for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for PlanErrors {}

/// A time that cannot be read from a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TimeError {
    message: String,
}

impl TimeError {
    /// An integer that is out of range in its unit.
    pub fn out_of_range(value: i128) -> TimeError {
        TimeError { message: format!("the time {value} does not fit; is its unit right?") }
    }

    /// A text that is not a time.
    pub fn unreadable(cause: impl fmt::Display) -> TimeError {
        TimeError { message: cause.to_string() }
    }

    /// The same, of this field.
    #[must_use]
    pub fn of_field(self, field: &str) -> TimeError {
        TimeError { message: format!("`{field}`: {}", self.message) }
    }

    /// A time too far ahead of the wall clock, with the likely cause.
    pub fn in_the_future(field: &str, time: EventTime, now: EventTime) -> TimeError {
        let ratio = time.as_millis() / now.as_millis().max(1);
        let cause = match ratio {
            500..=2_000 => "; microseconds read as milliseconds, or milliseconds as seconds?",
            500_000..=2_000_000 => "; nanoseconds read as milliseconds, or microseconds as seconds?",
            _ => "",
        };
        let remedy = if cause.is_empty() { "" } else { " say the unit where the row or its source is declared" };
        let (millis, date) = (time.as_millis().to_string(), time.to_string());
        // A number beyond all dates is told as it is.
        let told =
            if date == millis { format!("{millis} ms since 1970") } else { format!("{millis} ms since 1970 ({date})") };
        TimeError { message: format!("`{field}` is {told}, too far ahead of the clock ({now}){cause}{remedy}") }
    }
}

/// A record that could not become a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// What is wrong with it.
    pub reason: String,
    /// The record as it came, as far as it is known.
    pub raw: Vec<u8>,
    /// The file, topic or partition that it came from.
    pub origin: String,
    /// The line or offset there.
    pub position: Option<u64>,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        if let Some(position) = self.position {
            write!(f, ":{position}")?;
        }
        write!(f, ": {}", self.reason)?;
        if !self.raw.is_empty() {
            let shown: String = String::from_utf8_lossy(&self.raw).chars().take(200).collect();
            write!(f, "\n  in {shown}")?;
        }
        Ok(())
    }
}

/// Something that an operator cannot go on from.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    message: String,
}

impl OpError {
    /// An operator got rows of a type that it does not know: a mistake of flowjoin itself.
    pub fn wrong_batch(expected: &'static str) -> OpError {
        OpError { message: format!("an operator expected {expected} and got another batch; please report this") }
    }

    /// Two rows stand under one key of a table, and it was asked to stop then.
    pub fn conflict(key: String) -> OpError {
        let message = format!(
            "two rows stand under the key {key} as of the watermark; let the first count with `Conflict::KeepFirst`, or \
             mend what sends both"
        );
        OpError { message }
    }

    /// A result of a join has another key than it was joined on, and `by`, with its remedy, goes by that one.
    pub fn other_key(differs: &str, by: &str) -> OpError {
        OpError { message: format!("a result {differs}, although the key has the name of that of the join: {by}") }
    }

    /// A row cannot be kept over a crash.
    pub fn not_kept(row: &str, reason: &str) -> OpError {
        let message = format!(
            "a row of `{row}` cannot be kept, as it does not come back from what serde writes of it ({reason}); let its \
             `Serialize` and `Deserialize` agree"
        );
        OpError { message }
    }

    /// What was kept is not what it should be.
    pub fn unreadable(what: &str, reason: &dyn fmt::Display) -> OpError {
        OpError { message: format!("state that was kept cannot be read as `{what}`: {reason}") }
    }

    /// More rows than a task can number.
    pub fn too_many_rows() -> OpError {
        OpError { message: "a task holds more than 2^30 rows of one input; use a TTL or more parallelism".to_string() }
    }
}

/// A source or sink that cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct IoError {
    what: String,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl IoError {
    /// An error that says what was tried, to what, and what to do.
    pub fn new(what: impl Into<String>) -> IoError {
        IoError { what: what.into(), cause: None }
    }

    /// The same, with the error below it.
    pub fn caused(what: impl Into<String>, cause: impl std::error::Error + Send + Sync + 'static) -> IoError {
        let what = format!("{}: {cause}", what.into());
        IoError { what, cause: Some(Box::new(cause)) }
    }
}
