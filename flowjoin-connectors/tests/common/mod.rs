//! A directory of its own for each test, and readers run to their end.
#![allow(dead_code, clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use flowjoin_core::io::{MovedTo, Page, ReadStatus, Reader, Sink, StreamSource, TableChange, TableSource, Writer};
use flowjoin_core::{Batch, Data, EventTime, IoError, Keyed, RecordError, RowKind};

/// Removed with all that is in it when the test ends.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("flowjoin-connectors-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn gunzip(path: &Path) -> String {
    std::io::read_to_string(flate2::read::MultiGzDecoder::new(fs::File::open(path).unwrap())).unwrap()
}

/// All that a partition gave until it ended or broke.
#[derive(Debug)]
pub struct Read<T> {
    pub rows: Vec<T>,
    pub bad: Vec<RecordError>,
    pub lines: Vec<u64>,
    /// The records of the rows, as they came.
    pub raws: Vec<Vec<u8>>,
    pub error: Option<IoError>,
}

impl<T> Read<T> {
    /// The records of the rows as text.
    pub fn texts(&self) -> Vec<&str> {
        self.raws.iter().map(|raw| std::str::from_utf8(raw).unwrap()).collect()
    }

    /// The bad records as `line: reason`.
    pub fn reasons(&self) -> Vec<String> {
        self.bad.iter().map(|bad| format!("{}: {}", bad.position.unwrap(), bad.reason)).collect()
    }

    pub fn error(&self) -> String {
        self.error.as_ref().expect("the reader should fail").to_string()
    }
}

pub fn read<T: Data>(source: &impl StreamSource<T>) -> Read<T> {
    read_partition(source, 0, 3)
}

/// Reads in pages of a few rows, and checks what every reader promises.
pub fn read_partition<T: Data>(source: &impl StreamSource<T>, partition: usize, max_rows: usize) -> Read<T> {
    read_opened(source.open(partition), max_rows)
}

/// The changes that the first partition of a table gave.
pub fn changes<T: Keyed>(source: &impl TableSource<T>) -> Read<TableChange<T>> {
    read_opened(source.open(0), 3)
}

/// A change in a line of text, to be compared.
pub fn in_words<T: Keyed + std::fmt::Debug>(change: &TableChange<T>) -> String {
    let at = |time: &Option<EventTime>| time.map_or(String::new(), |time| format!(" at {}", time.as_millis()));
    match change {
        TableChange::Put(row) => format!("put {}", serde_json::to_string(row).unwrap()),
        TableChange::Patch { key, time, .. } => format!("patch {key:?}{}", at(time)),
        TableChange::Delete { key, time, row } => {
            let row = row.as_ref().map_or(String::new(), |row| format!(", {}", serde_json::to_string(row).unwrap()));
            format!("delete {key:?}{}{row}", at(time))
        }
        TableChange::Move(moved) => {
            let row =
                moved.row.as_ref().map_or(String::new(), |row| format!(", {}", serde_json::to_string(row).unwrap()));
            let to = match &moved.to {
                MovedTo::Row(row) => serde_json::to_string(row).unwrap(),
                MovedTo::Patch { key, .. } => format!("patch {key:?}"),
            };
            format!("move {:?}{}{row} to {to}", moved.from, at(&moved.time))
        }
        TableChange::Truncate { time } => format!("truncate{}", at(time)),
    }
}

impl<T: Keyed + std::fmt::Debug> Read<TableChange<T>> {
    /// The changes as lines of text.
    pub fn told(&self) -> Vec<String> {
        self.rows.iter().map(in_words).collect()
    }
}

fn read_opened<T>(reader: Result<Box<dyn Reader<T>>, IoError>, max_rows: usize) -> Read<T> {
    let mut all = Read { rows: Vec::new(), bad: Vec::new(), lines: Vec::new(), raws: Vec::new(), error: None };
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            all.error = Some(error);
            return all;
        }
    };
    run(async {
        loop {
            let mut page = Page::default();
            let status = reader.read(&mut page, max_rows).await;
            assert!(page.rows.len() + page.bad.len() <= max_rows);
            assert!(page.origins.is_empty() || page.origins.len() == page.rows.len());
            assert_eq!(page.raws.get(page.rows.len()), None);
            all.raws.extend((0..page.rows.len()).filter_map(|index| page.raws.get(index)).map(<[u8]>::to_vec));
            all.rows.append(&mut page.rows);
            all.bad.append(&mut page.bad);
            all.lines.extend(page.origins.iter().map(|(_, line)| line));
            if let Some((done, size)) = reader.done() {
                assert!(done <= size);
            }
            match status {
                Ok(ReadStatus::More) => {}
                Ok(ReadStatus::End) => break,
                Err(error) => {
                    all.error = Some(error);
                    assert!(reader.read(&mut Page::default(), max_rows).await.is_err(), "it stays failed");
                    break;
                }
            }
        }
    });
    all
}

pub fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub fn batch<T>(changes: impl IntoIterator<Item = (&'static str, T)>) -> Batch<T> {
    let mut batch = Batch::default();
    for (symbol, row) in changes {
        let kinds = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];
        let kind = kinds.into_iter().find(|kind| kind.symbol() == symbol).unwrap();
        batch.push(row, EventTime::MIN, kind);
    }
    batch
}

pub fn inserts<T>(rows: impl IntoIterator<Item = T>) -> Batch<T> {
    batch(rows.into_iter().map(|row| ("+I", row)))
}

/// Writes the batches by one task and closes.
pub fn write<T: Data>(sink: &impl Sink<T>, batches: impl IntoIterator<Item = Batch<T>>) -> Result<(), IoError> {
    let mut writer: Box<dyn Writer<T>> = sink.open(0, 1)?;
    run(async {
        for batch in batches {
            writer.write(batch).await?;
        }
        writer.close().await
    })
}

/// So that a test can name the type without a cast.
pub fn open<T: Data>(source: &impl StreamSource<T>) -> Box<dyn Reader<T>> {
    source.open(0).unwrap()
}

/// Lines with a few bytes changed, dropped or doubled in each, the same in every run.
pub fn damaged(lines: &[&str], count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let mut all = Vec::new();
    for index in 0..count {
        let mut line = lines[index % lines.len()].as_bytes().to_vec();
        for _ in 0..=next(3) {
            let at = next(line.len());
            match next(5) {
                0 => drop(line.remove(at)),
                1 => line.insert(at, line[at]),
                2 => line[at] = b"{}[]\",:0-n\\x"[next(12)],
                3 => line[at] = next(256) as u8,
                _ => line.truncate(at + 1),
            }
        }
        // One line stays one line.
        line.retain(|byte| *byte != b'\n');
        all.extend_from_slice(&line);
        all.push(b'\n');
    }
    all
}
