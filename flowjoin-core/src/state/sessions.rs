//! Sessions: rows of one key, of all inputs, with less than a gap between one and the next.
//!
//! A row may begin a session, make one longer, or bridge two, which then are one. When a session is looked at is noted in
//! a calendar. Sessions grow without their note being looked for: a note that comes too early is put off, and the number
//! of a session is given to another one only when none of its notes is left.
//!
//! What has come out of a session is remembered by parts: the rows that came out together make a part, and bridging two
//! sessions that have come out makes one with two parts. Parts are stretches of the members, which are in the order in
//! which they came in; as a rule there is one, at the beginning.

mod keep;

use std::ops::Range;

use super::table::Guess;
use super::{Due, Expiry, Numbered, RowId, Side, Timeline, Told};
use crate::key::{Key, KeyGroup};
use crate::time::EventTime;

/// All sessions, by key; with each, what else is kept of its first part.
#[derive(Debug)]
pub struct Sessions<K: Key, E> {
    gap: i64,
    // The numbers of the sessions of a key, as if they were rows of the time at which they begin.
    line: Timeline<K, 1>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    calendar: Expiry,
    spare: Vec<Vec<Member>>,
    // Where state is kept: what has changed.
    journal: Option<Box<Numbered<1>>>,
}

#[derive(Debug)]
struct Slot<E> {
    session: Option<Session<E>>,
    // How many notes of it are in the calendar.
    notes: u32,
}

/// One session.
#[derive(Debug)]
pub struct Session<E> {
    hash: u64,
    /// The time of its oldest row.
    pub oldest: i64,
    newest: i64,
    /// Its rows.
    pub members: Vec<Member>,
    // How many of them, from the first on, have come out together; and where others stand that have.
    first_part: usize,
    other_parts: Vec<Range<usize>>,
    /// What else is known of its first part.
    pub extra: Option<Box<E>>,
    /// The windows under which its rows came out, if it had others than it has now and somebody asks.
    pub told: Option<Box<Told>>,
    /// Whether it has fired, and has not become longer since.
    pub fired: bool,
}

/// A row of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its input.
    pub input: u8,
    /// Where it is.
    pub id: RowId,
}

impl<E> Session<E> {
    /// The last time that lies in it, with a gap after its newest row; at the latest the end of time.
    pub fn last(&self, gap: i64) -> i64 {
        self.newest.saturating_add(gap - 1)
    }

    /// The rows that have come out first, or none.
    pub fn first_part(&self) -> &[Member] {
        &self.members[..self.first_part]
    }

    /// The rows of each other part.
    pub fn other_parts(&self) -> impl Iterator<Item = &[Member]> {
        self.other_parts.iter().map(|part| &self.members[part.clone()])
    }

    /// The rows that have not come out.
    pub fn unsaid(&self) -> impl Iterator<Item = &Member> {
        let begins = std::iter::once(self.first_part).chain(self.other_parts.iter().map(|part| part.end));
        let ends = self.other_parts.iter().map(|part| part.start).chain([self.members.len()]);
        begins.zip(ends).flat_map(|(begin, end)| &self.members[begin..end])
    }

    /// Whether nothing of it has come out.
    pub fn is_new(&self) -> bool {
        self.first_part == 0 && self.other_parts.is_empty()
    }

    /// Notes that all its rows have come out.
    pub fn has_fired(&mut self) {
        self.fired = true;
        self.first_part = self.members.len();
        self.other_parts.clear();
    }

    /// It is going to have a row of this time: notes the window under which its rows have come out, if it has fired and gets
    /// another window now.
    pub fn outgrow(&mut self, time: i64, gap: i64) {
        if self.fired && (time < self.oldest || self.newest < time) {
            let extent = (self.oldest, self.last(gap));
            self.told.get_or_insert_default().push(self.first_part, extent);
        }
    }

    // Takes in what another one holds.
    fn append(&mut self, other: &mut Session<E>) {
        let offset = self.members.len();
        if let Some(told) = other.told.take() {
            self.told.get_or_insert_default().append(*told, offset);
        }
        self.newest = self.newest.max(other.newest);
        self.members.extend(&other.members);
        let first = (other.first_part > 0).then_some(0..other.first_part);
        let parts = first.into_iter().chain(other.other_parts.iter().cloned());
        self.other_parts.extend(parts.map(|part| part.start + offset..part.end + offset));
    }
}

impl<K: Key, E> Sessions<K, E> {
    /// No session yet, of which each ends a gap after its newest row.
    pub fn new(gap: i64) -> Sessions<K, E> {
        Sessions {
            gap,
            line: Timeline::default(),
            slots: Vec::new(),
            free: Vec::new(),
            calendar: Expiry::new(gap),
            spare: Vec::new(),
            journal: None,
        }
    }

    /// Finds the sessions that a row of this key and time belongs to, in order of time: those with less than a gap to it.
    /// As there is a gap between any two, these can only be the last that begins at or before it, and the next.
    #[inline]
    pub fn touched(&mut self, hash: u64, key: &K, time: i64, found: &mut Vec<RowId>) {
        found.clear();
        self.line.around(hash, key, Side::Left, EventTime::from_millis(time), found);
        found.retain(|id| {
            let session = self.slots[id.index()].session.as_ref();
            session.is_some_and(|session| {
                time.saturating_sub(session.newest) < self.gap && session.oldest.saturating_sub(time) < self.gap
            })
        });
    }

