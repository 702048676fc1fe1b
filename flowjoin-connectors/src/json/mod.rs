//! JSON below the level of rows: an object as the texts of its fields, keys out of them, and what fields a row has.
//!
//! Texts rather than values, so that a number keeps all its digits until it is read as what it is.

mod fields;
mod key;
mod object;

pub(crate) use self::fields::{Has, RowFields};
pub(crate) use self::key::KeyFields;
pub(crate) use self::object::{Object, given, shown, write_object};
