//! Changelogs, well-formed or not, through every kind of regular join: with and without unique keys and conditions.
//!
//! After each batch what stands is the join of what the inputs hold, read as SQL from the left; every prefix of what
//! came out is a legal changelog; and nothing is said that changes nothing.

use flowjoin::{Changelog, Flow, KeyedStream, MaybeOptional, RowKind, Stream, multi_join};
use flowjoin_testkit::oracle::{Contents, Effect, Relation, Role, left_deep};
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink};
use proptest::prelude::*;

use super::config;
use super::history::{Fact, NAMES, Row, check_accounts, fact, facts, taken};

/// What one input of a join is.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    pub role: Role,
    /// Whether its rows have a unique key: their stamp.
    pub unique: bool,
    /// Whether there is a condition between it and the inputs before it.
    pub condition: bool,
}

/// One change of one input.
#[derive(Clone, Copy, Debug)]
struct Told {
    kind: RowKind,
    key: Option<u8>,
    value: u8,
    stamp: i64,
}

/// Changes of one input that come together.
#[derive(Clone, Debug)]
struct Together {
    input: usize,
    changes: Vec<Told>,
}

pub type Joined = Vec<Option<Row>>;

pub fn changes(flow: &Flow, index: usize, input: Input) -> KeyedStream<Option<u8>, Row, Changelog> {
    let rows: Stream<Row, Changelog> = facts(flow, NAMES[index]).as_changelog(|fact: Fact| (fact.kind, fact.row));
    let keyed = rows.key_by(|row| row.key);
    if input.unique { keyed.unique_by(|row| row.stamp) } else { keyed }
}

fn shown(flow: &Flow, inputs: &[Input], index: usize) -> MaybeOptional<KeyedStream<Option<u8>, Row, Changelog>> {
    changes(flow, index, inputs[index]).optional_if(inputs[index].role == Role::Optional)
}

// Whether the rows so far and the next one are a match: some are, some are not, some are unknown.
pub fn matches(so_far: &[Option<&Row>], next: &Row) -> Option<bool> {
    let newest = so_far.iter().rev().find_map(|row| *row);
    let sum = newest.map_or(1, |row| i64::from(row.value) + row.stamp);
    match (sum + i64::from(next.value)) % 4 {
        0 => None,
        1 => Some(false),
        _ => Some(true),
    }
}

macro_rules! on {
    ($join:expr, $condition:expr, |$($row:ident),+| $next:ident) => {{
        let condition = $condition;
        $join.on(move |$($row: Option<&Row>,)+ $next: &Row| match condition {
            true => matches(&[$($row),+], $next),
            false => Some(true),
        })
    }};
}

fn build(flow: &Flow, inputs: &[Input]) {
    let none = inputs.iter().all(|input| !input.condition);
    let at = |index: usize| shown(flow, inputs, index);
    let when = |index: usize| inputs[index].condition;
    let out = match inputs.len() {
        2 if !inputs[1].role_shows() => return build_test(flow, inputs),
        2 if none => multi_join![at(0), at(1)].keep_forever().named("join").select(|a, b| vec![own(a), own(b)]),
        2 => on!(at(0).join(at(1)), when(1), |a| b).keep_forever().named("join").select(|a, b| vec![own(a), own(b)]),
        3 if none => {
            multi_join![at(0), at(1), at(2)].keep_forever().named("join").select(|a, b, c| vec![own(a), own(b), own(c)])
        }
        3 => {
            let two = on!(at(0).join(at(1)), when(1), |a| b);
            on!(two.and(at(2)), when(2), |a, b| c)
                .keep_forever()
                .named("join")
                .select(|a, b, c| vec![own(a), own(b), own(c)])
        }
        4 if none => multi_join![at(0), at(1), at(2), at(3)]
            .keep_forever()
            .named("join")
            .select(|a, b, c, d| vec![own(a), own(b), own(c), own(d)]),
        4 => {
            let two = on!(at(0).join(at(1)), when(1), |a| b);
            let three = on!(two.and(at(2)), when(2), |a, b| c);
            on!(three.and(at(3)), when(3), |a, b, c| d)
                .keep_forever()
                .named("join")
                .select(|a, b, c, d| vec![own(a), own(b), own(c), own(d)])
        }
        5 => multi_join![at(0), at(1), at(2), at(3), at(4)]
            .keep_forever()
            .named("join")
            .select(|a, b, c, d, e| vec![own(a), own(b), own(c), own(d), own(e)]),
        inputs => unreachable!("{inputs} inputs are not tried"),
    };
    out.sink_to(TestSink::new("out"));
}

