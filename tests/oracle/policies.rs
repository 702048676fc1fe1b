//! What joins say early, late or never: gap policies, and what expiry does, against their definitions.

use flowjoin::{Append, Flow, KeyedStream, Retract, RowKind, Unmatch, millis, multi_join};
use flowjoin_testkit::oracle::{Relation, Role, left_deep};
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink};
use proptest::prelude::*;

use super::changelog::{Input, Joined, changes, definition_of, matches, own};
use super::config;
use super::history::{NAMES, Row, advance, check_accounts, fact, facts, sorted, taken};

/// When a gap is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    AtOnce,
    After,
    AtTheEnd,
}

pub const DELAY: i64 = 5;

#[derive(Clone, Copy, Debug)]
enum Step {
    Row { input: usize, kind: RowKind, key: Option<u8>, value: u8, stamp: i64 },
    Clock(i64),
}

fn rows(flow: &Flow, index: usize) -> KeyedStream<Option<u8>, Row, Append> {
    facts(flow, NAMES[index]).map(|fact| fact.row).key_by(|row| row.key)
}

macro_rules! told {
    ($tells:expr, |$policy:ident| $body:expr) => {
        match $tells {
            Tells::AtOnce => {
                let $policy = flowjoin::Eager;
                $body
            }
            Tells::After => {
                let $policy = flowjoin::EagerAfter(flowjoin::millis($crate::policies::DELAY));
                $body
            }
            Tells::AtTheEnd => {
                let $policy = flowjoin::Final;
                $body
            }
        }
    };
}
pub(super) use told;

// `a LEFT b` on a condition, `a FULL b`, and `a LEFT b LEFT c`: each optional input with its policy.
fn build_waiting(flow: &Flow, shape: usize, tells: [Tells; 3]) {
    let out = || TestSink::new("out");
    match shape {
        0 => told!(tells[1], |b| {
            let join = rows(flow, 0).join(rows(flow, 1).optional().emit(b)).on(|a, b| matches(&[Some(a)], b));
            join.keep_forever().named("join").select(|a, b| vec![own(Some(a)), own(b)]).sink_to(out());
        }),
        1 => told!(tells[0], |a| told!(tells[1], |b| {
            let join = rows(flow, 0).optional().emit(a).join(rows(flow, 1).optional().emit(b));
            join.keep_forever().named("join").select(|a, b| vec![own(a), own(b)]).sink_to(out());
        })),
        _ => told!(tells[1], |b| told!(tells[2], |c| {
            let (b, c) = (rows(flow, 1).optional().emit(b), rows(flow, 2).optional().emit(c));
            let join = multi_join![rows(flow, 0), b, c].keep_forever().named("join");
            join.select(|a, b, c| vec![own(Some(a)), own(b), own(c)]).sink_to(out());
        })),
    }
}

fn roles(shape: usize) -> Vec<Role> {
    match shape {
        0 => vec![Role::Required, Role::Optional],
        1 => vec![Role::Optional, Role::Optional],
        _ => vec![Role::Required, Role::Optional, Role::Optional],
    }
}

// Stamps make every row one of its own, so that the time at which it came is known.
fn check_waiting(parallelism: usize, shape: usize, tells: [Tells; 3], steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| build_waiting(flow, shape, tells));
    let roles = roles(shape);
    let mut held: Vec<Vec<Row>> = vec![Vec::new(); roles.len()];
    let mut came_at: Vec<i64> = Vec::new();
    let mut standing: ChangelogChecker<Joined> = ChangelogChecker::new();
    let mut now = 0;
    let mut ended = false;
    for step in steps.iter().map(Some).chain([None]) {
        match step {
            Some(&Step::Row { input, key, value, .. }) => {
                let input = input % roles.len();
                let row = Row { key, value, stamp: came_at.len() as i64 };
                came_at.push(now);
                held[input].push(row.clone());
                t.send(NAMES[input], fact(RowKind::Insert, row, 0));
            }
            Some(&Step::Clock(by)) => now = advance(&mut t, by),
            None => {
                t.end_all();
                ended = true;
            }
        }
        for (kind, row, _) in taken::<Joined>(&mut t, "out") {
            standing.apply(kind, row).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        }
        let of: Vec<(Role, Relation<u8, Row>)> =
            roles.iter().zip(&held).map(|(&role, rows)| (role, Relation::of(rows, |row| row.key))).collect();
        let all = left_deep(&of, |so_far: &[Option<Row>], next: &Row| match shape {
            0 => matches(&so_far.iter().map(Option::as_ref).collect::<Vec<_>>(), next),
            _ => Some(true),
        });
        let is_told = |combination: &Joined| {
            let aged = combination.iter().flatten().all(|row| came_at[row.stamp as usize] + DELAY <= now);
            // A row with a null key waits for nothing.
            let is_null = combination.iter().flatten().any(|row| row.key.is_none());
            let gaps = combination.iter().zip(&tells).filter(|(row, _)| row.is_none());
            ended
                || is_null
                || gaps.into_iter().all(|(_, tells)| match tells {
                    Tells::AtOnce => true,
                    Tells::After => aged,
                    Tells::AtTheEnd => false,
                })
        };
        prop_assert_eq!(standing.table(), sorted(all.into_iter().filter(is_told)));
    }
    check_accounts(&t, "join")
}

