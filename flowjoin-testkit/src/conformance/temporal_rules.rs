//! Where temporal and snapshot joins differ from the letter of a case on purpose.
//!
//! 1. *Null keys.* A probe with a null key meets nothing, which is certain when it arrives: beside an optional table it
//!    comes out then, and not when the watermark has passed its time. So it may come at an earlier step than asserted,
//!    never at a later one.
//!
//! (Rows of different keys come out in order of time, and those of one key too, where Flink keeps the order of arrival; the
//! comparison of steps accepts that, as the same rows stand after them.)

use super::cell::{Cell, CellRow, row_text};
use super::engine::Observed;
use super::expect::Expected;
use super::model::Action;
use super::rules::{Mismatch, Rules};
use super::spec::TemporalSpec;

/// The design differences of a temporal or snapshot join, at some point of a case.
pub struct TemporalRules {
    spec: TemporalSpec,
    early: Vec<CellRow>,
}

impl TemporalRules {
    /// The rules of a join, at the beginning of a case.
    pub fn new(spec: TemporalSpec) -> TemporalRules {
        TemporalRules { spec, early: Vec::new() }
    }

    fn is_padded_null(&self, row: &[Cell]) -> bool {
        let Some((probe, rest)) = row.split_at_checked(self.spec.inputs[0].fields.len()) else { return false };
        self.spec.optional
            && self.spec.inputs[0].key.iter().any(|&place| probe[place].is_null())
            && rest.iter().all(Cell::is_null)
    }
}

impl Rules for TemporalRules {
    fn adapt(&mut self, _: &Action, expected: &mut Expected, got: &mut Observed) -> Result<(), Mismatch> {
        expected.out.retain(|asked| match self.early.iter().position(|early| *early == asked.row) {
            Some(place) => {
                self.early.swap_remove(place);
                false
            }
            None => true,
        });
        let asked: Vec<CellRow> = expected.out.iter().map(|asked| asked.row.clone()).collect();
        let is_early = |row: &CellRow| !asked.contains(row) && self.is_padded_null(row);
        let early: Vec<CellRow> = got.out.iter().map(|out| out.row.clone()).filter(is_early).collect();
        got.out.retain(|out| !early.contains(&out.row));
        self.early.extend(early);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Mismatch> {
        match self.early.first() {
            None => Ok(()),
            Some(row) => Err(Mismatch::new("out", "padding that some step asks for", row_text(row))),
        }
    }
}
