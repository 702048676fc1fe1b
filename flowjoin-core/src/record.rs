//! The traits of a user's struct: [`Data`], [`Event`], [`Keyed`].
//!
//! `Event` and `Keyed` are normally derived; each can be written by hand in a few lines.

use serde::{Serialize, de::DeserializeOwned};

use crate::error::TimeError;
use crate::key::Key;
use crate::time::EventTime;
use crate::watermark::Watermarks;

/// A row that can be kept in state and sent between tasks; implemented for every type that has the five traits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in state or sent between tasks",
    label = "not a row",
    note = "derive `Clone, Serialize, Deserialize` for it (and keep it `Send + Sync + 'static`)"
)]
pub trait Data: Clone + Send + Sync + Serialize + DeserializeOwned + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static> Data for T {}

/// A row that happened at a time. Derive it: `#[derive(Event)] #[event(time = placed_at, out_of_order = "5s")]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no event time",
    label = "no event time",
    note = "derive `Event` with `#[event(time = field)]`, or `#[event(time = ingestion)]` if arrival time will do"
)]
pub trait Event: Data {
    /// When the row happened; `arrival` is when it came in.
    ///
    /// # Errors
    /// If the time cannot be read or does not fit: the row is then a bad record of its source.
    fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError>;

    /// How its sources tell how far event time has come.
    fn watermarks() -> Watermarks;
}

/// A row with a key of its own. Derive it and mark the field: `#[key] order_id: u64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no key",
    label = "no key",
    note = "mark a field `#[key]` and derive `Keyed`"
)]
pub trait Keyed: Data {
    /// The type of the key; a tuple when several fields are marked.
    type Key: Key;

    /// The key of this row.
    fn key(&self) -> Self::Key;

    /// The key in words, for explain: the names of its fields.
    fn key_name() -> &'static str {
        "key"
    }
}

/// The unit of an integer that is a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// A field that can be an event time: [`EventTime`], an integer with a unit, ISO 8601 text, and with the feature
/// `jiff` a `jiff::Timestamp`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an event time",
    label = "not a time",
    note = "use `EventTime`, an integer with `unit = \"s\" | \"ms\" | \"us\" | \"ns\"`, a `String` of ISO 8601, or `jiff::Timestamp` (feature `jiff`)"
)]
pub trait TimeField {
    /// The time that the field says; the unit counts for integers only.
    ///
    /// # Errors
    /// If it cannot be read or does not fit.
    fn to_event_time(&self, unit: TimeUnit) -> Result<EventTime, TimeError>;
}

impl TimeField for EventTime {
    fn to_event_time(&self, _: TimeUnit) -> Result<EventTime, TimeError> {
        Ok(*self)
    }
}

macro_rules! integer_times {
    ($($int:ty),*) => {$(
        impl TimeField for $int {
            fn to_event_time(&self, unit: TimeUnit) -> Result<EventTime, TimeError> {
                integer_time(i128::from(*self), unit)
            }
        }
    )*};
}
integer_times!(i64, u64, i32, u32);

fn integer_time(value: i128, unit: TimeUnit) -> Result<EventTime, TimeError> {
    let millis = match unit {
        TimeUnit::Seconds => value * 1_000,
        TimeUnit::Millis => value,
        TimeUnit::Micros => value.div_euclid(1_000),
        TimeUnit::Nanos => value.div_euclid(1_000_000),
    };
    i64::try_from(millis).map(EventTime::from_millis).map_err(|_| TimeError::out_of_range(value))
}

impl TimeField for String {
    fn to_event_time(&self, _: TimeUnit) -> Result<EventTime, TimeError> {
        self.parse().map_err(TimeError::unreadable)
    }
}

#[cfg(feature = "jiff")]
impl TimeField for jiff::Timestamp {
    fn to_event_time(&self, _: TimeUnit) -> Result<EventTime, TimeError> {
        Ok(EventTime::from_millis(self.as_nanosecond().div_euclid(1_000_000) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_times_in_their_unit() {
        let at = |value: i64, unit| value.to_event_time(unit).unwrap().as_millis();
        assert_eq!(at(5, TimeUnit::Seconds), 5_000);
        assert_eq!(at(5, TimeUnit::Millis), 5);
        assert_eq!(at(-1, TimeUnit::Micros), -1);
        assert_eq!(at(1_999_999, TimeUnit::Nanos), 1);
        assert!(i64::MAX.to_event_time(TimeUnit::Seconds).is_err());
        assert!(u64::MAX.to_event_time(TimeUnit::Millis).is_err());
    }
}
