//! The house rules, held on the tree itself: who may know whom, what the core may not touch, and how long things are.
//!
//! A rule that fails names the file, the line and the remedy. All that a rule finds is told at once.

#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{Source, sources, words};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// A crate, and the crates of the workspace that it may depend on; those for its own tests do not count.
const MAY_DEPEND_ON: [(&str, &[&str]); 6] = [
    ("flowjoin-core", &[]),
    ("flowjoin-macros", &[]),
    ("flowjoin-runtime", &["flowjoin-core"]),
    ("flowjoin-connectors", &["flowjoin-core"]),
    ("flowjoin-testkit", &["flowjoin-core"]),
    (".", &["flowjoin-core", "flowjoin-macros", "flowjoin-runtime", "flowjoin-connectors"]),
];

/// A part of the core, and the parts that it may not see.
const MAY_NOT_SEE: [(&str, &[&str]); 13] = [
    ("plan", &["api", "task"]),
    ("task", &["api"]),
    ("io", &["api", "plan", "task"]),
    ("op", &["api", "plan", "task"]),
    ("state", &["api", "plan", "task", "op", "io"]),
    ("watermark", ABOVE_VALUES),
    ("batch", ABOVE_VALUES),
    ("record", ABOVE_VALUES),
    ("account", ABOVE_VALUES),
    ("key", ABOVE_VALUES),
    ("change", ABOVE_VALUES),
    ("error", ABOVE_VALUES),
    ("time", ABOVE_VALUES),
];

const ABOVE_VALUES: &[&str] = &["api", "plan", "task", "op", "io", "state"];

/// What the core may not touch: waiting, the world outside, and anything by which two runs could differ.
const NOT_IN_CORE: [&str; 13] = [
    "tokio",
    "futures",
    "rand",
    "std::thread",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "Instant::now",
    "SystemTime::now",
    "HashMap",
    "HashSet",
    "println!",
];

/// The traits of readers and writers are declared in the core, and are async.
const ASYNC_IN_CORE: [&str; 2] = ["flowjoin-core/src/io.rs", "flowjoin-core/src/io/erased.rs"];

/// The prefetch hint.
const UNSAFE: [&str; 1] = ["flowjoin-core/src/state/table.rs"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn tree() -> Vec<Source> {
    sources(&root())
}

// The crates themselves: not their tests, benches and examples.
fn shipped() -> Vec<Source> {
    tree().into_iter().filter(|source| source.path.split('/').rev().any(|part| part == "src")).collect()
}

fn core() -> Vec<Source> {
    tree().into_iter().filter(|source| source.is_under("flowjoin-core/src/")).collect()
}

#[track_caller]
fn none(rule: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{rule}\n  {}\n", found.join("\n  "));
}

// Whether a line of code says a path, a macro or a word; `rand` is not in `operand`.
fn says(code: &str, what: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(what).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_word);
        let after = code[at + what.len()..].chars().next().is_some_and(is_word);
        !before && (!after || what.ends_with('!'))
    })
}

fn that_say(sources: &[Source], what: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (line, code) in source.product() {
            found.extend(
                what.iter().filter(|what| says(code, what)).map(|what| format!("{}:{line} says {what}", source.path)),
            );
        }
    }
    found
}

#[test]
fn the_core_waits_for_nothing_and_sees_nothing_of_the_world() {
    none("the core takes time, rows and chance from its host:", that_say(&core(), &NOT_IN_CORE));
    let pure: Vec<Source> =
        core().into_iter().filter(|source| !ASYNC_IN_CORE.contains(&source.path.as_str())).collect();
    none("only the traits of readers and writers are async:", that_say(&pure, &["async", "await"]));
}

