//! What the driver does with what sources say, and how it refuses what no source could send.

use super::*;
use crate::{TestSink, TestSource};
use flowjoin_core::io::TableChange;
use flowjoin_core::state::MemStore;
use flowjoin_core::{Keyed, TimeError, Watermarks, secs};
use serde::{Deserialize, Serialize};

/// No row moves the watermark.
#[derive(Clone, Serialize, Deserialize)]
struct Note {
    id: u8,
    at: EventTime,
}

impl Event for Note {
    fn event_time(&self, _: EventTime) -> Result<EventTime, TimeError> {
        Ok(self.at)
    }

    fn watermarks() -> Watermarks {
        Watermarks::of_field("at").out_of_order(Span::MAX).any_future().idle(secs(10))
    }
}

impl Keyed for Note {
    type Key = u8;

    fn key(&self) -> u8 {
        self.id
    }
}

fn at(secs: i64) -> EventTime {
    EventTime::from_millis(secs * 1_000)
}

fn note(secs: i64) -> Note {
    Note { id: 1, at: at(secs) }
}

fn streams(flow: &Flow) {
    let [a, b] = ["b", "a"].map(|name| flow.stream::<Note>(TestSource::new(name)).key_by(|note| note.id));
    a.join(b).keep_forever().select(|a, _| a.id).sink_to(TestSink::new("out"));
}

fn with_table(flow: &Flow) {
    let notes = flow.stream::<Note>(TestSource::new("notes")).key_by(|note| note.id);
    let rows = flow.table::<Note>(TestSource::new("rows"));
    notes.snapshot_join(rows).select(|note, _| note.id).sink_to(TestSink::new("out"));
}

fn reached(t: &mut TestFlow) -> Option<Progress> {
    t.take_progress("out").pop()
}

#[test]
fn a_source_that_a_test_lets_be_idle_wakes_with_its_next_row() {
    let at = |secs| Progress::At(Watermark::at(at(secs)));
    for parallelism in [1, 4] {
        let mut t = TestFlow::parallel(parallelism, streams);
        t.say("b", Progress::Idle).say("a", at(5));
        assert_eq!(reached(&mut t), Some(at(5)));
        t.send("b", note(7)).say("a", at(20));
        assert_eq!(reached(&mut t), None);
        t.say("b", at(9));
        assert_eq!(reached(&mut t), Some(at(9)));
        // It is then idle by the clock only when it has been quiet for long enough again.
        t.advance_processing(secs(8)).say("b", Progress::Idle);
        assert_eq!(reached(&mut t), Some(at(20)));
        t.say("b", Progress::Active).advance_processing(secs(8)).say("a", at(30));
        assert_eq!(reached(&mut t), None);
        t.advance_processing(secs(2));
        assert_eq!(reached(&mut t), Some(at(30)));
    }
}

#[test]
#[should_panic(expected = "`a` has ended, and no row comes after the end")]
fn a_source_that_has_ended_takes_no_rows() {
    TestFlow::new(streams).end("a").send("b", note(1)).send("a", note(1));
}

#[test]
#[should_panic(expected = "`rows` has ended, and no row comes after the end")]
fn a_table_that_has_ended_takes_no_rows() {
    TestFlow::new(with_table).end_all().put("rows", note(1));
}

#[test]
#[should_panic(expected = "partition 1 of `a` has ended, and no row comes after the end")]
fn a_partition_that_has_ended_takes_no_rows() {
    let mut t = TestFlow::partitioned(1, &[("a", 2)], streams);
    t.say_of("a", 1, Progress::End).send_to("a", 0, note(1)).send_to("a", 1, note(1));
}

#[test]
#[should_panic(expected = "`notes` is a stream and no table: its rows are sent by `send`")]
fn a_row_is_not_put_into_a_stream() {
    TestFlow::new(with_table).put("notes", note(1));
}

#[test]
#[should_panic(expected = "`rows` is a table: its rows are told by `put`, `delete` or `change_all`")]
fn a_row_is_not_sent_to_a_table() {
    TestFlow::new(with_table).change_all("rows", vec![TableChange::Put(note(1))]).send("rows", note(1));
}

#[test]
#[should_panic(expected = "no source is named `aa`; there are `a`, `b`")]
fn a_source_that_is_not_there_is_told_with_those_that_are() {
    TestFlow::new(streams).send("aa", note(1));
}

