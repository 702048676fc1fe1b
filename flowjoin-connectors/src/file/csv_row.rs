//! A row out of a CSV record, through serde, with errors that name the field.
//!
//! Fields are found by header. A field's text is read as the type that the row asks for; where the row does not say
//! (flattened and untagged types, times), it is guessed, and an integer beyond 64 bits stays text. Null texts make
//! `None`, and only of an `Option`.

use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use csv::ByteRecord;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A record that is about to become a row; it has a field for each header.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) headers: &'a [String],
    pub(super) fields: &'a ByteRecord,
    pub(super) nulls: &'a [String],
}

/// Why a record is not a row.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct RowError(String);

impl RowError {
    fn of_field(self, name: &str) -> RowError {
        RowError(format!("`{name}`: {}", self.0))
    }
}

impl de::Error for RowError {
    fn custom<M: Display>(message: M) -> RowError {
        RowError(message.to_string())
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        match found {
            // serde's word for a null.
            de::Unexpected::Unit => RowError(format!("the field is empty, or null; expected {expected}")),
            found => RowError(format!("invalid type: {found}, expected {expected}")),
        }
    }
}

impl<'de> Deserializer<'de> for Row<'de> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_map(Columns { row: self, next: 0 })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(Columns { row: self, next: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map struct
        enum identifier ignored_any
    }
}

/// Goes through a record, column by column.
struct Columns<'de> {
    row: Row<'de>,
    next: usize,
}

impl<'de> Columns<'de> {
    fn value<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        let row = self.row;
        let index = self.next;
        self.next += 1;
        let bytes = row.fields.get(index).ok_or_else(|| RowError("the record ends early".to_string()))?;
        seed.deserialize(Field { bytes, nulls: row.nulls }).map_err(|error| error.of_field(&row.headers[index]))
    }
}

impl<'de> MapAccess<'de> for Columns<'de> {
    type Error = RowError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, RowError> {
        match self.row.headers.get(self.next) {
            Some(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        self.value(seed)
    }
}

impl<'de> SeqAccess<'de> for Columns<'de> {
    type Error = RowError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, RowError> {
        match self.next < self.row.headers.len() {
            true => self.value(seed).map(Some),
            false => Ok(None),
        }
    }
}

/// The text of one field.
#[derive(Clone, Copy)]
struct Field<'de> {
    bytes: &'de [u8],
    nulls: &'de [String],
}

impl<'de> Field<'de> {
    fn text(self) -> Result<&'de str, RowError> {
        std::str::from_utf8(self.bytes)
            .map_err(|error| RowError(format!("not UTF-8 at byte {} of the field", error.valid_up_to() + 1)))
    }

    fn is_null(self) -> bool {
        self.nulls.iter().any(|null| null.as_bytes() == self.bytes)
    }

    fn integer<N: FromStr<Err = ParseIntError>>(self) -> Result<N, RowError> {
        let text = self.text()?;
        text.trim().parse().map_err(|error: ParseIntError| {
            let kind = std::any::type_name::<N>();
            RowError(match error.kind() {
                IntErrorKind::PosOverflow => format!("the number {text} is too large for {kind}"),
                IntErrorKind::NegOverflow => format!("the number {text} is too small for {kind}"),
                _ => format!("`{text}` is not an integer, expected {kind}"),
            })
        })
    }

    fn float(self) -> Result<f64, RowError> {
        let text = self.text()?;
        let number: f64 =
            text.trim().parse().map_err(|_| RowError(format!("`{text}` is not a number, expected a float")))?;
        // `1e400` reads as infinity; only infinity itself may.
        if number.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(RowError(format!("the number {text} is too large for a float")));
        }
        Ok(number)
    }

    /// A number if the text looks like one and can be read exactly or as the float it is written as.
    fn guess<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let text = self.text()?;
        let begins_a_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if text.as_bytes().first().is_some_and(begins_a_number) {
            if let Ok(number) = text.parse::<i64>() {
                return visitor.visit_i64(number);
            }
            if let Ok(number) = text.parse::<u64>() {
                return visitor.visit_u64(number);
            }
            let looks_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            match self.float() {
                Ok(number) if !looks_integer && number.is_finite() => return visitor.visit_f64(number),
                _ => {}
            }
        }
        match text {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => visitor.visit_borrowed_str(text),
        }
    }
}

macro_rules! numbers {
    ($($read:ident: $visit:ident),*) => {$(
        fn $read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            visitor.$visit(self.integer()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = RowError;

    numbers! {
        deserialize_i8: visit_i8, deserialize_i16: visit_i16, deserialize_i32: visit_i32, deserialize_i64: visit_i64,
        deserialize_i128: visit_i128, deserialize_u8: visit_u8, deserialize_u16: visit_u16, deserialize_u32: visit_u32,
        deserialize_u64: visit_u64, deserialize_u128: visit_u128
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.is_null() {
            true => visitor.visit_unit(),
            false => self.guess(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let text = self.text()?;
        match text.trim() {
            word if word.eq_ignore_ascii_case("true") => visitor.visit_bool(true),
            word if word.eq_ignore_ascii_case("false") => visitor.visit_bool(false),
            _ => Err(RowError(format!("`{text}` is neither `true` nor `false`"))),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.bytes)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.bytes)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_enum(self.text()?.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    forward_to_deserialize_any! { unit unit_struct seq tuple tuple_struct map struct }
}
