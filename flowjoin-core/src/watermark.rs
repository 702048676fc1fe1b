//! How far event time has come: the strategy of a source, its generator, and the merge over inputs.
//!
//! A watermark W is a frontier: every row still to come has a time at or after W, and a row is late iff its time is
//! before the W of the operator that it arrives at. Inputs are active, idle or finished, which are three things.
//! Everything here is plain data and arithmetic; the host says what time it is.

use serde::{Deserialize, Serialize};

use crate::time::{EventTime, ProcTime, Span, Watermark};

mod align;
mod hold;
mod merge;

pub use align::{Align, Alignment};
pub use hold::{Hold, Holding, InputTime, TimeFigures};
pub use merge::{InputState, Merge, Merged, Rejoin};

/// How a source tells how far event time has come; plain data, printed by explain.
///
/// ```
/// # use flowjoin_core::{Watermarks, secs, minutes};
/// let strategy = Watermarks::of_field("placed_at").out_of_order(secs(5)).idle(minutes(1));
/// assert_eq!(strategy.to_string(), "time placed_at, out of order ≤ 5s, idle 1m");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermarks {
    field: Option<&'static str>,
    out_of_order: Span,
    idle: Option<Span>,
    max_future: Option<Span>,
}

/// How far ahead of the wall clock a row may be before it is taken for a mistake, unless said otherwise.
pub const MAX_FUTURE: Span = crate::time::hours(24);

impl Watermarks {
    /// Event time is in the field of this name; rows come in order until [`out_of_order`](Self::out_of_order) says
    /// otherwise, and a source is never idle until [`idle`](Self::idle) does.
    pub const fn of_field(field: &'static str) -> Watermarks {
        Watermarks { field: Some(field), out_of_order: Span::ZERO, idle: None, max_future: Some(MAX_FUTURE) }
    }

    /// Event time is the time of arrival: the watermark is the clock, and no row is ever late.
    pub const fn ingestion() -> Watermarks {
        Watermarks { field: None, out_of_order: Span::ZERO, idle: None, max_future: None }
    }

    /// Rows may be this much older than the newest one seen. With `Span::MAX` there is no bound, and rows never move
    /// the watermark: only a host that knows better does, or the end.
    pub const fn out_of_order(mut self, bound: Span) -> Watermarks {
        self.out_of_order = bound;
        self
    }

    /// After so long without a row a partition is idle, and does not hold the watermark back.
    pub const fn idle(mut self, after: Span) -> Watermarks {
        self.idle = Some(after);
        self
    }

    /// A row further than this ahead of the wall clock is a bad record and does not move the watermark.
    pub const fn max_future(mut self, ahead: Span) -> Watermarks {
        self.max_future = Some(ahead);
        self
    }

    /// Rows may lie as far in the future as they like. A single wrong time then makes all that follow it late.
    pub const fn any_future(mut self) -> Watermarks {
        self.max_future = None;
        self
    }

    /// The field that holds the time; none when it is the time of arrival.
    pub fn field(&self) -> Option<&'static str> {
        self.field
    }

    /// The bound on disorder.
    pub fn out_of_order_bound(&self) -> Span {
        self.out_of_order
    }

    /// When a partition counts as idle.
    pub fn idle_after(&self) -> Option<Span> {
        self.idle
    }

    /// Whether a row of this time is too far ahead of the clock to be believed. The end of time always is: it is the
    /// watermark of what has ended, and no row's.
    pub fn beyond_future(&self, time: EventTime, now: ProcTime) -> bool {
        time > EventTime::LAST || self.max_future.is_some_and(|ahead| time > now.as_event_time().plus(ahead))
    }
}

impl std::fmt::Display for Watermarks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field {
            None => return f.write_str("time of arrival"),
            Some(field) => write!(f, "time {field}, out of order ≤ {}", self.out_of_order)?,
        }
        if let Some(idle) = self.idle {
            write!(f, ", idle {idle}")?;
        }
        match self.max_future {
            Some(MAX_FUTURE) => Ok(()),
            Some(ahead) => write!(f, ", at most {ahead} ahead"),
            None => f.write_str(", any future"),
        }
    }
}

