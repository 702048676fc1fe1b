//! What is due at or before a time, in order.
//!
//! A calendar: rows are put into buckets of a fixed width of time, and a bucket is sorted only when the clock reaches
//! it. Putting a row in costs a look-up among few buckets, taking it out a share of one sort.

use std::collections::{BTreeMap, VecDeque};

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
    // A bucket is two to the power of this many milliseconds wide: to find one takes no division.
    bits: u32,
    // The earliest bucket, latest first, so that the next one due is at the end. Rows mostly come in order, that is at
    // one of its ends: with a long time-to-live all that comes for minutes is put in here.
    front: VecDeque<Due>,
    // All that is due before this bucket is in `front`; `near` begins with it.
    next: i64,
    near: VecDeque<Vec<Packed>>,
    // Buckets further off than `near` reaches: few, as rows stay about equally long.
    far: BTreeMap<i64, Vec<Packed>>,
    // Buckets that were emptied, for their memory.
    spare: Vec<Vec<Packed>>,
    len: usize,
}

// A row in its bucket: its time counts from the bucket's beginning.
#[derive(Clone, Copy, Debug)]
struct Packed {
    after: u32,
    id: RowId,
    hash: u64,
}

impl Packed {
    // Time and number in one word: a row that is noted twice for one time has one hash.
    #[inline]
    fn order(&self) -> u64 {
        u64::from(self.after) << 32 | self.id.index() as u64
    }
}

