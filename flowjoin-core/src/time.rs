//! Clocks, spans and the watermark.
//!
//! Event time and processing time are different types, so that they cannot be mixed by accident; both are
//! milliseconds since the Unix epoch. A [`Span`] is a signed length of time. A [`Watermark`] is a frontier:
//! every row still to come has a time at or after it. All arithmetic saturates at the ends of `i64`, so a time
//! at the limits is an ordinary time.
//!
//! Nothing here reads a clock: the host hands the time in.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// When something happened, carried by the row: milliseconds since 1970-01-01T00:00:00Z, UTC.
///
/// Written to JSON as an ISO 8601 string with milliseconds, read from an ISO 8601 string or from an integer of
/// milliseconds.
///
/// ```
/// # use flowjoin_core::EventTime;
/// let t: EventTime = "2013-01-01T10:00:00Z".parse().unwrap();
/// assert_eq!(t, EventTime::from_millis(1_357_034_400_000));
/// assert_eq!(t.to_string(), "2013-01-01T10:00:00.000Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventTime(i64);

/// The time of the machine that works on the row: milliseconds since the epoch, handed in by the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ProcTime(i64);

/// A signed length of time in milliseconds: `hours(1)`, `-secs(5)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Span(i64);

/// A frontier of event time: every row still to come has a time at or after it.
///
/// A row is *late* if its time is before the watermark of the operator that it arrives at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark(EventTime);

/// `n` milliseconds.
pub const fn millis(n: i64) -> Span {
    Span(n)
}

/// `n` seconds.
pub const fn secs(n: i64) -> Span {
    Span(n.saturating_mul(1_000))
}

/// `n` minutes.
pub const fn minutes(n: i64) -> Span {
    Span(n.saturating_mul(60_000))
}

/// `n` hours.
pub const fn hours(n: i64) -> Span {
    Span(n.saturating_mul(3_600_000))
}

/// `n` days of 24 hours.
pub const fn days(n: i64) -> Span {
    Span(n.saturating_mul(86_400_000))
}

impl EventTime {
    /// The earliest time there is.
    pub const MIN: EventTime = EventTime(i64::MIN);
    /// The end of time, when no row will come any more: no row has this time, and a record that claims it is a bad one.
    pub const MAX: EventTime = EventTime(i64::MAX);
    /// The latest time of a row.
    pub const LAST: EventTime = EventTime(i64::MAX - 1);

    /// The instant `millis` milliseconds after the epoch (before it, if negative).
    pub const fn from_millis(millis: i64) -> EventTime {
        EventTime(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time moved by a span; saturates at the ends.
    pub const fn plus(self, span: Span) -> EventTime {
        EventTime(self.0.saturating_add(span.0))
    }

    /// This time moved back by a span; saturates at the ends.
    pub const fn minus(self, span: Span) -> EventTime {
        EventTime(self.0.saturating_sub(span.0))
    }

    /// The span from `earlier` to this time; saturates at the ends.
    pub const fn since(self, earlier: EventTime) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl ProcTime {
    /// The instant `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> ProcTime {
        ProcTime(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time moved by a span; saturates at the ends.
    pub const fn plus(self, span: Span) -> ProcTime {
        ProcTime(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to this time; saturates at the ends.
    pub const fn since(self, earlier: ProcTime) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The event time of a row whose time is its arrival.
    pub const fn as_event_time(self) -> EventTime {
        EventTime(self.0)
    }
}

/// What is a length of time: a [`Span`]. A bare number is none, as it has no unit.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no length of time",
    label = "of what unit is this, if it is a number?",
    note = "say the unit: `.between(-minutes(5), secs(30))`, `.tumbling(hours(1))`"
)]
pub trait ToSpan {
    /// How long that is.
    fn to_span(self) -> Span;
}

impl ToSpan for Span {
    fn to_span(self) -> Span {
        self
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span there is.
    pub const MAX: Span = Span(i64::MAX);

    /// Milliseconds, negative for a span that points back.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The sum of two spans; saturates at the ends.
    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// Whether it points back in time.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Reads `"5s"`, `"1m 30s"`, `"250ms"`, `"-2h"`, `"7d"`: units `ms`, `s`, `m`, `h`, `d`.
    ///
    /// # Errors
    /// When a part has no unit, an unknown unit, or does not fit.
    pub fn parse(text: &str) -> Result<Span, SpanError> {
        let wrong = || SpanError { text: text.to_string() };
        let (negative, body) = match text.trim().strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        let mut total: i64 = 0;
        let mut rest = body.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: i64 = rest[..digits].parse().map_err(|_| wrong())?;
            let tail = &rest[digits..];
            let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let unit = unit_millis(&tail[..letters]).ok_or_else(wrong)?;
            let part = number.checked_mul(unit).ok_or_else(wrong)?;
            total = total.checked_add(part).ok_or_else(wrong)?;
            rest = tail[letters..].trim_start();
        }
        Ok(Span(if negative { -total } else { total }))
    }
}

fn unit_millis(unit: &str) -> Option<i64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

impl Default for Watermark {
    /// Nothing is known yet.
    fn default() -> Self {
        Watermark::NONE
    }
}

impl Watermark {
    /// Nothing is known yet: rows of any time may come.
    pub const NONE: Watermark = Watermark(EventTime::MIN);
    /// No row will come any more.
    pub const END: Watermark = Watermark(EventTime::MAX);

    /// Every row still to come has a time at or after `time`.
    pub const fn at(time: EventTime) -> Watermark {
        Watermark(time)
    }

    /// The frontier itself.
    pub const fn time(self) -> EventTime {
        self.0
    }

    /// Whether a row of this time comes too late.
    pub fn is_late(self, time: EventTime) -> bool {
        time < self.0
    }
}

impl std::ops::Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span(self.0.saturating_neg())
    }
}

impl std::ops::Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        self.plus(other)
    }
}

