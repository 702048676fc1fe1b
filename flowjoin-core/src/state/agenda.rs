//! Things that wait for a time: in order of time and, where times are equal, of arrival.
//!
//! They lie in buckets of a fixed width of time, and a bucket is sorted only when its time has come, by a sort that costs
//! next to nothing where they came in order. The bucket that was last put into is kept at hand.

use std::collections::BTreeMap;

use crate::time::{EventTime, Watermark};

/// Things by the time that they wait for.
#[derive(Debug)]
pub struct Agenda<T> {
    // Not among the others while it is here.
    open: Bucket<T>,
    number: i64,
    others: BTreeMap<i64, Bucket<T>>,
    spare: Vec<Bucket<T>>,
    len: usize,
}

type Bucket<T> = Vec<(EventTime, T)>;

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { open: Vec::new(), number: 0, others: BTreeMap::new(), spare: Vec::new(), len: 0 }
    }
}

impl<T> Agenda<T> {
    /// Puts a thing in.
    #[inline]
    pub fn push(&mut self, time: EventTime, thing: T) {
        self.len += 1;
        let number = bucket_of(time);
        if number != self.number {
            self.switch(number);
        }
        self.open.push((time, thing));
    }

    // Opens another bucket.
    fn switch(&mut self, number: i64) {
        let opened = self.others.remove(&number).or_else(|| self.spare.pop()).unwrap_or_default();
        let closed = std::mem::replace(&mut self.open, opened);
        self.put_back(self.number, closed);
        self.number = number;
    }

    fn put_back(&mut self, number: i64, bucket: Bucket<T>) {
        if !bucket.is_empty() {
            self.others.insert(number, bucket);
        } else if self.spare.len() < SPARE_MAX {
            self.spare.push(bucket);
        }
    }

    /// Takes out, in order, all that waits for a time before the watermark; at the end of time, all.
    pub fn take_before(&mut self, watermark: Watermark, into: &mut Vec<(EventTime, T)>) {
        self.take_part_before(watermark, usize::MAX, into);
    }

    /// As [`take_before`](Self::take_before), but stops once it has taken `enough`: the earliest, and no time in part.
    pub fn take_part_before(&mut self, watermark: Watermark, enough: usize, into: &mut Vec<(EventTime, T)>) {
        if self.len == 0 {
            return;
        }
        let open = std::mem::take(&mut self.open);
        self.put_back(self.number, open);
        let before = into.len();
        while into.len() - before < enough
            && let Some(first) = self.others.first_entry()
        {
            let number = *first.key();
            let whole = watermark == Watermark::END || number < bucket_of(watermark.time());
            if !whole && number > bucket_of(watermark.time()) {
                break;
            }
            let mut bucket = first.remove();
            let begin = into.len();
            match whole {
                true => into.append(&mut bucket),
                false => into.extend(bucket.extract_if(.., |(time, _)| *time < watermark.time())),
            }
            into[begin..].sort_by_key(|(time, _)| *time);
            self.put_back(number, bucket);
            if !whole {
                break;
            }
        }
        self.open = self.others.remove(&self.number).or_else(|| self.spare.pop()).unwrap_or_default();
        self.len -= into.len() - before;
    }

    /// The earliest time that anything waits for.
    pub fn earliest(&self) -> Option<EventTime> {
        let first = self.others.first_key_value().map(|(_, bucket)| bucket);
        let times = first.into_iter().chain([&self.open]).flatten();
        times.map(|(time, _)| *time).min()
    }

    /// Which stretch of time a time lies in: things that wait for times near each other are found together.
    #[inline]
    pub fn stretch_of(time: EventTime) -> i64 {
        bucket_of(time)
    }

    /// What waits for a time in a stretch.
    pub fn of_stretch(&self, stretch: i64) -> &[(EventTime, T)] {
        match stretch == self.number {
            true => &self.open,
            false => self.others.get(&stretch).map_or(&[], |bucket| bucket),
        }
    }

