//! Stages on a circle, which send to themselves or to each other: full channels must not make them wait for ever.

use super::flow::*;
use flowjoin::connectors::{Generate, MemorySink};
use flowjoin::prelude::*;

// Some hundreds of batches, where a channel has room for one.
const ROWS: u64 = 20_000;
const MUTUAL_ROWS: u64 = 2_000;

// Facts of one key, and a table whose only row of that key changes while they come.
#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = ingestion)]
struct Fact {
    id: u64,
    left: u64,
}

#[test]
fn a_table_in_two_successive_joins_ends_with_the_smallest_of_channels() {
    for tasks in [2, 4] {
        let (mut config, out) = (quiet(tasks), MemorySink::new("out"));
        (config.channel_batches, config.page_rows, config.batch_rows) = (1, 256, 64);
        let flow = Flow::new("test");
        let changes = Generate::new("lefts", |i| Left { id: i % 8, at: i as i64 / 8 }).count(16);
        let lefts = flow.stream(changes).latest_by_key();
        let facts = flow.stream(Generate::new("facts", |id| Fact { id, left: 1 }).count(ROWS));
        let first = facts.key_by(|fact| fact.left).join(lefts.optional()).keep_forever().named("first");
        let once = first.select(|fact, left| (fact.id, fact.left, left.map_or(-1, |left| left.at)));
        let second = once.key_by(|row| row.1).join(lefts.optional()).keep_forever().named("second");
        second.select(|row, left| (row.0, row.2, left.map_or(-1, |left| left.at))).sink_to(out.clone());
        let report = run(async { flow.start(config)?.wait().await }).unwrap();
        assert!(report.is_balanced(), "{report}");
        let expected: Vec<(u64, i64, i64)> = (0..ROWS).map(|id| (id, 1, 1)).collect();
        assert_eq!(standing(&out), expected, "{tasks} tasks");
    }
}

#[test]
fn two_tables_that_are_joined_with_each_other_by_turns_end_with_the_smallest_of_channels() {
    for tasks in [2, 4] {
        let (mut config, out) = (quiet(tasks), MemorySink::new("out"));
        (config.channel_batches, config.page_rows, config.batch_rows) = (1, 256, 64);
        let flow = Flow::new("test");
        let lefts = flow.stream(Generate::new("lefts", left).count(MUTUAL_ROWS)).latest_by_key();
        let rights = flow.stream(Generate::new("rights", right).count(MUTUAL_ROWS)).latest_by_key();
        let one = lefts.join(rights.optional()).keep_forever().named("one").select(|a, b| (a.id, b.is_some()));
        let other = rights.join(lefts.optional()).keep_forever().named("other").select(|a, b| (a.id, b.is_some()));
        let both = one.key_by(|row| row.0).join(other.key_by(|row| row.0)).keep_forever().named("both");
        let again = both.select(|a, b| (a.0, a.1 && b.1)).key_by(|row| row.0 / MUTUAL_ROWS);
        let first = lefts.filter(|left| left.id == 0).key_by(|left| left.id);
        again.join(first).keep_forever().named("again").select(|a, _| *a).sink_to(out.clone());
        let report = run(async { flow.start(config)?.wait().await }).unwrap();
        assert!(report.is_balanced(), "{report}");
        let expected: Vec<(u64, bool)> = (0..MUTUAL_ROWS).map(|id| (id, true)).collect();
        assert_eq!(standing(&out), expected, "{tasks} tasks");
    }
}
