//! Why a flow did not run, or stopped.

use std::fmt;
use std::io::Write;

use flowjoin_core::task::TaskError;
use flowjoin_core::{IoError, PlanErrors};

/// The result of running a flow.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a flow did not run, or stopped.
///
/// Its `Debug` is its `Display`, so that a `main` that returns it prints what a person can read.
#[non_exhaustive]
pub enum Error {
    /// The flow was put together wrongly.
    Plan(PlanErrors),
    /// A setting cannot be used.
    Config(String),
    /// A source or sink cannot go on.
    Io {
        /// Its name.
        name: String,
        /// What happened.
        cause: IoError,
    },
    /// An operator cannot go on.
    Task(TaskError),
    /// User code panicked in an operator.
    Panic {
        /// The operator.
        operator: String,
        /// What the panic said.
        message: String,
    },
    /// Ctrl-C ended the run before its sources had ended. What had been read has gone through to the sinks.
    Stopped,
    /// A task ended without a word, because another one failed.
    Cancelled,
}

/// A line for standard error; where that cannot be written, nobody can be told.
pub(crate) fn warn(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(errors) => fmt::Display::fmt(errors, f),
            Error::Config(message) => f.write_str(message),
            Error::Io { name, cause } => write!(f, "`{name}`: {cause}"),
            Error::Task(error) => fmt::Display::fmt(error, f),
            Error::Panic { operator, message } => write!(
                f,
                "a function given to `{operator}` panicked: {message}\n  the flow has stopped; rows read but not yet \
                 written are lost to this run, so start it again from its inputs"
            ),
            Error::Stopped => f.write_str(
                "stopped before its sources had ended; what had been read has been written, and rows that still waited for \
                 partners have not",
            ),
            Error::Cancelled => f.write_str("the task was cancelled because another one failed"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Plan(errors) => Some(errors),
            Error::Io { cause, .. } => Some(cause),
            Error::Task(error) => Some(error),
            Error::Config(_) | Error::Panic { .. } | Error::Stopped | Error::Cancelled => None,
        }
    }
}

impl From<PlanErrors> for Error {
    fn from(errors: PlanErrors) -> Error {
        Error::Plan(errors)
    }
}

impl From<TaskError> for Error {
    fn from(error: TaskError) -> Error {
        Error::Task(error)
    }
}
