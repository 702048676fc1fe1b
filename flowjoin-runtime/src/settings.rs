//! The settings of a run, as texts: what each is called, what it takes, and where its value comes from.
//!
//! One table serves the environment, the file and the command line, so that a setting has one name and one meaning. Of a
//! setting that is given more than once the nearest wins: command line, then environment, then file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flowjoin_core::Span;
use flowjoin_core::names::nearest;

use crate::config::Config;
use crate::error::{Error, Result};

/// A setting of a run.
pub struct Setting {
    /// Its name, as in the file; `FLOWJOIN_` and the same in capitals in the environment, and with hyphens on the command
    /// line.
    pub name: &'static str,
    /// What it takes, in one word.
    pub value: &'static str,
    /// The same in words.
    pub takes: &'static str,
    /// What it does.
    pub help: &'static str,
    set: fn(&mut Config, &str) -> bool,
}

/// All of them.
pub const SETTINGS: [Setting; 7] = [
    Setting {
        name: "parallelism",
        value: "TASKS",
        takes: "a number of tasks above zero",
        help: "Tasks a stage [default: as many as there are cores]",
        set: |config, text| put(text, &mut config.parallelism),
    },
    Setting {
        name: "page_rows",
        value: "ROWS",
        takes: "a number of rows above zero",
        help: "Rows that a source reads at once, at most [default: 4096]",
        set: |config, text| put(text, &mut config.page_rows),
    },
    Setting {
        name: "batch_rows",
        value: "ROWS",
        takes: "a number of rows above zero",
        help: "Rows for one receiver that leave an exchange without waiting for more [default: 2048]",
        set: |config, text| put(text, &mut config.batch_rows),
    },
    Setting {
        name: "linger",
        value: "SPAN",
        takes: "a span of time, as in `5ms`",
        help: "How long a row may wait in an exchange for others [default: 5ms]",
        set: |config, text| Span::parse(text).map(|span| config.linger = span).is_ok(),
    },
    Setting {
        name: "channel_batches",
        value: "BATCHES",
        takes: "a number of batches above zero",
        help: "Batches that a channel between two tasks holds [default: 1]",
        set: |config, text| put(text, &mut config.channel_batches),
    },
    Setting {
        name: "progress",
        value: "true|false",
        takes: "`true` or `false`",
        help: "Whether a progress bar is shown for each source that has an end [default: true]",
        set: |config, text| put(text, &mut config.progress),
    },
    Setting {
        name: "report",
        value: "true|false",
        takes: "`true` or `false`",
        help: "Whether the accounting is printed at the end [default: true]",
        set: |config, text| put(text, &mut config.report),
    },
];

fn put<T: FromStr>(text: &str, into: &mut T) -> bool {
    text.parse().map(|value| *into = value).is_ok()
}

impl Setting {
    /// Its variable in the environment.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase())
    }

    /// Its option on the command line.
    pub fn option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Sets it to a text that was found under this name.
    ///
    /// # Errors
    /// If it does not take that.
    pub fn set(&self, config: &mut Config, text: &str, found_as: &str) -> Result<()> {
        if !(self.set)(config, text) {
            return Err(Error::Config(format!("{found_as} is `{text}`; it takes {}", self.takes)));
        }
        // What was there before had no fault, so this has made it.
        match config.fault() {
            None => Ok(()),
            Some((_, fault)) => Err(Error::Config(format!("{found_as}: {fault}"))),
        }
    }
}

