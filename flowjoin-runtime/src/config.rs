//! How a flow is run.

use std::str::FromStr;

use flowjoin_core::{Span, millis};

use crate::error::{Error, Result};

/// How a flow is run. Every limit has a default that suits one machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Tasks a stage; by default as many as the machine has cores.
    pub parallelism: usize,
    /// Rows that a source reads at once, at most.
    pub page_rows: usize,
    /// Rows for one receiver that leave an exchange without waiting for more.
    pub batch_rows: usize,
    /// How long a row may wait in an exchange for others.
    pub linger: Span,
    /// Batches that a channel between two tasks holds; a full channel holds the sender back.
    pub channel_batches: usize,
    /// Whether Ctrl-C stops the sources and drains the flow; a second one ends the process.
    pub stop_on_ctrl_c: bool,
    /// Whether a progress bar is shown for each source that has an end, when standard error is a terminal.
    pub progress: bool,
    /// Whether the accounting is printed to standard error at the end.
    pub report: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            parallelism: std::thread::available_parallelism().map_or(1, usize::from),
            page_rows: 4_096,
            batch_rows: 2_048,
            linger: millis(5),
            channel_batches: 4,
            stop_on_ctrl_c: true,
            progress: true,
            report: true,
        }
    }
}

impl Config {
    /// The defaults, changed by environment variables: `FLOWJOIN_PARALLELISM`, `FLOWJOIN_PAGE_ROWS`,
    /// `FLOWJOIN_BATCH_ROWS`, `FLOWJOIN_LINGER` (as in `5ms`), `FLOWJOIN_CHANNEL_BATCHES`, `FLOWJOIN_PROGRESS` and
    /// `FLOWJOIN_REPORT` (`true` or `false`).
    ///
    /// # Errors
    /// If a variable cannot be read; the error names it and says what it takes.
    pub fn from_env() -> Result<Config> {
        let mut config = Config::default();
        set("FLOWJOIN_PARALLELISM", "a number of tasks above zero", &mut config.parallelism)?;
        set("FLOWJOIN_PAGE_ROWS", "a number of rows above zero", &mut config.page_rows)?;
        set("FLOWJOIN_BATCH_ROWS", "a number of rows above zero", &mut config.batch_rows)?;
        set("FLOWJOIN_CHANNEL_BATCHES", "a number of batches above zero", &mut config.channel_batches)?;
        set("FLOWJOIN_PROGRESS", "`true` or `false`", &mut config.progress)?;
        set("FLOWJOIN_REPORT", "`true` or `false`", &mut config.report)?;
        if let Some(text) = read("FLOWJOIN_LINGER") {
            config.linger = Span::parse(&text).map_err(|e| Error::Config(format!("FLOWJOIN_LINGER: {e}")))?;
        }
        config.checked()
    }

    /// With so many tasks a stage.
    pub fn with_parallelism(mut self, tasks: usize) -> Config {
        self.parallelism = tasks;
        self
    }

    /// Without a word on standard error.
    pub fn quiet(mut self) -> Config {
        self.progress = false;
        self.report = false;
        self
    }

    pub(crate) fn checked(self) -> Result<Config> {
        let limits = [
            ("parallelism", self.parallelism),
            ("page_rows", self.page_rows),
            ("batch_rows", self.batch_rows),
            ("channel_batches", self.channel_batches),
        ];
        match limits.iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Err(Error::Config(format!("{name} must be above zero"))),
            None if self.parallelism > 128 => Err(Error::Config(format!(
                "parallelism is {}; a flow has 128 key groups, so at most 128",
                self.parallelism
            ))),
            None => Ok(self),
        }
    }
}

fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn set<T: FromStr>(name: &str, takes: &str, into: &mut T) -> Result<()> {
    let Some(text) = read(name) else { return Ok(()) };
    *into = text.parse().map_err(|_| Error::Config(format!("{name} is `{text}`; it takes {takes}")))?;
    Ok(())
}
