//! Which differences of time the pairs have, over a sample of the keys: how much of its bounds a join uses.

use super::Bounds;
use crate::delays::{Histogram, MatchDelays, PairDelays};
use crate::state::{Clock, Sample, Side};
use crate::time::{EventTime, Span};

/// The differences of time between the rows of pairs.
#[derive(Default)]
pub(super) struct Waits {
    sample: Sample,
    // By the side whose row has the earlier time.
    delays: [Option<Histogram>; 2],
}

impl Waits {
    /// Whether the rows of a key are looked at.
    #[inline]
    pub(super) fn takes(&self, hash: u64) -> bool {
        self.sample.takes(hash)
    }

    /// Takes a row of a key that is looked at, with so many partners.
    #[cold]
    pub(super) fn take(&mut self, side: Side, time: EventTime, found: usize, other: impl Fn(usize) -> EventTime) {
        let step = found.div_ceil(PAIRS_MAX).max(1);
        let stands_for = self.sample.one_in() * step as u64;
        for partner in (0..found).step_by(step) {
            let behind = match side {
                Side::Left => other(partner).since(time),
                Side::Right => time.since(other(partner)),
            };
            let (earlier, wait) = if behind.is_negative() { (Side::Right, -behind) } else { (Side::Left, behind) };
            self.delays[earlier.index()].get_or_insert_default().add(wait, stands_for);
        }
        self.sample.on_row();
    }

    /// What was found.
    pub(super) fn figures(&self, Bounds { lower, upper }: Bounds) -> MatchDelays {
        let limits = [upper, -lower].map(|limit| limit.max(Span::ZERO));
        let pairs = self.delays.iter().zip(limits).enumerate().filter_map(|(waits, (delays, limit))| {
            let delays = delays.clone()?;
            Some(PairDelays { waits, comes: 1 - waits, clock: Clock::Event, limit, delays, missed: 0 })
        });
        MatchDelays { pairs: pairs.collect(), bounds: Some([lower, upper]), one_in: self.sample.one_in() }
    }

    /// Bytes taken.
    pub(super) fn bytes(&self) -> u64 {
        self.delays.iter().flatten().count() as u64 * Histogram::bytes()
    }
}

/// Partners of one row that are taken; of more, every second, every third and so on.
const PAIRS_MAX: usize = 256;
