//! Names: those of the fields of a row, and the one that was probably meant.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The names that a row is read by, aliases too, or nothing if its type does not tell.
///
/// A derived `Deserialize` of a struct hands its names to the deserializer before anything is read. One with a
/// flattened field, or written by hand, may not; then nothing is known.
pub fn field_names<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut found = None;
    // It cannot succeed: the probe has nothing to read from.
    let _ = T::deserialize(Probe(&mut found));
    found
}

/// The choice that was probably meant: at most a third of its letters wrong, a swap of two counted once.
pub fn nearest<'c>(wrong: &str, choices: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let wrong: Vec<char> = wrong.to_lowercase().chars().collect();
    let (_, choice) = choices
        .filter_map(|choice| {
            let letters: Vec<char> = choice.to_lowercase().chars().collect();
            let shorter = wrong.len().min(letters.len());
            let distance = distance(&wrong, &letters);
            (distance < shorter && distance <= 1.max(shorter / 3)).then_some((distance, choice))
        })
        .min_by_key(|(distance, _)| *distance)?;
    Some(choice)
}

/// How many letters to put in, take out, change or swap with the next one.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

struct Probe<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Some(fields);
        Err(Error::custom("only the names were asked for"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_near() {
        let choices = ["order_id", "amount", "at"];
        let meant = |wrong: &str| nearest(wrong, choices.into_iter());
        assert_eq!(
            ["ordr_id", "amuont", "Amount", "a"].map(meant),
            [Some("order_id"), Some("amount"), Some("amount"), None]
        );
        assert_eq!(meant("customer"), None);
    }
}
