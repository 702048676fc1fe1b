//! Interval joins.

use flowjoin::api::Accepts;
use flowjoin::{
    Eager, EagerAfter, EventTime, Final, Flow, KeyedStream, Late, Mode, Progress, RowKind, Span, Stream, Unmatched,
    Watermark, millis,
};
use flowjoin_testkit::oracle::Interval;
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{Frontier, NAMES, Row, Step, advance, at, check_accounts, fact, facts, say, sorted, taken, timed};

type Pair = (Option<Row>, Option<Row>);

/// What an input does to the result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Required,
    // Its gaps are told when they are closed.
    Optional,
    Final,
    Eager,
    After(i64),
    // Only on the right.
    Exists,
    NotExists,
}

impl Role {
    fn is_test(self) -> bool {
        matches!(self, Role::Exists | Role::NotExists)
    }

    // Whether a row of the other input comes out without one of this.
    fn may_be_empty(self) -> bool {
        !matches!(self, Role::Required | Role::Exists)
    }
}

#[derive(Clone, Debug)]
struct Spec {
    lower: Span,
    upper: Span,
    excludes: [bool; 2],
    roles: [Role; 2],
    // Whether a pair has to have equal values.
    condition: bool,
}

// The end of a join, whatever the types of its inputs are.
macro_rules! ended {
    ($spec:ident, $join:expr, $select:expr) => {{
        let mut join = $join.named("join");
        if $spec.excludes[0] {
            join = join.exclusive_lower();
        }
        if $spec.excludes[1] {
            join = join.exclusive_upper();
        }
        if $spec.condition {
            join = join.on(|left, right| left.value == right.value);
        }
        let (late_left, late_right) = join.late();
        late_left.sink_to(TestSink::new("late 0"));
        late_right.sink_to(TestSink::new("late 1"));
        let (pairs, (left, right)) = join.select_with_unmatched($select);
        left.sink_to(TestSink::new("unmatched 0"));
        right.sink_to(TestSink::new("unmatched 1"));
        sink(pairs);
    }};
}

fn some(row: &Row) -> Option<Row> {
    Some(row.clone())
}

fn maybe(row: Option<&Row>) -> Option<Row> {
    row.cloned()
}

fn sink<M: Mode>(pairs: Stream<Pair, M>)
where
    flowjoin::io::TakesChanges: Accepts<M>,
{
    pairs.sink_to(TestSink::new("out"));
}

impl Spec {
    fn input(&self, flow: &Flow, index: usize) -> KeyedStream<Option<u8>, Row> {
        facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key)
    }

    fn build(&self, flow: &Flow) {
        let (lower, upper) = (self.lower, self.upper);
        let [left, right] = [0, 1].map(|index| self.input(flow, index));
        macro_rules! with {
            ($left:expr, $right:expr, $select:expr) => {
                ended!(self, $left.interval_join($right).between(lower, upper), $select)
            };
        }
        macro_rules! with_right {
            ($left:expr, $own:ident) => {
                match self.roles[1] {
                    Role::Required => with!($left, right, |l, r| -> Pair { ($own(l), Some(r.clone())) }),
                    Role::Optional => with!($left, right.optional(), |l, r| -> Pair { ($own(l), r.cloned()) }),
                    Role::Final => with!($left, right.optional().emit(Final), |l, r| -> Pair { ($own(l), r.cloned()) }),
                    Role::Eager => with!($left, right.optional().emit(Eager), |l, r| -> Pair { ($own(l), r.cloned()) }),
                    Role::After(delay) => {
                        let right = right.optional().emit(EagerAfter(millis(delay)));
                        with!($left, right, |l, r| -> Pair { ($own(l), r.cloned()) })
                    }
                    Role::Exists | Role::NotExists => unreachable!("tests have an arm of their own"),
                }
            };
        }
        let only = |row: &Row, ()| -> Pair { (Some(row.clone()), None) };
        match self.roles {
            [_, Role::Exists] => ended!(self, left.where_exists(right).between(lower, upper), only),
            [_, Role::NotExists] => ended!(self, left.where_not_exists(right).between(lower, upper), only),
            [Role::Required, _] => with_right!(left, some),
            [Role::Optional, _] => with_right!(left.optional(), maybe),
            [Role::Final, _] => with_right!(left.optional().emit(Final), maybe),
            [Role::Eager, _] => with_right!(left.optional().emit(Eager), maybe),
            [Role::After(delay), _] => with_right!(left.optional().emit(EagerAfter(millis(delay))), maybe),
            [Role::Exists | Role::NotExists, _] => unreachable!("only the right input is a test"),
        }
    }

    fn interval(&self) -> Interval {
        let lower = self.lower.plus(millis(i64::from(self.excludes[0])));
        let upper = self.upper.plus(millis(-i64::from(self.excludes[1])));
        Interval { lower, upper, optional: [false; 2] }
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
    (bounds, any::<[bool; 2]>(), (role(), role_or_test()), prop::bool::weighted(0.3)).prop_map(
        |((lower, upper), excludes, (left, right), condition)| {
            // An interval that would be empty is refused.
            let is_wide = upper.saturating_sub(lower) >= 2;
            let left = if right.is_test() { Role::Required } else { left };
            Spec {
                lower: millis(lower),
                upper: millis(upper),
                excludes: excludes.map(|it| it && is_wide),
                roles: [left, right],
                condition,
            }
        },
    )
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![
        3 => Just(Role::Required),
        2 => Just(Role::Optional),
        1 => Just(Role::Final),
        2 => Just(Role::Eager),
        2 => (1..20i64).prop_map(Role::After),
    ]
}

