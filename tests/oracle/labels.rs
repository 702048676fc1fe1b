//! The windows that results of window joins say, where rows come late and results are taken back.
//!
//! By the rule: a result says the window as it is when the result comes out, keeps it as long as it stands, and is taken
//! back with it.

use std::collections::BTreeMap;

use flowjoin::api::{Window, multi_join};
use flowjoin::{EventTime, Flow, KeyedStream, MaybeOptional, Progress, RowKind, Watermark, millis};
use flowjoin_testkit::oracle::{Role, WindowJoin, WindowRow, Windows};
use flowjoin_testkit::{TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{Frontier, NAMES, Row, Step, at, awake, fact, facts, say, sorted, taken};

type Joined = Vec<Option<Row>>;
/// The first and the last time of a window, and a result of it.
type Said = ((i64, i64), Joined);

#[derive(Clone, Debug)]
struct Spec {
    join: WindowJoin,
    has_conditions: bool,
}

fn said(window: Window, rows: &[Option<&Row>]) -> Said {
    let window = (window.start().as_millis(), window.last().as_millis());
    (window, rows.iter().map(|row| row.cloned()).collect())
}

// Between the second input and the first.
fn holds(one: Option<&Row>, other: &Row) -> bool {
    one.is_some_and(|one| one.value <= other.value)
}

// A row of the third input can lose a match when a row of the second one comes, so that its gap is told again.
fn holds_third(one: Option<&Row>, two: Option<&Row>, three: &Row) -> bool {
    match (one, two) {
        (Some(one), None) => one.value >= three.value,
        (_, Some(two)) => two.value < three.value,
        (None, None) => false,
    }
}

impl Spec {
    fn build(&self, flow: &Flow) {
        let keyed = |index: usize| -> KeyedStream<Option<u8>, Row> {
            facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key)
        };
        let input =
            |index: usize| -> MaybeOptional<_> { keyed(index).optional_if(self.join.roles[index] == Role::Optional) };
        let lateness = self.join.lateness;
        let out = TestSink::new("out");
        macro_rules! finish {
            ($join:expr, $($row:pat_param),+ => $rows:expr) => {
                match self.join.windows {
                    Windows::Every { size, slide, offset } => $join.sliding(size, slide).offset(offset),
                    Windows::Session { gap } => $join.session(gap),
                }
                .allowed_lateness(lateness)
                .select_with_window(|window, $($row),+| said(window, &$rows))
                .sink_to(out)
            };
        }
        match &self.join.roles[..] {
            [_, Role::NotExists] if self.has_conditions => {
                let join = keyed(0).where_not_exists(keyed(1)).on(|a, b| holds(Some(a), b));
                finish!(join, a, () => [Some(a), None])
            }
            [_, Role::NotExists] => finish!(keyed(0).where_not_exists(keyed(1)), a, () => [Some(a), None]),
            [_, _] if self.has_conditions => finish!(input(0).window_join(input(1)).on(holds), a, b => [a, b]),
            [_, _] => finish!(input(0).window_join(input(1)), a, b => [a, b]),
            _ if self.has_conditions => {
                let join = multi_join(input(0)).and(input(1)).on(holds).and(input(2)).on(holds_third);
                finish!(join, a, b, c => [a, b, c])
            }
            _ => finish!(multi_join(input(0)).and(input(1)).and(input(2)), a, b, c => [a, b, c]),
        }
    }
}

/// What has come in so far.
struct Model<'a> {
    spec: &'a Spec,
    rows: Vec<Row>,
    arrived: Vec<WindowRow<u8>>,
    frontier: Frontier,
}

