//! The fields of a value in a store, one behind the other: numbers in as few bytes as they need, and bytes with their length.

use crate::error::OpError;

/// Writes fields.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a mut Vec<u8>);

impl Fields<'_> {
    /// A number; small ones take a byte.
    #[inline]
    pub fn number(&mut self, mut number: u64) -> &mut Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    /// A number that may be negative; those near nought take a byte.
    #[inline]
    pub fn signed(&mut self, number: i64) -> &mut Self {
        self.number((number << 1 ^ number >> 63) as u64)
    }

    /// The bytes that a function appends.
    ///
    /// # Errors
    /// If the function fails.
    pub fn bytes(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), OpError>) -> Result<&mut Self, OpError> {
        let begin = self.0.len();
        self.0.extend_from_slice(&[0; LEN]);
        write(self.0)?;
        let len = (self.0.len() - begin - LEN) as u32;
        self.0[begin..begin + LEN].copy_from_slice(&len.to_le_bytes());
        Ok(self)
    }
}

/// Reads fields as they were written.
#[derive(Clone, Copy, Debug)]
pub struct ReadFields<'a>(pub &'a [u8]);

impl<'a> ReadFields<'a> {
    /// A number.
    ///
    /// # Errors
    /// If there is none.
    #[inline]
    pub fn number(&mut self) -> Result<u64, OpError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(short)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(OpError::unreadable("a number", &"it has no end"))
    }

    /// A number that may be negative.
    ///
    /// # Errors
    /// If there is none.
    #[inline]
    pub fn signed(&mut self) -> Result<i64, OpError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Bytes with their length.
    ///
    /// # Errors
    /// If there are not so many.
    pub fn bytes(&mut self) -> Result<&'a [u8], OpError> {
        let (len, rest) = self.0.split_first_chunk::<LEN>().ok_or_else(short)?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Whether all have been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cold]
fn short() -> OpError {
    OpError::unreadable("a value", &"it ends too soon")
}

const LEN: usize = size_of::<u32>();

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_come_back(numbers in any::<Vec<(u64, i64)>>(), text in any::<Vec<u8>>(), cut in any::<prop::sample::Index>()) {
            let mut out = Vec::new();
            for &(number, signed) in &numbers {
                Fields(&mut out).number(number).signed(signed);
            }
            Fields(&mut out).bytes(|out| { out.extend(&text); Ok(()) }).unwrap();
            let mut read = ReadFields(&out);
            for &(number, signed) in &numbers {
                prop_assert_eq!((read.number().unwrap(), read.signed().unwrap()), (number, signed));
            }
            prop_assert_eq!(read.bytes().unwrap(), text);
            prop_assert!(read.is_empty());
            let mut short = ReadFields(&out[..cut.index(out.len())]);
            let whole = numbers.iter().all(|_| short.number().is_ok() && short.signed().is_ok()) && short.bytes().is_ok();
            prop_assert!(!whole);
        }
    }

    #[test]
    fn numbers_take_as_few_bytes_as_they_need() {
        let len = |number: i64| {
            let mut out = Vec::new();
            Fields(&mut out).signed(number);
            out.len()
        };
        assert_eq!([0, -1, 63, -64, 64, i64::MIN].map(len), [1, 1, 1, 1, 2, 10]);
    }
}