fn role_or_test() -> impl Strategy<Value = Role> {
    prop_oneof![8 => role(), 1 => Just(Role::Exists), 1 => Just(Role::NotExists)]
}

// All times of a history lie in 40 ms from here.
fn origins() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0i64), 2 => Just(-20), 1 => Just(i64::MIN), 1 => Just(i64::MAX - 41)]
}

/// What has come in so far, by definition.
struct Model<'a> {
    spec: &'a Spec,
    rows: [Vec<Row>; 2],
    // When each of them came, on the processing clock.
    came: [Vec<i64>; 2],
    late: [Vec<Row>; 2],
    frontier: Frontier,
    clock: i64,
    sent: Watermark,
}

impl<'a> Model<'a> {
    fn new(spec: &'a Spec) -> Model<'a> {
        let frontier = Frontier::new(2);
        let (rows, came, late) = Default::default();
        Model { spec, rows, came, late, frontier, clock: 0, sent: Watermark::NONE }
    }

    fn take(&mut self, input: usize, row: Row) {
        if row.stamp < self.frontier.at() {
            self.late[input].push(row);
        } else {
            self.rows[input].push(row);
            self.came[input].push(self.clock);
        }
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

    // The places of the rows that are partners, left and right.
    fn partners(&self) -> Vec<(usize, usize)> {
        let interval = self.spec.interval();
        let time = |row: &Row| EventTime::from_millis(row.stamp);
        let mut pairs = Vec::new();
        for (i, left) in self.rows[0].iter().enumerate() {
            for (j, right) in self.rows[1].iter().enumerate() {
                let holds = left.key.is_some() && left.key == right.key && interval.holds(time(left), time(right));
                if holds && (!self.spec.condition || left.value == right.value) {
                    pairs.push((i, j));
                }
            }
        }
        pairs
    }

    // Whether the gap beside a row without a partner stands in the result.
    fn is_told(&self, input: usize, place: usize) -> bool {
        let is_closed = !self.is_held(input, &self.rows[input][place]);
        match self.spec.roles[1 - input] {
            Role::Required | Role::Exists => false,
            Role::Optional | Role::Final | Role::NotExists => is_closed,
            Role::Eager => true,
            Role::After(delay) => is_closed || self.came[input][place] + delay <= self.clock,
        }
    }

    // Whether a row without a partner that is held may still come out by itself.
    fn may_come_out(&self, input: usize, place: usize) -> bool {
        self.is_held(input, &self.rows[input][place]) && !self.is_told(input, place)
    }

    // The rows of an input that are in none of these pairs.
    fn alone(&self, input: usize, partners: &[(usize, usize)]) -> Vec<usize> {
        let has_one = |place: usize| partners.iter().any(|&(left, right)| [left, right][input] == place);
        (0..self.rows[input].len()).filter(|&place| !has_one(place)).collect()
    }

    // The result that stands, and the rows of each side that have come out aside.
    fn result(&self, partners: &[(usize, usize)]) -> (Vec<Pair>, [Vec<Row>; 2]) {
        let row = |input: usize, place: usize| self.rows[input][place].clone();
        let mut standing: Vec<Pair> = match self.spec.roles[1] {
            Role::NotExists => Vec::new(),
            Role::Exists => {
                let lefts: std::collections::BTreeSet<usize> = partners.iter().map(|pair| pair.0).collect();
                lefts.into_iter().map(|left| (Some(row(0, left)), None)).collect()
            }
            _ => partners.iter().map(|&(left, right)| (Some(row(0, left)), Some(row(1, right)))).collect(),
        };
        let mut aside: [Vec<Row>; 2] = Default::default();
        for (input, aside) in aside.iter_mut().enumerate() {
            for place in self.alone(input, partners) {
                let alone = row(input, place);
                if self.is_told(input, place) {
                    standing.push(if input == 0 { (Some(alone), None) } else { (None, Some(alone)) });
                } else if !self.spec.roles[1 - input].may_be_empty() && !self.is_held(input, &alone) {
                    aside.push(alone);
                }
            }
        }
        (sorted(standing), aside.map(sorted))
    }
}

#[derive(Default)]
struct Came {
    standing: ChangelogChecker<Pair>,
    unmatched: [Vec<Row>; 2],
}

fn hear(t: &mut TestFlow, model: &mut Model<'_>, came: &mut Came) -> Result<(), TestCaseError> {
    let corrects = model.spec.roles.iter().any(|role| matches!(role, Role::Eager | Role::After(_)));
    for (kind, pair, time) in taken::<Pair>(t, "out") {
        let newest = pair.0.iter().chain(&pair.1).map(|row| row.stamp).max();
        match (kind, model.spec.roles[1].is_test()) {
            (RowKind::Insert, false) => prop_assert_eq!(Some(time.as_millis()), newest),
            // As old as the row, or as the partner that it came out for.
            (RowKind::Insert, true) => prop_assert!(Some(time.as_millis()) >= newest),
            (kind, _) => prop_assert!(corrects && kind == RowKind::Delete),
        }
        prop_assert!(!model.sent.is_late(time), "{:?} came behind {}", pair, model.sent);
        came.standing.apply(kind, pair).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
    }
    for input in 0..2 {
        let rows = taken::<Unmatched<Row>>(t, &format!("unmatched {input}"));
        for (_, unmatched, time) in rows {
            prop_assert_eq!(time.as_millis(), unmatched.row.stamp);
            prop_assert!(!model.sent.is_late(time), "{:?} came behind {}", unmatched, model.sent);
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

fn check_step(t: &TestFlow, model: &Model<'_>, came: &Came) -> Result<(), TestCaseError> {
    let partners = model.partners();
    let (standing, unmatched) = model.result(&partners);
    prop_assert_eq!(came.standing.table(), standing);
    prop_assert_eq!(came.unmatched.clone().map(sorted), unmatched);
    let held = |input: usize| model.rows[input].iter().filter(move |row| model.is_held(input, row));
    prop_assert_eq!(t.figures("join").state_rows, [held(0).count() as u64, held(1).count() as u64]);
    // The watermark is held back exactly to the oldest row that may still come out, aside or in the result.
    let of_input = |input: usize| {
        let alone = model.alone(input, &partners).into_iter().filter(move |&place| model.may_come_out(input, place));
        alone.map(move |place| model.rows[input][place].stamp)
    };
    let oldest = (0..2).flat_map(of_input).min().unwrap_or(i64::MAX);
    prop_assert_eq!(model.sent.time().as_millis(), oldest.min(model.frontier.at()));
    Ok(())
}

fn check(parallelism: usize, spec: &Spec, origin: i64, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| spec.build(flow));
    let mut model = Model::new(spec);
    let mut came = Came::default();
    for step in steps {
        match *step {
            Step::Row { input, key, value, time } if !model.frontier.has_ended(input) => {
                let row = Row { key, value, stamp: origin + time };
                model.frontier.wake(input);
                model.take(input, row.clone());
                t.send(NAMES[input], fact(RowKind::Insert, row, origin + time));
            }
            Step::Watermark { input, at: time } => say(&mut t, &mut model.frontier, input, at(origin + time)),
            Step::Idle(input) => say(&mut t, &mut model.frontier, input, Progress::Idle),
            Step::Active(input) => say(&mut t, &mut model.frontier, input, Progress::Active),
            Step::End(input) => say(&mut t, &mut model.frontier, input, Progress::End),
            Step::Clock(by) => model.clock = advance(&mut t, by),
            Step::Row { .. } | Step::Retract { .. } => continue,
        }
        hear(&mut t, &mut model, &mut came)?;
        check_step(&t, &model, &came)?;
    }
    for input in 0..2 {
        say(&mut t, &mut model.frontier, input, Progress::End);
    }
    hear(&mut t, &mut model, &mut came)?;
    check_step(&t, &model, &came)?;
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
        spec in specs(), origin in origins(), steps in prop::collection::vec(prop_oneof![12 => timed(2, 0..40), 1 => (1..15i64).prop_map(Step::Clock)], 0..40),
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
            let mut standing = ChangelogChecker::new();
            for (kind, pair, _) in taken::<Pair>(&mut t, "out") {
                standing.apply(kind, pair).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
            }
            results.push(standing.table());
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
