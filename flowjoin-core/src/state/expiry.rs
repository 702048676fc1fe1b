//! What is due at or before a time, in order.
//!
//! A calendar: rows are put into buckets of a fixed width of time, and a bucket is sorted only when the clock reaches
//! it. Putting a row in costs a look-up among few buckets, taking it out a share of one sort.

use std::collections::BTreeMap;

use super::RowId;

/// A row that leaves at a time. The hash finds the row's key again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Due {
    /// When, in milliseconds of whichever clock.
    pub at: i64,
    /// Which row.
    pub id: RowId,
    /// The hash of its key.
    pub hash: u64,
}

/// Rows by the time at which they leave.
#[derive(Debug)]
pub struct Expiry {
    width: i64,
    // The earliest bucket, latest first, so that the next one due is at the end.
    front: Vec<Due>,
    // All that is due before this is in `front`.
    front_end: i64,
    later: BTreeMap<i64, Vec<Due>>,
    len: usize,
}

impl Expiry {
    /// A calendar for rows that stay about so many milliseconds.
    pub fn new(stay_millis: i64) -> Expiry {
        let width = (stay_millis.saturating_abs() / 256).clamp(1, 3_600_000);
        Expiry { width, front: Vec::new(), front_end: i64::MIN, later: BTreeMap::new(), len: 0 }
    }

    /// Notes when a row leaves.
    #[inline]
    pub fn push(&mut self, due: Due) {
        self.len += 1;
        if due.at < self.front_end {
            let place = self.front.partition_point(|other| *other > due);
            self.front.insert(place, due);
        } else {
            self.later.entry(due.at.div_euclid(self.width)).or_default().push(due);
        }
    }

    /// When the next row leaves.
    pub fn earliest(&mut self) -> Option<i64> {
        self.fill_front();
        self.front.last().map(|due| due.at)
    }

    /// A time at or before that of the first row that the test holds for, and close to it: exact within the earliest
    /// bucket, else the beginning of the next one.
    pub fn earliest_of(&mut self, test: impl Fn(RowId) -> bool) -> Option<i64> {
        self.fill_front();
        let found = self.front.iter().rev().find(|due| test(due.id)).map(|due| due.at);
        found.or_else(|| self.later.first_key_value().map(|(bucket, _)| bucket.saturating_mul(self.width)))
    }

    /// Takes out, in order, all that is due at or before `now`.
    pub fn take_due(&mut self, now: i64, into: &mut Vec<Due>) {
        let before = into.len();
        loop {
            self.fill_front();
            let keep = self.front.partition_point(|due| due.at > now);
            if keep == self.front.len() {
                break;
            }
            into.extend(self.front.drain(keep..).rev());
        }
        self.len -= into.len() - before;
    }

    /// How many rows are noted.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let slots: usize = self.later.values().map(Vec::capacity).sum::<usize>() + self.front.capacity();
        (slots * size_of::<Due>()) as u64
    }

    fn fill_front(&mut self) {
        if !self.front.is_empty() {
            return;
        }
        if let Some((bucket, mut rows)) = self.later.pop_first() {
            rows.sort_unstable_by(|a, b| b.cmp(a));
            self.front = rows;
            self.front_end = bucket.saturating_add(1).saturating_mul(self.width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn due(at: i64, id: u32) -> Due {
        Due { at, id: RowId::new(id), hash: 0 }
    }

    proptest! {
        #[test]
        fn rows_leave_in_order_and_not_before_their_time(
            steps in proptest::collection::vec((any::<bool>(), -2_000i64..2_000), 1..200), stay in 1i64..100_000,
        ) {
            let mut expiry = Expiry::new(stay);
            let mut model: Vec<Due> = Vec::new();
            for (n, (push, time)) in steps.into_iter().enumerate() {
                if push {
                    expiry.push(due(time, n as u32));
                    model.push(due(time, n as u32));
                } else {
                    let mut taken = Vec::new();
                    expiry.take_due(time, &mut taken);
                    model.sort();
                    let split = model.partition_point(|d| d.at <= time);
                    let expected: Vec<Due> = model.drain(..split).collect();
                    prop_assert_eq!(taken, expected);
                }
                prop_assert_eq!(expiry.earliest(), model.iter().map(|d| d.at).min());
                prop_assert_eq!(expiry.len(), model.len());
            }
        }
    }

    #[test]
    fn the_ends_of_time_are_ordinary_times() {
        let mut expiry = Expiry::new(1_000);
        for at in [i64::MAX, i64::MIN, 0] {
            expiry.push(due(at, 1));
        }
        let mut taken = Vec::new();
        expiry.take_due(i64::MAX, &mut taken);
        assert_eq!(taken.iter().map(|d| d.at).collect::<Vec<_>>(), [i64::MIN, 0, i64::MAX]);
    }
}
