//! Flows as whole programs: this test binary runs itself as a child, and the child is a `main` that returns the error.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitCode, Output, Stdio};

use super::flow::*;
use flowjoin::connectors::Generate;
use flowjoin::prelude::*;

const PROGRAM: &str = "FLOWJOIN_TEST_PROGRAM";

// What a user's `main` is; in a test binary it has to be a test, which does nothing unless it is asked for.
#[test]
fn program() {
    let Ok(which) = std::env::var(PROGRAM) else { return };
    let flow = Flow::new(&which);
    let folder = std::path::PathBuf::from(std::env::var("OUT_FOLDER").expect("the parent says where"));
    match which.as_str() {
        "quiet" => {
            flow.stream::<Left>(JsonLines::file(folder.join("pipe"))).sink_to(JsonLines::sink(folder.join("out")))
        }
        "stalled" => {
            let (lefts, rights) =
                (flow.stream(Generate::new("lefts", left)), flow.stream(Generate::new("rights", right)));
            let join = lefts.keyed().join(rights.keyed()).ttl(hours(1)).named("join");
            join.select(|a, b| (a.id, b.id)).sink_to(JsonLines::sink(folder.join("pipe")));
        }
        "printing" => flow
            .stream(Generate::new("lefts", left).count(2))
            .map(|left| left.id)
            .sink_to(JsonLines::sink("/dev/stdout")),
        _ => pairs(&flow, &folder),
    }
    let mut config = quiet(2);
    (config.stop_on_ctrl_c, config.report) = (true, true);
    // With one thread for its tasks, all of them are held up by a write that is.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let workers = if which == "stalled" { 1 } else { 2 };
    let runtime = runtime.worker_threads(workers).enable_all().build().expect("a runtime can be built");
    let ended: flowjoin::Result<()> = runtime.block_on(flow.run(config));
    // As `fn main() -> flowjoin::Result<()>` does it.
    let code = std::process::Termination::report(ended);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 });
}

fn pairs(flow: &Flow, folder: &std::path::Path) {
    let rows = Generate::new("lefts", left);
    let rights = flow.stream(Generate::new("rights", right).rate(1_000)).keyed();
    let panics = flow.name() == "panics";
    let lefts = flow.stream(rows.rate(1_000)).map(move |left| {
        assert!(!panics || left.id < 10, "order {} is not to be had", left.id);
        left
    });
    let join = lefts.keyed().join(rights).ttl(hours(1)).named("join");
    join.select(|a, b| (a.id, b.id)).sink_to(JsonLines::sink(folder.join("pairs.jsonl")));
}

fn child(which: &str, folder: &std::path::Path) -> Command {
    std::fs::create_dir_all(folder).expect("a folder can be made");
    let mut command = Command::new(std::env::current_exe().expect("a test has a binary"));
    command.args(["--exact", "process::program", "--nocapture", "--test-threads=1"]);
    command.env(PROGRAM, which).env("OUT_FOLDER", folder).env("RUST_BACKTRACE", "0");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn folder(which: &str) -> std::path::PathBuf {
    std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("process-{which}-{}", std::process::id()))
}

#[test]
fn a_program_whose_function_panics_ends_with_a_failure_and_a_report_that_a_person_can_read() {
    let folder = folder("panics");
    let Output { status, stderr, .. } = child("panics", &folder).output().expect("the child runs");
    let told = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains("Error: a function given to `map` panicked: order 10 is not to be had\n"), "{told}");
    // Where the rows had gone by then is told all the same.
    assert!(
        told.contains("the flow has failed; this is where rows had gone by then\naccounting of flow panics"),
        "{told}"
    );
    let row = told.lines().find(|line| line.starts_with("source lefts")).expect("the source has a row");
    let cells: Vec<u64> = row.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
    assert!(cells[0] > 10, "{told}");
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}

