//! Window joins.

use std::collections::BTreeMap;

use flowjoin::api::{NeedsTtl, multi_join};
use flowjoin::{
    EventTime, Flow, KeyedStream, Late, MaybeOptional, Progress, Reason, RowKind, Unmatched, Watermark, millis,
};
use flowjoin_testkit::oracle::{Role, WindowJoin, WindowResult, WindowRow, Windows};
use flowjoin_testkit::{TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{Frontier, NAMES, Row, Step, at, awake, check_accounts, fact, facts, say, sorted, taken, timed};

type Joined = Vec<Option<Row>>;

#[derive(Clone, Debug)]
struct Spec {
    join: WindowJoin,
    // Rows of two inputs match only if their values are in order.
    has_condition: bool,
}

fn holds(one: &Row, other: &Row) -> bool {
    one.value <= other.value
}

fn shown(row: Option<&Row>) -> Option<Row> {
    row.cloned()
}

// Side outputs and the end, which are written alike for each number of inputs and each mode.
macro_rules! finish {
    ($spec:ident, $join:expr; $($row:ident $number:literal),+) => {{
        let join = match $spec.join.windows {
            Windows::Every { size, slide, offset } if size == slide => $join.tumbling(size).offset(offset),
            Windows::Every { size, slide, offset } => $join.sliding(size, slide).offset(offset),
            Windows::Session { gap } => $join.session(gap),
        };
        let join = join.named("join");
        finish!(sides join; $($row $number),+);
        match $spec.join.lateness.as_millis() {
            0 => finish!(end join; $($row $number),+),
            _ => finish!(end join.allowed_lateness($spec.join.lateness); $($row $number),+),
        }
    }};
    (sides $join:ident; $($row:ident $number:literal),+) => {
        let ($($row),+,) = $join.late();
        $($row.sink_to(TestSink::new(concat!("late ", $number)));)+
    };
    (end $join:expr; $($row:ident $number:literal),+) => {{
        let (out, unmatched) = $join.select_with_unmatched(|$($row),+| -> Joined { vec![$(shown($row)),+] });
        out.sink_to(TestSink::new("out"));
        let ($($row),+,) = unmatched;
        $($row.sink_to(TestSink::new(concat!("unmatched ", $number)));)+
    }};
}

macro_rules! finish_test {
    ($spec:ident, $join:expr) => {{
        let join: NeedsTtl<_> = if $spec.has_condition { $join.on(holds) } else { $join };
        let join = match $spec.join.windows {
            Windows::Every { size, slide, offset } if size == slide => join.tumbling(size).offset(offset),
            Windows::Every { size, slide, offset } => join.sliding(size, slide).offset(offset),
            Windows::Session { gap } => join.session(gap),
        };
        let join = join.named("join");
        finish!(sides join; a 0, b 1);
        match $spec.join.lateness.as_millis() {
            0 => finish_test!(end join),
            _ => finish_test!(end join.allowed_lateness($spec.join.lateness)),
        }
    }};
    (end $join:expr) => {{
        let (out, (a, b)) = $join.into_rows_with_unmatched();
        out.map(|row| -> Joined { vec![Some(row), None] }).sink_to(TestSink::new("out"));
        a.sink_to(TestSink::new("unmatched 0"));
        b.sink_to(TestSink::new("unmatched 1"));
    }};
}

impl Spec {
    fn is_short(&self) -> bool {
        let (Windows::Every { size: span, .. } | Windows::Session { gap: span }) = self.join.windows;
        span.as_millis() < 1_000
    }

    fn inputs(&self) -> usize {
        self.join.roles.len()
    }

    fn build(&self, flow: &Flow) {
        let keyed = |index: usize| -> KeyedStream<Option<u8>, Row> {
            facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key)
        };
        let input =
            |index: usize| -> MaybeOptional<_> { keyed(index).optional_if(self.join.roles[index] == Role::Optional) };
        match &self.join.roles[..] {
            [_, Role::Exists] => finish_test!(self, keyed(0).where_exists(keyed(1))),
            [_, Role::NotExists] => finish_test!(self, keyed(0).where_not_exists(keyed(1))),
            [_, _] if self.has_condition => {
                let join = input(0).window_join(input(1)).on(|a, b| a.map(|a| holds(a, b)));
                finish!(self, join; a 0, b 1)
            }
            [_, _] => finish!(self, input(0).window_join(input(1)); a 0, b 1),
            _ => {
                let join = multi_join(input(0)).and(input(1));
                let join = if self.has_condition { join.on(|a, b| a.map(|a| holds(a, b))) } else { join };
                finish!(self, join.and(input(2)); a 0, b 1, c 2)
            }
        }
    }

    // Whether a row is in the result though all other inputs are empty.
    fn stands_alone(&self, input: usize) -> bool {
        let roles = &self.join.roles;
        let shows = matches!(roles[input], Role::Required | Role::Optional);
        let may_miss = |role: &Role| matches!(role, Role::Optional | Role::NotExists);
        shows && roles.iter().enumerate().all(|(other, role)| other == input || may_miss(role))
    }
}

