//! The program that plays case files, as a person calls it.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output};

fn play(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = Command::new(env!("CARGO_BIN_EXE_conformance")).args(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

const GOOD: &str = r#"{"id":"good","operator":"regular_join","config":{"type":"inner","inputs":[
    {"name":"L","fields":["k"],"key":["k"]},{"name":"R","fields":["k"],"key":["k"]}]},"steps":[]}"#;

fn file(name: &str, cases: &[&str]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()));
    std::fs::write(&path, format!(r#"{{"schema":1,"family":"test","cases":[{}]}}"#, cases.join(","))).unwrap();
    path
}

#[test]
fn it_says_how_it_is_used() {
    let (code, told) = play(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(told.contains("usage: conformance FILE") && told.contains("exit codes: 0 "), "{told}");
    assert_eq!(play(&[]).0, Some(2));
}

#[test]
fn a_case_that_is_not_of_the_format_has_failed_and_the_others_are_played() {
    let op = r#"{"id":"op","operator":"regular_join","config":{},"steps":[{"op":"jump"}]}"#;
    let field = r#"{"id":"field","operator":"regular_join","config":{},"steps":[{"op":"watermark","time":5}]}"#;
    let option = r#"{"id":"option","operator":"regular_join","config":{"tpye":"inner"},"steps":[]}"#;
    let path = file("malformed", &[op, field, GOOD, option]);
    let (code, told) = play(&[path.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{told}");
    for (id, what) in [("op", "jump"), ("field", "time"), ("option", "tpye")] {
        let line = told.lines().find(|line| line.starts_with(&format!("FAIL {id}: ")));
        assert!(line.is_some_and(|line| line.contains(what)), "{id}: {told}");
    }
    assert!(told.ends_with("3 failed, 0 skipped\n"), "{told}");
    assert!(told.contains("1 passed"), "{told}");
    std::fs::remove_file(path).unwrap();
}
