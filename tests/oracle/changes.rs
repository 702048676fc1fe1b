//! Random changelogs over several inputs, well-formed and ill-formed.
//!
//! A history is drawn as wishes: a row to be put here, one to be taken back there. What becomes of a wish depends on
//! what is held by then, so that any part of a history is a history too, and shrinking may leave out what it likes.

use flowjoin::{Event, EventTime, Flow, RowKind, Span, Stream, TimeError, Watermarks};
use flowjoin_testkit::TestSource;
use flowjoin_testkit::oracle::Contents;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// Few keys, few ids and fewer values, so that rows meet, replace each other and are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row {
    pub key: Option<u8>,
    /// What makes it unique within its key, where rows have a unique key.
    pub id: u8,
    pub value: u8,
}

/// A change on its way in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arrival {
    pub kind: RowKind,
    pub row: Row,
}

impl Event for Arrival {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(EventTime::from_millis(0))
    }

    fn watermarks() -> Watermarks {
        Watermarks::of_field("time").out_of_order(Span::MAX).any_future()
    }
}

pub fn arrivals(flow: &Flow, name: &str) -> Stream<Arrival> {
    flow.stream(TestSource::new(name))
}

/// What no two rows of an input share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unique {
    /// Nothing: rows are a bag.
    Bag,
    /// The key that they are joined by.
    Key,
    /// Their id, under each key.
    Id,
}

impl Unique {
    pub fn contents(self) -> Contents<Row> {
        match self {
            Unique::Bag => Contents::bag(),
            Unique::Key => Contents::unique_by(|row: &Row| row.key),
            Unique::Id => Contents::unique_by(|row: &Row| (row.key, row.id)),
        }
    }

    // The held row that one with this key and id replaces.
    fn former(self, held: &Contents<Row>, row: &Row) -> Option<Row> {
        let is_it = |other: &&Row| match self {
            Unique::Bag => false,
            Unique::Key => other.key == row.key,
            Unique::Id => (other.key, other.id) == (row.key, row.id),
        };
        held.rows().iter().find(is_it).cloned()
    }
}

pub fn unique() -> impl Strategy<Value = Unique> {
    prop_oneof![Just(Unique::Bag), Just(Unique::Key), Just(Unique::Id)]
}

/// One change of one input.
#[derive(Clone, Debug)]
pub struct Change {
    pub input: usize,
    pub kind: RowKind,
    pub row: Row,
}

/// Changes that come at once; those of one input are one batch of it.
pub type Batch = Vec<Change>;

/// How a changelog is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formed {
    /// A row is taken back only if it is held, and before one with its unique key comes.
    Well,
    /// As it comes: rows are put again, updated without being taken back first, and taken back without being there.
    /// Those with a null key are not held by a join, which takes them at their word; so they are well-formed here too.
    Ill,
}

#[derive(Clone, Debug)]
struct Wish {
    input: usize,
    row: Row,
    what: What,
    ends_batch: bool,
}

#[derive(Clone, Debug)]
enum What {
    Put,
    Update,
    /// A row that is held, by its place among them.
    TakeBack(prop::sample::Index),
    /// The row as it is drawn, held or not.
    TakeBackAny,
}

fn row() -> impl Strategy<Value = Row> {
    let key = prop::option::weighted(0.9, 0..3u8);
    (key, 0..3u8, 0..3u8).prop_map(|(key, id, value)| Row { key, id, value })
}

fn wish(inputs: usize) -> impl Strategy<Value = Wish> {
    let what = prop_oneof![
        4 => Just(What::Put),
        2 => Just(What::Update),
        2 => any::<prop::sample::Index>().prop_map(What::TakeBack),
        1 => Just(What::TakeBackAny),
    ];
    (0..inputs, row(), what, prop::bool::weighted(0.4)).prop_map(|(input, row, what, ends_batch)| Wish {
        input,
        row,
        what,
        ends_batch,
    })
}

/// Batches of changes of inputs with these unique keys.
pub fn batches(unique: Vec<Unique>, formed: Formed, steps: usize) -> impl Strategy<Value = Vec<Batch>> {
    let wishes = prop::collection::vec(wish(unique.len()), 0..steps);
    wishes.prop_map(move |wishes| come_true(&unique, formed, wishes))
}

/// Batches with many changes of one key in the first of two inputs, and few in the second.
pub fn large_batches(unique: Vec<Unique>, formed: Formed) -> impl Strategy<Value = Vec<Batch>> {
    let of_one_key = |wish: Wish, first: bool, id: u8, ends_batch: bool| {
        let row = Row { key: Some(0), id, ..wish.row };
        Wish { input: usize::from(!first), row, ends_batch, ..wish }
    };
    let wish = (wish(2), prop::bool::weighted(0.97), 0..30u8, prop::bool::weighted(0.02));
    let wish = wish.prop_map(move |(wish, first, id, ends_batch)| of_one_key(wish, first, id, ends_batch));
    prop::collection::vec(wish, 0..200).prop_map(move |wishes| come_true(&unique, formed, wishes))
}

fn come_true(unique: &[Unique], formed: Formed, wishes: Vec<Wish>) -> Vec<Batch> {
    let mut held: Vec<Contents<Row>> = unique.iter().map(|unique| unique.contents()).collect();
    let mut batches = vec![Vec::new()];
    for wish in wishes {
        let ends_batch = wish.ends_batch;
        for change in changes_of(unique, formed, &held, wish) {
            held[change.input].apply(change.kind, change.row.clone());
            batches.last_mut().expect("there is one").push(change);
        }
        if ends_batch {
            batches.push(Vec::new());
        }
    }
    batches.retain(|batch| !batch.is_empty());
    batches
}

fn changes_of(unique: &[Unique], formed: Formed, held: &[Contents<Row>], wish: Wish) -> Vec<Change> {
    let Wish { input, row, what, .. } = wish;
    let rows = held[input].rows();
    let change = |kind, row| Change { input, kind, row };
    let former = unique[input].former(&held[input], &row);
    let formed = if row.key.is_some() { formed } else { Formed::Well };
    match (formed, what) {
        (Formed::Well, What::Put | What::Update) => match former {
            Some(former) => vec![change(RowKind::UpdateBefore, former), change(RowKind::UpdateAfter, row)],
            None => vec![change(RowKind::Insert, row)],
        },
        (Formed::Ill, What::Put) => vec![change(RowKind::Insert, row)],
        (Formed::Ill, What::Update) => vec![change(RowKind::UpdateAfter, row)],
        (_, What::TakeBack(place)) if !rows.is_empty() => {
            let held = place.get(rows).clone();
            // Of a unique key the other fields do not matter.
            let is_told = unique[input] == Unique::Bag || formed == Formed::Well || held.key.is_none();
            let value = if is_told { held.value } else { row.value };
            vec![change(RowKind::Delete, Row { value, ..held })]
        }
        (Formed::Ill, What::TakeBackAny) => vec![change(RowKind::UpdateBefore, row)],
        (_, What::TakeBack(_) | What::TakeBackAny) => vec![],
    }
}
