//! Sessions: windows of a key that its rows make.
//!
//! A session fires when the watermark is past its last time, and is then kept as long as rows may come late. A late row
//! that makes it longer opens it again, and when it fires once more it says the difference.

use super::super::Outbox;
use super::super::joined::{Arrival, Arrivals};
use super::emit::Emitter;
use super::windows::{Window, clamp, reach};
use crate::key::Key;
use crate::state::{Due, Member, RowId, Runs, Session, Sessions};
use crate::time::{EventTime, Span, Watermark};

/// The rows of a join over sessions.
pub struct SessionRows<K: Key, const N: usize> {
    gap: i64,
    lateness: i64,
    sessions: Sessions<K>,
    touched: Vec<RowId>,
    noted: Vec<Due>,
    // The rows of one session.
    lists: [Vec<RowId>; N],
}

impl<K: Key, const N: usize> SessionRows<K, N> {
    /// No rows yet.
    pub fn new(gap: Span, lateness: Span) -> Self {
        SessionRows {
            gap: gap.as_millis(),
            lateness: lateness.as_millis(),
            sessions: Sessions::new(gap.as_millis()),
            touched: Vec::new(),
            noted: Vec::new(),
            lists: std::array::from_fn(|_| Vec::new()),
        }
    }

    // Whether what ends with a time is over for good.
    fn is_over(&self, last: i64, reach: i128) -> bool {
        i128::from(last) + i128::from(self.lateness) < reach
    }

    /// Takes rows in: those whose session is over are late.
    pub fn take_in(
        &mut self,
        input: usize,
        arrivals: &mut Arrivals<K>,
        watermark: Watermark,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        let reach = reach(watermark);
        for Arrival { key, hash, time, id } in arrivals.rows.drain(..) {
            let time = time.as_millis();
            let last = time.saturating_add(self.gap - 1);
            if key.is_null() {
                match self.is_over(last, reach) {
                    true => emitter.is_late(input, id),
                    false => on_null(input, id, Window::of(time.into(), last.into()), emitter, out),
                }
                continue;
            }
            let mut touched = std::mem::take(&mut self.touched);
            self.sessions.touched(hash, &key, time, &mut touched);
            match touched[..] {
                [] if self.is_over(last, reach) => emitter.is_late(input, id),
                [] => self.begin(input, (hash, key), (id, time), reach, emitter, out),
                [session] => self.join(session, input, (id, time), reach, emitter, out),
                [_, ..] => self.bridge(&touched, input, (id, time), reach, emitter, out),
            }
            self.touched = touched;
            emitter.select_if_many(out);
        }
    }

    fn begin(
        &mut self,
        input: usize,
        (hash, key): (u64, K),
        (id, time): (RowId, i64),
        reach: i128,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        emitter.accounts[input].open += 1;
        let session = self.sessions.begin(hash, key, time);
        self.sessions.at(session).members.push(Member { input: input as u8, part: 0, id });
        let last = self.sessions.at(session).last(self.gap);
        if i128::from(last) >= reach {
            return self.sessions.note(session, last);
        }
        // It comes late, but not for good.
        self.say(session, emitter, out);
        self.sessions.note(session, last.saturating_add(self.lateness));
    }

    fn join(
        &mut self,
        session: RowId,
        input: usize,
        (id, time): (RowId, i64),
        reach: i128,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        emitter.accounts[input].open += 1;
        self.sessions.extend(session, time);
        let last = self.sessions.at(session).last(self.gap);
        let held = self.sessions.at(session);
        let has_fired = i128::from(last) < reach;
        if has_fired {
            let mut lists = held.lists(None);
            emitter.enter(window(held, last), out);
            emitter.add(&mut lists, (input, id), EventTime::from_millis(last));
        }
        held.members.push(Member { input: input as u8, part: u32::from(has_fired), id });
        if held.fired && !has_fired {
            held.fired = false;
            self.sessions.note(session, last);
        }
    }

