//! A table out of the changes of its source: puts replace, deletes delete.

use std::cmp::Ordering;
use std::sync::Arc;

use super::net::{Through, Touched};
use crate::account::OpFigures;
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::change::RowKind;
use crate::error::{OpError, RecordError};
use crate::io::{RowChange, TableBatch};
use crate::key::Key;
use crate::op::{Cx, InputId, Operator, Outbox, Port};
use crate::record::Keyed;
use crate::state::{Place, RowId, Sealed, Sealing, Slab, Table};
use crate::time::EventTime;

/// Which of two rows of a key is the newer one, where the order of arrival does not say.
pub type Versions<T> = Arc<dyn Fn(&T, &T) -> Ordering + Send + Sync>;

/// The port of the versions of a table: each row as it comes, with the time from which it holds, and a `-D` without a
/// row for each that goes. None is folded.
pub const VERSIONS: Port = Port(1);

/// What the source of a table tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Rows that come and go, and that all go at once.
    Anything,
    /// Never that all rows go at once.
    WholeRows,
}

/// Holds the newest row of each key.
pub struct Replace<T: Keyed> {
    pub(super) table: Table<T::Key, Standing, ()>,
    pub(super) rows: Slab<T>,
    versions: Option<Versions<T>>,
    told: Told,
    // The versions of a batch, while somebody reads them.
    history: Option<KeyedBatch<T::Key, Option<T>>>,
    pub(super) touched: Touched<T>,
    pub(super) input: Through,
    origin: String,
    pub(super) standing: u64,
    pub(super) scratch: Vec<u8>,
}

// The row of a key. After a delete it stays, unseen, where rows have versions: an older one must not win then.
pub(super) struct Standing {
    pub(super) row: RowId,
    pub(super) deleted: bool,
    touched: u32,
}

impl Default for Standing {
    fn default() -> Self {
        Standing { row: RowId::MISSING, deleted: false, touched: 0 }
    }
}

impl<T: Keyed> Replace<T> {
    /// An empty table of this name.
    pub fn new(origin: String, versions: Option<Versions<T>>, told: Told) -> Self {
        Replace {
            table: Table::default(),
            rows: Slab::default(),
            versions,
            told,
            history: None,
            touched: Touched::default(),
            input: Through::default(),
            origin,
            standing: 0,
            scratch: Vec::new(),
        }
    }

    // The place of a key, and its number among those touched.
    #[inline]
    fn touch(&mut self, key: T::Key, hash: u64, time: EventTime) -> (Place, u32) {
        let place = self.table.upsert(hash, key);
        let standing = self.table.at(place).0;
        if standing.touched == 0 {
            standing.touched = self.touched.first(place, hash);
        }
        self.touched.at(standing.touched, time);
        (place, standing.touched)
    }

    fn note(&mut self, key: &T::Key, hash: u64, time: EventTime, row: Option<&T>) {
        if let Some(history) = &mut self.history {
            let kind = if row.is_some() { RowKind::Insert } else { RowKind::Delete };
            history.push(KeyedRow { key: key.clone(), hash, time, row: row.cloned() }, kind);
        }
    }

    fn put(&mut self, key: T::Key, hash: u64, time: EventTime, row: T) -> Result<(), OpError> {
        self.note(&key, hash, time, Some(&row));
        let (place, number) = self.touch(key, hash, time);
        let standing = self.table.at(place).0;
        let (old, deleted) = (standing.row, standing.deleted);
        if let (Some(versions), Some(held)) = (&self.versions, self.rows.get(old))
            && versions(&row, &held.row) == Ordering::Less
        {
            return Ok(());
        }
        standing.deleted = false;
        if old.is_missing() {
            standing.row = self.rows.insert(row, time)?;
            self.touched.was(number, None);
        } else {
            let held = self.rows.replace(old, row, time);
            self.touched.was(number, (!deleted).then_some(held.row));
        }
        self.standing += u64::from(old.is_missing() || deleted);
        Ok(())
    }

    // Returns whether there was a row.
    fn delete(&mut self, key: T::Key, hash: u64, time: EventTime, gone: Option<T>) -> Result<bool, OpError> {
        self.note(&key, hash, time, None);
        let (place, number) = self.touch(key, hash, time);
        if let Some(versions) = self.versions.clone() {
            return self.bury(versions, (place, number), time, gone);
        }
        let row = std::mem::replace(&mut self.table.at(place).0.row, RowId::MISSING);
        let there = !row.is_missing();
        if there {
            self.standing -= 1;
            let row = self.rows.remove(row).map(|held| held.row);
            self.touched.was(number, row);
        }
        Ok(there)
    }

