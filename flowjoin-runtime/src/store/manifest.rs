//! The manifest: which segments a store consists of.
//!
//! It is small, a few dozen bytes a segment, and replaced as a whole. Appending to it would save one of four waits for
//! the disk in a commit, but the end of a file that was torn in a crash looks like one that was damaged later, and an
//! epoch that has been committed could vanish without a word. So whatever is wrong with a manifest is damage.

use std::{fs, io};

use flowjoin_core::state::{Epoch, StoreError};

use super::bytes::{Unread, seal, unsealed};
use super::disk::{Disk, Unfinished};

/// A segment as the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The number that is in the name of its file; a younger file has a higher one.
    pub number: u64,
    /// The first epoch whose changes are in it.
    pub first: Epoch,
    /// The last one.
    pub last: Epoch,
    /// How long it is.
    pub bytes: u64,
    /// The checksum at its end, which goes over all others in it.
    pub checksum: u32,
}

impl Named {
    /// The name of its file.
    pub fn file(&self) -> String {
        segment_file(self.number)
    }
}

/// The name of the file of a segment.
pub fn segment_file(number: u64) -> String {
    format!("{number:012}{SEGMENT}")
}

/// The segments of the store, oldest first; none if there is no manifest.
pub fn read(disk: &Disk) -> Result<Option<Vec<Named>>, StoreError> {
    let bytes = match fs::read(disk.path(MANIFEST)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(disk.failed(MANIFEST, "be read", &error)),
    };
    decoded(disk, &bytes).map(Some)
}

/// A manifest of these segments, oldest first, on the disk but not in its place.
pub fn prepare(disk: &Disk, segments: impl Iterator<Item = Named>) -> Result<Unfinished, StoreError> {
    let mut file = disk.create(MANIFEST)?;
    file.write(&encoded(segments))?;
    file.sync()?;
    Ok(file)
}

fn encoded(segments: impl Iterator<Item = Named>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    // The version is sealed by itself, so that it is known for what it is whatever a later one puts behind it.
    seal(&mut bytes);
    for segment in segments {
        for number in [segment.number, segment.first.0, segment.last.0, segment.bytes] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&segment.checksum.to_le_bytes());
    }
    seal(&mut bytes);
    bytes
}

fn decoded(disk: &Disk, bytes: &[u8]) -> Result<Vec<Named>, StoreError> {
    let head = bytes.get(..HEAD_BYTES).and_then(unsealed).and_then(|head| head.strip_prefix(&MAGIC));
    let version = head.and_then(|head| Unread(head).u32());
    let Some(version) = version else { return Err(disk.damaged(MANIFEST, "it does not begin as a manifest does")) };
    if version > VERSION {
        return Err(StoreError::new(format!(
            "`{}` is of format {version}, and this program knows formats up to {VERSION}; use the version of the program \
             that wrote it, or a later one",
            disk.path(MANIFEST).display()
        )));
    }
    let body = unsealed(bytes).and_then(|bytes| bytes.get(HEAD_BYTES..)).and_then(segments);
    body.ok_or_else(|| disk.damaged(MANIFEST, "its checksum is wrong"))
}

fn segments(body: &[u8]) -> Option<Vec<Named>> {
    let mut unread = Unread(body);
    let mut segments = Vec::new();
    while !unread.is_empty() {
        segments.push(Named {
            number: unread.u64()?,
            first: Epoch(unread.u64()?),
            last: Epoch(unread.u64()?),
            bytes: unread.u64()?,
            checksum: unread.u32()?,
        });
    }
    Some(segments)
}

/// The file of the manifest.
pub const MANIFEST: &str = "manifest";
/// How the name of the file of a segment ends.
pub const SEGMENT: &str = ".segment";
/// The format of the whole store, segments included.
pub const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"fj-store";
const HEAD_BYTES: usize = MAGIC.len() + 4 + 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        Disk::open(&std::env::temp_dir()).unwrap()
    }

    fn named(number: u64) -> Named {
        Named { number, first: Epoch(number), last: Epoch(number + 3), bytes: 99, checksum: 7 }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_refused_if_one_byte_is_other() {
        for segments in [vec![], vec![named(1)], vec![named(1), named(5), named(900)]] {
            let mut bytes = encoded(segments.iter().copied());
            assert_eq!(decoded(&disk(), &bytes).unwrap(), segments);
            for at in 0..bytes.len() {
                bytes[at] ^= 1 << (at % 8);
                assert!(decoded(&disk(), &bytes).unwrap_err().to_string().contains("manifest` is damaged"));
                bytes[at] ^= 1 << (at % 8);
                assert!(decoded(&disk(), &bytes[..at]).unwrap_err().to_string().contains("manifest` is damaged"));
            }
        }
    }

    #[test]
    fn a_manifest_of_a_later_format_is_refused_whatever_is_in_it() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(VERSION + 1).to_le_bytes());
        seal(&mut bytes);
        bytes.extend_from_slice(b"who knows");
        let error = decoded(&disk(), &bytes).unwrap_err().to_string();
        assert!(error.contains("is of format 2, and this program knows formats up to 1; use the version"), "{error}");
    }
}
