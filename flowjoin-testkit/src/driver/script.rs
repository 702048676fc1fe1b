//! Scripts: a flow under test, played from text, line by line.

use flowjoin_core::names::nearest;
use flowjoin_core::{EventTime, ProcTime, Progress, Span, Watermark};
use serde_json::{Map, Value};

use super::TestFlow;

/// A line of a script that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, `{text}`: {reason}")]
pub struct ScriptError {
    /// Which line, counted from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl TestFlow {
    /// Plays a script, and returns it with what came out of every sink beneath each line.
    ///
    /// | line | what it does |
    /// |---|---|
    /// | `orders order_id=1 amount=100` | sends a row to the source `orders`: its fields as JSON, `-` for null; a text needs quotes only if it has spaces or could be something else; a field that the row does not have is refused |
    /// | `orders order_id=1 ; order_id=2` | sends several rows as one batch |
    /// | `users op=-D id=1 ..` | deletes the row with that key from the table of a source of changes; without `op` the row is put |
    /// | `orders#1 order_id=2` | to partition 1 of it; so everywhere below |
    /// | `wm orders 5s` | its watermark: a span since 1970, or an ISO time; `wm 5s` is that of all sources |
    /// | `clock 5s` | sets processing time |
    /// | `advance 5s` | moves both clocks, as [`advance`](Self::advance) |
    /// | `idle orders`, `active orders` | the source is quiet until its next row, or back |
    /// | `end orders`, `end` | the source, or every source, has ended; no row comes after that |
    ///
    /// Empty lines and lines that begin with `//` are left out.
    ///
    /// ```
    /// use expect_test::expect;
    /// use flowjoin_core::{Event, EventTime, Flow, TimeError, Watermarks, secs};
    /// use flowjoin_testkit::{TestFlow, TestSink, TestSource};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct Call { id: u64, who: Option<String>, at: EventTime }
    ///
    /// impl Event for Call {
    ///     fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> { Ok(self.at) }
    ///     fn watermarks() -> Watermarks { Watermarks::of_field("at").out_of_order(secs(5)) }
    /// }
    ///
    /// fn calls(flow: &Flow) {
    ///     let asked = flow.stream::<Call>(TestSource::new("asked")).key_by(|call| call.id);
    ///     let answered = flow.stream::<Call>(TestSource::new("answered")).key_by(|call| call.id);
    ///     let (pairs, (open, _)) = asked.interval_join(answered).between(secs(0), secs(30))
    ///         .select_with_unmatched(|asked, answered| (asked.id, answered.who.clone()));
    ///     pairs.sink_to(TestSink::new("pairs"));
    ///     open.sink_to(TestSink::new("open"));
    /// }
    ///
    /// let told = TestFlow::new(calls).play("
    ///     asked id=1 at=1000
    ///     asked id=2 at=2000
    ///     answered id=1 who=Ada at=1970-01-01T00:00:03Z
    ///     wm asked 40s
    ///     wm answered 40s");
    /// expect![[r"
    ///     asked id=1 at=1000
    ///     asked id=2 at=2000
    ///     answered id=1 who=Ada at=1970-01-01T00:00:03Z
    ///       pairs: +I 1, Ada
    ///     wm asked 40s
    ///     wm answered 40s
    ///       open: +I id 2, who -, at 1970-01-01T00:00:02.000Z, reason interval_closed
    /// "]].assert_eq(&told);
    /// ```
    ///
    /// # Panics
    /// With the line, if one cannot be played.
    pub fn play(&mut self, script: &str) -> String {
        match self.try_play(script) {
            Ok(told) => told,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`play`](Self::play).
    ///
    /// # Errors
    /// If a line cannot be played; those before it have been.
    pub fn try_play(&mut self, script: &str) -> Result<String, ScriptError> {
        let mut told = String::new();
        for (index, line) in script.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            let wrong = |reason| ScriptError { line: index + 1, text: line.to_string(), reason };
            self.play_line(line).map_err(wrong)?;
            told.push_str(line);
            told.push('\n');
            self.tell_sinks(&mut told);
        }
        Ok(told)
    }