fn roles() -> impl Strategy<Value = Vec<Role>> {
    let shown = prop::sample::select(vec![Role::Required, Role::Optional]);
    prop_oneof![
        4 => prop::collection::vec(shown.clone(), 2),
        2 => prop::collection::vec(shown, 3),
        1 => Just(vec![Role::Required, Role::Exists]),
        1 => Just(vec![Role::Required, Role::NotExists]),
    ]
}

fn windows() -> impl Strategy<Value = Windows> {
    let every = |size: i64, slide: i64, offset: i64| Windows::Every {
        size: millis(size),
        slide: millis(slide),
        offset: millis(offset),
    };
    let offsets = prop_oneof![3 => Just(0i64), 2 => -15..15i64, 1 => prop::sample::select(vec![i64::MIN, i64::MAX])];
    prop_oneof![
        3 => (1..15i64, offsets.clone()).prop_map(move |(size, offset)| every(size, size, offset)),
        3 => (1..8i64, 0..12i64, offsets).prop_map(move |(slide, more, offset)| every(slide + more, slide, offset)),
        3 => (1..10i64).prop_map(|gap| Windows::Session { gap: millis(gap) }),
        1 => prop::sample::select(vec![i64::MAX, i64::MAX / 2]).prop_map(|gap| Windows::Session { gap: millis(gap) }),
        1 => prop::sample::select(vec![i64::MAX, i64::MAX / 2]).prop_map(move |size| every(size, size, 0)),
    ]
}

fn specs(lateness: impl Strategy<Value = i64>) -> impl Strategy<Value = Spec> {
    (roles(), windows(), lateness, prop::bool::weighted(0.3)).prop_map(|(roles, windows, lateness, has_condition)| {
        Spec { join: WindowJoin { windows, lateness: millis(lateness), roles }, has_condition }
    })
}

fn latenesses() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 1..20i64, 1 => Just(i64::MAX)]
}

// All times of a history lie in 40 ms from here.
fn origins() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0i64), 2 => Just(-20), 1 => Just(i64::MIN), 1 => Just(i64::MAX - 41)]
}

fn clamp(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// What has come in so far, by definition.
struct Model<'a> {
    spec: &'a Spec,
    rows: Vec<Row>,
    arrived: Vec<WindowRow<u8>>,
    frontier: Frontier,
    sent: Watermark,
}

