//! What the waits of a join say about its time-to-live or its bounds, in figures and in words.

use super::{MatchDelays, PairDelays};
use crate::account::grouped;
use crate::state::{Expired, Sample};
use crate::time::{Span, millis};

/// What the waits of one input for another say about its time-to-live.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// Half of the matches waited no longer.
    pub half: Span,
    /// The share of the matches that `within` is told for: 0.9999 where so many were looked at that one in ten thousand
    /// can be told, else 0.999, 0.99 or 0.9, and of fewer than ten all, 1.
    pub share: f64,
    /// That share of the matches waited no longer.
    pub within: Span,
    /// The longest wait that was seen.
    pub longest: Span,
    /// A time-to-live of half of what it is, rounded up to two units.
    pub shorter: Span,
    /// The share of the matches that this would have lost, at the most.
    pub lost: f64,
}

impl PairDelays {
    /// What the waits say; nothing without a match.
    pub fn advice(&self) -> Option<Advice> {
        let shorter = coarse(millis(self.limit.as_millis() / 2));
        let seen = self.delays.seen();
        let rare = [10_000, 1_000, 100, 10].into_iter().find(|&one_in| seen >= one_in);
        let share = rare.map_or(1.0, |one_in| 1.0 - 1.0 / one_in as f64);
        Some(Advice {
            half: self.delays.within(0.5)?,
            share,
            within: self.delays.within(share)?,
            longest: self.delays.most()?,
            shorter,
            lost: self.delays.lost_by(shorter),
        })
    }
}

impl MatchDelays {
    /// All of it in words, a line each, with the names of the inputs: how long matches took, what a shorter time-to-live
    /// would have lost or how much of the bounds is used, what has been lost, and how far that can be relied on.
    pub fn told(&self, names: &[String]) -> Vec<String> {
        let mut lines: Vec<String> = self.pairs.iter().map(|pair| self.told_of(pair, names)).collect();
        if lines.is_empty() {
            return lines;
        }
        if let (Some([lower, upper]), Some([least, most])) = (self.bounds, self.used()) {
            let share = self.share_used().map(|share| format!(", {}", percent(share))).unwrap_or_default();
            lines.push(format!("its pairs use [{least}, {most}] of the bounds [{lower}, {upper}]{share}"));
        }
        let mut limits = vec!["waits are rounded up, by a sixteenth at the most".to_string()];
        if self.one_in > 1 {
            let first = grouped(Sample::ALL_MAX);
            limits.push(format!(
                "of the keys one in {} was looked at after the first {first} rows of a task, so these are estimates",
                grouped(self.one_in)
            ));
        }
        if self.pairs.iter().any(|pair| pair.missed > 0) {
            limits.push(format!(
                "of the keys that expired about the last {} that were looked at are known, an input and task, so no fewer \
                 rows came too late",
                grouped(Expired::KEYS as u64)
            ));
        }
        lines.push(limits.join("; "));
        lines
    }

    fn told_of(&self, pair: &PairDelays, names: &[String]) -> String {
        let name = |input: usize| names.get(input).map_or("", String::as_str);
        let (waits, comes) = (name(pair.waits), name(pair.comes));
        let about = if self.one_in > 1 { "about " } else { "" };
        let mut parts = Vec::new();
        if let Some(advice) = pair.advice() {
            let Advice { half, share, within, longest, shorter, lost } = advice;
            let [half, within, longest] = [half, within, longest].map(coarse);
            let most = if share < 1.0 { format!("{} within {within}, ", percent(share)) } else { String::new() };
            parts.push(format!(
                "half of {about}{} matches within {half}, {most}all that were seen within {longest} ({})",
                grouped(pair.delays.count()),
                pair.clock
            ));
            if self.bounds.is_none() {
                parts.push(format!("a ttl of {shorter} would have lost {}", lost_share(lost)));
            }
        }
        if pair.missed > 0 {
            let missed = grouped(pair.missed);
            let rows = if pair.missed == 1 { "row" } else { "rows" };
            parts.push(format!("{about}{missed} {rows} of {comes} came when that of {waits} had expired"));
        }
        let verb = if self.bounds.is_some() { "before" } else { "waiting for" };
        format!("{waits} {verb} {comes}: {}", parts.join("; "))
    }
}

fn lost_share(share: f64) -> String {
    if share == 0.0 { "nothing".to_string() } else { format!("{} at the most", percent(share)) }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent > 0.0 && percent < 0.01 => "less than 0.01 %".to_string(),
        _ => format!("{} %", (100.0 * percent).round() / 100.0),
    }
}

