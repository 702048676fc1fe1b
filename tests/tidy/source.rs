//! A source file as the rules see it: its code without comments and texts, and which lines of it are tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of this tree.
pub struct Source {
    /// Its path from the root of the tree, with `/`.
    pub path: String,
    /// Its lines as they are.
    pub lines: Vec<String>,
    /// Its lines with comments and the insides of texts blanked out.
    pub code: Vec<String>,
    /// For each line whether it is a test.
    pub tests: Vec<bool>,
}

/// A function with a body, and where it stands; lines are counted from 0.
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

impl Source {
    pub fn of(path: &str, text: &str) -> Source {
        let code: Vec<String> = blank(text).lines().map(String::from).collect();
        let all_tests = path.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        let mut tests = vec![all_tests; code.len()];
        for line in (0..code.len()).filter(|&line| code[line].trim() == "#[cfg(test)]") {
            let end = block_end(&code, (line, 0)).unwrap_or(line);
            tests[line..=end].fill(true);
        }
        Source { path: path.to_string(), lines: text.lines().map(String::from).collect(), code, tests }
    }

    /// The lines of code that are not tests, each with its number from 1.
    pub fn product(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.iter().zip(&self.tests).enumerate();
        lines.filter(|(_, (_, is_test))| !**is_test).map(|(line, (code, _))| (line + 1, code.as_str()))
    }

    /// All functions with a body, those within macros and other functions too.
    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (line, code) in self.code.iter().enumerate() {
            let Some(name) = words(code).skip_while(|word| *word != "fn").nth(1) else { continue };
            let column = code.find("fn ").unwrap_or_default();
            if let Some(end) = block_end(&self.code, (line, column)) {
                found.push(Function { name: name.to_string(), line, lines: end - line + 1 });
            }
        }
        found
    }

    pub fn is_under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }
}

/// The words of a line of code.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// All sources under a folder, in order; what was built is left out.
pub fn sources(root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();
    let read = |file: &PathBuf| {
        let path = file.strip_prefix(root).expect("it was found there").to_string_lossy().replace('\\', "/");
        Source::of(&path, &fs::read_to_string(file).expect("a source can be read"))
    };
    files.iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("a folder can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

// The line on which the block ends that begins after a place; none if a `;` comes first.
fn block_end(code: &[String], (from, column): (usize, usize)) -> Option<usize> {
    let (mut depth, mut begun, mut nested) = (0i32, false, 0i32);
    for (line, text) in code.iter().enumerate().skip(from) {
        let text = if line == from { &text[column..] } else { text };
        for c in text.chars() {
            match c {
                '{' => (depth, begun) = (depth + 1, true),
                '}' => depth -= 1,
                '(' | '[' => nested += 1,
                ')' | ']' => nested -= 1,
                ';' if !begun && nested == 0 => return None,
                _ => {}
            }
            if begun && depth == 0 {
                return Some(line);
            }
        }
    }
    None
}

/// The text with comments and the insides of texts as blanks; the lines stay what they are.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = opaque_end(&chars, at);
        match end {
            Some(end) => out.extend(chars[at..end].iter().map(|&c| if c == '\n' { c } else { ' ' })),
            None => out.push(chars[at]),
        }
        at = end.unwrap_or(at + 1);
    }
    out
}

// Where a comment, text or character that begins here ends.
fn opaque_end(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    let before = at.checked_sub(1).map(|before| chars[before]);
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let find =
        |from: usize, is_end: &dyn Fn(usize) -> bool| (from..=rest.len()).find(|&i| i == rest.len() || is_end(i));
    let length = match rest {
        ['/', '/', ..] => find(2, &|i| rest[i] == '\n'),
        ['/', '*', ..] => find(4, &|i| rest[i - 2] == '*' && rest[i - 1] == '/'),
        ['r', '"' | '#', ..] if !in_word || before == Some('b') => {
            let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
            let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let opens = rest.get(1 + hashes) == Some(&'"');
            let ends = |i: usize| i >= 2 + hashes + closing.len() && rest[..i].ends_with(&closing);
            opens.then(|| find(2 + hashes, &ends)).flatten()
        }
        ['"', ..] => find(2, &|i| rest[i - 1] == '"' && escapes(&rest[1..i - 1]).is_multiple_of(2)),
        ['\'', '\\', ..] => find(4, &|i| rest[i - 1] == '\''),
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    };
    length.map(|length| at + length)
}

// How many backslashes a piece of text ends with.
fn escapes(text: &[char]) -> usize {
    text.iter().rev().take_while(|&&c| c == '\\').count()
}
