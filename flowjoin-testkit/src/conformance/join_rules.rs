//! Where regular and multi joins differ from the letter of a case on purpose.
//!
//! A row with a null key is not held: it matches nothing, and whether it comes out padded is decided when it
//! arrives. So fewer rows may be held than asserted, by as many as there are rows with a null key.

use super::engine::Observed;
use super::expect::Expected;
use super::model::Action;
use super::rules::{Mismatch, Rules};
use super::spec::JoinSpec;

/// The design differences of a regular or multi join.
pub struct JoinRules {
    spec: JoinSpec,
    null_keys: Vec<u64>,
}

impl JoinRules {
    /// The rules of a join, at the beginning of a case.
    pub fn new(spec: JoinSpec) -> JoinRules {
        let null_keys = vec![0; spec.inputs.len()];
        JoinRules { spec, null_keys }
    }
}

impl Rules for JoinRules {
    fn adapt(&mut self, action: &Action, expected: &mut Expected, got: &mut Observed) -> Result<(), Mismatch> {
        if let Action::Record { input, kind, row, .. } = action
            && self.spec.inputs.get(*input).is_some_and(|spec| spec.key_of(row).is_none())
        {
            let count = &mut self.null_keys[*input];
            *count = if kind.adds() { *count + 1 } else { count.saturating_sub(1) };
        }
        let (Some(asserted), Some(held)) = (&mut expected.state_rows, &got.state_rows) else {
            return Ok(());
        };
        let nulls = self.null_keys.iter();
        let is_by_design =
            |((asserted, held), nulls): ((&u64, &u64), &u64)| held <= asserted && asserted - held <= *nulls;
        if asserted.len() == held.len() && asserted.iter().zip(held).zip(nulls).all(is_by_design) {
            asserted.clone_from(held);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_rows_with_a_null_key_need_not_be_held() {
        let config =
            json!({"type": "left", "inputs": [{"fields": ["k"], "key": ["k"]}, {"fields": ["k"], "key": ["k"]}]});
        let case =
            serde_json::from_value(json!({"id": "x", "operator": "regular_join", "config": config, "steps": []}));
        let mut rules = JoinRules::new(JoinSpec::regular(&case.unwrap()).unwrap());
        let mut held = |key: serde_json::Value, asserted: u64, held: u64| {
            let action = Action::Record { input: 1, kind: flowjoin_core::RowKind::Insert, row: vec![key], ts: None };
            let mut expected = Expected { state_rows: Some(vec![0, asserted]), ..Expected::default() };
            let mut got = Observed { state_rows: Some(vec![0, held]), ..Observed::default() };
            rules.adapt(&action, &mut expected, &mut got).unwrap();
            expected.state_rows == got.state_rows
        };
        assert!(!held(json!(1), 1, 0));
        assert!(held(json!(null), 2, 1));
        assert!(held(json!(null), 3, 1));
        assert!(!held(json!(2), 4, 1));
        assert!(!held(json!(2), 5, 6));
    }
}
