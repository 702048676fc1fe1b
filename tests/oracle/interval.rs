//! Interval joins.

use flowjoin::{EventTime, Flow, Late, Progress, RowKind, Span, Unmatched, Watermark, millis};
use flowjoin_testkit::oracle::Interval;
use flowjoin_testkit::{TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{Frontier, NAMES, Row, Step, at, check_accounts, fact, facts, say, sorted, taken, timed};

type Pair = (Option<Row>, Option<Row>);

#[derive(Clone, Debug)]
struct Spec {
    lower: Span,
    upper: Span,
    excludes: [bool; 2],
    optional: [bool; 2],
}

impl Spec {
    fn build(&self, flow: &Flow) {
        let input = |index: usize| {
            let rows = facts(flow, NAMES[index]).map(|fact| fact.row);
            rows.key_by(|row| row.key).optional_if(self.optional[index])
        };
        let mut join = input(0).interval_join(input(1)).named("join").between(self.lower, self.upper);
        if self.excludes[0] {
            join = join.exclusive_lower();
        }
        if self.excludes[1] {
            join = join.exclusive_upper();
        }
        let (late_left, late_right) = join.late();
        late_left.sink_to(TestSink::new("late 0"));
        late_right.sink_to(TestSink::new("late 1"));
        let (pairs, (left, right)) =
            join.select_with_unmatched(|left, right| -> Pair { (left.cloned(), right.cloned()) });
        left.sink_to(TestSink::new("unmatched 0"));
        right.sink_to(TestSink::new("unmatched 1"));
        pairs.sink_to(TestSink::new("out"));
    }

    fn interval(&self) -> Interval {
        let lower = self.lower.plus(millis(i64::from(self.excludes[0])));
        let upper = self.upper.plus(millis(-i64::from(self.excludes[1])));
        Interval { lower, upper, optional: self.optional }
    }

    // The last watermark at which a row can still get a partner that is not late. Before the first watermark, which is
    // at the beginning of time, no row has closed.
    fn closes(&self, input: usize, time: i64) -> i128 {
        let Interval { lower, upper, .. } = self.interval();
        let closes = match input {
            0 => i128::from(time) + i128::from(upper.as_millis()),
            _ => i128::from(time) - i128::from(lower.as_millis()),
        };
        closes.max(i128::from(i64::MIN))
    }
}

fn narrow() -> impl Strategy<Value = (i64, i64)> {
    (-15..15i64, 0..20i64).prop_map(|(lower, width)| (lower, lower + width))
}

fn wide() -> impl Strategy<Value = (i64, i64)> {
    let ends = [i64::MIN + 1, i64::MIN / 2, i64::MAX / 2, i64::MAX];
    let far = prop::sample::select(ends.to_vec());
    prop_oneof![
        (far, -9..9i64).prop_map(|(end, other)| (end.min(other), end.max(other))),
        prop::sample::subsequence(ends.to_vec(), 2).prop_map(|ends| (ends[0], ends[1])),
    ]
}

fn specs() -> impl Strategy<Value = Spec> {
    specs_of(prop_oneof![6 => narrow(), 1 => wide()])
}

fn specs_of(bounds: impl Strategy<Value = (i64, i64)>) -> impl Strategy<Value = Spec> {
    (bounds, any::<[bool; 2]>(), any::<[bool; 2]>()).prop_map(|((lower, upper), excludes, optional)| {
        // An interval that would be empty is refused.
        let is_wide = upper.saturating_sub(lower) >= 2;
        Spec { lower: millis(lower), upper: millis(upper), excludes: excludes.map(|it| it && is_wide), optional }
    })
}

// All times of a history lie in 40 ms from here.
fn origins() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0i64), 2 => Just(-20), 1 => Just(i64::MIN), 1 => Just(i64::MAX - 40)]
}

/// What has come in so far, by definition.
struct Model<'a> {
    spec: &'a Spec,
    rows: [Vec<Row>; 2],
    late: [Vec<Row>; 2],
    frontier: Frontier,
    sent: Watermark,
}

