//! Tumbling and sliding windows: the same for all keys.
//!
//! Rows wait in the panes of their time, where nothing is looked up. A window that fires groups the rows of its panes by
//! key, once; a pane goes as a whole when its newest window is over.

use super::super::Outbox;
use super::super::joined::{Arrival, Arrivals};
use super::emit::Emitter;
use super::windows::{Grid, Window, clamp, reach};
use crate::key::Key;
use crate::state::{Grouping, Logged, Panes, RowId};
use crate::time::{EventTime, Span, Watermark};

/// The rows of a join over windows that are the same for all keys.
pub struct GridRows<K: Key, const N: usize> {
    grid: Grid,
    lateness: i128,
    panes: Panes<K>,
    grouping: Grouping<N>,
    // The rows of one key.
    lists: [Vec<RowId>; N],
}

impl<K: Key, const N: usize> GridRows<K, N> {
    /// No rows yet.
    pub fn new(grid: Grid, lateness: Span) -> Self {
        GridRows {
            grid,
            lateness: i128::from(lateness.as_millis()),
            panes: Panes::default(),
            grouping: Grouping::default(),
            lists: std::array::from_fn(|_| Vec::new()),
        }
    }

    /// Takes rows in: those whose windows are all over are late.
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
        for Arrival { key, hash, time, id } in arrivals.rows.drain(..) {
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
            self.panes.log(last, Logged { hash, key, id, input: input as u8 });
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
            self.lists.iter_mut().for_each(Vec::clear);
            self.panes.rows_of((last - self.grid.size() + 1, last), hash, key, &mut self.lists);
            emitter.enter(self.window(last), out);
            emitter.add(&mut self.lists, (input, id), clamp(last));
        }
    }

    /// The watermark has moved: windows fire, in order, and panes go.
    pub fn advance(&mut self, before: Watermark, now: Watermark, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let until = reach(now);
        let mut last = self.grid.oldest(reach(before));
        // Where no pane is, no window fires.
        while let Some(pane) = self.panes.first_from(last - self.grid.size() + 1) {
            if pane > last {
                last = self.grid.oldest(pane);
            }
            if last >= until {
                break;
            }
            self.fire(last, emitter, out);
            // What is over goes at once, so that its memory serves the next window.
            let next = last + self.grid.slide();
            self.drop_before(next.min(until) - self.lateness, emitter, out);
            last = next;
        }
        self.drop_before(until - self.lateness, emitter, out);
    }

    fn fire(&mut self, last: i128, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let slices: Vec<&[Logged<K>]> = self.panes.rows(last - self.grid.size() + 1, last).collect();
        self.grouping.fill(&slices);
        let cause = clamp(last);
        emitter.enter(self.window(last), out);
        for group in 0..self.grouping.len() {
            emitter.fire(&self.grouping.lists(group), cause, out);
        }
        emitter.settle(out);
    }

    // Lets the panes go of which all windows end before a time.
    fn drop_before(&mut self, time: i128, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let mut dropped = false;
        while let Some(pane) = self.panes.first_from(i128::MIN) {
            let newest = self.grid.newest(pane);
            if newest >= time {
                break;
            }
            let last = clamp(newest);
            self.panes.remove(pane, |row| emitter.leave(usize::from(row.input), row.id, last));
            dropped = true;
        }
        if dropped {
            emitter.settle(out);
        }
    }

    /// The earliest time that may still come out: that of the first window that may still get rows.
    pub fn earliest(&self, watermark: Watermark) -> Option<EventTime> {
        let may_be_late = self.lateness > 0 && watermark != Watermark::END;
        may_be_late.then(|| clamp(self.grid.oldest(reach(watermark) - self.lateness)))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.panes.bytes() + self.grouping.bytes()
    }
}
