//! Where the interval join differs from the letter of a case on purpose.
//!
//! 1. *State.* A row is evicted as soon as only late partners could still come: a left row when W > left.time + upper,
//!    a right row when W > right.time - lower. Flink may keep it longer. Fewer rows than asserted are accepted if they
//!    are exactly those that this definition keeps; more are never accepted.
//! 2. *Lateness, SQL.* Late is a row with a time before W, here as in every join. Flink's SQL join still joins or pads
//!    a late row as long as it holds the partners' range; here it goes to the late output, and what the case lets it
//!    give is not asked for. A row that only had such a partner may come out padded.
//! 3. *Watermark, SQL.* Flink holds the watermark back by the wider of the two waits, and one millisecond too little.
//!    Here it is held back by the rows that are held: the watermark sent on may lie anywhere from one before the
//!    asserted one up to that of the inputs. No row may come out that is older than the watermark sent before it, in
//!    any flavour.
//! 4. *Padding.* Flink puts off cleaning up by `min_cleanup`, and keeps a row with a null key until its interval has
//!    closed. Here padding comes as soon as it is certain, which is on arrival for a null key: at an earlier step than
//!    asserted, never at a later one, and in the end the same rows.
//!
//! The frontier of a watermark `t`, per flavour, is [`IntervalSpec::frontier`]; in processing time W is the clock.

use flowjoin_core::watermark::Rejoin;
use flowjoin_core::{EventTime, Merge, Progress, Watermark};
use serde_json::Value;

use super::cell::{Cell, CellRow, cells, row_text};
use super::engine::{Observed, OutRow, SideRow};
use super::expect::Expected;
use super::model::Action;
use super::rules::{Mismatch, Rules};
use super::spec::{Flavor, IntervalSpec, TimeOf};

/// The design differences of an interval join, at some point of a case.
pub struct IntervalRules {
    spec: IntervalSpec,
    merge: Merge,
    now: i64,
    /// Until when each row is held, by the definition; one list an input.
    held: [Vec<i128>; 2],
    late: [Vec<CellRow>; 2],
    /// Padding of rows whose partner was given up as late: it may come, and need not.
    widowed: Vec<CellRow>,
    early: Vec<CellRow>,
    sent: Option<i64>,
}

impl IntervalRules {
    /// The rules of a join, at the beginning of a case.
    pub fn new(spec: IntervalSpec) -> IntervalRules {
        let merge = Merge::new(2, Rejoin::AtOnce);
        IntervalRules {
            spec,
            merge,
            now: 0,
            held: Default::default(),
            late: Default::default(),
            widowed: Vec::new(),
            early: Vec::new(),
            sent: None,
        }
    }

    fn frontier(&self) -> Watermark {
        match self.spec.time {
            TimeOf::Event => self.merge.watermark(),
            TimeOf::Processing => Watermark::at(EventTime::from_millis(self.now)),
        }
    }

    fn play(&mut self, action: &Action, expected: &mut Expected) {
        let progress = match action {
            Action::Record { input, row, ts, .. } => return self.arrive(*input, row, *ts, expected),
            Action::ProcessingTime { t } => {
                self.now = *t;
                None
            }
            Action::Watermark { input, t } => Some((*input, Progress::At(self.spec.frontier(*t)))),
            Action::Idle { input } => Some((*input, Progress::Idle)),
            Action::Active { input } => Some((*input, Progress::Active)),
            Action::EndOfInput { input } => Some((*input, Progress::End)),
            Action::Tick { .. } | Action::Announce {} | Action::Flush {} => None,
            Action::Table { .. } | Action::TableAt { .. } | Action::Complete { .. } => None,
        };
        if let Some((input, progress)) = progress.filter(|(input, _)| *input < 2) {
            self.merge.update(input, progress);
        }
        let frontier = i128::from(self.frontier().time().as_millis());
        self.held.iter_mut().for_each(|held| held.retain(|&until| frontier <= until));
    }

    fn arrive(&mut self, input: usize, row: &[Value], ts: Option<i64>, expected: &mut Expected) {
        if input >= 2 {
            return;
        }
        let time = match self.spec.time {
            TimeOf::Event => ts.unwrap_or(0),
            TimeOf::Processing => self.now,
        };
        let frontier = self.frontier();
        if frontier.is_late(EventTime::from_millis(time)) {
            if self.spec.flavor == Flavor::Sql {
                self.late[input].push(cells(row));
                expected.late[input] = vec![SideRow { row: cells(row), ts: None }];
            }
            return;
        }
        let until = self.spec.held_until(input, time);
        if self.spec.inputs[input].key_of(row).is_some() && i128::from(frontier.time().as_millis()) <= until {
            self.held[input].push(until);
        }
    }

    // Difference 2: a row that was given up as late gives nothing, then and later.
    fn forget_late(&mut self, expected: &mut Expected) {
        let width = self.spec.inputs[0].fields.len();
        let missing = |cells: &[Cell]| vec![Cell::Null; cells.len()];
        for asked in std::mem::take(&mut expected.out) {
            let (left, right) = asked.row.split_at(width.min(asked.row.len()));
            let is_late = |side: usize, row: &[Cell]| self.late[side].iter().any(|late| late == row);
            match (is_late(0, left), is_late(1, right)) {
                (false, false) => expected.out.push(asked),
                (true, false) => self.widowed.push([missing(left), right.to_vec()].concat()),
                (false, true) => self.widowed.push([left.to_vec(), missing(right)].concat()),
                (true, true) => {}
            }
        }
    }

