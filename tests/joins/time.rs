//! What a step tells of event time: which inputs are waited for, which one holds it back, and since when.

use flowjoin::prelude::*;
use flowjoin::{Final, InputState, Progress};
use flowjoin_testkit::{TestFlow, TestSink, TestSource};

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = at, max_future = "none", idle = "1m")]
struct Row {
    key: u64,
    at: EventTime,
}

fn row(second: i64) -> Row {
    Row { key: 1, at: EventTime::from_millis(1_000 * second) }
}

fn flow(flow: &Flow) {
    let [a, b] = ["a", "b"].map(|name| flow.stream::<Row>(TestSource::new(name)).key_by(|row| row.key));
    let join = a.interval_join(b.optional()).between(secs(0), secs(10)).named("j");
    join.select(|a, _| a.key).sink_to(TestSink::new("out"));
}

// State and watermark of each input, and which holds the join since when, in seconds.
fn told(t: &TestFlow, step: &str) -> (Vec<(InputState, String)>, Option<(usize, i64)>) {
    let time = t.time(step);
    let inputs = time.inputs.iter().map(|input| (input.state, input.watermark.to_string())).collect();
    (inputs, time.holding.map(|it| (it.input, it.since.as_millis() / 1_000)))
}

#[test]
fn active_idle_and_finished_inputs_are_told_apart_and_the_one_that_holds_is_named() {
    use InputState::{Active, Finished, Idle};
    let time = |second: i64| format!("1970-01-01T00:00:{second:02}.000Z");
    for tasks in [1, 4] {
        let mut t = TestFlow::parallel(tasks, flow);
        assert_eq!(told(&t, "j"), (vec![(Active, "none".to_string()); 2], None));
        t.send("a", row(5)).send("b", row(3));
        assert_eq!(told(&t, "j"), (vec![(Active, time(5)), (Active, time(3))], Some((1, 0))));
        t.advance_processing(secs(20)).send("a", row(9)).advance_processing(secs(30));
        assert_eq!(told(&t, "j"), (vec![(Active, time(9)), (Active, time(3))], Some((1, 0))), "since it came to 3 s");
        t.send("b", row(4));
        assert_eq!(told(&t, "j").1, Some((1, 50)));
        t.advance_processing(secs(31));
        assert_eq!(told(&t, "j"), (vec![(Idle, time(9)), (Active, time(4))], Some((1, 50))));
        t.send("a", row(9)).say("b", Progress::Idle);
        assert_eq!(told(&t, "j"), (vec![(Active, time(9)), (Idle, time(4))], None));
        assert_eq!(t.time("j").told.to_string(), time(5), "a row of 5 s may still come out");
        t.end("b");
        assert_eq!(told(&t, "j"), (vec![(Active, time(9)), (Finished, "end".to_string())], None));
    }
}

#[test]
fn the_inputs_of_a_source_are_its_partitions() {
    use InputState::{Active, Finished, Idle};
    for tasks in [1, 2, 4] {
        let mut t = TestFlow::partitioned(tasks, &[("a", 3)], flow);
        t.send_to("a", 0, row(7)).send_to("a", 2, row(3)).say_of("a", 1, Progress::Idle).advance_processing(secs(3));
        let states: Vec<InputState> = t.time("a").inputs.iter().map(|input| input.state).collect();
        assert_eq!(
            (states, t.time("a").watermark.to_string()),
            (vec![Active, Idle, Active], "1970-01-01T00:00:03.000Z".to_string())
        );
        t.say_of("a", 0, Progress::End);
        assert_eq!(t.time("a").inputs[0].state, Finished);
    }
}

// Rows of `a`, each with one of `b` (and of `d`) or without, which is told once its time is over; then those of them near a
// row of `c`.
fn closing(flow: &Flow, three: bool) {
    let input = |name: &str| flow.stream::<Row>(TestSource::new(name)).key_by(|row| row.key);
    let (a, b, c) = (input("a"), input("b"), input("c"));
    let ttl = secs(10).on(Clock::Event);
    let joined = match three {
        true => {
            let join = flowjoin::api::multi_join(a)
                .and(b.optional().emit(Final))
                .and(input("d").optional().emit(Final))
                .ttl(ttl);
            join.named("j").select(|a, _, _| a.clone())
        }
        false => a.join(b.optional().emit(Final)).ttl(ttl).named("j").select(|a, _| a.clone()),
    };
    let last = joined.key_by(|row| row.key).where_exists(c).between(-hours(1), hours(1)).named("last");
    last.into_rows().sink_to(TestSink::new("out"));
}

#[test]
fn a_join_is_not_idle_while_it_holds_rows_whose_gaps_are_told_at_the_end() {
    for three in [false, true] {
        let mut t = TestFlow::new(|flow| closing(flow, three));
        let inputs = if three { vec!["a", "b", "d"] } else { vec!["a", "b"] };
        t.send("a", row(1)).send("c", row(500));
        let idle = |t: &mut TestFlow| {
            for input in &inputs {
                t.say(input, Progress::Idle);
            }
        };
        idle(&mut t);
        let seconds = |t: &TestFlow| t.time("last").watermark.time().as_millis() / 1_000;
        assert_eq!(seconds(&t), 1, "a row of `a` is still to come out");
        t.send("a", row(20)).send("c", row(600));
        let last = t.figures("last").accounts[0];
        assert_eq!((last.rows, last.late, last.matched), (1, 0, 1));
        // The other row gets its partners: then nothing is owed.
        for input in &inputs[1..] {
            t.send(input, row(20));
        }
        idle(&mut t);
        assert_eq!((seconds(&t), t.figures("last").accounts[0].late), (600, 0));
    }
}

#[test]
fn where_reading_an_input_was_stopped_event_time_stays_whatever_the_others_say() {
    for tasks in [1, 4] {
        for stopped in ["a", "b"] {
            let other = if stopped == "a" { "b" } else { "a" };
            let mut t = TestFlow::parallel(tasks, |flow| {
                let [a, b] = ["a", "b"].map(|name| flow.stream::<Row>(TestSource::new(name)).key_by(|row| row.key));
                let join = a.optional().interval_join(b.optional()).between(secs(0), secs(10)).named("j");
                let gap = |row: Option<&Row>| row.map(|row| row.at);
                join.select(move |a, b| (gap(a), gap(b))).sink_to(TestSink::new("out"));
            });
            t.send("a", row(0)).send("b", row(30)).say(stopped, Progress::Stopped);
            t.send(other, row(500)).watermark(other, row(900).at).say(other, Progress::Idle).send(other, row(950));
            t.end(other);
            assert_eq!(t.text("out"), "", "`{stopped}` may still have a partner for any of them");
        }
    }
}
