//! Tumbling and sliding windows: the same for all keys.
//!
//! Rows wait in the panes of their time, where nothing is looked up. A window that fires groups the rows of its panes by
//! key, once; a pane goes as a whole when its newest window is over.

use super::super::Outbox;
use super::super::joined::{Arrival, Arrivals};
use super::emit::Emitter;
use super::fired::Revisited;
use super::keep::Back;
use super::windows::{Grid, Window, clamp, reach};
use crate::key::Key;
use crate::state::{Grouping, Logged, Panes, RowId};
use crate::time::{EventTime, Span, Watermark};

/// The rows of a join over windows that are the same for all keys.
pub struct GridRows<K: Key, const N: usize> {
    /// The windows.
    pub grid: Grid,
    lateness: i128,
    /// The rows.
    pub panes: Panes<K>,
    /// Rows that were taken back and are to be put into their panes in the order in which they had come.
    pub back: Vec<Back<K>>,
    grouping: Grouping<N>,
    // What late rows have come into.
    revisited: Revisited<K, N>,
    walk: Option<Walk>,
    // How many rows have left of the pane that is going.
    gone: usize,
}

// How far a watermark has been followed that has moved: windows fire before this time, each is looked for from this one on.
#[derive(Clone, Copy, Debug)]
struct Walk {
    until: i128,
    last: i128,
    step: WalkStep,
}

#[derive(Clone, Copy, Debug)]
enum WalkStep {
    // Look for the next window.
    Seek,
    // Fire the keys of the window from this one on.
    Fire(usize),
    // Let the panes go of which all windows end before a time, and seek again.
    Drop(i128),
    // The same, and then all is done.
    End(i128),
}

impl<K: Key, const N: usize> GridRows<K, N> {
    /// No rows yet.
    pub fn new(grid: Grid, lateness: Span) -> Self {
        GridRows {
            grid,
            lateness: i128::from(lateness.as_millis()),
            panes: Panes::default(),
            back: Vec::new(),
            grouping: Grouping::default(),
            revisited: Revisited::default(),
            walk: None,
            gone: 0,
        }
    }

    /// Takes rows in, which come the last one first, until the outbox is full: those whose windows are all over are late.
    pub fn take_in(
        &mut self,
        input: usize,
        arrivals: &mut Arrivals<K>,
        watermark: Watermark,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        let reach = reach(watermark);
        let late_before = self.grid.first_in(reach - self.lateness);
        // All of them are in one pane, most of the time.
        let (mut first, mut last) = (0, -1);
        while !out.is_full()
            && let Some(Arrival { key, hash, time, id }) = arrivals.rows.pop()
        {
            let time = time.as_millis();
            if i128::from(time) < late_before {
                emitter.is_late(input, id);
                continue;
            }
            if key.is_null() {
                self.on_null(input, id, time, reach, emitter, out);
                continue;
            }
            if time < first || i128::from(time) > last {
                (first, last) = self.grid.pane(time);
            }
            emitter.accounts[input].open += 1;
            if self.lateness > 0 {
                self.add_to_fired(input, (hash, &key, id), (time, reach), emitter, out);
                emitter.select_if_many(out);
            }
            let standing = self.panes.log(last, Logged { hash, key, id, input: input as u8 });
            if let Some(journal) = &mut emitter.journal {
                journal.on_come(input, id, standing);
            }
        }
    }

    fn window(&self, last: i128) -> Window {
        Window::of(last - self.grid.size() + 1, last)
    }

    // The windows that a row is in which are not over, by their last times.
    fn open_windows(&self, time: i64, reach: i128) -> impl Iterator<Item = i128> + use<K, N> {
        let time = i128::from(time);
        let grid = self.grid;
        let oldest = grid.oldest(time.max(reach - self.lateness));
        let newest = grid.newest(time);
        (0..).map(move |number| oldest + number * grid.slide()).take_while(move |&last| last <= newest)
    }

    fn on_null(
        &mut self,
        input: usize,
        id: RowId,
        time: i64,
        reach: i128,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        emitter.accounts[input].null_key += 1;
        if emitter.stands_alone(input) {
            for last in self.open_windows(time, reach) {
                emitter.enter(self.window(last), out);
                emitter.alone(input, id, clamp(last));
            }
            emitter.drop_later(input, id);
            emitter.select_if_many(out);
        } else {
            let last = clamp(self.grid.newest(i128::from(time)));
            emitter.null_unmatched(input, id, last, out);
        }
    }

