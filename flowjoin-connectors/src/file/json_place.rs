//! Which field of a JSON text an error is about.
//!
//! serde_json says how many bytes it had read, but not the field. A bad line is scanned once more up to there; good
//! lines pay nothing.

use serde::Deserialize;
use serde_json::error::Category;

/// Reads a JSON text, or says what is wrong with it in a sentence that names the field.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| reason(text, &error))
}

fn reason(text: &str, error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let message = whole.rfind(" at line ").map_or(whole.as_str(), |end| &whole[..end]);
    let place = Place::at(text, error.column());
    let described = match place.misread_integer(message) {
        Some(described) => described,
        None => match error.classify() {
            Category::Data => message.to_string(),
            Category::Syntax | Category::Eof | Category::Io => format!("{message} at column {}", error.column()),
        },
    };
    match place.path.is_empty() {
        true => described,
        false => format!("`{}`: {described}", place.path),
    }
}

/// The innermost value that was being read at an offset.
struct Place<'a> {
    /// Names and indices from the outside in, as in `items[2].price`; empty for the whole text.
    path: String,
    /// A number, string or word, as far as it was read.
    value: &'a str,
}

enum Frame<'a> {
    Object(Option<&'a str>),
    Array(usize),
}

impl<'a> Place<'a> {
    fn at(text: &'a str, offset: usize) -> Place<'a> {
        let bytes = text.as_bytes();
        let end = offset.min(bytes.len());
        let mut frames: Vec<Frame<'a>> = Vec::new();
        let mut value = 0..0;
        let mut at = 0;
        while at < end {
            let start = at;
            at += 1;
            match bytes[start] {
                b'{' => frames.push(Frame::Object(None)),
                b'[' => frames.push(Frame::Array(0)),
                b'}' | b']' => {
                    frames.pop();
                    value = 0..0;
                }
                b',' => {
                    match frames.last_mut() {
                        Some(Frame::Object(name)) => *name = None,
                        Some(Frame::Array(index)) => *index += 1,
                        None => {}
                    }
                    value = 0..0;
                }
                b'"' => {
                    at = string_end(bytes, at).min(end);
                    match frames.last_mut() {
                        Some(Frame::Object(name @ None)) => *name = text.get(start + 1..at - 1),
                        _ => value = start..at,
                    }
                }
                byte if byte.is_ascii_whitespace() || byte == b':' => {}
                _ if value.end == start => value.end = at,
                _ => value = start..at,
            }
        }
        Place { path: path(&frames), value: text.get(value).unwrap_or_default() }
    }

    /// serde_json reads an integer beyond 64 bits as a float and then complains about a float that nobody wrote.
    fn misread_integer(&self, message: &str) -> Option<String> {
        let digits = self.value.strip_prefix('-').unwrap_or(self.value);
        let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !integer || !message.contains("floating point") {
            return None;
        }
        let expected = message.rsplit_once(", expected ").map_or("", |(_, expected)| expected);
        Some(format!("the integer {} does not fit, expected {expected}", self.value))
    }
}

/// Where a string ends whose opening quote is before `at`: behind the closing quote.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn path(frames: &[Frame<'_>]) -> String {
    let mut path = String::new();
    for frame in frames {
        match frame {
            Frame::Object(Some(name)) if path.is_empty() => path.push_str(name),
            Frame::Object(Some(name)) => {
                path.push('.');
                path.push_str(name);
            }
            Frame::Object(None) => {}
            Frame::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Row {
        id: u64,
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Item {
        price: i64,
        note: Option<String>,
    }

    fn check(text: &str, expected: &str) {
        let error = serde_json::from_str::<Row>(text).unwrap_err();
        assert_eq!(reason(text, &error), expected, "{text}");
    }

    #[test]
    fn the_field_is_named_from_the_outside_in() {
        check(r#"{"id":-1,"items":[]}"#, "`id`: invalid value: integer `-1`, expected u64");
        check(
            r#"{"id":1,"items":[{"price":1},{"note":"a, \"b\": {","price":"x"}]}"#,
            "`items[1].price`: invalid type: string \"x\", expected i64",
        );
        check(r#"{"id":1,"items":[{"note":null}]}"#, "`items[0]`: missing field `price`");
        check(r#"{"id":1}"#, "missing field `items`");
    }

    #[test]
    fn an_integer_beyond_64_bits_is_called_an_integer() {
        check(r#"{"id": 18446744073709551616}"#, "`id`: the integer 18446744073709551616 does not fit, expected u64");
        check(r#"{"id": 1.5}"#, "`id`: invalid type: floating point `1.5`, expected u64");
        check(r#"{"id": 1e400}"#, "`id`: number out of range at column 12");
    }

    #[test]
    fn text_that_is_not_json_is_told_by_its_column() {
        check("{\"id\" 1}", "`id`: expected `:` at column 7");
        check("", "EOF while parsing a value at column 0");
        check("\"", "EOF while parsing a string at column 1");
        check("{\"é", "EOF while parsing a string at column 4");
        check("]", "expected value at column 1");
    }
}
