//! Rows by key and by what makes them the same: the unique key, or all of the row.

use crate::error::OpError;
use crate::state::{KeyedRows, RowId, Runs, Sealing};

/// Where a row stands that comes again, or is taken back. Rows of one print are in the order in which they came, and
/// whether they are the same is for the rows themselves to say.
#[derive(Default)]
pub struct Index {
    rows: KeyedRows<u64, 1>,
}

impl Index {
    /// Notes a row.
    pub fn insert(&mut self, key: u64, print: u64, id: RowId) {
        let hash = mixed(key, print);
        let place = self.rows.upsert(hash, hash);
        let (lists, spill) = self.rows.at(place);
        lists.push(0, id, spill);
    }

    /// Takes a row out.
    pub fn remove(&mut self, key: u64, print: u64, id: RowId) {
        self.rows.take_row(mixed(key, print), 0, id);
    }

    /// The first row that came, of those with this print, that the test holds for.
    pub fn find(&self, key: u64, print: u64, mut test: impl FnMut(RowId) -> bool) -> Option<RowId> {
        let hash = mixed(key, print);
        let (lists, spill) = self.rows.view(self.rows.find(hash, &hash)?);
        let (front, back) = lists.list(0, spill);
        front.iter().chain(back).copied().find(|&id| test(id))
    }

    /// Notes from now on what changes.
    pub fn keep(&mut self) {
        self.rows.keep();
    }

    /// Tells what has changed: for each print the rows that there are, as the function writes them.
    ///
    /// # Errors
    /// If the function cannot.
    pub fn seal(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        mut write: impl FnMut(Runs<'_>, &mut Vec<u8>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        self.rows.seal_own(part, into, |rows, place, out| {
            let (lists, spill) = rows.view(place);
            write(lists.list(0, spill), out)
        })
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.rows.total_bytes()
    }
}

// The top bits choose the shard and the low ones the place: both have to depend on both.
fn mixed(key: u64, print: u64) -> u64 {
    let folded = u128::from(key ^ 0x9E37_79B9_7F4A_7C15) * u128::from(print | 1);
    (folded >> 64) as u64 ^ folded as u64 ^ print.rotate_left(32)
}
