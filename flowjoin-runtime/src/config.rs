//! How a flow is run.

use flowjoin_core::{Span, millis};

use crate::error::{Error, Result, warn};
use crate::settings::{self, Setting};

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
            parallelism: std::thread::available_parallelism().map_or(1, usize::from).min(TASKS_MAX),
            page_rows: 4_096,
            batch_rows: 2_048,
            linger: millis(5),
            channel_batches: 1,
            stop_on_ctrl_c: true,
            progress: true,
            report: true,
        }
    }
}

impl Config {
    /// The defaults, changed by environment variables: `FLOWJOIN_PARALLELISM`, `FLOWJOIN_PAGE_ROWS`,
    /// `FLOWJOIN_BATCH_ROWS`, `FLOWJOIN_LINGER` (as in `5ms`), `FLOWJOIN_CHANNEL_BATCHES`, `FLOWJOIN_PROGRESS` and
    /// `FLOWJOIN_REPORT` (`true` or `false`); and before these by the TOML file that `FLOWJOIN_CONFIG` names.
    ///
    /// A variable that begins with `FLOWJOIN_` and is none of these is warned of on standard error.
    ///
    /// # Errors
    /// If a variable or the file cannot be read; the error names it and says what it takes.
    pub fn from_env() -> Result<Config> {
        let mut config = Config::default();
        if let Some(file) = settings::file_of_environment() {
            settings::from_file(&mut config, &file)?;
        }
        config.set_from_env(|_| true)?;
        Ok(config)
    }

    // Sets those settings of the environment that are not given nearer.
    pub(crate) fn set_from_env(&mut self, counts: impl Fn(&Setting) -> bool) -> Result<()> {
        for warning in settings::misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
            warn(format_args!("warning: {warning}"));
        }
        settings::from_environment(self, counts, |name| std::env::var_os(name))
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
        match self.fault() {
            None => Ok(self),
            Some((_, fault)) => Err(Error::Config(fault)),
        }
    }

    // A field that cannot be what it is, and why.
    pub(crate) fn fault(&self) -> Option<(&'static str, String)> {
        let limits = [
            ("parallelism", self.parallelism),
            ("page_rows", self.page_rows),
            ("batch_rows", self.batch_rows),
            ("channel_batches", self.channel_batches),
        ];
        match limits.iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Some((name, format!("{name} must be above zero"))),
            None if self.parallelism > TASKS_MAX => Some((
                "parallelism",
                format!(
                    "parallelism is {}; a flow has {TASKS_MAX} key groups, so at most {TASKS_MAX}",
                    self.parallelism
                ),
            )),
            None if self.linger < Span::ZERO => {
                Some(("linger", format!("linger is {}, and time does not go back", self.linger)))
            }
            None => None,
        }
    }
}

/// A task without a slice of the keys would have nothing to do.
const TASKS_MAX: usize = flowjoin_core::key::KEY_GROUPS as usize;
