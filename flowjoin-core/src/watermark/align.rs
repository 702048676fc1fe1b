//! Alignment: a source that is too far ahead of the slowest one is not read.
//!
//! The limit is the least watermark over the sources that are active, plus the drift. An idle or a finished source
//! is left out, so that it never stops the others.

use super::Progress;
use crate::time::{Span, Watermark};

/// A group of sources that may drift apart by a bounded span of event time.
#[derive(Clone, Debug)]
pub struct Alignment {
    max_drift: Span,
    sources: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Source {
    watermark: Option<Watermark>,
    waits_for_nobody: bool,
}

impl Alignment {
    /// A group of so many sources.
    pub fn new(sources: usize, max_drift: Span) -> Alignment {
        Alignment { max_drift, sources: vec![Source { watermark: None, waits_for_nobody: false }; sources] }
    }

    /// A source says how far it is.
    pub fn update(&mut self, source: usize, progress: Progress) {
        let source = &mut self.sources[source];
        match progress {
            Progress::At(watermark) => source.watermark = source.watermark.max(Some(watermark)),
            Progress::Active => source.waits_for_nobody = false,
            Progress::Idle => source.waits_for_nobody = true,
            Progress::End | Progress::Stopped => {
                source.waits_for_nobody = true;
                source.watermark = Some(Watermark::END);
            }
        }
    }

    /// How far a source may be; none while nobody has said anything yet.
    pub fn limit(&self) -> Option<Watermark> {
        let counting = self.sources.iter().filter(|source| !source.waits_for_nobody);
        let least = counting.filter_map(|source| source.watermark).min()?;
        Some(Watermark::at(least.time().plus(self.max_drift)))
    }

    /// Whether this source is beyond the limit and must not be read now.
    pub fn is_paused(&self, source: usize) -> bool {
        match (self.limit(), self.sources[source].watermark) {
            (Some(limit), Some(watermark)) => watermark > limit,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{EventTime, millis};

    #[test]
    fn the_one_ahead_waits_until_the_slowest_has_come() {
        let at = |t| Progress::At(Watermark::at(EventTime::from_millis(t)));
        let mut group = Alignment::new(2, millis(100));
        group.update(0, at(500));
        assert!(!group.is_paused(0));
        group.update(1, at(10));
        assert!(group.is_paused(0) && !group.is_paused(1));
        group.update(1, Progress::Idle);
        assert!(!group.is_paused(0));
        group.update(1, Progress::Active);
        group.update(1, at(400));
        assert!(!group.is_paused(0));
    }
}
