//! What the compiler refuses, and what it says: each program in `tests/ui/refused` has our own sentence in its `.stderr`.
//!
//! The texts around our sentences are rustc's, so this test knows one toolchain and stands aside on all others. After a
//! change, `TRYBUILD=overwrite cargo test --test ui` writes the texts anew; read them as a user would before you commit.

use std::process::Command;

// Not refused: closures without annotations over 2 to 12 inputs, with names about that a macro must not fall over.
#[path = "ui/accepted.rs"]
#[allow(dead_code)]
mod accepted;
#[path = "ui/accepted_policies.rs"]
#[allow(dead_code)]
mod accepted_policies;
#[path = "ui/accepted_windows.rs"]
#[allow(dead_code)]
mod accepted_windows;

/// So many programs are refused at the most.
const PROGRAMS_MAX: usize = 25;

/// The toolchain whose texts are held.
const TOOLCHAIN: &str = "1.95";

#[test]
fn a_mistake_in_a_join_is_told_in_our_words() {
    if !is_the_toolchain() {
        eprintln!("not checked: the texts are those of rustc {TOOLCHAIN}");
        return;
    }
    let programs = std::fs::read_dir("tests/ui/refused").expect("the programs are there");
    let count =
        programs.filter_map(Result::ok).filter(|entry| entry.path().extension().is_some_and(|of| of == "rs")).count();
    assert!(count <= PROGRAMS_MAX, "{count} programs are more than anybody reads: put those together that are alike");
    let programs = trybuild::TestCases::new();
    programs.compile_fail("tests/ui/refused/*.rs");
    // The programs are compiled when this goes.
    drop(programs);
    every_text_begins_with_a_sentence_of_ours();
}

fn every_text_begins_with_a_sentence_of_ours() {
    let ours = ours();
    for entry in std::fs::read_dir("tests/ui/refused").expect("the programs are there") {
        let path = entry.expect("a directory can be listed").path();
        if path.extension().is_none_or(|extension| extension != "stderr") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text can be read");
        let path = path.display();
        let first = text.lines().next().unwrap_or_default();
        let sentence = first.split_once(": ").map_or("", |(_, sentence)| sentence);
        assert!(ours.iter().any(|ours| sentence.contains(ours)), "{path} begins with a sentence of rustc: {first}");
        // An error of the type checker that only follows from the first one would hide it.
        for follow_up in ["E0282", "E0283", "E0271", "E0599"] {
            assert!(!text.contains(follow_up), "{path} also has the follow-up {follow_up}");
        }
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{path} has an absolute path");
    }
}

// A part of each sentence that a user may meet first.
fn ours() -> &'static [&'static str] {
    &[
        "is not keyed by",
        "needs append-only input",
        "only takes append-only rows",
        "has no event time",
        "has no versions under a key of type",
        "is no time-to-live",
        "is no length of time",
        "it is no interval join",
        "has no key",
        "has no bounds",
        "does not say which windows",
        "does not say how long its rows are kept",
        "does not say what its results are",
        "comes after the join has said how long",
        "only keyed streams can be joined",
        "at most 12 inputs",
        "cannot be kept in state",
        "cannot be opened as a stream",
        "cannot be opened as a table",
        "can be said of facts only",
        "a condition of a join cannot answer with",
        "cannot be a key",
        "unknown option",
        "has no field",
        "no field is marked",
        "unknown unit",
    ]
}

fn is_the_toolchain() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&version).starts_with(&format!("rustc {TOOLCHAIN}."))
}
