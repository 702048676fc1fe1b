//! Regular and N-way joins.

use flowjoin::{
    Append, Changelog, Clock, Flow, KeyedStream, MaybeOptional, Mode, Progress, Reason, RowKind, Stream, Ttl,
    Unmatched, millis, multi_join,
};
use flowjoin_testkit::oracle::{self, Event, ExpiringJoin, regular};
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{
    Fact, Frontier, NAMES, Row, Step, advance, at, check_accounts, fact, facts, row, say, sorted, taken, timed,
};

pub type Joined = Vec<Option<Row>>;

#[derive(Clone, Debug)]
struct Spec {
    optional: Vec<bool>,
    ttl: Vec<Option<(i64, Clock)>>,
}

impl Spec {
    fn stands_alone(&self, input: usize) -> bool {
        (0..self.optional.len()).all(|other| other == input || self.optional[other])
    }
}

type Input<M> = MaybeOptional<KeyedStream<Option<u8>, Row, M>>;

fn changes(flow: &Flow, spec: &Spec, index: usize) -> Input<Changelog> {
    input(facts(flow, NAMES[index]).as_changelog(|fact| (fact.kind, fact.row)), spec, index)
}

fn inserts(flow: &Flow, spec: &Spec, index: usize) -> Input<Append> {
    input(facts(flow, NAMES[index]).map(|fact| fact.row), spec, index)
}

fn input<M: Mode>(rows: Stream<Row, M>, spec: &Spec, index: usize) -> Input<M> {
    let keyed = rows.key_by(|row| row.key);
    let kept = match spec.ttl[index] {
        Some((ttl, clock)) => keyed.ttl(Ttl::For(millis(ttl), clock)),
        None => keyed.keep_forever(),
    };
    kept.optional_if(spec.optional[index])
}

macro_rules! join_of {
    ($input:ident, $flow:ident, $spec:ident; $($index:literal $row:ident),+) => {{
        let join = multi_join![$($input($flow, $spec, $index)),+].named("join").keep_forever();
        let ($($row,)+) = join.late();
        $($row.sink_to(TestSink::new(format!("late {}", $index)));)+
        let (joined, ($($row,)+)) = join.select_with_unmatched(|$($row),+| -> Joined { vec![$($row.cloned()),+] });
        $($row.sink_to(TestSink::new(format!("unmatched {}", $index)));)+
        joined.sink_to(TestSink::new("out"));
    }};
}

fn build(flow: &Flow, spec: &Spec) {
    match spec.optional.len() {
        2 => join_of!(inserts, flow, spec; 0 a, 1 b),
        3 => join_of!(inserts, flow, spec; 0 a, 1 b, 2 c),
        4 => join_of!(inserts, flow, spec; 0 a, 1 b, 2 c, 3 d),
        5 => join_of!(inserts, flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e),
        inputs => unreachable!("{inputs} inputs are not tried"),
    }
}

fn build_of_changes(flow: &Flow, spec: &Spec) {
    match spec.optional.len() {
        2 => join_of!(changes, flow, spec; 0 a, 1 b),
        3 => join_of!(changes, flow, spec; 0 a, 1 b, 2 c),
        4 => join_of!(changes, flow, spec; 0 a, 1 b, 2 c, 3 d),
        5 => join_of!(changes, flow, spec; 0 a, 1 b, 2 c, 3 d, 4 e),
        inputs => unreachable!("{inputs} inputs are not tried"),
    }
}

fn flow(parallelism: usize, spec: &Spec) -> TestFlow {
    TestFlow::parallel(parallelism, |flow| build(flow, spec))
}

// Two inputs about as often as all other numbers together.
fn shapes() -> impl Strategy<Value = Vec<bool>> {
    prop_oneof![Just(2), 3..6usize].prop_flat_map(|inputs| prop::collection::vec(any::<bool>(), inputs))
}

fn forever() -> impl Strategy<Value = Spec> {
    shapes().prop_map(|optional| Spec { ttl: vec![None; optional.len()], optional })
}

