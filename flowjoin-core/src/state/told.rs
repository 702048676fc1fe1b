//! The windows that a session had when its rows came out, where it has become longer since.
//!
//! What came out stays as it was told, so that who takes it back has to know under which window that was. As the members
//! of a session are in the order in which they came in, a note for each window that it had before is enough: all members of
//! a stretch had come out together by then. A combination was told under the first window by which all its rows had come
//! out together; nothing is noted of the window that the session has now.
//!
//! A combination that was taken back and is told again, as can be with conditions between more than two inputs, is noted
//! by itself.

use std::collections::BTreeMap;

use super::{Fields, ReadFields, RowId};
use crate::error::OpError;

/// The first and the last time of a window.
pub type Extent = (i64, i64);

/// The windows that a session had before; of the same members the oldest first.
#[derive(Debug, Default)]
pub struct Told {
    stretches: Vec<Stretch>,
    // Combinations that were told later than their rows say.
    again: BTreeMap<Box<[RowId]>, Extent>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    begin: usize,
    end: usize,
    extent: Extent,
}

/// For each member of a session the first stretch that it is in, or none.
#[derive(Debug)]
pub struct FirstStretches(Vec<usize>);

impl Told {
    /// The first members, so many, had come out by this window, and the session gets another one now.
    pub fn push(&mut self, members: usize, extent: Extent) {
        self.stretches.push(Stretch { begin: 0, end: members, extent });
    }

    /// Takes in what was told of a session whose members now stand behind so many others.
    pub fn append(&mut self, other: Told, offset: usize) {
        let moved = |at: Stretch| Stretch { begin: at.begin + offset, end: at.end + offset, ..at };
        self.stretches.extend(other.stretches.into_iter().map(moved));
        self.again.extend(other.again);
    }

    /// The first stretch of each of so many members. Each member is visited once, however many stretches it is in.
    pub fn first_stretches(&self, members: usize) -> FirstStretches {
        let mut first = vec![NONE; members];
        // Those that have their stretch lead to the member behind them.
        let mut next: Vec<usize> = (0..=members).collect();
        for (number, stretch) in self.stretches.iter().enumerate() {
            let mut at = free_from(&mut next, stretch.begin);
            while at < stretch.end {
                first[at] = number;
                next[at] = at + 1;
                at = free_from(&mut next, at);
            }
        }
        FirstStretches(first)
    }

    /// The window under which a combination of members at these places was told; none if it is the one of now.
    pub fn of(&self, first: &FirstStretches, places: impl Iterator<Item = usize> + Clone) -> Option<Extent> {
        // A stretch that holds all of them does not come before the first one of any.
        let from = places.clone().map(|place| first.0[place]).max().filter(|&from| from != NONE)?;
        let holds = |at: &&Stretch| places.clone().all(|place| (at.begin..at.end).contains(&place));
        self.stretches[from..].iter().find(holds).map(|at| at.extent)
    }

    /// A combination is told again, under this window.
    pub fn tell_again(&mut self, ids: &[RowId], extent: Extent) {
        self.again.insert(ids.into(), extent);
    }

    /// A combination is taken back: the window under which it was told again, if it was.
    pub fn take_again(&mut self, ids: &[RowId]) -> Option<Extent> {
        self.again.remove(ids)
    }

    /// Writes what is known; the function says where the row of an input stands among the members.
    pub fn write(&self, fields: &mut Fields<'_>, place: impl Fn(u8, RowId) -> usize) {
        fields.number(self.stretches.len() as u64);
        for Stretch { begin, end, extent } in &self.stretches {
            fields.number(*begin as u64).number(*end as u64).signed(extent.0).signed(extent.1);
        }
        fields.number(self.again.len() as u64);
        for (ids, extent) in &self.again {
            fields.number(ids.len() as u64).signed(extent.0).signed(extent.1);
            for (input, &id) in ids.iter().enumerate() {
                // Nought is no row.
                let place = if id.is_missing() { 0 } else { 1 + place(input as u8, id) };
                fields.number(place as u64);
            }
        }
    }