impl<'a> Model<'a> {
    fn new(spec: &'a Spec) -> Model<'a> {
        let frontier = Frontier::new(spec.inputs());
        Model { spec, rows: Vec::new(), arrived: Vec::new(), frontier, sent: Watermark::NONE }
    }

    fn watermark(&self) -> Watermark {
        Watermark::at(EventTime::from_millis(self.frontier.at()))
    }

    fn arrive(&mut self, input: usize, row: Row) {
        let time = EventTime::from_millis(row.stamp);
        self.arrived.push(WindowRow { input, key: row.key, time, watermark: self.watermark() });
        self.rows.push(row);
    }

    fn result(&self) -> WindowResult {
        let on = |so_far: &[Option<usize>], next: usize| match so_far {
            [one] if self.spec.has_condition => one.map(|one| holds(&self.rows[one], &self.rows[next])),
            _ => Some(true),
        };
        self.spec.join.join(&self.arrived, on)
    }

    // Results of windows that have fired, and of rows with null keys, which come at once.
    fn said(&self, result: &WindowResult) -> Vec<(i64, Joined)> {
        let has_fired = |last: i128| self.frontier.at() == i64::MAX || last < i128::from(self.frontier.at());
        let row = |place: &Option<usize>| place.map(|place| self.rows[place].clone());
        let is_null = |row: &[Option<usize>]| row.iter().flatten().all(|&place| self.rows[place].key.is_none());
        let results = result.results.iter().filter(|(last, row)| has_fired(*last) || is_null(row));
        sorted(results.map(|(last, places)| (clamp(*last), places.iter().map(row).collect::<Joined>())))
    }

    fn is_over(&self, lasts: &[i128]) -> bool {
        lasts.last().is_none_or(|&last| self.spec.join.is_over(last, self.watermark()))
    }

    // The rows of an input that are held, that came out unmatched, and that were late.
    fn rows_of(&self, input: usize, result: &WindowResult) -> (u64, Vec<(Row, Reason)>, Vec<Row>) {
        let (mut held, mut unmatched, mut late) = (0, Vec::new(), Vec::new());
        for (place, row) in self.rows.iter().enumerate().filter(|(place, _)| self.arrived[*place].input == input) {
            let lasts = &result.windows[place];
            let alone = !self.spec.stands_alone(input);
            match (lasts.is_empty(), row.key, self.is_over(lasts)) {
                (true, ..) => late.push(row.clone()),
                (false, None, _) if alone => unmatched.push((row.clone(), Reason::NullKey)),
                (false, None, _) => {}
                (false, Some(_), false) => held += 1,
                (false, Some(_), true) if alone && !result.met[place] => {
                    unmatched.push((row.clone(), Reason::WindowClosed));
                }
                (false, Some(_), true) => {}
            }
        }
        unmatched.sort();
        (held, unmatched, sorted(late))
    }

    // How far the watermark of the result is to be held back: not at all but for late rows, which may change the first
    // window that is not over.
    fn should_be_sent(&self) -> i64 {
        let lateness = self.spec.join.lateness.as_millis();
        let reached = self.frontier.at();
        if lateness == 0 || reached == i64::MAX {
            return reached;
        }
        let first = i128::from(reached) - i128::from(lateness);
        let held = match self.spec.join.windows {
            Windows::Session { .. } => first,
            Windows::Every { size, slide, offset } => {
                let ends = |last: i128| {
                    (last + 1 - i128::from(offset.as_millis()) - i128::from(size.as_millis()))
                        .rem_euclid(i128::from(slide.as_millis()))
                        == 0
                };
                (first..).find(|&last| ends(last)).expect("windows end again and again")
            }
        };
        clamp(held).min(reached)
    }
}

#[derive(Default)]
struct Came {
    // How often each result stands, with its time.
    standing: BTreeMap<(i64, Joined), i64>,
    unmatched: Vec<Vec<(Row, Reason)>>,
}

fn hear(t: &mut TestFlow, model: &mut Model<'_>, came: &mut Came) -> Result<(), TestCaseError> {
    let is_session = matches!(model.spec.join.windows, Windows::Session { .. });
    let has_lateness = model.spec.join.lateness.as_millis() > 0;
    for (kind, joined, time) in taken::<Joined>(t, "out") {
        prop_assert!(kind == RowKind::Insert || has_lateness);
        let is_early = !model.sent.is_late(time);
        prop_assert!(is_early, "{:?} at {} came behind {}", joined, time, model.sent);
        // A session may have become longer since a result was told.
        let time = if is_session && has_lateness { 0 } else { time.as_millis() };
        let count = came.standing.entry((time, joined)).or_default();
        *count += if kind.adds() { 1 } else { -1 };
        prop_assert!(*count >= 0, "what does not stand was taken back");
    }
    for input in 0..model.spec.inputs() {
        for (_, unmatched, time) in taken::<Unmatched<Row>>(t, &format!("unmatched {input}")) {
            let is_early = !model.sent.is_late(time);
            prop_assert!(is_early, "{:?} at {} came behind {}", unmatched, time, model.sent);
            came.unmatched[input].push((unmatched.row, unmatched.reason));
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
    let result = model.result();
    let has_lateness = model.spec.join.lateness.as_millis() > 0;
    let is_session = matches!(model.spec.join.windows, Windows::Session { .. });
    let has_ended = model.frontier.at() == i64::MAX;
    let stands = came.standing.iter().flat_map(|(row, &count)| std::iter::repeat_n(row.clone(), count as usize));
    let stands: Vec<_> = stands.collect();
    if !(is_session && has_lateness) {
        prop_assert_eq!(stands, model.said(&result));
    } else {
        // A session that has fired is open again when it becomes longer; what it said before stands until it fires again.
        let said = sorted(model.said(&result).into_iter().map(|(_, row)| (0, row)));
        if has_ended {
            prop_assert_eq!(&stands, &said);
        }
        let copies = |rows: &[(i64, Joined)], row: &(i64, Joined)| rows.iter().filter(|other| *other == row).count();
        prop_assert!(said.iter().all(|row| copies(&said, row) <= copies(&stands, row)), "{:?} in {:?}", said, stands);
    }
    for input in 0..model.spec.inputs() {
        let (held, unmatched, _) = model.rows_of(input, &result);
        prop_assert_eq!(sorted(came.unmatched[input].clone()), unmatched);
        prop_assert_eq!(t.figures("join").state_rows[input], held);
    }
    if steady {
        prop_assert_eq!(model.sent.time().as_millis(), model.should_be_sent());
    }
    Ok(())
}

fn check(parallelism: usize, spec: &Spec, origin: i64, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| spec.build(flow));
    let mut model = Model::new(spec);
    let mut came = Came { unmatched: vec![Vec::new(); spec.inputs()], ..Came::default() };
    // The ends of windows are looked for one by one.
    let steady = origin.unsigned_abs() < 1_000 && spec.join.lateness.as_millis() < 1_000 && spec.is_short();
    let steps = steps.iter().filter(|step| match step {
        Step::Row { input, .. } | Step::Watermark { input, .. } => *input < spec.inputs(),
        Step::Idle(input) | Step::Active(input) | Step::End(input) => *input < spec.inputs(),
        Step::Retract { .. } | Step::Clock(_) => false,
    });
    for step in steps {
        match *step {
            Step::Row { input, key, value, time } if !model.frontier.has_ended(input) => {
                let row = Row { key, value, stamp: origin + time };
                model.frontier.wake(input);
                model.arrive(input, row.clone());
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
    for input in 0..spec.inputs() {
        say(&mut t, &mut model.frontier, input, Progress::End);
    }
    hear(&mut t, &mut model, &mut came)?;
    check_step(&t, &model, &came, false)?;
    let result = model.result();
    for input in 0..spec.inputs() {
        let (held, _, expected) = model.rows_of(input, &result);
        let late = taken::<Late<Row>>(&mut t, &format!("late {input}"));
        prop_assert!(late.iter().all(|(_, late, time)| *time < late.watermark));
        prop_assert_eq!(sorted(late.into_iter().map(|(_, late, _)| late.row)), expected.clone());
        let account = t.figures("join").accounts[input];
        let of = |test: &dyn Fn(usize) -> bool| {
            let own = (0..model.rows.len()).filter(|&place| model.arrived[place].input == input);
            own.filter(|&place| test(place)).count() as u64
        };
        let is_null = |place: usize| model.rows[place].key.is_none() && !result.windows[place].is_empty();
        prop_assert_eq!((held, account.rows, account.open), (0, of(&|_| true), 0));
        prop_assert_eq!((account.late, account.null_key), (expected.len() as u64, of(&is_null)));
        prop_assert_eq!(account.matched, of(&|place| result.met[place]));
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
        steps.extend((0..3).map(|input| Step::Watermark { input, at: newest - DISORDER }));
    }
    steps
}

const DISORDER: i64 = 10;

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn each_step_says_what_the_windows_say(
        spec in specs(Just(0)), origin in origins(), steps in prop::collection::vec(timed(3, 0..40), 0..40),
    ) {
        for parallelism in [1, 4] {
            check(parallelism, &spec, origin, &steps)?;
        }
    }

    #[test]
    fn late_rows_that_are_allowed_say_what_they_change(
        spec in specs(latenesses()), origin in origins(), steps in prop::collection::vec(timed(3, 0..40), 0..40),
    ) {
        for parallelism in [1, 4] {
            check(parallelism, &spec, origin, &steps)?;
        }
    }

    #[test]
    fn sessions_that_late_rows_open_again_fire_in_time(
        gap in 3..9i64, lateness in 10..40i64, optional: [bool; 2], steps in prop::collection::vec(awake(2, 0..40), 10..60),
    ) {
        let windows = Windows::Session { gap: millis(gap) };
        let roles = optional.map(|optional| if optional { Role::Optional } else { Role::Required });
        let join = WindowJoin { windows, lateness: millis(lateness), roles: roles.to_vec() };
        // Only the end of the test ends an input.
        let steps: Vec<Step> = steps.into_iter().filter(|step| !matches!(step, Step::End(_))).collect();
        check(1, &Spec { join, has_condition: false }, 0, &steps)?;
    }

    #[test]
    fn within_the_bound_on_disorder_the_order_of_arrival_does_not_matter(
        spec in specs(Just(0)),
        rows in prop::collection::vec(super::history::row(3, 0..40), 0..25),
        jitters in prop::array::uniform2(prop::collection::vec(0..DISORDER, 25)),
    ) {
        let mut results = Vec::new();
        for jitter in &jitters {
            let mut t = TestFlow::parallel(2, |flow| spec.build(flow));
            for step in disordered(&rows, jitter) {
                match step {
                    Step::Row { input, key, value, time } if input < spec.inputs() => {
                        t.send(NAMES[input], fact(RowKind::Insert, Row { key, value, stamp: time }, time));
                    }
                    Step::Watermark { input, at: time } if input < spec.inputs() => drop(t.say(NAMES[input], at(time))),
                    _ => {}
                }
            }
            t.end_all();
            prop_assert!(t.figures("join").accounts.iter().all(|account| account.late == 0));
            let out = taken::<Joined>(&mut t, "out");
            results.push(sorted(out.into_iter().map(|(_, row, time)| (row, time))));
        }
        prop_assert_eq!(&results[0], &results[1]);
    }

    #[test]
    fn when_time_has_passed_nothing_is_held(
        spec in specs(0..20i64), rows in prop::collection::vec(super::history::row(3, 0..40), 0..25),
    ) {
        let mut t = TestFlow::parallel(4, |flow| spec.build(flow));
        for step in &rows {
            let Step::Row { input, key, value, time } = *step else { continue };
            if input < spec.inputs() {
                t.send(NAMES[input], fact(RowKind::Insert, Row { key, value, stamp: time }, time));
            }
        }
        if spec.is_short() {
            for name in &NAMES[..spec.inputs()] {
                t.say(name, at(2_000));
            }
            prop_assert!(t.figures("join").state_rows.iter().all(|&rows| rows == 0));
        }
    }
}
