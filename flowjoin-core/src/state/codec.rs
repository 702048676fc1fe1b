//! Rows as bytes, for state that outlives its process.
//!
//! A row is written in the form of `bincode`: quick, small, and without the names of its fields. Rows that cannot be read
//! back from that, as what serde writes of them does not say what it is (`flatten`, `untagged`, `skip_serializing_if`,
//! values of any JSON), are written as JSON. Each row is read back before it is believed, so that what is kept is the
//! row; one that neither form brings back is refused. A byte that says the form leads every row.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::equal_rows;
use crate::error::OpError;
use crate::record::Data;

/// Appends the bytes of a row. What is kept from serde, as a field with `#[serde(skip)]` is, is not kept.
///
/// # Errors
/// If the row cannot be read back from what serde writes of it.
pub fn write_row<T: Data>(row: &T, out: &mut Vec<u8>) -> Result<(), OpError> {
    let begin = out.len();
    out.push(COMPACT);
    if encode_into(row, out).is_ok() && read_row::<T>(&out[begin..]).is_ok_and(|back| equal_rows(row, &back)) {
        return Ok(());
    }
    out.truncate(begin);
    out.push(JSON);
    let written = serde_json::to_writer(&mut *out, row).map_err(|error| error.to_string());
    let back = written.and_then(|()| read_row::<T>(&out[begin..]).map_err(|error| error.to_string()));
    match back {
        Ok(back) if equal_rows(row, &back) => Ok(()),
        Ok(_) => Err(OpError::not_kept(std::any::type_name::<T>(), "another row is read back")),
        Err(error) => Err(OpError::not_kept(std::any::type_name::<T>(), &error)),
    }
}

/// Reads a row that takes up all of these bytes.
///
/// # Errors
/// If they are not those of such a row.
pub fn read_row<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, OpError> {
    match bytes.split_first() {
        Some((&COMPACT, bytes)) => decode(bytes),
        Some((&JSON, bytes)) => {
            serde_json::from_slice(bytes).map_err(|error| OpError::unreadable(std::any::type_name::<T>(), &error))
        }
        _ => Err(OpError::unreadable(std::any::type_name::<T>(), &"no known form of a row leads it")),
    }
}

/// The bytes of a value of flowjoin's own.
///
/// # Panics
/// If serde refuses it, as it does no value of such a type.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes).expect("flowjoin's own values can be written");
    bytes
}

fn encode_into<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), bincode::error::EncodeError> {
    bincode::serde::encode_into_std_write(value, out, FORM).map(|_| ())
}

/// Reads a value that takes up all of these bytes.
///
/// # Errors
/// If they are not those of such a value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, OpError> {
    match bincode::serde::decode_from_slice::<T, _>(bytes, FORM) {
        Ok((value, len)) if len == bytes.len() => Ok(value),
        Ok(_) => Err(OpError::unreadable(std::any::type_name::<T>(), &"it is followed by something else")),
        Err(error) => Err(OpError::unreadable(std::any::type_name::<T>(), &error)),
    }
}

const FORM: bincode::config::Configuration = bincode::config::standard();

// The forms of a row; a number is never given to another one.
const COMPACT: u8 = 1;
const JSON: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::HashMap;

    fn bytes<T: Data>(row: &T) -> Vec<u8> {
        let mut out = Vec::new();
        write_row(row, &mut out).unwrap();
        out
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Order {
        id: u64,
        name: String,
        price: f64,
        note: Option<String>,
    }

    fn order() -> Order {
        Order { id: 300, name: "a".to_string(), price: -0.5, note: None }
    }

    // Reckoned by the specification of bincode 2: numbers below 251 take a byte, larger ones a mark and two, four or eight.
    #[test]
    fn the_bytes_of_a_row_are_frozen() {
        let price = [0, 0, 0, 0, 0, 0, 0xE0, 0xBF];
        let expected = [&[1u8, 251, 0x2C, 0x01, 1, b'a'][..], &price, &[0]].concat();
        assert_eq!(bytes(&order()), expected);
        assert_eq!(read_row::<Order>(&expected).unwrap(), order());
        assert!(read_row::<Order>(&expected[..expected.len() - 1]).is_err());
        assert!(read_row::<Order>(&[&expected[..], &[0]].concat()).is_err());
        assert!(read_row::<Order>(&[]).is_err() && read_row::<Order>(&[9, 0]).is_err());
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Loose {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        first: Option<u8>,
        second: Vec<u8>,
        #[serde(flatten)]
        rest: HashMap<String, serde_json::Value>,
    }

    #[test]
    fn rows_that_do_not_say_what_they_are_are_kept_as_json() {
        for first in [None, Some(1)] {
            let rest = HashMap::from([("x".to_string(), serde_json::json!({"y": [1, null]}))]);
            let row = Loose { first, second: vec![1, 0], rest };
            let bytes = bytes(&row);
            assert_eq!((bytes[0], read_row::<Loose>(&bytes).unwrap()), (JSON, row));
        }
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Forgetful {
        id: u8,
        #[serde(skip_deserializing)]
        gone: u8,
    }

    #[test]
    fn a_row_that_cannot_be_read_back_is_refused() {
        let error = write_row(&Forgetful { id: 1, gone: 2 }, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("Forgetful"), "{error}");
    }

    #[test]
    fn numbers_that_are_none_are_kept() {
        let bytes = bytes(&vec![f64::NAN, f64::INFINITY]);
        assert!(read_row::<Vec<f64>>(&bytes).unwrap()[0].is_nan());
    }
}
