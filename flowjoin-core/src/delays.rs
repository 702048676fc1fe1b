//! How long the rows of a join wait for each other: what a time-to-live has to be, and what it loses.
//!
//! For each input that waits and each that it waits for, a histogram of the time between the two rows of a match, and how
//! many rows came for one that had expired. Both are taken over the keys of a sample: the figures are those of all
//! rows as long as these are few, and estimates from then on.

mod advice;
mod histogram;

use crate::state::Clock;
use crate::time::Span;

pub use advice::Advice;
pub use histogram::Histogram;

/// How long the rows of one input waited for those of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairDelays {
    /// The input whose row was there first: in an interval join, and where its rows expire by event time, by the times of
    /// the two rows, else by their arrival.
    pub waits: usize,
    /// The input whose row made the match.
    pub comes: usize,
    /// The clock on which the wait is taken: that of the time-to-live.
    pub clock: Clock,
    /// How long a row of the input that waits is kept for the other.
    pub limit: Span,
    /// The waits of matches.
    pub delays: Histogram,
    /// Rows that came when the last row of their key on the input that waits had expired not long before.
    pub missed: u64,
}

/// How long the matches of a join took, and what its time-to-live has lost; for an interval join, which differences of
/// time its pairs have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchDelays {
    /// One for each input that waits and each input that it waits for, as far as there were matches or missed rows.
    pub pairs: Vec<PairDelays>,
    /// The bounds of an interval join: the least and the greatest difference.
    pub bounds: Option<[Span; 2]>,
    /// Of so many keys one was looked at in the end; of the first rows, all are.
    pub one_in: u64,
}

impl MatchDelays {
    /// Adds those of another task of the same join.
    pub fn add(&mut self, other: &MatchDelays) {
        for pair in &other.pairs {
            match self.pairs.iter_mut().find(|mine| (mine.waits, mine.comes) == (pair.waits, pair.comes)) {
                Some(mine) => {
                    mine.delays.merge(&pair.delays);
                    mine.missed += pair.missed;
                }
                None => self.pairs.push(pair.clone()),
            }
        }
        self.pairs.sort_by_key(|pair| (pair.waits, pair.comes));
        self.bounds = self.bounds.or(other.bounds);
        self.one_in = self.one_in.max(other.one_in);
    }

    /// The waits of one input for another, if there were any.
    pub fn pair(&self, waits: usize, comes: usize) -> Option<&PairDelays> {
        self.pairs.iter().find(|pair| (pair.waits, pair.comes) == (waits, comes))
    }

    /// The least and the greatest difference of times, second input less first, of the pairs of an interval join that
    /// were looked at.
    pub fn used(&self) -> Option<[Span; 2]> {
        let [after, before] = [(0, 1), (1, 0)].map(|(waits, comes)| self.pair(waits, comes).map(|pair| &pair.delays));
        let ends = |of: Option<&Histogram>| of.and_then(|delays| Some([delays.least()?, delays.most()?]));
        match (ends(after), ends(before)) {
            (Some([least, most]), None) => Some([least, most]),
            (None, Some([least, most])) => Some([-most, -least]),
            (Some([_, after]), Some([_, before])) => Some([-before, after]),
            (None, None) => None,
        }
    }

    /// The share of the interval that its pairs use, from the least to the greatest difference; none for other joins, for
    /// an interval that is one instant, or without a pair.
    pub fn share_used(&self) -> Option<f64> {
        let ([lower, upper], [least, most]) = (self.bounds?, self.used()?);
        let width = |from: Span, to: Span| to.plus(-from).as_millis() as f64;
        (upper > lower).then(|| width(least, most) / width(lower, upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{minutes, secs};

    fn pair(waits: usize, comes: usize, waited: &[Span]) -> PairDelays {
        let mut delays = Histogram::default();
        waited.iter().for_each(|&wait| delays.add(wait, 1));
        PairDelays { waits, comes, clock: Clock::Event, limit: minutes(1), delays, missed: 2 }
    }

    #[test]
    fn tasks_are_added_up_by_who_waits_for_whom() {
        let mut sum = MatchDelays::default();
        sum.add(&MatchDelays { pairs: vec![pair(1, 0, &[secs(1)])], bounds: None, one_in: 256 });
        let pairs = vec![pair(0, 1, &[secs(5)]), pair(1, 0, &[secs(2), secs(3)])];
        sum.add(&MatchDelays { pairs, bounds: None, one_in: 1 });
        let told: Vec<_> = sum.pairs.iter().map(|it| (it.waits, it.comes, it.delays.count(), it.missed)).collect();
        assert_eq!((told, sum.one_in), (vec![(0, 1, 1, 2), (1, 0, 3, 4)], 256));
    }

    #[test]
    fn an_interval_is_used_from_the_least_to_the_greatest_difference() {
        let of = |lower, upper, pairs| MatchDelays { pairs, bounds: Some([lower, upper]), one_in: 1 };
        let both = of(-secs(5), secs(15), vec![pair(0, 1, &[secs(1), secs(8)]), pair(1, 0, &[secs(2)])]);
        assert_eq!((both.used(), both.share_used()), (Some([-secs(2), secs(8)]), Some(0.5)));
        let after = of(secs(5), secs(15), vec![pair(0, 1, &[secs(6), secs(8)])]);
        assert_eq!((after.used(), after.share_used()), (Some([secs(6), secs(8)]), Some(0.2)));
        let before = of(-secs(9), -secs(1), vec![pair(1, 0, &[secs(2), secs(8)])]);
        assert_eq!((before.used(), before.share_used()), (Some([-secs(8), -secs(2)]), Some(0.75)));
        assert_eq!(of(secs(5), secs(5), vec![pair(0, 1, &[secs(5)])]).share_used(), None);
        assert_eq!(of(secs(5), secs(6), vec![]).used(), None);
    }
}
