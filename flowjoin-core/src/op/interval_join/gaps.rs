//! When the gap beside a row is told, and which gaps stand.
//!
//! A gap that is told early is taken back by the first partner, as inputs are append-only: so it opens at most once.

use super::super::multi_join::Emit;
use crate::error::OpError;
use crate::state::{Bits, Due, Expiry, Fields, ReadFields, RowId};
use crate::time::ProcTime;

/// The gaps beside the rows of one side: when they are told.
pub enum Gaps {
    /// Never: a row without a partner is no result.
    Never,
    /// Once no partner can come any more, so that nothing is ever taken back.
    Final,
    /// As a row comes and finds none.
    Eager,
    /// A delay after that.
    After(Box<After>),
}

/// Gaps that are told after a delay.
pub struct After {
    delay: crate::time::Span,
    calendar: Expiry,
    // When the gap beside a row is due: a number may be that of another row by then.
    due: Vec<i64>,
    told: Bits,
}

/// A gap that is told after a delay, as it was before a crash.
#[derive(Clone, Copy)]
pub struct GapBefore {
    told: bool,
    due: i64,
}

impl After {
    #[inline]
    fn open(&mut self, at: i64, id: RowId, hash: u64) {
        self.calendar.push(Due { at, id, hash });
        if self.due.len() <= id.index() {
            self.due.resize(id.index() + 1, i64::MAX);
        }
        self.due[id.index()] = at;
    }
}

impl Gaps {
    /// The gaps of an input that may be missing.
    pub fn of(emit: Emit) -> Gaps {
        match emit {
            Emit::Final => Gaps::Final,
            Emit::Eager => Gaps::Eager,
            Emit::EagerAfter(delay) => Gaps::After(Box::new(After {
                delay,
                calendar: Expiry::new(delay.as_millis()),
                due: Vec::new(),
                told: Bits::default(),
            })),
        }
    }

    /// A row without a partner is kept; returns whether its gap is to be told now.
    #[inline]
    pub fn opens(&mut self, id: RowId, hash: u64, now: ProcTime) -> bool {
        match self {
            Gaps::Never | Gaps::Final => false,
            Gaps::Eager => true,
            Gaps::After(after) => {
                after.open(now.plus(after.delay).as_millis(), id, hash);
                false
            }
        }
    }

    /// Whether the gap beside a row that has met no partner stands in the result.
    #[inline]
    pub fn stands(&self, id: RowId) -> bool {
        match self {
            Gaps::Never | Gaps::Final => false,
            Gaps::Eager => true,
            Gaps::After(after) => after.told.contains(id),
        }
    }

    /// Whether a row that has met no partner, and whose gap does not stand, may still come out by itself.
    pub fn waits(&self) -> bool {
        matches!(self, Gaps::Final | Gaps::After(_))
    }

    /// The gap beside a row is closed for good: a partner has come, or the row leaves.
    #[inline]
    pub fn close(&mut self, id: RowId) {
        if let Gaps::After(after) = self {
            after.told.remove(id);
            if let Some(due) = after.due.get_mut(id.index()) {
                *due = i64::MAX;
            }
        }
    }

    /// The rows whose delay is over; their gaps stand from now on.
    pub fn take_due(&mut self, now: ProcTime) -> Vec<Due> {
        let Gaps::After(after) = self else { return Vec::new() };
        let mut due = Vec::new();
        after.calendar.take_due(now.as_millis(), &mut due);
        let After { due: at, told, .. } = &mut **after;
        due.retain(|due| at[due.id.index()] == due.at && told.insert(due.id));
        due
    }

    /// Appends what is known of the gap beside a row that has met no partner.
    pub fn write(&self, id: RowId, mut out: Fields<'_>) {
        if let Gaps::After(after) = self {
            let due = after.due.get(id.index()).copied().unwrap_or(i64::MAX);
            out.number(u64::from(after.told.contains(id))).signed(due);
        }
    }

    /// Reads what was written of a gap.
    ///
    /// # Errors
    /// If it is not there.
    pub fn read(&self, from: &mut ReadFields<'_>) -> Result<Option<GapBefore>, OpError> {
        match self {
            Gaps::Never | Gaps::Final | Gaps::Eager => Ok(None),
            Gaps::After(_) => Ok(Some(GapBefore { told: from.number()? == 1, due: from.signed()? })),
        }
    }

    /// The gap beside a row is again as it was.
    pub fn put_back(&mut self, id: RowId, hash: u64, GapBefore { told, due }: GapBefore) {
        let Gaps::After(after) = self else { return };
        if told {
            after.told.insert(id);
        } else {
            after.open(due, id, hash);
        }
    }

    /// When the next delay is over.
    pub fn deadline(&mut self) -> Option<ProcTime> {
        let Gaps::After(after) = self else { return None };
        after.calendar.earliest().map(ProcTime::from_millis)
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let Gaps::After(after) = self else { return 0 };
        after.calendar.bytes() + after.told.bytes() + (after.due.capacity() * size_of::<i64>()) as u64
    }
}
