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
        self.table.note(hash, key);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Changes, Found};
    use crate::time::ProcTime;

    fn at(t: i64) -> EventTime {
        EventTime::from_millis(t)
    }

    // The changes of an epoch; what is known of a version is its number.
    fn sealed(versions: &mut Versions<u64>) -> Changes {
        let mut changes = Changes::default();
        let write = |id: RowId, out: &mut Vec<u8>| {
            Fields(out).number(id.index() as u64);
            Ok(())
        };
        versions.seal(1, &mut Sealing::new(&mut changes, 0, 0, ProcTime::default()), write).unwrap();
        changes
    }

    #[test]
    fn versions_come_back_in_order_and_those_that_delete_as_such() {
        let mut versions = Versions::new(None);
        versions.keep();
        let hash = |key: u64| key.stable_hash(&mut Vec::new());
        for (key, time, id, deletes) in [(1, 20, 1, true), (1, 10, 0, false), (1, 30, 2, false), (2, 5, 3, false)] {
            versions.insert(hash(key), key, Version { time: at(time), id: RowId::new(id), deletes });
        }
        let changes = sealed(&mut versions);
        assert_eq!(sealed(&mut versions).len(), 0);
        let mut back: Versions<u64> = Versions::new(None);
        for (key, value) in changes.iter() {
            let piece = Sealed::of(key, value.expect("nothing has gone")).unwrap();
            let (of, times) = back.take_back(piece, |_, from| Ok(RowId::new(from.number()? as u32 + 10))).unwrap();
            let expected = if of == hash(1) { vec![at(10), at(20), at(30)] } else { vec![at(5)] };
            assert_eq!(times, expected);
        }
        let found = [9, 10, 20, 30].map(|time| back.at(hash(1), &1, at(time)));
        assert_eq!(found, [Found::NoVersion, Found::Row(RowId::new(10)), Found::Deleted, Found::Row(RowId::new(12))]);
        assert_eq!(back.at(hash(2), &2, at(5)), Found::Row(RowId::new(13)));
    }

    #[test]
    fn a_key_is_told_of_when_it_loses_versions_or_all_of_them() {
        let mut versions = Versions::new(Some(crate::time::millis(100)));
        versions.keep();
        for time in [10, 20] {
            versions.insert(3, 1, Version { time: at(time), id: RowId::new(time as u32), deletes: false });
        }
        assert_eq!(sealed(&mut versions).len(), 1);
        versions.on_change_of(3, &2);
        versions.prune(3, at(15), &mut Vec::new());
        assert_eq!(sealed(&mut versions).len(), 0, "nothing is over");
        versions.prune(3, at(20), &mut Vec::new());
        assert_eq!(sealed(&mut versions).iter().map(|(_, value)| value.is_some()).collect::<Vec<_>>(), [true]);
        versions.on_change_of(3, &1);
        assert_eq!(sealed(&mut versions).len(), 1);
        versions.prune(3, at(120), &mut Vec::new());
        assert_eq!(sealed(&mut versions).iter().map(|(_, value)| value.is_some()).collect::<Vec<_>>(), [false]);
    }
}
