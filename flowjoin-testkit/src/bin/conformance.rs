//! Plays conformance case files and says what failed, what was skipped, and why.
//!
//! `cargo run --release -p flowjoin-testkit --bin conformance -- FILE…`
//!
//! A line for each case that failed or could not be played; the last line is `N passed, N failed, N skipped`. The exit
//! code is 1 if a case failed, and 2 if a file could not be read or has a case that is not of the format: such cases are
//! named with their file and id, and the other cases of that file are not played.

use std::path::Path;
use std::process::ExitCode;

use flowjoin_testkit::conformance::{CaseFile, Outcome, ReadError, run};

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    unreadable: usize,
}

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: conformance FILE…");
        return ExitCode::from(2);
    }
    // The text of a panic of an engine is part of the line of its case.
    std::panic::set_hook(Box::new(|_| {}));
    let mut tally = Tally::default();
    for (path, file) in files.iter().zip(CaseFile::read_all(&files)) {
        play_file(Path::new(path), file, &mut tally);
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    match tally {
        Tally { unreadable: 1.., .. } => ExitCode::from(2),
        Tally { failed: 1.., .. } => ExitCode::from(1),
        Tally { .. } => ExitCode::SUCCESS,
    }
}

fn play_file(path: &Path, file: Result<CaseFile, ReadError>, tally: &mut Tally) {
    let file = match file {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{}", with_sources(&error));
            tally.unreadable += 1;
            return;
        }
    };
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
            Outcome::Malformed(reason) => {
                eprintln!("{}, case {}: {}", path.display(), case.id, one_line(&reason));
                tally.unreadable += 1;
            }
        }
    }
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
