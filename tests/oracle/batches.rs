//! Batches of changes over several inputs, cut anywhere, through joins of two to five inputs: unique keys within and
//! beyond the key, updates in pairs and bare, conditions on any input, semi and anti joins.

use std::collections::BTreeMap;

use flowjoin::api::NeedsTtl;
use flowjoin::{Changelog, Flow, KeyedStream, MaybeOptional, MultiJoin, RowKind};
use flowjoin_testkit::oracle::{Contents, Role, left_deep};
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink};
use proptest::prelude::*;

use super::changes::{Arrival, Batch, Change, Formed, Row, Unique, arrivals, batches, large_batches, unique};
use super::config;
use super::history::{NAMES, check_accounts};

type Joined = Vec<Option<Row>>;
type Rows = KeyedStream<Option<u8>, Row, Changelog>;

#[derive(Clone, Debug)]
struct Input {
    role: Role,
    unique: Unique,
    condition: Condition,
}

/// What a row of an input has to hold with the rows so far; it may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    None,
    /// About its own row alone.
    IsNotZero,
    /// Between it and the first row that there is; unknown of two zeros.
    Differs,
    /// Between it and the row of the input before; unknown if that is missing.
    IsNotLess,
}

impl Condition {
    fn holds(self, so_far: &[Option<&Row>], next: &Row) -> Option<bool> {
        match self {
            Condition::None => Some(true),
            Condition::IsNotZero => Some(next.value > 0),
            Condition::Differs => {
                let first = so_far.iter().flatten().next()?;
                (first.value + next.value > 0).then_some(first.value != next.value)
            }
            Condition::IsNotLess => so_far.last().copied().flatten().map(|before| next.value >= before.value),
        }
    }
}

fn rows(flow: &Flow, inputs: &[Input], index: usize) -> Rows {
    let changes = arrivals(flow, NAMES[index]).as_changelog(|arrival| (arrival.kind, arrival.row));
    let keyed = changes.key_by(|row| row.key);
    match inputs[index].unique {
        Unique::Bag => keyed,
        Unique::Key => keyed.unique_by(|row| row.key),
        Unique::Id => keyed.unique_by(|row| row.id),
    }
}

fn input(flow: &Flow, inputs: &[Input], index: usize) -> MaybeOptional<Rows> {
    rows(flow, inputs, index).optional_if(inputs[index].role == Role::Optional)
}

macro_rules! chain {
    ($flow:ident, $inputs:ident, $begun:expr; [$($before:ident)+];) => { $begun };
    ($flow:ident, $inputs:ident, $begun:expr; [$($before:ident)+]; $index:literal $row:ident $($rest:tt)*) => {{
        let join = $begun.and(input($flow, $inputs, $index));
        let join = match $inputs[$index].condition {
            Condition::None => join,
            condition => join.on(move |$($before,)+ $row| condition.holds(&[$($before),+], $row)),
        };
        chain!($flow, $inputs, join; [$($before)+ $row]; $($rest)*)
    }};
}

macro_rules! join_of {
    ($flow:ident, $inputs:ident; $first:ident, $($index:literal $row:ident),+) => {{
        let begun = flowjoin::api::multi_join(input($flow, $inputs, 0));
        chain!($flow, $inputs, begun; [$first]; $($index $row)+)
            .named("join")
            .keep_forever()
            .select(|$first, $($row),+| -> Joined { vec![$first.cloned(), $($row.cloned()),+] })
            .sink_to(TestSink::new("out"));
    }};
}

macro_rules! test_of {
    ($inputs:ident; $test:expr) => {{
        let test: NeedsTtl<MultiJoin<_>> = $test;
        let test = match $inputs[1].condition {
            Condition::None => test,
            condition => test.on(move |left, right| condition.holds(&[Some(left)], right)),
        };
        let rows = test.named("join").keep_forever().into_rows();
        rows.map(|row| -> Joined { vec![Some(row), None] }).sink_to(TestSink::new("out"));
    }};
}

fn build(flow: &Flow, inputs: &[Input]) {
    let side = |index| rows(flow, inputs, index);
    match inputs.len() {
        2 if inputs[1].role == Role::Exists => test_of!(inputs; side(0).where_exists(side(1))),
        2 if inputs[1].role == Role::NotExists => test_of!(inputs; side(0).where_not_exists(side(1))),
        2 => join_of!(flow, inputs; a, 1 b),
        3 => join_of!(flow, inputs; a, 1 b, 2 c),
        4 => join_of!(flow, inputs; a, 1 b, 2 c, 3 d),
        5 => join_of!(flow, inputs; a, 1 b, 2 c, 3 d, 4 e),
        inputs => unreachable!("{inputs} inputs are not tried"),
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    use Condition::{Differs, IsNotLess, IsNotZero, None};
    prop_oneof![2 => Just(None), 1 => Just(IsNotZero), 1 => Just(Differs), 1 => Just(IsNotLess)]
}

// Two inputs about as often as all other numbers together, and these a test about as often as a join.
fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let any_role = || prop_oneof![Just(Role::Required), Just(Role::Optional)];
    let joins = |count: std::ops::Range<usize>| prop::collection::vec(any_role(), count);
    let tests = prop_oneof![Just(Role::Exists), Just(Role::NotExists)].prop_map(|test| vec![Role::Required, test]);
    prop_oneof![1 => tests, 1 => joins(2..3), 2 => joins(3..6)].prop_flat_map(|roles| {
        let more = prop::collection::vec((unique(), condition()), roles.len());
        more.prop_map(move |more| {
            let input = |(place, (&role, (unique, condition))): (usize, (&Role, (Unique, Condition)))| Input {
                role,
                unique,
                // The first input has nothing before it.
                condition: if place == 0 { Condition::None } else { condition },
            };
            roles.iter().zip(more).enumerate().map(input).collect()
        })
    })
}

