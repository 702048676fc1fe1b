//! Where tables differ from the letter of a case on purpose.
//!
//! 1. *Updates.* A table says which row it takes back (`-U`) before the one that takes its place (`+U`), so that what it
//!    says is a changelog for everyone. Flink's materializer says `+U` alone, to a sink that knows the primary key.
//! 2. *Deletes.* What a table takes back is the row that stood. Flink passes on the row of the retraction, which may
//!    differ in all but the primary key.

use std::collections::BTreeMap;

use flowjoin_core::RowKind;

use super::cell::CellRow;
use super::engine::{Observed, OutRow};
use super::expect::Expected;
use super::model::Action;
use super::rules::{Mismatch, Rules};
use super::spec::MaterializerSpec;

/// The design differences of a table, at some point of a case.
pub struct MaterializerRules {
    spec: MaterializerSpec,
    // The row of each primary key, as the case has it.
    standing: BTreeMap<CellRow, CellRow>,
}

impl MaterializerRules {
    /// The rules of a table, at the beginning of a case.
    pub fn new(spec: MaterializerSpec) -> MaterializerRules {
        MaterializerRules { spec, standing: BTreeMap::new() }
    }

    // What an expected change does to the row of its primary key.
    fn change(&mut self, asked: OutRow) -> Vec<OutRow> {
        if asked.row.len() != self.spec.input.fields.len() {
            return vec![asked];
        }
        let key = self.spec.primary_key(&asked.row);
        let before =
            if asked.kind.adds() { self.standing.insert(key, asked.row.clone()) } else { self.standing.remove(&key) };
        let Some(before) = before else { return vec![asked] };
        match asked.kind.adds() {
            true => vec![OutRow { kind: RowKind::UpdateBefore, row: before, ts: None }, asked],
            false => vec![OutRow { row: before, ..asked }],
        }
    }
}

impl Rules for MaterializerRules {
    fn adapt(&mut self, _: &Action, expected: &mut Expected, _: &mut Observed) -> Result<(), Mismatch> {
        let asked = std::mem::take(&mut expected.out);
        expected.out = asked.into_iter().flat_map(|asked| self.change(asked)).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::cell::cells;
    use serde_json::json;

    #[test]
    fn changes_are_of_the_row_that_stands_under_the_primary_key() {
        let config = json!({"inputs": [{"name": "I", "fields": ["pk", "v"]}], "primary_key": ["pk"]});
        let case = json!({"id": "x", "operator": "upsert_materializer", "config": config, "steps": []});
        let mut rules = MaterializerRules::new(MaterializerSpec::of(&serde_json::from_value(case).unwrap()).unwrap());
        let mut adapted = |kind: RowKind, value: &str| {
            let out = vec![OutRow { kind, row: cells(&[json!(1), json!(value)]), ts: None }];
            let mut expected = Expected { out, ..Expected::default() };
            rules.adapt(&Action::Flush {}, &mut expected, &mut Observed::default()).unwrap();
            expected.out.iter().map(OutRow::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(adapted(RowKind::Insert, "a"), r#"+I[1, "a"]"#);
        assert_eq!(adapted(RowKind::UpdateAfter, "b"), r#"-U[1, "a"] +U[1, "b"]"#);
        assert_eq!(adapted(RowKind::Delete, "other"), r#"-D[1, "b"]"#);
        assert_eq!(adapted(RowKind::Delete, "b"), r#"-D[1, "b"]"#);
    }
}