    fn bridge(
        &mut self,
        touched: &[RowId],
        input: usize,
        (id, time): (RowId, i64),
        reach: i128,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        emitter.accounts[input].open += 1;
        let session = touched[0];
        let mut had_fired = self.sessions.at(session).fired;
        for &other in &touched[1..] {
            had_fired |= self.sessions.at(other).fired;
            self.sessions.absorb(session, other);
        }
        self.sessions.extend(session, time);
        let held = self.sessions.at(session);
        held.members.push(Member { input: input as u8, part: 0, id });
        let last = held.last(self.gap);
        held.fired = false;
        if i128::from(last) < reach {
            emitter.enter(window(held, last), out);
            say_difference(held, EventTime::from_millis(last), emitter);
        } else if had_fired {
            self.sessions.note(session, last);
        }
    }

    /// The watermark has moved: sessions fire, in order, and those that are over go.
    pub fn advance(&mut self, now: Watermark, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let until = reach(now);
        let latest = match now {
            Watermark::END => i64::MAX,
            at => at.time().as_millis().saturating_sub(1),
        };
        let mut noted = std::mem::take(&mut self.noted);
        let mut fired = 0;
        // Before the first watermark nothing is over, not even what ends with the beginning of time.
        while now != Watermark::NONE && self.sessions.take_noted(latest, &mut noted) {
            for &Due { id, .. } in &noted {
                self.look_at(id, until, emitter, out);
            }
            fired += noted.len();
            if fired >= SETTLE_AFTER {
                emitter.settle(out);
                fired = 0;
            }
        }
        emitter.settle(out);
        self.noted = noted;
    }

    fn look_at(&mut self, id: RowId, until: i128, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let session = self.sessions.at(id);
        let (last, has_fired) = (session.last(self.gap), session.fired);
        if i128::from(last) >= until {
            return self.sessions.note(id, last);
        }
        if !has_fired {
            self.say(id, emitter, out);
        }
        if !self.is_over(last, until) {
            return self.sessions.note(id, last.saturating_add(self.lateness));
        }
        let Some(session) = self.sessions.take(id) else { return };
        for member in &session.members {
            emitter.leave(usize::from(member.input), member.id, clamp(i128::from(last)));
        }
        self.sessions.spare(session.members);
    }

    // Says what a session makes that has not come out yet.
    fn say(&mut self, id: RowId, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let session = self.sessions.at(id);
        let last = session.last(self.gap);
        let cause = EventTime::from_millis(last);
        emitter.enter(window(session, last), out);
        if session.parts > 0 {
            return say_difference(session, cause, emitter);
        }
        self.lists.iter_mut().for_each(Vec::clear);
        for member in &session.members {
            self.lists[usize::from(member.input)].push(member.id);
        }
        let lists: [Runs<'_>; N] = std::array::from_fn(|input| (&self.lists[input][..], &[][..]));
        emitter.fire(&lists, cause, out);
        session.has_fired();
        emitter.select_if_many(out);
    }

    /// The earliest time that may still come out: that of a session that may still get rows.
    pub fn earliest(&self, watermark: Watermark) -> Option<EventTime> {
        let may_be_late = self.lateness > 0 && watermark != Watermark::END;
        may_be_late.then(|| clamp(reach(watermark) - i128::from(self.lateness)))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.sessions.bytes()
    }
}

fn window(session: &Session, last: i64) -> Window {
    Window::of(session.oldest.into(), last.into())
}

fn on_null<K: Key, const N: usize>(
    input: usize,
    id: RowId,
    window: Window,
    emitter: &mut Emitter<K, N>,
    out: &mut Outbox,
) {
    emitter.accounts[input].null_key += 1;
    match emitter.stands_alone(input) {
        true => {
            emitter.enter(window, out);
            emitter.alone(input, id, window.last());
            emitter.drop_later(input, id);
        }
        false => emitter.null_unmatched(input, id, window.last(), out),
    }
}

fn say_difference<K: Key, const N: usize>(session: &mut Session, cause: EventTime, emitter: &mut Emitter<K, N>) {
    let fired: Vec<[Vec<RowId>; N]> = (1..=session.parts).map(|part| session.lists(Some(part))).collect();
    emitter.merge(&fired, &session.lists(None), cause);
    session.has_fired();
}

/// Sessions that may have fired before what has left goes.
const SETTLE_AFTER: usize = 4_096;