fn histories(formed: Formed, steps: usize) -> impl Strategy<Value = (Vec<Input>, Vec<Batch>)> {
    inputs().prop_flat_map(move |inputs| {
        let unique = inputs.iter().map(|input| input.unique).collect();
        (Just(inputs), batches(unique, formed, steps))
    })
}

// One key with many rows, of which many change in one batch.
fn large_histories() -> impl Strategy<Value = (Vec<Input>, Vec<Batch>)> {
    let formed = prop_oneof![Just(Formed::Well), Just(Formed::Ill)];
    let roles = prop_oneof![Just(Role::Required), Just(Role::Optional), Just(Role::NotExists)];
    (unique(), roles, formed).prop_flat_map(|(unique, role, formed)| {
        let input = |role, unique| Input { role, unique, condition: Condition::None };
        let inputs = vec![input(Role::Required, unique), input(role, Unique::Key)];
        (Just(inputs), large_batches(vec![unique, Unique::Key], formed))
    })
}

fn by_definition(inputs: &[Input], held: &[Contents<Row>]) -> Vec<Joined> {
    let sides: Vec<_> = inputs.iter().zip(held).map(|(input, held)| (input.role, held.keyed(|row| row.key))).collect();
    left_deep(&sides, |so_far, next| {
        let so_far: Vec<Option<&Row>> = so_far.iter().map(Option::as_ref).collect();
        inputs[so_far.len()].condition.holds(&so_far, next)
    })
}

// Within one batch of an input nothing is said and unsaid again, but of rows with a null key, which are told one by one.
fn check_net(changes: &[(RowKind, Joined)]) -> Result<(), TestCaseError> {
    let mut signs: BTreeMap<&Joined, bool> = BTreeMap::new();
    let has_key = |row: &Joined| row.iter().flatten().all(|row| row.key.is_some());
    for (kind, row) in changes.iter().filter(|(_, row)| has_key(row)) {
        let before = *signs.entry(row).or_insert(kind.adds());
        prop_assert_eq!(before, kind.adds(), "{:?} comes and goes within one batch", row);
    }
    Ok(())
}

fn check(parallelism: usize, inputs: &[Input], batches: &[Batch]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| build(flow, inputs));
    let mut held: Vec<Contents<Row>> = inputs.iter().map(|input| input.unique.contents()).collect();
    let mut standing = ChangelogChecker::new();
    for batch in batches {
        for input in 0..inputs.len() {
            let of_input: Vec<&Change> = batch.iter().filter(|change| change.input == input).collect();
            if of_input.is_empty() {
                continue;
            }
            held[input].apply_all(of_input.iter().map(|change| (change.kind, change.row.clone())));
            let arrival = |change: &&Change| Arrival { kind: change.kind, row: change.row.clone() };
            t.send_all(NAMES[input], of_input.iter().map(arrival).collect());
            let changes = t.take_changes::<Joined>("out");
            check_net(&changes)?;
            standing.apply_batch(changes).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
            prop_assert_eq!(standing.table(), by_definition(inputs, &held));
        }
    }
    let figures = t.figures("join");
    // A row with a null key is kept where it stands alone.
    let may_be_empty = |role: Role| matches!(role, Role::Optional | Role::NotExists);
    let alone = |input: usize| {
        let others = inputs.iter().enumerate().filter(|(other, _)| *other != input);
        matches!(inputs[input].role, Role::Required | Role::Optional) && others.map(|it| it.1.role).all(may_be_empty)
    };
    let kept = |(input, held): (usize, &Contents<Row>)| {
        held.rows().iter().filter(|row| row.key.is_some() || alone(input)).count() as u64
    };
    prop_assert_eq!(figures.state_rows, held.iter().enumerate().map(kept).collect::<Vec<_>>());
    let orphans = figures.accounts.iter().map(|account| account.orphan).collect::<Vec<_>>();
    prop_assert_eq!(orphans, held.iter().map(Contents::orphans).collect::<Vec<_>>());
    check_accounts(&t, "join")
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn a_join_of_well_formed_changelogs_is_the_join_of_what_they_hold((inputs, batches) in histories(Formed::Well, 25)) {
        for parallelism in [1, 4] {
            check(parallelism, &inputs, &batches)?;
        }
    }

    #[test]
    fn a_join_of_ill_formed_changelogs_is_the_join_of_what_they_hold((inputs, batches) in histories(Formed::Ill, 25)) {
        for parallelism in [1, 4] {
            check(parallelism, &inputs, &batches)?;
        }
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_join_with_many_changes_of_one_key_at_once_is_the_join_of_what_is_held((inputs, batches) in large_histories()) {
        check(1, &inputs, &batches)?;
    }
}
