//! Records of a CSV file, each with its line and its bytes as they came.
//!
//! The csv crate splits records but does not keep their bytes. So what it reads is kept here until the record that
//! needs it is done, and no longer; that also bounds a record, as one quote left open would else take in the file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::ByteRecord;
use flowjoin_core::IoError;

use super::lines::BYTE_ORDER_MARK;
use super::open::{self, BLOCK_BYTES, Meter, Opened};
use super::reader::Failure;

/// Splits one file into records.
pub(super) struct Records {
    reader: csv::Reader<Kept>,
    record: ByteRecord,
    /// Where the record that was read last stands in the file, without the end of its line.
    stands: (u64, u64),
    meter: Meter,
    path: PathBuf,
    line: u64,
    delimiter: u8,
    bytes_max: u64,
}

/// One record, its fields unquoted.
pub(super) struct Record<'a> {
    pub(super) fields: &'a ByteRecord,
    /// As it came, without the end of its line.
    pub(super) raw: &'a [u8],
    /// The line that it begins on, from 1.
    pub(super) line: u64,
    /// Whether the file ended within a quoted field.
    pub(super) left_open: bool,
}

impl Records {
    pub(super) fn open(path: &Path, delimiter: u8, bytes_max: usize) -> Result<Records, IoError> {
        let bytes_max = bytes_max as u64;
        let Opened { bytes, meter } = open::open(path)?;
        let kept =
            Kept { input: bytes, bytes: Vec::new(), from: 0, record_at: 0, bytes_max, ended: false, over: false };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .buffer_capacity(BLOCK_BYTES)
            .from_reader(kept);
        let path = path.to_path_buf();
        Ok(Records { reader, record: ByteRecord::new(), stands: (0, 0), meter, path, line: 0, delimiter, bytes_max })
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The record that was read last, as it came, without the end of its line.
    pub(super) fn raw(&self) -> &[u8] {
        let (start, end) = self.stands;
        self.reader.get_ref().slice(start, end)
    }

    /// The next record, or nothing at the end of the file. Empty lines are passed over.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, Failure> {
        let position = self.reader.position();
        let (start, line) = (position.byte(), position.line());
        self.reader.get_mut().record_begins_at(start);
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(self.broken(line, error)),
        }
        let end = self.reader.position().byte();
        if end - start > self.bytes_max {
            return Err(self.too_long(line).into());
        }
        let kept = self.reader.get_ref();
        let bytes = kept.slice(start, end);
        if start == 0 {
            open::refuse_gzip(&self.path, bytes)?;
        }
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        // The end of the line before, if it was `\r\n`, and empty lines are read together with the record.
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let (before, raw) = bytes.split_at(blank);
        self.line = line + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        let left_open = kept.is_end(end) && ends_quoted(raw, self.delimiter);
        let at = end - raw.len() as u64;
        let raw = raw.trim_ascii_end_of_line();
        self.stands = (at, at + raw.len() as u64);
        Ok(Some(Record { fields: &self.record, raw, line: self.line, left_open }))
    }

    fn too_long(&self, line: u64) -> IoError {
        IoError::new(format!(
            "the record at {}:{line} is longer than {} bytes; is a quote left open? if not, raise `record_bytes_max`",
            self.path.display(),
            self.bytes_max
        ))
    }

    fn broken(&self, line: u64, error: csv::Error) -> Failure {
        let broken = |cause| open::broken(&self.path, self.line, &[], &self.meter, cause);
        match error.into_kind() {
            csv::ErrorKind::Io(_) if self.reader.get_ref().over => self.too_long(line).into(),
            csv::ErrorKind::Io(cause) => broken(cause),
            other => broken(io::Error::other(format!("{other:?}"))),
        }
    }
}

/// The bytes of the record that is being read, and those read ahead.
struct Kept {
    input: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    /// The offset in the file of the first byte kept.
    from: u64,
    record_at: u64,
    bytes_max: u64,
    ended: bool,
    over: bool,
}

impl Kept {
    fn record_begins_at(&mut self, offset: u64) {
        self.record_at = offset;
        let passed = (offset - self.from) as usize;
        // Moved seldom: once for about every block.
        if passed >= BLOCK_BYTES {
            self.bytes.drain(..passed);
            self.bytes.shrink_to(4 * BLOCK_BYTES);
            self.from = offset;
        }
    }

    fn slice(&self, start: u64, end: u64) -> &[u8] {
        &self.bytes[(start - self.from) as usize..(end - self.from) as usize]
    }

    /// Whether nothing comes after this offset.
    fn is_end(&self, offset: u64) -> bool {
        self.ended && offset == self.from + self.bytes.len() as u64
    }
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let held = self.from + self.bytes.len() as u64 - self.record_at;
        if held > self.bytes_max {
            self.over = true;
            return Err(io::Error::other("a record is too long"));
        }
        let count = self.input.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..count]);
        self.ended = count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

trait EndOfLine {
    fn trim_ascii_end_of_line(&self) -> &[u8];
}

impl EndOfLine for [u8] {
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        let line = self.strip_suffix(b"\n").unwrap_or(self);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

/// Whether a record ends within a quoted field.
fn ends_quoted(raw: &[u8], delimiter: u8) -> bool {
    #[derive(PartialEq)]
    enum At {
        FieldStart,
        Plain,
        Quoted,
    }
    let mut at = At::FieldStart;
    for byte in raw {
        at = match (at, *byte) {
            (At::FieldStart, b'"') => At::Quoted,
            // The second of a doubled quote opens the field again.
            (At::Quoted, b'"') => At::FieldStart,
            (At::Quoted, _) => At::Quoted,
            (_, byte) if byte == delimiter => At::FieldStart,
            _ => At::Plain,
        };
    }
    at == At::Quoted
}
