//! Rows that leave as the watermark passes them: a part at a time, so that a watermark that moves far keeps no call long.

use super::super::Outbox;
use super::IntervalJoin;
use crate::key::Key;
use crate::state::{Due, Side};
use crate::time::EventTime;

impl<K: Key> IntervalJoin<K> {
    /// Lets the rows go that are closed, those of the left first, until the outbox is full.
    pub(super) fn close(&mut self, out: &mut Outbox) {
        let Some(until) = self.close_until else { return };
        let mut due = std::mem::take(&mut self.due);
        for side in [Side::Left, Side::Right] {
            while !out.is_full() {
                due.clear();
                self.closing[side.index()].take_part_due(until, PART, &mut due);
                if due.is_empty() {
                    break;
                }
                self.close_part(side, &due, out);
            }
        }
        self.due = due;
        if !out.is_full() {
            self.close_until = None;
        }
    }

    fn close_part(&mut self, side: Side, due: &[Due], out: &mut Outbox) {
        let own = side.index();
        let (mut alone, mut gone) = (Vec::new(), Vec::new());
        let mut told = 0;
        let mut ahead = self.line.look_ahead(|at| Some(due.get(at)?.hash));
        for (index, &Due { at, id, hash }) in due.iter().enumerate() {
            let guess = self.line.guess(&mut ahead, |after| Some(due.get(index + after)?.hash));
            // A saturated close does not tell the row's time; the row itself does.
            let time = match self.spec.bounds.time_of(side, EventTime::from_millis(at)) {
                EventTime::MIN => self.rows.time(own, id),
                time => time,
            };
            let held = self.line.remove(hash, side, (time, id), guess);
            debug_assert!(held, "a row that closes is held");
            if self.met[own].remove(id) {
                gone.push(id);
            } else if self.gaps[own].stands(id) {
                told += 1;
                gone.push(id);
            } else {
                alone.push(id);
            }
            self.gaps[own].close(id);
        }
        self.accounts[own].open -= told;
        self.accounts[own].unmatched += told;
        self.rows.discard(own, &gone);
        self.leave_alone(side, &alone, out);
        self.select(out);
    }
}

/// Rows that leave together.
const PART: usize = 1_024;