// Semi and anti joins.
fn build_test(flow: &Flow, inputs: &[Input]) {
    let (left, right) = (changes(flow, 0, inputs[0]), changes(flow, 1, inputs[1]));
    let condition = inputs[1].condition;
    let on = move |a: &Row, b: &Row| if condition { matches(&[Some(a)], b) } else { Some(true) };
    let rows: Stream<Row, Changelog> = match (inputs[1].role, condition) {
        (Role::Exists, true) => left.where_exists(right).on(on).keep_forever().named("join").into_rows(),
        (Role::Exists, false) => left.where_exists(right).keep_forever().named("join").into_rows(),
        (_, true) => left.where_not_exists(right).on(on).keep_forever().named("join").into_rows(),
        (_, false) => left.where_not_exists(right).keep_forever().named("join").into_rows(),
    };
    rows.map(|row| -> Joined { vec![Some(row), None] }).sink_to(TestSink::new("out"));
}

pub fn own(row: Option<&Row>) -> Option<Row> {
    row.cloned()
}

impl Input {
    fn role_shows(&self) -> bool {
        matches!(self.role, Role::Required | Role::Optional)
    }

    fn contents(&self) -> Contents<Row> {
        match self.unique {
            // Rows of different keys are apart.
            true => Contents::unique_by(|row: &Row| (row.key, row.stamp)),
            false => Contents::bag(),
        }
    }
}

/// What the join of these rows is.
pub fn definition_of(inputs: &[Input], held: &[Vec<Row>]) -> Vec<Joined> {
    let relation = |rows: &Vec<Row>| Relation::of(rows, |row| row.key);
    let of: Vec<(Role, Relation<u8, Row>)> =
        inputs.iter().zip(held).map(|(input, held)| (input.role, relation(held))).collect();
    left_deep(&of, |so_far: &[Option<Row>], next: &Row| match inputs[so_far.len()].condition {
        true => matches(&so_far.iter().map(Option::as_ref).collect::<Vec<_>>(), next),
        false => Some(true),
    })
}