fn expiring() -> impl Strategy<Value = Spec> {
    let clock = prop_oneof![Just(Clock::Processing), Just(Clock::Event)];
    shapes().prop_flat_map(move |optional| {
        let ttl = prop::option::weighted(0.8, (1..12i64, clock.clone()));
        let ttls = prop::collection::vec(ttl, optional.len());
        ttls.prop_map(move |ttl| Spec { optional: optional.clone(), ttl })
    })
}

fn keys(rows: &[Vec<Row>]) -> Vec<Vec<Option<u8>>> {
    rows.iter().map(|rows| rows.iter().map(|row| row.key).collect()).collect()
}

fn named(rows: &[Vec<Row>], combination: &[Option<usize>]) -> Joined {
    combination.iter().enumerate().map(|(input, row)| row.map(|row| rows[input][row].clone())).collect()
}

/// What the join of these rows is.
pub fn table(rows: &[Vec<Row>], optional: &[bool]) -> Vec<Joined> {
    sorted(regular(&keys(rows), optional).iter().map(|combination| named(rows, combination)))
}

/// Takes what came out and checks that it is a legal continuation; comes back with it.
fn heard(t: &mut TestFlow, standing: &mut ChangelogChecker<Joined>) -> Result<Vec<(bool, Joined)>, TestCaseError> {
    let changes: Vec<(RowKind, Joined, _)> = taken(t, "out");
    for (kind, row, _) in &changes {
        standing.apply(*kind, row.clone()).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
    }
    Ok(changes.into_iter().map(|(kind, row, _)| (kind.adds(), row)).collect())
}

/// What has come in so far, by definition.
struct Model {
    rows: Vec<Vec<Row>>,
    late: Vec<Vec<Row>>,
    sent: Vec<u64>,
    frontier: Frontier,
}

impl Model {
    fn new(inputs: usize) -> Model {
        let none = vec![Vec::new(); inputs];
        Model { rows: none.clone(), late: none, sent: vec![0; inputs], frontier: Frontier::new(inputs) }
    }

    fn arrive(&mut self, input: usize, row: Row, time: i64) {
        self.sent[input] += 1;
        let into = if time < self.frontier.at() { &mut self.late } else { &mut self.rows };
        into[input].push(row);
    }
}

// Rows that come one after the other on one input are one batch, if batches are asked for.
fn play_forever(
    t: &mut TestFlow,
    steps: &[Step],
    batched: bool,
) -> Result<(Model, ChangelogChecker<Joined>), TestCaseError> {
    let mut model = Model::new(t.figures("join").accounts.len());
    let mut standing = ChangelogChecker::new();
    let mut batch: Vec<Fact> = Vec::new();
    let mut of = 0;
    for step in steps {
        let joins_batch = batched && matches!(step, Step::Row { input, .. } if *input == of);
        if !joins_batch && !batch.is_empty() {
            t.send_all(NAMES[of], std::mem::take(&mut batch));
            heard(t, &mut standing)?;
        }
        match *step {
            Step::Row { input, key, value, time } if !model.frontier.has_ended(input) => {
                let row = Row { key, value, stamp: 0 };
                model.frontier.wake(input);
                model.arrive(input, row.clone(), time);
                of = input;
                batch.push(fact(RowKind::Insert, row, time));
            }
            Step::Watermark { input, at: time } => say(t, &mut model.frontier, input, at(time)),
            Step::Idle(input) => say(t, &mut model.frontier, input, Progress::Idle),
            Step::Active(input) => say(t, &mut model.frontier, input, Progress::Active),
            Step::End(input) => say(t, &mut model.frontier, input, Progress::End),
            Step::Row { .. } | Step::Retract { .. } | Step::Clock(_) => {}
        }
    }
    t.send_all(NAMES[of], batch);
    t.end_all();
    heard(t, &mut standing)?;
    Ok((model, standing))
}