#[cfg(unix)]
#[test]
fn ctrl_c_drains_the_flow_and_ends_with_a_word_of_that_and_accounts_that_add_up() {
    let folder = folder("interrupted");
    let mut child = child("interrupted", &folder).spawn().expect("the child runs");
    let file = folder.join("pairs.jsonl");
    // A flow that writes is a flow that runs.
    while std::fs::metadata(&file).map_or(0, |file| file.len()) == 0 {
        assert!(child.try_wait().expect("a child can be asked").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    interrupt(&child);
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    stderr.read_line(&mut told).expect("the child speaks");
    stderr.read_to_string(&mut told).expect("the child speaks");
    // A script can tell it from a run that has read everything.
    assert_eq!(child.wait().expect("the child ends").code(), Some(1), "{told}");
    assert!(told.starts_with("stopping: "), "{told}");
    assert!(told.contains("accounting of flow interrupted after "), "{told}");
    assert!(told.contains(" s, stopped before its sources had ended\n"), "{told}");
    assert!(told.contains("\nError: stopped before its sources had ended; "), "{told}");
    // The accounting and the file tell the same.
    let written = std::fs::read_to_string(&file).expect("the file is there").lines().count();
    let row = told.lines().find(|line| line.starts_with("join join")).expect("the join has a row");
    let cells: Vec<u64> = row.split_whitespace().filter_map(|cell| cell.replace(',', "").parse().ok()).collect();
    assert_eq!(cells[1], written as u64, "{told}");
    assert_eq!(cells[0], cells[1..].iter().sum::<u64>(), "{told}");
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("there is a kill").success());
}

// Nobody reads what it writes, so all its threads are held up.
#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_ends_a_flow_that_cannot_write() {
    let folder = folder("stalled");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo").success());
    let mut child = child("stalled", &folder).spawn().expect("the child runs");
    let mut reader = std::fs::File::open(&pipe).expect("the child opens its end");
    reader.read_exact(&mut [0; 1]).expect("the child writes");
    // It has written as much as the pipe takes once the file of its state says that it sleeps, and goes on sleeping.
    let mut asleep = 0;
    while asleep < 20 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("it has threads");
        let states = threads.map(|thread| std::fs::read_to_string(thread.expect("it is there").path().join("stat")));
        let runs = states.flatten().any(|state| state.contains(") R "));
        asleep = if runs { 0 } else { asleep + 1 };
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // One that hears nothing is ended after a minute.
    let (ended, waits) = std::sync::mpsc::channel::<()>();
    let id = child.id().to_string();
    std::thread::spawn(move || {
        if waits.recv_timeout(std::time::Duration::from_secs(60)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let mut told = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    interrupt(&child);
    told.read_line(&mut line).expect("the child speaks");
    assert!(line.starts_with("stopping: "), "{line}");
    interrupt(&child);
    assert_eq!(child.wait().expect("the child ends").code(), Some(130), "it does not end of itself");
    drop(ended);
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}

// The rows of a pipe come out as they come in, and the first Ctrl-C ends the wait for more.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_flow_that_waits_for_a_pipe() {
    let folder = folder("quiet");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let (pipe, out) = (folder.join("pipe"), folder.join("out"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo").success());
    let mut child = child("quiet", &folder).spawn().expect("the child runs");
    let mut writer = std::fs::File::options().write(true).open(&pipe).expect("the child opens the other end");
    let rows = "{\"id\":1,\"at\":1}\n{\"id\":2,\"at\":2}\n";
    writer.write_all(rows.as_bytes()).expect("the child reads");
    let began = std::time::Instant::now();
    let waits = |child: &mut std::process::Child, what: &str| {
        std::thread::yield_now();
        if began.elapsed() > std::time::Duration::from_secs(60) {
            child.kill().expect("a child can be ended");
            panic!("{what}");
        }
    };
    while std::fs::read_to_string(&out).map_or(0, |text| text.len()) < rows.len() {
        waits(&mut child, "the rows that are in the pipe do not come out");
    }
    interrupt(&child);
    while child.try_wait().expect("a child can be asked").is_none() {
        waits(&mut child, "it waits for the pipe");
    }
    let Output { status, stderr, .. } = child.wait_with_output().expect("the child has ended");
    let told = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains("\nError: stopped before its sources had ended; "), "{told}");
    assert_eq!(std::fs::read_to_string(&out).expect("the file is there"), rows, "{told}");
    drop(writer);
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}

#[cfg(unix)]
#[test]
fn rows_on_the_output_of_the_process_stand_behind_what_is_there() {
    let folder = folder("printing");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join("out");
    let mut file = std::fs::File::create(&path).expect("a file can be made");
    file.write_all(b"before\n").expect("it can be written to");
    let output = file.try_clone().expect("it can be shared");
    let status = child("printing", &folder).stdout(output).stderr(Stdio::null()).status().expect("the child runs");
    assert!(status.success());
    file.write_all(b"after\n").expect("it can be written to");
    let text = std::fs::read_to_string(&path).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    // The child is a test, which says so on its output too.
    let at = |line: &str| lines.iter().position(|other| other.ends_with(line));
    let places = ["before", "0", "1", "after"].map(at);
    assert!(places.is_sorted() && places[0] == Some(0) && places[3] == Some(lines.len() - 1), "{text}");
    std::fs::remove_dir_all(folder).expect("its own folder can be removed");
}