fn check(parallelism: usize, inputs: &[Input], history: &[Together]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| build(flow, inputs));
    let mut held: Vec<Contents<Row>> = inputs.iter().map(Input::contents).collect();
    let mut orphans = vec![0; inputs.len()];
    let mut standing: ChangelogChecker<Joined> = ChangelogChecker::new();
    let may_be_empty = |input: &Input| matches!(input.role, Role::Optional | Role::NotExists);
    let others = |input: usize| inputs.iter().enumerate().filter(move |(other, _)| *other != input);
    let alone: Vec<bool> = (0..inputs.len())
        .map(|input| inputs[input].role_shows() && others(input).all(|(_, other)| may_be_empty(other)))
        .collect();
    for Together { input, changes } in history {
        let before = standing.table();
        let mut batch = Vec::new();
        let mut nulls = false;
        for &Told { kind, key, value, stamp } in changes {
            let row = Row { key, value, stamp };
            // Where a row with a null key cannot stand alone, nothing becomes of its changes.
            if key.is_none() && !alone[*input] {
                continue;
            }
            nulls |= key.is_none();
            if held[*input].apply(kind, row.clone()) == Effect::Orphan {
                orphans[*input] += 1;
            }
            batch.push(fact(kind, row, 0));
        }
        t.send_all(NAMES[*input], batch);
        let came = taken::<Joined>(&mut t, "out");
        let said = came.len();
        for (kind, row, _) in came {
            standing.apply(kind, row).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        }
        let rows: Vec<Vec<Row>> = held.iter().map(|held| held.rows().to_vec()).collect();
        let after = definition_of(inputs, &rows);
        prop_assert_eq!(standing.table(), after.clone());
        // An input changes at once, so that nothing is both taken back and said again.
        let kept = common(&before, &after);
        // Rows with null keys are each on their own, and told one by one.
        prop_assert!(nulls || said == before.len() + after.len() - 2 * kept, "{:?} became {:?}", before, after);
    }
    let figures = t.figures("join");
    prop_assert_eq!(figures.accounts.iter().map(|account| account.orphan).collect::<Vec<_>>(), orphans);
    prop_assert_eq!(figures.state_rows, held.iter().map(|held| held.rows().len() as u64).collect::<Vec<_>>());
    check_accounts(&t, "join")
}

// How many rows two sorted tables have in common.
fn common(one: &[Joined], other: &[Joined]) -> usize {
    let (mut a, mut b, mut both) = (0, 0, 0);
    while a < one.len() && b < other.len() {
        match one[a].cmp(&other[b]) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => (a, b, both) = (a + 1, b + 1, both + 1),
        }
    }
    both
}

fn input(shown: bool, conditions: bool) -> impl Strategy<Value = Input> {
    let role = match shown {
        true => prop_oneof![Just(Role::Required), Just(Role::Optional)].boxed(),
        false => prop_oneof![
            2 => Just(Role::Required),
            2 => Just(Role::Optional),
            1 => Just(Role::Exists),
            1 => Just(Role::NotExists),
        ]
        .boxed(),
    };
    (role, any::<bool>(), any::<bool>()).prop_map(move |(role, unique, condition)| Input {
        role,
        unique,
        condition: condition && conditions,
    })
}

pub fn joins() -> impl Strategy<Value = Vec<Input>> {
    let first = || input(true, false);
    prop_oneof![
        3 => (first(), input(false, true)).prop_map(|(a, b)| match b.role {
            Role::Required | Role::Optional => vec![a, b],
            // The rows of a semi or anti join are all there.
            Role::Exists | Role::NotExists => vec![Input { role: Role::Required, ..a }, b],
        }),
        2 => (first(), input(true, true), input(true, true)).prop_map(|(a, b, c)| vec![a, b, c]),
        1 => (first(), input(true, true), input(true, true), input(true, true)).prop_map(|(a, b, c, d)| vec![a, b, c, d]),
        1 => prop::collection::vec(input(true, false), 5),
    ]
}

fn told() -> impl Strategy<Value = Told> {
    let kind = prop_oneof![
        4 => Just(RowKind::Insert),
        2 => Just(RowKind::UpdateBefore),
        2 => Just(RowKind::UpdateAfter),
        2 => Just(RowKind::Delete),
    ];
    let key = prop::option::weighted(0.95, 0..2u8);
    (kind, key, 0..3u8, 0..2i64).prop_map(|(kind, key, value, stamp)| Told { kind, key, value, stamp })
}

fn histories() -> impl Strategy<Value = (Vec<Input>, Vec<Together>)> {
    joins().prop_flat_map(|inputs| {
        let together = (0..inputs.len(), prop::collection::vec(told(), 1..6))
            .prop_map(|(input, changes)| Together { input, changes });
        (Just(inputs), prop::collection::vec(together, 0..14))
    })
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn after_each_batch_the_join_of_what_is_held_stands((inputs, history) in histories()) {
        for parallelism in [1, 4] {
            check(parallelism, &inputs, &history)?;
        }
    }
}
