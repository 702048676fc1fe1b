//! Tables out of changelogs: the newest row of each primary key, or the one that stands as of the watermark.

use flowjoin_core::Conflict;

use super::{Config, InputSpec, Unbuilt, malformed, not_applicable, places};
use crate::conformance::cell::CellRow;
use crate::conformance::model::Case;

/// The table of an `upsert_materializer` or `compacting_materializer` case.
#[derive(Clone, Debug, PartialEq)]
pub struct MaterializerSpec {
    /// The changelog; its key is the primary key of the table.
    pub input: InputSpec,
    /// The places of the values that make the upstream key, if the changes have one.
    pub upsert_key: Option<Vec<usize>>,
    /// What to do where two rows stand under a primary key as of the watermark, if the table is told as of that.
    pub conflict: Option<Conflict>,
}

impl MaterializerSpec {
    /// The table of such a case.
    ///
    /// # Errors
    /// If the configuration is not one that can be read here.
    pub fn of(case: &Case) -> Result<MaterializerSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let mut inputs = config.inputs(1..=1)?;
        let primary_key: Option<Vec<String>> = config.take("primary_key")?;
        let upsert_key: Option<Vec<String>> = config.take("upsert_key")?;
        let ttl: Option<i64> = config.take("ttl_ms")?;
        let conflict: Option<String> = config.take("conflict")?;
        let conflict = match conflict.as_deref() {
            None => None,
            Some("nothing") => Some(Conflict::KeepFirst),
            Some("error") => Some(Conflict::Fail),
            Some(other) => return Err(malformed(format!("`conflict` is `nothing` or `error`, not `{other}`"))),
        };
        config.finish()?;
        if ttl.is_some_and(|ttl| ttl > 0) {
            return Err(not_applicable("a table keeps the rows that stand: it has no time-to-live".to_string()));
        }
        let mut input = inputs.remove(0);
        let primary_key = primary_key.ok_or_else(|| malformed("a table needs a `primary_key`".to_string()))?;
        input.key = places(&primary_key, &input.name, &input.fields)?;
        let upsert_key = upsert_key.map(|names| places(&names, &input.name, &input.fields)).transpose()?;
        Ok(MaterializerSpec { input, upsert_key, conflict })
    }

    /// What makes two rows versions of one; none where only equal rows are.
    pub fn identity(&self) -> Option<impl Fn(&CellRow) -> CellRow + Send + Sync + 'static> {
        let places = self.upsert_key.clone()?;
        Some(move |row: &CellRow| places.iter().map(|&place| row[place].clone()).collect())
    }

    /// The primary key of a row.
    pub fn primary_key(&self, row: &CellRow) -> CellRow {
        self.input.key.iter().map(|&place| row[place].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::cell::cells;
    use serde_json::{Value, json};

    fn spec(more: Value) -> Result<MaterializerSpec, Unbuilt> {
        let mut config = json!({"inputs": [{"name": "I", "fields": ["id", "pk", "v"]}], "primary_key": ["pk"]});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let case = json!({"id": "x", "operator": "upsert_materializer", "config": config, "steps": []});
        MaterializerSpec::of(&serde_json::from_value(case).unwrap())
    }

    #[test]
    fn keys_become_places() {
        let row = cells(&[json!(1), json!(2), json!(3)]);
        let table = spec(json!({"upsert_key": ["id", "v"]})).unwrap();
        assert_eq!(
            (table.primary_key(&row), table.identity().unwrap()(&row)),
            (row[1..2].to_vec(), cells(&[json!(1), json!(3)]))
        );
        assert!(spec(json!({})).unwrap().identity().is_none());
        assert!(matches!(spec(json!({"primary_key": null})), Err(Unbuilt::Malformed(_))));
        assert!(matches!(spec(json!({"upsert_key": ["x"]})), Err(Unbuilt::Malformed(_))));
        assert!(matches!(spec(json!({"ttl_ms": 5})), Err(Unbuilt::NotApplicable(_))));
    }
}
