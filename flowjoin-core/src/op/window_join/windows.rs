//! Which windows there are, and when each is over.
//!
//! A window is known by its last time, one millisecond before its end: it has fired when the watermark is after that. Ends
//! of windows near those of time lie beyond what a row can carry, so they are reckoned with more bits than times have.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::time::{EventTime, Span, Watermark, millis};

/// How time is divided into windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Windows {
    /// One after the other, each of a size.
    Tumbling {
        /// How long each is.
        size: Span,
        /// When one of them begins, counted from the epoch.
        offset: Span,
    },
    /// Of a size, one beginning a slide after the other: each row is in several.
    Sliding {
        /// How long each is.
        size: Span,
        /// From the beginning of one to that of the next, at most the size.
        slide: Span,
        /// When one of them begins, counted from the epoch.
        offset: Span,
    },
    /// For each key, rows with less than a gap between one and the next, and the gap after them.
    Session {
        /// The time without a row after which a session is over.
        gap: Span,
    },
}

impl std::fmt::Display for Windows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (text, offset) = match self {
            Windows::Tumbling { size, offset } => (format!("tumbling {size}"), *offset),
            Windows::Sliding { size, slide, offset } => (format!("sliding {size} every {slide}"), *offset),
            Windows::Session { gap } => (format!("session gap {gap}"), Span::ZERO),
        };
        f.write_str(&text)?;
        if offset == Span::ZERO { Ok(()) } else { write!(f, ", offset {offset}") }
    }
}

/// One window: the times from its start to before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    start: EventTime,
    last: EventTime,
}

impl Window {
    /// The window from one time to another, both included; what is beyond the ends of time is cut off.
    pub(super) fn of(start: i128, last: i128) -> Window {
        Window { start: clamp(start), last: clamp(last) }
    }

    /// The first time that is in it; of a session that of its oldest row.
    pub const fn start(self) -> EventTime {
        self.start
    }

    /// The first time after it.
    pub const fn end(self) -> EventTime {
        self.last.plus(millis(1))
    }

    /// The last time that is in it, which its results have.
    pub const fn last(self) -> EventTime {
        self.last
    }
}

/// The window of which results are being made, for those who make them: the operator and the `select` of one task.
#[derive(Debug, Default)]
pub struct CurrentWindow {
    start: AtomicI64,
    last: AtomicI64,
}

impl CurrentWindow {
    /// Says which it is.
    pub fn set(&self, window: Window) {
        self.start.store(window.start.as_millis(), Ordering::Relaxed);
        self.last.store(window.last.as_millis(), Ordering::Relaxed);
    }

    /// Which it is.
    pub fn get(&self) -> Window {
        let [start, last] = [&self.start, &self.last].map(|time| EventTime::from_millis(time.load(Ordering::Relaxed)));
        Window { start, last }
    }
}

/// Windows that are the same for all keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    size: i64,
    slide: i64,
    // From 0 to below the slide.
    offset: i64,
}

impl Grid {
    /// Windows of a size, one a slide, one of them beginning at an offset.
    ///
    /// # Panics
    /// If the slide is not above zero, or above the size.
    pub fn new(size: Span, slide: Span, offset: Span) -> Grid {
        let (size, slide) = (size.as_millis(), slide.as_millis());
        assert!(0 < slide && slide <= size, "windows come one after the other without gaps");
        Grid { size, slide, offset: offset.as_millis().rem_euclid(slide) }
    }

    /// How long a window is.
    pub fn size(&self) -> i128 {
        i128::from(self.size)
    }

    /// From one window to the next.
    pub fn slide(&self) -> i128 {
        i128::from(self.slide)
    }

    // How long ago, at a time, something that happens every slide has happened, if it happens at a phase.
    #[inline]
    fn since(&self, time: i64, phase: i64) -> i64 {
        let since = time.rem_euclid(self.slide) - phase;
        if since < 0 { since + self.slide } else { since }
    }

    /// The first and the last time of the pane of a time: the stretch that belongs to the same windows. The last can be
    /// beyond the end of time; the first is not before its beginning.
    #[inline]
    pub fn pane(&self, time: i64) -> (i64, i128) {
        let begin = self.since(time, self.offset);
        let end = match self.slide == self.size {
            true => begin,
            false => self.since(time, (self.offset + self.size % self.slide) % self.slide),
        };
        let first = time.saturating_sub(begin.min(end));
        (first, i128::from(time) + i128::from(self.slide - begin.max(end)) - 1)
    }

