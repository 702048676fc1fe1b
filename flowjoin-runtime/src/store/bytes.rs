//! Numbers and strings of bytes as they stand in the files of a store.
//!
//! Fixed numbers are little endian. Lengths are *varints*: seven bits a byte, the lowest first, the high bit set in all
//! but the last. Whoever reads gets none where there is too little, and never a panic.

/// What is still to be read.
#[derive(Clone, Copy)]
pub struct Unread<'a>(pub &'a [u8]);

impl<'a> Unread<'a> {
    /// The next so many bytes.
    pub fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*taken))
    }

    /// The next number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// The next varint.
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Whether all is read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Puts a varint behind the bytes.
pub fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Puts behind the bytes what they come to, so that [`unsealed`] can tell whether they are still the same.
pub fn seal(bytes: &mut Vec<u8>) {
    let checksum = crc32fast::hash(bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
}

/// The bytes before the checksum at the end; none if they are not those that were sealed.
pub fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (bytes, checksum) = bytes.split_last_chunk()?;
    (crc32fast::hash(bytes) == u32::from_le_bytes(*checksum)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_is_read_as_it_was_written_and_not_beyond_its_end() {
        for number in [0, 1, 127, 128, 300, 1 << 32, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            let mut unread = Unread(&bytes);
            assert_eq!((unread.varint(), unread.is_empty()), (Some(number), true));
            assert_eq!(Unread(&bytes[..bytes.len() - 1]).varint(), None);
        }
        assert_eq!(Unread(&[0xff; 20]).varint(), None);
    }
}
