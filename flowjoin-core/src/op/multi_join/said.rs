//! What has been said about gaps, where what is held does not tell.
//!
//! Rows that expire in silence leave results standing that the rows held would not give, and gaps that may wait are
//! not told at once. Then it is noted what stands: with two inputs, a bit a row for "stands with nothing beside it";
//! with more, the order in which rows came ([`Hushed`]).

use super::super::kernel::Out;
use super::spec::{Emit, Spec};
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Bits, Due, Expiry, Fields, Hushed, Met, ReadFields, RowId};
use crate::time::{ProcTime, Span};

/// What has been said about gaps.
pub enum Said<K: Key, const N: usize> {
    /// What the rows held give.
    AsHeld,
    /// With two inputs: the rows that stand with a gap, or because a partner exists or does not.
    Alone([Bits; 2]),
    /// With more.
    Numbered(Hushed<K, N>),
}

/// Which gaps are told when.
pub struct Gaps<const N: usize> {
    emit: [Emit; N],
    // The rows whose delay is over, and when that of each is.
    fired: [Bits; N],
    due: [Vec<i64>; N],
    calendars: [Option<(Span, Expiry)>; N],
}

impl<K: Key, const N: usize> Said<K, N> {
    /// What such a join has to note.
    pub fn of(spec: &Spec<N>) -> Self {
        let unsure = spec.waits() || (0..N).any(|input| spec.hushes(input));
        match (unsure, N) {
            (false, _) => Said::AsHeld,
            (true, 2) => Said::Alone([Bits::default(), Bits::default()]),
            (true, _) => Said::Numbered(Hushed::default()),
        }
    }

    /// A row has come.
    #[inline]
    pub fn on_arrival(&mut self, input: usize, id: RowId) {
        match self {
            Said::AsHeld | Said::Alone(_) => {}
            Said::Numbered(hushed) => hushed.on_arrival(input, id),
        }
    }

    /// A row has gone; returns whether it stood alone.
    pub fn on_gone(&mut self, input: usize, id: RowId) -> bool {
        match self {
            Said::Alone(alone) => alone[input].remove(id),
            Said::AsHeld | Said::Numbered(_) => false,
        }
    }

    /// What of a change is to be said, given what has been; notes that it is.
    pub fn filter(&mut self, key: &K, gaps: Option<&Gaps<N>>, out: Out<N>) -> Option<Out<N>> {
        let told = |ids: &[RowId; N]| gaps.is_none_or(|gaps| gaps.told(ids) == Told::Now);
        let (old, new) = out.parts();
        match self {
            Said::AsHeld => Some(out),
            Said::Alone(alone) => {
                let old = old.filter(|ids| match lone(ids) {
                    Some((input, id)) => alone[input].remove(id),
                    None => true,
                });
                let new = new.filter(|ids| match lone(ids) {
                    Some((input, id)) => told(ids) && alone[input].insert(id),
                    None => true,
                });
                Out::of(old, new)
            }
            Said::Numbered(hushed) => {
                let old = old.filter(|ids| told(ids) && hushed.stands(key, ids));
                let new = new.filter(told);
                Out::of(old, new)
            }
        }
    }

    /// Whether a gap that was not told has been waiting for as long as the rows beside it are held.
    pub fn waits(&self, key: &K, ids: &[RowId; N], met: &Met<N>) -> bool {
        match self {
            Said::AsHeld => false,
            Said::Alone(alone) => {
                lone(ids).is_some_and(|(input, id)| !alone[input].contains(id) && !met.contains(input, id))
            }
            Said::Numbered(hushed) => ids.iter().any(|id| id.is_missing()) && hushed.stands(key, ids),
        }
    }

    /// The gap beside a row is told now.
    pub fn tell(&mut self, ids: &[RowId; N]) {
        if let (Said::Alone(alone), Some((input, id))) = (self, lone(ids)) {
            alone[input].insert(id);
        }
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        match self {
            Said::AsHeld => 0,
            Said::Alone(alone) => alone.iter().map(Bits::bytes).sum(),
            Said::Numbered(hushed) => hushed.bytes(),
        }
    }
}

/// When a gap is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    Now,
    AfterDelay,
    AtTheEnd,
}

impl<const N: usize> Gaps<N> {
    /// What such a join has to wait for, if for anything.
    pub fn of(spec: &Spec<N>) -> Option<Gaps<N>> {
        let delay_of = |emit: Emit| match emit {
            Emit::EagerAfter(delay) => Some(delay),
            Emit::Eager | Emit::Final => None,
        };
        // A row waits for as long as the gap beside it that waits longest.
        let delay = |input| (0..N).filter(|&other| other != input).filter_map(|other| delay_of(spec.emit[other])).max();
        spec.waits().then(|| Gaps {
            emit: spec.emit,
            fired: std::array::from_fn(|_| Bits::default()),
            due: std::array::from_fn(|_| Vec::new()),
            calendars: std::array::from_fn(|input| delay(input).map(|delay| (delay, Expiry::new(delay.as_millis())))),
        })
    }

