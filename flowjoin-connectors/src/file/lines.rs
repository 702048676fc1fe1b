//! Lines of a file with their numbers, each of bounded length.
//!
//! A line ends with `\n` or `\r\n` or the end of the file; a byte-order mark before one is dropped, be it the first or
//! that of a file which was put behind another. A line
//! beyond the limit is passed over without being held in memory, and only its beginning is shown.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flowjoin_core::IoError;

use super::open::{self, BLOCK_BYTES, Meter, Opened};
use super::reader::Failure;

/// Reads the lines of one file.
pub(super) struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    meter: Meter,
    path: PathBuf,
    number: u64,
    line: Vec<u8>,
    bytes_max: usize,
}

/// What the next line is.
pub(super) enum Line<'a> {
    /// A line without its end.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than may be.
    TooLong(&'a [u8]),
}

impl Lines {
    pub(super) fn open(path: &Path, bytes_max: usize) -> Result<Lines, IoError> {
        let Opened { bytes, meter } = open::open(path)?;
        let input = BufReader::with_capacity(BLOCK_BYTES, bytes);
        Ok(Lines { input, meter, path: path.to_path_buf(), number: 0, line: Vec::new(), bytes_max })
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The line that was read last, without its end; of one that is too long, as much as there is.
    pub(super) fn line(&self) -> &[u8] {
        trim_end(self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line))
    }

    /// The next line, or nothing at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, Failure> {
        let whole = self.read_line().map_err(|cause| {
            let start = &self.line[..self.line.len().min(SHOWN_BYTES)];
            open::broken(&self.path, self.number, start, &self.meter, cause)
        })?;
        let Some(whole) = whole else { return Ok(None) };
        self.number += 1;
        if self.number == 1 {
            open::refuse_gzip(&self.path, &self.line)?;
        }
        let line = self.line();
        Ok(Some(match whole {
            true => Line::Whole(line),
            false => Line::TooLong(&line[..line.len().min(SHOWN_BYTES)]),
        }))
    }

    /// Reads a line into `self.line`: whether it is whole, or nothing at the end of the file.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        // Room for the two bytes of the line's end, which do not count.
        let limit = self.bytes_max.saturating_add(2) as u64;
        (&mut self.input).take(limit).read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        if trim_end(&self.line).len() <= self.bytes_max {
            return Ok(Some(true));
        }
        if !self.line.ends_with(b"\n") {
            self.line.truncate(SHOWN_BYTES);
            self.pass_over()?;
        }
        Ok(Some(false))
    }

    /// Drops the rest of a line.
    fn pass_over(&mut self) -> io::Result<()> {
        let mut dropped = Vec::new();
        loop {
            dropped.clear();
            (&mut self.input).take(BLOCK_BYTES as u64).read_until(b'\n', &mut dropped)?;
            if dropped.is_empty() || dropped.ends_with(b"\n") {
                return Ok(());
            }
        }
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

pub(super) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
/// How much of a line that is too long is kept, for a person to find it by.
pub(super) const SHOWN_BYTES: usize = 1024;
/// The buffer of a line is given back if it was larger.
const KEPT_BYTES: usize = 1 << 20;
