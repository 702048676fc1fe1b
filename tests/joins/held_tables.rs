//! Tables that a join holds itself: puts, moves, deletes and truncations go straight into it, and patches made whole.

use std::collections::BTreeMap;

use flowjoin::io::{Moved, MovedTo, Patch, TableChange};
use flowjoin::prelude::*;
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink, TestSource};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Item {
    #[key]
    id: u64,
    value: u64,
}

type Pair = (Option<Item>, Option<Item>);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Inner,
    Left,
    Full,
    Exists,
    NotExists,
}

fn build(kind: Kind) -> impl Fn(&Flow) {
    move |flow| {
        let [a, b] = ["a", "b"].map(|name| flow.table::<Item>(TestSource::new(name).with_patches()));
        let (sink, alone) = (TestSink::new("out"), |item: Item| (Some(item), None::<Item>));
        match kind {
            Kind::Inner => {
                let join = a.join(b).keep_forever().named("join");
                join.select(|a, b| (Some(a.clone()), Some(b.clone()))).sink_to(sink);
            }
            Kind::Left => {
                let join = a.join(b.optional()).keep_forever().named("join");
                join.select(|a, b| (Some(a.clone()), b.cloned())).sink_to(sink);
            }
            Kind::Full => {
                let join = multi_join![a.optional(), b.optional()].keep_forever().named("join");
                join.select(|a, b| (a.cloned(), b.cloned())).sink_to(sink);
            }
            Kind::Exists => {
                let join = a.keyed().where_exists(b).keep_forever().named("join");
                join.into_rows().map(alone).sink_to(sink);
            }
            Kind::NotExists => {
                let join = a.keyed().where_not_exists(b).keep_forever().named("join");
                join.into_rows().map(alone).sink_to(sink);
            }
        }
    }
}

type Rows = BTreeMap<u64, u64>;

