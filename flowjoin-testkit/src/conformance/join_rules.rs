//! Where regular and multi joins differ from the letter of a case on purpose.
//!
//! 1. *State.* A row with a null key need not be held: it matches nothing, and whether it comes out padded is decided
//!    when it arrives. So fewer rows may be held than asserted, by as many as have a null key.
//! 2. *Replacement.* A row under a unique key that is held replaces it, and what was said with the former row is taken
//!    back: at most one row stands. Flink's answer to input that is upsert-only leaves the taking back to the sink.
//!    So more may be taken back than asserted, if it is results of the row that is replaced.
//! 3. *Orphans.* The retraction of a row that is not held, because it was never there or has expired, says nothing.
//!    Flink joins it, and takes back what may not be standing.

use std::collections::BTreeMap;

use super::cell::CellRow;
use super::engine::{Observed, OutRow};
use super::expect::Expected;
use super::model::Action;
use super::rules::{Mismatch, Rules};
use super::spec::{Effect, Holdings, JoinSpec};

/// The design differences of a regular or multi join, at some point of a case.
pub struct JoinRules {
    spec: JoinSpec,
    held: Holdings,
}

impl JoinRules {
    /// The rules of a join, at the beginning of a case.
    pub fn new(spec: JoinSpec) -> JoinRules {
        let held = Holdings::new(&spec.inputs);
        JoinRules { spec, held }
    }

    // Difference 1.
    fn adapt_state(&self, expected: &mut Expected, got: &Observed) {
        let (Some(asserted), Some(held)) = (&mut expected.state_rows, &got.state_rows) else {
            return;
        };
        let is_by_design = |input: usize| {
            held[input] <= asserted[input] && asserted[input] - held[input] <= self.held.null_keys(input)
        };
        if asserted.len() == held.len() && (0..held.len()).all(is_by_design) {
            asserted.clone_from(held);
        }
    }

    // Difference 2.
    fn adapt_replacement(&self, input: usize, former: &CellRow, expected: &mut Expected, got: &Observed) {
        let from: usize = self.spec.inputs[..input].iter().map(|spec| spec.fields.len()).sum();
        let is_of_former = |out: &CellRow| out.get(from..from + former.len()) == Some(former);
        let mut difference = net(&got.out);
        for (row, count) in net(&expected.out) {
            *difference.entry(row).or_insert(0) -= count;
        }
        if difference.iter().all(|(row, &count)| count == 0 || count < 0 && is_of_former(row)) {
            expected.out.clone_from(&got.out);
        }
    }
}

fn net(changes: &[OutRow]) -> BTreeMap<&CellRow, i64> {
    let mut counts = BTreeMap::new();
    for change in changes {
        *counts.entry(&change.row).or_insert(0) += if change.kind.adds() { 1 } else { -1 };
    }
    counts
}

impl Rules for JoinRules {
    fn adapt(&mut self, action: &Action, expected: &mut Expected, got: &mut Observed) -> Result<(), Mismatch> {
        match action {
            Action::ProcessingTime { t } => self.held.clock(*t),
            // The results of a batch are compared by what they leave standing, so here is nothing to adapt.
            Action::Record { input, kind, row, .. } if self.spec.batch.is_some() => {
                self.held.apply(*input, *kind, row);
            }
            Action::Record { input, kind, row, .. } => match self.held.apply(*input, *kind, row) {
                Effect::Replaced(former) => self.adapt_replacement(*input, &former, expected, got),
                Effect::Orphan => expected.out.clear(),
                Effect::New | Effect::Removed => {}
            },
            Action::Watermark { .. } | Action::Idle { .. } | Action::Active { .. } | Action::EndOfInput { .. } => {}
            Action::Tick { .. } | Action::Announce {} | Action::Flush {} => {}
            Action::Table { .. } | Action::TableAt { .. } | Action::Complete { .. } => {}
        }
        self.adapt_state(expected, got);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::cells;
    use flowjoin_core::RowKind;
    use serde_json::{Value, json};

    fn rules() -> JoinRules {
        let config = json!({"type": "inner", "inputs": [
            {"name": "L", "fields": ["k", "v"], "key": ["k"]},
            {"name": "R", "fields": ["k", "v"], "key": ["k"], "unique_key": ["k"]}]});
        let case = json!({"id": "x", "operator": "regular_join", "config": config, "steps": []});
        JoinRules::new(JoinSpec::regular(&serde_json::from_value(case).unwrap()).unwrap())
    }

    fn record(kind: RowKind, key: Value, value: &str) -> Action {
        serde_json::from_value(json!({"op": "record", "input": 1, "kind": kind, "row": [key, value]})).unwrap()
    }

    fn out(kind: RowKind, key: i64, value: &str) -> OutRow {
        OutRow { kind, row: cells(&[json!(9), json!("l"), json!(key), json!(value)]), ts: None }
    }

    #[test]
    fn only_rows_with_a_null_key_need_not_be_held() {
        let mut rules = rules();
        let mut held = |key: Value, asserted: u64, held: u64| {
            let mut expected = Expected { state_rows: Some(vec![0, asserted]), ..Expected::default() };
            let mut got = Observed { state_rows: Some(vec![0, held]), ..Observed::default() };
            rules.adapt(&record(RowKind::Insert, key, "v"), &mut expected, &mut got).unwrap();
            expected.state_rows == got.state_rows
        };
        assert!(!held(json!(1), 1, 0));
        assert!(held(json!(null), 2, 1));
        assert!(!held(json!(2), 4, 1));
        assert!(!held(json!(3), 4, 5));
    }

    #[test]
    fn only_what_a_row_replaces_may_be_taken_back_beside_what_is_asked_for() {
        use RowKind::{Delete, Insert, UpdateAfter};
        let accepts = |came: Vec<OutRow>| {
            let mut rules = rules();
            rules.held.apply(1, Insert, &[json!(1), json!("old")]);
            let mut expected = Expected { out: vec![out(Insert, 1, "new")], ..Expected::default() };
            let mut got = Observed { out: came, ..Observed::default() };
            rules.adapt(&record(UpdateAfter, json!(1), "new"), &mut expected, &mut got).unwrap();
            expected.out == got.out
        };
        assert!(accepts(vec![out(Delete, 1, "old"), out(Insert, 1, "new")]));
        assert!(accepts(vec![out(Insert, 1, "new")]));
        assert!(!accepts(vec![out(Delete, 2, "old"), out(Insert, 1, "new")]));
        assert!(!accepts(vec![out(Insert, 1, "old"), out(Insert, 1, "new")]));
        assert!(!accepts(vec![out(Delete, 1, "old")]));
        assert!(!accepts(vec![]));
    }

    #[test]
    fn the_retraction_of_what_is_not_held_says_nothing() {
        let mut rules = rules();
        let mut asked = |value: &str| {
            let mut expected = Expected { out: vec![out(RowKind::Delete, 1, value)], ..Expected::default() };
            rules.adapt(&record(RowKind::Delete, json!(1), value), &mut expected, &mut Observed::default()).unwrap();
            expected.out.len()
        };
        assert_eq!(asked("never there"), 0);
        rules.held.apply(1, RowKind::Insert, &[json!(1), json!("there")]);
        let mut expected = Expected { out: vec![out(RowKind::Delete, 1, "there")], ..Expected::default() };
        rules.adapt(&record(RowKind::Delete, json!(1), "there"), &mut expected, &mut Observed::default()).unwrap();
        assert_eq!(expected.out.len(), 1);
    }
}
