//! What is kept of versions over a crash: under each key all of them, in order of time.
//!
//! A key that has changed is written whole. What else is known of a version is written and read by its owner, who says
//! when that has changed.

use super::{Line, Runs, Version, Versions};
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Fields, ReadFields, RowId, Sealed, Sealing};
use crate::time::EventTime;

impl Line {
    fn versions(&self, runs: &Runs) -> Vec<Version> {
        let all = match self.run() {
            Some(run) => runs.runs[run].iter().copied().collect(),
            None => vec![(self.time, self.mark)],
        };
        all.into_iter().map(|(time, mark)| Version::of(time, mark)).collect()
    }
}

impl<K: Key> Versions<K> {
    /// Notes from now on which keys change, so that they can be sealed. Those that are there count as sealed.
    pub fn keep(&mut self) {
        self.table.keep();
    }

    /// What its owner knows of some version of a key has changed.
    pub fn on_change_of(&mut self, hash: u64, key: &K) {
        if self.table.is_kept()
            && let Some(place) = self.table.find(hash, key)
        {
            self.table.at(place);
        }
    }

    /// Tells the keys that have changed or gone since the last time; `write` appends all else that is known of a version.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn seal(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        mut write: impl FnMut(RowId, &mut Vec<u8>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.table.seal(part, into, |table, place, out| {
            let (line, runs) = table.view(place);
            for Version { time, id, deletes } in line.versions(runs) {
                Fields(out).signed(time.as_millis()).number(u64::from(deletes));
                write(id, out)?;
            }
            Ok(())
        })
    }

    /// Takes a key back; `read` is told the time of each version and reads what was written of it. Returns the hash of the
    /// key, and the times of its versions.
    ///
    /// # Errors
    /// If it is none of versions, or cannot be read.
    pub fn take_back(
        &mut self,
        sealed: Sealed<'_>,
        mut read: impl FnMut(EventTime, &mut ReadFields<'_>) -> Result<RowId, OpError>,
    ) -> Result<(u64, Vec<EventTime>), OpError> {
        let key: K = sealed.key_as()?;
        let hash = key.stable_hash(&mut Vec::new());
        let mut from = ReadFields(sealed.value);
        let mut times = Vec::new();
        while !from.is_empty() {
            let (time, deletes) = (EventTime::from_millis(from.signed()?), from.number()? == 1);
            let id = read(time, &mut from)?;
            self.insert(hash, key.clone(), Version { time, id, deletes });
            times.push(time);
        }
        Ok((hash, times))
    }
}