/// What a source, or an input, has to say about event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Every row still to come has a time at or after this.
    At(Watermark),
    /// Nothing has come for a while: do not wait for this one.
    Idle,
    /// It is back.
    Active,
    /// Nothing will come any more: the watermark is the end of time.
    End,
    /// Reading was stopped; what is held stays open, and the watermark stays where it is.
    Stopped,
}

/// The watermark of one partition of a source, by bounded out-of-orderness and idleness.
///
/// W is the newest time seen less the bound, nothing before the first row, and never goes back.
#[derive(Clone, Debug)]
pub struct Generator {
    strategy: Watermarks,
    newest: Option<EventTime>,
    sent: Watermark,
    quiet_since: ProcTime,
    idle: bool,
    // It is not read, so that it is not quiet by itself.
    paused: bool,
}

/// What has to be known of a [`Generator`] to make another one that goes on where it was.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct GeneratorRecord {
    newest: Option<EventTime>,
    sent: Watermark,
    // The time in between does not count: nobody was there to read.
    quiet_for: Span,
    idle: bool,
}

impl Generator {
    /// What it is now.
    pub fn record(&self, now: ProcTime) -> GeneratorRecord {
        let &Generator { newest, sent, idle, quiet_since, .. } = self;
        GeneratorRecord { newest, sent, quiet_for: now.since(quiet_since), idle }
    }

    /// Goes on where another one was.
    pub fn go_on(&mut self, GeneratorRecord { newest, sent, quiet_for, idle }: GeneratorRecord, now: ProcTime) {
        (self.newest, self.sent, self.idle) = (newest, sent, idle);
        self.quiet_since = now.plus(-quiet_for);
    }

    /// A generator that starts its idle clock now.
    pub fn new(strategy: Watermarks, now: ProcTime) -> Generator {
        Generator { strategy, newest: None, sent: Watermark::NONE, quiet_since: now, idle: false, paused: false }
    }

    /// A row of this time has come.
    #[inline]
    pub fn on_row(&mut self, time: EventTime) {
        if self.newest.is_none_or(|newest| time > newest) {
            self.newest = Some(time);
        }
    }

    /// The time of the newest row so far.
    pub fn newest(&self) -> Option<EventTime> {
        self.newest
    }

    /// Rows have come; returns `Active` if the partition was idle until now.
    pub fn on_rows(&mut self, now: ProcTime) -> Option<Progress> {
        self.quiet_since = now;
        std::mem::take(&mut self.idle).then_some(Progress::Active)
    }

    /// The host says what the partition is, and knows it better: what the host lets be idle wakes as if the clock had.
    pub fn on_progress(&mut self, progress: Progress, now: ProcTime) {
        match progress {
            Progress::Idle => self.idle = true,
            Progress::Active | Progress::At(_) if self.idle => {
                self.idle = false;
                self.quiet_since = now;
            }
            Progress::Active | Progress::At(_) | Progress::Stopped | Progress::End => {}
        }
    }

    /// The watermark, if it has moved since it was last asked for.
    pub fn advance(&mut self, now: ProcTime) -> Option<Watermark> {
        let frontier = match self.strategy.field {
            None => Watermark::at(now.as_event_time()),
            Some(_) if self.strategy.out_of_order == Span::MAX => return None,
            Some(_) => Watermark::at(self.newest?.minus(self.strategy.out_of_order)),
        };
        if frontier <= self.sent {
            return None;
        }
        self.sent = frontier;
        Some(frontier)
    }

    /// The clock has moved; returns `Idle` once when the partition has been quiet for long enough.
    pub fn on_clock(&mut self, now: ProcTime) -> Option<Progress> {
        let idle_at = self.idle_at()?;
        if now < idle_at {
            return None;
        }
        self.idle = true;
        Some(Progress::Idle)
    }