    /// A row has come.
    pub fn on_arrival(&mut self, input: usize, id: RowId, hash: u64, now: ProcTime) {
        let Some((delay, calendar)) = &mut self.calendars[input] else { return };
        let at = now.plus(*delay).as_millis();
        calendar.push(Due { at, id, hash });
        let due = &mut self.due[input];
        if due.len() <= id.index() {
            due.resize(id.index() + 1, i64::MAX);
        }
        due[id.index()] = at;
        self.fired[input].remove(id);
    }

    /// Writes when the delay of a row is over, and whether it was told.
    pub fn write(&self, input: usize, id: RowId, mut out: Fields<'_>) {
        let due = self.calendars[input].as_ref().map(|_| self.due[input][id.index()]);
        out.number(u64::from(self.fired[input].contains(id))).signed(due.unwrap_or_default());
    }

    /// Passes that over.
    ///
    /// # Errors
    /// If it is not there.
    pub fn skip(&self, from: &mut ReadFields<'_>) -> Result<(), OpError> {
        from.number().and(from.signed()).map(drop)
    }

    /// Takes that back of a row with this hash.
    ///
    /// # Errors
    /// If it is not there.
    pub fn take_back(
        &mut self,
        input: usize,
        (id, hash): (RowId, u64),
        from: &mut ReadFields<'_>,
    ) -> Result<(), OpError> {
        let (has_fired, at) = (from.number()? == 1, from.signed()?);
        if let Some((_, calendar)) = &mut self.calendars[input] {
            let due = &mut self.due[input];
            if due.len() <= id.index() {
                due.resize(id.index() + 1, i64::MAX);
            }
            due[id.index()] = at;
            if !has_fired {
                calendar.push(Due { at, id, hash });
            }
        }
        if has_fired {
            self.fired[input].insert(id);
        }
        Ok(())
    }

    /// The rows of an input whose delay is over now.
    pub fn take_due(&mut self, input: usize, now: ProcTime) -> Vec<Due> {
        let mut due = Vec::new();
        if let Some((_, calendar)) = &mut self.calendars[input] {
            calendar.take_due(now.as_millis(), &mut due);
        }
        // The number of a row that has left may be that of another.
        due.retain(|due| self.due[input][due.id.index()] == due.at);
        due
    }

    /// Notes that the delay of a row is over; returns whether it was not before.
    pub fn fire(&mut self, input: usize, id: RowId) -> bool {
        self.fired[input].insert(id)
    }

    /// When the next delay is over.
    pub fn earliest(&mut self) -> Option<i64> {
        self.calendars.iter_mut().flatten().filter_map(|(_, calendar)| calendar.earliest()).min()
    }

    /// When a combination is told that may have gaps: the last of when each of its gaps is.
    pub fn told(&self, ids: &[RowId; N]) -> Told {
        let mut told = Told::Now;
        for input in (0..N).filter(|&input| ids[input].is_missing()) {
            match self.emit[input] {
                Emit::Eager => {}
                Emit::Final => return Told::AtTheEnd,
                Emit::EagerAfter(_) if self.have_fired(ids) => {}
                Emit::EagerAfter(_) => told = Told::AfterDelay,
            }
        }
        told
    }

    /// Whether a combination has a gap that waits for a delay.
    pub fn has_waited(&self, ids: &[RowId; N]) -> bool {
        let waits = |input: usize| matches!(self.emit[input], Emit::EagerAfter(_));
        (0..N).any(|input| ids[input].is_missing() && waits(input))
    }

    fn have_fired(&self, ids: &[RowId; N]) -> bool {
        let mut rows = ids.iter().enumerate().filter(|(_, id)| !id.is_missing());
        rows.all(|(input, &id)| self.fired[input].contains(id))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let fired: u64 = self.fired.iter().map(Bits::bytes).sum();
        let due: usize = self.due.iter().map(|due| due.capacity() * size_of::<i64>()).sum();
        let calendars: u64 = self.calendars.iter().flatten().map(|(_, calendar)| calendar.bytes()).sum();
        fired + due as u64 + calendars
    }
}

// The only row of a combination.
fn lone<const N: usize>(ids: &[RowId; N]) -> Option<(usize, RowId)> {
    let mut rows = ids.iter().copied().enumerate().filter(|(_, id)| !id.is_missing());
    rows.next().filter(|_| rows.next().is_none())
}