impl<'a> Model<'a> {
    fn new(spec: &'a Spec) -> Model<'a> {
        let frontier = Frontier::new(2);
        Model { spec, rows: Default::default(), late: Default::default(), frontier, sent: Watermark::NONE }
    }

    fn reached(&self) -> i128 {
        match self.frontier.at() {
            i64::MAX => i128::MAX,
            at => i128::from(at),
        }
    }

    fn is_held(&self, input: usize, row: &Row) -> bool {
        row.key.is_some() && self.reached() <= self.spec.closes(input, row.stamp)
    }

    // The pairs, and the rows of each side without a partner of which that is certain by now.
    fn result(&self) -> (Vec<Pair>, [Vec<Row>; 2]) {
        let keyed = |input: usize| {
            let rows = self.rows[input].iter();
            rows.map(|row| (row.key, EventTime::from_millis(row.stamp))).collect::<Vec<_>>()
        };
        let interval = Interval { optional: [false; 2], ..self.spec.interval() };
        let result = interval.join(&keyed(0), &keyed(1));
        let row = |input: usize, place: usize| self.rows[input][place].clone();
        let certain = |input: usize, places: Vec<usize>| {
            let rows = places.into_iter().map(|place| row(input, place));
            rows.filter(|row| !self.is_held(input, row)).collect::<Vec<_>>()
        };
        let (left, right) = (certain(0, result.unmatched_left), certain(1, result.unmatched_right));
        let mut pairs: Vec<Pair> = result
            .pairs
            .into_iter()
            .map(|(left, right)| (left.map(|place| row(0, place)), right.map(|place| row(1, place))))
            .collect();
        let [left_optional, right_optional] = self.spec.optional;
        if right_optional {
            pairs.extend(left.iter().map(|row| (Some(row.clone()), None)));
        }
        if left_optional {
            pairs.extend(right.iter().map(|row| (None, Some(row.clone()))));
        }
        let aside = |rows: Vec<Row>, is_padded: bool| if is_padded { Vec::new() } else { sorted(rows) };
        (sorted(pairs), [aside(left, right_optional), aside(right, left_optional)])
    }
}

#[derive(Default)]
struct Came {
    pairs: Vec<Pair>,
    unmatched: [Vec<Row>; 2],
}

fn hear(t: &mut TestFlow, model: &mut Model<'_>, came: &mut Came) -> Result<(), TestCaseError> {
    for (kind, pair, time) in taken::<Pair>(t, "out") {
        prop_assert_eq!(kind, RowKind::Insert);
        let newest = pair.0.iter().chain(&pair.1).map(|row| row.stamp).max();
        prop_assert_eq!(Some(time.as_millis()), newest);
        // Those downstream do not wait for a join whose inputs are all idle, so what it then has to say may be late.
        let is_early = model.frontier.has_slept() || !model.sent.is_late(time);
        prop_assert!(is_early, "{:?} came behind {}", pair, model.sent);
        came.pairs.push(pair);
    }
    for input in 0..2 {
        let rows = taken::<Unmatched<Row>>(t, &format!("unmatched {input}"));
        for (_, unmatched, time) in rows {
            prop_assert_eq!(time.as_millis(), unmatched.row.stamp);
            let is_early = model.frontier.has_slept() || !model.sent.is_late(time);
            prop_assert!(is_early, "{:?} came behind {}", unmatched, model.sent);
            came.unmatched[input].push(unmatched.row);
        }
    }
    for progress in t.take_progress("out") {
        if let Progress::At(watermark) = progress {
            prop_assert!(watermark > model.sent && watermark.time().as_millis() <= model.frontier.at());
            model.sent = watermark;
        }
    }
    Ok(())
}

fn check_step(t: &TestFlow, model: &Model<'_>, came: &Came, steady: bool) -> Result<(), TestCaseError> {
    let (pairs, unmatched) = model.result();
    prop_assert_eq!(sorted(came.pairs.clone()), pairs);
    prop_assert_eq!(came.unmatched.clone().map(sorted), unmatched);
    let held = |input: usize| model.rows[input].iter().filter(move |row| model.is_held(input, row));
    prop_assert_eq!(t.figures("join").state_rows, [held(0).count() as u64, held(1).count() as u64]);
    // The watermark is not held back without need. Far out, where times saturate, and for very wide intervals it may be;
    // and so it may after a time without an active input.
    if steady && !model.frontier.has_slept() {
        // Both sides may still come out, as padding or as unmatched.
        let oldest = (0..2).flat_map(held).map(|row| row.stamp).min().unwrap_or(i64::MAX);
        prop_assert!(model.sent.time().as_millis() >= oldest.min(model.frontier.at()));
    }
    Ok(())
}

fn check(parallelism: usize, spec: &Spec, origin: i64, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| spec.build(flow));
    let mut model = Model::new(spec);
    let mut came = Came::default();
    let is_small = |span: Span| span.as_millis().unsigned_abs() < 1_000;
    let steady = origin.unsigned_abs() < 1_000 && is_small(spec.lower) && is_small(spec.upper);
    for step in steps {
        match *step {
            Step::Row { input, key, value, time } if !model.frontier.has_ended(input) => {
                let row = Row { key, value, stamp: origin + time };
                let is_late = row.stamp < model.frontier.at();
                let into = if is_late { &mut model.late } else { &mut model.rows };
                into[input].push(row.clone());
                t.send(NAMES[input], fact(RowKind::Insert, row, origin + time));
            }
            Step::Watermark { input, at: time } => say(&mut t, &mut model.frontier, input, at(origin + time)),
            Step::Idle(input) => say(&mut t, &mut model.frontier, input, Progress::Idle),
            Step::Active(input) => say(&mut t, &mut model.frontier, input, Progress::Active),
            Step::End(input) => say(&mut t, &mut model.frontier, input, Progress::End),
            Step::Row { .. } | Step::Retract { .. } | Step::Clock(_) => continue,
        }
        hear(&mut t, &mut model, &mut came)?;
        check_step(&t, &model, &came, steady)?;
    }
    for input in 0..2 {
        say(&mut t, &mut model.frontier, input, Progress::End);
    }
    hear(&mut t, &mut model, &mut came)?;
    check_step(&t, &model, &came, true)?;
    prop_assert_eq!(t.figures("join").state_rows, [0, 0]);
    for input in 0..2 {
        let late = taken::<Late<Row>>(&mut t, &format!("late {input}"));
        prop_assert_eq!(sorted(late.into_iter().map(|(_, late, _)| late.row)), sorted(model.late[input].clone()));
        let account = t.figures("join").accounts[input];
        let sent = (model.rows[input].len() + model.late[input].len()) as u64;
        prop_assert_eq!((account.rows, account.late, account.open), (sent, model.late[input].len() as u64, 0));
    }
    check_accounts(&t, "join")
}

