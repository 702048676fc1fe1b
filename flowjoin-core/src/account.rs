//! Accounting: every input row of every operator is in exactly one bucket.
//!
//! The buckets of an input always add up to the rows that came in; [`Account::is_balanced`] says so and the tests
//! hold it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a row came out on a side output.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its time-to-live was over before it met a partner.
    Expired,
    /// The interval in which partners could come has closed.
    IntervalClosed,
    /// The last window that it was in has fired, and is over.
    WindowClosed,
    /// All inputs have ended.
    EndOfInput,
    /// Its key is null, and a null matches nothing.
    NullKey,
    /// Its time was before the watermark of the operator.
    Late,
    /// A table has never had a row of its key, as far as was known then.
    NeverSeen,
    /// A table had no row of its key that held at its time: none yet, or none any more.
    NoVersion,
    /// The row of its key was deleted from a table at or before its time.
    Deleted,
}

impl Reason {
    /// The reason as it is printed: `expired`, `interval_closed`, …
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Expired => "expired",
            Reason::IntervalClosed => "interval_closed",
            Reason::WindowClosed => "window_closed",
            Reason::EndOfInput => "end_of_input",
            Reason::NullKey => "null_key",
            Reason::Late => "late",
            Reason::NeverSeen => "never_seen",
            Reason::NoVersion => "no_version",
            Reason::Deleted => "deleted",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the rows of one input of one operator have gone. Every row is in exactly one of the buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Rows that came in.
    pub rows: u64,
    /// Rows that met a partner (or, where nothing is joined, went through).
    pub matched: u64,
    /// Rows that left without a partner because their interval or window closed or the input ended.
    pub unmatched: u64,
    /// Rows whose time was before the watermark.
    pub late: u64,
    /// Rows that left by time-to-live without a partner.
    pub expired: u64,
    /// Rows with a null key.
    pub null_key: u64,
    /// Records that could not become rows.
    pub bad: u64,
    /// Records that a source was told to pass over, as they are of something else.
    pub passed_over: u64,
    /// Retractions that took back a row that was held without a partner, and those rows.
    pub retracted: u64,
    /// Retractions of rows that were not held.
    pub orphan: u64,
    /// Rows that are held and have met no partner yet.
    pub open: u64,
    /// Of the unmatched: rows whose key a table had never seen.
    pub never_seen: u64,
    /// Of the unmatched: rows for whose key a table had no row that held at their time, and none that was deleted.
    pub no_version: u64,
}

impl Account {
    /// A row that was open has met a partner.
    #[inline]
    pub fn meets(&mut self) {
        self.matched += 1;
        self.open -= 1;
    }

    /// Whether the buckets add up to the rows that came in.
    pub fn is_balanced(&self) -> bool {
        self.rows == self.sum()
    }

    fn sum(&self) -> u64 {
        self.matched
            + self.unmatched
            + self.late
            + self.expired
            + self.null_key
            + self.bad
            + self.passed_over
            + self.retracted
            + self.orphan
            + self.open
    }

    /// Adds the figures of another task.
    pub fn add(&mut self, other: &Account) {
        self.rows += other.rows;
        self.matched += other.matched;
        self.unmatched += other.unmatched;
        self.late += other.late;
        self.expired += other.expired;
        self.null_key += other.null_key;
        self.bad += other.bad;
        self.passed_over += other.passed_over;
        self.retracted += other.retracted;
        self.orphan += other.orphan;
        self.open += other.open;
        self.never_seen += other.never_seen;
        self.no_version += other.no_version;
    }
}

/// A number as the accounting prints it: 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What an operator has to tell about itself: its accounts, one an input, and the state that it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpFigures {
    /// One account an input.
    pub accounts: Vec<Account>,
    /// Rows held, one number an input.
    pub state_rows: Vec<u64>,
    /// Bytes that the state has taken from the allocator, for rows and tables; what rows own beyond their own size
    /// (the text of a `String`) is not in it.
    pub state_bytes: u64,
    /// Rows sent on the main output.
    pub emitted: u64,
    /// What records were of that a source was told to pass over: a few names.
    pub passed_over_of: BTreeSet<String>,
}

impl OpFigures {
    /// Adds the figures of another task of the same operator.
    pub fn add(&mut self, other: &OpFigures) {
        self.accounts.resize(self.accounts.len().max(other.accounts.len()), Account::default());
        self.state_rows.resize(self.state_rows.len().max(other.state_rows.len()), 0);
        for (mine, theirs) in self.accounts.iter_mut().zip(&other.accounts) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.state_rows.iter_mut().zip(&other.state_rows) {
            *mine += theirs;
        }
        self.state_bytes += other.state_bytes;
        self.emitted += other.emitted;
        self.passed_over_of.extend(other.passed_over_of.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