    // Difference 1.
    fn adapt_state(&self, expected: &mut Expected, got: &Observed) {
        let (Some(asserted), Some(held)) = (&mut expected.state_rows, &got.state_rows) else {
            return;
        };
        let [left, right] = &self.held;
        let defined = [left.len() as u64, right.len() as u64];
        let is_by_design =
            |side: usize| held[side] == asserted[side] || held[side] < asserted[side] && held[side] == defined[side];
        if asserted.len() == 2 && held.len() == 2 && is_by_design(0) && is_by_design(1) {
            asserted.clone_from(held);
        }
    }

    // Difference 3. Rows of a step come out before its watermark.
    fn adapt_watermark(&mut self, expected: &mut Expected, got: &Observed) -> Result<(), Mismatch> {
        let is_old = |out: &&OutRow| out.ts.zip(self.sent).is_some_and(|(ts, sent)| ts <= sent);
        if let (Some(old), Some(sent)) = (got.out.iter().find(is_old), self.sent) {
            return Err(Mismatch::new("out", format!("no row older than the watermark {sent} sent before"), old));
        }
        let before = self.sent;
        self.sent = got.watermarks.last().copied().or(before);
        if self.spec.flavor == Flavor::DataStream {
            return Ok(());
        }
        // The frontier of this flavour is the watermark of the inputs itself.
        let inputs = self.frontier().time().as_millis();
        let is_within = |sent: i64, least: i64| least <= sent && sent <= inputs;
        let asserted = expected.watermarks.take();
        let least = asserted.as_ref().and_then(|watermarks| watermarks.last()).map(|w| w.saturating_sub(1));
        let is_right = match (self.sent, least) {
            (None, least) => least.is_none(),
            (Some(sent), least) => is_within(sent, least.unwrap_or(i64::MIN)),
        };
        let moves_back = got.watermarks.first().zip(before).is_some_and(|(&first, before)| first < before);
        if is_right && !moves_back && got.watermarks.is_sorted() {
            return Ok(());
        }
        let asked = least.map_or(format!("at most {inputs}"), |least| format!("{least} to {inputs}"));
        Err(Mismatch::new("watermark", asked, format!("{:?}, after {before:?}", got.watermarks)))
    }

    // Difference 4: what came early is not asked for again, and what comes early is noted.
    fn adapt_padding(&mut self, expected: &mut Expected, got: &mut Observed) {
        let came = got.out.clone();
        let copies = |rows: &[OutRow], row: &CellRow| rows.iter().filter(|out| out.row == *row).count();
        let mut still_asked: Vec<OutRow> = Vec::new();
        for asked in expected.out.drain(..) {
            let is_here = copies(&still_asked, &asked.row) < copies(&came, &asked.row);
            match self.early.iter().position(|early| *early == asked.row) {
                Some(place) if !is_here => {
                    self.early.swap_remove(place);
                }
                _ => still_asked.push(asked),
            }
        }
        expected.out = still_asked;
        let mut kept: Vec<OutRow> = Vec::new();
        for out in got.out.drain(..) {
            let is_asked = copies(&kept, &out.row) < copies(&expected.out, &out.row);
            let widowed = self.widowed.iter().position(|widowed| *widowed == out.row);
            if let (false, Some(place)) = (is_asked, widowed) {
                self.widowed.swap_remove(place);
            } else if !is_asked && out.kind.adds() && self.may_be_early(&out.row) {
                self.early.push(out.row);
            } else {
                kept.push(out);
            }
        }
        got.out = kept;
    }

    fn may_be_early(&self, row: &[Cell]) -> bool {
        let [left, right] = &self.spec.inputs;
        let is_missing = |cells: &[Cell]| cells.iter().all(Cell::is_null);
        let Some((left_row, right_row)) = row.split_at_checked(left.fields.len()) else {
            return false;
        };
        let (input, present) = match self.spec.optional {
            [_, true] if is_missing(right_row) => (left, left_row),
            [true, _] if is_missing(left_row) => (right, right_row),
            _ => return false,
        };
        let has_null_key = input.key.iter().any(|&place| present.get(place).is_none_or(Cell::is_null));
        self.spec.min_cleanup.is_some() || has_null_key
    }
}

impl Rules for IntervalRules {
    fn adapt(&mut self, action: &Action, expected: &mut Expected, got: &mut Observed) -> Result<(), Mismatch> {
        self.play(action, expected);
        self.forget_late(expected);
        self.adapt_state(expected, got);
        self.adapt_watermark(expected, got)?;
        self.adapt_padding(expected, got);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Mismatch> {
        match self.early.first() {
            None => Ok(()),
            Some(row) => Err(Mismatch::new("out", "padding that some step asks for", row_text(row))),
        }
    }
}

#[cfg(test)]
mod tests;