fn check_forever(parallelism: usize, spec: &Spec, steps: &[Step], batched: bool) -> Result<(), TestCaseError> {
    let mut t = flow(parallelism, spec);
    let (model, standing) = play_forever(&mut t, steps, batched)?;
    prop_assert_eq!(standing.table(), table(&model.rows, &spec.optional));
    let unmatched = oracle::unmatched(&keys(&model.rows), &spec.optional);
    let accounts = t.figures("join").accounts;
    for (input, account) in accounts.iter().enumerate() {
        let came = taken::<Unmatched<Row>>(&mut t, &format!("unmatched {input}"));
        let came = sorted(came.into_iter().map(|(_, unmatched, _)| (unmatched.row, unmatched.reason)));
        // Where a row stands alone it has come out with gaps.
        let alone = spec.stands_alone(input);
        let rows = unmatched[input].iter().filter(|_| !alone).map(|&place| model.rows[input][place].clone());
        let reason = |row: &Row| if row.key.is_none() { Reason::NullKey } else { Reason::EndOfInput };
        prop_assert_eq!(came, sorted(rows.map(|row| (row.clone(), reason(&row)))));
        let late = taken::<flowjoin::Late<Row>>(&mut t, &format!("late {input}"));
        prop_assert_eq!(sorted(late.into_iter().map(|(_, late, _)| late.row)), sorted(model.late[input].clone()));
        prop_assert!(account.is_balanced(), "{:?}", account);
        let nulls = model.rows[input].iter().filter(|row| row.key.is_none()).count() as u64;
        let buckets = (account.rows, account.late, account.null_key, account.open);
        prop_assert_eq!(buckets, (model.sent[input], model.late[input].len() as u64, nulls, 0));
        prop_assert_eq!(account.unmatched, unmatched[input].len() as u64 - nulls);
    }
    Ok(())
}

/// A join whose rows leave, and its history as the definition reads it.
struct Expiring<'a> {
    spec: &'a Spec,
    join: ExpiringJoin,
    history: Vec<Event<u8>>,
    rows: Vec<Vec<(Row, i64)>>,
    frontier: Frontier,
    now: i64,
}

impl Expiring<'_> {
    fn new(spec: &Spec) -> Expiring<'_> {
        let inputs = spec.optional.len();
        let ttl = spec.ttl.iter().map(|ttl| ttl.map(|(ttl, _)| millis(ttl))).collect();
        let join = ExpiringJoin { optional: spec.optional.clone(), ttl };
        let rows = vec![Vec::new(); inputs];
        Expiring { spec, join, history: Vec::new(), rows, frontier: Frontier::new(inputs), now: 0 }
    }

    fn arrive(&mut self, input: usize, row: Row, time: i64) {
        let clock = self.spec.ttl[input].map(|(_, clock)| clock);
        if clock == Some(Clock::Processing) {
            self.renew_copies(input, &row, time);
        }
        let written = if clock == Some(Clock::Event) { time } else { self.now };
        self.history.push(Event::Arrive { input, key: row.key, row: self.rows[input].len(), written });
        self.rows[input].push((row, time));
    }

    // Equal rows of the same time, among the last eight of their key, are written again.
    fn renew_copies(&mut self, input: usize, row: &Row, time: i64) {
        let live = &self.join.expect(&self.history).live[input];
        let of_key = live.iter().rev().filter(|&&id| row.key.is_some() && self.rows[input][id].0.key == row.key);
        let copies: Vec<usize> =
            of_key.take(8).copied().filter(|&id| self.rows[input][id] == (row.clone(), time)).collect();
        let written = self.now;
        self.history.extend(copies.into_iter().map(|row| Event::Write { input, row, written }));
    }

    fn clock(&mut self, clock: Clock, now: i64) {
        let by_clock = |input: &usize| self.spec.ttl[*input].is_some_and(|(_, of)| of == clock);
        let inputs: Vec<usize> = (0..self.rows.len()).filter(by_clock).collect();
        self.history.extend(inputs.into_iter().map(|input| Event::ClockOf { input, now }));
    }

    fn hear(&mut self, t: &mut TestFlow, input: usize, progress: Progress) {
        say(t, &mut self.frontier, input, progress);
        self.clock(Clock::Event, self.frontier.at());
    }
}