// Rows in an order in which none is behind the newest before it by more than the bound.
fn disordered(rows: &[Step], jitter: &[i64]) -> Vec<Step> {
    let time = |step: &Step| match step {
        Step::Row { time, .. } => *time,
        _ => 0,
    };
    let mut order: Vec<(i64, &Step)> = rows.iter().zip(jitter).map(|(step, by)| (time(step) + by, step)).collect();
    order.sort_by_key(|(place, _)| *place);
    let mut steps = Vec::new();
    let mut newest = i64::MIN / 2;
    for (_, step) in order {
        newest = newest.max(time(step));
        steps.push(step.clone());
        steps.extend((0..2).map(|input| Step::Watermark { input, at: newest - DISORDER }));
    }
    steps
}

const DISORDER: i64 = 10;

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn each_step_says_what_the_times_say(
        spec in specs(), origin in origins(), steps in prop::collection::vec(timed(2, 0..40), 0..40),
    ) {
        for parallelism in [1, 4] {
            check(parallelism, &spec, origin, &steps)?;
        }
    }

    #[test]
    fn within_the_bound_on_disorder_the_order_of_arrival_does_not_matter(
        spec in specs(),
        rows in prop::collection::vec(super::history::row(2, 0..40), 0..25),
        jitters in prop::array::uniform2(prop::collection::vec(0..DISORDER, 25)),
    ) {
        let mut results = Vec::new();
        for jitter in &jitters {
            let mut t = TestFlow::parallel(2, |flow| spec.build(flow));
            for step in disordered(&rows, jitter) {
                match step {
                    Step::Row { input, key, value, time } => {
                        t.send(NAMES[input], fact(RowKind::Insert, Row { key, value, stamp: time }, time));
                    }
                    Step::Watermark { input, at: time } => drop(t.say(NAMES[input], at(time))),
                    _ => {}
                }
            }
            t.end_all();
            prop_assert!(t.figures("join").accounts.iter().all(|account| account.late == 0));
            results.push(sorted(taken::<Pair>(&mut t, "out").into_iter().map(|(_, pair, _)| pair)));
        }
        prop_assert_eq!(&results[0], &results[1]);
    }

    #[test]
    fn when_time_has_passed_nothing_is_held(
        spec in specs_of(narrow()), rows in prop::collection::vec(super::history::row(2, 0..40), 0..25),
    ) {
        let mut t = TestFlow::parallel(4, |flow| spec.build(flow));
        for step in &rows {
            let Step::Row { input, key, value, time } = *step else { continue };
            t.send(NAMES[input], fact(RowKind::Insert, Row { key, value, stamp: time }, time));
        }
        for name in &NAMES[..2] {
            t.say(name, at(2_000));
        }
        prop_assert_eq!(t.figures("join").state_rows, [0, 0]);
        let sent = t.take_progress("out").pop();
        prop_assert_eq!(sent, Some(Progress::At(Watermark::at(EventTime::from_millis(2_000)))));
    }
}
