//! Where state is kept that outlives its process.

use std::collections::BTreeMap;

use super::Changes;

/// The number of an epoch: what the sources gave between one commit and the next, and all that came of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The one after it.
    pub const fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A store of keys and values in bytes, that moves from epoch to epoch at once or not at all.
///
/// After a crash at any instant it is what it was after some commit: the last one that returned, or one that was under
/// way and had been written.
pub trait StateStore: Send {
    /// The last epoch that was committed; none if the store is new.
    fn epoch(&self) -> Option<Epoch>;

    /// The record that came with it; empty if the store is new.
    fn record(&self) -> &[u8];

    /// Commits an epoch: what has changed in it, which must be [sorted](Changes::sort), and a record of what else belongs
    /// to it. When this returns, the epoch outlives a crash.
    ///
    /// # Errors
    /// If it cannot be written, or is not after the last one. The store is then what it was, or must be opened anew.
    fn commit(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) -> Result<(), StoreError>;

    /// The value of a key.
    ///
    /// # Errors
    /// If it cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Calls the function with each key that begins with these bytes and its value, in the order of the keys.
    ///
    /// # Errors
    /// If it cannot be read.
    fn scan(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;

    /// What it takes up.
    fn stats(&self) -> StoreStats;
}

impl<S: StateStore + ?Sized> StateStore for Box<S> {
    fn epoch(&self) -> Option<Epoch> {
        (**self).epoch()
    }

    fn record(&self) -> &[u8] {
        (**self).record()
    }

    fn commit(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) -> Result<(), StoreError> {
        (**self).commit(epoch, changes, record)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        (**self).get(key)
    }

    fn scan(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        (**self).scan(prefix, each)
    }

    fn stats(&self) -> StoreStats {
        (**self).stats()
    }
}

/// What a store takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Keys that have a value, as far as that is known without looking at each.
    pub keys: u64,
    /// Bytes that it takes where it is kept.
    pub bytes: u64,
}

/// A store that cannot go on: what was tried, to what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(String);

impl StoreError {
    /// An error of this text.
    pub fn new(what: impl Into<String>) -> StoreError {
        StoreError(what.into())
    }

    /// An epoch is to be committed that is not after the last one.
    pub fn not_after(last: Epoch, epoch: Epoch) -> StoreError {
        StoreError(format!("epoch {epoch} cannot be committed after epoch {last}; please report this"))
    }
}

/// A store in memory, that outlives nothing: for tests, and the reference for the others.
#[derive(Clone, Debug, Default)]
pub struct MemStore {
    epoch: Option<Epoch>,
    record: Vec<u8>,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl StateStore for MemStore {
    fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    fn record(&self) -> &[u8] {
        &self.record
    }

    fn commit(&mut self, epoch: Epoch, changes: &Changes, record: &[u8]) -> Result<(), StoreError> {
        if let Some(last) = self.epoch.filter(|&last| epoch <= last) {
            return Err(StoreError::not_after(last, epoch));
        }
        for (key, value) in changes.iter() {
            match value {
                Some(value) => self.values.insert(key.to_vec(), value.to_vec()),
                None => self.values.remove(key),
            };
        }
        self.epoch = Some(epoch);
        self.record = record.to_vec();
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.values.get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let from = self.values.range(prefix.to_vec()..);
        from.take_while(|(key, _)| key.starts_with(prefix)).for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn stats(&self) -> StoreStats {
        let bytes: usize = self.values.iter().map(|(key, value)| key.len() + value.len()).sum();
        StoreStats { keys: self.values.len() as u64, bytes: bytes as u64 }
    }
}
