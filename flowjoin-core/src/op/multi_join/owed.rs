//! Whether rows that are held will still come out though none comes any more.
//!
//! What comes out then has the time of the watermark, so it holds that back nowhere; but those downstream must not go on
//! without this join, as if it were idle. A result that can be taken back is never late, so only what is told for good
//! counts: rows that leave unmatched, and gaps that wait until they can no longer be filled.

use super::MultiJoin;
use super::spec::Emit;
use crate::key::Key;

impl<K: Key, const N: usize> MultiJoin<K, N> {
    /// Whether a row is held that will go to an unmatched output which is read, unless it meets another.
    pub(super) fn owes_rows(&self) -> bool {
        (0..N).any(|input| self.read[input] && self.accounts[input].open > 0 && !self.spec.stands_alone(input))
    }

    /// Whether there is a gap that is told when a row beside it leaves. Asked again, it looks again only if rows have come
    /// or gone.
    pub(super) fn owes_gaps(&mut self) -> bool {
        if !self.spec.emit.contains(&Emit::Final) {
            return false;
        }
        if let Some(known) = self.owes_gaps {
            return known;
        }
        let owes = match N {
            // A row that has met is beside no gap any more.
            2 => (0..2).any(|input| self.is_final(1 - input) && self.accounts[input].open > 0),
            _ => self.table.places().into_iter().any(|place| self.has_final_gap(self.table.get(place).present())),
        };
        self.owes_gaps = Some(owes);
        owes
    }

    // Whether what stands under a key, where these inputs have rows, has a gap that waits. Where a condition decides what
    // fills a gap, any may.
    fn has_final_gap(&self, present: u16) -> bool {
        let fills = |input: usize| self.steps.is_none() && present >> input & 1 == 1;
        self.shape.required() & !present == 0 && (0..N).any(|input| self.is_final(input) && !fills(input))
    }

    fn is_final(&self, input: usize) -> bool {
        self.shape.is_optional(input) && self.spec.emit[input] == Emit::Final
    }
}