#[test]
fn the_parts_of_the_core_know_only_what_is_below_them() {
    for (part, above) in MAY_NOT_SEE {
        let (file, folder) = (format!("flowjoin-core/src/{part}.rs"), format!("flowjoin-core/src/{part}/"));
        let own: Vec<Source> = core().into_iter().filter(|s| s.path == file || s.is_under(&folder)).collect();
        assert!(!own.is_empty(), "there is no part `{part}` in the core: correct this table");
        let paths: Vec<String> = above.iter().map(|above| format!("crate::{above}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        none(&format!("`{part}` may not see {above:?}:"), that_say(&own, &paths));
        none("a list after `crate::` hides who is seen:", that_say(&own, &["crate::{"]));
    }
}

#[test]
fn runtime_connectors_and_testkit_do_not_know_each_other() {
    for (member, allowed) in MAY_DEPEND_ON {
        let path = root().join(member).join("Cargo.toml");
        let text = fs::read_to_string(&path).expect("every crate has a manifest");
        let used = workspace_dependencies(&text);
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_string()).collect();
        let beyond: Vec<&String> = used.difference(&allowed).collect();
        assert!(beyond.is_empty(), "`{member}` may not depend on {beyond:?}");
        let lints =
            text.split_once("[lints]").is_some_and(|(_, rest)| rest.trim_start().starts_with("workspace = true"));
        assert!(lints, "`{member}` does not take the lints of the workspace");
    }
}

fn workspace_dependencies(manifest: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            counts = line == "[dependencies]" || line == "[build-dependencies]" || line.ends_with(".dependencies]");
            counts &= line != "[workspace.dependencies]";
        } else if counts && line.starts_with("flowjoin") {
            used.insert(words(&line.replace('-', "_")).next().unwrap_or_default().replace('_', "-"));
        }
    }
    used
}

#[test]
fn the_facade_contains_no_logic() {
    let facade: Vec<Source> = tree().into_iter().filter(|source| source.is_under("src/")).collect();
    none("`src` only re-exports:", that_say(&facade, &["fn", "impl", "struct", "enum", "trait", "static"]));
}

#[test]
fn a_file_has_one_subject_and_says_which() {
    let long = tree().into_iter().filter(|source| source.lines.len() > FILE_LINES_MAX);
    let long = long.map(|source| format!("{} has {} lines", source.path, source.lines.len()));
    none("a file has at most 600 lines; look for the seam:", long.collect());
    let silent = tree().into_iter().filter(|source| {
        !source.path.ends_with("/tests.rs") && !source.lines.first().is_some_and(|line| line.starts_with("//! "))
    });
    none("a file begins with `//!` and what it is:", silent.map(|source| source.path).collect());
}

#[test]
fn a_function_fits_a_screen() {
    let mut long = Vec::new();
    for source in tree() {
        let functions = source.functions().into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX);
        // A program that the compiler is tried on may be one long function.
        let functions = functions.filter(|_| !source.is_under("tests/ui/"));
        long.extend(functions.map(|f| format!("{}:{} {} has {} lines", source.path, f.line + 1, f.name, f.lines)));
    }
    none("a function has at most 70 lines:", long);
}

#[test]
fn a_public_item_is_documented() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
    assert!(manifest.contains("\nmissing_docs = "), "the lint that finds what this rule does not is switched off");
    let mut bare = Vec::new();
    for source in shipped() {
        for (line, code) in source.product() {
            // A trait that seals another is not for users.
            let is_seal = code.contains("trait Sealed");
            if is_public_item(code) && !is_seal && !has_docs(&source, line - 1) {
                bare.push(format!("{}:{line} {}", source.path, code.trim()));
            }
        }
    }
    none("every public item has a line that a user understands:", bare);
}