    /// Reads what was written of a session with these members.
    ///
    /// # Errors
    /// If it is not that.
    pub fn read(fields: &mut ReadFields<'_>, members: &[RowId]) -> Result<Told, OpError> {
        let mut told = Told::default();
        for _ in 0..fields.number()? {
            let (begin, end) = (fields.number()? as usize, fields.number()? as usize);
            let extent = (fields.signed()?, fields.signed()?);
            told.stretches.push(Stretch { begin, end, extent });
        }
        for _ in 0..fields.number()? {
            let inputs = fields.number()?;
            let extent = (fields.signed()?, fields.signed()?);
            let mut ids = Vec::new();
            for _ in 0..inputs {
                ids.push(match fields.number()? {
                    0 => RowId::MISSING,
                    place => *members.get(place as usize - 1).ok_or_else(no_member)?,
                });
            }
            told.again.insert(ids.into(), extent);
        }
        Ok(told)
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let again = self.again.keys().map(|ids| size_of_val(&**ids) + size_of::<(Box<[RowId]>, Extent)>());
        (size_of::<Told>() + self.stretches.capacity() * size_of::<Stretch>() + again.sum::<usize>()) as u64
    }
}

#[cold]
fn no_member() -> OpError {
    OpError::unreadable("a session", &"it names a row that it has not")
}

// The first place from one on that leads to no other. The way to it is made short for the next who asks.
fn free_from(next: &mut [usize], from: usize) -> usize {
    let mut end = from;
    while next[end] != end {
        end = next[end];
    }
    let mut at = from;
    while at != end {
        at = std::mem::replace(&mut next[at], end);
    }
    end
}

const NONE: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(told: &Told, places: &[usize]) -> Option<Extent> {
        told.of(&told.first_stretches(10), places.iter().copied())
    }

    #[test]
    fn a_combination_was_told_under_the_first_window_by_which_all_its_rows_had_come_out() {
        let (mut told, mut other) = (Told::default(), Told::default());
        told.push(2, (10, 19));
        told.push(3, (8, 19));
        other.push(1, (30, 39));
        other.push(2, (30, 40));
        told.append(other, 4);
        told.push(8, (8, 40));
        let alone = [(10, 19), (10, 19), (8, 19), (8, 40), (30, 39), (30, 40), (8, 40), (8, 40)];
        assert_eq!(std::array::from_fn(|place| of(&told, &[place])), alone.map(Some));
        assert_eq!([8, 9].map(|place| of(&told, &[place])), [None, None]);
        assert_eq!([[0, 1], [1, 2], [5, 4]].map(|places| of(&told, &places)), [0, 2, 5].map(|at| Some(alone[at])));
        // Rows of both sessions were together only when these were bridged; one that has just come was with none of them.
        assert_eq!((of(&told, &[0, 4]), of(&told, &[0, 8])), (Some((8, 40)), None));
    }

    #[test]
    fn what_is_told_again_is_known_until_it_is_taken_back() {
        let (mut told, mut other) = (Told::default(), Told::default());
        let ids = [RowId::MISSING, RowId::new(3)];
        other.tell_again(&ids, (1, 2));
        other.tell_again(&ids, (1, 3));
        told.append(other, 7);
        assert_eq!((told.take_again(&ids), told.take_again(&ids)), (Some((1, 3)), None));
    }

    #[test]
    fn what_was_told_is_read_back_with_the_new_ids_of_its_rows() {
        let mut told = Told::default();
        told.push(2, (10, 19));
        told.push(3, (8, 19));
        told.tell_again(&[RowId::new(70), RowId::MISSING], (7, 9));
        let mut bytes = Vec::new();
        told.write(&mut Fields(&mut bytes), |input, id| if (input, id.index()) == (0, 70) { 1 } else { 9 });
        let mut back = Told::read(&mut ReadFields(&bytes), &[RowId::new(4), RowId::new(5)]).unwrap();
        assert_eq!([0, 2, 3].map(|place| of(&back, &[place])), [0, 2, 3].map(|place| of(&told, &[place])));
        assert_eq!(back.take_again(&[RowId::new(5), RowId::MISSING]), Some((7, 9)));
        assert!(Told::read(&mut ReadFields(&bytes), &[RowId::new(4)]).is_err());
    }

    // Were all stretches of each member gone through, this would take minutes.
    #[test]
    fn a_session_that_had_very_many_windows_is_gone_through_once() {
        let mut told = Told::default();
        let count = 200_000;
        (1..=count).for_each(|members| told.push(members, (0, members as i64)));
        let first = told.first_stretches(count);
        assert!((0..count).all(|place| told.of(&first, std::iter::once(place)) == Some((0, place as i64 + 1))));
    }
}