    /// The last time of the first window that is over at or after a time: the oldest of those that the time is in.
    pub fn oldest(&self, time: i128) -> i128 {
        let last = i128::from(self.offset) + self.size() - 1;
        time + (last - time).rem_euclid(self.slide())
    }

    /// The last time of the newest window that a time is in.
    pub fn newest(&self, time: i128) -> i128 {
        time - (time - i128::from(self.offset)).rem_euclid(self.slide()) + self.size() - 1
    }

    /// The first time of which a window is over at or after a time: what is before it, is in windows that are over.
    pub fn first_in(&self, time: i128) -> i128 {
        let begin = time - self.size() + 1;
        begin + (i128::from(self.offset) - begin).rem_euclid(self.slide())
    }
}

/// How far windows are over: those that end with a time before this. At the end of time all are.
pub fn reach(watermark: Watermark) -> i128 {
    match watermark {
        Watermark::END => i128::MAX / 2,
        _ => i128::from(watermark.time().as_millis()),
    }
}

/// A time as rows can have it; one beyond them is the greatest or least there is.
pub fn clamp(time: i128) -> EventTime {
    let clamped = time.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    EventTime::from_millis(clamped as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // The last times of all windows that a time is in, by the definition: they begin at the offset plus any number of slides.
    fn windows(size: i64, slide: i64, offset: i64, time: i64) -> Vec<i128> {
        let (size, slide) = (i128::from(size), i128::from(slide));
        let (offset, time) = (i128::from(offset), i128::from(time));
        let number = (time - offset).div_euclid(slide);
        let begins = (number - size / slide - 1..=number + 1).map(|number| offset + number * slide);
        begins.filter(|begin| (*begin..begin + size).contains(&time)).map(|begin| begin + size - 1).collect()
    }

    fn times() -> impl Strategy<Value = i64> {
        prop_oneof![-60..60i64, (0..60i64).prop_map(|back| i64::MAX - back), (0..60i64).prop_map(|on| i64::MIN + on),]
    }

    proptest! {
        #[test]
        fn the_windows_of_a_time_are_those_of_the_definition(
            slide in 1..9i64, more in 0..20i64, offset in times(), time in times(), other in times(),
        ) {
            let size = slide + more;
            let grid = Grid::new(millis(size), millis(slide), millis(offset));
            let expected = windows(size, slide, offset, time);
            let at = i128::from(time);
            prop_assert_eq!(Some(&grid.oldest(at)), expected.first());
            prop_assert_eq!(Some(&grid.newest(at)), expected.last());
            prop_assert_eq!(expected.len() as i128, (grid.newest(at) - grid.oldest(at)) / grid.slide() + 1);
            // A pane is where the windows are the same.
            let (first, last) = grid.pane(time);
            let is_in = first <= other && i128::from(other) <= last;
            prop_assert_eq!(is_in, windows(size, slide, offset, other) == expected);
            // What comes before the first time in a window that is over at or after another is over before that.
            let is_over = *expected.last().expect("a time is in a window") < i128::from(other);
            prop_assert_eq!(is_over, at < grid.first_in(i128::from(other)));
        }
    }

    #[test]
    fn times_before_the_epoch_are_rounded_down() {
        let grid = Grid::new(millis(10), millis(10), millis(0));
        assert_eq!(
            [-11, -10, -1, 0, 9].map(|time| grid.pane(time)),
            [(-20, -11), (-10, -1), (-10, -1), (0, 9), (0, 9)]
        );
        let grid = Grid::new(millis(10), millis(10), millis(-23));
        assert_eq!((grid.pane(-4), grid.pane(-3), grid.pane(7)), ((-13, -4), (-3, 6), (7, 16)));
    }

    #[test]
    fn the_windows_at_the_ends_of_time_reach_beyond_them() {
        let grid = Grid::new(millis(10), millis(10), millis(0));
        assert_eq!(grid.pane(i64::MAX), (i64::MAX - 7, i128::from(i64::MAX) + 2));
        assert_eq!(grid.pane(i64::MIN), (i64::MIN, i128::from(i64::MIN) + 7));
        assert_eq!(clamp(grid.pane(i64::MAX).1), EventTime::MAX);
    }
}