// The definition, over what the two tables hold.
fn expected(kind: Kind, [a, b]: &[Rows; 2]) -> Vec<Pair> {
    let item = |(&id, &value): (&u64, &u64)| Item { id, value };
    let of = |rows: &Rows, id: u64| rows.get_key_value(&id).map(item);
    let of_a = a.keys().map(|&id| (of(a, id), of(b, id)));
    let mut all: Vec<Pair> = match kind {
        Kind::Inner => of_a.filter(|(_, b)| b.is_some()).collect(),
        Kind::Left => of_a.collect(),
        Kind::Full => of_a.chain(b.keys().filter(|id| !a.contains_key(id)).map(|&id| (None, of(b, id)))).collect(),
        Kind::Exists => of_a.filter(|(_, b)| b.is_some()).map(|(a, _)| (a, None)).collect(),
        Kind::NotExists => of_a.filter(|(_, b)| b.is_none()).map(|(a, _)| (a, None)).collect(),
    };
    all.sort();
    all
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

// Adds to the row before, and gives it this key.
fn adding(value: u64, id: u64) -> Patch<Item> {
    Patch::new(move |before: Option<&Item>| {
        let before = before.ok_or("there is no row to patch")?;
        Ok(Item { value: before.value + value, id })
    })
}

// The row that was deleted last.
type Gone = Option<(u64, u64)>;

// A row that gets another key: whole, or as the row before with something added. One that was moved before is found under
// its new key, and one that was deleted just before is still known; without a row there is nothing to add to, and nothing
// happens to either key.
fn moved(
    random: &mut Random,
    (from, to): (u64, u64),
    (rows, gone): (&mut Rows, &mut Gone),
) -> (TableChange<Item>, bool) {
    let value = random.below(4);
    let just_gone = gone.filter(|(id, _)| *id == from).map(|(_, value)| value);
    let before = rows.get(&from).or_else(|| rows.get(&to)).copied().or(just_gone);
    let (now, told) = match random.below(3) {
        0 => (Some(value), MovedTo::Row(Item { id: to, value })),
        _ => (before.map(|before| before + value), MovedTo::Patch { key: to, patch: adding(value, to) }),
    };
    if let Some(now) = now {
        *gone = rows.remove_entry(&from).or(*gone);
        rows.insert(to, now);
    }
    (TableChange::Move(Box::new(Moved { from, row: None, time: None, to: told })), now.is_none())
}

// A change, made in the model as well; returns it and whether it is a bad record.
fn change(random: &mut Random, ids: u64, (rows, gone): (&mut Rows, &mut Gone)) -> (TableChange<Item>, bool) {
    let id = random.below(ids);
    let value = random.below(4);
    match random.below(60) {
        0 => {
            rows.clear();
            *gone = None;
            (TableChange::Truncate { time: None }, false)
        }
        1..=14 => {
            *gone = rows.remove_entry(&id).or(*gone);
            (TableChange::delete(id), false)
        }
        // Adds to what stands; without a row there is nothing to add to.
        15..=24 => {
            let bad = !rows.contains_key(&id);
            if let Some(standing) = rows.get_mut(&id) {
                *standing += value;
            }
            (TableChange::Patch { key: id, time: None, patch: Box::new(adding(value, id)) }, bad)
        }
        25..=34 => {
            let from = random.below(ids);
            let to = if id == from { (from + 1) % ids } else { id };
            moved(random, (from, to), (rows, gone))
        }
        _ => {
            rows.insert(id, value);
            (TableChange::Put(Item { id, value }), false)
        }
    }
}

fn check(kind: Kind, parallelism: usize, seed: u64, (ids, batches, size): (u64, usize, u64)) {
    let random = &mut Random(seed);
    let mut t = TestFlow::parallel(parallelism, build(kind));
    let (mut tables, mut gone) = ([Rows::new(), Rows::new()], [None, None]);
    let mut result = ChangelogChecker::new();
    let (mut sent, mut bad) = (0, 0);
    for _ in 0..batches {
        let side = random.below(2) as usize;
        let count = 1 + random.below(size);
        let mut moves = 0;
        let mut next = || {
            let before = tables[side].clone();
            let (change, wrong) = change(random, ids, (&mut tables[side], &mut gone[side]));
            // One that moves a row which stands is two changes.
            let is_move = matches!(&change, TableChange::Move(moved) if before.contains_key(&moved.from));
            moves += usize::from(is_move && !wrong);
            (change, wrong)
        };
        let (changes, wrong): (Vec<_>, Vec<bool>) = (0..count).map(|_| next()).unzip();
        // Each task hears of a truncation.
        let truncations = changes.iter().filter(|change| matches!(change, TableChange::Truncate { .. })).count();
        // A bad record ends where it is read.
        let is_bad = wrong.iter().filter(|&&wrong| wrong).count();
        sent += changes.len() - is_bad + moves + truncations * (parallelism - 1);
        bad += is_bad;
        t.change_all(["a", "b"][side], changes);
        result.apply_batch(t.take_changes::<Pair>("out")).unwrap_or_else(|error| panic!("{kind:?} {seed}: {error}"));
        let mut now = result.table();
        now.sort();
        assert_eq!(now, expected(kind, &tables), "{kind:?}, seed {seed}");
    }
    assert_eq!(t.take_bad().len(), bad, "{kind:?}, seed {seed}");
    let figures = t.figures("join");
    assert!(figures.accounts.iter().all(|account| account.is_balanced()), "{kind:?} {seed}: {figures:?}");
    assert_eq!(figures.accounts.iter().map(|account| account.rows).sum::<u64>(), sent as u64, "{kind:?}, seed {seed}");
    let held: Vec<u64> = tables.iter().map(|rows| rows.len() as u64).collect();
    assert_eq!(figures.state_rows, held, "{kind:?}, seed {seed}");
    assert!(t.plan().nodes().iter().all(|node| node.name != "a" || node.inputs.is_empty()), "the join is the table");
}

const KINDS: [Kind; 5] = [Kind::Inner, Kind::Left, Kind::Full, Kind::Exists, Kind::NotExists];

#[test]
fn a_join_that_holds_its_tables_answers_as_tables_would() {
    for kind in KINDS {
        for seed in 0..60 {
            check(kind, [1, 4][seed as usize % 2], seed, (5, 12, 12));
        }
    }
}

#[test]
fn it_does_so_with_batches_of_many_keys() {
    for kind in KINDS {
        check(kind, 1, 7, (900, 12, 1_500));
        check(kind, 4, 8, (900, 12, 1_500));
    }
}

#[test]
fn a_bad_change_of_a_table_with_two_readers_is_told_once() {
    let readers = |flow: &Flow| {
        let table = flow.table::<Item>(TestSource::new("a").with_patches());
        for name in ["first", "second"] {
            let other = flow.table::<Item>(TestSource::new(format!("b {name}")));
            let join = table.join(other).keep_forever().named(name);
            join.select(|a, b| (a.value, b.value)).sink_to(TestSink::new(name));
        }
    };
    for parallelism in [1, 4] {
        let mut t = TestFlow::parallel(parallelism, readers);
        let patch = Box::new(Patch::new(|_: Option<&Item>| Err("there is no row to patch".to_string())));
        t.change_all("a", vec![TableChange::<Item>::Patch { key: 1, time: None, patch }]);
        assert_eq!(t.take_bad().len(), 1);
    }
}
