//! Versions of rows by key and time: the newest at or before a time.
//!
//! The versions of a key are a run in order of time, which is searched by halves. Most keys have one version, which stands
//! in the entry itself; a key with more has a run beside the table. A version that deletes says that there is no row from
//! then on; it is kept as the others are, so that an older one never counts again.

mod keep;

use std::collections::VecDeque;

use super::RowId;
use super::table::Table;
use crate::key::Key;
use crate::time::{EventTime, Span};

/// The versions of all keys.
#[derive(Debug)]
pub struct Versions<K> {
    table: Table<K, Line, Runs>,
    // How long a version holds at the most.
    keep: Option<Span>,
}

/// A row of a key, from a time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// From when on.
    pub time: EventTime,
    /// The row; where the version deletes, what stands in its place.
    pub id: RowId,
    /// Whether it says that there is no row.
    pub deletes: bool,
}

/// What holds for a key at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// This row.
    Row(RowId),
    /// No row: the newest version deletes.
    Deleted,
    /// Nothing: there are versions of the key, but none that early, or none that still holds.
    NoVersion,
    /// Nothing: there are no versions of the key.
    NeverSeen,
}

/// What a version has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inserted {
    /// The version of the same time, which is no more.
    pub replaced: Option<Version>,
    /// The version before it.
    pub before: Option<Version>,
    /// The time of the one after it.
    pub until: Option<EventTime>,
}

// A version, a run (top bit set), or none.
#[derive(Debug)]
struct Line {
    time: EventTime,
    mark: u32,
}

impl Default for Line {
    fn default() -> Self {
        Line { time: EventTime::MIN, mark: NONE }
    }
}

#[derive(Debug, Default)]
struct Runs {
    runs: Vec<VecDeque<(EventTime, u32)>>,
    free: Vec<u32>,
}

// No row has a number with these bits.
const NONE: u32 = u32::MAX;
const RUN: u32 = 1 << 31;
const DELETES: u32 = 1 << 30;

impl Version {
    fn mark(self) -> u32 {
        self.id.index() as u32 | if self.deletes { DELETES } else { 0 }
    }

    fn of(time: EventTime, mark: u32) -> Version {
        Version { time, id: RowId::new(mark & !DELETES), deletes: mark & DELETES != 0 }
    }
}

impl Line {
    fn run(&self) -> Option<usize> {
        (self.mark != NONE && self.mark & RUN != 0).then_some((self.mark & !RUN) as usize)
    }

    // The newest version at or before a time.
    #[inline]
    fn at(&self, time: EventTime, runs: &Runs) -> Option<Version> {
        match self.run() {
            None => (self.time <= time && self.mark != NONE).then(|| Version::of(self.time, self.mark)),
            Some(run) => {
                let run = &runs.runs[run];
                let after = run.partition_point(|(from, _)| *from <= time);
                after.checked_sub(1).map(|place| Version::of(run[place].0, run[place].1))
            }
        }
    }

    fn insert(&mut self, version: Version, runs: &mut Runs) -> Inserted {
        let Version { time, .. } = version;
        let mut inserted = Inserted { replaced: None, before: None, until: None };
        if self.mark == NONE || self.run().is_none() && self.time == time {
            inserted.replaced = (self.mark != NONE).then(|| Version::of(self.time, self.mark));
            (self.time, self.mark) = (time, version.mark());
            return inserted;
        }
        let place = match self.run() {
            Some(place) => place,
            None => self.spill(runs),
        };
        let run = &mut runs.runs[place];
        let place = run.partition_point(|(from, _)| *from < time);
        inserted.before = place.checked_sub(1).map(|before| Version::of(run[before].0, run[before].1));
        match run.get_mut(place) {
            Some((from, mark)) if *from == time => {
                inserted.replaced = Some(Version::of(time, std::mem::replace(mark, version.mark())));
            }
            _ => run.insert(place, (time, version.mark())),
        }
        inserted.until = run.get(place + 1).map(|(from, _)| *from);
        inserted
    }

