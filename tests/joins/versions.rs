//! Tables whose rows have versions: of a key the greatest counts, in whatever order rows and deletes come.

use expect_test::expect;
use flowjoin::io::{Patch, TableChange};
use flowjoin::prelude::*;
use flowjoin_testkit::{ChangelogChecker, TestFlow, TestSink, TestSource};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Item {
    #[key]
    id: u64,
    version: u64,
    name: String,
}

fn items(flow: &Flow) {
    flow.table::<Item>(TestSource::new("items")).ordered_by(|item| item.version).sink_to(TestSink::new("out"));
}

#[test]
fn a_delete_that_is_older_than_the_row_deletes_nothing() {
    let told = TestFlow::new(items).play(
        "items id=1 version=2 name=b
         items op=-D id=1 version=1 name=a
         items op=-D id=1 version=2 name=b
         items id=1 version=1 name=a
         items id=1 version=2 name=c",
    );
    expect![[r#"
        items id=1 version=2 name=b
          out: +I id 1, version 2, name b
        items op=-D id=1 version=1 name=a
        items op=-D id=1 version=2 name=b
          out: -D id 1, version 2, name b
        items id=1 version=1 name=a
        items id=1 version=2 name=c
          out: +I id 1, version 2, name c
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_delete_is_remembered_by_its_own_version() {
    let told = TestFlow::new(items).play(
        "items op=-D id=1 version=2 name=b
         items id=1 version=1 name=a
         items id=1 version=3 name=c
         items op=-D id=1 version=5 name=e
         items id=1 version=4 name=d
         items op=-D id=1 version=7 name=g
         items id=1 version=6 name=f
         items id=1 version=7 name=g",
    );
    expect![[r#"
        items op=-D id=1 version=2 name=b
        items id=1 version=1 name=a
        items id=1 version=3 name=c
          out: +I id 1, version 3, name c
        items op=-D id=1 version=5 name=e
          out: -D id 1, version 3, name c
        items id=1 version=4 name=d
        items op=-D id=1 version=7 name=g
        items id=1 version=6 name=f
        items id=1 version=7 name=g
          out: +I id 1, version 7, name g
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_delete_of_a_key_alone_has_the_version_of_the_row_that_stands() {
    let mut t = TestFlow::new(items);
    t.put("items", Item { id: 1, version: 2, name: "b".to_string() });
    t.delete::<Item>("items", 1);
    t.put("items", Item { id: 1, version: 1, name: "a".to_string() });
    assert_eq!(t.text("out"), "+I id 1, version 2, name b\n-D id 1, version 2, name b");
    t.put("items", Item { id: 1, version: 2, name: "c".to_string() });
    assert_eq!(t.text("out"), "+I id 1, version 2, name c");
}

// By the definition: of the changes with the greatest version the last counts, be it a row or a delete.
fn standing(changes: &[TableChange<Item>]) -> Option<Item> {
    let version = |change: &TableChange<Item>| match change {
        TableChange::Put(row) => Some(row.version),
        TableChange::Delete { row, .. } => row.as_ref().map(|row| row.version),
        TableChange::Patch { .. } | TableChange::Move(_) | TableChange::Truncate { .. } => None,
    };
    match changes.iter().max_by_key(|change| version(change)) {
        Some(TableChange::Put(row)) => Some(row.clone()),
        Some(_) | None => None,
    }
}

#[test]
fn whatever_the_order_the_last_of_the_greatest_version_counts() {
    let item = |version, name: usize| Item { id: 1, version, name: name.to_string() };
    for order in 0..4usize.pow(5) {
        let choices = (0..5).map(|at| (at, order / 4usize.pow(at as u32) % 4));
        let changes: Vec<TableChange<Item>> = choices
            .map(|(at, choice)| match choice {
                0 | 1 => TableChange::Put(item(choice as u64, at)),
                _ => TableChange::delete_row(item(choice as u64 - 2, at)),
            })
            .collect();
        // One by one and as one batch.
        for size in [1, changes.len()] {
            let mut t = TestFlow::new(items);
            for batch in changes.chunks(size) {
                t.change_all("items", batch.to_vec());
            }
            let mut table = ChangelogChecker::new().unique_by(|item: &Item| item.id);
            table.apply_batch(t.take_changes::<Item>("out")).unwrap();
            assert_eq!(table.table(), Vec::from_iter(standing(&changes)), "{changes:?}");
        }
    }
}

#[test]
fn what_is_told_in_part_is_completed_from_the_row_that_stands_and_not_from_an_older_one() {
    let item = |version, name: &str| Item { id: 1, version, name: name.to_string() };
    let patch = |version| {
        let patch = Patch::new(move |before: Option<&Item>| {
            before.map(|before| Item { version, ..before.clone() }).ok_or_else(|| "no row".to_string())
        });
        TableChange::Patch { key: 1, time: None, patch: Box::new(patch) }
    };
    let flow = |flow: &Flow| {
        let items = flow.table::<Item>(TestSource::new("items").with_patches());
        items.ordered_by(|item| item.version).sink_to(TestSink::new("out"));
    };
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, flow);
        t.change_all("items", vec![TableChange::Put(item(5, "five")), TableChange::Put(item(3, "three")), patch(6)]);
        t.change_all("items", vec![TableChange::delete_row(item(2, "two")), patch(7)]);
        assert_eq!(
            t.text("out"),
            "+I id 1, version 6, name five\n-U id 1, version 6, name five\n+U id 1, version 7, name five"
        );
        t.change_all(
            "items",
            vec![TableChange::delete_row(item(9, "nine")), TableChange::Put(item(8, "eight")), patch(10)],
        );
        assert_eq!(t.text("out"), "-D id 1, version 7, name five");
        assert_eq!(t.take_bad().len(), 1, "a row that was deleted is none");
    }
}
