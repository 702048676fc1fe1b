//! The tokio host of flowjoin: it opens sources and sinks, moves messages between tasks, waits, and stops cleanly.
//!
//! All decisions are in the tasks of the core; here is only the waiting.

mod aligned;
mod cli;
mod clock;
mod config;
mod error;
mod files;
mod inbox;
mod pace;
mod progress;
mod report;
mod run;
mod settings;
mod shell;
mod signals;
pub mod store;
mod writing;

pub use cli::{main, main_with, own_args};
pub use config::Config;
pub use error::{Error, Result};
pub use report::{InputReport, Report, StepReport, StepTime};
pub use run::{RunFlow, Running};