impl Model<'_> {
    fn arrive(&mut self, input: usize, row: Row) {
        let watermark = Watermark::at(EventTime::from_millis(self.frontier.at()));
        let time = EventTime::from_millis(row.stamp);
        self.arrived.push(WindowRow { input, key: row.key, time, watermark });
        self.rows.push(row);
    }

    // All results, each with the window that is its now.
    fn result(&self) -> Vec<Said> {
        let row = |place: Option<usize>| place.map(|place| &self.rows[place]);
        let on = |so_far: &[Option<usize>], next: usize| match so_far {
            _ if !self.spec.has_conditions => true,
            [one] => holds(row(*one), &self.rows[next]),
            [one, two] => holds_third(row(*one), row(*two), &self.rows[next]),
            _ => unreachable!("there are three inputs at the most"),
        };
        let result = self.spec.join.join(&self.arrived, on);
        let start = |last: i128, one: usize| match self.spec.join.windows {
            Windows::Every { size, .. } => last - i128::from(size.as_millis()) + 1,
            Windows::Session { .. } => {
                let together = |place: &usize| match self.rows[one].key {
                    None => *place == one,
                    key => self.rows[*place].key == key && result.windows[*place].contains(&last),
                };
                let times = (0..self.rows.len()).filter(together).map(|place| self.rows[place].stamp);
                times.min().expect("a session has a row").into()
            }
        };
        let of = |(last, places): &(i128, Vec<Option<usize>>)| {
            let one = places.iter().flatten().next().expect("no result is empty");
            let window = (start(*last, *one) as i64, *last as i64);
            (window, places.iter().map(|place| row(*place).cloned()).collect())
        };
        sorted(result.results.iter().map(of))
    }
}

fn hear(t: &mut TestFlow, model: &Model<'_>, standing: &mut BTreeMap<Said, i64>) -> Result<(), TestCaseError> {
    let result = model.result();
    for (kind, said, _) in taken::<Said>(t, "out") {
        let is_so = !kind.adds() || result.binary_search(&said).is_ok();
        prop_assert!(is_so, "{:?} was told, and the result is {:?}", said, result);
        let count = standing.entry(said.clone()).or_default();
        *count += if kind.adds() { 1 } else { -1 };
        prop_assert!(*count >= 0, "{:?} was taken back, and does not stand", said);
    }
    Ok(())
}

fn check(parallelism: usize, spec: &Spec, steps: &[Step]) -> Result<(), TestCaseError> {
    let inputs = spec.join.roles.len();
    let mut t = TestFlow::parallel(parallelism, |flow| spec.build(flow));
    let mut model = Model { spec, rows: Vec::new(), arrived: Vec::new(), frontier: Frontier::new(inputs) };
    let mut standing = BTreeMap::new();
    for step in steps {
        match *step {
            Step::Row { input, key, value, time } if input < inputs => {
                let row = Row { key, value, stamp: time };
                model.arrive(input, row.clone());
                t.send(NAMES[input], fact(RowKind::Insert, row, time));
            }
            Step::Watermark { input, at: time } if input < inputs => say(&mut t, &mut model.frontier, input, at(time)),
            _ => continue,
        }
        hear(&mut t, &model, &mut standing)?;
    }
    for input in 0..inputs {
        say(&mut t, &mut model.frontier, input, Progress::End);
        hear(&mut t, &model, &mut standing)?;
    }
    // A result that stays keeps the window that it came out with, so that only those of the grid are the same in the end.
    let has_sessions = matches!(spec.join.windows, Windows::Session { .. });
    let told = |(window, row): Said| (if has_sessions { (0, 0) } else { window }, row);
    let stands = standing.into_iter().flat_map(|(said, count)| std::iter::repeat_n(told(said), count as usize));
    prop_assert_eq!(sorted(stands), sorted(model.result().into_iter().map(told)));
    Ok(())
}

fn roles() -> impl Strategy<Value = Vec<Role>> {
    let shown = prop::sample::select(vec![Role::Required, Role::Optional, Role::Optional]);
    prop_oneof![
        3 => prop::collection::vec(shown.clone(), 2),
        3 => prop::collection::vec(shown, 3),
        1 => Just(vec![Role::Required, Role::NotExists]),
    ]
}

fn windows() -> impl Strategy<Value = Windows> {
    let every = |(slide, more): (i64, i64)| Windows::Every {
        size: millis(slide + more),
        slide: millis(slide),
        offset: millis(0),
    };
    prop_oneof![
        4 => (2..9i64).prop_map(|gap| Windows::Session { gap: millis(gap) }),
        1 => (1..8i64, 0..12i64).prop_map(every),
    ]
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn what_is_taken_back_has_the_window_that_it_was_told_with(
        roles in roles(), windows in windows(), lateness in 5..60i64, has_conditions: bool,
        steps in prop::collection::vec(awake(3, 0..40), 5..50),
    ) {
        let spec = Spec { join: WindowJoin { windows, lateness: millis(lateness), roles }, has_conditions };
        for parallelism in [1, 4] {
            check(parallelism, &spec, &steps)?;
        }
    }
}