    // A row has come late for some of its windows, but not for good: these say what it changes.
    fn add_to_fired(
        &mut self,
        input: usize,
        (hash, key, id): (u64, &K, RowId),
        (time, reach): (i64, i128),
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        for last in self.open_windows(time, reach).take_while(|&last| last < reach) {
            let (panes, size) = (&mut self.panes, self.grid.size());
            let fired = self.revisited.of(last, (hash, key), || {
                let mut lists = std::array::from_fn(|_| Vec::new());
                panes.rows_of((last - size + 1, last), hash, key, &mut lists);
                emitter.recall(lists)
            });
            emitter.enter(Window::of(last - size + 1, last), out);
            emitter.add(fired, (input, id), clamp(last));
        }
    }

    /// The watermark moves: what is to be done then is done by [`go_on`](Self::go_on).
    pub fn advance(&mut self, before: Watermark, now: Watermark) {
        let last = self.grid.oldest(reach(before));
        self.walk = Some(Walk { until: reach(now), last, step: WalkStep::Seek });
    }

    /// Windows fire, in order, and panes go, until the outbox is full.
    pub fn go_on(&mut self, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        while let Some(walk) = self.walk {
            if out.is_full() {
                return;
            }
            match walk.step {
                WalkStep::Seek => self.walk = Some(self.seek(walk)),
                WalkStep::Fire(group) => {
                    let fired = self.fire(walk.last, group, emitter, out);
                    if fired < self.grouping.len() {
                        self.walk = Some(Walk { step: WalkStep::Fire(fired), ..walk });
                        return;
                    }
                    emitter.settle(out);
                    // What is over goes at once, so that its memory serves the next window.
                    let last = walk.last + self.grid.slide();
                    let step = WalkStep::Drop(last.min(walk.until) - self.lateness);
                    self.walk = Some(Walk { last, step, ..walk });
                }
                WalkStep::Drop(time) | WalkStep::End(time) => {
                    if !self.drop_before(time, emitter, out) {
                        return;
                    }
                    let ends = matches!(walk.step, WalkStep::End(_));
                    self.walk = (!ends).then_some(Walk { step: WalkStep::Seek, ..walk });
                }
            }
        }
    }

    /// Whether it has more to do, once the outbox has room.
    pub fn has_more(&self) -> bool {
        self.walk.is_some()
    }

    // Groups the rows of the next window that has any and that fires.
    fn seek(&mut self, walk: Walk) -> Walk {
        let end = Walk { step: WalkStep::End(walk.until - self.lateness), ..walk };
        // Where no pane is, no window fires.
        let Some(pane) = self.panes.first_from(walk.last - self.grid.size() + 1) else { return end };
        let last = if pane > walk.last { self.grid.oldest(pane) } else { walk.last };
        if last >= walk.until {
            return end;
        }
        let slices: Vec<&[Logged<K>]> = self.panes.rows(last - self.grid.size() + 1, last).collect();
        self.grouping.fill(&slices);
        Walk { last, step: WalkStep::Fire(0), ..walk }
    }

    // Fires the keys of a window from one on; returns with which it is to go on.
    fn fire(&mut self, last: i128, from: usize, emitter: &mut Emitter<K, N>, out: &mut Outbox) -> usize {
        let cause = clamp(last);
        emitter.enter(self.window(last), out);
        for group in from..self.grouping.len() {
            if out.is_full() || !emitter.fire(&self.grouping.lists(group), cause, out) {
                return group;
            }
        }
        self.grouping.len()
    }

    // Lets the panes go of which all windows end before a time; returns false when the outbox is full.
    fn drop_before(&mut self, time: i128, emitter: &mut Emitter<K, N>, out: &mut Outbox) -> bool {
        self.revisited.forget_before(time);
        let mut dropped = 0;
        while let Some(pane) = self.panes.first_from(i128::MIN) {
            let newest = self.grid.newest(pane);
            if newest >= time {
                break;
            }
            let last = clamp(newest);
            let rows = &self.panes.rows_at(pane)[self.gone..];
            let part = &rows[..rows.len().min(PART)];
            part.iter().for_each(|row| emitter.leave(usize::from(row.input), row.id, last));
            if let Some(journal) = &mut emitter.journal {
                part.iter().for_each(|row| journal.on_gone(row));
            }
            dropped += part.len();
            self.gone += part.len();
            if part.len() == rows.len() {
                self.panes.remove(pane);
                self.gone = 0;
            }
            if dropped >= PART {
                emitter.settle(out);
                dropped = 0;
                if out.is_full() {
                    return false;
                }
            }
        }
        if dropped > 0 {
            emitter.settle(out);
        }
        true
    }

    /// The earliest time that may still come out: that of the first window that may still get rows.
    pub fn earliest(&self, watermark: Watermark) -> Option<EventTime> {
        let may_be_late = self.lateness > 0 && watermark != Watermark::END;
        may_be_late.then(|| clamp(self.grid.oldest(reach(watermark) - self.lateness)))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.panes.bytes() + self.grouping.bytes() + self.revisited.bytes()
    }
}

/// Rows that may leave before what they have left is sent.
const PART: usize = 4_096;