fn check_expiring(parallelism: usize, spec: &Spec, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = flow(parallelism, spec);
    let mut model = Expiring::new(spec);
    let mut standing = ChangelogChecker::new();
    let mut heard_steps = Vec::new();
    for step in steps {
        if (0..spec.optional.len()).all(|input| model.frontier.has_ended(input)) {
            break;
        }
        let from = model.history.len();
        match *step {
            Step::Row { input, key, value, time } => {
                let row = Row { key, value, stamp: 0 };
                if model.frontier.has_ended(input) {
                    continue;
                }
                model.frontier.wake(input);
                if time >= model.frontier.at() {
                    model.arrive(input, row.clone(), time);
                }
                t.send(NAMES[input], fact(RowKind::Insert, row, time));
            }
            Step::Watermark { input, at: time } => model.hear(&mut t, input, at(time)),
            Step::Idle(input) => model.hear(&mut t, input, Progress::Idle),
            Step::Active(input) => model.hear(&mut t, input, Progress::Active),
            Step::End(input) => model.hear(&mut t, input, Progress::End),
            Step::Clock(by) => {
                model.now = advance(&mut t, by);
                model.clock(Clock::Processing, model.now);
            }
            Step::Retract { .. } => {}
        }
        heard_steps.push((from..model.history.len(), heard(&mut t, &mut standing)?, t.figures("join").state_rows));
    }
    let told = model.join.expect(&model.history);
    let rows: Vec<Vec<Row>> = model.rows.iter().map(|rows| rows.iter().map(|(row, _)| row.clone()).collect()).collect();
    for (events, came, _) in &heard_steps {
        let said = told.said.iter().filter(|said| events.contains(&said.at));
        let said = sorted(said.map(|said| (said.kind.adds(), named(&rows, &said.combination))));
        prop_assert_eq!(sorted(came.clone()), said);
    }
    // At the end of all inputs the rows without a partner leave.
    let goes_on = (0..rows.len()).any(|input| !model.frontier.has_ended(input));
    if let Some((_, _, held)) = heard_steps.last().filter(|_| goes_on) {
        let live = |input: usize| told.live[input].iter().filter(|&&row| rows[input][row].key.is_some()).count() as u64;
        prop_assert_eq!(held.clone(), (0..rows.len()).map(live).collect::<Vec<_>>());
    }
    for (input, rows) in rows.iter().enumerate() {
        let came = taken::<Unmatched<Row>>(&mut t, &format!("unmatched {input}"));
        let came = came.into_iter().filter(|(_, it, _)| it.reason == Reason::Expired).map(|(_, it, _)| it.row);
        let expired = told.expired.iter().filter(|gone| gone.input == input && !spec.stands_alone(input));
        prop_assert_eq!(sorted(came), sorted(expired.map(|gone| rows[gone.row].clone())));
    }
    check_accounts(&t, "join")
}

// A bag of rows an input, some of which are taken back again.
fn check_retractions(parallelism: usize, spec: &Spec, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| build_of_changes(flow, spec));
    let mut bags: Vec<Vec<Row>> = vec![Vec::new(); spec.optional.len()];
    let mut orphans = vec![0; spec.optional.len()];
    let mut standing = ChangelogChecker::new();
    for step in steps {
        match *step {
            Step::Row { input, key, value, time } => {
                let row = Row { key, value, stamp: 0 };
                bags[input].push(row.clone());
                let kind = if value == 0 { RowKind::Insert } else { RowKind::UpdateAfter };
                t.send(NAMES[input], fact(kind, row, time));
            }
            Step::Retract { input, place } => {
                let is_held = place < bags[input].len();
                let never_seen = Row { key: Some(0), value: 9, stamp: 0 };
                let row = if is_held { bags[input].remove(place) } else { never_seen };
                orphans[input] += u64::from(!is_held);
                let kind = if place % 2 == 0 { RowKind::Delete } else { RowKind::UpdateBefore };
                t.send(NAMES[input], fact(kind, row, 0));
            }
            _ => continue,
        }
        heard(&mut t, &mut standing)?;
        prop_assert_eq!(standing.table(), table(&bags, &spec.optional));
    }
    let figures = t.figures("join");
    // A row with a null key is kept where it stands alone.
    let held = |(input, bag): (usize, &Vec<Row>)| {
        bag.iter().filter(|row| row.key.is_some() || spec.stands_alone(input)).count() as u64
    };
    prop_assert_eq!(figures.state_rows, bags.iter().enumerate().map(held).collect::<Vec<_>>());
    prop_assert_eq!(figures.accounts.iter().map(|account| account.orphan).collect::<Vec<_>>(), orphans);
    check_accounts(&t, "join")
}

