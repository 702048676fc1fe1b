//! The conformance cases, on the operators as they run, as one task a stage and as four.
//!
//! None may fail. What cannot be played yet, or is refused by design, is written down here case by case, so that
//! nothing is passed over in silence.

use std::path::PathBuf;

use expect_test::{Expect, expect};
use flowjoin_testkit::conformance::engines::parallelisms;
use flowjoin_testkit::conformance::{CaseFile, Outcome, run};
use flowjoin_testkit::crashing;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/cases")
}

fn read(family: &str) -> CaseFile {
    CaseFile::read(&folder().join(format!("{family}.json"))).expect("the cases are here")
}

// Plays a family; what is skipped must be just this, a line a case.
fn check(family: &str, passed: usize, skipped: Expect) {
    let mut passes = 0;
    let mut skips = Vec::new();
    for case in &read(family).cases {
        match run(case) {
            Outcome::Pass => passes += 1,
            Outcome::Fail(failure) => panic!("{}: {failure}", case.id),
            Outcome::NotApplicable(reason) => skips.push(format!("{}: {reason}", case.id)),
            Outcome::Malformed(reason) => panic!("{}: {reason}", case.id),
        }
    }
    skipped.assert_eq(&skips.join("\n"));
    assert_eq!(passes, passed, "{family}");
}

#[test]
fn all_files_are_of_the_format_and_no_id_is_had_twice() {
    let entries = std::fs::read_dir(folder()).expect("the cases are here");
    let paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
    let wrong: Vec<String> =
        CaseFile::read_all(&paths).into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
    assert_eq!((paths.len(), wrong.join("\n").as_str()), (12, ""));
}

#[test]
fn joins_are_played_as_one_task_a_stage_and_as_four() {
    let families = ["multi_join", "regular_join", "interval_join", "mini_batch_join", "window_join", "temporal_join"];
    for family in families.into_iter().chain(["snapshot_join"]) {
        assert!(read(family).cases.iter().all(|case| parallelisms(case) == [1, 4]));
    }
}

// With a commit and a crash after each step nothing that comes out may change.
#[test]
fn all_cases_pass_through_crashes() {
    let joins = ["multi_join", "regular_join", "mini_batch_join", "interval_join", "window_join", "temporal_join"];
    let families = joins.into_iter().chain(["snapshot_join", "upsert_materializer", "watermarks"]);
    for case in families.flat_map(|family| read(family).cases) {
        let (expected, crashed) = (run(&case), crashing(|| run(&case)));
        assert_eq!(crashed, expected, "{} with crashes", case.id);
    }
}

#[test]
fn multi_joins_pass_the_cases() {
    check("multi_join", 15, expect!["mj-3in-05: refused by design: a multi join needs one key that all inputs have"]);
}

#[test]
fn regular_joins_pass_the_cases() {
    check(
        "regular_join",
        27,
        expect![
            "rj-ttl-04: step 5 finds a row whose time-to-live is over, which Flink began anew when a partner came or went: by design it counts from the row's own write"
        ],
    );
}

#[test]
fn interval_joins_pass_the_cases() {
    check(
        "interval_join",
        28,
        expect![[r#"
        ij-ds-09: refused by design: the interval [0 ms, -1 ms] is empty: nothing could ever match
        ij-sql-14: refused by design: the interval [5 ms, -5 ms] is empty: nothing could ever match"#]],
    );
}

#[test]
fn temporal_joins_pass_the_cases() {
    check("temporal_join", 9, expect!["tp-02: step 2 is a -D, and rows that look others up are facts only, by design"]);
}

#[test]
fn snapshot_joins_pass_the_cases() {
    check("snapshot_join", 3, expect![[""]]);
}

#[test]
fn window_joins_pass_the_cases() {
    check("window_join", 11, expect![[""]]);
}

#[test]
fn mini_batches_pass_the_cases() {
    check("mini_batch_join", 12, expect![[""]]);
}

#[test]
fn tables_pass_the_cases() {
    check("upsert_materializer", 12, expect![[""]]);
}

#[test]
fn watermarks_pass_the_cases() {
    check("watermarks", 18, expect![[""]]);
}

#[test]
fn the_other_families_wait_for_their_operators() {
    for family in ["broadcast_join", "delta_join", "lookup_join"] {
        for case in &read(family).cases {
            let reason = format!("there is no engine for `{}`", case.operator);
            assert_eq!(run(case), Outcome::NotApplicable(reason), "{}", case.id);
        }
    }
}
