//! What happens to a join: rows, watermarks, idle and finished inputs, the clock.

use flowjoin::{
    Event, EventTime, Flow, ProcTime, Progress, RowKind, Span, Stream, TimeError, Watermark, Watermarks, millis,
};
use flowjoin_testkit::{Output, TestFlow, TestSource};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row {
    pub key: Option<u8>,
    pub value: u8,
    /// Zero where the join does not look at it, so that equal rows are common.
    pub stamp: i64,
}

/// A row on its way in. Its watermarks move by hand only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fact {
    pub kind: RowKind,
    pub time: EventTime,
    pub row: Row,
}

impl Event for Fact {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(self.time)
    }

    fn watermarks() -> Watermarks {
        Watermarks::of_field("time").out_of_order(Span::MAX).any_future()
    }
}

pub fn facts(flow: &Flow, name: &str) -> Stream<Fact> {
    flow.stream(TestSource::new(name))
}

#[derive(Clone, Debug)]
pub enum Step {
    Row {
        input: usize,
        key: Option<u8>,
        value: u8,
        time: i64,
    },
    /// Takes back a row that is held, by its place among them; or one that is not, if the place is beyond them.
    Retract {
        input: usize,
        place: usize,
    },
    Watermark {
        input: usize,
        at: i64,
    },
    Idle(usize),
    Active(usize),
    End(usize),
    Clock(i64),
}

pub const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Rows only, some of them with a null key, and few enough values that many are equal.
pub fn row(inputs: usize, times: std::ops::Range<i64>) -> impl Strategy<Value = Step> {
    let key = prop::option::weighted(0.9, 0..3u8);
    (0..inputs, key, 0..2u8, times).prop_map(|(input, key, value, time)| Step::Row { input, key, value, time })
}

/// Rows in any order, watermarks and ends.
pub fn awake(inputs: usize, times: std::ops::Range<i64>) -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => row(inputs, times.clone()),
        5 => (0..inputs, times).prop_map(|(input, at)| Step::Watermark { input, at }),
        1 => (0..inputs).prop_map(Step::End),
    ]
}

/// Rows in any order, and all that can happen to event time.
pub fn timed(inputs: usize, times: std::ops::Range<i64>) -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => row(inputs, times.clone()),
        5 => (0..inputs, times).prop_map(|(input, at)| Step::Watermark { input, at }),
        1 => (0..inputs).prop_map(Step::Idle),
        1 => (0..inputs).prop_map(Step::Active),
        1 => (0..inputs).prop_map(Step::End),
    ]
}

/// The watermark of an operator by its definition: the least of its active inputs; the greatest of the idle ones if
/// none is active; the end of time if all have ended; and never back.
#[derive(Clone, Debug)]
pub struct Frontier {
    inputs: Vec<(i64, State)>,
    at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Idle,
    Ended,
}

impl Frontier {
    pub fn new(inputs: usize) -> Frontier {
        Frontier { inputs: vec![(i64::MIN, State::Active); inputs], at: i64::MIN }
    }

    pub fn at(&self) -> i64 {
        self.at
    }

    pub fn has_ended(&self, input: usize) -> bool {
        self.inputs[input].1 == State::Ended
    }

    /// A row has come: that wakes an input.
    pub fn wake(&mut self, input: usize) {
        if self.inputs[input].1 == State::Idle {
            self.hear(input, Progress::Active);
        }
    }

    pub fn hear(&mut self, input: usize, progress: Progress) {
        let (at, state) = &mut self.inputs[input];
        if *state == State::Ended {
            return;
        }
        match progress {
            Progress::At(watermark) => {
                *at = (*at).max(watermark.time().as_millis());
                *state = State::Active;
            }
            Progress::Idle => *state = State::Idle,
            Progress::Active => *state = State::Active,
            Progress::End | Progress::Stopped => *state = State::Ended,
        }
        let of = |state| self.inputs.iter().filter(move |input| input.1 == state).map(|input| input.0);
        let frontier = of(State::Active).min().or(of(State::Idle).max()).unwrap_or(i64::MAX);
        self.at = self.at.max(frontier);
    }
}

/// Tells a source and the model the same.
pub fn say(t: &mut TestFlow, frontier: &mut Frontier, input: usize, progress: Progress) {
    frontier.hear(input, progress);
    t.say(NAMES[input], progress);
}

pub fn at(time: i64) -> Progress {
    Progress::At(Watermark::at(EventTime::from_millis(time)))
}

pub fn fact(kind: RowKind, row: Row, time: i64) -> Fact {
    Fact { kind, time: EventTime::from_millis(time), row }
}

pub fn advance(t: &mut TestFlow, by: i64) -> i64 {
    t.advance_processing(millis(by));
    t.processing().since(ProcTime::from_millis(0)).as_millis()
}

/// The rows that came out at a sink, as they went in.
pub fn taken<T: DeserializeOwned>(t: &mut TestFlow, sink: &str) -> Vec<(RowKind, T, EventTime)> {
    let read = |output: Output| {
        (output.kind, serde_json::from_value(output.row).expect("a row comes out as it went in"), output.time)
    };
    t.take(sink).into_iter().map(read).collect()
}

pub fn sorted<T: Ord>(things: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut things: Vec<T> = things.into_iter().collect();
    things.sort();
    things
}

/// Every input's rows are in one bucket each.
pub fn check_accounts(t: &TestFlow, join: &str) -> Result<(), TestCaseError> {
    for account in t.figures(join).accounts {
        prop_assert!(account.is_balanced(), "{:?}", account);
    }
    Ok(())
}
