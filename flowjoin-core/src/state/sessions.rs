//! Sessions: rows of one key, of all inputs, with less than a gap between one and the next.
//!
//! A row may begin a session, make one longer, or bridge two, which then are one. When a session is looked at is noted in
//! a calendar. Sessions grow without their note being looked for: a note that comes too early is put off, and the number
//! of a session is given to another one only when none of its notes is left.
//!
//! What has come out of a session is remembered by parts: the rows that came out together make a part, and bridging two
//! sessions that have come out makes one with two parts.

use super::{Due, Expiry, KeyedRows, RowId};
use crate::key::Key;

/// All sessions, by key.
#[derive(Debug)]
pub struct Sessions<K: Key> {
    gap: i64,
    // The numbers of the sessions of a key, as if they were rows.
    table: KeyedRows<K, 1>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    calendar: Expiry,
    spare: Vec<Vec<Member>>,
}

#[derive(Debug)]
struct Slot {
    session: Option<Session>,
    // How many notes of it are in the calendar.
    notes: u32,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    hash: u64,
    /// The time of its oldest row.
    pub oldest: i64,
    newest: i64,
    /// Its rows.
    pub members: Vec<Member>,
    /// How many parts have come out apart, numbered from 1.
    pub parts: u32,
    /// Whether it has fired, and has not become longer since.
    pub fired: bool,
}

/// A row of a session.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its input.
    pub input: u8,
    /// The part with which it came out, or 0.
    pub part: u32,
    /// Where it is.
    pub id: RowId,
}

impl Session {
    /// The last time that lies in it, with a gap after its newest row; at the latest the end of time.
    pub fn last(&self, gap: i64) -> i64 {
        self.newest.saturating_add(gap - 1)
    }

    /// Its rows of one part, or of all, as one list an input.
    pub fn lists<const N: usize>(&self, part: Option<u32>) -> [Vec<RowId>; N] {
        let mut lists: [Vec<RowId>; N] = std::array::from_fn(|_| Vec::new());
        for member in self.members.iter().filter(|member| part.is_none_or(|part| member.part == part)) {
            lists[usize::from(member.input)].push(member.id);
        }
        lists
    }

    /// Notes that all its rows have come out.
    pub fn has_fired(&mut self) {
        self.fired = true;
        self.parts = 1;
        self.members.iter_mut().for_each(|member| member.part = 1);
    }
}

impl<K: Key> Sessions<K> {
    /// No session yet, of which each ends a gap after its newest row.
    pub fn new(gap: i64) -> Sessions<K> {
        Sessions {
            gap,
            table: KeyedRows::default(),
            slots: Vec::new(),
            free: Vec::new(),
            calendar: Expiry::new(gap),
            spare: Vec::new(),
        }
    }

    /// Finds the sessions that a row of this key and time belongs to: those with less than a gap to it.
    #[inline]
    pub fn touched(&mut self, hash: u64, key: &K, time: i64, found: &mut Vec<RowId>) {
        found.clear();
        let Some(place) = self.table.find(hash, key) else { return };
        let (lists, spill) = self.table.view(place);
        let (front, back) = lists.list(0, spill);
        let touches = |&&id: &&RowId| {
            let session = self.slots[id.index()].session.as_ref();
            session.is_some_and(|session| {
                time.saturating_sub(session.newest) < self.gap && session.oldest.saturating_sub(time) < self.gap
            })
        };
        found.extend(front.iter().chain(back).filter(touches));
    }

