//! Which rows the inputs of a join hold, by definition: bags or one row a unique key under each key, with a
//! time-to-live.

use flowjoin_core::{ProcTime, RowKind};
use serde_json::Value;

use super::{CellRow, InputSpec, cells};

/// The rows that are held, at some point of a case.
#[derive(Clone, Debug)]
pub struct Holdings {
    inputs: Vec<InputSpec>,
    now: ProcTime,
    rows: Vec<Vec<Held>>,
}

#[derive(Clone, Debug)]
struct Held {
    row: CellRow,
    unique: Option<CellRow>,
    key: Option<CellRow>,
    due: Option<ProcTime>,
}

/// What a row does to what is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is one more.
    New,
    /// It takes the place of this row, which had its unique key.
    Replaced(CellRow),
    /// It takes a row back.
    Removed,
    /// It takes back a row that is not held: it was never there, or has expired.
    Orphan,
}

impl Holdings {
    /// Nothing held yet, the clock at 0.
    pub fn new(inputs: &[InputSpec]) -> Holdings {
        Holdings { inputs: inputs.to_vec(), now: ProcTime::default(), rows: vec![Vec::new(); inputs.len()] }
    }

    /// The clock moves; what has lived for its time leaves.
    pub fn clock(&mut self, t: i64) {
        self.now = ProcTime::from_millis(t);
        let now = self.now;
        self.rows.iter_mut().for_each(|rows| rows.retain(|held| held.due.is_none_or(|due| due > now)));
    }

    /// A row comes in. On an input that there is not, nothing is new.
    pub fn apply(&mut self, input: usize, kind: RowKind, row: &[Value]) -> Effect {
        let Some(spec) = self.inputs.get(input) else {
            return Effect::New;
        };
        let unique = spec.unique_of(row);
        let key = spec.key_of(row);
        let due = spec.ttl.map(|ttl| self.now.plus(ttl));
        let row = cells(row);
        let rows = &mut self.rows[input];
        let is_same = |held: &Held| match &unique {
            Some(_) => held.unique == unique && held.key == key,
            None => !kind.adds() && held.row == row,
        };
        let before = rows.iter().position(is_same).map(|place| rows.remove(place).row);
        if kind.adds() {
            rows.push(Held { row, unique, key, due });
        }
        match (kind.adds(), before) {
            (true, None) => Effect::New,
            (true, Some(former)) => Effect::Replaced(former),
            (false, Some(_)) => Effect::Removed,
            (false, None) => Effect::Orphan,
        }
    }

    /// How many of the rows held by an input have a null key.
    pub fn null_keys(&self, input: usize) -> u64 {
        self.rows.get(input).map_or(0, |rows| rows.iter().filter(|held| held.key.is_none()).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{New, Orphan, Removed, Replaced};
    use RowKind::{Delete, Insert, UpdateAfter};
    use flowjoin_core::millis;
    use serde_json::json;

    #[test]
    fn a_bag_counts_rows_and_a_unique_key_replaces_them() {
        let bag = InputSpec {
            name: "L".to_string(),
            fields: vec!["k".to_string(), "v".to_string()],
            key: vec![0],
            unique_key: None,
            ttl: None,
        };
        let table = InputSpec { unique_key: Some(vec![0]), ttl: Some(millis(10)), ..bag.clone() };
        let mut held = Holdings::new(&[bag, table]);
        let row = |v: &str| [json!(1), json!(v)];
        let played = [(Insert, "a"), (Insert, "a"), (Delete, "a"), (Delete, "b"), (Delete, "a"), (Delete, "a")];
        let effects = played.map(|(kind, v)| held.apply(0, kind, &row(v)));
        assert_eq!(effects, [New, New, Removed, Orphan, Removed, Orphan]);
        let played = [(Insert, "a"), (UpdateAfter, "b"), (Delete, "anything"), (Insert, "a")];
        let replaced = Replaced(cells(&row("a")));
        assert_eq!(played.map(|(kind, v)| held.apply(1, kind, &row(v))), [New, replaced, Removed, New]);
        held.clock(10);
        assert_eq!(held.apply(1, Delete, &row("a")), Orphan);
        held.apply(0, Insert, &[json!(null), json!("a")]);
        assert_eq!((held.null_keys(0), held.null_keys(1)), (1, 0));
    }
}