/// Sets what the environment has of the settings that count.
///
/// # Errors
/// If a setting does not take the value of its variable, or that is not UTF-8.
pub fn from_environment(
    config: &mut Config,
    counts: impl Fn(&Setting) -> bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<()> {
    for setting in SETTINGS.iter().filter(|setting| counts(setting)) {
        let name = setting.variable();
        // One that is empty is as good as none.
        let text = variable(&name).filter(|text| !text.is_empty()).map(OsString::into_string).transpose();
        if let Some(text) = text.map_err(|text| Error::Config(format!("{name} is {text:?}, which is not UTF-8")))? {
            setting.set(config, &text, &name)?;
        }
    }
    Ok(())
}

/// The file that the environment names, if it names one.
pub fn file_of_environment() -> Option<PathBuf> {
    std::env::var_os(FILE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// What to say of variables that look like settings and are none.
pub fn misspelt(names: impl Iterator<Item = String>) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).chain([FILE.to_string()]).collect();
    let mut others: Vec<String> = names.filter(|name| name.starts_with(PREFIX) && !known.contains(name)).collect();
    others.sort();
    // What all have in common says nothing of which is near.
    let own = |name: &'_ str| name.trim_start_matches(PREFIX).to_string();
    let owns: Vec<String> = known.iter().map(|name| own(name)).collect();
    let told = others.into_iter().map(|name| match nearest(&own(&name), owns.iter().map(String::as_str)) {
        Some(meant) => format!("the environment has `{name}`, which sets nothing; is `{PREFIX}{meant}` meant?"),
        None => format!("the environment has `{name}`, which sets nothing; there are `{}`", known.join("`, `")),
    });
    told.collect()
}

/// Sets what a TOML file has.
///
/// # Errors
/// If the file cannot be read, is no TOML, or has a key that is no setting or a value that the setting does not take.
pub fn from_file(config: &mut Config, path: &Path) -> Result<()> {
    let wrong = |what: String| Error::Config(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    for (key, value) in table {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == key) else {
            return Err(wrong(match nearest(&key, SETTINGS.iter().map(|setting| setting.name)) {
                Some(meant) => format!("`{key}` sets nothing; is `{meant}` meant?"),
                None => format!("`{key}` sets nothing; there are `{}`", SETTINGS.map(|it| it.name).join("`, `")),
            }));
        };
        let text = match value {
            toml::Value::String(text) => text,
            value => value.to_string(),
        };
        setting.set(config, &text, &format!("{}: `{key}`", path.display()))?;
    }
    Ok(())
}

const PREFIX: &str = "FLOWJOIN_";

/// The variable that names the file.
pub const FILE: &str = "FLOWJOIN_CONFIG";

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: impl Into<OsString>) -> String {
        let value = value.into();
        let mut config = Config::default();
        let set = from_environment(&mut config, |_| true, |asked| (asked == name).then(|| value.clone()));
        set.expect_err("it is refused").to_string()
    }

    #[test]
    fn a_variable_that_cannot_be_what_it_is_is_named() {
        for setting in &SETTINGS {
            let (name, told) = (setting.variable(), refusal(&setting.variable(), "many"));
            assert!(told.ends_with(&format!("{name} is `many`; it takes {}", setting.takes)), "{told}");
        }
        for field in ["parallelism", "page_rows", "batch_rows", "channel_batches"] {
            let name = format!("{PREFIX}{}", field.to_uppercase());
            let told = refusal(&name, "0");
            assert!(told.ends_with(&format!("{name}: {field} must be above zero")), "{told}");
            let told = refusal(&name, "-1");
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
        let mut config = Config::default();
        from_environment(&mut config, |_| true, |_| Some(OsString::new())).expect("nothing is asked for");
        assert_eq!((config.page_rows, config.linger), (Config::default().page_rows, Config::default().linger));
        let set = |name: &str| (name == "FLOWJOIN_PAGE_ROWS").then(|| OsString::from("7"));
        from_environment(&mut config, |_| true, set).expect("7 can be");
        assert_eq!(config.page_rows, 7);
        // One that is given nearer does not count, whatever it says.
        let wrong = |name: &str| (name == "FLOWJOIN_PAGE_ROWS").then(|| OsString::from("many"));
        from_environment(&mut config, |setting| setting.name != "page_rows", wrong).expect("it does not count");
    }

    #[test]
    fn a_variable_that_sets_nothing_is_told_with_the_one_that_was_meant() {
        let names = ["PATH", "FLOWJOIN_PARALELISM", "FLOWJOIN_LINGER", "FLOWJOIN_COLOUR", "FLOWJOIN_CONFIG"];
        let told = misspelt(names.into_iter().map(String::from));
        let expected = [
            "the environment has `FLOWJOIN_COLOUR`, which sets nothing; there are `FLOWJOIN_PARALLELISM`, `FLOWJOIN_PAGE_ROWS`, `FLOWJOIN_BATCH_ROWS`, `FLOWJOIN_LINGER`, `FLOWJOIN_CHANNEL_BATCHES`, `FLOWJOIN_PROGRESS`, `FLOWJOIN_REPORT`, `FLOWJOIN_CONFIG`",
            "the environment has `FLOWJOIN_PARALELISM`, which sets nothing; is `FLOWJOIN_PARALLELISM` meant?",
        ];
        assert_eq!(told, expected);
    }

    fn with_file(text: &str, test: impl FnOnce(Result<Config>)) {
        let unique = format!("flowjoin-settings-{}-{:p}", std::process::id(), &text);
        let path = std::env::temp_dir().join(unique);
        std::fs::write(&path, text).expect("the temporary directory can be written to");
        let mut config = Config::default();
        let set = from_file(&mut config, &path);
        std::fs::remove_file(&path).expect("it was written");
        test(set.map(|()| config));
    }

    #[test]
    fn a_file_sets_what_it_has() {
        with_file("# small\nparallelism = 3\nlinger = \"250ms\"\nreport = false\n", |config| {
            let config = config.expect("it is right");
            assert_eq!((config.parallelism, config.linger.as_millis(), config.report), (3, 250, false));
            assert_eq!(config.page_rows, Config::default().page_rows);
        });
    }

    #[test]
    fn what_a_file_cannot_set_is_told_with_its_name() {
        for (text, told) in [
            ("paralelism = 3", "`paralelism` sets nothing; is `parallelism` meant?"),
            ("[runtime]\nparallelism = 3", "`runtime` sets nothing; there are `parallelism`, `page_rows`"),
            ("page_rows = 0", "`page_rows`: page_rows must be above zero"),
            ("linger = 5", "`linger` is `5`; it takes a span of time, as in `5ms`"),
            ("parallelism = 2.5", "`parallelism` is `2.5`; it takes a number of tasks above zero"),
            ("parallelism 3", "TOML parse error at line 1"),
        ] {
            with_file(text, |config| {
                let error = config.expect_err("it is wrong").to_string();
                assert!(error.contains(told), "{error}");
                assert!(error.contains("flowjoin-settings-"), "{error}");
            });
        }
        let error = from_file(&mut Config::default(), Path::new("no such file.toml")).expect_err("there is none");
        assert!(error.to_string().contains("no such file.toml: "), "{error}");
    }
}
