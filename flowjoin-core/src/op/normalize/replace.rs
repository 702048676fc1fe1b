//! A table out of the changes of its source: puts replace, deletes delete.

use std::cmp::Ordering;
use std::sync::Arc;

use super::net::{Through, Touched};
use crate::account::OpFigures;
use crate::batch::{AnyBatch, KeyedBatch, KeyedRow};
use crate::error::{OpError, RecordError};
use crate::io::TableChange;
use crate::key::Key;
use crate::op::{Cx, InputId, Operator, Outbox};
use crate::record::Keyed;
use crate::state::{Place, RowId, Slab, Table};
use crate::time::EventTime;

/// Which of two rows of a key is the newer one, where the order of arrival does not say.
pub type Versions<T> = Arc<dyn Fn(&T, &T) -> Ordering + Send + Sync>;

/// Holds the newest row of each key.
pub struct Replace<T: Keyed> {
    table: Table<T::Key, Standing, ()>,
    rows: Slab<T>,
    versions: Option<Versions<T>>,
    touched: Touched<T::Key, T>,
    input: Through,
    origin: String,
    standing: u64,
    scratch: Vec<u8>,
}

// The row of a key. After a delete it stays, unseen, where rows have versions: an older one must not win then.
struct Standing {
    row: RowId,
    deleted: bool,
    touched: u32,
}

impl Default for Standing {
    fn default() -> Self {
        Standing { row: RowId::MISSING, deleted: false, touched: 0 }
    }
}

impl<T: Keyed> Replace<T> {
    /// An empty table of this name.
    pub fn new(origin: String, versions: Option<Versions<T>>) -> Self {
        Replace {
            table: Table::default(),
            rows: Slab::default(),
            versions,
            touched: Touched::default(),
            input: Through::default(),
            origin,
            standing: 0,
            scratch: Vec::new(),
        }
    }

    fn visible(&self, standing: &Standing) -> Option<&T> {
        self.rows.get(standing.row).filter(|_| !standing.deleted).map(|held| &held.row)
    }

    // The place of a key, whose visible row is noted before anything changes it.
    fn touch(&mut self, key: T::Key, hash: u64, time: EventTime) -> Place {
        let place = self.table.upsert(hash, key);
        if self.table.at(place).0.touched == 0 {
            let before = {
                let standing = self.table.get(place);
                self.visible(standing).cloned()
            };
            let number = self.touched.first(self.table.key_at(place).clone(), hash, before);
            self.table.at(place).0.touched = number;
        }
        self.touched.at(self.table.get(place).touched, time);
        place
    }

    fn put(&mut self, key: T::Key, hash: u64, time: EventTime, row: T) -> Result<(), OpError> {
        let place = self.touch(key, hash, time);
        let standing = self.table.get(place);
        let (old, deleted) = (standing.row, standing.deleted);
        if let (Some(versions), Some(held)) = (&self.versions, self.rows.get(old)) {
            let order = versions(&row, &held.row);
            if order == Ordering::Less || deleted && order == Ordering::Equal {
                return Ok(());
            }
        }
        if old.is_missing() || deleted {
            self.standing += 1;
        }
        self.rows.remove(old);
        let id = self.rows.insert(row, time)?;
        let standing = self.table.at(place).0;
        standing.row = id;
        standing.deleted = false;
        Ok(())
    }

    // Returns whether there was a row.
    fn delete(&mut self, key: T::Key, hash: u64, time: EventTime) -> bool {
        let place = self.touch(key, hash, time);
        let standing = self.table.at(place).0;
        let there = !standing.row.is_missing() && !standing.deleted;
        if there {
            self.standing -= 1;
            if self.versions.is_some() {
                standing.deleted = true;
            } else {
                self.rows.remove(std::mem::replace(&mut standing.row, RowId::MISSING));
            }
        }
        there
    }

    fn truncate(&mut self, time: EventTime) {
        for place in self.table.places() {
            let key = self.table.key_at(place).clone();
            let hash = key.stable_hash(&mut self.scratch);
            self.delete(key, hash, time);
        }
    }

    fn take(&mut self, keyed: KeyedRow<Option<T::Key>, TableChange<T>>, out: &mut Outbox) -> Result<(), OpError> {
        let KeyedRow { key, hash, time, row: change } = keyed;
        let Some(key) = key.filter(|key| !key.is_null()) else {
            match change {
                TableChange::Truncate { .. } => {
                    self.truncate(time);
                    self.input.taken();
                }
                TableChange::Put(_) | TableChange::Patch { .. } | TableChange::Delete { .. } => self.input.null_key(),
            }
            return Ok(());
        };
        match change {
            TableChange::Put(row) => {
                self.put(key, hash, time, row)?;
                self.input.taken();
            }
            TableChange::Patch { patch, .. } => {
                let before = self.table.find(hash, &key).and_then(|place| self.visible(self.table.get(place)));
                match patch(before) {
                    Ok(row) => {
                        self.put(key, hash, time, row)?;
                        self.input.taken();
                    }
                    Err(reason) => {
                        self.input.bad();
                        let raw = format!("{key:?}").into_bytes();
                        out.report_bad(RecordError { reason, raw, origin: self.origin.clone(), position: None });
                    }
                }
            }
            TableChange::Delete { .. } => match self.delete(key, hash, time) {
                true => self.input.taken(),
                false => self.input.orphan(),
            },
            TableChange::Truncate { .. } => unreachable!("a truncation has no key"),
        }
        Ok(())
    }

    fn send(&mut self, out: &mut Outbox) {
        let (table, rows) = (&mut self.table, &self.rows);
        let now = |key: &T::Key, hash| {
            let place = table.find(hash, key)?;
            let standing = table.at(place).0;
            standing.touched = 0;
            let (row, deleted) = (standing.row, standing.deleted);
            if row.is_missing() {
                table.remove(place);
            }
            rows.get(row).filter(|_| !deleted).map(|held| held.row.clone())
        };
        self.touched.send(now, out);
    }
}

impl<T: Keyed> Operator for Replace<T> {
    fn on_batch(&mut self, _: InputId, batch: AnyBatch, cx: &mut Cx<'_>) -> Result<(), OpError> {
        let KeyedBatch { rows, .. } = batch.take::<KeyedBatch<Option<T::Key>, TableChange<T>>>()?;
        let mut rows = rows.into_iter();
        while let Some(row) = rows.next() {
            if let Some(next) = rows.as_slice().get(AHEAD) {
                self.table.prefetch(next.hash);
            }
            if let Some(next) = rows.as_slice().get(AHEAD / 2) {
                self.table.prefetch_entry(next.hash);
            }
            self.take(row, cx.out)?;
        }
        self.send(cx.out);
        Ok(())
    }

    fn figures(&self) -> OpFigures {
        OpFigures {
            accounts: vec![self.input.0],
            state_rows: vec![self.standing],
            state_bytes: self.rows.bytes() + self.table.bytes(|()| 0),
            emitted: self.touched.emitted,
        }
    }
}

/// Rows whose place is asked for ahead of use.
const AHEAD: usize = 16;
