use super::*;
use crate::conformance::model::Case;
use crate::conformance::{Engine, EngineError, Judge, Outcome, Record, play};
use flowjoin_core::RowKind;
use serde_json::json;

/// An engine that says, step by step, what it was told to.
struct Told(std::vec::IntoIter<Observed>);

impl Engine for Told {
    fn record(&mut self, _: Record) -> Result<(), EngineError> {
        Ok(())
    }
    fn watermark(&mut self, _: usize, _: i64) -> Result<(), EngineError> {
        Ok(())
    }
    fn processing_time(&mut self, _: i64) -> Result<(), EngineError> {
        Ok(())
    }
    fn observe(&mut self) -> Observed {
        self.0.next().unwrap_or_default()
    }
}

// The steps of a LEFT join in [-1, 1], and what an engine says to each; comes back with what fails.
fn verdict(more: Value, steps: Value, told: Vec<Observed>) -> Result<(), String> {
    let input = json!({"name": "L", "fields": ["k", "v"], "key": ["k"], "unique_key": null});
    let mut config = json!({"flavor": "sql", "type": "left", "lower": -1, "upper": 1, "inputs": [input, input]});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let case = json!({"id": "x", "operator": "interval_join", "config": config, "steps": steps});
    let case: Case = serde_json::from_value(case).unwrap();
    let mut rules = IntervalRules::new(IntervalSpec::of(&case).unwrap());
    match play(&case, &mut Told(told.into_iter()), &mut rules) {
        Outcome::Pass => Ok(()),
        Outcome::Fail(failure) => Err(format!("{:?} {}", failure.step, failure.mismatch.what)),
        Outcome::NotApplicable(reason) | Outcome::Malformed(reason) => Err(reason),
    }
}

fn record(input: usize, key: Value, ts: i64, expect: Value) -> Value {
    json!({"op": "record", "input": input, "kind": "+I", "row": [key, "v"], "ts": ts, "expect": expect})
}

fn watermarks(t: i64, expect: Value) -> [Value; 2] {
    [json!({"op": "watermark", "input": 0, "t": t}), json!({"op": "watermark", "input": 1, "t": t, "expect": expect})]
}

fn nothing() -> Observed {
    Observed::default()
}

fn state(left: u64, right: u64) -> Observed {
    Observed { state_rows: Some(vec![left, right]), ..nothing() }
}

fn padding(key: Value, ts: i64) -> Observed {
    let row = cells(&[key, json!("v"), json!(null), json!(null)]);
    Observed { out: vec![OutRow { kind: RowKind::Insert, row, ts: Some(ts) }], ..nothing() }
}

#[test]
fn fewer_rows_are_accepted_if_the_definition_keeps_no_more() {
    let [first, second] = watermarks(3, json!({"state": {"rows": [1, 1]}}));
    let steps = json!([record(0, json!(1), 1, json!({})), record(1, json!(1), 3, json!({})), first, second]);
    let with = |last| verdict(json!({}), steps.clone(), vec![nothing(), nothing(), nothing(), last]);
    // W = 3 > 1 + 1, but not > 3 + 1.
    assert_eq!(with(state(0, 1)), Ok(()));
    assert_eq!(with(state(1, 1)), Ok(()));
    assert_eq!(with(state(0, 0)), Err("Some(3) state rows".to_string()));
    assert_eq!(with(state(1, 2)), Err("Some(3) state rows".to_string()));
    let at_the_watermark = json!([record(0, json!(1), 2, json!({})), steps[2], steps[3]]);
    assert!(verdict(json!({}), at_the_watermark, vec![nothing(), nothing(), state(0, 1)]).is_err());
}

#[test]
fn a_late_row_of_the_sql_flavor_is_on_the_late_output_and_nowhere_else() {
    let padded = json!({"out": [{"kind": "+I", "row": [1, "v", null, null]}]});
    let [first, second] = watermarks(3, json!({}));
    let steps = json!([first, second, record(0, json!(1), 2, padded)]);
    let late =
        || Observed { late: vec![vec![SideRow { row: cells(&[json!(1), json!("v")]), ts: Some(2) }]], ..nothing() };
    let with = |last| verdict(json!({}), steps.clone(), vec![nothing(), nothing(), last]);
    assert_eq!(with(late()), Ok(()));
    assert_eq!(with(nothing()), Err("Some(2) late left".to_string()));
    assert_eq!(with(padding(json!(1), 2)), Err("Some(2) out".to_string()));
    // At exactly the watermark the row is in time, and is asked for what the case says.
    let in_time = json!([steps[0], steps[1], record(0, json!(1), 3, json!({}))]);
    assert_eq!(verdict(json!({}), in_time, vec![nothing(), nothing(), late()]), Err("Some(2) late left".to_string()));
}

#[test]
fn a_row_whose_only_partner_was_late_may_come_out_padded() {
    let pair = json!({"out": [{"kind": "+I", "row": [1, "v", 1, "v"]}]});
    let [first, second] = watermarks(3, json!({}));
    let [third, fourth] = watermarks(9, json!({}));
    let steps = json!([first, second, record(0, json!(1), 3, json!({})), record(1, json!(1), 2, pair), third, fourth]);
    let late_row = SideRow { row: cells(&[json!(1), json!("v")]), ts: Some(2) };
    let with = |last| {
        let late = Observed { late: vec![vec![], vec![late_row.clone()]], ..nothing() };
        verdict(json!({}), steps.clone(), vec![nothing(), nothing(), nothing(), late, nothing(), last])
    };
    assert_eq!(with(padding(json!(1), 3)), Ok(()));
    assert_eq!(with(padding(json!(2), 3)), Err("Some(5) out".to_string()));
    let twice = Observed { out: [padding(json!(1), 3).out, padding(json!(1), 3).out].concat(), ..nothing() };
    assert_eq!(with(twice), Err("Some(5) out".to_string()));
}

