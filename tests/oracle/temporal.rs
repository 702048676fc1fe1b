//! Temporal joins.

use flowjoin::io::TableChange;
use flowjoin::{
    Event, EventTime, Flow, Keyed, Late, Progress, Reason, RowKind, Span, Table, TimeError, Unmatched, Watermark,
    Watermarks, millis,
};
use flowjoin_testkit::oracle::{AsOf, Temporal, Version};
use flowjoin_testkit::{TestFlow, TestSink, TestSource};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::config;
use super::history::{Fact, Frontier, NAMES, Row, at, check_accounts, fact, facts, row, say, sorted, taken};
use super::history::{Step, timed};

type Pair = (Row, Option<Row>);

/// A row of the table, from a time on.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Standing {
    time: EventTime,
    row: Row,
}

impl Event for Standing {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(self.time)
    }

    fn watermarks() -> Watermarks {
        Fact::watermarks()
    }
}

impl Keyed for Standing {
    type Key = Option<u8>;

    fn key(&self) -> Option<u8> {
        self.row.key
    }
}

/// What the table is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Changes,
    // The rows that stand are read too.
    ShownChanges,
    Facts,
}

#[derive(Clone, Debug)]
struct Spec {
    optional: bool,
    keep: Option<Span>,
    correct: Option<Span>,
    made: Made,
}

impl Spec {
    fn table(&self, flow: &Flow) -> Table<Option<u8>, Standing> {
        let source = TestSource::new(NAMES[1]);
        match self.made {
            Made::Facts => flow.stream::<Standing>(source).latest_by_key(),
            Made::Changes | Made::ShownChanges => flow.table::<Standing>(source),
        }
        .named("table")
    }

    fn build(&self, flow: &Flow) {
        let probes = facts(flow, NAMES[0]).map(|fact| fact.row).key_by(|row| row.key);
        let table = self.table(flow);
        if self.made == Made::ShownChanges {
            table.sink_to(TestSink::new("shown"));
        }
        // The type of the join depends on whether it corrects, and that of a version on whether there may be none.
        macro_rules! join {
            ($table:expr, $version:ident: $Version:ty, $seen:expr) => {{
                let mut join = probes.temporal_join($table).named("join");
                if let Some(keep) = self.keep {
                    join = join.keep_versions(keep);
                }
                join.late().sink_to(TestSink::new("late"));
                let select = |probe: &Row, $version: $Version| -> Pair { (probe.clone(), $seen) };
                let alone = match self.correct {
                    Some(correct) => {
                        let (out, alone) = join.correct_late(correct).select_with_unmatched(select);
                        out.sink_to(TestSink::new("out"));
                        alone
                    }
                    None => {
                        let (out, alone) = join.select_with_unmatched(select);
                        out.sink_to(TestSink::new("out"));
                        alone
                    }
                };
                alone.sink_to(TestSink::new("alone"));
            }};
        }
        match self.optional {
            true => join!(table.optional(), it: Option<&Standing>, it.map(|version| version.row.clone())),
            false => join!(table, it: &Standing, Some(it.row.clone())),
        }
    }

    // No probe before this is looked up any more.
    fn horizon(&self, reached: i64) -> i64 {
        match self.correct {
            Some(span) if reached < i64::MAX => reached.saturating_sub(span.as_millis()),
            _ => reached,
        }
    }
}

fn spans() -> impl Strategy<Value = Option<Span>> {
    prop_oneof![3 => Just(None), 3 => (1..30i64).prop_map(|span| Some(millis(span))), 1 => Just(Some(Span::MAX))]
}

fn specs() -> impl Strategy<Value = Spec> {
    let made = prop_oneof![2 => Just(Made::Changes), 1 => Just(Made::ShownChanges), 1 => Just(Made::Facts)];
    (any::<bool>(), spans(), spans(), made).prop_map(|(optional, keep, correct, made)| Spec {
        optional,
        keep,
        correct,
        made,
    })
}

// All times of a history lie in 40 ms from here.
fn origins() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0i64), 2 => Just(-20), 1 => Just(i64::MIN), 1 => Just(i64::MAX - 41)]
}

#[derive(Clone, Debug)]
enum Act {
    Of(Step),
    Delete { key: u8, time: i64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let delete = (0..3u8, 0..40i64).prop_map(|(key, time)| Act::Delete { key, time });
    prop::collection::vec(prop_oneof![12 => timed(2, 0..40).prop_map(Act::Of), 1 => delete], 0..50)
}

struct Probe {
    row: Row,
    // What it was told, once it was.
    found: Option<AsOf>,
    kept: bool,
}

/// What has come in so far, by definition.
struct Model<'a> {
    spec: &'a Spec,
    probes: Vec<Probe>,
    versions: Vec<Version<u8>>,
    rows: Vec<Row>,
    late: Vec<Row>,
    late_versions: u64,
    nulls: u64,
    null_versions: u64,
    frontier: Frontier,
    sent: Watermark,
}

