//! The state of a window join in a store.
//!
//! Rows of windows that are the same for all keys are kept one by one, each under a number that runs on: a pane is by time,
//! so that it holds rows of all key groups, and one that becomes longer must not be written anew. A row is written when it
//! comes, and once more when it meets its first partner; one whose windows are over by the time of the seal is not written
//! at all. In which pane it is follows from its time, what has fired from the watermark, and what is known of windows into
//! which rows come late from the rows: so these are not kept. Sessions are kept whole, each with its rows.
//!
//! Rows with the key null are never held.

use super::emit::Emitter;
use super::grid::GridRows;
use super::session::SessionRows;
use crate::account::Account;
use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::state::{
    Fields, Logged, Member, Numbered, ReadFields, RowId, Sealed, Sealing, Standing, decode, encode, number_of,
};
use crate::time::EventTime;

/// Which rows of panes have changed since they were last sealed, and where each stands.
#[derive(Debug)]
pub struct RowJournal<const N: usize> {
    rows: Numbered<N>,
    standings: [Vec<Standing>; N],
}

impl<const N: usize> Default for RowJournal<N> {
    fn default() -> Self {
        RowJournal { rows: Numbered::default(), standings: std::array::from_fn(|_| Vec::new()) }
    }
}

impl<const N: usize> RowJournal<N> {
    /// A row has come, and stands there in a pane. It may have met others before, in windows that have fired.
    #[inline]
    pub fn on_come(&mut self, input: usize, id: RowId, standing: Standing) {
        self.rows.on_come((input, id.index()));
        self.stands_at(input, id, standing);
    }

    #[inline]
    fn stands_at(&mut self, input: usize, id: RowId, standing: Standing) {
        let standings = &mut self.standings[input];
        if id.index() >= standings.len() {
            standings.resize((id.index() + 1).next_power_of_two(), Standing::default());
        }
        standings[id.index()] = standing;
    }

    /// A row has met a partner.
    #[inline]
    pub fn on_change(&mut self, input: usize, id: RowId) {
        self.rows.on_change((input, id.index()));
    }

    /// A row has left its pane.
    #[inline]
    pub fn on_gone<K>(&mut self, row: &Logged<K>) {
        self.rows.on_gone((usize::from(row.input), row.id.index()), KeyGroup::of(row.hash));
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let standings: usize = self.standings.iter().map(Vec::capacity).sum();
        self.rows.bytes() + (standings * size_of::<Standing>()) as u64
    }
}

/// A row that was taken back and is not in its pane yet.
pub struct Back<K> {
    number: u64,
    time: EventTime,
    row: Logged<K>,
}

impl<K: Key, const N: usize> Emitter<K, N> {
    /// Tells what belongs to the task and to no key.
    pub fn seal(&self, into: &mut Sealing<'_>) {
        into.put_own(COUNTS, &[], &encode(&(self.accounts.to_vec(), self.rows.emitted())));
    }

    /// Takes that back. The rows have been taken back before, and of them it is counted how many are open.
    ///
    /// # Errors
    /// If it is not that.
    pub fn take_back(&mut self, sealed: &Sealed<'_>) -> Result<(), OpError> {
        let (accounts, emitted): (Vec<Account>, u64) = decode(sealed.value)?;
        let accounts = <[Account; N]>::try_from(accounts);
        let accounts =
            accounts.map_err(|_| OpError::unreadable("accounts", &"they are of another number of inputs"))?;
        for (own, kept) in self.accounts.iter_mut().zip(accounts) {
            *own = Account { open: own.open, ..kept };
        }
        self.rows.go_on(emitted);
        Ok(())
    }

    // A row, and whether it has met a partner.
    fn write(&self, input: usize, id: RowId, fields: &mut Fields<'_>) -> Result<(), OpError> {
        let has_met = self.met[input].contains(id);
        fields.number((input as u64) << 1 | u64::from(has_met)).signed(self.rows.time(input, id).as_millis());
        fields.bytes(|out| self.rows.write_row(input, id, out))?;
        Ok(())
    }

