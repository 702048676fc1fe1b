//! Timestamps and dates, sent as integers of different units, in one form.

use flowjoin_core::{EventTime, TimeUnit};

/// In what form a [`Debezium`](crate::Debezium) source hands over timestamps and dates that come as integers.
///
/// What comes as ISO 8601 text (a timestamp with a zone) stays that text: an `EventTime` reads both. Times of day,
/// durations and years stay as they are sent.
///
/// ```
/// use flowjoin_connectors::{Debezium, TimeForm};
///
/// // For fields such as `jiff::Timestamp` or `chrono::DateTime`, which are read from text.
/// let orders = Debezium::json("in/orders.jsonl").times(TimeForm::Text);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// Milliseconds since 1970 in UTC, rounded towards the past; a date is the midnight that begins it. An `EventTime`
    /// reads it, and so does an integer.
    #[default]
    Millis,
    /// ISO 8601 in UTC with all the digits that were sent, `2026-01-31T12:00:00.123456Z`; a date is `2026-01-31`.
    Text,
    /// The integer that was sent, in the unit of its column: for a row that does the arithmetic itself.
    AsSent,
}

/// A timestamp as JSON, or nothing if it is to stay as it was sent.
pub(super) fn timestamp(value: i64, unit: TimeUnit, form: TimeForm) -> Result<Option<String>, String> {
    let (millis, rest) = match unit {
        TimeUnit::Seconds => (value.checked_mul(1_000), String::new()),
        TimeUnit::Millis => (Some(value), String::new()),
        TimeUnit::Micros => (Some(value.div_euclid(1_000)), format!("{:03}", value.rem_euclid(1_000))),
        TimeUnit::Nanos => (Some(value.div_euclid(1_000_000)), format!("{:06}", value.rem_euclid(1_000_000))),
    };
    let millis = millis.ok_or_else(|| out_of_range(value, "seconds"));
    Ok(match form {
        TimeForm::AsSent => None,
        TimeForm::Millis => Some(millis?.to_string()),
        TimeForm::Text => Some(format!("\"{}{rest}Z\"", in_iso(millis?)?)),
    })
}

/// A date as JSON, or nothing if it is to stay as it was sent.
pub(super) fn date(days: i64, form: TimeForm) -> Result<Option<String>, String> {
    let millis = days.checked_mul(DAY_MILLIS).ok_or_else(|| out_of_range(days, "days"));
    Ok(match form {
        TimeForm::AsSent => None,
        TimeForm::Millis => Some(millis?.to_string()),
        TimeForm::Text => in_iso(millis?)?.split_once('T').map(|(date, _)| format!("\"{date}\"")),
    })
}

/// Without the `Z` at its end.
fn in_iso(millis: i64) -> Result<String, String> {
    let text = EventTime::from_millis(millis).to_string();
    // A time that has no year of four digits is shown as a number.
    text.strip_suffix('Z').map(String::from).ok_or_else(|| out_of_range(millis, "milliseconds"))
}

fn out_of_range(value: i64, unit: &str) -> String {
    format!("the time {value} in {unit} does not fit; is its unit right?")
}

const DAY_MILLIS: i64 = 86_400_000;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(value: i64, unit: TimeUnit, millis: &str, text: &str) {
        assert_eq!(timestamp(value, unit, TimeForm::Millis).unwrap().unwrap(), millis);
        assert_eq!(timestamp(value, unit, TimeForm::Text).unwrap().unwrap(), format!("\"{text}\""));
        assert_eq!(timestamp(value, unit, TimeForm::AsSent).unwrap(), None);
    }

    #[test]
    fn units_become_one() {
        check(1_357_034_400, TimeUnit::Seconds, "1357034400000", "2013-01-01T10:00:00.000Z");
        check(1_357_034_400_005, TimeUnit::Millis, "1357034400005", "2013-01-01T10:00:00.005Z");
        check(1_357_034_400_000_005, TimeUnit::Micros, "1357034400000", "2013-01-01T10:00:00.000005Z");
        check(1_357_034_400_123_456_789, TimeUnit::Nanos, "1357034400123", "2013-01-01T10:00:00.123456789Z");
    }

    #[test]
    fn times_before_1970_keep_their_order() {
        check(-1, TimeUnit::Micros, "-1", "1969-12-31T23:59:59.999999Z");
        check(-1_000_001, TimeUnit::Nanos, "-2", "1969-12-31T23:59:59.998999999Z");
    }

    #[test]
    fn a_date_is_its_first_midnight() {
        assert_eq!(date(15_706, TimeForm::Millis).unwrap().unwrap(), "1356998400000");
        assert_eq!(date(15_706, TimeForm::Text).unwrap().unwrap(), "\"2013-01-01\"");
        assert_eq!(date(-1, TimeForm::Text).unwrap().unwrap(), "\"1969-12-31\"");
        assert_eq!(date(15_706, TimeForm::AsSent).unwrap(), None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let seconds = timestamp(i64::MAX, TimeUnit::Seconds, TimeForm::Millis).unwrap_err();
        assert_eq!(seconds, "the time 9223372036854775807 in seconds does not fit; is its unit right?");
        assert!(timestamp(i64::MAX, TimeUnit::Millis, TimeForm::Text).is_err());
        assert_eq!(timestamp(i64::MIN, TimeUnit::Millis, TimeForm::Millis).unwrap().unwrap(), i64::MIN.to_string());
        assert!(date(i64::MAX, TimeForm::Millis).is_err());
    }
}
