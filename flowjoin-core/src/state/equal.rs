//! Whether two rows are equal, by what serde is told of them: rows need not be `Eq`.

mod encoding;

use self::encoding::{Encoder, Out, Stop};
use crate::record::Data;

/// Compares rows; keeps its memory from one comparison to the next.
///
/// Two rows are equal when serde is told the same of them. The entries of a map have no order, and a number that is no
/// number is equal to itself. What is kept from serde, as a field with `#[serde(skip)]` is, is not compared.
///
/// # Panics
/// If the `Serialize` of a row refuses to write it: whether it is equal to another could only be guessed then.
#[derive(Debug, Default)]
pub struct Equality {
    bytes: Vec<u8>,
}

impl Equality {
    /// Whether two rows are equal.
    #[inline]
    pub fn holds<T: Data>(&mut self, one: &T, other: &T) -> bool {
        self.bytes.clear();
        written::<T>(one.serialize(Encoder(&mut self.bytes)));
        let mut expected = Expected(&self.bytes);
        written::<T>(other.serialize(Encoder(&mut expected))) && expected.0.is_empty()
    }

    /// A hash of a row: equal rows have the same.
    pub fn print<T: Data>(&mut self, row: &T) -> u64 {
        self.bytes.clear();
        written::<T>(row.serialize(Encoder(&mut self.bytes)));
        twox_hash::XxHash3_64::oneshot(&self.bytes)
    }
}

// Takes the bytes that it expects, and no others: rows that differ are told apart at the first field that does.
struct Expected<'a>(&'a [u8]);

impl Out for Expected<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<(), Stop> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Stop::DIFFERS)?;
        if *first != bytes {
            return Err(Stop::DIFFERS);
        }
        self.0 = rest;
        Ok(())
    }

    #[inline]
    fn put_all(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.0 = self.0.strip_prefix(bytes).ok_or(Stop::DIFFERS)?;
        Ok(())
    }
}

// Whether a row was written to its end.
#[inline]
fn written<T>(result: Result<(), Stop>) -> bool {
    match result {
        Ok(()) => true,
        Err(stop) => refused::<T>(stop),
    }
}

#[cold]
fn refused<T>(stop: Stop) -> bool {
    if let Some(reason) = stop.refusal() {
        let row = std::any::type_name::<T>();
        panic!("a row of `{row}` cannot be compared with others, as its `Serialize` refuses to write it: {reason}");
    }
    false
}

/// Whether two rows are equal, once.
pub fn equal_rows<T: Data>(one: &T, other: &T) -> bool {
    Equality::default().holds(one, other)
}

#[cfg(test)]
mod tests;