/// A text that is not a span.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a span of time; write a number and a unit (ms, s, m, h, d), as in `5s` or `1m 30s`")]
pub struct SpanError {
    text: String,
}

/// A text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a time; write ISO 8601 with a zone, as in `2013-01-01T10:00:00Z`")]
pub struct TimeParseError {
    text: String,
}

impl std::str::FromStr for EventTime {
    type Err = TimeParseError;

    fn from_str(text: &str) -> Result<EventTime, TimeParseError> {
        let parsed: Result<jiff::Timestamp, _> = text.trim().parse();
        match parsed {
            // Rounds towards the past, so that times before the epoch keep their order.
            Ok(at) => Ok(EventTime(at.as_nanosecond().div_euclid(1_000_000) as i64)),
            Err(_) => read_civil(text.trim()).ok_or_else(|| TimeParseError { text: text.to_string() }),
        }
    }
}

// Timestamps end a day before the calendar does, so that they have a date in every zone. `9999-12-31` is what many write
// for a time that never comes.
fn read_civil(text: &str) -> Option<EventTime> {
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    let offset = pieces.to_numeric_offset()?.seconds();
    let nanos = pieces.date().to_datetime(pieces.time()?).duration_since(EPOCH).as_nanos();
    Some(EventTime((nanos.div_euclid(1_000_000) - i128::from(offset) * 1_000) as i64))
}

const EPOCH: jiff::civil::DateTime = jiff::civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => match EPOCH.checked_add(jiff::SignedDuration::from_millis(self.0)) {
                Ok(at) => write!(f, "{at:.3}Z"),
                Err(_) => write!(f, "{}", self.0),
            },
        }
    }
}

impl fmt::Debug for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for ProcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Watermark::NONE => f.write_str("none"),
            Watermark::END => f.write_str("end"),
            Watermark(time) => fmt::Display::fmt(&time, f),
        }
    }
}

impl fmt::Debug for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let mut rest = self.0.unsigned_abs();
        let mut first = true;
        for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
            // 24h reads better than 1d, and is what people write.
            let count = if unit == "d" && rest <= 2 * size { 0 } else { rest / size };
            if count > 0 {
                write!(f, "{}{count}{unit}", if first { "" } else { " " })?;
                rest -= count * size;
                first = false;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for EventTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() && EPOCH.checked_add(jiff::SignedDuration::from_millis(self.0)).is_ok() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for EventTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EventTime, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(TimeVisitor)
        } else {
            i64::deserialize(deserializer).map(EventTime)
        }
    }
}

struct TimeVisitor;

impl de::Visitor<'_> for TimeVisitor {
    type Value = EventTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time: ISO 8601 text, or milliseconds since the epoch as an integer")
    }

    fn visit_i64<E: de::Error>(self, millis: i64) -> Result<EventTime, E> {
        Ok(EventTime(millis))
    }

    fn visit_u64<E: de::Error>(self, millis: u64) -> Result<EventTime, E> {
        let fits = i64::try_from(millis);
        fits.map(EventTime).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(millis), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<EventTime, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written() {
        for (text, span) in [
            ("5s", secs(5)),
            ("1m 30s", secs(90)),
            ("250ms", millis(250)),
            ("-2h", -hours(2)),
            ("7d", days(7)),
            ("24h", hours(24)),
        ] {
            assert_eq!(Span::parse(text).unwrap(), span);
            assert_eq!(span.to_string(), text);
        }
        for wrong in ["", "5", "s", "5 parsecs", "9223372036854775807d", "1.5s"] {
            assert!(Span::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_read_from_text_and_numbers() {
        let iso: EventTime = serde_json::from_str("\"2013-01-01T10:00:00Z\"").unwrap();
        let number: EventTime = serde_json::from_str("1357034400000").unwrap();
        assert_eq!(iso, number);
        assert_eq!(serde_json::to_string(&iso).unwrap(), "\"2013-01-01T10:00:00.000Z\"");
        assert!(serde_json::from_str::<EventTime>("18446744073709551615").is_err());
        assert!(serde_json::from_str::<EventTime>("\"yesterday\"").is_err());
        assert_eq!("1969-12-31T23:59:59.9999Z".parse::<EventTime>().unwrap().as_millis(), -1);
    }

    // Reckoned by hand: the last second of the calendar is 253,402,300,799 seconds after the epoch.
    #[test]
    fn times_of_the_last_days_of_the_calendar_are_read_and_written() {
        let last = EventTime::from_millis(253_402_300_799_000);
        for text in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00", "9999-12-31T22:29:59-01:30"] {
            assert_eq!(text.parse::<EventTime>(), Ok(last), "{text}");
        }
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.000Z");
        assert_eq!(serde_json::to_string(&last).unwrap(), "\"9999-12-31T23:59:59.000Z\"");
        let before = EventTime::from_millis(-62_135_596_800_001);
        assert_eq!(before.to_string().parse::<EventTime>(), Ok(before));
        assert_eq!(EventTime::from_millis(253_402_300_800_000).to_string(), "253402300800000");
        for text in ["9999-12-31", "9999-12-31T23:59:59", "9999-12-32T00:00:00Z", "10000-01-01T00:00:00Z"] {
            assert!(text.parse::<EventTime>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_saturate_at_the_ends() {
        assert_eq!(EventTime::MAX.plus(secs(1)), EventTime::MAX);
        assert_eq!(EventTime::MIN.minus(secs(1)), EventTime::MIN);
        assert_eq!(-Span(i64::MIN), Span::MAX);
        assert!(!Watermark::NONE.is_late(EventTime::MIN));
    }
}
