//! The command line of a flow: this test binary runs itself as a child, and the child is a program that is one flow.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::flow::*;
use expect_test::expect;
use flowjoin::prelude::*;

const WORDS: &str = "OWN_TEST_WORDS";

// What a user's `main` is; in a test binary it has to be a test, which does nothing unless it is asked for.
#[test]
fn program() {
    let Ok(words) = std::env::var(WORDS) else { return };
    let flow = Flow::new("pairs");
    let lefts = flow.stream::<Left>(JsonLines::file("lefts.jsonl")).keyed();
    let rights = flow.stream::<Right>(JsonLines::file("rights.jsonl")).keyed();
    let join = lefts.join(rights).keep_forever().named("join");
    let pairs = join.select(|left, right| (left.id, right.id));
    if !words.contains("sinkless") {
        let file = if words.contains("clashing") { "lefts.jsonl" } else { "pairs.jsonl" };
        pairs.sink_to(JsonLines::sink(file).named("pairs"));
    }
    if words == "by-hand" {
        let ended = Config::from_env().and_then(|config| run(flow.run(config)));
        std::process::exit(ended.inspect_err(|error| eprintln!("{error}")).is_err().into());
    }
    let words = words.split_whitespace().filter(|word| !["sinkless", "clashing"].contains(word));
    std::process::exit(flowjoin::main_with(flow, words).into());
}

struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).expect("a file can be written");
    }

    // Exit code, standard output without what the test harness says, and standard error.
    fn run(&self, words: &str, variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let mut command = Command::new(std::env::current_exe().expect("a test has a binary"));
        command.args(["--exact", "cli::program", "--nocapture", "--test-threads=1"]).current_dir(&self.0);
        command.env(WORDS, words).envs(variables.iter().copied());
        let Output { status, stdout, stderr } = command.output().expect("the child runs");
        let stdout = String::from_utf8(stdout).expect("it speaks UTF-8");
        let own = stdout.split_once("test cli::program ... ").map(|(_, own)| own.to_string());
        let own = own.expect("the test harness says what it runs");
        (status.code(), own, String::from_utf8(stderr).expect("it speaks UTF-8"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_flow_is_run_by_the_command_line_and_its_settings_by_whoever_is_nearest() {
    let folder = Folder::new("run");
    folder.write("lefts.jsonl", "{\"id\":1,\"at\":1}\n{\"id\":2,\"at\":2}\n");
    folder.write("rights.jsonl", "{\"id\":2,\"at\":1}\n");
    folder.write("settings.toml", "parallelism = 3\nreport = true\n");
    let pairs = || std::fs::read_to_string(folder.0.join("pairs.jsonl")).expect("the sink was written");
    let (code, out, err) = folder.run("run --parallelism 1 --report false", &[]);
    assert_eq!((code, out.as_str(), err.as_str(), pairs().as_str()), (Some(0), "", "", "[2,2]\n"));
    // The accounting tells at which parallelism it ran: by the file, by a variable over it, by the command line over both.
    let file = ("FLOWJOIN_CONFIG", "settings.toml");
    let of = |words: &str, variables: &[(&str, &str)]| {
        let (code, _, err) = folder.run(words, variables);
        assert_eq!(code, Some(0), "{err}");
        err.contains("accounting of flow pairs")
    };
    assert!(of("run --config settings.toml", &[]) && of("run", &[file]));
    assert!(!of("run", &[file, ("FLOWJOIN_REPORT", "false")]));
    assert!(of("run --report true", &[file, ("FLOWJOIN_REPORT", "false")]));
    // So it is where a program has a command line of its own.
    folder.write("settings.toml", "report = false\n");
    assert!(of("by-hand", &[]) && !of("by-hand", &[file]) && of("by-hand", &[file, ("FLOWJOIN_REPORT", "true")]));
    let (code, _, err) = folder.run("by-hand", &[("FLOWJOIN_CONFIG", "none.toml")]);
    assert!(code == Some(1) && err.starts_with("none.toml: "), "{err}");
}

#[test]
fn a_run_that_fails_says_why_and_ends_with_one() {
    let folder = Folder::new("fails");
    folder.write("lefts.jsonl", "{\"id\":1,\"at\":1}\nno row\n");
    folder.write("rights.jsonl", "");
    let (code, out, err) = folder.run("run", &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("\nerror: `lefts`: bad record at lefts.jsonl:2"), "{err}");
}

#[test]
fn a_plan_is_explained_in_three_forms_without_opening_anything() {
    let folder = Folder::new("explain");
    let (code, text, err) = folder.run("explain", &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(text.starts_with("flow pairs") && text.contains("join join"), "{text}");
    let (code, json, _) = folder.run("explain --json", &[]);
    let plan: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((code, &plan["flow"]), (Some(0), &"pairs".into()));
    let (code, chart, _) = folder.run("explain --mermaid", &[]);
    assert!(code == Some(0) && chart.starts_with("flowchart"), "{chart}");
    assert_eq!(std::fs::read_dir(&folder.0).expect("it is a folder").count(), 0);
}

#[test]
fn a_check_tells_what_is_wrong_and_what_is_warned_of() {
    let folder = Folder::new("check");
    let (code, out, err) = folder.run("check --parallelism 2", &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("warning: ") && out.ends_with("the flow `pairs` can be run, with warnings: 2\n"), "{out}");
    for (words, variables, told) in [
        ("check sinkless", &[][..], "error: "),
        (
            "check clashing",
            &[],
            "error: `lefts.jsonl` would be lost: source `lefts` reads it and sink `pairs` writes to it; ",
        ),
        ("check --parallelism 0", &[], "error: --parallelism: parallelism must be above zero\n"),
        ("check --linger -5ms", &[], "error: --linger: linger is -5ms, and time does not go back\n"),
        ("check", &[("FLOWJOIN_PAGE_ROWS", "many")], "error: FLOWJOIN_PAGE_ROWS is `many`; it takes a number of rows"),
        ("check --config none.toml", &[], "error: none.toml: "),
        ("run --parallelism 0", &[], "error: --parallelism: parallelism must be above zero\n"),
    ] {
        let (code, out, err) = folder.run(words, variables);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words}: {err}");
        assert!(err.starts_with(told), "{words}: {err}");
    }
}

#[test]
fn a_command_line_that_is_not_understood_is_told_with_what_there_is() {
    let folder = Folder::new("usage");
    for (words, told) in [
        ("", "Commands:"),
        ("rum", "a similar subcommand exists: 'run'"),
        ("run --paralelism 2", "a similar argument exists: '--parallelism'"),
        ("run extra", "unexpected argument 'extra'"),
        ("run extra", "words for the program itself stand behind `--`"),
        ("explain --json --mermaid", "cannot be used with"),
        ("explain --parallelism 2", "unexpected argument '--parallelism'"),
    ] {
        let (code, out, err) = folder.run(words, &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{words}");
        assert!(err.contains(told), "{words}: {err}");
    }
    let (code, out, _) = folder.run("run --help", &[]);
    assert_eq!(code, Some(0));
    let name = out.lines().find_map(|line| line.strip_prefix("Usage: ")).expect("it tells the usage").to_string();
    let out = out.replace(&name, "PROGRAM run [OPTIONS]");
    expect![[r#"
        Runs the flow until its sources end or Ctrl-C stops them

        Usage: PROGRAM run [OPTIONS]

        Options:
              --config <FILE>              A TOML file with settings [default: what FLOWJOIN_CONFIG names]
              --parallelism <TASKS>        Tasks a stage [default: as many as there are cores]
              --page-rows <ROWS>           Rows that a source reads at once, at most [default: 4096]
              --batch-rows <ROWS>          Rows for one receiver that leave an exchange without waiting for more [default: 2048]
              --linger <SPAN>              How long a row may wait in an exchange for others [default: 5ms]
              --channel-batches <BATCHES>  Batches that a channel between two tasks holds [default: 1]
              --progress <true|false>      Whether a progress bar is shown for each source that has an end [default: true]
              --report <true|false>        Whether the accounting is printed at the end [default: true]
          -h, --help                       Print help

        Words behind `--` are the program's own.
    "#]].assert_eq(&out);
}