impl Expiry {
    /// A calendar for rows that stay about so many milliseconds.
    pub fn new(stay_millis: i64) -> Expiry {
        let width = (stay_millis.saturating_abs() / 256).clamp(1, 3_600_000) as u64;
        Expiry {
            bits: width.next_power_of_two().trailing_zeros(),
            front: VecDeque::new(),
            next: i64::MIN,
            near: VecDeque::new(),
            far: BTreeMap::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    /// Notes when a row leaves.
    #[inline]
    pub fn push(&mut self, due: Due) {
        self.len += 1;
        let bucket = due.at >> self.bits;
        if bucket < self.next {
            let place = self.front.partition_point(|other| *other > due);
            self.front.insert(place, due);
            return;
        }
        let after = (due.at - (bucket << self.bits)) as u32;
        let packed = Packed { after, id: due.id, hash: due.hash };
        let ahead = bucket.wrapping_sub(self.next) as u64;
        match self.near.get_mut(ahead as usize) {
            Some(rows) if ahead < NEAR => rows.push(packed),
            _ => self.push_beyond(bucket, ahead, packed),
        }
    }

    #[cold]
    fn push_beyond(&mut self, bucket: i64, ahead: u64, packed: Packed) {
        if ahead < NEAR {
            let spare = &mut self.spare;
            self.near.resize_with(ahead as usize + 1, || spare.pop().unwrap_or_default());
            self.near[ahead as usize].push(packed);
        } else {
            self.far.entry(bucket).or_default().push(packed);
        }
    }

    /// When the next row leaves.
    pub fn earliest(&mut self) -> Option<i64> {
        self.fill_front();
        self.front.back().map(|due| due.at)
    }

    /// When the first row is due that the test holds for; those before it are forgotten. Each row is looked at once if the
    /// test never holds again for one that it did not hold for.
    pub fn first_of(&mut self, test: impl Fn(&Due) -> bool) -> Option<i64> {
        loop {
            self.fill_front();
            let first = self.front.back()?;
            if test(first) {
                return Some(first.at);
            }
            self.front.pop_back();
            self.len -= 1;
        }
    }

    /// Takes out, in order, all that is due at or before `now`.
    pub fn take_due(&mut self, now: i64, into: &mut Vec<Due>) {
        self.take_part_due(now, usize::MAX, into);
    }

    /// Takes out, in order, as many as `max` rows that are due at or before `now`, the earliest.
    pub fn take_part_due(&mut self, now: i64, max: usize, into: &mut Vec<Due>) {
        let full = into.len().saturating_add(max);
        while into.len() < full {
            self.fill_front();
            let due = self.front.partition_point(|due| due.at > now);
            if due == self.front.len() {
                break;
            }
            let keep = due.max(self.front.len().saturating_sub(full - into.len()));
            self.len -= self.front.len() - keep;
            into.extend(self.front.drain(keep..).rev());
        }
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
        let packed: usize = self.near.iter().chain(self.far.values()).chain(&self.spare).map(Vec::capacity).sum();
        (packed * size_of::<Packed>() + self.front.capacity() * size_of::<Due>()) as u64
    }

    fn fill_front(&mut self) {
        while self.front.is_empty() && self.len > 0 {
            // With nothing near, time jumps to the next bucket that has rows.
            if self.near.is_empty()
                && let Some((&bucket, _)) = self.far.first_key_value()
            {
                self.next = bucket;
            }
            let bucket = self.next;
            let mut rows = self.near.pop_front().unwrap_or_default();
            let beyond = self.far.remove(&bucket).unwrap_or_default();
            self.next = bucket.saturating_add(1);
            let begin = bucket << self.bits;
            rows.extend_from_slice(&beyond);
            rows.sort_unstable_by_key(Packed::order);
            let unpack = |p: &Packed| Due { at: begin + i64::from(p.after), id: p.id, hash: p.hash };
            self.front.extend(rows.iter().rev().map(unpack));
            if rows.capacity() > 0 && self.spare.len() < SPARE {
                rows.clear();
                self.spare.push(rows);
            }
        }
    }
}

/// How many buckets are kept side by side.
const NEAR: u64 = 1_024;

/// Emptied buckets that keep their memory.
const SPARE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn due(at: i64, id: u32) -> Due {
        Due { at, id: RowId::new(id), hash: 0 }
    }

    // Were each row to move all others of its bucket, this would take minutes.
    #[test]
    fn rows_that_come_in_order_into_the_earliest_bucket_move_no_others() {
        let mut expiry = Expiry::new(86_400_000);
        for n in 0..300_000u32 {
            expiry.push(due(i64::from(n) / 3, n));
            assert_eq!(expiry.earliest(), Some(0));
        }
        let mut due = Vec::new();
        expiry.take_due(i64::MAX, &mut due);
        assert!(due.is_sorted() && due.len() == 300_000 && expiry.is_empty());
    }

    #[test]
    fn rows_may_leave_at_the_ends_of_time() {
        let mut expiry = Expiry::new(1);
        for (id, at) in [i64::MAX, i64::MIN, i64::MAX - 1, i64::MAX].into_iter().enumerate() {
            expiry.push(due(at, id as u32));
            assert!(expiry.earliest().is_some());
        }
        let mut gone = Vec::new();
        expiry.take_due(i64::MAX, &mut gone);
        assert_eq!(gone.iter().map(|due| due.at).collect::<Vec<_>>(), [i64::MIN, i64::MAX - 1, i64::MAX, i64::MAX]);
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
    fn rows_that_are_due_can_be_taken_out_a_part_at_a_time() {
        let mut expiry = Expiry::new(256_000);
        (0..100).for_each(|n| expiry.push(due(i64::from(n) * 70, n)));
        let mut taken = Vec::new();
        for part in [7, 0, 40, 40] {
            expiry.take_part_due(5_600, part, &mut taken);
        }
        assert_eq!(taken, (0..81).map(|n| due(i64::from(n) * 70, n)).collect::<Vec<_>>());
        assert_eq!(expiry.len(), 19);
    }

    #[test]
    fn rows_before_the_first_that_passes_a_test_are_forgotten() {
        let mut expiry = Expiry::new(256_000);
        (0..100).for_each(|n| expiry.push(due(i64::from(n) * 700, n)));
        assert_eq!(expiry.first_of(|due| due.id.index() >= 40), Some(28_000));
        assert_eq!((expiry.len(), expiry.earliest()), (60, Some(28_000)));
        expiry.push(due(5, 200));
        assert_eq!(expiry.first_of(|_| true), Some(5));
        assert_eq!((expiry.first_of(|_| false), expiry.is_empty()), (None, true));
    }

    #[test]
    fn the_ends_of_time_are_ordinary_times() {
        for stay in [1, 1_000] {
            let mut expiry = Expiry::new(stay);
            for at in [i64::MAX, i64::MIN, 0, i64::MAX] {
                expiry.push(due(at, 1));
            }
            let mut taken = Vec::new();
            expiry.take_due(i64::MAX, &mut taken);
            assert_eq!(taken.iter().map(|d| d.at).collect::<Vec<_>>(), [i64::MIN, 0, i64::MAX, i64::MAX]);
        }
    }
}