    fn play_line(&mut self, line: &str) -> Result<(), String> {
        let words = split(line)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["wm", at] => self.progress_of_all(Progress::At(watermark(at)?)),
            ["wm", source, at] => self.say_at(source, Progress::At(watermark(at)?))?,
            ["clock", at] => {
                let now = ProcTime::from_millis(length(at)?.as_millis());
                if now < self.now {
                    return Err(format!("the clock is at {} already", self.now.since(ProcTime::from_millis(0))));
                }
                self.set_processing(now);
            }
            ["advance", by] => drop(self.advance(length(by)?)),
            ["idle", source] => self.say_at(source, Progress::Idle)?,
            ["active", source] => self.say_at(source, Progress::Active)?,
            ["end", source] => self.say_at(source, Progress::End)?,
            ["end"] => self.progress_of_all(Progress::End),
            [verb, ..] if takes(verb).is_some() && self.plan.source(verb).is_none() => {
                return Err(format!("`{verb}` takes {}", takes(verb).unwrap_or_default()));
            }
            [source, ref fields @ ..] => self.send_fields(source, fields)?,
            [] => {}
        }
        Ok(())
    }

    fn say_at(&mut self, place: &str, progress: Progress) -> Result<(), String> {
        let (source, partition) = self.place(place)?;
        match partition {
            Some(partition) => self.say_of(&source, partition, progress),
            None => self.say(&source, progress),
        };
        Ok(())
    }

    fn send_fields(&mut self, place: &str, fields: &[&str]) -> Result<(), String> {
        let (source, partition) = self.place(place)?;
        let mut rows = Vec::new();
        for fields in fields.split(|&field| field == ";") {
            let mut row = Map::new();
            for field in fields {
                let (name, text) =
                    field.split_once('=').ok_or_else(|| format!("`{field}` is not of the form field=value"))?;
                row.insert(name.to_string(), value(text));
            }
            rows.push(Value::Object(row));
        }
        let arrival = self.now.as_event_time();
        let (id, of) = self.plan.source(&source).map(|(id, of)| (id, of.clone())).ok_or("no such source")?;
        if let Some(names) = of.field_names() {
            let is_table = self.is_table(id);
            rows.iter().try_for_each(|row| known_fields(&source, row, names, is_table))?;
        }
        let (page, newest) = of.page_of(rows, arrival).map_err(|error| error.to_string())?;
        let partition = partition.unwrap_or(0);
        if let Some(reason) = self.refuses_rows(id, partition) {
            return Err(reason);
        }
        self.take_page(id, partition, page, newest);
        Ok(())
    }

    // A source that there is, and its partition if one is named.
    fn place(&self, place: &str) -> Result<(String, Option<usize>), String> {
        let (source, partition) = match place.rsplit_once('#') {
            Some((source, digits)) => match digits.parse() {
                Ok(partition) => (source, Some(partition)),
                Err(_) => (place, None),
            },
            None => (place, None),
        };
        let Some((id, _)) = self.plan.source(source) else {
            return Err(self.no_source(source));
        };
        if partition.is_some_and(|partition| !self.readers.contains_key(&(id, partition))) {
            return Err(format!("`{source}` has no such partition"));
        }
        Ok((source.to_string(), partition))
    }

    fn tell_sinks(&mut self, told: &mut String) {
        for (id, log) in &mut self.sinks {
            let name = &self.plan.node(*id).name;
            for row in std::mem::take(&mut log.rows) {
                told.push_str(&format!("  {name}: {row}\n"));
            }
        }
        for bad in std::mem::take(&mut self.bad) {
            told.push_str(&format!("  bad: {}\n", bad.to_string().replace("\n ", "")));
        }
    }
}

// What follows a word that is no source.
fn takes(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "wm" => "a time, or a source and a time: `wm 5s`, `wm orders 5s`",
        "clock" => "the time that it is then: `clock 5s`",
        "advance" => "by how much: `advance 5s`",
        "idle" | "active" => "a source: `idle orders`",
        "end" => "a source, or nothing: `end orders`, `end`",
        _ => return None,
    })
}

// A field that the row does not have would be ignored, and the one that was meant be null. A change of a table may be told
// in other forms than by its row.
fn known_fields(source: &str, row: &Value, names: &[&str], is_table: bool) -> Result<(), String> {
    let Value::Object(fields) = row else { return Ok(()) };
    let is_known = |name: &str| names.contains(&name);
    let is_message = |name: &String| MESSAGE.contains(&name.as_str()) && !is_known(name);
    if is_table && fields.keys().any(is_message) {
        return Ok(());
    }
    let may_stand = |name: &String| is_known(name) || is_table && name == "op";
    let Some(name) = fields.keys().find(|name| !may_stand(name)) else { return Ok(()) };
    let meant = nearest(name, names.iter().copied()).map_or(String::new(), |meant| format!("; is `{meant}` meant?"));
    Err(format!("rows of `{source}` have no field `{name}`{meant} (they have `{}`)", names.join("`, `")))
}

