//! The head of a table: changes as a reader hands them over become changes with times that need no more than themselves.
//!
//! A row that is told in part is made whole here, where all changes of its key are read in order, before they are dealt
//! out: so it does not matter whether the key that it had and the one that it gets belong to one task. What cannot be
//! made whole, or has a bad time, is a bad record, and changes nothing: neither of two keys.

use super::{AnyPage, EventStamp, Holdings, ReadFrom, Refused, Stamp, Standing, Taken};
use crate::batch::{AnyBatch, Batch};
use crate::change::RowKind;
use crate::error::{OpError, TimeError};
use crate::io::{Moved, MovedTo, Page, Patch, TableChange, WholeChange};
use crate::key::Key;
use crate::record::{Event, Keyed};
use crate::state::{Sealed, Sealing};
use crate::time::{EventTime, ProcTime};
use crate::watermark::Generator;

/// Stamps the changes of a table: by the [`Event`] time of the row where there is one, else by the time that the source
/// knows, else by the newest time so far of its partition.
pub struct TableStamp<T: Keyed> {
    rows: EventStamp<T>,
    // The rows of the partitions that are read here, if some may be told in part.
    standing: Option<Standing<T>>,
}

impl<T: Event + Keyed> TableStamp<T> {
    /// The stamp of a table of this name; with the rows as they stand, if its source tells some in part.
    pub fn new(origin: String, standing: Option<Standing<T>>) -> Self {
        TableStamp { rows: EventStamp::new(origin), standing }
    }
}

// A page on its way.
struct Stamping<'a, T: Keyed> {
    stamp: &'a mut TableStamp<T>,
    generator: &'a mut Generator,
    now: ProcTime,
    whole: Batch<WholeChange<T>>,
}

impl<T: Event + Keyed> Stamping<'_, T> {
    fn take(&mut self, change: TableChange<T>) -> Result<(), Refused> {
        match change {
            TableChange::Put(row) => {
                let time = self.time_of(&row)?;
                self.put(row, time);
            }
            TableChange::Delete { key, time, row } => {
                let time = self.told(time)?;
                self.delete(key, row, time);
            }
            // A change without a key changes nothing, and is counted as such behind the exchange.
            TableChange::Patch { key, time, .. } if key.is_null() => {
                let time = self.told(time)?;
                self.delete(key, None, time);
            }
            TableChange::Patch { key, time, patch } => {
                let (row, time) = self.patched((&key, &key), &patch, self.told(time)?)?;
                self.put(row, time);
            }
            TableChange::Move(moved) => {
                let Moved { from, row: gone, time, to } = *moved;
                let left = self.told(time)?;
                // What is known to be gone already is not deleted once more.
                let leaves = self.stamp.standing.as_mut().is_none_or(|standing| standing.holds(&from));
                let (row, came) = match to {
                    MovedTo::Row(row) => self.time_of(&row).map(|time| (row, time))?,
                    MovedTo::Patch { key, patch } => self.patched((&from, &key), &patch, left)?,
                };
                if leaves || gone.is_some() {
                    self.delete(from, gone, left);
                }
                self.put(row, came);
            }
            TableChange::Truncate { time } => {
                let time = self.told(time)?;
                if let Some(standing) = &mut self.stamp.standing {
                    standing.truncate();
                }
                self.push(WholeChange::Truncate, time);
            }
        }
        Ok(())
    }

    fn time_of(&self, row: &T) -> Result<EventTime, Refused> {
        let time = self.stamp.rows.time_of(row, self.now.as_event_time(), self.now);
        time.map_err(|error| Refused::time(row, &error))
    }

    // The time of a change that has no row to say it. It is believed no more than that of a row.
    fn told(&self, time: Option<EventTime>) -> Result<EventTime, Refused> {
        let strategy = &self.stamp.rows.strategy;
        let Some(field) = strategy.field() else { return Ok(self.now.as_event_time()) };
        match time {
            Some(time) if strategy.beyond_future(time, self.now) => {
                let error = TimeError::in_the_future(field, time, self.now.as_event_time());
                Err(Refused { reason: error.to_string(), raw: Vec::new() })
            }
            Some(time) => Ok(time),
            None => Ok(self.generator.newest().unwrap_or(EventTime::MIN)),
        }
    }

    // The row of a key that was told in part, made of the one under the key that it had before. A source that begins again
    // may tell once more that a row has moved: that row is then found under its new key. And one that tells a change of key
    // by a delete and an insert has just deleted the row.
    fn patched(
        &mut self,
        (from, to): (&T::Key, &T::Key),
        patch: &Patch<T>,
        told: EventTime,
    ) -> Result<(T, EventTime), Refused> {
        let refused = |reason| Refused { reason, raw: patch.record(to) };
        let Some(standing) = &mut self.stamp.standing else { return Err(refused(NOT_HELD.to_string())) };
        let before = match (standing.holds(from), standing.holds(to)) {
            (true, _) => standing.row(from),
            (false, true) => standing.row(to),
            (false, false) if from != to => standing.just_gone(from),
            (false, false) => None,
        };
        let row = patch.apply(before).map_err(refused)?;
        if row.key() != *to {
            return Err(refused(format!("what was patched has the key {:?}, and not {to:?}", row.key())));
        }
        // By arrival there is no time but that of the patch.
        let time = self.stamp.rows.time_of(&row, told, self.now);
        let time = time.map_err(|error| refused(error.to_string()))?;
        Ok((row, time))
    }

    fn put(&mut self, row: T, time: EventTime) {
        if let Some(standing) = &mut self.stamp.standing {
            standing.put(&row);
        }
        self.push(WholeChange::Put(row), time);
    }

    fn delete(&mut self, key: T::Key, row: Option<Box<T>>, time: EventTime) {
        if let Some(standing) = &mut self.stamp.standing {
            standing.delete(&key, row.as_deref());
        }
        self.push(WholeChange::Delete { key, row }, time);
    }

    fn push(&mut self, change: WholeChange<T>, time: EventTime) {
        self.generator.on_row(time);
        self.whole.push(change, time, RowKind::Insert);
    }
}