    /// It is not read for now: that nothing comes does not make it idle.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// It is read again; its idle clock starts now.
    pub fn resume(&mut self, now: ProcTime) {
        self.paused = false;
        self.quiet_since = now;
    }

    /// Whether event time is the time of arrival.
    pub fn by_arrival(&self) -> bool {
        self.strategy.field.is_none()
    }

    /// When the partition will be idle if nothing comes; none if it is already, is not read, or never will be.
    pub fn idle_at(&self) -> Option<ProcTime> {
        if self.idle || self.paused { None } else { self.strategy.idle.map(|after| self.quiet_since.plus(after)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{millis, minutes, secs};

    fn at(t: i64) -> EventTime {
        EventTime::from_millis(t)
    }

    #[test]
    fn the_watermark_is_the_newest_time_less_the_bound_and_never_goes_back() {
        let mut generator = Generator::new(Watermarks::of_field("t").out_of_order(millis(10)), ProcTime::default());
        let now = ProcTime::default();
        assert_eq!(generator.advance(now), None);
        for (time, expected) in [(100, Some(90)), (95, None), (101, Some(91)), (-5, None)] {
            generator.on_row(at(time));
            assert_eq!(generator.advance(now), expected.map(|t| Watermark::at(at(t))), "{time}");
        }
    }

    #[test]
    fn without_a_bound_on_disorder_no_row_moves_the_watermark() {
        let mut generator = Generator::new(Watermarks::of_field("t").out_of_order(Span::MAX), ProcTime::default());
        for time in [EventTime::MIN, at(0), EventTime::MAX] {
            generator.on_row(time);
            assert_eq!(generator.advance(ProcTime::default()), None);
        }
    }

    #[test]
    fn a_partition_is_idle_after_a_while_also_before_its_first_row() {
        let strategy = Watermarks::of_field("t").idle(minutes(1));
        let mut generator = Generator::new(strategy, ProcTime::from_millis(1_000));
        assert_eq!(generator.on_clock(ProcTime::from_millis(60_999)), None);
        assert_eq!(generator.on_clock(ProcTime::from_millis(61_000)), Some(Progress::Idle));
        assert_eq!(generator.on_clock(ProcTime::from_millis(99_000)), None);
        assert_eq!(generator.on_rows(ProcTime::from_millis(100_000)), Some(Progress::Active));
        assert_eq!(generator.on_rows(ProcTime::from_millis(100_001)), None);
        assert_eq!(generator.on_clock(ProcTime::from_millis(160_001)), Some(Progress::Idle));
    }

    #[test]
    fn a_partition_that_is_not_read_is_not_idle() {
        let mut generator = Generator::new(Watermarks::of_field("t").idle(minutes(1)), ProcTime::default());
        generator.pause();
        assert_eq!((generator.idle_at(), generator.on_clock(ProcTime::from_millis(600_000))), (None, None));
        generator.resume(ProcTime::from_millis(600_000));
        assert_eq!(generator.idle_at(), Some(ProcTime::from_millis(660_000)));
    }

    #[test]
    fn arrival_time_moves_with_the_clock() {
        let mut generator = Generator::new(Watermarks::ingestion(), ProcTime::default());
        assert_eq!(generator.advance(ProcTime::from_millis(7)), Some(Watermark::at(at(7))));
        assert_eq!(generator.advance(ProcTime::from_millis(7)), None);
    }

    #[test]
    fn a_row_far_ahead_of_the_clock_is_not_believed() {
        let strategy = Watermarks::of_field("t");
        let now = ProcTime::from_millis(0);
        assert!(!strategy.beyond_future(at(0).plus(MAX_FUTURE), now));
        assert!(strategy.beyond_future(at(1).plus(MAX_FUTURE), now));
        let any = strategy.clone().any_future();
        assert!(!any.beyond_future(EventTime::LAST, now) && any.beyond_future(EventTime::MAX, now));
        assert!(strategy.max_future(secs(1)).beyond_future(at(1_001), now));
    }
}
