//! Joins and tables as engines, by their definition over what the inputs hold: the whole result is computed anew at
//! every step, and what is different is said.

use std::collections::BTreeMap;

use flowjoin_core::watermark::Rejoin;
use flowjoin_core::{Merge, Progress, RowKind};

use crate::conformance::cell::{Cell, CellRow, cells};
use crate::conformance::engine::{Engine, EngineError, Observed, OutRow, Record};
use crate::conformance::engines::{flink_number, frontier};
use crate::conformance::spec::{Condition, JoinSpec, MaterializerSpec};
use crate::oracle::{Contents, Role, left_deep};

/// A result that is asked for anew.
pub struct Definition {
    held: Vec<Contents<CellRow>>,
    result: Box<dyn Fn(&[Contents<CellRow>]) -> Vec<CellRow>>,
    said: Vec<CellRow>,
    // Records of a batch that is not full; none where each is worked on at once.
    waiting: Option<Vec<Record>>,
    merge: Merge,
    watermarks: Vec<i64>,
}

impl Definition {
    /// The join of a specification without times-to-live.
    pub fn join(spec: JoinSpec) -> Definition {
        let contents = |input: usize| match spec.inputs[input].unique_key.clone() {
            None => Contents::bag(),
            Some(unique) => {
                let places = [spec.inputs[input].key.clone(), unique].concat();
                Contents::unique_by(move |row: &CellRow| pick(row, &places))
            }
        };
        let held = (0..spec.inputs.len()).map(contents).collect();
        let waiting = spec.batch.map(|_| Vec::new());
        Definition { waiting, ..Definition::of(held, move |held| join(&spec, held)) }
    }

    /// The table of a specification.
    pub fn table(spec: MaterializerSpec) -> Definition {
        let held = match spec.identity() {
            None => Contents::bag(),
            Some(identity) => Contents::unique_by(identity),
        };
        Definition::of(vec![held], move |held| held[0].newest_by(|row| spec.primary_key(row)))
    }

    fn of(held: Vec<Contents<CellRow>>, result: impl Fn(&[Contents<CellRow>]) -> Vec<CellRow> + 'static) -> Definition {
        let merge = Merge::new(held.len(), Rejoin::AtOnce);
        Definition { held, result: Box::new(result), said: Vec::new(), waiting: None, merge, watermarks: Vec::new() }
    }

    fn apply(&mut self, record: &Record) {
        self.held[record.input].apply(record.kind, cells(&record.row));
    }
}

fn pick(row: &CellRow, places: &[usize]) -> CellRow {
    places.iter().map(|&place| row[place].clone()).collect()
}

fn join(spec: &JoinSpec, held: &[Contents<CellRow>]) -> Vec<CellRow> {
    let key = |input: usize| {
        let places = spec.inputs[input].key.clone();
        move |row: &CellRow| Some(pick(row, &places)).filter(|key| !key.iter().any(Cell::is_null))
    };
    let inputs: Vec<_> = (0..held.len()).map(|input| (spec.roles[input], held[input].keyed(key(input)))).collect();
    let on = |so_far: &[Option<CellRow>], next: &CellRow| {
        let rows: Vec<Option<&[Cell]>> = so_far.iter().map(Option::as_deref).chain([Some(next.as_slice())]).collect();
        Condition::all_hold(&spec.conditions[so_far.len()], &rows)
    };
    let shown = |row: Vec<Option<CellRow>>| {
        let of = |input: usize| row[input].clone().unwrap_or_else(|| vec![Cell::Null; spec.inputs[input].fields.len()]);
        spec.shown().map(of).collect::<Vec<_>>().concat()
    };
    left_deep(&inputs, on).into_iter().map(shown).collect()
}

impl Engine for Definition {
    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        match &mut self.waiting {
            Some(waiting) => waiting.push(record),
            None => self.apply(&record),
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        let waiting = self.waiting.as_mut().ok_or(EngineError::Unsupported("flush"))?;
        for record in std::mem::take(waiting) {
            self.apply(&record);
        }
        Ok(())
    }

    fn watermark(&mut self, input: usize, t: i64) -> Result<(), EngineError> {
        self.flush()?;
        self.watermarks.extend(self.merge.update(input, Progress::At(frontier(t))).watermark.map(flink_number));
        Ok(())
    }

    fn processing_time(&mut self, _: i64) -> Result<(), EngineError> {
        Ok(())
    }

    fn observe(&mut self) -> Observed {
        let result = (self.result)(&self.held);
        let mut difference: BTreeMap<&CellRow, i64> = BTreeMap::new();
        self.said.iter().for_each(|row| *difference.entry(row).or_insert(0) -= 1);
        result.iter().for_each(|row| *difference.entry(row).or_insert(0) += 1);
        let change = |kind: RowKind, row: &CellRow, copies: i64| {
            (0..copies).map(|_| OutRow { kind, row: row.clone(), ts: None }).collect::<Vec<_>>()
        };
        let gone = difference.iter().flat_map(|(row, copies)| change(RowKind::Delete, row, -copies));
        let come = difference.iter().flat_map(|(row, &copies)| change(RowKind::Insert, row, copies));
        let out = gone.chain(come).collect();
        self.said = result;
        let state_rows = self.held.iter().map(|held| held.rows().len() as u64).collect();
        let watermarks = std::mem::take(&mut self.watermarks);
        Observed { out, state_rows: Some(state_rows), watermarks, ..Observed::default() }
    }
}

/// Whether nothing expires, so that what the inputs hold is all that there is to know.
pub fn is_for_ever(spec: &JoinSpec) -> bool {
    spec.inputs.iter().all(|input| input.ttl.is_none())
}

/// Whether a reference that tells of expiry, and of nothing else but bags and replacement, can play it.
pub fn is_product(spec: &JoinSpec) -> bool {
    spec.conditions.concat().is_empty() && spec.roles.iter().all(|role| matches!(role, Role::Required | Role::Optional))
}