#[test]
#[should_panic(expected = "no sink is named `in`; there is `out`")]
fn a_sink_that_is_not_there_is_told_with_the_one_that_is() {
    TestFlow::new(streams).text("in");
}

#[test]
#[should_panic(expected = "no step is named `row`; there are `key_by`, `notes`, `notes-rows-snapshot`, `out`, `rows`")]
fn a_step_is_named_once_though_others_have_its_name() {
    TestFlow::new(with_table).figures("row");
}

#[test]
#[should_panic(expected = "processing time does not go back: it is asked to go on by -1s")]
fn processing_time_does_not_go_back() {
    TestFlow::new(streams).advance_processing(-secs(1));
}

#[test]
#[should_panic(expected = "`notes` is no join, so that no rows wait for each other there")]
fn what_is_no_join_has_no_waits() {
    TestFlow::new(with_table).delays("notes");
}

fn kept(flow: &Flow) {
    let notes = flow.stream::<Note>(TestSource::new("notes"));
    notes.filter(|note| note.id > 1).map(|note| note.id).sink_to(TestSink::new("out"));
}

fn with_id(id: u8, secs: i64) -> Note {
    Note { id, at: at(secs) }
}

#[test]
fn what_came_after_the_last_commit_has_not_been() {
    for parallelism in [1, 4] {
        let mut t = TestFlow::parallel(parallelism, kept).keep_in(MemStore::default());
        t.send("notes", with_id(2, 1)).watermark("notes", at(1)).commit();
        t.send("notes", with_id(3, 2)).watermark("notes", at(2)).end("notes").crash();
        assert_eq!((t.text("out").as_str(), t.figures("notes").accounts[0].rows), ("+I 2", 1));
        assert_eq!(t.take_progress("out").pop(), Some(Progress::At(Watermark::at(at(1)))));
        t.send("notes", with_id(4, 3)).end("notes").commit().crash();
        assert_eq!((t.text("out").as_str(), t.figures("notes").accounts[0].rows), ("+I 4", 2));
        assert_eq!(t.time("notes").inputs[0].watermark, Watermark::END);
        let refused =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(t.send("notes", note(5)).time("out"))));
        assert!(refused.is_err(), "it has ended, and knows it after the crash");
    }
}

#[test]
fn a_partition_that_was_quiet_for_a_while_is_idle_when_the_rest_has_passed() {
    let mut t = TestFlow::new(kept).keep_in(MemStore::default());
    t.send("notes", note(1)).advance_processing(secs(6)).commit().crash();
    t.advance_processing(secs(3));
    assert_ne!(reached(&mut t), Some(Progress::Idle));
    t.advance_processing(secs(1));
    assert_eq!(reached(&mut t), Some(Progress::Idle));
}

#[test]
fn another_flow_goes_on_in_the_store_if_it_is_the_same() {
    let mut t = TestFlow::parallel(2, kept).keep_in(MemStore::default());
    t.send("notes", with_id(2, 1)).advance_processing(secs(7)).commit();
    t.send("notes", with_id(3, 2));
    let store = t.into_store();
    let mut t = TestFlow::parallel(2, kept).keep_in(store);
    assert_eq!((t.processing(), t.figures("notes").accounts[0].rows), (ProcTime::from_millis(7_000), 1));
    t.send("notes", with_id(4, 3)).commit();
    assert_eq!((t.text("out").as_str(), t.figures("notes").accounts[0].rows), ("+I 4", 2));
    let mut store = Some(t.into_store());
    let mut refused = |tasks: usize, flow: fn(&Flow)| {
        let store =
            store.take().unwrap_or_else(|| TestFlow::parallel(2, kept).keep_in(MemStore::default()).into_store());
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(TestFlow::parallel(tasks, flow).keep_in(store));
        }));
        *refused.unwrap_err().downcast::<String>().unwrap()
    };
    let of_another = |rest: &str| format!("the state that was kept is not of this flow: {rest}");
    assert_eq!(refused(4, kept), of_another("it was kept by 2 tasks a stage, and there are 4 now"));
    assert!(refused(2, streams).starts_with(&of_another("step 0 of it is `notes` (Source, ")));
}