impl<'a> Model<'a> {
    fn new(spec: &'a Spec) -> Model<'a> {
        let (probes, versions, rows, late) = Default::default();
        let (frontier, sent) = (Frontier::new(2), Watermark::NONE);
        Model { spec, probes, versions, rows, late, late_versions: 0, nulls: 0, null_versions: 0, frontier, sent }
    }

    fn find(&self, row: &Row) -> AsOf {
        let temporal = Temporal { keep: self.spec.keep };
        temporal.at(&self.versions, &row.key, EventTime::from_millis(row.stamp))
    }

    fn is_before(&self, stamp: i64, horizon: i64) -> bool {
        stamp < horizon || self.frontier.at() == i64::MAX
    }

    fn take_version(&mut self, version: Version<u8>, row: Row) {
        if version.key.is_none() {
            self.null_versions += 1;
            return;
        }
        self.late_versions += u64::from(version.time.as_millis() < self.frontier.at());
        self.versions.push(version);
        self.rows.push(row);
        // What is kept is told anew, as by the versions of now.
        for place in 0..self.probes.len() {
            if self.probes[place].kept {
                self.probes[place].found = Some(self.find(&self.probes[place].row));
            }
        }
    }

    // Tells what has waited for the watermark, and lets go of what is corrected no more.
    fn settle(&mut self) {
        let horizon = self.spec.horizon(self.frontier.at());
        for place in 0..self.probes.len() {
            let stamp = self.probes[place].row.stamp;
            if self.probes[place].found.is_none() && self.is_before(stamp, self.frontier.at()) {
                self.probes[place].found = Some(self.find(&self.probes[place].row));
                self.probes[place].kept = self.spec.correct.is_some();
            }
            self.probes[place].kept &= !self.is_before(stamp, horizon);
        }
    }

    // What stands in the result, and who was left alone for good.
    fn result(&self) -> (Vec<Pair>, Vec<(Row, Reason)>) {
        let (mut pairs, mut alone) = (Vec::new(), Vec::new());
        for Probe { row, found, kept } in &self.probes {
            let reason = match found {
                None => continue,
                Some(AsOf::Version(place)) => {
                    pairs.push((row.clone(), Some(self.rows[*place].clone())));
                    continue;
                }
                Some(AsOf::Deleted) => Reason::Deleted,
                Some(AsOf::NoVersion) => Reason::NoVersion,
                Some(AsOf::NeverSeen) => Reason::NeverSeen,
            };
            match self.spec.optional {
                true => pairs.push((row.clone(), None)),
                false if !kept => alone.push((row.clone(), if row.key.is_none() { Reason::NullKey } else { reason })),
                false => {}
            }
        }
        (sorted(pairs), alone)
    }

    // The versions that some time at or after the horizon may need.
    fn versions_held(&self) -> usize {
        let horizon = EventTime::from_millis(self.spec.horizon(self.frontier.at()));
        let temporal = Temporal { keep: self.spec.keep };
        let is_last = |(place, version): &(usize, &Version<u8>)| {
            let same = |other: &Version<u8>| (other.key, other.time) == (version.key, version.time);
            !self.versions[place + 1..].iter().any(same)
        };
        let is_needed = |(_, version): &(usize, &Version<u8>)| {
            let newer = |other: &&Version<u8>| other.key == version.key && other.time > version.time;
            let next = self.versions.iter().filter(newer).map(|other| other.time).min();
            next.is_none_or(|next| next > horizon) && (version.time > horizon || temporal.holds(version.time, horizon))
        };
        self.versions.iter().enumerate().filter(is_last).filter(is_needed).count()
    }

    fn held(&self) -> [u64; 2] {
        let probes = self.probes.iter().filter(|probe| probe.found.is_none() || probe.kept).count();
        [probes as u64, self.versions_held() as u64]
    }
}

#[derive(Default)]
struct Came {
    standing: Vec<Pair>,
    alone: Vec<(Row, Reason)>,
}

fn hear(t: &mut TestFlow, model: &mut Model<'_>, came: &mut Came) -> Result<(), TestCaseError> {
    let mut newest = std::collections::BTreeMap::new();
    for (kind, pair, time) in taken::<Pair>(t, "out") {
        prop_assert_eq!(time.as_millis(), pair.0.stamp, "a result has the time of its probe");
        prop_assert!(!model.sent.is_late(time), "{:?} came behind {}", pair, model.sent);
        if kind.adds() {
            if model.spec.correct.is_none() {
                prop_assert_eq!(kind, RowKind::Insert);
                let before = newest.insert(pair.0.key, time);
                prop_assert!(pair.0.key.is_none() || before.is_none_or(|before| before <= time), "out of order");
            }
            came.standing.push(pair);
        } else {
            let place = came.standing.iter().position(|standing| *standing == pair);
            prop_assert!(place.is_some(), "{:?} is taken back and does not stand", pair);
            came.standing.swap_remove(place.unwrap_or_default());
        }
    }
    for (_, unmatched, time) in taken::<Unmatched<Row>>(t, "alone") {
        prop_assert_eq!(time.as_millis(), unmatched.row.stamp);
        prop_assert!(!model.sent.is_late(time), "{:?} came behind {}", unmatched, model.sent);
        came.alone.push((unmatched.row, unmatched.reason));
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
    let (pairs, alone) = model.result();
    prop_assert_eq!(sorted(came.standing.clone()), pairs);
    // A key of which all versions have ended is forgotten, and then seems never to have been seen.
    let told = |(row, reason): &(Row, Reason)| match reason {
        Reason::NeverSeen if model.spec.keep.is_some() => (row.clone(), Reason::NoVersion),
        _ => (row.clone(), *reason),
    };
    prop_assert_eq!(sorted(came.alone.iter().map(told)), sorted(alone.iter().map(told)));
    let figures = t.figures("join");
    prop_assert_eq!(figures.state_rows, model.held());
    // The watermark is held back by what may be corrected, and by nothing else.
    let kept = model.probes.iter().filter(|probe| probe.kept).map(|probe| probe.row.stamp);
    let expected = kept.min().unwrap_or(i64::MAX).min(model.frontier.at());
    prop_assert_eq!(model.sent.time().as_millis(), expected);
    let [probes, versions] = &figures.accounts[..] else { unreachable!("a join of two inputs") };
    prop_assert_eq!(probes.late, model.late.len() as u64);
    prop_assert_eq!((versions.late, versions.null_key), (model.late_versions, model.null_versions));
    prop_assert_eq!(versions.rows - versions.null_key, model.versions.len() as u64);
    if model.spec.keep.is_none() && !model.spec.optional {
        let of = |reason| came.alone.iter().filter(|(_, it)| *it == reason).count() as u64;
        prop_assert_eq!((probes.never_seen, probes.no_version), (of(Reason::NeverSeen), of(Reason::NoVersion)));
        prop_assert_eq!(probes.unmatched, came.alone.len() as u64 - of(Reason::NullKey));
    }
    check_accounts(t, "join")?;
    check_accounts(t, "table")
}

// Sends a row to the join and to the model.
fn send(t: &mut TestFlow, model: &mut Model<'_>, input: usize, row: Row) {
    let time = EventTime::from_millis(row.stamp);
    model.frontier.wake(input);
    if input == 0 {
        t.send(NAMES[0], fact(RowKind::Insert, row.clone(), row.stamp));
        if row.stamp < model.frontier.at() {
            model.late.push(row);
        } else {
            // For a null there is nothing to wait for.
            let found = row.key.is_none().then_some(AsOf::NeverSeen);
            model.nulls += u64::from(row.key.is_none());
            model.probes.push(Probe { row, found, kept: false });
        }
        return;
    }
    let standing = Standing { time, row: row.clone() };
    match model.spec.made {
        Made::Facts => t.send(NAMES[1], standing),
        Made::Changes | Made::ShownChanges => t.put(NAMES[1], standing),
    };
    model.take_version(Version { key: row.key, time, deletes: false }, row);
}

fn delete(t: &mut TestFlow, model: &mut Model<'_>, key: u8, stamp: i64) {
    let time = EventTime::from_millis(stamp);
    model.frontier.wake(1);
    t.change_all(NAMES[1], vec![TableChange::<Standing>::Delete { key: Some(key), time: Some(time), row: None }]);
    let row = Row { key: Some(key), value: 0, stamp };
    model.take_version(Version { key: Some(key), time, deletes: true }, row);
}

fn check(parallelism: usize, spec: &Spec, origin: i64, acts: &[Act]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| spec.build(flow));
    let mut model = Model::new(spec);
    let mut came = Came::default();
    for act in acts {
        match *act {
            Act::Of(Step::Row { input, key, value, time }) if !model.frontier.has_ended(input) => {
                send(&mut t, &mut model, input, Row { key, value, stamp: origin + time });
            }
            Act::Delete { key, time } if !model.frontier.has_ended(1) && spec.made != Made::Facts => {
                delete(&mut t, &mut model, key, origin + time);
            }
            Act::Of(Step::Watermark { input, at: time }) => {
                say(&mut t, &mut model.frontier, input, at(origin + time));
            }
            Act::Of(Step::Idle(input)) => say(&mut t, &mut model.frontier, input, Progress::Idle),
            Act::Of(Step::Active(input)) => say(&mut t, &mut model.frontier, input, Progress::Active),
            Act::Of(Step::End(input)) => say(&mut t, &mut model.frontier, input, Progress::End),
            Act::Of(_) | Act::Delete { .. } => continue,
        }
        model.settle();
        hear(&mut t, &mut model, &mut came)?;
        check_step(&t, &model, &came)?;
    }
    for input in 0..2 {
        say(&mut t, &mut model.frontier, input, Progress::End);
    }
    model.settle();
    hear(&mut t, &mut model, &mut came)?;
    check_step(&t, &model, &came)?;
    let late = taken::<Late<Row>>(&mut t, "late");
    prop_assert_eq!(sorted(late.into_iter().map(|(_, late, _)| late.row)), sorted(model.late.clone()));
    let accounts = t.figures("join").accounts;
    prop_assert_eq!((accounts[0].open, accounts[1].open, accounts[0].null_key), (0, 0, model.nulls));
    Ok(())
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

// Of two versions of one time, the one that comes later counts; so only one of them is sent.
fn without_ties(rows: Vec<Step>) -> Vec<Step> {
    let mut seen = std::collections::BTreeSet::new();
    let mut is_new = |step: &Step| match step {
        Step::Row { input: 1, key, time, .. } => seen.insert((*key, *time)),
        _ => true,
    };
    rows.into_iter().filter(|step| is_new(step)).collect()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn each_step_says_what_the_times_say(spec in specs(), origin in origins(), acts in acts()) {
        for parallelism in [1, 4] {
            check(parallelism, &spec, origin, &acts)?;
        }
    }

    #[test]
    fn within_the_bound_on_disorder_the_order_of_arrival_does_not_matter(
        spec in specs(),
        rows in prop::collection::vec(row(2, 0..40), 0..25),
        jitters in prop::array::uniform2(prop::collection::vec(0..DISORDER, 25)),
    ) {
        let rows = without_ties(rows);
        let mut results = Vec::new();
        for jitter in &jitters {
            let mut t = TestFlow::parallel(2, |flow| spec.build(flow));
            let mut model = Model::new(&spec);
            for step in disordered(&rows, jitter) {
                match step {
                    Step::Row { input, key, value, time } => {
                        send(&mut t, &mut model, input, Row { key, value, stamp: time });
                    }
                    Step::Watermark { input, at: time } => drop(t.say(NAMES[input], at(time))),
                    _ => {}
                }
            }
            t.end_all();
            prop_assert!(t.figures("join").accounts.iter().all(|account| account.late == 0));
            let told = taken::<Pair>(&mut t, "out");
            prop_assert!(told.iter().all(|(kind, ..)| *kind == RowKind::Insert));
            results.push(sorted(told.into_iter().map(|(_, pair, _)| pair)));
        }
        prop_assert_eq!(&results[0], &results[1]);
    }

    // Whether keys are quiet or not.
    #[test]
    fn when_time_has_passed_one_version_a_key_is_held(
        spec in specs(), rows in prop::collection::vec(row(2, 0..40), 0..40),
    ) {
        let spec = Spec { correct: spec.correct.filter(|span| *span < millis(1_000)), ..spec };
        let mut t = TestFlow::parallel(4, |flow| spec.build(flow));
        let mut model = Model::new(&spec);
        for step in &rows {
            let Step::Row { input, key, value, time } = *step else { continue };
            send(&mut t, &mut model, input, Row { key, value, stamp: time });
        }
        for name in &NAMES[..2] {
            t.say(name, at(2_000));
        }
        let keys: std::collections::BTreeSet<_> = model.versions.iter().map(|version| version.key).collect();
        let ended = spec.keep.is_some_and(|keep| keep < millis(1_000));
        prop_assert_eq!(t.figures("join").state_rows, [0, if ended { 0 } else { keys.len() as u64 }]);
        let sent = t.take_progress("out").pop();
        prop_assert_eq!(sent, Some(Progress::At(Watermark::at(EventTime::from_millis(2_000)))));
    }
}
