//! What a join keeps over a crash: under each key its rows, in the order in which they came, and what is known of each.
//!
//! A key that has changed is written whole. What follows from the rows is not written: the index of those that change, the
//! calendar, the places of rows. How long rows waited for each other is reckoned anew.

use serde::{Deserialize, Serialize};

use super::said::Said;
use super::{Leaving, MultiJoin};
use crate::account::Account;
use crate::error::OpError;
use crate::key::Key;
use crate::state::{Fields, Place, ReadFields, RowId, Runs, Sealed, Sealing, decode, encode};
use crate::time::EventTime;

// What belongs to the task.
#[derive(Serialize, Deserialize)]
struct Record {
    accounts: Vec<Account>,
    emitted: u64,
    frontier: EventTime,
    next_arrival: u64,
    left: Vec<u64>,
    read: Vec<bool>,
    ended: bool,
}

const RECORD: u8 = 0;
const KEYS: u8 = 1;
// Rows with null keys: a part an input.
const NULLS: u8 = 2;

impl Leaving {
    // When a row leaves.
    fn due_of(&self, id: RowId) -> i64 {
        let noted = || self.due.as_ref().and_then(|due| due.get(id.index())).copied();
        self.renewed.get(&id).copied().or_else(noted).unwrap_or(i64::MAX)
    }
}

impl<K: Key, const N: usize> MultiJoin<K, N> {
    pub(super) fn keep_state(&mut self) {
        self.table.keep();
        self.nulls.iter_mut().flatten().for_each(super::Index::keep);
        for leaving in self.leaving.iter_mut().flatten() {
            leaving.due.get_or_insert_default();
        }
    }

