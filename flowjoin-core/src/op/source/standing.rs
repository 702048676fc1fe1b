//! The rows of a table as they stand where they are read, so that what is told in part can be made whole.
//!
//! They are the rows that the table itself holds, by the same rules: the newest by its version wins, also after a delete.
//! All changes of a key are read by one task, in order, so that nothing is missing here.

use std::cmp::Ordering;

use super::Holdings;
use crate::error::OpError;
use crate::key::Key;
use crate::op::normalize::Versions;
use crate::record::Keyed;
use crate::state::{Fields, Place, ReadFields, Sealed, Sealing, Table, read_row, write_row};

// Parts of the state of a source; another is what it is besides.
const KEYS: u8 = 1;
const GONE: u8 = 2;

/// The newest row of each key of the partitions that a task reads.
pub struct Standing<T: Keyed> {
    rows: Table<T::Key, Newest<T>, ()>,
    versions: Option<Versions<T>>,
    // The row that was deleted last, where rows have no versions: it may come back at once, under another key.
    gone: Option<(T::Key, T)>,
    count: u64,
    scratch: Vec<u8>,
}

// After a delete the row stays, unseen, where rows have versions: an older one must not win then.
struct Newest<T> {
    row: Option<T>,
    deleted: bool,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Newest { row: None, deleted: false }
    }
}

impl<T> Newest<T> {
    fn visible(&self) -> Option<&T> {
        self.row.as_ref().filter(|_| !self.deleted)
    }
}

impl<T: Keyed> Standing<T> {
    /// No rows yet; with what says which of two rows is newer, where the order of arrival does not.
    pub fn new(versions: Option<Versions<T>>) -> Self {
        Standing { rows: Table::default(), versions, gone: None, count: 0, scratch: Vec::new() }
    }

    /// The row of a key.
    pub fn row(&mut self, key: &T::Key) -> Option<&T> {
        self.find(key).and_then(|place| self.rows.get(place).visible())
    }

    /// Whether a key has a row.
    pub fn holds(&mut self, key: &T::Key) -> bool {
        self.row(key).is_some()
    }

    /// The row of a key that was deleted just now.
    pub fn just_gone(&mut self, key: &T::Key) -> Option<&T> {
        match self.versions {
            Some(_) => self.find(key).and_then(|place| self.rows.get(place).row.as_ref()),
            None => self.gone.as_ref().filter(|(gone, _)| gone == key).map(|(_, row)| row),
        }
    }

    /// A row takes the place of the one of its key, unless that is newer.
    pub fn put(&mut self, row: &T) {
        let key = row.key();
        if key.is_null() {
            return;
        }
        let hash = key.stable_hash(&mut self.scratch);
        let place = self.rows.upsert(hash, key);
        let (newest, ()) = self.rows.at(place);
        if let (Some(versions), Some(held)) = (&self.versions, &newest.row)
            && versions(row, held) == Ordering::Less
        {
            return;
        }
        self.count += u64::from(newest.visible().is_none());
        *newest = Newest { row: Some(row.clone()), deleted: false };
    }

    /// The row of a key goes, unless it is newer than the one that is known to be gone.
    pub fn delete(&mut self, key: &T::Key, gone: Option<&T>) {
        let Some(versions) = self.versions.clone() else {
            if let Some(place) = self.find(key) {
                let (key, newest) = self.rows.remove(place);
                self.gone = newest.row.map(|row| (key, row));
                self.count -= 1;
            }
            return;
        };
        if key.is_null() {
            return;
        }
        let place = match (self.find(key), gone) {
            (Some(place), _) => place,
            (None, None) => return,
            (None, Some(_)) => self.rows.upsert(key.stable_hash(&mut self.scratch), key.clone()),
        };
        let (newest, ()) = self.rows.at(place);
        let order = match (&newest.row, gone) {
            (Some(held), Some(gone)) => versions(gone, held),
            (Some(_), None) => Ordering::Equal,
            (None, _) => Ordering::Greater,
        };
        if order == Ordering::Less {
            return;
        }
        self.count -= u64::from(newest.visible().is_some());
        if order == Ordering::Greater {
            newest.row = gone.cloned();
        }
        newest.deleted = true;
    }

    /// All rows go.
    pub fn truncate(&mut self) {
        (self.count, self.gone) = (0, None);
        for place in self.rows.places() {
            match self.versions {
                Some(_) => self.rows.at(place).0.deleted = true,
                None => drop(self.rows.remove(place)),
            }
        }
    }

    /// Notes from now on what changes.
    pub fn keep(&mut self) {
        self.rows.keep();
    }

    /// Tells what has changed.
    ///
    /// # Errors
    /// If a row cannot be kept.
    pub fn seal(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        self.rows.seal_own(KEYS, into, |rows, place, out| {
            let Newest { row, deleted } = rows.get(place);
            out.push(u8::from(*deleted) << 1 | u8::from(row.is_some()));
            row.as_ref().map_or(Ok(()), |row| write_row(row, out))
        })?;
        let mut gone = Vec::new();
        if let Some((key, row)) = &self.gone {
            Fields(&mut gone).bytes(|out| {
                key.encode(out);
                Ok(())
            })?;
            write_row(row, &mut gone)?;
        }
        into.put_own(GONE, &[], &gone);
        Ok(())
    }

    /// Takes a piece back.
    ///
    /// # Errors
    /// If it is none.
    pub fn take_back(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        let key_of =
            |mut bytes: &[u8]| T::Key::decode(&mut bytes).map_err(|error| OpError::unreadable("a key", &error));
        match (sealed.part, sealed.value.split_first()) {
            (KEYS, Some((flags, rest))) => {
                let key = key_of(sealed.key)?;
                let row: Option<T> = if flags & 1 == 1 { Some(read_row(rest)?) } else { None };
                let place = self.rows.upsert(key.stable_hash(&mut self.scratch), key);
                let newest = self.rows.at(place).0;
                *newest = Newest { row, deleted: flags & 2 == 2 };
                self.count += u64::from(newest.visible().is_some());
                Ok(())
            }
            (GONE, None) => Ok(()),
            (GONE, Some(_)) => {
                let mut from = ReadFields(sealed.value);
                let key = key_of(from.bytes()?)?;
                self.gone = Some((key, read_row(from.0)?));
                Ok(())
            }
            _ => Err(OpError::unreadable("a part of the rows of a table", &sealed.part)),
        }
    }

    /// How many rows stand, and the bytes that they take.
    pub fn figures(&self) -> Holdings {
        Holdings { rows: self.count, bytes: self.rows.bytes(|()| 0) }
    }

    fn find(&mut self, key: &T::Key) -> Option<Place> {
        if key.is_null() {
            return None;
        }
        let hash = key.stable_hash(&mut self.scratch);
        self.rows.find(hash, key)
    }
}
