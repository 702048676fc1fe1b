//! A join of the results of a join.

use flowjoin::{EventTime, Flow, Progress, RowKind, millis};
use flowjoin_testkit::oracle::Interval;
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{Frontier, NAMES, Row, Step, at, fact, facts, row, say, sorted, taken, timed};
use super::keyed::{Joined, table};

type Pair = (Option<Row>, Option<Row>);
type Triple = (Pair, Row);

fn key_of(pair: &Pair) -> Option<u8> {
    pair.0.as_ref().or(pair.1.as_ref()).and_then(|row| row.key)
}

// The rows of the first join, and then their results with those of `c`.
fn interval_then_regular(flow: &Flow, lower: i64, upper: i64, optional: [bool; 2]) {
    let input = |index: usize| facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key);
    let pairs = input(0)
        .optional_if(optional[0])
        .interval_join(input(1).optional_if(optional[1]))
        .named("first")
        .between(millis(lower), millis(upper))
        .select(|left, right| -> Pair { (left.cloned(), right.cloned()) });
    pairs
        .key_by(key_of)
        .join(input(2))
        .named("second")
        .keep_forever()
        .select(|pair, row| -> Triple { (pair.clone(), row.clone()) })
        .sink_to(TestSink::new("out"));
}

// Pairs of near rows, of these those with a row of `c` near them, or without one, and of these those that `d` has.
fn of_three_kinds(flow: &Flow, bounds: [(i64, i64); 2], optional: [bool; 2], exists: bool) {
    let input = |index: usize| facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key);
    let pairs = input(0)
        .optional_if(optional[0])
        .interval_join(input(1).optional_if(optional[1]))
        .named("first")
        .between(millis(bounds[0].0), millis(bounds[0].1))
        .select(|left, right| -> Pair { (left.cloned(), right.cloned()) })
        .key_by(key_of);
    let (lower, upper) = (millis(bounds[1].0), millis(bounds[1].1));
    let tested = match exists {
        true => pairs.where_exists(input(2)).between(lower, upper).named("second").into_rows(),
        false => pairs.where_not_exists(input(2)).between(lower, upper).named("second").into_rows(),
    };
    let third = tested.key_by(key_of).join(input(3)).named("third").keep_forever();
    third.select(|pair, row| -> Triple { (pair.clone(), row.clone()) }).sink_to(TestSink::new("out"));
}

fn check_three_kinds(
    parallelism: usize,
    (bounds, optional, exists): ([(i64, i64); 2], [bool; 2], bool),
    others: &[Row],
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| of_three_kinds(flow, bounds, optional, exists));
    // All rows of `c` and `d` are there, so the watermark of each join is that of the results of the one before.
    for row in others {
        t.send("c", fact(RowKind::Insert, row.clone(), row.stamp));
        t.send("d", fact(RowKind::Insert, row.clone(), row.stamp));
    }
    t.end("c").end("d");
    let rows = play(&mut t, steps);
    let interval =
        |(lower, upper): (i64, i64)| Interval { lower: millis(lower), upper: millis(upper), optional: [false; 2] };
    let first = Interval { optional, ..interval(bounds[0]) };
    let pairs: Vec<Pair> = pairs_of(&first, &rows);
    let time = |pair: &Pair| pair.0.iter().chain(&pair.1).map(|row| row.stamp).max().map(EventTime::from_millis);
    let is_near = |pair: &Pair, row: &Row| {
        let at = EventTime::from_millis(row.stamp);
        row.key.is_some() && key_of(pair) == row.key && time(pair).is_some_and(|it| interval(bounds[1]).holds(it, at))
    };
    let tested: Vec<&Pair> =
        pairs.iter().filter(|pair| others.iter().any(|row| is_near(pair, row)) == exists).collect();
    let meets = |pair: &Pair, row: &Row| row.key.is_some() && key_of(pair) == row.key;
    let expected = tested
        .iter()
        .flat_map(|pair| others.iter().filter(|row| meets(pair, row)).map(|row| ((*pair).clone(), row.clone())));
    let came = taken::<Triple>(&mut t, "out").into_iter().map(|(_, triple, _)| triple);
    prop_assert_eq!(sorted(came), sorted(expected));
    let accounts = ["second", "third"].map(|join| t.figures(join).accounts[0]);
    prop_assert_eq!(accounts.map(|account| account.late), [0, 0]);
    prop_assert_eq!(accounts.map(|account| account.rows), [pairs.len() as u64, tested.len() as u64]);
    Ok(())
}

// Plays what happens to the first two inputs; returns their rows that are not late.
fn play(t: &mut TestFlow, steps: &[Step]) -> [Vec<Row>; 2] {
    let mut frontier = Frontier::new(2);
    let mut rows: [Vec<Row>; 2] = Default::default();
    for step in steps {
        match *step {
            Step::Row { input, key, value, time } if !frontier.has_ended(input) => {
                let row = Row { key, value, stamp: time };
                frontier.wake(input);
                if time >= frontier.at() {
                    rows[input].push(row.clone());
                }
                t.send(NAMES[input], fact(RowKind::Insert, row, time));
            }
            Step::Watermark { input, at: time } => say(t, &mut frontier, input, at(time)),
            Step::Idle(input) => say(t, &mut frontier, input, Progress::Idle),
            Step::Active(input) => say(t, &mut frontier, input, Progress::Active),
            Step::End(input) => say(t, &mut frontier, input, Progress::End),
            Step::Row { .. } | Step::Retract { .. } | Step::Clock(_) => {}
        }
    }
    t.end_all();
    rows
}