    // Moves the only version to a run of its own.
    fn spill(&mut self, runs: &mut Runs) -> usize {
        let place = runs.free.pop().unwrap_or_else(|| {
            runs.runs.push(VecDeque::new());
            (runs.runs.len() - 1) as u32
        });
        runs.runs[place as usize].push_back((self.time, self.mark));
        self.mark = RUN | place;
        place as usize
    }

    // Whether no time at or after this needs the first version: the second holds by then, or it has ended.
    fn is_over(&self, keep: Option<Span>, from: EventTime, runs: &Runs) -> bool {
        let (first, second) = match self.run() {
            None => ((self.mark != NONE).then_some(self.time), None),
            Some(run) => {
                let run = &runs.runs[run];
                (run.front().map(|(time, _)| *time), run.get(1).map(|(time, _)| *time))
            }
        };
        let has_ended = |first| end_of(first, keep).is_some_and(|end| end <= from);
        second.is_some_and(|second| second <= from) || first.is_some_and(has_ended)
    }

    fn drop_first(&mut self, runs: &mut Runs) -> Option<Version> {
        let Some(place) = self.run() else {
            let only = (self.mark != NONE).then(|| Version::of(self.time, self.mark));
            self.mark = NONE;
            return only;
        };
        let run = &mut runs.runs[place];
        let first = run.pop_front().map(|(time, mark)| Version::of(time, mark));
        if run.len() == 1
            && let Some((time, mark)) = run.pop_front()
        {
            (self.time, self.mark) = (time, mark);
            runs.free.push(place as u32);
        }
        first
    }
}

impl<K: Key> Versions<K> {
    /// No versions; each holds for so long at the most.
    pub fn new(keep: Option<Span>) -> Versions<K> {
        Versions { table: Table::default(), keep }
    }

    /// Asks the processor for the place of this hash, which will be needed soon.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.table.prefetch(hash);
    }

    /// Asks the processor for the versions of this hash, once its place in the index is near.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        self.table.prefetch_entry(hash);
    }

    /// When a version of this time ends, if it ever does: it holds before then.
    #[inline]
    pub fn end_of(&self, from: EventTime) -> Option<EventTime> {
        end_of(from, self.keep)
    }

    /// Whether a version holds at a time after it, if no newer one does.
    #[inline]
    pub fn holds(&self, version: Version, at: EventTime) -> bool {
        self.end_of(version.time).is_none_or(|end| at < end)
    }

    /// What holds for a key at a time.
    #[inline]
    pub fn at(&self, hash: u64, key: &K, time: EventTime) -> Found {
        let Some(place) = self.table.find(hash, key) else { return Found::NeverSeen };
        let (line, runs) = self.table.view(place);
        match line.at(time, runs) {
            Some(version) if !self.holds(version, time) => Found::NoVersion,
            Some(Version { deletes: true, .. }) => Found::Deleted,
            Some(Version { id, .. }) => Found::Row(id),
            None => Found::NoVersion,
        }
    }

    /// Puts a version in; one of the same time takes the place of the one before.
    pub fn insert(&mut self, hash: u64, key: K, version: Version) -> Inserted {
        let place = self.table.upsert(hash, key);
        let (line, runs) = self.table.at(place);
        line.insert(version, runs)
    }

    /// Drops what no time at or after `from` needs, among the versions of this hash: those before the newest that is not
    /// after it, and those that have ended.
    pub fn prune(&mut self, hash: u64, from: EventTime, dropped: &mut Vec<Version>) {
        let keep = self.keep;
        while let Some(place) = self.table.find_by(hash, |line, runs| line.is_over(keep, from, runs)) {
            let (line, runs) = self.table.at(place);
            while line.is_over(keep, from, runs) {
                dropped.extend(line.drop_first(runs));
            }
            if line.mark == NONE {
                self.table.remove(place);
            }
        }
    }

    /// How many keys have versions.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.table.bytes(|runs| {
            let held: usize = runs.runs.iter().map(VecDeque::capacity).sum();
            let own = runs.runs.capacity() * size_of::<VecDeque<(EventTime, u32)>>();
            (held * size_of::<(EventTime, u32)>() + own) as u64
        })
    }
}

