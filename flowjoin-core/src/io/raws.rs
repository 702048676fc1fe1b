//! The bytes that the rows of a page were read from.

/// Records as they came, in the order of the rows that were read from them: all in one buffer, so that to keep one costs a
/// copy of its bytes and no more.
///
/// ```
/// use flowjoin_core::io::Raws;
///
/// let mut raws = Raws::default();
/// raws.push(br#"{"id":1}"#);
/// raws.push(br#"{"id":2}"#);
/// assert_eq!(raws.get(1), Some(br#"{"id":2}"#.as_slice()));
/// assert_eq!(raws.get(2), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raws {
    bytes: Vec<u8>,
    // Where each record ends in the bytes; it begins where the one before ends.
    ends: Vec<usize>,
}

impl Raws {
    /// Makes room for so many bytes more, where it is known about how many come.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Keeps the record of the next row.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// The record of a row, from 0, if it was kept.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// The bytes of all records.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_found_as_it_was_put_also_an_empty_one() {
        let mut raws = Raws::default();
        assert_eq!(raws.get(0), None);
        let records: [&[u8]; 4] = [b"", b"one", b"", b"\xff\n"];
        records.iter().for_each(|record| raws.push(record));
        let found: Vec<_> = (0..5).map(|index| raws.get(index)).collect();
        assert_eq!(found, [Some(records[0]), Some(records[1]), Some(records[2]), Some(records[3]), None]);
    }
}
