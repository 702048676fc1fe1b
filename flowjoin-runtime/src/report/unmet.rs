//! Joins in which no row met another, though there were rows on their sides; and what can be told of the reason.
//!
//! Told of a join that has ended, and of no anti join, which may well be there to find nothing. A reason is given where the
//! figures show it: null keys, late rows, times too far apart. Else it is a question.

use flowjoin_core::account::grouped;
use flowjoin_core::op::kernel::Kind;
use flowjoin_core::op::window_join::Windows;
use flowjoin_core::plan::{Build, Node, NodeId, Op, Plan};
use flowjoin_core::state::{Clock, Keeps, Ttl};
use flowjoin_core::task::TimeRange;
use flowjoin_core::{InputState, Span};

use super::InputReport;

/// What there is to say of a join, if it has ended and nothing met; `seen` are the times of the rows at each exchange.
pub(super) fn told(plan: &Plan, node: &Node, inputs: &[InputReport], seen: &[Option<TimeRange>]) -> Option<String> {
    let kinds = kinds(&node.op)?;
    let ended = |input: &InputReport| matches!(input.time.state, InputState::Stopped | InputState::Finished);
    let lacks = |(input, kind): (&InputReport, &Kind)| *kind != Kind::Optional && input.account.rows == 0;
    if kinds.contains(&Kind::NotExists) || !inputs.iter().all(ended) || inputs.iter().zip(&kinds).any(lacks) {
        return None;
    }
    let sides: Vec<Side<'_>> = inputs
        .iter()
        .zip(&node.inputs)
        .filter(|(input, _)| input.account.rows > 0)
        .map(|(input, edge)| Side {
            input,
            times: times_at(plan, edge.from, seen),
            by_arrival: by_arrival(plan, edge.from),
        })
        .collect();
    if sides.len() < 2 || inputs.iter().any(|input| input.account.matched > 0) {
        return None;
    }
    let rows = sides.iter().enumerate().map(|(index, Side { input, .. })| {
        let rows = match (index, input.account.rows) {
            (0, 1) => " row",
            (0, _) => " rows",
            _ => "",
        };
        format!("{}{rows} of `{}`", grouped(input.account.rows), input.name)
    });
    let rows: Vec<String> = rows.collect();
    // Where reading was stopped, what is held may have been about to meet.
    let finished = inputs.iter().all(|input| input.time.state == InputState::Finished);
    let reason = by_account(&sides).or_else(|| by_times(node, &sides));
    let reason = reason.or_else(|| finished.then(|| some_left(&sides).unwrap_or_else(|| question(node, &sides))))?;
    Some(format!("{} came in, and not one met another: {reason}", rows.join(" and ")))
}

// An input with rows.
struct Side<'a> {
    input: &'a InputReport,
    // Where they were seen.
    times: Option<TimeRange>,
    by_arrival: bool,
}

// What each input does to the result of a join.
fn kinds(op: &Op) -> Option<Vec<Kind>> {
    match op {
        Op::MultiJoin { kinds, .. } | Op::WindowJoin { kinds, .. } => Some(kinds.clone()),
        Op::IntervalJoin(spec) => Some(spec.kinds.to_vec()),
        Op::TemporalJoin { optional, .. } | Op::SnapshotJoin { optional, .. } => {
            Some(vec![Kind::Required, if *optional { Kind::Optional } else { Kind::Required }])
        }
        Op::Source | Op::Apply { .. } | Op::Union | Op::KeyBy { .. } | Op::Table { .. } | Op::Sink => None,
    }
}

// The times of the rows of an input, as far as they are those that were seen at its exchange.
fn times_at(plan: &Plan, id: NodeId, seen: &[Option<TimeRange>]) -> Option<TimeRange> {
    let node = plan.node(id);
    match node.op {
        Op::KeyBy { .. } => seen[id.0],
        Op::Table { .. } => times_at(plan, node.inputs.first()?.from, seen),
        _ => None,
    }
}

// Whether rows have the time at which they were read.
fn by_arrival(plan: &Plan, id: NodeId) -> bool {
    let node = plan.node(id);
    match &node.build {
        Build::Source(source) => source.strategy().field().is_none(),
        Build::Operator(_) | Build::Sink(_) => node.inputs.iter().all(|edge| by_arrival(plan, edge.from)),
    }
}