// A sum beyond the end of time is no end.
fn end_of(from: EventTime, keep: Option<Span>) -> Option<EventTime> {
    keep.and_then(|keep| from.as_millis().checked_add(keep.as_millis())).map(EventTime::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::millis;
    use proptest::prelude::*;

    fn at(millis: i64) -> EventTime {
        EventTime::from_millis(millis)
    }

    fn version(time: i64, id: u32, deletes: bool) -> Version {
        Version { time: at(time), id: RowId::new(id), deletes }
    }

    #[test]
    fn the_newest_at_or_before_a_time_holds_and_a_delete_says_none() {
        let mut versions = Versions::new(None);
        assert_eq!(versions.at(3, &1u8, at(0)), Found::NeverSeen);
        for (time, id, deletes) in [(20, 1, false), (10, 0, false), (30, 2, true)] {
            versions.insert(3, 1, version(time, id, deletes));
        }
        let found = [9, 10, 19, 20, 30].map(|time| versions.at(3, &1, at(time)));
        let row = |id| Found::Row(RowId::new(id));
        assert_eq!(found, [Found::NoVersion, row(0), row(0), row(1), Found::Deleted]);
        assert_eq!(versions.at(3, &2, at(30)), Found::NeverSeen, "another key of the same hash");
        let inserted = versions.insert(3, 1, version(20, 7, false));
        let replaced = Some(version(20, 1, false));
        assert_eq!(inserted, Inserted { replaced, before: Some(version(10, 0, false)), until: Some(at(30)) });
    }

    #[test]
    fn the_newest_that_is_needed_stays_unless_it_has_ended() {
        let mut versions = Versions::new(Some(millis(100)));
        for time in [10, 20, 30] {
            versions.insert(3, 1u8, version(time, time as u32, false));
        }
        let mut dropped = Vec::new();
        versions.prune(3, at(29), &mut dropped);
        assert_eq!(dropped, [version(10, 10, false)]);
        versions.prune(3, at(129), &mut dropped);
        assert_eq!((dropped.len(), versions.len()), (2, 1));
        assert_eq!(versions.at(3, &1, at(129)), Found::Row(RowId::new(30)));
        assert_eq!(versions.at(3, &1, at(130)), Found::NoVersion);
        versions.prune(3, at(130), &mut dropped);
        assert!(versions.is_empty());
    }

    #[test]
    fn an_end_beyond_the_end_of_time_never_comes() {
        let mut versions = Versions::new(Some(millis(10)));
        versions.insert(3, 1u8, version(i64::MAX - 5, 0, false));
        let mut dropped = Vec::new();
        versions.prune(3, at(i64::MAX), &mut dropped);
        assert_eq!((versions.at(3, &1, at(i64::MAX)), dropped.len()), (Found::Row(RowId::new(0)), 0));
    }

    proptest! {
        #[test]
        fn times_that_are_still_asked_for_find_what_a_full_history_says(
            steps in proptest::collection::vec((0..3u8, -20i64..20, any::<bool>(), 0..4i64), 1..60), keep in 1..60i64,
        ) {
            let keep = (keep < 40).then(|| millis(keep));
            let mut versions = Versions::new(keep);
            let mut history: Vec<(u8, Version)> = Vec::new();
            let mut from = -20;
            for (number, (key, time, deletes, passes)) in steps.into_iter().enumerate() {
                let version = version(time, number as u32, deletes);
                // All keys have one hash.
                versions.insert(3, key, version);
                history.retain(|(of, other)| (*of, other.time) != (key, version.time));
                history.push((key, version));
                from += passes;
                versions.prune(3, at(from), &mut Vec::new());
                for (key, time) in (0..3u8).flat_map(|key| (from..from + 50).map(move |time| (key, at(time)))) {
                    let of_key = history.iter().filter(|(of, version)| *of == key && version.time <= time);
                    let newest = of_key.map(|(_, version)| *version).max_by_key(|version| version.time);
                    let holds = newest.filter(|it| keep.is_none_or(|keep| it.time.plus(keep) > time));
                    let expected = match holds {
                        Some(Version { deletes: true, .. }) => Some(Found::Deleted),
                        Some(version) => Some(Found::Row(version.id)),
                        None => None,
                    };
                    let found = versions.at(3, &key, time);
                    let found = (!matches!(found, Found::NoVersion | Found::NeverSeen)).then_some(found);
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