    // Deletes where rows have versions: an older row must not win later, so the newest one known to be gone stays, unseen.
    fn bury(
        &mut self,
        versions: Versions<T>,
        (place, number): (Place, u32),
        time: EventTime,
        gone: Option<T>,
    ) -> Result<bool, OpError> {
        let standing = self.table.at(place).0;
        let Some(held) = self.rows.get(standing.row) else {
            if let Some(gone) = gone {
                standing.row = self.rows.insert(gone, time)?;
                standing.deleted = true;
            }
            return Ok(false);
        };
        let there = !standing.deleted;
        let order = gone.as_ref().map_or(Ordering::Equal, |gone| versions(gone, &held.row));
        if order == Ordering::Less {
            return Ok(there);
        }
        let row = match gone.filter(|_| order == Ordering::Greater) {
            Some(gone) => self.rows.replace(standing.row, gone, time).row,
            None => held.row.clone(),
        };
        if there {
            standing.deleted = true;
            self.standing -= 1;
            self.touched.was(number, Some(row));
        }
        Ok(there)
    }

    fn truncate(&mut self, time: EventTime) -> Result<(), OpError> {
        for place in self.table.places() {
            let key = self.table.key_at(place).clone();
            let hash = key.stable_hash(&mut self.scratch);
            self.delete(key, hash, time, None)?;
        }
        Ok(())
    }

    fn take(&mut self, keyed: KeyedRow<T::Key, RowChange<T>>) -> Result<(), OpError> {
        let KeyedRow { key, hash, time, row: change } = keyed;
        match change {
            RowChange::Put(row) => {
                self.put(key, hash, time, row)?;
                self.input.taken();
            }
            RowChange::Delete(row) => match self.delete(key, hash, time, row.map(|row| *row))? {
                true => self.input.taken(),
                false => self.input.orphan(),
            },
        }
        Ok(())
    }

    // Passes versions on, where nobody reads the rows that stand and none of them is needed to tell another.
    fn pass(&mut self, batch: TableBatch<T::Key, T>, out: &mut Outbox) {
        let mut history = KeyedBatch::default();
        history.reserve(batch.rows.len());
        for KeyedRow { key, hash, time, row: change } in batch.rows {
            let (row, kind) = match change {
                RowChange::Put(row) => (Some(row), RowKind::Insert),
                RowChange::Delete(_) => (None, RowKind::Delete),
            };
            self.input.taken();
            history.push(KeyedRow { key, hash, time, row }, kind);
        }
        for _ in batch.truncations {
            self.input.bad();
            let origin = self.origin.clone();
            let record = RecordError { reason: NOT_WHOLE.to_string(), raw: Vec::new(), origin, position: None };
            out.report_bad(InputId(0), record);
        }
        self.touched.emitted += history.len() as u64;
        out.send(VERSIONS, AnyBatch::new(history));
    }

    fn send(&mut self, out: &mut Outbox) {
        let (table, rows) = (&mut self.table, &self.rows);
        let now = |place| {
            let standing = table.at(place).0;
            standing.touched = 0;
            let (row, deleted) = (standing.row, standing.deleted);
            let key = if row.is_missing() { table.remove(place).0 } else { table.key_at(place).clone() };
            (key, rows.get(row).filter(|_| !deleted).map(|held| &held.row))
        };
        self.touched.send(now, out);
    }
}

impl<T: Keyed> Operator for Replace<T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let batch = batch.take::<TableBatch<T::Key, T>>()?;
        if self.told == Told::WholeRows && !cx.out.wants(Port::MAIN) {
            self.pass(batch, cx.out);
            return Ok(());
        }
        self.history = cx.out.wants(VERSIONS).then(KeyedBatch::default);
        let TableBatch { rows, truncations } = batch;
        let mut truncations = truncations.into_iter().peekable();
        let count = rows.len();
        let mut rows = rows.into_iter();
        loop {
            let index = count - rows.len();
            while let Some((_, time)) = truncations.next_if(|&(before, _)| before == index) {
                self.truncate(time)?;
                self.input.taken();
            }
            let Some(row) = rows.next() else { break };
            if let Some(next) = rows.as_slice().get(AHEAD) {
                self.table.prefetch(next.hash);
            }
            if let Some(next) = rows.as_slice().get(AHEAD * 2 / 3) {
                self.table.prefetch_entry(next.hash);
            }
            if let Some(next) = rows.as_slice().get(AHEAD / 3) {
                self.table.peek(next.hash, |standing, ()| self.rows.prefetch(standing.row));
            }
            self.take(row)?;
            if self.touched.is_full() {
                self.send(cx.out);
            }
        }
        self.send(cx.out);
        if let Some(history) = self.history.take() {
            cx.out.send(VERSIONS, AnyBatch::new(history));
        }
        Ok(())
    }

    fn figures(&self) -> OpFigures {
        OpFigures {
            accounts: vec![self.input.0],
            state_rows: vec![self.standing],
            state_bytes: self.rows.bytes() + self.table.bytes(|()| 0),
            emitted: self.touched.emitted,
            ..OpFigures::default()
        }
    }

    fn keep(&mut self) {
        self.table.keep();
    }

    fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        self.seal_state(into)
    }

    fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        self.take_back_state(sealed)
    }
}

/// Why a truncation is no good.
const NOT_WHOLE: &str = "its source has promised never to delete all rows (`tells_whole_rows`), and now does";

/// Rows whose place is asked for ahead of use.
const AHEAD: usize = 24;
