//! Sessions in a store: one value each, with all its rows, under a number that runs on.
//!
//! A session is written whole when anything of it has changed. Where its rows stand among its members says which of them
//! have come out, and by which windows; so their order is kept, while ids and the calendar are made anew. What else is kept
//! of its first part follows from the rows.

use super::{Member, Session, Sessions};
use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::state::{Fields, ReadFields, RowId, Sealed, Sealing, Side, Told, number_of};
use crate::time::EventTime;

impl<K: Key, E> Sessions<K, E> {
    /// Notes from now on which sessions change, so that they can be sealed. To be called before there is any but those that
    /// were taken back.
    pub fn keep(&mut self) {
        self.journal.get_or_insert_default();
    }

    /// Tells, of a part of a state, which sessions have gone since the last time, and each that has changed, with its rows
    /// as the function writes them.
    ///
    /// # Errors
    /// If the function cannot.
    pub fn seal(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        write: impl Fn(&Member, &mut Fields<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let sealed = journal.seal(part, into, |(_, index), bytes| {
            let id = RowId::new(index as u32);
            let session = self.get(id);
            let begin = EventTime::from_millis(session.oldest);
            let key = self.line.key_of(session.hash, Side::Left, (begin, id)).expect("a session is one of its key");
            let fields = &mut Fields(bytes);
            fields.bytes(|out| {
                key.encode(out);
                Ok(())
            })?;
            session.write(fields, &write)?;
            Ok(KeyGroup::of(session.hash))
        });
        self.journal = Some(journal);
        sealed
    }

    /// Takes a session back that was sealed; the function reads a row and its time. It has to be noted when it is to be
    /// looked at.
    ///
    /// # Errors
    /// If it is none, or the function cannot.
    pub fn take_back(
        &mut self,
        sealed: &Sealed<'_>,
        read: impl FnMut(&mut ReadFields<'_>) -> Result<(Member, EventTime), OpError>,
    ) -> Result<RowId, OpError> {
        let mut fields = ReadFields(sealed.value);
        let key = K::decode(&mut fields.bytes()?).map_err(|error| OpError::unreadable("a key", &error))?;
        let session = Session::read(key.stable_hash(&mut Vec::new()), &mut fields, read)?;
        let number = number_of(sealed)?;
        let id = self.put(key, session);
        self.journal.get_or_insert_default().on_back((0, id.index()), number);
        Ok(id)
    }
}

impl<E> Session<E> {
    fn write(
        &self,
        fields: &mut Fields<'_>,
        write: impl Fn(&Member, &mut Fields<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        fields.number(self.members.len() as u64);
        self.members.iter().try_for_each(|member| write(member, fields))?;
        fields.number(u64::from(self.fired)).number(self.first_part as u64).number(self.other_parts.len() as u64);
        for part in &self.other_parts {
            fields.number(part.start as u64).number(part.end as u64);
        }
        // Told under other windows are few; where none is, nothing follows.
        if let Some(told) = &self.told {
            let mut places: Vec<(Member, usize)> = self.members.iter().copied().zip(0..).collect();
            places.sort_unstable_by_key(|(member, _)| (member.input, member.id));
            told.write(fields, |input, id| {
                let found = places.binary_search_by_key(&(input, id), |(member, _)| (member.input, member.id));
                places[found.expect("what was told is of rows of the session")].1
            });
        }
        Ok(())
    }

    fn read(
        hash: u64,
        fields: &mut ReadFields<'_>,
        mut read: impl FnMut(&mut ReadFields<'_>) -> Result<(Member, EventTime), OpError>,
    ) -> Result<Session<E>, OpError> {
        let (mut oldest, mut newest, mut members) = (i64::MAX, i64::MIN, Vec::new());
        for _ in 0..fields.number()? {
            let (member, time) = read(fields)?;
            oldest = oldest.min(time.as_millis());
            newest = newest.max(time.as_millis());
            members.push(member);
        }
        let (fired, first_part) = (fields.number()? != 0, fields.number()? as usize);
        let mut other_parts = Vec::new();
        for _ in 0..fields.number()? {
            other_parts.push(fields.number()? as usize..fields.number()? as usize);
        }
        let told = match fields.is_empty() {
            true => None,
            false => {
                let ids: Vec<RowId> = members.iter().map(|member| member.id).collect();
                Some(Box::new(Told::read(fields, &ids)?))
            }
        };
        let parts = other_parts.iter().map(|part| part.end).chain([first_part]);
        if members.is_empty() || parts.into_iter().any(|end| end > members.len()) {
            return Err(OpError::unreadable("a session", &"it has not the rows that it names"));
        }
        Ok(Session { hash, oldest, newest, members, first_part, other_parts, extra: None, told, fired })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Changes, Owner};
    use crate::time::ProcTime;

    type Held = Sessions<u8, ()>;

    // A row is written as its id, and its time is ten times that.
    fn sealed(sessions: &mut Held) -> Changes {
        let mut changes = Changes::default();
        let mut sealing = Sealing::new(&mut changes, 0, 0, ProcTime::default());
        let write = |member: &Member, fields: &mut Fields<'_>| {
            fields.number(u64::from(member.input)).number(member.id.index() as u64);
            Ok(())
        };
        sessions.seal(1, &mut sealing, write).unwrap();
        changes.sort();
        changes
    }

    fn read(fields: &mut ReadFields<'_>) -> Result<(Member, EventTime), OpError> {
        let (input, id) = (fields.number()? as u8, fields.number()?);
        Ok((Member { input, id: RowId::new(id as u32 + 100) }, EventTime::from_millis(id as i64 * 10)))
    }

    fn begin(sessions: &mut Held, row: u32) -> RowId {
        let hash = 1u8.stable_hash(&mut Vec::new());
        let session = sessions.begin(hash, 1, i64::from(row) * 10);
        sessions.at(session).members.push(Member { input: 1, id: RowId::new(row) });
        session
    }

    #[test]
    fn sessions_come_back_with_their_rows_in_order_and_what_came_out_of_them() {
        let mut sessions = Held::new(25);
        sessions.keep();
        let (one, two) = (begin(&mut sessions, 2), begin(&mut sessions, 6));
        [one, two].into_iter().for_each(|id| sessions.at(id).has_fired());
        sessions.at(two).outgrow(40, 25);
        sessions.at(one).outgrow(40, 25);
        sessions.absorb(one, two);
        sessions.extend(one, 40);
        sessions.at(one).members.push(Member { input: 0, id: RowId::new(4) });
        let changes = sealed(&mut sessions);
        assert_eq!(changes.len(), 1);
        let (key, value) = changes.iter().next().unwrap();
        let (mut back, piece) = (Held::new(25), Sealed::of(key, value.unwrap()).unwrap());
        let id = back.take_back(&piece, read).unwrap();
        back.keep();
        assert!(matches!(piece.owner, Owner::Group(_)) && sealed(&mut back).is_empty());
        let (was, is) = (sessions.get(one), back.get(id));
        let extent = |session: &Session<()>| (session.oldest, session.newest, session.fired, session.members.len());
        assert_eq!(extent(is), extent(was));
        let new = |member: &Member| Member { id: RowId::new(member.id.index() as u32 + 100), ..*member };
        assert_eq!(is.members, was.members.iter().map(new).collect::<Vec<_>>());
        assert_eq!((is.first_part, &is.other_parts), (was.first_part, &was.other_parts));
        assert_eq!((is.first_part, is.other_parts.len()), (1, 1));
        assert_eq!(format!("{:?}", is.told), format!("{:?}", was.told));
        let cut = Sealed { value: &piece.value[..piece.value.len() - 1], ..piece };
        assert!(Held::new(25).take_back(&cut, read).is_err());
    }

    #[test]
    fn a_session_that_came_and_went_leaves_nothing_behind() {
        let mut sessions = Held::new(5);
        sessions.keep();
        let (one, two) = (begin(&mut sessions, 2), begin(&mut sessions, 6));
        sessions.take(two);
        assert_eq!((sealed(&mut sessions).len(), sealed(&mut sessions).len()), (1, 0));
        assert!(!sessions.get(one).fired && sealed(&mut sessions).is_empty());
        sessions.absorb(one, two);
        let three = begin(&mut sessions, 9);
        sessions.absorb(three, one);
        // The one that was sealed has gone into one that was not.
        let changes = sealed(&mut sessions);
        assert_eq!(changes.iter().map(|(_, value)| value.is_some()).collect::<Vec<_>>(), [false, true]);
    }
}
