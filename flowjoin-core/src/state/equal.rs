//! Whether two rows are equal, by their bytes: rows need not be `Eq`.

use crate::record::Data;

/// Compares rows; keeps its memory from one comparison to the next.
#[derive(Debug, Default)]
pub struct Equality {
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Equality {
    /// Whether two rows are equal. A row that cannot be encoded is equal to none.
    #[inline]
    pub fn holds<T: Data>(&mut self, one: &T, other: &T) -> bool {
        encode(one, &mut self.one) && encode(other, &mut self.other) && self.one == self.other
    }

    /// A hash of a row: equal rows have the same.
    pub fn print<T: Data>(&mut self, row: &T) -> u64 {
        if !encode(row, &mut self.one) {
            return 0;
        }
        twox_hash::XxHash3_64::oneshot(&self.one)
    }
}

fn encode<T: Data>(row: &T, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
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
        assert!(equality.holds(&(f64::NAN, 1), &(f64::NAN, 1)), "a row is equal to its copy, whatever it holds");
    }
}
