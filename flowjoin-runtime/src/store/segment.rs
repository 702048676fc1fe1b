//! Segments: files that never change, each the net changes of some epochs in a row, in the order of their keys.
//!
//! ```text
//! header   magic, format, number, first and last epoch, checksum
//! blocks   entry after entry: length of the key, 0 for a delete or 1 + length of the value, key, value
//! tail     the record of the last epoch; of each block its length, its checksum and its first key
//! footer   where the tail begins, length of the record, puts, deletes, checksum of the tail; checksum of header and footer
//! ```
//!
//! All but the blocks is read and verified as a segment is opened, and stays in memory: some dozens of bytes for each
//! block of [`BLOCK_BYTES`]. A block is verified whenever it is read. No byte is outside of a checksum, and the manifest
//! holds the last one, so that one segment cannot be taken for another.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;

use flowjoin_core::state::{Epoch, StoreError};

use super::bytes::{Unread, put_varint, seal, unsealed};
use super::cursor::Cursor;
use super::disk::{Disk, Unfinished};
use super::manifest::{Named, VERSION, segment_file};

/// A segment that is whole.
#[derive(Debug)]
pub struct Segment {
    disk: Disk,
    named: Named,
    record: Vec<u8>,
    blocks: Vec<Block>,
    puts: u64,
    deletes: u64,
}

/// Where a block is, and how it begins.
#[derive(Debug)]
pub struct Block {
    pub first: Box<[u8]>,
    pub at: u64,
    pub len: u64,
    pub checksum: u32,
}

/// What a segment says of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// It has this value.
    Put(Vec<u8>),
    /// It has none, whatever older segments say.
    Deleted,
    /// Nothing: older segments count.
    Nothing,
}

impl Segment {
    /// Opens a segment that the manifest names, and refuses it if it is not what was written.
    pub fn open(disk: &Disk, named: Named) -> Result<Segment, StoreError> {
        let name = named.file();
        let damaged = |what: &str| disk.damaged(&name, what);
        let read = |what: &'static str| {
            let (disk, name) = (disk, &name);
            move |error: std::io::Error| match error.kind() {
                ErrorKind::NotFound => disk.damaged(name, "it is not there, and its epochs have been committed"),
                _ => disk.failed(name, what, &error),
            }
        };
        let mut file = File::open(disk.path(&name)).map_err(read("be opened"))?;
        let bytes = file.metadata().map_err(read("be looked at"))?.len();
        if bytes != named.bytes || bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(damaged(&format!("it has {bytes} bytes and had {}", named.bytes)));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(read("be read"))?;
        if header[..] != encoded_header(&named)[..] {
            return Err(damaged("its header is not the one that was written"));
        }
        let mut footer = [0; FOOTER_BYTES];
        file.seek(SeekFrom::Start(bytes - FOOTER_BYTES as u64)).map_err(read("be read"))?;
        file.read_exact(&mut footer).map_err(read("be read"))?;
        let footer =
            Footer::of(&header, &footer, &named).ok_or_else(|| damaged("its footer is not what was written"))?;
        let tail_bytes = (bytes - FOOTER_BYTES as u64).checked_sub(footer.tail_at);
        let tail_bytes = tail_bytes.ok_or_else(|| damaged("its footer makes no sense"))?;
        file.seek(SeekFrom::Start(footer.tail_at)).map_err(read("be read"))?;
        let mut tail = vec![0; tail_bytes as usize];
        file.read_exact(&mut tail).map_err(read("be read"))?;
        if crc32fast::hash(&tail) != footer.tail_checksum {
            return Err(damaged("the checksum of its tail is wrong"));
        }
        let (record, blocks) = read_tail(&tail, &footer).ok_or_else(|| damaged("its tail makes no sense"))?;
        let Footer { puts, deletes, .. } = footer;
        Ok(Segment { disk: disk.clone(), named, record, blocks, puts, deletes })
    }

    /// How the manifest names it.
    pub fn named(&self) -> Named {
        self.named
    }

    /// The record of its last epoch.
    pub fn record(&self) -> &[u8] {
        &self.record
    }

    /// Its blocks, in the order of their keys.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Keys that have a value in it.
    pub fn puts(&self) -> u64 {
        self.puts
    }

    /// Keys that it takes away from older ones.
    pub fn deletes(&self) -> u64 {
        self.deletes
    }

    /// The folder that it is in.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// What it says of a key.
    pub fn word(self: &Arc<Self>, key: &[u8]) -> Result<Word, StoreError> {
        let cursor = Cursor::begin(self, key)?.filter(|cursor| cursor.key() == key);
        Ok(match cursor.as_ref().map(Cursor::value) {
            None => Word::Nothing,
            Some(None) => Word::Deleted,
            Some(Some(value)) => Word::Put(value.to_vec()),
        })
    }
}

/// A segment that is being written.
pub struct Draft {
    disk: Disk,
    file: Unfinished,
    named: Named,
    // Entries that are not in the file yet, and how many bytes of them make a block.
    block: Vec<u8>,
    block_bytes: usize,
    first: Box<[u8]>,
    blocks: Vec<Block>,
    at: u64,
    puts: u64,
    deletes: u64,
}

