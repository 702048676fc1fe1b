//! Which times make a pair, and until when a row can get a partner.

use crate::state::Side;
use crate::time::{EventTime, Span};

/// Which times make a pair: `right.time − left.time` from `lower` to `upper`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The least difference.
    pub lower: Span,
    /// The greatest difference.
    pub upper: Span,
}

impl Bounds {
    // The first and the last time of the other side that make a pair with a row of this side; the first is after the
    // last where no time there is would do, at the ends of time.
    pub(super) fn partners(&self, side: Side, time: EventTime) -> (EventTime, EventTime) {
        let (first, last) = match side {
            Side::Left => (self.lower, self.upper),
            Side::Right => (-self.upper, -self.lower),
        };
        let past_the_end = time.as_millis().checked_add(first.as_millis()).is_none() && !first.is_negative();
        let before_all = time.as_millis().checked_add(last.as_millis()).is_none() && last.is_negative();
        match past_the_end || before_all {
            true => (EventTime::MAX, EventTime::MIN),
            false => (time.plus(first), time.plus(last)),
        }
    }

    // The last watermark at which a row of this side can still get a partner that is not late.
    pub(super) fn closes(&self, side: Side, time: EventTime) -> EventTime {
        match side {
            Side::Left => time.plus(self.upper),
            Side::Right => time.minus(self.lower),
        }
    }

    // The time of a row that closes then; saturated times come out as the earliest they can have been.
    pub(super) fn time_of(&self, side: Side, closes: EventTime) -> EventTime {
        match side {
            _ if closes == EventTime::MAX || closes == EventTime::MIN => EventTime::MIN,
            Side::Left => closes.minus(self.upper),
            Side::Right => closes.plus(self.lower),
        }
    }

    // How far behind the watermark a pair may be if late rows are joined.
    pub(super) fn widest_wait(&self) -> Span {
        Span::ZERO.max(self.upper).max(-self.lower)
    }
}
