//! Scripts: a flow is fed line by line, and what comes out is written under each line.
//!
//! ```text
//! a 1 x @100, 1 y @105     a batch of rows for source `a`: key (`-` for null), name, time
//! put t 1 x @100, 1 y @105 rows put into the table of source `t`, one after the other
//! del t 1 @110             the rows of keys deleted from it; without a time, the source does not know when
//! wm 110 | wm a 110        no row before this comes any more, from any source or from one
//! clock 5ms                processing time goes on
//! idle a | wake a | end a | end
//! account j                where the rows of each input of join `j` have gone so far
//! reached out              the watermark at a sink
//! ```
//!
//! Each script runs with 1, 2 and 4 tasks a stage. In all of them nothing is taken back that does not stand, no result
//! comes out behind the watermark of its sink, and the accounts add up.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::Expect;
use flowjoin::io::TableChange;
use flowjoin::prelude::*;
use flowjoin::{Account, Progress, RowKind, Watermark};
use flowjoin_testkit::{Output, TestFlow, TestSink, TestSource};

/// A row of every input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub key: Option<u64>,
    pub name: String,
    pub at: EventTime,
}

impl Event for Row {
    fn event_time(&self, _: EventTime) -> Result<EventTime, flowjoin::TimeError> {
        Ok(self.at)
    }

    // The script alone says how far event time has come.
    fn watermarks() -> flowjoin::Watermarks {
        flowjoin::Watermarks::of_field("at").out_of_order(Span::MAX).any_future()
    }
}

impl Keyed for Row {
    type Key = Option<u64>;

    fn key(&self) -> Option<u64> {
        self.key
    }
}

/// A source of changes.
pub fn table(flow: &Flow, source: &str) -> Table<Option<u64>, Row> {
    flow.table::<Row>(TestSource::new(source))
}

/// The rows of a source, by key.
pub fn rows(flow: &Flow, source: &str) -> KeyedStream<Option<u64>, Row> {
    flow.stream::<Row>(TestSource::new(source)).key_by(|row| row.key)
}

/// A sink of lines.
pub fn sink(name: &str) -> TestSink {
    TestSink::new(name)
}

/// The name of a row that may be missing.
pub fn name(row: Option<&Row>) -> &str {
    row.map_or("-", |row| &row.name)
}

/// Sends the rows that were left alone to a sink, each with its reason.
pub fn sink_unmatched(rows: Stream<Unmatched<Row>>, to: &str) {
    rows.map(|left| format!("{} {}", left.row.name, left.reason)).sink_to(sink(to));
}

/// Sends the rows that came behind the watermark to a sink.
pub fn sink_late(rows: Stream<Late<Row>>, to: &str) {
    rows.map(|late| format!("{} behind {}", late.row.name, late.watermark.as_millis())).sink_to(sink(to));
}

/// Runs a script, and compares what comes out.
#[track_caller]
pub fn check(build: impl Fn(&Flow), script: &str, expected: Expect) {
    expected.assert_eq(&played(build, script));
}

/// As [`check`], for what comes out of several flows alike.
#[track_caller]
pub fn check_text(build: impl Fn(&Flow), script: &str, expected: &str) {
    assert_eq!(played(build, script), expected);
}

#[track_caller]
fn played(build: impl Fn(&Flow), script: &str) -> String {
    let alone = Run::new(1, &build).play(script);
    for tasks in [2, 4] {
        let parallel = Run::new(tasks, &build).play(script);
        // Between keys there is no order.
        assert_eq!(sorted(&parallel), sorted(&alone), "with {tasks} tasks a stage");
    }
    alone
}

// The lines under each line of the script, in order of the alphabet.
fn sorted(trace: &str) -> Vec<String> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for line in trace.lines() {
        match groups.last_mut() {
            Some(group) if line.starts_with(' ') => group.push(line),
            _ => groups.push(vec![line]),
        }
    }
    groups.iter_mut().for_each(|group| group[1..].sort_unstable());
    groups.into_iter().flatten().map(String::from).collect()
}

// What stands behind the verb and the source.
fn rest_of(line: &str) -> &str {
    line.splitn(3, ' ').nth(2).expect("a verb, a source and what it does")
}

fn deletion(text: &str) -> TableChange<Row> {
    let mut words = text.split_whitespace();
    let key = Some(words.next().and_then(|key| key.parse().ok()).expect("a key"));
    let time = words.next().and_then(|time| time.strip_prefix('@')).map(|time| time.parse().expect("a time"));
    TableChange::Delete { key, time: time.map(EventTime::from_millis), row: None }
}

struct Run {
    flow: TestFlow,
    sinks: Vec<String>,
    sources: Vec<String>,
    joins: Vec<String>,
    standing: BTreeMap<String, Vec<serde_json::Value>>,
    reached: BTreeMap<String, Watermark>,
    trace: String,
}

