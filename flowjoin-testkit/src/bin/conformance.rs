//! Plays conformance case files and says what failed, what was skipped, and why.
//!
//! `cargo run --release -p flowjoin-testkit --bin conformance -- FILE…`
//!
//! A line for each case that failed or could not be played; the last line is `N passed, N failed, N skipped`. A case that
//! is not of the format (an operation, a field or an option that there is not) has failed, and its line says why. The exit
//! code is 1 if a case failed, and 2 if a file could not be read.

use std::path::Path;
use std::process::ExitCode;

use flowjoin_testkit::conformance::{CaseError, CaseFile, Outcome, ReadError, Sorted, run};

const USAGE: &str = "\
Plays conformance case files: a line for each case that failed (FAIL) or cannot be played here (skip), and the reason.

usage: conformance FILE…

  -h, --help    prints this

exit codes: 0 all passed or were skipped, 1 a case failed or is not of the format, 2 a file could not be read";

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    unreadable: usize,
}

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.iter().any(|file| file == "--help" || file == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if files.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    // The text of a panic of an engine is part of the line of its case.
    std::panic::set_hook(Box::new(|_| {}));
    let mut tally = Tally::default();
    for (path, file) in files.iter().zip(CaseFile::read_each(&files)) {
        play_file(Path::new(path), file, &mut tally);
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    match tally {
        Tally { unreadable: 1.., .. } => ExitCode::from(2),
        Tally { failed: 1.., .. } => ExitCode::from(1),
        Tally { .. } => ExitCode::SUCCESS,
    }
}

fn play_file(path: &Path, file: Result<Sorted, ReadError>, tally: &mut Tally) {
    let Sorted { file, wrong } = match file {
        Ok(sorted) => sorted,
        Err(error) => {
            eprintln!("{}", with_sources(&error));
            tally.unreadable += 1;
            return;
        }
    };
    for CaseError { case, reason } in &wrong {
        let case = case.clone().unwrap_or_else(|number| format!("case number {number}"));
        malformed(tally, path, &case, reason);
    }
    for case in &file.cases {
        match run(case) {
            Outcome::Pass => tally.passed += 1,
            Outcome::Fail(failure) => {
                println!("FAIL {}: {}", case.id, one_line(&failure.to_string()));
                tally.failed += 1;
            }
            Outcome::NotApplicable(reason) => {
                println!("skip {}: {}", case.id, one_line(&reason));
                tally.skipped += 1;
            }
            Outcome::Malformed(reason) => malformed(tally, path, &case.id, &reason),
        }
    }
}

// A case that nobody can play is not one that may be skipped.
fn malformed(tally: &mut Tally, path: &Path, case: &str, reason: &str) {
    println!("FAIL {case}: not of the format, in {}: {}", path.display(), one_line(reason));
    tally.failed += 1;
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors already tell their cause.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
