//! The temporal join: each row with the version that held at its time.

use flowjoin_core::{EventTime, Span};

/// The newest version at or before a time, while it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Temporal {
    /// How long a version holds at the most; none is for ever.
    pub keep: Option<Span>,
}

/// A version of the row of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<K> {
    /// Whose.
    pub key: Option<K>,
    /// From when on.
    pub time: EventTime,
    /// Whether it says that there is no row.
    pub deletes: bool,
}

/// What held for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The version at this place.
    Version(usize),
    /// No row: the newest version deletes.
    Deleted,
    /// There are versions of the key, but none holds at that time.
    NoVersion,
    /// There is no version of the key.
    NeverSeen,
}

impl Temporal {
    /// Whether a version holds at a time at or after its own, if no newer one does. Computed without a limit.
    pub fn holds(&self, version: EventTime, time: EventTime) -> bool {
        let age = i128::from(time.as_millis()) - i128::from(version.as_millis());
        self.keep.is_none_or(|keep| age < i128::from(keep.as_millis()))
    }

    /// What held at a time for a key; of two versions of one time the later one counts. A null key has no versions.
    ///
    /// ```
    /// use flowjoin_core::EventTime;
    /// use flowjoin_testkit::oracle::{AsOf, Temporal, Version};
    ///
    /// let at = EventTime::from_millis;
    /// let of_a = |time, deletes| Version { key: Some("a"), time: at(time), deletes };
    /// let versions = [of_a(10, false), of_a(30, true), of_a(20, false)];
    /// let held = |time| Temporal::default().at(&versions, &Some("a"), at(time));
    /// assert_eq!([held(9), held(29), held(30)], [AsOf::NoVersion, AsOf::Version(2), AsOf::Deleted]);
    /// ```
    pub fn at<K: PartialEq>(&self, versions: &[Version<K>], key: &Option<K>, time: EventTime) -> AsOf {
        let of_key = || versions.iter().enumerate().filter(|(_, version)| key.is_some() && version.key == *key);
        // The last of the greatest.
        let newest = of_key().filter(|(_, version)| version.time <= time).max_by_key(|(_, version)| version.time);
        match newest.filter(|(_, version)| self.holds(version.time, time)) {
            Some((_, version)) if version.deletes => AsOf::Deleted,
            Some((place, _)) => AsOf::Version(place),
            None if of_key().next().is_some() => AsOf::NoVersion,
            None => AsOf::NeverSeen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowjoin_core::millis;

    #[test]
    fn a_version_holds_from_its_time_until_the_next_or_its_end() {
        let at = EventTime::from_millis;
        let version = |key, time| Version { key, time: at(time), deletes: false };
        let versions = [version(Some(1), 5), version(Some(1), 7), version(Some(2), 6), version(Some(1), 7)];
        let held = |keep, key, time| Temporal { keep }.at(&versions, &key, at(time));
        assert_eq!(held(None, Some(1), 6), AsOf::Version(0));
        assert_eq!(held(None, Some(1), 7), AsOf::Version(3), "of one time, the later one");
        assert_eq!(held(Some(millis(3)), Some(1), 9), AsOf::Version(3));
        assert_eq!(held(Some(millis(3)), Some(1), 10), AsOf::NoVersion);
        assert_eq!((held(None, Some(3), 9), held(None, None, 9)), (AsOf::NeverSeen, AsOf::NeverSeen));
        assert!(Temporal { keep: Some(millis(i64::MAX)) }.holds(EventTime::from_millis(1), EventTime::MAX));
    }
}