    // Takes such a row in.
    fn read(&mut self, fields: &mut ReadFields<'_>) -> Result<(Member, EventTime), OpError> {
        let head = fields.number()?;
        let (input, has_met) = ((head >> 1) as usize, head & 1 == 1);
        if input >= N {
            return Err(OpError::unreadable("a row", &"it is of an input that the join has not"));
        }
        let time = EventTime::from_millis(fields.signed()?);
        let id = self.rows.read_row(input, fields.bytes()?, time, None)?;
        match has_met {
            true => drop(self.met[input].insert(id)),
            false => self.accounts[input].open += 1,
        }
        Ok((Member { input: input as u8, id }, time))
    }
}

/// Tells which rows of panes have come, gone and met since the last time.
///
/// # Errors
/// If a row cannot be kept.
pub fn seal_grid<K: Key, const N: usize>(
    held: &GridRows<K, N>,
    emitter: &mut Emitter<K, N>,
    into: &mut Sealing<'_>,
) -> Result<(), OpError> {
    let Some(mut journal) = emitter.journal.take() else { return Ok(()) };
    let RowJournal { rows, standings } = &mut *journal;
    let sealed = rows.seal(HELD, into, |(input, index), bytes| {
        let row = held.panes.row_at(standings[input][index]);
        let fields = &mut Fields(bytes);
        fields.bytes(|out| {
            row.key.encode(out);
            Ok(())
        })?;
        emitter.write(input, row.id, fields)?;
        Ok(KeyGroup::of(row.hash))
    });
    emitter.journal = Some(journal);
    sealed
}

/// Takes a row of a pane back.
///
/// # Errors
/// If it is none.
pub fn take_back_row<K: Key, const N: usize>(
    held: &mut GridRows<K, N>,
    emitter: &mut Emitter<K, N>,
    sealed: &Sealed<'_>,
) -> Result<(), OpError> {
    let mut fields = ReadFields(sealed.value);
    let key = K::decode(&mut fields.bytes()?).map_err(|error| OpError::unreadable("a key", &error))?;
    let (Member { input, id }, time) = emitter.read(&mut fields)?;
    let row = Logged { hash: key.stable_hash(&mut Vec::new()), key, id, input };
    held.back.push(Back { number: number_of(sealed)?, time, row });
    Ok(())
}

/// All rows have been taken back: puts them into their panes in the order in which they had come.
pub fn resume_grid<K: Key, const N: usize>(held: &mut GridRows<K, N>, emitter: &mut Emitter<K, N>) {
    let mut back = std::mem::take(&mut held.back);
    back.sort_by_key(|back| back.number);
    let journal = emitter.journal.get_or_insert_default();
    for Back { number, time, row } in back {
        let (input, id) = (usize::from(row.input), row.id);
        let (_, last) = held.grid.pane(time.as_millis());
        let standing = held.panes.log(last, row);
        journal.rows.on_back((input, id.index()), number);
        journal.stands_at(input, id, standing);
    }
}

/// Tells which sessions have changed since the last time.
///
/// # Errors
/// If a row cannot be kept.
pub fn seal_sessions<K: Key, const N: usize>(
    held: &mut SessionRows<K, N>,
    emitter: &Emitter<K, N>,
    into: &mut Sealing<'_>,
) -> Result<(), OpError> {
    held.sessions.seal(HELD, into, |member, fields| emitter.write(usize::from(member.input), member.id, fields))
}

/// Takes a session back.
///
/// # Errors
/// If it is none.
pub fn take_back_session<K: Key, const N: usize>(
    held: &mut SessionRows<K, N>,
    emitter: &mut Emitter<K, N>,
    sealed: &Sealed<'_>,
) -> Result<(), OpError> {
    let id = held.sessions.take_back(sealed, |fields| emitter.read(fields))?;
    held.note_again(id);
    Ok(())
}

// The parts of the state of a window join.
const COUNTS: u8 = 0;
const HELD: u8 = 1;
