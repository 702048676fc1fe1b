//! Spans of time, counted in a fixed number of slots.

use std::fmt;

use crate::time::{Span, millis};

/// Spans of time, counted in slots that are at most a sixteenth of their length wide. It takes 8 KB, however many spans
/// of whatever length are counted.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    slots: Box<[u64; SLOTS]>,
    count: u64,
    seen: u64,
    ends: Option<[Span; 2]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { slots: Box::new([0; SLOTS]), count: 0, seen: 0, ends: None }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.iter().enumerate().filter(|(_, count)| **count > 0);
        f.debug_map().entries(slots.map(|(slot, count)| (last_of(slot), count))).finish()
    }
}

impl Histogram {
    /// Counts a span that stands for so many; one below zero counts as zero.
    pub fn add(&mut self, span: Span, stands_for: u64) {
        let span = span.max(Span::ZERO);
        self.slots[slot_of(span)] += stands_for;
        self.count += stands_for;
        self.seen += 1;
        self.ends = merged(self.ends, Some([span, span]));
    }

    /// How many there are, by what those that were seen stand for.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many were seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The shortest that was seen.
    pub fn least(&self) -> Option<Span> {
        self.ends.map(|[least, _]| least)
    }

    /// The longest that was seen.
    pub fn most(&self) -> Option<Span> {
        self.ends.map(|[_, most]| most)
    }

    /// A span that at least this share of them is within: at most a sixteenth too long, and never longer than the longest;
    /// none without any.
    pub fn within(&self, share: f64) -> Option<Span> {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut sum = 0;
        let slot = self.slots.iter().position(|&count| {
            sum += count;
            sum >= wanted
        })?;
        self.most().map(|most| most.min(last_of(slot)))
    }

    /// The share that is at least as long as a span, to a slot: what a time-to-live of that would have lost, at the most.
    pub fn lost_by(&self, ttl: Span) -> f64 {
        let lost: u64 = self.slots[slot_of(ttl.max(Span::ZERO))..].iter().sum();
        match self.most() {
            Some(most) if most >= ttl => lost as f64 / self.count as f64,
            _ => 0.0,
        }
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.slots.iter_mut().zip(other.slots.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.seen += other.seen;
        self.ends = merged(self.ends, other.ends);
    }

    /// Bytes taken.
    pub const fn bytes() -> u64 {
        (SLOTS * size_of::<u64>() + size_of::<Histogram>()) as u64
    }
}

fn merged(a: Option<[Span; 2]>, b: Option<[Span; 2]>) -> Option<[Span; 2]> {
    let ([least_a, most_a], [least_b, most_b]) = (a.or(b)?, b.or(a)?);
    Some([least_a.min(least_b), most_a.max(most_b)])
}

// Sixteen slots of a millisecond, and then sixteen for each doubling.
fn slot_of(span: Span) -> usize {
    let millis = span.as_millis().unsigned_abs();
    let doublings = (millis | 15).ilog2() as usize - 3;
    match doublings {
        0 => millis as usize,
        _ => doublings * 16 + (millis >> (doublings - 1) & 15) as usize,
    }
}

// The longest span in a slot.
fn last_of(slot: usize) -> Span {
    let (doublings, part) = (slot / 16, slot as i64 % 16);
    match doublings {
        0 => millis(part),
        _ => millis(((16 + part) << (doublings - 1)) | ((1 << (doublings - 1)) - 1)),
    }
}

// The longest span there is has 63 bits, the last four of which the first sixteen slots tell apart.
const SLOTS: usize = 16 * (63 - 3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{days, hours, secs};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_slot_holds_its_spans_and_is_narrow(bits in 0..63u32, span in 0..i64::MAX) {
            let span = span >> bits;
            let slot = slot_of(millis(span));
            let first = if slot == 0 { 0 } else { last_of(slot - 1).as_millis() + 1 };
            let last = last_of(slot).as_millis();
            prop_assert!(first <= span && span <= last);
            prop_assert!(last - first <= first / 16);
        }
    }

    #[test]
    fn the_longest_span_is_in_the_last_slot() {
        assert_eq!((slot_of(Span::MAX), last_of(SLOTS - 1)), (SLOTS - 1, Span::MAX));
        assert!(Histogram::bytes() < 8_192);
    }

    #[test]
    fn it_tells_what_most_are_within_and_what_a_shorter_wait_would_lose() {
        let mut delays = Histogram::default();
        assert_eq!((delays.within(0.5), delays.lost_by(hours(1)), delays.most()), (None, 0.0, None));
        delays.add(secs(10), 9_000);
        delays.add(secs(10), 959);
        delays.add(days(12), 41);
        // 10 s are 10,000 ms, which is in the slot of 9,728 to 10,239 ms.
        assert_eq!(delays.within(0.5), Some(millis(10_239)));
        // The slot ends later, but nothing was longer.
        assert_eq!((delays.within(0.9959), delays.within(0.9999)), (Some(millis(10_239)), Some(days(12))));
        assert_eq!(
            (delays.lost_by(days(10)), delays.lost_by(days(12)), delays.lost_by(days(13))),
            (0.0041, 0.0041, 0.0)
        );
        assert_eq!((delays.count(), delays.seen(), delays.least()), (10_000, 3, Some(secs(10))));
    }

    #[test]
    fn what_was_counted_apart_is_what_was_counted_together() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for (span, here) in [(3, true), (700, false), (86_400_000, true), (0, false)] {
            let one = if here { &mut a } else { &mut b };
            one.add(millis(span), 4);
            both.add(millis(span), 4);
        }
        a.merge(&b);
        assert_eq!(a, both);
        a.merge(&Histogram::default());
        assert_eq!(a, both);
    }
}