impl Draft {
    /// Begins a segment of this number for these epochs.
    pub fn begin(disk: &Disk, number: u64, first: Epoch, last: Epoch, block_bytes: usize) -> Result<Draft, StoreError> {
        let named = Named { number, first, last, bytes: 0, checksum: 0 };
        let mut file = disk.create(&segment_file(number))?;
        file.write(&encoded_header(&named))?;
        Ok(Draft {
            disk: disk.clone(),
            file,
            named,
            block: Vec::with_capacity(2 * block_bytes),
            block_bytes,
            first: Box::default(),
            blocks: Vec::new(),
            at: HEADER_BYTES as u64,
            puts: 0,
            deletes: 0,
        })
    }

    /// Puts down what has become of a key, which is behind all keys before.
    pub fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        if self.block.is_empty() {
            self.first = key.into();
        }
        put_varint(&mut self.block, key.len() as u64);
        put_varint(&mut self.block, value.map_or(0, |value| 1 + value.len() as u64));
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value.unwrap_or_default());
        match value {
            Some(_) => self.puts += 1,
            None => self.deletes += 1,
        }
        if self.block.len() >= self.block_bytes { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<(), StoreError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let (len, checksum) = (self.block.len() as u64, crc32fast::hash(&self.block));
        self.file.write(&self.block)?;
        self.blocks.push(Block { first: std::mem::take(&mut self.first), at: self.at, len, checksum });
        self.at += len;
        self.block.clear();
        Ok(())
    }

    /// Makes it whole, with the record of its last epoch, and brings it to the disk under its name. That it has this name
    /// is on the disk once the folder was brought there too.
    pub fn finish(mut self, record: &[u8]) -> Result<Segment, StoreError> {
        self.end_block()?;
        let mut end = encoded_tail(record, &self.blocks);
        let footer = Footer {
            tail_at: self.at,
            record_len: record.len() as u64,
            puts: self.puts,
            deletes: self.deletes,
            tail_checksum: crc32fast::hash(&end),
        };
        let (footer, checksum) = footer.encoded(&encoded_header(&self.named));
        end.extend_from_slice(&footer);
        self.file.write(&end)?;
        self.file.sync()?;
        self.file.finish()?;
        let named = Named { bytes: self.at + end.len() as u64, checksum, ..self.named };
        let Draft { disk, blocks, puts, deletes, .. } = self;
        Ok(Segment { disk, named, record: record.to_vec(), blocks, puts, deletes })
    }
}

fn encoded_header(named: &Named) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    for number in [named.number, named.first.0, named.last.0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    seal(&mut bytes);
    bytes
}

struct Footer {
    tail_at: u64,
    record_len: u64,
    puts: u64,
    deletes: u64,
    tail_checksum: u32,
}

impl Footer {
    // The footer behind this header, and the checksum at its end.
    fn encoded(&self, header: &[u8]) -> (Vec<u8>, u32) {
        let mut bytes = header.to_vec();
        for number in [self.tail_at, self.record_len, self.puts, self.deletes] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.tail_checksum.to_le_bytes());
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        (bytes.split_off(header.len()), checksum)
    }

    // The footer of the segment that the manifest names; none if it is not that.
    fn of(header: &[u8], footer: &[u8], named: &Named) -> Option<Footer> {
        let whole = [header, footer].concat();
        let mut unread = Unread(unsealed(&whole)?.get(header.len()..)?);
        let (tail_at, record_len) = (unread.u64()?, unread.u64()?);
        let (puts, deletes) = (unread.u64()?, unread.u64()?);
        let read = Footer { tail_at, record_len, puts, deletes, tail_checksum: unread.u32()? };
        footer.ends_with(&named.checksum.to_le_bytes()).then_some(read)
    }
}

fn encoded_tail(record: &[u8], blocks: &[Block]) -> Vec<u8> {
    let mut bytes = record.to_vec();
    for block in blocks {
        put_varint(&mut bytes, block.len);
        bytes.extend_from_slice(&block.checksum.to_le_bytes());
        put_varint(&mut bytes, block.first.len() as u64);
        bytes.extend_from_slice(&block.first);
    }
    bytes
}

fn read_tail(tail: &[u8], footer: &Footer) -> Option<(Vec<u8>, Vec<Block>)> {
    let mut unread = Unread(tail);
    let record = unread.take(footer.record_len)?.to_vec();
    let (mut blocks, mut at) = (Vec::new(), HEADER_BYTES as u64);
    while !unread.is_empty() {
        let (len, checksum, first_len) = (unread.varint()?, unread.u32()?, unread.varint()?);
        blocks.push(Block { first: unread.take(first_len)?.into(), at, len, checksum });
        at = at.checked_add(len)?;
    }
    (at == footer.tail_at).then_some((record, blocks))
}

/// How long a block becomes before it ends, unless one entry alone is longer. A reader holds one of each segment in
/// memory, and a look-up reads one whole.
pub const BLOCK_BYTES: usize = 64 << 10;
const MAGIC: [u8; 8] = *b"fj-segmt";
const HEADER_BYTES: usize = MAGIC.len() + 4 + 3 * 8 + 4;
const FOOTER_BYTES: usize = 4 * 8 + 4 + 4;