    /// How many things wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes taken, without what the things own elsewhere.
    pub fn bytes(&self) -> u64 {
        let buckets = self.others.values().chain(&self.spare).chain([&self.open]);
        let room: usize = buckets.map(Vec::capacity).sum();
        (room * size_of::<(EventTime, T)>()) as u64
    }
}

fn bucket_of(time: EventTime) -> i64 {
    time.as_millis() >> WIDTH_BITS
}

/// A bucket is 64 ms wide.
const WIDTH_BITS: u32 = 6;

/// Buckets that are kept to be used again.
const SPARE_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: i64) -> EventTime {
        EventTime::from_millis(millis)
    }

    #[test]
    fn the_ends_of_time_are_ordinary_times() {
        let mut agenda = Agenda::default();
        for time in [i64::MAX, 0, i64::MIN, i64::MAX - 1] {
            agenda.push(at(time), time);
        }
        assert_eq!(agenda.earliest(), Some(at(i64::MIN)));
        let mut taken = Vec::new();
        agenda.take_before(Watermark::at(at(i64::MAX - 1)), &mut taken);
        assert_eq!(taken.iter().map(|(_, thing)| *thing).collect::<Vec<_>>(), [i64::MIN, 0]);
        agenda.take_before(Watermark::END, &mut taken);
        assert_eq!(taken.last(), Some(&(at(i64::MAX), i64::MAX)));
        assert!(agenda.is_empty() && agenda.earliest().is_none());
    }

    #[test]
    fn things_of_a_stretch_are_found_wherever_the_last_one_was_put() {
        let mut agenda = Agenda::default();
        let stretch = |time: i64| Agenda::<i64>::stretch_of(at(time));
        for time in [10, 70, 11, 1_000] {
            agenda.push(at(time), time);
        }
        let found = |agenda: &Agenda<i64>, time| {
            agenda.of_stretch(stretch(time)).iter().map(|(_, thing)| *thing).collect::<Vec<_>>()
        };
        assert_eq!([0, 64, 1_001, 500].map(|time| found(&agenda, time)), [vec![10, 11], vec![70], vec![1_000], vec![]]);
        agenda.take_before(Watermark::at(at(11)), &mut Vec::new());
        assert_eq!(found(&agenda, 0), [11]);
    }

    #[test]
    fn what_waits_can_be_taken_out_a_part_at_a_time() {
        let mut agenda = Agenda::default();
        (0..1_000i64).rev().for_each(|time| agenda.push(at(time / 2), time));
        let (mut taken, mut parts) = (Vec::new(), Vec::new());
        loop {
            let before = taken.len();
            agenda.take_part_before(Watermark::at(at(450)), 200, &mut taken);
            if taken.len() == before {
                break;
            }
            parts.push(taken.len() - before);
        }
        assert!(taken.is_sorted_by_key(|(time, _)| *time) && taken.len() == 900 && agenda.len() == 100);
        assert!(parts.len() > 2 && parts.iter().all(|&part| part < 500), "{parts:?}");
    }

    proptest! {
        #[test]
        fn things_come_out_by_time_and_then_by_arrival(
            steps in proptest::collection::vec((any::<bool>(), -200i64..200), 1..200),
        ) {
            let mut agenda = Agenda::default();
            let mut model: Vec<(EventTime, usize)> = Vec::new();
            for (number, (push, time)) in steps.into_iter().enumerate() {
                if push {
                    agenda.push(at(time), number);
                    model.push((at(time), number));
                } else {
                    let mut taken = Vec::new();
                    agenda.take_before(Watermark::at(at(time)), &mut taken);
                    model.sort();
                    let split = model.partition_point(|(waits, _)| *waits < at(time));
                    let expected: Vec<_> = model.drain(..split).collect();
                    prop_assert_eq!(taken, expected);
                }
                prop_assert_eq!(agenda.earliest(), model.iter().map(|(time, _)| *time).min());
                prop_assert_eq!(agenda.len(), model.len());
            }
        }
    }
}