#[test]
fn the_watermark_of_the_sql_flavor_lies_between_flinks_and_that_of_the_inputs() {
    let [first, second] = watermarks(10, json!({"watermark": 8}));
    let sent = |watermark| Observed { watermarks: vec![watermark], ..nothing() };
    let with = |watermark| verdict(json!({}), json!([first, second]), vec![nothing(), sent(watermark)]);
    for (watermark, is_right) in [(6, false), (7, true), (8, true), (10, true), (11, false)] {
        assert_eq!(with(watermark).is_ok(), is_right, "{watermark}");
    }
    assert!(verdict(json!({}), json!([first, second]), vec![]).is_err());
    // One that was sent before may still be good enough.
    let [third, fourth] = watermarks(11, json!({"watermark": 9}));
    let steps = json!([first, second, third, fourth]);
    assert_eq!(verdict(json!({}), steps.clone(), vec![nothing(), sent(10)]), Ok(()));
    assert!(verdict(json!({}), steps, vec![nothing(), sent(7), nothing(), sent(6)]).is_err());
}

#[test]
fn no_row_is_older_than_the_watermark_sent_before_it() {
    let padded = |key: i64| json!({"out": [{"kind": "+I", "row": [key, "v", null, null]}]});
    let [first, second] = watermarks(10, padded(1));
    let steps = json!([record(0, json!(1), 2, json!({})), first, second]);
    let both = || Observed { watermarks: vec![9], ..padding(json!(1), 2) };
    assert_eq!(verdict(json!({}), steps.clone(), vec![nothing(), nothing(), both()]), Ok(()));
    let sent_before = Observed { watermarks: vec![2], ..nothing() };
    assert_eq!(verdict(json!({}), steps, vec![nothing(), sent_before, both()]), Err("Some(1) watermark".to_string()));
    let [third, fourth] = watermarks(11, json!({}));
    let old = json!([first, second, record(0, json!(1), 10, padded(1)), third, fourth]);
    let told = vec![nothing(), both(), padding(json!(1), 9)];
    assert_eq!(verdict(json!({}), old, told), Err("Some(2) out".to_string()));
}

#[test]
fn padding_may_come_before_it_is_asked_for_but_never_after() {
    let asked = json!({"out": [{"kind": "+I", "row": [1, "v", null, null]}]});
    let [first, second] = watermarks(10, json!({}));
    let [third, fourth] = watermarks(20, asked.clone());
    let steps = json!([record(0, json!(1), 2, json!({})), first, second, third, fourth]);
    let early = || vec![nothing(), nothing(), padding(json!(1), 2)];
    let late = || vec![nothing(), nothing(), nothing(), nothing(), padding(json!(1), 2)];
    let put_off = || json!({"min_cleanup": 5});
    assert_eq!(verdict(put_off(), steps.clone(), early()), Ok(()));
    assert_eq!(verdict(put_off(), steps.clone(), late()), Ok(()));
    assert_eq!(verdict(json!({}), steps.clone(), early()), Err("Some(2) out".to_string()));
    assert_eq!(verdict(put_off(), steps.clone(), vec![]), Err("Some(4) out".to_string()));
    let twice = vec![nothing(), nothing(), padding(json!(1), 2), nothing(), padding(json!(1), 2)];
    assert_eq!(verdict(put_off(), steps.clone(), twice), Err("None out".to_string()));
    let [_, never] = watermarks(20, json!({}));
    let unasked = json!([steps[0], steps[1], steps[2], steps[3], never]);
    assert_eq!(verdict(put_off(), unasked, early()), Err("None out".to_string()));
    // A null key is padded on arrival, whatever the clean-up.
    let asked_null = json!({"out": [{"kind": "+I", "row": [null, "v", null, null]}]});
    let [first, second] = watermarks(10, asked_null);
    let steps = json!([record(0, json!(null), 2, json!({})), first, second]);
    assert_eq!(verdict(json!({}), steps, vec![padding(json!(null), 2)]), Ok(()));
}

#[test]
fn in_processing_time_the_clock_is_the_frontier() {
    let clock = |t: i64, expect: Value| json!({"op": "processing_time", "t": t, "expect": expect});
    let row = json!({"op": "record", "input": 0, "kind": "+I", "row": [1, "v"]});
    let steps = json!([clock(10, json!({})), row, clock(12, json!({"state": {"rows": [1, 0]}}))]);
    let processing = json!({"time": "processing"});
    assert_eq!(verdict(processing.clone(), steps, vec![nothing(), nothing(), state(0, 0)]), Ok(()));
    let steps = json!([clock(10, json!({})), row, clock(11, json!({"state": {"rows": [1, 0]}}))]);
    assert!(verdict(processing, steps, vec![nothing(), nothing(), state(0, 0)]).is_err());
}

#[test]
fn a_judge_sees_all_rows_before_any_is_set_aside() {
    let case = json!({"id": "x", "operator": "interval_join", "steps": []});
    let mut judge = Judge::new(&serde_json::from_value(case).unwrap());
    let taken_back = OutRow { kind: RowKind::Delete, row: vec![Cell::Null], ts: None };
    assert!(judge.apply(&[taken_back]).is_err());
}