    /// Begins a session with a row that touches none.
    pub fn begin(&mut self, hash: u64, key: K, time: i64) -> RowId {
        let members = self.spare.pop().unwrap_or_default();
        let (oldest, newest, other_parts) = (time, time, Vec::new());
        let (first_part, extra, told, fired) = (0, None, None, false);
        let session = Session { hash, oldest, newest, members, first_part, other_parts, extra, told, fired };
        let id = self.put(key, session);
        if let Some(journal) = &mut self.journal {
            journal.on_come((0, id.index()));
        }
        id
    }

    // Gives a session a number.
    fn put(&mut self, key: K, session: Session<E>) -> RowId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { session: None, notes: 0 });
            (self.slots.len() - 1) as u32
        });
        let id = RowId::new(number);
        let place = self.line.upsert(session.hash, key, Guess::default());
        self.line.insert(place, (Side::Left, EventTime::from_millis(session.oldest), id), false);
        self.slots[number as usize].session = Some(session);
        id
    }

    /// The session of a number.
    pub fn at(&mut self, id: RowId) -> &mut Session<E> {
        if let Some(journal) = &mut self.journal {
            journal.on_change((0, id.index()));
        }
        self.slots[id.index()].session.as_mut().expect(IS_THERE)
    }

    /// The session of a number, to look at.
    pub fn get(&self, id: RowId) -> &Session<E> {
        self.slots[id.index()].session.as_ref().expect(IS_THERE)
    }

    /// Makes a session so long that it has a row of this time.
    #[inline]
    pub fn extend(&mut self, id: RowId, time: i64) {
        let session = self.at(id);
        session.newest = session.newest.max(time);
        self.begin_at(id, time);
    }

    // Lets a session begin at a time, if that is before it does.
    #[inline]
    fn begin_at(&mut self, id: RowId, time: i64) {
        let session = self.at(id);
        if time < session.oldest {
            let (hash, oldest) = (session.hash, std::mem::replace(&mut session.oldest, time));
            let (from, to) = (EventTime::from_millis(oldest), EventTime::from_millis(time));
            self.line.move_to(hash, Side::Left, (from, id), to);
        }
    }

    /// Makes one session of two; that costs as much as the one has rows that is taken in.
    pub fn absorb(&mut self, into: RowId, from: RowId) {
        let Some(mut other) = self.take(from) else { return };
        self.begin_at(into, other.oldest);
        self.at(into).append(&mut other);
        self.spare(other.members);
    }

    /// Takes a session out.
    pub fn take(&mut self, id: RowId) -> Option<Session<E>> {
        let slot = &mut self.slots[id.index()];
        let session = slot.session.take()?;
        if slot.notes == 0 {
            self.free.push(id.index() as u32);
        }
        if let Some(journal) = &mut self.journal {
            journal.on_gone((0, id.index()), KeyGroup::of(session.hash));
        }
        self.line.remove(session.hash, Side::Left, (EventTime::from_millis(session.oldest), id), Guess::default());
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

    /// Bytes taken; the function tells those of what else is kept.
    pub fn bytes(&self, of_extra: impl Fn(&E) -> u64) -> u64 {
        let sessions = || self.slots.iter().filter_map(|slot| slot.session.as_ref());
        let extra: u64 = sessions().filter_map(|session| session.extra.as_deref()).map(of_extra).sum();
        let told: u64 = sessions().filter_map(|session| session.told.as_deref()).map(Told::bytes).sum();
        let of = |slot: &Slot<E>| slot.session.as_ref().map_or(0, |session| session.members.capacity());
        let members = self.slots.iter().map(of).sum::<usize>() + self.spare.iter().map(Vec::capacity).sum::<usize>();
        let slots = self.slots.capacity() * size_of::<Slot<E>>() + self.free.capacity() * 4;
        let journal = self.journal.as_ref().map_or(0, |journal| journal.bytes());
        let held = (slots + members * size_of::<Member>()) as u64;
        self.line.bytes() + self.calendar.bytes() + extra + told + held + journal
    }
}

const IS_THERE: &str = "only sessions that are there are asked for";

/// Lists of sessions that have gone which keep their memory.
const SPARE: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    type Sessions = super::Sessions<u8, ()>;

    fn touched(sessions: &mut Sessions, time: i64) -> Vec<usize> {
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

    // Were all sessions of the key looked at for each row, this would take minutes.
    #[test]
    fn a_key_with_very_many_sessions_is_as_quick_as_any() {
        let mut sessions = Sessions::new(5);
        let count = 200_000i64;
        // In no order, and ten apart.
        for n in 0..count {
            sessions.begin(3, 1u8, n * 7_919 % count * 10);
        }
        for n in 0..count {
            let time = n * 10;
            assert_eq!(touched(&mut sessions, time + 5), [0usize; 0]);
            let found = touched(&mut sessions, time + 3);
            assert_eq!(found.len(), 1);
            sessions.extend(RowId::new(found[0] as u32), time - 1);
            assert_eq!(touched(&mut sessions, time - 5), found);
        }
        for n in 0..count {
            assert!(sessions.take(RowId::new(n as u32)).is_some());
        }
        assert!(sessions.line.is_empty());
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
        let member = |id| Member { input: 1, id: RowId::new(id) };
        sessions.at(one).members.push(member(7));
        sessions.at(two).members.push(member(9));
        [one, two].into_iter().for_each(|id| sessions.at(id).has_fired());
        sessions.at(one).members.push(member(8));
        sessions.note(one, 4);
        sessions.note(two, 12);
        sessions.absorb(one, two);
        let session = sessions.at(one);
        assert_eq!((session.last(5), session.first_part()), (12, &[member(7)][..]));
        assert_eq!(session.other_parts().collect::<Vec<_>>(), [[member(9)]]);
        assert_eq!(session.unsaid().collect::<Vec<_>>(), [&member(8)]);
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
