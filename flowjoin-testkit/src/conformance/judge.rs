//! Whether a step gave what its case asks for.
//!
//! Kinds are compared by sign. The output of a step is a sequence or a multiset; but where both are legal changelogs,
//! two that leave the same rows standing are the same answer. Whatever the order, nothing is taken back that is not
//! standing, and padding goes before the row that fills it comes.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::cell::{Cell, CellRow, row_text, write_list};
use super::engine::{Observed, OutRow, SideRow};
use super::expect::Expected;
use super::model::{Case, Order};
use super::rules::Mismatch;
use super::spec;
use crate::ChangelogChecker;

/// Compares the steps of one case, in order.
pub struct Judge {
    order: Order,
    is_changelog: bool,
    widths: Vec<usize>,
    standing: ChangelogChecker<CellRow>,
}

impl Judge {
    /// A judge of a case that has not begun.
    pub fn new(case: &Case) -> Judge {
        let widths = spec::widths(&case.config);
        Judge { order: case.order, is_changelog: case.changelog_check, widths, standing: ChangelogChecker::new() }
    }

    /// Applies the output of a step to what stands.
    ///
    /// # Errors
    /// If the output is not a legal changelog, and the case says that its input is one.
    pub fn apply(&mut self, out: &[OutRow]) -> Result<(), Mismatch> {
        for change in out {
            let applied = self.standing.apply(change.kind, change.row.clone());
            if self.is_changelog && applied.is_err() {
                let before = format!("{} standing before it is taken back", row_text(&change.row));
                return Err(Mismatch::new("changelog", before, list(out)));
            }
        }
        if self.is_changelog { self.padding_order(out) } else { Ok(()) }
    }

    /// Compares what a step gave with what it must give.
    ///
    /// # Errors
    /// With the first part that differs.
    pub fn compare(&self, expected: &Expected, got: &Observed) -> Result<(), Mismatch> {
        self.out(&expected.out, &got.out)?;
        for (input, what) in ["late left", "late right"].into_iter().enumerate() {
            late(what, &expected.late[input], got.late.get(input).map_or(&[], Vec::as_slice))?;
        }
        for rows in got.late.iter().skip(2) {
            late("late", &[], rows)?;
        }
        if let Some(watermarks) = &expected.watermarks
            && *watermarks != got.watermarks
        {
            return Err(Mismatch::new("watermark", list(watermarks), list(&got.watermarks)));
        }
        if let Some(statuses) = &expected.statuses
            && *statuses != got.statuses
        {
            return Err(Mismatch::new("status", list(statuses), list(&got.statuses)));
        }
        if expected.state_rows.is_some() && expected.state_rows != got.state_rows {
            return Err(Mismatch::new("state rows", rows_held(&expected.state_rows), rows_held(&got.state_rows)));
        }
        match (&expected.alignment, &got.alignment) {
            (Some(asked), Some(came)) if asked == came => Ok(()),
            (None, _) => Ok(()),
            (Some(asked), Some(came)) => Err(Mismatch::new("alignment", asked, came)),
            (Some(asked), None) => Err(Mismatch::new("alignment", asked, "nothing")),
        }
    }

    fn out(&self, expected: &[OutRow], got: &[OutRow]) -> Result<(), Mismatch> {
        let is_same = match self.order {
            Order::Exact => expected.iter().map(signed).eq(got.iter().map(signed)),
            Order::Any => counted(expected) == counted(got),
        };
        let is_equal = is_same || self.is_changelog && net(expected) == net(got);
        if is_equal && times_agree(expected, got) {
            return Ok(());
        }
        Err(Mismatch::new("out", list(expected), list(got)))
    }

    // Within a step, the padding of a row is taken back before the first row that fills it, and comes back after the
    // last. Where a padding occurs twice, copies of the row take turns, and the order says nothing.
    fn padding_order(&self, out: &[OutRow]) -> Result<(), Mismatch> {
        if self.widths.len() < 2 {
            return Ok(());
        }
        for (place, padding) in out.iter().enumerate() {
            let is_once = out.iter().filter(|other| other.row == padding.row).count() == 1;
            if !is_once {
                continue;
            }
            let (before, after) = (&out[..place], &out[place + 1..]);
            let wrong_side = if padding.kind.adds() { after } else { before };
            let fills =
                |other: &&OutRow| other.kind.adds() != padding.kind.adds() && self.fills(&padding.row, &other.row);
            if wrong_side.iter().any(|other| fills(&other)) {
                let rule = format!("the padding {} not standing beside the rows that fill it", row_text(&padding.row));
                return Err(Mismatch::new("order of padding", rule, list(out)));
            }
        }
        Ok(())
    }

    // Whether `full` is `padded` with some of its missing inputs there.
    fn fills(&self, padded: &[Cell], full: &[Cell]) -> bool {
        if padded.len() != full.len() || padded.len() != self.widths.iter().sum::<usize>() || padded == full {
            return false;
        }
        let mut from = 0;
        self.widths.iter().all(|width| {
            let input = from..from + width;
            from += width;
            padded[input.clone()] == full[input.clone()] || padded[input].iter().all(Cell::is_null)
        })
    }
}

fn late(what: &'static str, expected: &[SideRow], got: &[SideRow]) -> Result<(), Mismatch> {
    let mut left: Vec<&SideRow> = got.iter().collect();
    let is_there = |asked: &SideRow| {
        let matches = |came: &&SideRow| came.row == asked.row && (asked.ts.is_none() || came.ts == asked.ts);
        left.iter().position(matches).map(|place| left.swap_remove(place)).is_some()
    };
    let all_there = expected.iter().all(is_there);
    if all_there && left.is_empty() { Ok(()) } else { Err(Mismatch::new(what, list(expected), list(got))) }
}

fn signed(change: &OutRow) -> (bool, &CellRow) {
    (change.kind.adds(), &change.row)
}

fn counted(changes: &[OutRow]) -> BTreeMap<(bool, &CellRow), i64> {
    let mut counts = BTreeMap::new();
    for change in changes {
        *counts.entry(signed(change)).or_insert(0) += 1;
    }
    counts
}

fn net(changes: &[OutRow]) -> BTreeMap<&CellRow, i64> {
    let mut counts = BTreeMap::new();
    for change in changes {
        *counts.entry(&change.row).or_insert(0) += if change.kind.adds() { 1 } else { -1 };
    }
    counts.retain(|_, count| *count != 0);
    counts
}

// Times are asserted only where the case gives them. Where the two sequences differ in rows that come and go, the
// times cannot be paired one by one: then each asserted one must occur.
fn times_agree(expected: &[OutRow], got: &[OutRow]) -> bool {
    let can_pair = counted(expected) == counted(got);
    let mut left: Vec<&OutRow> = got.iter().collect();
    expected.iter().filter(|asked| asked.ts.is_some()).all(|asked| {
        let matches = |came: &&OutRow| signed(came) == signed(asked) && came.ts == asked.ts;
        let place = left.iter().position(matches);
        if let (Some(place), true) = (place, can_pair) {
            left.swap_remove(place);
        }
        place.is_some() || !can_pair && !left.iter().any(|came| signed(came) == signed(asked))
    })
}

fn list<T: Display>(things: &[T]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_list(&mut text, "", things, "");
    if text.is_empty() { "nothing".to_string() } else { text }
}

fn rows_held(rows: &Option<Vec<u64>>) -> String {
    rows.as_ref().map_or("no report".to_string(), |rows| format!("{rows:?}"))
}

#[cfg(test)]
mod tests;