fn is_public_item(code: &str) -> bool {
    let Some(item) = code.trim_start().strip_prefix("pub ") else { return false };
    let mut words =
        words(item).skip_while(|word| matches!(*word, "const" | "async" | "unsafe") && item.contains("fn "));
    matches!(words.next(), Some("fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "macro"))
}

// A doc comment above, past attributes, which may be several lines long.
fn has_docs(source: &Source, line: usize) -> bool {
    let mut above = line;
    while above > 0 {
        let text = source.lines[above - 1].trim();
        if text.starts_with("///") {
            return true;
        }
        if !text.ends_with(']') {
            return false;
        }
        let begins = |line: &usize| source.lines[*line].trim_start().starts_with("#[");
        let Some(attribute) = (0..above).rev().find(begins) else { return false };
        above = attribute;
    }
    false
}

#[test]
fn nothing_is_left_undone_and_nothing_is_unwrapped() {
    none(
        "what is left to do is not said in code:",
        that_say(&tree(), &["todo!", "unimplemented!", "dbg!", "TODO", "FIXME"]),
    );
    none("`expect(\"why it holds\")`, or an error; `unwrap` is for tests:", that_say(&shipped(), &["unwrap"]));
    let ignored = tree().into_iter().filter(|source| source.path != "tests/tidy.rs");
    let ignored = ignored.filter(|source| source.code.iter().any(|code| code.contains("#[ignore")));
    none("no test is ignored:", ignored.map(|source| source.path).collect());
}

#[test]
fn unsafe_is_the_prefetch_hint_and_nothing_else_that_is_shipped() {
    let safe: Vec<Source> = shipped().into_iter().filter(|source| !UNSAFE.contains(&source.path.as_str())).collect();
    none("no unsafe code:", that_say(&safe, &["unsafe"]));
    for source in tree() {
        let reasons = source.lines.iter().filter(|line| line.contains("SAFETY:")).count();
        let blocks = source.code.iter().filter(|code| says(code, "unsafe")).count();
        assert!(blocks <= reasons, "each unsafe block in {} says why it is sound, after `SAFETY:`", source.path);
    }
}

#[test]
fn the_code_map_is_true() {
    let Ok(page) = fs::read_to_string(root().join("ARCHITECTURE.md")) else { return };
    let fenced = page.split("```").skip(1).step_by(2).filter(|block| block.contains("flowjoin-core/"));
    let mut missing = Vec::new();
    for block in fenced {
        missing.extend(named_in_map(block).into_iter().filter(|name| !exists(&root(), name)));
    }
    none("ARCHITECTURE.md names what is not there:", missing);
}

// Files and folders in a code map: the words before its remarks that look like one.
fn named_in_map(block: &str) -> Vec<String> {
    let is_name = |word: &&str| word.ends_with(".rs") || word.ends_with(".toml") || word.ends_with('/');
    let clean = |line: &str| line.replace(['│', '├', '└', '─', ','], " ");
    let of = |line: &str| clean(line).split_whitespace().take_while(is_name).map(String::from).collect::<Vec<_>>();
    let names = block.lines().flat_map(of);
    names.filter(|name| name != "flowjoin/").collect()
}

// Whether a path, or the end of one, is in the tree.
fn exists(folder: &Path, name: &str) -> bool {
    if folder.join(name).exists() {
        return true;
    }
    let folders =
        fs::read_dir(folder).expect("a folder can be listed").filter_map(Result::ok).map(|entry| entry.path());
    let inner = folders.filter(|path| path.is_dir() && !path.ends_with("target") && !path.ends_with(".git"));
    inner.into_iter().any(|inner| exists(&inner, name))
}

#[test]
fn the_rules_see_code_and_not_comments_or_texts() {
    let text = "//! A page.\nfn one() -> &'static str {\n    // unsafe\n    let c = '{';\n    r#\"todo!() \"{\"#\n}\n\n\
                #[cfg(test)]\nmod tests {\n    fn two() { \"x\\\"\".len(); }\n}\ntrait T { fn three(); }\n";
    let source = Source::of("a.rs", text);
    assert!(!source.code.iter().any(|code| says(code, "unsafe") || says(code, "todo!")));
    let functions: Vec<_> = source.functions().into_iter().map(|f| (f.name, f.line + 1, f.lines)).collect();
    assert_eq!(functions, [("one".to_string(), 2, 5), ("two".to_string(), 10, 1)]);
    assert_eq!(source.tests.iter().filter(|is_test| **is_test).count(), 4);
    assert!(says("let x = rand::random()", "rand") && !says("operand", "rand") && says("a.unwrap()", "unwrap"));
    assert!(!says("a.unwrap_or_default()", "unwrap"));
    let map = "flowjoin-core/src/\n│  ├─ time.rs change.rs   clocks, see tests/ui\n";
    assert_eq!(named_in_map(map), ["flowjoin-core/src/", "time.rs", "change.rs"]);
}
