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
        // A bound may be the least span there is, of which there is no opposite.
        let (time, lower, upper) = (at(time), i128::from(self.lower.as_millis()), i128::from(self.upper.as_millis()));
        let (first, last) = match side {
            Side::Left => (time + lower, time + upper),
            Side::Right => (time - upper, time - lower),
        };
        if first > at(EventTime::MAX) || last < at(EventTime::MIN) {
            return (EventTime::MAX, EventTime::MIN);
        }
        (clamp(first), clamp(last))
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

    // For about how many milliseconds rows are held.
    pub(super) fn stay(&self) -> i64 {
        self.upper.plus(-self.lower).as_millis()
    }

    // How far behind the watermark a pair may be if late rows are joined.
    pub(super) fn widest_wait(&self) -> Span {
        Span::ZERO.max(self.upper).max(-self.lower)
    }
}

fn at(time: EventTime) -> i128 {
    time.as_millis().into()
}

fn clamp(time: i128) -> EventTime {
    EventTime::from_millis(time.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::millis;

    #[test]
    fn the_widest_bounds_are_as_wide_as_they_say() {
        let time = EventTime::from_millis;
        let all = Bounds { lower: millis(i64::MIN), upper: millis(0) };
        assert_eq!(all.partners(Side::Left, time(0)), (EventTime::MIN, time(0)));
        assert_eq!(all.partners(Side::Right, EventTime::MIN), (EventTime::MIN, time(0)));
        assert_eq!(all.partners(Side::Right, time(-1)), (time(-1), EventTime::MAX));
        let least = Bounds { lower: millis(i64::MIN), upper: millis(i64::MIN) };
        assert_eq!(least.partners(Side::Right, EventTime::MIN), (time(0), time(0)));
        assert_eq!(least.partners(Side::Left, time(-1)), (EventTime::MAX, EventTime::MIN));
    }
}