// Two units of a span are enough to read: 14 days and 3 hours. What is rounded is not shorter than it was.
fn coarse(span: Span) -> Span {
    const UNITS: [i64; 5] = [86_400_000, 3_600_000, 60_000, 1_000, 1];
    let length = span.as_millis();
    let largest = UNITS.iter().position(|&unit| length >= unit).unwrap_or(UNITS.len() - 1);
    let least = UNITS[(largest + 1).min(UNITS.len() - 1)];
    millis((length.saturating_add(least - 1) / least).saturating_mul(least))
}

#[cfg(test)]
mod tests {
    use super::super::Histogram;
    use super::*;
    use crate::state::Clock;
    use crate::time::{days, hours, minutes, secs};

    fn of(waits: &[(Span, u64)], limit: Span, missed: u64) -> PairDelays {
        let mut delays = Histogram::default();
        for &(wait, times) in waits {
            (0..times).for_each(|_| delays.add(wait, 1));
        }
        PairDelays { waits: 0, comes: 1, clock: Clock::Processing, limit, delays, missed }
    }

    fn told(pair: PairDelays, bounds: Option<[Span; 2]>, one_in: u64) -> Vec<String> {
        let names = ["orders".to_string(), "payments".to_string()];
        MatchDelays { pairs: vec![pair], bounds, one_in }.told(&names)
    }

    #[test]
    fn a_shorter_wait_is_told_with_what_it_would_have_lost() {
        let pair = of(&[(secs(10), 9_959), (days(12), 40), (days(15), 1)], days(20), 0);
        let advice = pair.advice().unwrap();
        assert_eq!((advice.share, advice.longest, advice.shorter, advice.lost), (0.9999, days(15), days(10), 0.0041));
        assert!(advice.within >= days(12) && advice.within.as_millis() <= days(12).as_millis() * 17 / 16);
        assert_eq!(
            told(pair, None, 1),
            [
                "orders waiting for payments: half of 10,000 matches within 10s 239ms, 99.99 % within 12d 1h, all that \
                 were seen within 15d (processing time); a ttl of 10d would have lost 0.41 % at the most",
                "waits are rounded up, by a sixteenth at the most"
            ]
        );
    }

    #[test]
    fn no_more_is_told_than_so_many_matches_can_tell() {
        let share = |matches| of(&[(secs(1), matches)], days(1), 0).advice().map(|advice| advice.share);
        let shares = [0, 1, 9, 10, 100, 999, 1_000, 10_000].map(share);
        assert_eq!(shares, [None, Some(1.0), Some(1.0), Some(0.9), Some(0.99), Some(0.99), Some(0.999), Some(0.9999)]);
    }

    #[test]
    fn what_has_been_lost_is_told_with_how_far_that_is_known() {
        assert_eq!(
            told(of(&[], hours(1), 1_200), None, 256),
            [
                "orders waiting for payments: about 1,200 rows of payments came when that of orders had expired",
                "waits are rounded up, by a sixteenth at the most; of the keys one in 256 was looked at after the first \
                 8,192 rows of a task, so these are estimates; of the keys that expired about the last 16,384 that were \
                 looked at are known, an input and task, so no fewer rows came too late"
            ]
        );
        assert!(told(of(&[(secs(1), 1)], hours(1), 0), None, 1)[0].ends_with("a ttl of 30m would have lost nothing"));
    }

    #[test]
    fn of_an_interval_join_it_is_told_how_much_of_the_bounds_is_used() {
        let pair = of(&[(secs(3), 1), (secs(9), 1)], secs(30), 0);
        assert_eq!(
            told(pair, Some([secs(0), secs(30)]), 1)[..2],
            [
                "orders before payments: half of 2 matches within 3s 71ms, all that were seen within 9s (processing time)",
                "its pairs use [3s, 9s] of the bounds [0s, 30s], 20 %"
            ]
        );
    }

    #[test]
    fn spans_are_told_in_two_units_and_shares_in_hundredths() {
        let spans = [hours(25).plus(secs(61)), minutes(3), secs(59), millis(999), Span::ZERO, Span::MAX];
        assert_eq!(spans.map(coarse)[..5], [hours(26), minutes(3), secs(59), millis(999), Span::ZERO]);
        assert_eq!([0.0041, 0.9999, 1.0, 0.000_01].map(percent), ["0.41 %", "99.99 %", "100 %", "less than 0.01 %"]);
    }
}