impl<T: Event + Keyed> Stamp for TableStamp<T> {
    fn stamp(&mut self, page: AnyPage, now: ProcTime, generator: &mut Generator) -> Taken {
        let page = self.rows.open::<TableChange<T>>(page);
        let Page { rows: changes, bad: by_reader, origins, raws, passed_over } = page;
        let read = ReadFrom { origins: &origins, raws: &raws };
        let whole = Batch::with_capacity(changes.len());
        let (stops, mut bad) = (self.rows.stops_at_bad, Vec::new());
        let mut stamping = Stamping { stamp: self, generator, now, whole };
        for (index, change) in changes.into_iter().enumerate() {
            if let Err(refused) = stamping.take(change) {
                bad.push(stamping.stamp.rows.bad(refused, index, read));
                if stops {
                    break;
                }
            }
        }
        let whole = stamping.whole;
        let bad = self.rows.bad_of(by_reader, bad);
        Taken { batch: (!whole.is_empty()).then(|| AnyBatch::new(whole)), bad, passed_over }
    }

    fn stop_at_bad(&mut self) {
        self.rows.stop_at_bad();
    }

    fn holds(&self) -> Holdings {
        self.standing.as_ref().map_or_else(Holdings::default, Standing::figures)
    }

    fn keep(&mut self) {
        self.standing.iter_mut().for_each(Standing::keep);
    }

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        self.standing.iter_mut().try_for_each(|standing| standing.seal(into))
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match &mut self.standing {
            Some(standing) => standing.take_back(sealed),
            None => Err(OpError::unreadable("the rows of a table", &"its source tells whole rows now")),
        }
    }
}

const NOT_HELD: &str = "only a part of the row was told, and the source has not said that it tells such changes \
                        (`tells_patches`), so there is no row before to complete it from";