    pub(super) fn seal_state(&mut self, into: &mut Sealing<'_>) -> Result<(), OpError> {
        let next_arrival = match &self.said {
            Said::Numbered(hushed) => hushed.next(),
            Said::AsHeld | Said::Alone(_) => 0,
        };
        let record = Record {
            accounts: self.accounts.to_vec(),
            emitted: self.rows.emitted(),
            frontier: self.frontier,
            next_arrival,
            left: self.left.to_vec(),
            read: self.read.to_vec(),
            ended: self.ended,
        };
        into.put_own(RECORD, &[], &encode(&record));
        for input in 0..N {
            let (rows, leaving) = (&self.rows, self.leaving[input].as_ref());
            let Some(nulls) = &mut self.nulls[input] else { continue };
            nulls.seal(NULLS + input as u8, into, |(front, back): Runs<'_>, out| {
                for &id in front.iter().chain(back) {
                    Fields(out)
                        .signed(rows.time(input, id).as_millis())
                        .signed(leaving.map_or(0, |leaving| leaving.due_of(id)))
                        .bytes(|out| rows.write_row(input, id, out))?;
                }
                Ok(())
            })?;
        }
        // The table is sealed beside all else that is known of its rows.
        let mut table = std::mem::take(&mut self.table);
        let sealed = table.seal(KEYS, into, |table, place, out| {
            let (lists, spill) = table.view(place);
            let key = table.key_at(place);
            Fields(out).number(u64::from(lists.hushed())).number(u64::from(lists.met()));
            if let Said::Numbered(hushed) = &self.said {
                let emptied = hushed.emptied(key);
                Fields(out).number(u64::from(emptied.is_some()));
                for &number in emptied.into_iter().flatten() {
                    Fields(out).number(number);
                }
            }
            for input in 0..N {
                let (front, back) = lists.list(input, spill);
                Fields(out).number((front.len() + back.len()) as u64);
                front.iter().chain(back).try_for_each(|&id| self.write_known(input, id, out))?;
            }
            Ok(())
        });
        self.table = table;
        sealed
    }

    // A row, and what is known of it.
    fn write_known(&self, input: usize, id: RowId, out: &mut Vec<u8>) -> Result<(), OpError> {
        let mut fields = Fields(out);
        fields.signed(self.rows.time(input, id).as_millis()).number(u64::from(self.met.contains(input, id)));
        if let Some(leaving) = &self.leaving[input] {
            fields.signed(leaving.due_of(id));
        }
        let said = match &self.said {
            Said::AsHeld => None,
            Said::Alone(alone) => Some(u64::from(alone[input].contains(id))),
            Said::Numbered(hushed) => Some(hushed.arrival(input, id)),
        };
        if let Some(said) = said {
            fields.number(said);
        }
        if let Some(gaps) = &self.gaps {
            gaps.write(input, id, Fields(out));
        }
        Fields(out).bytes(|out| self.rows.write_row(input, id, out))?;
        Ok(())
    }

    pub(super) fn take_back_state(&mut self, sealed: Sealed<'_>) -> Result<(), OpError> {
        match sealed.part {
            RECORD => self.take_back_record(decode(sealed.value)?),
            KEYS => {
                let key = K::decode(&mut &*sealed.key).map_err(|error| OpError::unreadable("a key", &error))?;
                self.take_back_key(key, ReadFields(sealed.value))
            }
            part => match usize::from(part - NULLS) {
                input if input < N => self.take_back_nulls(input, ReadFields(sealed.value)),
                _ => Err(OpError::unreadable("a part of a join", &part)),
            },
        }
    }

    fn take_back_record(&mut self, record: Record) -> Result<(), OpError> {
        let other = |_| OpError::unreadable("a join", &"it had another number of inputs");
        self.accounts = record.accounts.try_into().map_err(|_| other(()))?;
        self.left = record.left.try_into().map_err(|_| other(()))?;
        self.read = record.read.try_into().map_err(|_| other(()))?;
        self.rows.go_on(record.emitted);
        (self.frontier, self.ended) = (record.frontier, record.ended);
        if let Said::Numbered(hushed) = &mut self.said {
            hushed.go_on(record.next_arrival);
        }
        Ok(())
    }

    fn take_back_key(&mut self, key: K, mut from: ReadFields<'_>) -> Result<(), OpError> {
        let hash = key.stable_hash(&mut Vec::new());
        let place = self.table.upsert(hash, key.clone());
        let (hushed_bits, met_bits) = (from.number()?, from.number()?);
        if let Said::Numbered(hushed) = &mut self.said
            && from.number()? == 1
        {
            let mut emptied = [0; N];
            for number in &mut emptied {
                *number = from.number()?;
            }
            hushed.put_back_emptied(key, emptied);
        }
        for input in 0..N {
            for _ in 0..from.number()? {
                self.take_back_row(input, (place, hash), &mut from)?;
            }
        }
        let lists = self.table.at(place).0;
        for input in 0..N {
            lists.set_hushed(input, hushed_bits >> input & 1 == 1);
            if met_bits >> input & 1 == 1 {
                lists.set_met_of(input);
            }
        }
        Ok(())
    }

    fn take_back_row(
        &mut self,
        input: usize,
        (place, hash): (Place, u64),
        from: &mut ReadFields<'_>,
    ) -> Result<(), OpError> {
        let (time, met) = (EventTime::from_millis(from.signed()?), from.number()? == 1);
        let due = if self.leaving[input].is_some() { Some(from.signed()?) } else { None };
        let said = if matches!(self.said, Said::AsHeld) { 0 } else { from.number()? };
        // The row stands behind what is known of it, and gets its number first.
        let known = *from;
        if let Some(gaps) = &self.gaps {
            gaps.skip(from)?;
        }
        let slot = self.side_by_side[input].then_some(place.number());
        let id = self.rows.read_row(input, from.bytes()?, time, slot)?;
        if let Some(gaps) = &mut self.gaps {
            gaps.take_back(input, (id, hash), &mut { known })?;
        }
        if met {
            self.met.insert(input, id);
        }
        match &mut self.said {
            Said::AsHeld => {}
            Said::Alone(alone) => {
                if said == 1 {
                    alone[input].insert(id);
                }
            }
            Said::Numbered(hushed) => hushed.put_back(input, id, said),
        }
        if let (Some(leaving), Some(at)) = (&mut self.leaving[input], due) {
            leaving.due.get_or_insert_default();
            leaving.leave_at(at, id, hash);
        }
        if let Some(index) = &mut self.index[input] {
            index.insert(hash, self.rows.print(input, id), id);
        }
        let (lists, spill) = self.table.at(place);
        lists.push(input, id, spill);
        Ok(())
    }

    fn take_back_nulls(&mut self, input: usize, mut from: ReadFields<'_>) -> Result<(), OpError> {
        while !from.is_empty() {
            let (time, at) = (EventTime::from_millis(from.signed()?), from.signed()?);
            let id = self.rows.read_row(input, from.bytes()?, time, None)?;
            let print = self.rows.print(input, id);
            if let Some(nulls) = &mut self.nulls[input] {
                nulls.insert(0, print, id);
            }
            if let Some(leaving) = &mut self.leaving[input] {
                leaving.due.get_or_insert_default();
                leaving.leave_at(at, id, 0);
            }
        }
        Ok(())
    }
}