    /// Begins a session with a row that touches none.
    pub fn begin(&mut self, hash: u64, key: K, time: i64) -> RowId {
        let members = self.spare.pop().unwrap_or_default();
        let session = Session { hash, oldest: time, newest: time, members, parts: 0, fired: false };
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { session: None, notes: 0 });
            (self.slots.len() - 1) as u32
        });
        self.slots[number as usize].session = Some(session);
        let id = RowId::new(number);
        let place = self.table.upsert(hash, key);
        let (lists, spill) = self.table.at(place);
        lists.push(0, id, spill);
        id
    }

    /// The session of a number.
    pub fn at(&mut self, id: RowId) -> &mut Session {
        self.slots[id.index()].session.as_mut().expect("only sessions that are there are asked for")
    }

    /// Makes a session so long that it has a row of this time.
    #[inline]
    pub fn extend(&mut self, id: RowId, time: i64) {
        let session = self.at(id);
        session.oldest = session.oldest.min(time);
        session.newest = session.newest.max(time);
    }

    /// Makes one session of two.
    pub fn absorb(&mut self, into: RowId, from: RowId) {
        let Some(other) = self.take(from) else { return };
        let session = self.at(into);
        session.oldest = session.oldest.min(other.oldest);
        session.newest = session.newest.max(other.newest);
        let parts = session.parts;
        let renumbered = other.members.iter().map(|member| match member.part {
            0 => *member,
            part => Member { part: part + parts, ..*member },
        });
        session.members.extend(renumbered);
        session.parts += other.parts;
        self.spare(other.members);
    }

    /// Takes a session out.
    pub fn take(&mut self, id: RowId) -> Option<Session> {
        let slot = &mut self.slots[id.index()];
        let session = slot.session.take()?;
        if slot.notes == 0 {
            self.free.push(id.index() as u32);
        }
        self.table.take_row(session.hash, 0, id);
        Some(session)
    }

    /// Keeps the memory of a session that has gone for another one.
    pub fn spare(&mut self, mut members: Vec<Member>) {
        if self.spare.len() < SPARE {
            members.clear();
            self.spare.push(members);
        }
    }

    /// Notes when a session has to be looked at.
    #[inline]
    pub fn note(&mut self, id: RowId, at: i64) {
        let slot = &mut self.slots[id.index()];
        slot.notes += 1;
        let hash = slot.session.as_ref().map_or(0, |session| session.hash);
        self.calendar.push(Due { at, id, hash });
    }

    /// The earliest note at or before a time, and all others of the same time: the sessions of them that are there, each
    /// once. Returns whether there was a note.
    pub fn take_noted(&mut self, until: i64, noted: &mut Vec<Due>) -> bool {
        noted.clear();
        let Some(at) = self.calendar.earliest().filter(|&at| at <= until) else { return false };
        self.calendar.take_due(at, noted);
        noted.retain(|due| {
            let slot = &mut self.slots[due.id.index()];
            slot.notes -= 1;
            if slot.session.is_none() && slot.notes == 0 {
                self.free.push(due.id.index() as u32);
            }
            slot.session.is_some()
        });
        // A session that was opened again may be noted twice, with others in between.
        noted.sort_unstable_by_key(|due| due.id);
        noted.dedup_by_key(|due| due.id);
        true
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let of = |slot: &Slot| slot.session.as_ref().map_or(0, |session| session.members.capacity());
        let members = self.slots.iter().map(of).sum::<usize>() + self.spare.iter().map(Vec::capacity).sum::<usize>();
        let slots = self.slots.capacity() * size_of::<Slot>() + self.free.capacity() * 4;
        self.table.total_bytes() + self.calendar.bytes() + (slots + members * size_of::<Member>()) as u64
    }
}

/// Lists of sessions that have gone which keep their memory.
const SPARE: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(sessions: &mut Sessions<u8>, time: i64) -> Vec<usize> {
        let mut found = Vec::new();
        sessions.touched(3, &1, time, &mut found);
        found.iter().map(|id| id.index()).collect()
    }

    #[test]
    fn a_row_touches_what_is_less_than_a_gap_away() {
        let mut sessions = Sessions::new(5);
        let first = sessions.begin(3, 1, 0);
        sessions.begin(3, 1, 8);
        assert_eq!(touched(&mut sessions, 4), [0, 1]);
        assert_eq!([-4, 3, 5, 12].map(|time| touched(&mut sessions, time)), [vec![0], vec![0], vec![1], vec![1]]);
        assert!([-5, 13].iter().all(|&time| touched(&mut sessions, time).is_empty()));
        sessions.extend(first, 3);
        assert_eq!((touched(&mut sessions, 7), sessions.at(first).last(5)), (vec![0, 1], 7));
    }

    #[test]
    fn sessions_at_the_ends_of_time_do_not_touch() {
        let mut sessions = Sessions::new(i64::MAX);
        let late = sessions.begin(3, 1, i64::MAX);
        sessions.begin(3, 1, i64::MIN);
        assert_eq!(touched(&mut sessions, 0), [0usize; 0]);
        assert_eq!(touched(&mut sessions, 1), [0]);
        assert_eq!(sessions.at(late).last(i64::MAX), i64::MAX);
    }

    #[test]
    fn a_number_is_given_away_when_no_note_of_it_is_left() {
        let mut sessions = Sessions::new(5);
        let (one, two) = (sessions.begin(3, 1, 0), sessions.begin(3, 1, 8));
        sessions.at(two).members.push(Member { input: 1, part: 1, id: RowId::new(9) });
        (sessions.at(one).parts, sessions.at(two).parts) = (1, 1);
        sessions.note(one, 4);
        sessions.note(two, 12);
        sessions.absorb(one, two);
        let session = sessions.at(one);
        assert_eq!((session.last(5), session.parts, session.members[0].part), (12, 2, 2));
        assert_eq!(sessions.begin(3, 1, 90).index(), 2);
        let mut noted = Vec::new();
        assert!(sessions.take_noted(11, &mut noted) && noted.len() == 1 && noted[0].id == one);
        assert!(!sessions.take_noted(11, &mut noted));
        assert!(sessions.take_noted(12, &mut noted) && noted.is_empty());
        assert_eq!(sessions.begin(3, 1, 80), two);
    }
    #[test]
    fn a_session_that_was_noted_twice_for_one_time_is_looked_at_once() {
        let mut sessions = Sessions::new(5);
        let (one, two) = (sessions.begin(3, 1, 0), sessions.begin(3, 1, 8));
        [one, two, one, two].into_iter().for_each(|id| sessions.note(id, 4));
        let mut noted = Vec::new();
        assert!(sessions.take_noted(4, &mut noted));
        assert_eq!(noted.iter().map(|due| due.id).collect::<Vec<_>>(), [one, two]);
    }
}