// A length of time has a unit, unless it is none; nothing if the text is no number.
fn number(text: &str) -> Option<Result<Span, String>> {
    match text.parse::<i64>().ok()? {
        0 => Some(Ok(Span::ZERO)),
        number => Some(Err(format!("`{text}` has no unit: say `{number}s` or `{number}ms`"))),
    }
}

fn length(text: &str) -> Result<Span, String> {
    match number(text) {
        Some(length) => length,
        None if text.starts_with('-') => Err(format!("`{text}` is before now, and no clock goes back")),
        None => Span::parse(text).map_err(|error| error.to_string()),
    }
}

fn watermark(text: &str) -> Result<Watermark, String> {
    if let Some(since) = number(text) {
        return since.map(since_epoch);
    }
    if let Ok(since) = Span::parse(text) {
        return Ok(since_epoch(since));
    }
    let at: Result<EventTime, _> = text.parse();
    at.map(Watermark::at).map_err(|_| format!("`{text}` is neither a span (5s, 200ms) nor an ISO 8601 time"))
}

fn since_epoch(since: Span) -> Watermark {
    Watermark::at(EventTime::from_millis(since.as_millis()))
}

fn value(text: &str) -> Value {
    match text {
        "-" => Value::Null,
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string())),
    }
}

// At spaces that are not within quotes or brackets.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_i32);
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        if c.is_whitespace() && !quoted && depth == 0 {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        } else {
            word.push(c);
        }
    }
    if quoted || depth != 0 {
        return Err("a quote or bracket is not closed".to_string());
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// The names of what stands around a row in a message.
const MESSAGE: [&str; 6] = ["before", "after", "payload", "key", "value", "row"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TestSink, TestSource};
    use expect_test::expect;
    use flowjoin_core::{Event, Flow, TimeError, Watermarks};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Serialize, Deserialize)]
    struct Note {
        id: u8,
        text: Option<String>,
        tags: Vec<u8>,
        at: EventTime,
    }

    impl Event for Note {
        fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
            Ok(self.at)
        }

        fn watermarks() -> Watermarks {
            Watermarks::of_field("at")
        }
    }

    fn notes(flow: &Flow) {
        let all = flow.stream::<Note>(TestSource::new("notes")).key_by(|note| note.id);
        let rest = flow.stream::<Note>(TestSource::new("rest")).key_by(|note| note.id);
        let join = all.join(rest.optional()).keep_forever();
        let (late, _) = join.late();
        late.sink_to(TestSink::new("late"));
        join.select(|note, rest| (note.text.clone(), note.tags.len(), rest.is_some())).sink_to(TestSink::new("out"));
    }

    #[test]
    fn lines_are_played_and_told_with_what_came_of_them() {
        let mut t = TestFlow::partitioned(2, &[("notes", 2)], notes);
        let told = t.play(
            r#"
            // A text with spaces, a null, and a list.
            notes id=1 text="two words" tags=[1, 2] at=5000
            notes#1 id=2 text=- tags=[] at=1970-01-01T00:00:09Z
            rest id=1 text=x tags=[] at=7000
            rest id=1 text=x tags=[] at=200000000
            wm 6s
            notes id=3 text=y tags=[] at=5999
            clock 2s
            advance 250ms
            idle rest
            end notes
            end"#,
        );
        expect![[r#"
            notes id=1 text="two words" tags=[1, 2] at=5000
              out: +I two words, 2, false
            notes#1 id=2 text=- tags=[] at=1970-01-01T00:00:09Z
              out: +I -, 0, false
            rest id=1 text=x tags=[] at=7000
              out: -D two words, 2, false
              out: +I two words, 2, true
            rest id=1 text=x tags=[] at=200000000
              bad: rest: `at` is 200000000 ms since 1970 (1970-01-03T07:33:20.000Z), too far ahead of the clock (1970-01-01T00:00:00.000Z) in {"id":1,"text":"x","tags":[],"at":"1970-01-03T07:33:20.000Z"}
            wm 6s
            notes id=3 text=y tags=[] at=5999
              late: +I id 3, text y, tags [], at 1970-01-01T00:00:05.999Z, watermark 1970-01-01T00:00:06.000Z, late_by_ms 1, input notes, operator notes-rest-join
            clock 2s
            advance 250ms
            idle rest
            end notes
            end
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn a_line_that_cannot_be_played_is_named() {
        let mut t = TestFlow::new(notes);
        let mut said = |script: &str| t.try_play(script).unwrap_err().to_string();
        expect!["line 2, `orders id=1`: no source is named `orders`; there are `notes`, `rest`"]
            .assert_eq(&said("wm 5s\norders id=1"));
        expect!["line 1, `notes id=x`: invalid type: string \"x\", expected u8"].assert_eq(&said("notes id=x"));
        expect!["line 1, `notes id`: `id` is not of the form field=value"].assert_eq(&said("notes id"));
        expect!["line 1, `notes#1 id=1`: `notes` has no such partition"].assert_eq(&said("notes#1 id=1"));
        expect!["line 1, `wm notes soon`: `soon` is neither a span (5s, 200ms) nor an ISO 8601 time"]
            .assert_eq(&said("wm notes soon"));
        expect!["line 2, `notes id=1 txet=a tags=[] at=0`: rows of `notes` have no field `txet`; is `text` meant? (they have `id`, `text`, `tags`, `at`)"]
            .assert_eq(&said("wm 1s\nnotes id=1 txet=a tags=[] at=0"));
        expect!["line 1, `notes op=-D id=1 tags=[] at=0`: rows of `notes` have no field `op` (they have `id`, `text`, `tags`, `at`)"]
            .assert_eq(&said("notes op=-D id=1 tags=[] at=0"));
        expect!["line 1, `wm 20`: `20` has no unit: say `20s` or `20ms`"].assert_eq(&said("wm 20"));
        expect!["line 1, `wm rest -20`: `-20` has no unit: say `-20s` or `-20ms`"].assert_eq(&said("wm rest -20"));
        expect!["line 1, `wm`: `wm` takes a time, or a source and a time: `wm 5s`, `wm orders 5s`"]
            .assert_eq(&said("wm"));
        expect!["line 1, `advance`: `advance` takes by how much: `advance 5s`"].assert_eq(&said("advance"));
        expect!["line 1, `advance 5`: `5` has no unit: say `5s` or `5ms`"].assert_eq(&said("advance 5"));
        expect!["line 1, `advance 5 s`: `advance` takes by how much: `advance 5s`"].assert_eq(&said("advance 5 s"));
        expect!["line 1, `advance -5s`: `-5s` is before now, and no clock goes back"].assert_eq(&said("advance -5s"));
        expect!["line 1, `clock 5`: `5` has no unit: say `5s` or `5ms`"].assert_eq(&said("clock 5"));
        expect!["line 1, `notes text=\"a`: a quote or bracket is not closed"].assert_eq(&said("notes text=\"a"));
        t.play("clock 5s");
        expect!["line 1, `clock 4s`: the clock is at 5s already"]
            .assert_eq(&t.try_play("clock 4s").unwrap_err().to_string());
        t.play("end notes");
        expect!["line 2, `notes id=1 tags=[] at=0`: `notes` has ended, and no row comes after the end"]
            .assert_eq(&t.try_play("rest id=1 tags=[] at=0\nnotes id=1 tags=[] at=0").unwrap_err().to_string());
    }

    #[test]
    fn an_end_beside_an_idle_source_is_not_the_end_of_time() {
        for parallelism in [1, 4] {
            let mut t = TestFlow::parallel(parallelism, notes);
            let told = t.play("idle notes\nend rest\nactive notes\nnotes id=1 text=x tags=[] at=0\nend");
            expect![[r"
                idle notes
                end rest
                active notes
                notes id=1 text=x tags=[] at=0
                  out: +I x, 0, false
                end
            "]]
            .assert_eq(&told);
            assert!(t.take_progress("out").ends_with(&[Progress::At(Watermark::END), Progress::End]));
        }
    }

    #[test]
    fn a_source_that_was_idle_is_heard_again_with_its_watermark() {
        let mut t = TestFlow::new(notes);
        t.play("idle rest\nwm notes 5s");
        assert_eq!(t.take_progress("out").last(), Some(&Progress::At(Watermark::at(EventTime::from_millis(5_000)))));
        t.play("idle notes\nwm notes 7s\nwm rest 8s");
        assert_eq!(t.take_progress("out").last(), Some(&Progress::At(Watermark::at(EventTime::from_millis(7_000)))));
    }
}
