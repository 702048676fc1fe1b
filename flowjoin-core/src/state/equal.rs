//! Whether two rows are equal, by their bytes: rows need not be `Eq`.

use std::io::{self, Write};

use crate::record::Data;

/// Compares rows; keeps its memory from one comparison to the next.
#[derive(Debug, Default)]
pub struct Equality {
    bytes: Vec<u8>,
}

impl Equality {
    /// Whether two rows are equal. A row that cannot be encoded is equal to none.
    #[inline]
    pub fn holds<T: Data>(&mut self, one: &T, other: &T) -> bool {
        self.bytes.clear();
        if !encode(one, &mut self.bytes) {
            return false;
        }
        let mut expected = Expected(&self.bytes);
        encode(other, &mut expected) && expected.0.is_empty()
    }

    /// A hash of a row: equal rows have the same.
    pub fn print<T: Data>(&mut self, row: &T) -> u64 {
        self.bytes.clear();
        if !encode(row, &mut self.bytes) {
            return 0;
        }
        twox_hash::XxHash3_64::oneshot(&self.bytes)
    }
}

// Takes the bytes that it expects, and no others: rows that differ are told apart at the first field that does.
struct Expected<'a>(&'a [u8]);

impl Write for Expected<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn encode<T: Data>(row: &T, bytes: &mut impl Write) -> bool {
    bincode::serde::encode_into_std_write(row, bytes, bincode::config::standard().with_fixed_int_encoding()).is_ok()
}

/// Whether two rows are equal, once.
pub fn equal_rows<T: Data>(one: &T, other: &T) -> bool {
    Equality::default().holds(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_equal_when_all_their_fields_are() {
        let mut equality = Equality::default();
        let row = |name: &str| (1u64, name.to_string(), Some(0.5f64));
        assert!(equality.holds(&row("a"), &row("a")));
        assert!(!equality.holds(&row("a"), &row("b")));
        assert!(!equality.holds(&row("a"), &row("ab")) && !equality.holds(&row("ab"), &row("a")));
        let list = |numbers: &[u8]| numbers.to_vec();
        assert!(!equality.holds(&((), list(&[])), &((), list(&[0]))));
        assert!(equality.holds(&(f64::NAN, 1), &(f64::NAN, 1)), "a row is equal to its copy, whatever it holds");
    }
}