impl Run {
    fn new(tasks: usize, build: &impl Fn(&Flow)) -> Run {
        let flow = TestFlow::parallel(tasks, build);
        let named = |test: &dyn Fn(&str) -> bool| {
            let nodes = flow.plan().nodes().iter().map(|node| node.name.clone());
            nodes.filter(|name| test(name)).collect::<Vec<_>>()
        };
        let sinks = named(&|name| flow.plan().sink(name).is_some());
        let sources = named(&|name| flow.plan().source(name).is_some());
        let joins = flow.plan().nodes().iter().filter(|node| node.op.is_join()).map(|node| node.name.clone()).collect();
        let (standing, reached) = Default::default();
        Run { sinks, sources, joins, flow, standing, reached, trace: String::new() }
    }

    fn play(mut self, script: &str) -> String {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let _ = writeln!(self.trace, "{line}");
            self.step(line);
            self.collect();
            for join in &self.joins {
                let accounts = self.flow.figures(join).accounts;
                assert!(accounts.iter().all(Account::is_balanced), "{join} after `{line}`: {accounts:?}");
            }
        }
        self.trace.trim_end().to_string()
    }

    fn step(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["wm", time] => self.sources.clone().iter().for_each(|source| self.watermark(source, time)),
            ["wm", source, time] => self.watermark(source, time),
            ["clock", span] => drop(self.flow.advance_processing(Span::parse(span).expect("a span"))),
            ["put", source, ..] => {
                let puts = rest_of(line).split(',').map(|text| TableChange::Put(row(text))).collect();
                self.flow.change_all::<Row>(source, puts);
            }
            ["del", source, ..] => drop(self.flow.change_all(source, rest_of(line).split(',').map(deletion).collect())),
            ["idle", source] => drop(self.flow.say(source, Progress::Idle)),
            ["wake", source] => drop(self.flow.say(source, Progress::Active)),
            ["end", source] => drop(self.flow.end(source)),
            ["end"] => drop(self.flow.end_all()),
            ["account", join] => self.account(join),
            ["reached", sink] => {
                let at = self.reached.get(sink).map_or("none".to_string(), |at| at.time().as_millis().to_string());
                let _ = writeln!(self.trace, "  {sink} {at}");
            }
            _ => {
                let (source, rest) = line.split_once(' ').expect("a source and its rows");
                let rows = rest.split(',').map(row).collect();
                self.flow.send_all(source, rows);
            }
        }
    }

    fn watermark(&mut self, source: &str, time: &str) {
        self.flow.watermark(source, EventTime::from_millis(time.parse().expect("a time")));
    }

    fn account(&mut self, join: &str) {
        let plan = self.flow.plan();
        let node = plan.nodes().iter().find(|node| node.name == join).expect("a join of that name");
        let inputs: Vec<String> = node.state.iter().map(|spec| spec.input.clone()).collect();
        for (input, account) in inputs.iter().zip(self.flow.figures(join).accounts) {
            let Account {
                rows,
                matched,
                unmatched,
                late,
                expired,
                null_key,
                bad,
                passed_over,
                retracted,
                orphan,
                open,
                never_seen,
                no_version,
            } = account;
            let buckets = [
                ("rows", rows),
                ("matched", matched),
                ("unmatched", unmatched),
                ("late", late),
                ("expired", expired),
                ("null_key", null_key),
                ("bad", bad),
                ("passed_over", passed_over),
                ("retracted", retracted),
                ("orphan", orphan),
                ("open", open),
                ("of these never seen", never_seen),
                ("of these without version", no_version),
            ];
            let told = buckets.iter().filter(|(_, rows)| *rows > 0);
            let told: Vec<String> = told.map(|(bucket, rows)| format!("{bucket} {rows}")).collect();
            let _ = writeln!(self.trace, "  {input}: {}", told.join(", "));
        }
    }

    fn collect(&mut self) {
        for name in self.sinks.clone() {
            for output in self.flow.take(&name) {
                let Output { kind, row, time } = &output;
                let behind = self.reached.get(&name).is_some_and(|reached| reached.is_late(*time));
                // A late row is behind by its nature, and an unmatched one is as old as it is: only results hold time back.
                assert!(
                    !behind || name != "out",
                    "`{output}` of {} is behind the watermark of {name}",
                    time.as_millis()
                );
                self.stand(&name, *kind, row);
                let _ = writeln!(self.trace, "  {name} {output} @{}", time.as_millis());
            }
            for progress in self.flow.take_progress(&name) {
                if let Progress::At(watermark) = progress {
                    let before = self.reached.insert(name.clone(), watermark);
                    assert!(before.is_none_or(|before| before <= watermark), "the watermark of {name} went back");
                }
            }
        }
    }

    fn stand(&mut self, sink: &str, kind: RowKind, row: &serde_json::Value) {
        let standing = self.standing.entry(sink.to_string()).or_default();
        if kind.adds() {
            standing.push(row.clone());
        } else {
            let place = standing.iter().position(|other| other == row);
            standing.swap_remove(place.unwrap_or_else(|| panic!("{sink}: {row} is taken back and does not stand")));
        }
    }
}

fn row(text: &str) -> Row {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [key, name, time] = words[..] else { panic!("a row is a key, a name and a time, and not `{text}`") };
    let millis = match &time[1..] {
        "min" => i64::MIN,
        "max" => i64::MAX,
        number => number.parse().expect("a time"),
    };
    Row { key: key.parse().ok(), name: name.to_string(), at: EventTime::from_millis(millis) }
}
