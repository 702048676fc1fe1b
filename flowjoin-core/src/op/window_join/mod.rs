//! Window join: rows of one key that are in the same window, for any number of inputs.
//!
//! ```text
//!   for each window w and each key:   result = pad(rows(0) in w) × pad(rows(1) in w) × …
//! ```
//!
//! A window fires when the watermark reaches its end: then all that it makes comes out at once, with the last time of the
//! window, so that nothing is said that has to be taken back. A pair comes once for each window that both its rows are in.
//! A row is late if all its windows are over. With an allowed lateness a window is kept for so long after it has fired, and
//! a row that comes in that time says what it changes, and no more.
//!
//! Windows that are the same for all keys are in `grid`, sessions in `session`, what comes out of either in `emit`, and
//! what is known of windows into which rows come late in `fired`; under which window a result of a session is taken back,
//! says `taken_back`; `keep` keeps either kind where state outlives its process. What a watermark makes comes out in
//! parts, however far it moves, and within a key with many rows too.

mod emit;
mod fired;
mod grid;
mod keep;
mod session;
mod taken_back;
mod windows;

use std::sync::Arc;

use super::joined::{Arrivals, JoinRows, Lateness};
use super::kernel::Kind;
use super::{Cx, InputId, Operator, Outbox};
use crate::account::OpFigures;
use crate::batch::AnyBatch;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Owner, Sealed, Sealing};
use crate::time::{EventTime, ProcTime, Span, Watermark};
use emit::Emitter;
use grid::GridRows;
use session::SessionRows;
pub use windows::{CurrentWindow, Grid, Window, Windows};

/// What a window join of N inputs is to do.
#[derive(Clone, Debug)]
pub struct Spec<const N: usize> {
    /// What each input does to the result.
    pub kinds: [Kind; N],
    /// A bit for each input with a condition between it and those on its left.
    pub conditions: u16,
    /// The windows.
    pub windows: Windows,
    /// How long after a window has fired rows may still come into it.
    pub lateness: Span,
}

/// A join of N inputs on one key and on windows.
pub struct WindowJoin<K: Key, const N: usize> {
    held: Held<K, N>,
    emitter: Emitter<K, N>,
    watermark: Watermark,
    // The rows of a batch that are still to be taken in, the last one first, and their input.
    arrivals: Arrivals<K>,
    coming: usize,
}

enum Held<K: Key, const N: usize> {
    Grid(GridRows<K, N>),
    Sessions(SessionRows<K, N>),
}

impl<K: Key, const N: usize> WindowJoin<K, N> {
    /// A join that does what the spec says, over these rows, which are told the window of each result if they ask.
    ///
    /// # Panics
    /// If the windows are none: a plan with such windows is refused.
    pub fn new(spec: &Spec<N>, rows: Box<dyn JoinRows<K, N>>, shown: Option<Arc<CurrentWindow>>) -> Self {
        let held = match spec.windows {
            Windows::Tumbling { size, offset } => {
                Held::Grid(GridRows::new(Grid::new(size, size, offset), spec.lateness))
            }
            Windows::Sliding { size, slide, offset } => {
                Held::Grid(GridRows::new(Grid::new(size, slide, offset), spec.lateness))
            }
            Windows::Session { gap } => Held::Sessions(SessionRows::new(gap, spec.lateness)),
        };
        let emitter = Emitter::new(spec, rows, shown);
        WindowJoin { held, emitter, watermark: Watermark::NONE, arrivals: Arrivals::default(), coming: 0 }
    }

    fn take_in(&mut self, out: &mut Outbox) {
        let (input, emitter) = (self.coming, &mut self.emitter);
        match &mut self.held {
            Held::Grid(rows) => rows.take_in(input, &mut self.arrivals, self.watermark, emitter, out),
            Held::Sessions(rows) => rows.take_in(input, &mut self.arrivals, self.watermark, emitter, out),
        }
        emitter.send_late(input, self.watermark, out);
        emitter.settle(out);
    }

    fn go_on(&mut self, out: &mut Outbox) {
        match &mut self.held {
            Held::Grid(rows) => rows.go_on(&mut self.emitter, out),
            Held::Sessions(rows) => rows.go_on(&mut self.emitter, out),
        }
    }
}

impl<K: Key, const N: usize> Operator for WindowJoin<K, N> {
    fn on_batch(&mut self, input: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let input = input.0;
        // Which rows are late depends on their windows.
        let all = Lateness::facts(Watermark::NONE);
        let taken = self.emitter.rows.arrive(input, batch, all, &mut self.arrivals, cx.out);
        self.emitter.accounts[input].rows += self.arrivals.rows.len() as u64;
        self.arrivals.rows.reverse();
        self.coming = input;
        self.take_in(cx.out);
        taken
    }

    fn has_more(&self) -> bool {
        let walks = match &self.held {
            Held::Grid(rows) => rows.has_more(),
            Held::Sessions(rows) => rows.has_more(),
        };
        walks || !self.arrivals.rows.is_empty()
    }

    fn on_more(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        if !self.arrivals.rows.is_empty() {
            self.take_in(cx.out);
        }
        self.go_on(cx.out);
        Ok(())
    }

    fn on_watermark(&mut self, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let before = std::mem::replace(&mut self.watermark, cx.watermark);
        match &mut self.held {
            Held::Grid(rows) => rows.advance(before, cx.watermark),
            Held::Sessions(rows) => rows.advance(cx.watermark),
        }
        self.go_on(cx.out);
        Ok(())
    }

    fn earliest_output(&mut self) -> Option<EventTime> {
        match &self.held {
            Held::Grid(rows) => rows.earliest(self.watermark),
            Held::Sessions(rows) => rows.earliest(self.watermark),
        }
    }

    fn figures(&self) -> OpFigures {
        let held = match &self.held {
            Held::Grid(rows) => rows.bytes(),
            Held::Sessions(rows) => rows.bytes(),
        };
        OpFigures {
            accounts: self.emitter.accounts.to_vec(),
            state_rows: (0..N).map(|input| self.emitter.rows.len(input) as u64).collect(),
            state_bytes: self.emitter.bytes() + held,
            emitted: self.emitter.rows.emitted(),
            ..OpFigures::default()
        }
    }

    fn keep(&mut self) {
        match &mut self.held {
            Held::Grid(_) => drop(self.emitter.journal.get_or_insert_default()),
            Held::Sessions(rows) => rows.sessions.keep(),
        }
    }

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        match &mut self.held {
            Held::Grid(rows) => keep::seal_grid(rows, &mut self.emitter, into)?,
            Held::Sessions(rows) => keep::seal_sessions(rows, &self.emitter, into)?,
        }
        self.emitter.seal(into);
        Ok(())
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match (&mut self.held, sealed.owner) {
            (_, Owner::Task(_)) => self.emitter.take_back(&sealed),
            (Held::Grid(rows), Owner::Group(_)) => keep::take_back_row(rows, &mut self.emitter, &sealed),
            (Held::Sessions(rows), Owner::Group(_)) => keep::take_back_session(rows, &mut self.emitter, &sealed),
        }
    }

    fn resume(&mut self, watermark: Watermark, _: ProcTime) {
        self.watermark = watermark;
        if let Held::Grid(rows) = &mut self.held {
            keep::resume_grid(rows, &mut self.emitter);
        }
    }
}
