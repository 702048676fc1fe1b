//! How a flow is run.

use std::ffi::OsString;
use std::str::FromStr;

use flowjoin_core::names::nearest;
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
            parallelism: std::thread::available_parallelism().map_or(1, usize::from).min(TASKS_MAX),
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
    /// A variable that begins with `FLOWJOIN_` and is none of these is warned of on standard error.
    ///
    /// # Errors
    /// If a variable cannot be read; the error names it and says what it takes.
    pub fn from_env() -> Result<Config> {
        for warning in misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
            eprintln!("warning: {warning}");
        }
        Config::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Config> {
        let mut config = Config::default();
        let env = Variables(variable);
        env.set("FLOWJOIN_PARALLELISM", "a number of tasks above zero", &mut config.parallelism)?;
        env.set("FLOWJOIN_PAGE_ROWS", "a number of rows above zero", &mut config.page_rows)?;
        env.set("FLOWJOIN_BATCH_ROWS", "a number of rows above zero", &mut config.batch_rows)?;
        env.set("FLOWJOIN_CHANNEL_BATCHES", "a number of batches above zero", &mut config.channel_batches)?;
        env.set("FLOWJOIN_PROGRESS", "`true` or `false`", &mut config.progress)?;
        env.set("FLOWJOIN_REPORT", "`true` or `false`", &mut config.report)?;
        if let Some(text) = env.read("FLOWJOIN_LINGER")? {
            config.linger = Span::parse(&text).map_err(|e| Error::Config(format!("FLOWJOIN_LINGER: {e}")))?;
        }
        match config.fault() {
            None => Ok(config),
            // The defaults have none, so the variable has made it.
            Some((field, fault)) => Err(Error::Config(format!("{PREFIX}{}: {fault}", field.to_uppercase()))),
        }
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
    fn fault(&self) -> Option<(&'static str, String)> {
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

const PREFIX: &str = "FLOWJOIN_";
const VARIABLES: [&str; 7] = [
    "FLOWJOIN_PARALLELISM",
    "FLOWJOIN_PAGE_ROWS",
    "FLOWJOIN_BATCH_ROWS",
    "FLOWJOIN_LINGER",
    "FLOWJOIN_CHANNEL_BATCHES",
    "FLOWJOIN_PROGRESS",
    "FLOWJOIN_REPORT",
];

// What to say of variables that look like settings and are none.
fn misspelt(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut others: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && !VARIABLES.contains(&name.as_str())).collect();
    others.sort();
    // What all have in common says nothing of which is near.
    let own = |name: &'static str| name.trim_start_matches(PREFIX);
    let meant = |name: &str| nearest(name.trim_start_matches(PREFIX), VARIABLES.into_iter().map(own));
    let told = others.into_iter().map(|name| match meant(&name) {
        Some(meant) => format!("the environment has `{name}`, which sets nothing; is `{PREFIX}{meant}` meant?"),
        None => format!("the environment has `{name}`, which sets nothing; there are `{}`", VARIABLES.join("`, `")),
    });
    told.collect()
}

// Where the texts of variables come from; one that is empty is as good as none.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Variables<F> {
    fn read(&self, name: &str) -> Result<Option<String>> {
        let text = (self.0)(name).filter(|text| !text.is_empty()).map(OsString::into_string).transpose();
        text.map_err(|text| Error::Config(format!("{name} is {text:?}, which is not UTF-8")))
    }

    fn set<T: FromStr>(&self, name: &str, takes: &str, into: &mut T) -> Result<()> {
        let Some(text) = self.read(name)? else { return Ok(()) };
        *into = text.parse().map_err(|_| Error::Config(format!("{name} is `{text}`; it takes {takes}")))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: impl Into<OsString>) -> String {
        let value = value.into();
        let config = Config::from_variables(|asked| (asked == name).then(|| value.clone()));
        config.expect_err("it is refused").to_string()
    }

    #[test]
    fn a_variable_that_cannot_be_what_it_is_is_named() {
        for name in VARIABLES {
            let told = refusal(name, "many");
            assert!(told.contains(name), "{told}");
        }
        for name in ["FLOWJOIN_PARALLELISM", "FLOWJOIN_PAGE_ROWS", "FLOWJOIN_BATCH_ROWS", "FLOWJOIN_CHANNEL_BATCHES"] {
            let (told, field) = (refusal(name, "0"), name.trim_start_matches(PREFIX).to_lowercase());
            assert!(told.ends_with(&format!("{name}: {field} must be above zero")), "{told}");
            let told = refusal(name, "-1");
            assert!(told.contains(&format!("{name} is `-1`; it takes a number of ")), "{told}");
        }
        let told = refusal("FLOWJOIN_PARALLELISM", "129");
        assert!(
            told.ends_with("FLOWJOIN_PARALLELISM: parallelism is 129; a flow has 128 key groups, so at most 128"),
            "{told}"
        );
        let told = refusal("FLOWJOIN_LINGER", "-5ms");
        assert!(told.ends_with("FLOWJOIN_LINGER: linger is -5ms, and time does not go back"), "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_no_text_is_not_passed_over() {
        let bytes = <OsString as std::os::unix::ffi::OsStringExt>::from_vec(vec![b'4', 0xff]);
        let told = refusal("FLOWJOIN_PARALLELISM", bytes);
        assert!(told.ends_with(r#"FLOWJOIN_PARALLELISM is "4\xFF", which is not UTF-8"#), "{told}");
    }

    #[test]
    fn variables_that_are_empty_or_not_there_change_nothing() {
        let empty = Config::from_variables(|_| Some(OsString::new())).expect("nothing is asked for");
        assert_eq!((empty.page_rows, empty.linger), (Config::default().page_rows, Config::default().linger));
        let set = |name: &str| (name == "FLOWJOIN_PAGE_ROWS").then(|| OsString::from("7"));
        assert_eq!(Config::from_variables(set).expect("7 can be").page_rows, 7);
    }

    #[test]
    fn a_variable_that_sets_nothing_is_told_with_the_one_that_was_meant() {
        let names = ["PATH", "FLOWJOIN_PARALELISM", "FLOWJOIN_LINGER", "FLOWJOIN_COLOUR", "FLOWJOIN_REPORT"];
        let told = misspelt(names.into_iter().map(String::from));
        let expected = [
            "the environment has `FLOWJOIN_COLOUR`, which sets nothing; there are `FLOWJOIN_PARALLELISM`, `FLOWJOIN_PAGE_ROWS`, `FLOWJOIN_BATCH_ROWS`, `FLOWJOIN_LINGER`, `FLOWJOIN_CHANNEL_BATCHES`, `FLOWJOIN_PROGRESS`, `FLOWJOIN_REPORT`",
            "the environment has `FLOWJOIN_PARALELISM`, which sets nothing; is `FLOWJOIN_PARALLELISM` meant?",
        ];
        assert_eq!(told, expected);
    }
}