/// A join whose rows leave, and take back what they gave.
#[derive(Clone, Debug)]
struct Leaving {
    inputs: Vec<Input>,
    ttl: Vec<Option<i64>>,
    expiry: Expiry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    Silent,
    Unmatch,
    Retract,
}

fn build_leaving(flow: &Flow, spec: &Leaving) {
    macro_rules! ended {
        ($join:expr, |$($row:ident),+| $made:expr) => {
            match spec.expiry {
                Expiry::Silent => {
                    let join = $join.keep_forever().named("join");
                    join.select(|$($row),+| -> Joined { $made }).sink_to(TestSink::new("out"));
                }
                Expiry::Retract => {
                    let join = $join.keep_forever().on_expiry(Retract).named("join");
                    join.select(|$($row),+| -> Joined { $made }).sink_to(TestSink::new("out"));
                }
                Expiry::Unmatch => {
                    let join = $join.keep_forever().on_expiry(Unmatch).named("join");
                    join.select(|$($row),+| -> Joined { $made }).sink_to(TestSink::new("out"));
                }
            }
        };
    }
    let at = |index: usize| {
        let rows = changes(flow, index, spec.inputs[index]);
        let rows = match spec.ttl[index] {
            Some(ttl) => rows.ttl(millis(ttl)),
            None => rows.keep_forever(),
        };
        rows.optional_if(spec.inputs[index].role == Role::Optional)
    };
    let plain = |index: usize| {
        let rows = changes(flow, index, spec.inputs[index]);
        match spec.ttl[index] {
            Some(ttl) => rows.ttl(millis(ttl)),
            None => rows.keep_forever(),
        }
    };
    let condition = spec.inputs[1].condition;
    let on = move |a: &[Option<&Row>], b: &Row| if condition { matches(a, b) } else { Some(true) };
    match (spec.inputs.len(), spec.inputs[1].role) {
        (2, Role::Exists) => {
            let join = plain(0).where_exists(plain(1)).on(move |a, b| on(&[Some(a)], b));
            ended!(join, |a, _b| vec![own(Some(a)), None]);
        }
        (2, Role::NotExists) => {
            let join = plain(0).where_not_exists(plain(1)).on(move |a, b| on(&[Some(a)], b));
            ended!(join, |a, _b| vec![own(Some(a)), None]);
        }
        (2, _) if condition => {
            let join = at(0).join(at(1)).on(move |a, b| on(&[a], b));
            ended!(join, |a, b| vec![own(a), own(b)]);
        }
        (2, _) => ended!(at(0).join(at(1)), |a, b| vec![own(a), own(b)]),
        _ => ended!(multi_join![at(0), at(1), at(2)], |a, b, c| vec![own(a), own(b), own(c)]),
    }
}

/// The rows of an input, each with the time at which it was written.
struct Kept {
    unique: bool,
    ttl: Option<i64>,
    rows: Vec<(Row, i64)>,
}

impl Kept {
    fn apply(&mut self, kind: RowKind, row: Row, now: i64) {
        let same = |held: &Row| match self.unique {
            true => (held.key, held.stamp) == (row.key, row.stamp),
            false => *held == row,
        };
        // Of equal rows the one that came first is taken back.
        let place = self.rows.iter().position(|(held, _)| same(held));
        if let Some(place) = place.filter(|_| self.unique || !kind.adds()) {
            self.rows.remove(place);
        }
        if kind.adds() {
            // Equal rows, among the last eight of the key, are written again.
            let of_key = self.rows.iter_mut().rev().filter(|(held, _)| held.key == row.key);
            for (_, written) in of_key.take(8).filter(|(held, _)| !self.unique && *held == row) {
                *written = now;
            }
            self.rows.push((row, now));
        }
    }

