//! The command line of a program that is one flow.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind as Refusal};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use flowjoin_core::api::Flow;

use crate::config::Config;
use crate::error::{Error, Result, warn};
use crate::run::{RunFlow, check_files};
use crate::settings::{self, SETTINGS, Setting};

/// Makes a program of a flow: gives it a command line, and does what that says.
///
/// ```text
/// PROGRAM run                      runs the flow until its sources end or Ctrl-C stops them
/// PROGRAM explain                  prints the plan; with --json or --mermaid in that form
/// PROGRAM check                    tells whether the flow can be run and what it is warned of; opens nothing
/// PROGRAM COMMAND … -- WORDS       leaves the words behind `--` to the program: see [`own_args`]
/// ```
///
/// Every setting of [`Config`] is an option (`--parallelism 4`), a variable (`FLOWJOIN_PARALLELISM=4`) and a key of a TOML
/// file (`parallelism = 4`) that `--config FILE` or `FLOWJOIN_CONFIG` names; of several the first in this order counts.
///
/// Builds a tokio runtime, so it must not be called within one. The exit code is 0 if all went well, 1 if the run failed,
/// 2 if the command line, a setting or the plan cannot be used, and 130 if Ctrl-C ended the run before its sources had.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     let flow = flowjoin_core::api::Flow::new("payments");
///     // Sources, joins and sinks.
///     flowjoin_runtime::main(flow)
/// }
/// ```
pub fn main(flow: Flow) -> ExitCode {
    ExitCode::from(main_with(flow, split(std::env::args_os()).0))
}

/// Does what [`main`] does, with these words in place of those of the process, and returns the exit code: for a program
/// that has words of its own before them.
pub fn main_with<W: Into<OsString>>(flow: Flow, words: impl IntoIterator<Item = W>) -> u8 {
    let program = std::env::args_os().next().unwrap_or_else(|| flow.name().into());
    let words = words.into_iter().map(W::into);
    let performed = match command(&flow).try_get_matches_from(std::iter::once(program).chain(words)) {
        Ok(matches) => perform(&flow, &matches),
        Err(help_or_error) => {
            // What cannot be told, as standard output is closed, changes nothing.
            let _ = help_or_error.print();
            if is_a_word(&help_or_error) {
                warn(format_args!("words for the program itself stand behind `--`, as in `run -- data`"));
            }
            return help_or_error.exit_code() as u8;
        }
    };
    performed.map_or_else(
        |error| {
            warn(format_args!("{}", told(&error)));
            code(&error)
        },
        |()| 0,
    )
}

// Whether a word was given where only options are.
fn is_a_word(error: &clap::Error) -> bool {
    let unknown = error.get(ContextKind::InvalidArg).filter(|_| error.kind() == Refusal::UnknownArgument);
    matches!(unknown, Some(ContextValue::String(word)) if !word.starts_with('-'))
}

/// The words of the command line behind `--`, which [`main`] leaves to the program. Those that are not UTF-8 have a sign in
/// place of what is not.
pub fn own_args() -> Vec<String> {
    split(std::env::args_os()).1.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

// The words after the program's name, before and behind the first `--`.
fn split(words: impl Iterator<Item = OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let mut words = words.skip(1);
    (words.by_ref().take_while(|word| word != "--").collect(), words.collect())
}

fn command(flow: &Flow) -> Command {
    let options = SETTINGS.iter().map(|setting| {
        Arg::new(setting.name)
            .long(setting.option())
            .value_name(setting.value)
            .allow_hyphen_values(true)
            .help(setting.help)
    });
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("A TOML file with settings [default: what FLOWJOIN_CONFIG names]");
    let run = Command::new("run")
        .about("Runs the flow until its sources end or Ctrl-C stops them")
        .after_help("Words behind `--` are the program's own.")
        .arg(config.clone())
        .args(options.clone());
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let explain = Command::new("explain")
        .about("Prints the plan of the flow")
        .arg(flag("json", "As JSON").conflicts_with("mermaid"))
        .arg(flag("mermaid", "As a Mermaid chart"));
    let check = Command::new("check")
        .about("Tells whether the flow can be run, and what it is warned of; opens nothing")
        .arg(config)
        .args(options);
    Command::new(flow.name().to_string())
        .about(format!("The flow `{}`", flow.name()))
        .after_help("Every option is a variable too (FLOWJOIN_PARALLELISM) and a key of the file (parallelism).")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([run, explain, check])
}

fn perform(flow: &Flow, matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("explain", options)) => {
            let explain = flow.explain().map_err(Error::Plan)?;
            match (options.get_flag("json"), options.get_flag("mermaid")) {
                (true, _) => say(format_args!("{}\n", explain.json())),
                (_, true) => say(format_args!("{}\n", explain.mermaid())),
                _ => say(format_args!("{explain}")),
            }
        }
        Some(("check", options)) => {
            config(options)?;
            let explain = flow.explain().map_err(Error::Plan)?;
            check_files(&flow.plan().map_err(Error::Plan)?)?;
            for warning in &explain.warnings {
                say(format_args!("warning: {warning}\n"))?;
            }
            say(format_args!("the flow `{}` can be run, with warnings: {}\n", flow.name(), explain.warnings.len()))
        }
        Some((_, options)) => {
            let config = config(options)?;
            let runtime = tokio::runtime::Runtime::new();
            let runtime = runtime.map_err(|error| Error::Config(format!("no tokio runtime can be made: {error}")))?;
            runtime.block_on(flow.run(config))
        }
        None => unreachable!("a command is required"),
    }
}

// The settings of a command line, over those of the environment, over those of the file.
fn config(options: &ArgMatches) -> Result<Config> {
    let mut config = Config::default();
    let named = options.get_one::<PathBuf>("config").cloned();
    if let Some(file) = named.or_else(settings::file_of_environment) {
        settings::from_file(&mut config, &file)?;
    }
    let given = |setting: &Setting| options.get_one::<String>(setting.name).is_some();
    config.set_from_env(|setting| !given(setting))?;
    for setting in &SETTINGS {
        if let Some(text) = options.get_one::<String>(setting.name) {
            setting.set(&mut config, text, &format!("--{}", setting.option()))?;
        }
    }
    Ok(config)
}

// Whoever reads no further has read what they wanted.
fn say(text: std::fmt::Arguments<'_>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Config(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

fn told(error: &Error) -> String {
    match error {
        Error::Stopped => error.to_string(),
        _ => format!("error: {error}"),
    }
}

fn code(error: &Error) -> u8 {
    match error {
        Error::Plan(_) | Error::Config(_) => 2,
        // What a shell says of a process that was ended by Ctrl-C.
        Error::Stopped => 130,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_one_that_clap_accepts() {
        command(&Flow::new("a flow")).debug_assert();
    }

    #[test]
    fn the_words_behind_two_hyphens_are_the_programs() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let (ours, own) = split(words("program run --parallelism 2 -- in -- out").into_iter());
        assert_eq!((ours, own), (words("run --parallelism 2"), words("in -- out")));
        assert_eq!(split(words("program check").into_iter()).1, [""; 0]);
    }
}
