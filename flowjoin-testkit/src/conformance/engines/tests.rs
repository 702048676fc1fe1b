use super::*;
use crate::conformance::{Outcome, run};
use serde_json::{Value, json};

fn verdict(operator: &str, config: Value, strict: Value, steps: Value) -> Result<(), String> {
    let case = json!({"id": "x", "operator": operator, "config": config, "strict": strict, "steps": steps});
    match run(&serde_json::from_value(case).unwrap()) {
        Outcome::Pass => Ok(()),
        Outcome::Fail(failure) => Err(failure.to_string()),
        Outcome::NotApplicable(reason) => Err(format!("n/a: {reason}")),
        Outcome::Malformed(reason) => Err(format!("malformed: {reason}")),
    }
}

fn row(ts: i64) -> Value {
    json!({"op": "record", "kind": "+I", "row": [1], "ts": ts})
}

fn tick(t: i64, expect: Value) -> Value {
    json!({"op": "tick", "t": t, "expect": expect})
}

#[test]
fn frontiers_are_one_beyond_flinks_numbers_and_the_end_is_the_end() {
    for t in [i64::MIN, -1, 0, 41] {
        assert_eq!(frontier(t).time().as_millis(), t + 1);
        assert_eq!(flink_number(frontier(t)), t);
    }
    assert_eq!(frontier(i64::MAX), Watermark::END);
    assert_eq!(flink_number(Watermark::END), i64::MAX);
}

#[test]
fn a_generator_stays_behind_the_newest_row_and_never_goes_back() {
    let config = json!({"max_out_of_orderness": 10});
    let strict = json!(["watermark", "status"]);
    let steps = json!([
        tick(0, json!({})),
        row(100),
        tick(1, json!({"watermark": 89})),
        row(95),
        tick(2, json!({})),
        row(101),
        tick(3, json!({"watermark": 90}))
    ]);
    assert_eq!(verdict("watermark_generator", config.clone(), strict.clone(), steps), Ok(()));
    let wrong = json!([row(100), tick(1, json!({"watermark": 90}))]);
    let said = verdict("watermark_generator", config, strict, wrong).unwrap_err();
    assert_eq!(said, "step 1, tick t 1: watermark: expected 90, got 89");
}

#[test]
fn a_generator_may_tell_its_state_early_but_not_before_its_time_nor_late() {
    let config = json!({"idle_timeout_ms": 10});
    let with = |steps| verdict("watermark_generator", config.clone(), json!(["status"]), steps);
    let idle = || json!({"status": "idle"});
    let none = || json!({});
    assert_eq!(with(json!([tick(9, none()), tick(10, idle())])), Ok(()));
    assert_eq!(with(json!([tick(10, none()), tick(21, idle())])), Ok(()));
    assert!(with(json!([tick(9, idle())])).unwrap_err().contains("expected idle, got nothing"));
    assert!(with(json!([tick(10, none()), tick(11, none())])).unwrap_err().starts_with("end of the case: status"));
    let wakes = json!([tick(10, idle()), row(1), tick(11, json!({"status": "active"}))]);
    assert_eq!(with(wakes), Ok(()));
    let refused = verdict("watermark_generator", json!({"idle_timeout_ms": 0}), json!([]), json!([]));
    assert_eq!(refused, Err("n/a: refused by design: a source cannot be idle after 0 ms".to_string()));
}

#[test]
fn what_no_engine_plays_is_not_applicable() {
    let said = |operator, config, steps| verdict(operator, config, json!([]), steps).unwrap_err();
    assert_eq!(said("crystal_ball", json!({}), json!([])), "n/a: there is no engine for `crystal_ball`");
    let merge = json!({"channels": 2, "flavor": "inputs"});
    let record = json!([{"op": "record", "kind": "+I", "row": [1]}]);
    assert_eq!(said("watermark_merge", merge, record), "n/a: the engine of watermark_merge has no `record`");
    assert_eq!(said("watermark_merge", json!({}), json!([])), "malformed: the case has no option `channels`");
    let flavor = said("watermark_merge", json!({"channels": 1, "flavor": "mint"}), json!([]));
    assert_eq!(flavor, "malformed: there is no flavor `mint`");
}

#[test]
fn an_alignment_without_anyone_to_wait_for_allows_everything() {
    let announce =
        |max_allowed: i64| json!({"op": "announce", "expect": {"state": {"max_allowed": max_allowed, "paused": []}}});
    let steps = json!([
        announce(i64::MAX), {"op": "watermark", "input": 0, "t": 5}, announce(15), {"op": "idle", "input": 0}, announce(i64::MAX)
    ]);
    assert_eq!(verdict("watermark_alignment", json!({"max_drift": 10}), json!([]), steps), Ok(()));
}