    fn expire(&mut self, now: i64) {
        self.rows.retain(|(_, written)| self.ttl.is_none_or(|ttl| written + ttl > now));
    }
}

// Where expiry takes back all it touches, what stands is the join of what is held, as if the rest had been deleted.
fn check_leaving(parallelism: usize, spec: &Leaving, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| build_leaving(flow, spec));
    let kept = |(input, &ttl): (&Input, &Option<i64>)| Kept { unique: input.unique, ttl, rows: Vec::new() };
    let mut held: Vec<Kept> = spec.inputs.iter().zip(&spec.ttl).map(kept).collect();
    let mut standing: ChangelogChecker<Joined> = ChangelogChecker::new();
    let mut now = 0;
    for step in steps {
        match *step {
            Step::Row { input, kind, key, value, stamp } => {
                let input = input % spec.inputs.len();
                // What becomes of changes of null keys is tried elsewhere.
                if key.is_none() {
                    continue;
                }
                let row = Row { key, value, stamp };
                held[input].apply(kind, row.clone(), now);
                t.send(NAMES[input], fact(kind, row, 0));
            }
            Step::Clock(by) => {
                now = advance(&mut t, by);
                held.iter_mut().for_each(|held| held.expire(now));
            }
        }
        for (kind, row, _) in taken::<Joined>(&mut t, "out") {
            standing.apply(kind, row).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        }
        let rows: Vec<Vec<Row>> =
            held.iter().map(|held| held.rows.iter().map(|(row, _)| row.clone()).collect()).collect();
        // What expired in silence stands as well, and what of it is not kept.
        if spec.expiry != Expiry::Silent {
            prop_assert_eq!(standing.table(), definition_of(&spec.inputs, &rows));
        }
    }
    let figures = t.figures("join");
    prop_assert_eq!(figures.state_rows, held.iter().map(|held| held.rows.len() as u64).collect::<Vec<_>>());
    check_accounts(&t, "join")
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        4 => Just(RowKind::Insert),
        1 => Just(RowKind::UpdateBefore),
        1 => Just(RowKind::UpdateAfter),
        1 => Just(RowKind::Delete),
    ];
    let key = prop::option::weighted(0.95, 0..2u8);
    let row = (0..6usize, kind, key, 0..3u8, 0..2i64).prop_map(|(input, kind, key, value, stamp)| Step::Row {
        input,
        kind,
        key,
        value,
        stamp,
    });
    prop::collection::vec(prop_oneof![4 => row, 1 => (0..6i64).prop_map(Step::Clock)], 0..most)
}

pub fn tells() -> impl Strategy<Value = Tells> {
    prop_oneof![Just(Tells::AtOnce), Just(Tells::After), Just(Tells::AtTheEnd)]
}

fn leaving() -> impl Strategy<Value = Leaving> {
    let ttls = prop::collection::vec(prop::option::weighted(0.8, 1..12i64), 3);
    let expiry = prop_oneof![Just(Expiry::Silent), Just(Expiry::Unmatch), Just(Expiry::Retract)];
    (super::changelog::joins(), ttls, expiry).prop_map(|(mut inputs, mut ttl, expiry)| {
        inputs.truncate(3);
        ttl.truncate(inputs.len());
        if inputs.len() > 2 {
            inputs.iter_mut().for_each(|input| input.condition = false);
        }
        for (ttl, input) in ttl.iter_mut().zip(&inputs) {
            // What required a row that has left stands, unless expiry retracts.
            if expiry == Expiry::Unmatch && input.role == Role::Required {
                *ttl = None;
            }
        }
        // Of several gaps it is not known which were told.
        if expiry == Expiry::Silent && inputs.len() > 2 {
            inputs[1..].iter_mut().for_each(|input| input.role = Role::Required);
        }
        Leaving { inputs, ttl, expiry }
    })
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn a_gap_is_told_when_its_policy_says(
        shape in 0..3usize, tells in [tells(), tells(), tells()], steps in steps(24),
    ) {
        for parallelism in [1, 4] {
            check_waiting(parallelism, shape, tells, &steps)?;
        }
    }

    #[test]
    fn what_stands_when_rows_have_left_is_what_their_expiry_says(spec in leaving(), steps in steps(30)) {
        for parallelism in [1, 4] {
            check_leaving(parallelism, &spec, &steps)?;
        }
    }
}