fn pairs_of(interval: &Interval, rows: &[Vec<Row>; 2]) -> Vec<Pair> {
    let keyed =
        |rows: &[Row]| -> Vec<_> { rows.iter().map(|row| (row.key, EventTime::from_millis(row.stamp))).collect() };
    let pairs = interval.join(&keyed(&rows[0]), &keyed(&rows[1])).pairs.into_iter();
    pairs
        .map(|(left, right)| (left.map(|place| rows[0][place].clone()), right.map(|place| rows[1][place].clone())))
        .collect()
}

fn left_then_regular(flow: &Flow) {
    let input = |index: usize| facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key);
    let wide = input(0)
        .join(input(1).optional())
        .named("first")
        .keep_forever()
        .select(|left, right| -> Pair { (Some(left.clone()), right.cloned()) });
    wide.key_by(key_of)
        .optional()
        .join(input(2))
        .named("second")
        .keep_forever()
        .select(|pair, row| (pair.cloned(), row.clone()))
        .sink_to(TestSink::new("out"));
}

fn check_interval(
    parallelism: usize,
    (lower, upper, optional): (i64, i64, [bool; 2]),
    third: &[Row],
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| interval_then_regular(flow, lower, upper, optional));
    // All rows of `c` are there, so the watermark of the second join is that of the results of the first.
    for row in third {
        t.send("c", fact(RowKind::Insert, row.clone(), 0));
    }
    t.end("c");
    let rows = play(&mut t, steps);
    let pairs = pairs_of(&Interval { lower: millis(lower), upper: millis(upper), optional }, &rows);
    let meets = |pair: &Pair, row: &Row| row.key.is_some() && key_of(pair) == row.key;
    let expected = pairs
        .iter()
        .flat_map(|pair| third.iter().filter(|row| meets(pair, row)).map(|row| (pair.clone(), row.clone())));
    let came = taken::<Triple>(&mut t, "out").into_iter().map(|(_, triple, _)| triple);
    prop_assert_eq!(sorted(came), sorted(expected));
    let account = t.figures("second").accounts[0];
    prop_assert_eq!((account.late, account.rows), (0, pairs.len() as u64));
    Ok(())
}

fn check_left(parallelism: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, left_then_regular);
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); 3];
    let mut standing = ChangelogChecker::new();
    for step in steps {
        let Step::Row { input, key, value, time } = *step else { continue };
        let row = Row { key, value, stamp: 0 };
        rows[input].push(row.clone());
        t.send(NAMES[input], fact(RowKind::Insert, row, time));
        for (kind, row, _) in taken::<(Option<Pair>, Row)>(&mut t, "out") {
            standing.apply(kind, row).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        }
        let wide: Vec<Joined> = table(&rows[..2], &[false, true]);
        let mut expected = Vec::new();
        for third in &rows[2] {
            let meets =
                |pair: &&Joined| third.key.is_some() && pair[0].as_ref().is_some_and(|row| row.key == third.key);
            let pairs: Vec<&Joined> = wide.iter().filter(meets).collect();
            if pairs.is_empty() {
                expected.push((None, third.clone()));
            }
            expected.extend(pairs.into_iter().map(|pair| (Some((pair[0].clone(), pair[1].clone())), third.clone())));
        }
        prop_assert_eq!(standing.table(), sorted(expected));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn no_result_of_an_interval_join_is_late_for_the_next(
        bounds in (-9..9i64, 0..15i64, any::<[bool; 2]>()).prop_map(|(lower, width, optional)| (lower, lower + width, optional)),
        third in prop::collection::vec((0..3u8, 0..2u8), 0..4),
        steps in prop::collection::vec(timed(2, 0..40), 0..40),
    ) {
        let third: Vec<Row> = third.into_iter().map(|(key, value)| Row { key: Some(key), value, stamp: 0 }).collect();
        for parallelism in [1, 4] {
            check_interval(parallelism, bounds, &third, &steps)?;
        }
    }

    #[test]
    fn no_result_is_late_for_the_next_in_a_chain_of_three_kinds(
        bounds in prop::array::uniform2((-9..9i64, 0..15i64)).prop_map(|all| all.map(|(lower, width)| (lower, lower + width))),
        optional in any::<[bool; 2]>(),
        exists in any::<bool>(),
        others in prop::collection::vec((0..3u8, 0..2u8, 0..40i64), 0..6),
        steps in prop::collection::vec(timed(2, 0..40), 0..40),
    ) {
        let other = |(key, value, stamp)| Row { key: Some(key), value, stamp };
        let others: Vec<Row> = others.into_iter().map(other).collect();
        for parallelism in [1, 4] {
            check_three_kinds(parallelism, (bounds, optional, exists), &others, &steps)?;
        }
    }

    #[test]
    fn a_join_of_a_changelog_follows_it(steps in prop::collection::vec(row(3, 0..9), 0..30)) {
        for parallelism in [1, 4] {
            check_left(parallelism, &steps)?;
        }
    }
}