fn by_account(sides: &[Side<'_>]) -> Option<String> {
    sides.iter().find_map(|Side { input, .. }| match input.account {
        account if account.null_key == account.rows => {
            Some(format!("all keys of `{}` are null, and a null matches nothing", input.name))
        }
        account if account.late == account.rows => {
            Some(format!("all rows of `{}` were late, behind the watermark of the join", input.name))
        }
        _ => None,
    })
}

// Rows that were late or had expired may be those that would have met.
fn some_left(sides: &[Side<'_>]) -> Option<String> {
    let of = |count: u64, what: &str, side: &Side<'_>| {
        (count > 0).then(|| format!("{} of `{}` {what}", grouped(count), side.input.name))
    };
    let left: Vec<String> = sides
        .iter()
        .flat_map(|side| {
            let account = &side.input.account;
            let late = if account.late == 1 { "was" } else { "were" };
            let late = format!("{late} late, behind the watermark of the join");
            let before = if account.expired == 1 { "it" } else { "they" };
            let expired = format!("had expired before {before} met one");
            [of(account.late, &late, side), of(account.expired, &expired, side)]
        })
        .flatten()
        .collect();
    (!left.is_empty()).then(|| left.join(", and "))
}

// How much later a row of a further input may be than one of an input before it, for the two to meet.
struct Reach {
    from: i128,
    to: i128,
    words: String,
}

impl Reach {
    fn of(node: &Node) -> Option<Reach> {
        let millis = |span: Span| i128::from(span.as_millis());
        let within = |span: Span, words: String| Reach { from: -millis(span), to: millis(span), words };
        match &node.op {
            Op::IntervalJoin(spec) => {
                let (lower, upper) = (spec.bounds.lower, spec.bounds.upper);
                let words = format!("bounds from {lower} to {upper}");
                Some(Reach { from: millis(lower), to: millis(upper), words })
            }
            Op::WindowJoin { windows, .. } => match *windows {
                Windows::Tumbling { size, .. } | Windows::Sliding { size, .. } => {
                    Some(within(size, format!("windows of {size}")))
                }
                Windows::Session { gap, .. } if node.inputs.len() == 2 => {
                    Some(within(gap, format!("sessions of {gap}")))
                }
                // Rows of a third may bridge a session.
                Windows::Session { .. } => None,
            },
            Op::TemporalJoin { keep, .. } => {
                let (from, words) = match keep {
                    Some(keep) => (-millis(*keep), format!("versions that hold for {keep}")),
                    None => (i128::from(i64::MIN), "versions that hold from their time on".to_string()),
                };
                Some(Reach { from, to: 0, words })
            }
            Op::MultiJoin { .. } => {
                let ttl = node.state.iter().map(|spec| match spec.keeps {
                    Keeps::Ttl(Ttl::For(ttl, Clock::Event)) => Some(ttl),
                    _ => None,
                });
                let ttl = ttl.collect::<Option<Vec<Span>>>()?.into_iter().max()?;
                Some(within(ttl, format!("a time-to-live of {ttl}")))
            }
            _ => None,
        }
    }

    fn meets(&self, before: (i128, i128), further: (i128, i128)) -> bool {
        further.1 - before.0 >= self.from && further.0 - before.1 <= self.to
    }
}

// Two inputs whose rows are too far apart for any of them to meet.
fn by_times(node: &Node, sides: &[Side<'_>]) -> Option<String> {
    let reach = Reach::of(node)?;
    let timed: Vec<(&Side<'_>, TimeRange)> = sides.iter().filter_map(|side| Some((side, side.times?))).collect();
    let mut pairs = timed.iter().enumerate().flat_map(|(index, a)| timed[index + 1..].iter().map(move |b| (a, b)));
    pairs.find_map(|(&(a, a_range), &(b, b_range))| {
        let (of_a, of_b) = (millis(a_range, 1), millis(b_range, 1));
        if reach.meets(of_a, of_b) {
            return None;
        }
        let times = format!(
            "`{}` has times from {} to {}, and `{}` from {} to {}",
            a.input.name, a_range.first, a_range.last, b.input.name, b_range.first, b_range.last
        );
        let small = |range: (i128, i128), other: (i128, i128)| range.0 > 0 && range.1 * 100 < other.0;
        let thousandth = if small(of_a, of_b) && reach.meets(millis(a_range, 1_000), of_b) {
            Some((a, b, of_b.1))
        } else if small(of_b, of_a) && reach.meets(of_a, millis(b_range, 1_000)) {
            Some((b, a, of_a.1))
        } else {
            None
        };
        let remedy = match thousandth {
            Some((_, large, last)) if last > YEAR_2200 => unit(large, "microseconds", "us"),
            Some((small, ..)) => unit(small, "seconds", "s"),
            None => [a, b]
                .into_iter()
                .find(|side| side.by_arrival && a.by_arrival != b.by_arrival)
                .map_or_else(String::new, arrival),
        };
        Some(format!("{times}, too far apart for {}{remedy}", reach.words))
    })
}

fn unit(side: &Side<'_>, are: &str, unit: &str) -> String {
    let name = &side.input.name;
    format!("; are those of `{name}` {are} that are read as milliseconds? `unit = \"{unit}\"` beside the time says so")
}

fn arrival(side: &Side<'_>) -> String {
    format!(
        "; rows of `{}` have the time at which they were read, as their type names no field that has one",
        side.input.name
    )
}

// The range in milliseconds, if each were so many.
fn millis(range: TimeRange, each: i128) -> (i128, i128) {
    (i128::from(range.first.as_millis()) * each, i128::from(range.last.as_millis()) * each)
}

// What may be, where the figures show nothing.
fn question(node: &Node, sides: &[Side<'_>]) -> String {
    let keys = "are their keys written in the same way, as `7` and `007` are not?";
    let conditions = match &node.op {
        Op::MultiJoin { conditions, .. } | Op::WindowJoin { conditions, .. } => conditions.contains(&true),
        Op::IntervalJoin(spec) => spec.condition,
        Op::SnapshotJoin { load: None, .. } => {
            let table = sides.last().map_or("", |side| &side.input.name);
            return format!("{keys} and had `{table}` been read when the others came? `.after_load(..)` waits for it");
        }
        _ => false,
    };
    let mut asked = vec![keys.to_string()];
    if conditions {
        asked.push("can the conditions be fulfilled?".to_string());
    }
    if let Some(reach) = Reach::of(node) {
        asked.push(format!("do their times allow it, with {}?", reach.words));
    }
    asked.join(" and ")
}

// In milliseconds; times beyond are none that anybody means.
const YEAR_2200: i128 = 7_258_118_400_000;
