//! Tables out of changelogs, out of facts and out of sources of changes: one row a key, and one net change of it a batch.

use std::collections::BTreeSet;

use flowjoin::io::TableChange;
use flowjoin::{Event, EventTime, Flow, Keyed, RowKind, Table, TimeError, Watermarks};
use flowjoin_testkit::oracle::Contents;
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink, TestSource};
use proptest::prelude::*;

use super::changes::{Arrival, Batch, Change, Formed, Row, Unique, arrivals, batches};
use super::config;
use super::history::check_accounts;

impl Keyed for Row {
    type Key = Option<u8>;

    fn key(&self) -> Option<u8> {
        self.key
    }
}

impl Event for Row {
    fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> {
        Ok(arrival)
    }

    fn watermarks() -> Watermarks {
        Watermarks::ingestion()
    }
}

/// Where a table comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A changelog, in which equal rows are the same.
    Changelog,
    /// A changelog, in which rows of one id are the same.
    ChangelogById,
    /// Facts, of which the newest counts.
    Facts,
    /// A source that puts and deletes.
    Source,
}

impl Origin {
    fn build(self, flow: &Flow) {
        let changes = || arrivals(flow, "a").as_changelog(|arrival: Arrival| (arrival.kind, arrival.row));
        let table: Table<Option<u8>, Row> = match self {
            Origin::Changelog => changes().to_table(),
            Origin::ChangelogById => changes().to_table_by(|row| row.id),
            Origin::Facts => arrivals(flow, "a").map(|arrival| arrival.row).latest_by_key(),
            Origin::Source => flow.table::<Row>(TestSource::new("a")),
        };
        table.named("table").changes().sink_to(TestSink::new("out"));
    }

    fn unique(self) -> Unique {
        match self {
            Origin::Changelog => Unique::Bag,
            Origin::ChangelogById => Unique::Id,
            Origin::Facts | Origin::Source => Unique::Key,
        }
    }

    // What of a batch comes in: facts are not taken back.
    fn takes(self, change: &Change) -> bool {
        self != Origin::Facts || change.kind.adds()
    }

    fn send(self, t: &mut TestFlow, changes: &[Change]) {
        let arrival = |change: &Change| Arrival { kind: change.kind, row: change.row.clone() };
        let table_change = |change: &Change| match change.kind.adds() {
            true => TableChange::Put(change.row.clone()),
            false => TableChange::delete_row(change.row.clone()),
        };
        match self {
            Origin::Changelog | Origin::ChangelogById | Origin::Facts => {
                t.send_all("a", changes.iter().map(arrival).collect());
            }
            Origin::Source => {
                t.change_all("a", changes.iter().map(table_change).collect());
            }
        }
    }
}

// Each key changes once at the most, and only to what it was not.
fn check_net(changes: &[(RowKind, Row)]) -> Result<(), TestCaseError> {
    let mut seen = BTreeSet::new();
    let mut changes = changes.iter().peekable();
    while let Some((kind, row)) = changes.next() {
        prop_assert!(seen.insert(row.key), "{:?} changes twice in one batch", row.key);
        if *kind == RowKind::UpdateBefore {
            let after = changes.next_if(|(kind, after)| *kind == RowKind::UpdateAfter && after.key == row.key);
            prop_assert!(after.is_some_and(|(_, after)| after != row), "{:?} becomes {:?}", row, after);
        } else {
            prop_assert_ne!(*kind, RowKind::UpdateAfter);
        }
    }
    Ok(())
}

fn check(parallelism: usize, origin: Origin, batches: &[Batch]) -> Result<(), TestCaseError> {
    let mut t = TestFlow::parallel(parallelism, |flow| origin.build(flow));
    let mut held: Contents<Row> = origin.unique().contents();
    let mut standing = ChangelogChecker::new().unique_by(|row: &Row| row.key);
    for batch in batches {
        let batch: Vec<Change> = batch.iter().filter(|change| origin.takes(change)).cloned().collect();
        held.apply_all(batch.iter().map(|change| (change.kind, change.row.clone())));
        origin.send(&mut t, &batch);
        let changes = t.take_changes::<Row>("out");
        check_net(&changes)?;
        standing.apply_batch(changes).map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
        let mut visible = held.newest_by(|row| row.key);
        visible.sort();
        prop_assert_eq!(standing.table(), visible);
    }
    let figures = t.figures("table");
    prop_assert_eq!(figures.state_rows, vec![held.rows().len() as u64]);
    prop_assert_eq!(figures.accounts[0].orphan, held.orphans());
    check_accounts(&t, "table")
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn a_table_shows_the_newest_row_that_stands_under_each_key(
        (origin, batches) in prop_oneof![
            Just(Origin::Changelog), Just(Origin::ChangelogById), Just(Origin::Facts), Just(Origin::Source),
        ].prop_flat_map(|origin| (Just(origin), batches(vec![origin.unique()], Formed::Ill, 30))),
    ) {
        for parallelism in [1, 4] {
            check(parallelism, origin, &batches)?;
        }
    }
}