fn with_clock(inputs: usize) -> impl Strategy<Value = Step> {
    prop_oneof![4 => timed(inputs, 0..20), 1 => (0..6i64).prop_map(Step::Clock)]
}

// One key: many rows of the last input come and go, beside few of the others.
fn of_a_hot_key(inputs: usize) -> impl Strategy<Value = Step> {
    let row = move |input: std::ops::Range<usize>| {
        let row = (input, 0..40u8, 0..20i64);
        row.prop_map(|(input, value, time)| Step::Row { input, key: Some(0), value, time })
    };
    prop_oneof![
        12 => row(inputs - 1..inputs),
        1 => row(0..inputs - 1),
        3 => (0..3i64).prop_map(Step::Clock),
        2 => (0..inputs, 0..20i64).prop_map(|(input, at)| Step::Watermark { input, at }),
    ]
}

fn with_retractions(inputs: usize) -> impl Strategy<Value = Step> {
    prop_oneof![3 => row(inputs, 0..9), 1 => (0..inputs, 0..6usize).prop_map(|(input, place)| Step::Retract { input, place })]
}

fn steps_for<S: Strategy<Value = Step>>(
    spec: impl Strategy<Value = Spec>,
    step: impl Fn(usize) -> S,
    steps: usize,
) -> impl Strategy<Value = (Spec, Vec<Step>)> {
    spec.prop_flat_map(move |spec| {
        let steps = prop::collection::vec(step(spec.optional.len()), 0..steps);
        (Just(spec), steps)
    })
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn what_stands_in_the_end_is_the_join_of_all_rows(
        (spec, steps) in steps_for(forever(), |inputs| timed(inputs, 0..40), 40),
    ) {
        for (parallelism, batched) in [(1, false), (4, false), (1, true), (4, true)] {
            check_forever(parallelism, &spec, &steps, batched)?;
        }
    }

    #[test]
    fn with_a_ttl_each_step_says_what_it_must(
        (spec, steps) in steps_for(expiring(), with_clock, 40),
    ) {
        for parallelism in [1, 4] {
            check_expiring(parallelism, &spec, &steps)?;
        }
    }

    #[test]
    fn long_lists_come_and_go_as_short_ones_do(
        (spec, steps) in steps_for(expiring(), of_a_hot_key, 100),
    ) {
        check_expiring(1, &spec, &steps)?;
    }

    #[test]
    fn rows_that_are_taken_back_leave_the_join_of_what_is_held(
        (spec, steps) in steps_for(forever(), with_retractions, 30),
    ) {
        for parallelism in [1, 4] {
            check_retractions(parallelism, &spec, &steps)?;
        }
    }

    #[test]
    fn it_does_not_matter_which_partition_a_row_comes_from(
        (spec, steps) in steps_for(forever(), |inputs| row(inputs, 0..40), 30), partitions in 1..5usize,
    ) {
        let of_all: Vec<(&str, usize)> = NAMES.iter().map(|&name| (name, partitions)).collect();
        let mut t = TestFlow::partitioned(3, &of_all, |flow| build(flow, &spec));
        let mut rows = vec![Vec::new(); spec.optional.len()];
        let mut standing = ChangelogChecker::new();
        for (place, step) in steps.iter().enumerate() {
            let Step::Row { input, key, value, time } = *step else { continue };
            let row = Row { key, value, stamp: 0 };
            rows[input].push(row.clone());
            t.send_to(NAMES[input], place * 7 % partitions, fact(RowKind::Insert, row, time));
            heard(&mut t, &mut standing)?;
        }
        t.end_all();
        heard(&mut t, &mut standing)?;
        prop_assert_eq!(standing.table(), table(&rows, &spec.optional));
    }
}
