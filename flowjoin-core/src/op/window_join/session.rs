//! Sessions: windows of a key that its rows make.
//!
//! A session fires when the watermark is past its last time, and is then kept as long as rows may come late. A late row
//! that makes it longer opens it again, and when it fires once more it says the difference.

use super::super::Outbox;
use super::super::joined::{Arrival, Arrivals};
use super::emit::Emitter;
use super::fired::FiredRows;
use super::taken_back::say_apart;
use super::windows::{Window, clamp, reach};
use crate::key::Key;
use crate::state::{Due, Member, RowId, Runs, Session, Sessions};
use crate::time::{EventTime, Span, Watermark};

/// The rows of a join over sessions.
pub struct SessionRows<K: Key, const N: usize> {
    gap: i64,
    lateness: i64,
    /// The sessions.
    pub sessions: Sessions<K, FiredRows<N>>,
    touched: Vec<RowId>,
    // The sessions that are to be looked at now, and how many of them have been.
    noted: Vec<Due>,
    looked_at: usize,
    // The rows of a session that is over, its last time, and how many of them have left.
    going: Vec<Member>,
    going_last: i64,
    gone: usize,
    // How far a watermark has moved that has not been followed to the end.
    walk: Option<Watermark>,
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
            looked_at: 0,
            going: Vec::new(),
            going_last: 0,
            gone: 0,
            walk: None,
            lists: std::array::from_fn(|_| Vec::new()),
        }
    }

    // Whether what ends with a time is over for good.
    fn is_over(&self, last: i64, reach: i128) -> bool {
        i128::from(last) + i128::from(self.lateness) < reach
    }

    /// Takes rows in, which come the last one first, until the outbox is full: those whose session is over are late.
    pub fn take_in(
        &mut self,
        input: usize,
        arrivals: &mut Arrivals<K>,
        watermark: Watermark,
        emitter: &mut Emitter<K, N>,
        out: &mut Outbox,
    ) {
        let reach = reach(watermark);
        while !out.is_full()
            && let Some(Arrival { key, hash, time, id }) = arrivals.rows.pop()
        {
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
        self.sessions.at(session).members.push(Member { input: input as u8, id });
        let last = self.sessions.at(session).last(self.gap);
        if i128::from(last) >= reach {
            return self.sessions.note(session, last);
        }
        // It comes late, but not for good. One row makes one result at the most.
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
        if emitter.recalls_windows() {
            self.sessions.at(session).outgrow(time, self.gap);
        }
        self.sessions.extend(session, time);
        let last = self.sessions.at(session).last(self.gap);
        let held = self.sessions.at(session);
        held.members.push(Member { input: input as u8, id });
        let has_fired = i128::from(last) < reach;
        if has_fired {
            let window = window(held, last);
            emitter.enter(window, out);
            let from = emitter.said();
            let mut fired = recalled(held, emitter);
            emitter.add(&mut fired, (input, id), EventTime::from_millis(last));
            held.extra = Some(fired);
            say_apart(held, from, window, emitter, out);
            held.has_fired();
        }
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
        if emitter.recalls_windows() {
            touched.iter().for_each(|&id| self.sessions.at(id).outgrow(time, self.gap));
        }
        // The others are taken in by the one with the most rows.
        let most = touched.iter().copied().max_by_key(|&id| self.sessions.at(id).members.len());
        let session = most.unwrap_or(touched[0]);
        let mut had_fired = self.sessions.at(session).fired;
        for &other in touched.iter().filter(|&&other| other != session) {
            had_fired |= self.sessions.at(other).fired;
            self.sessions.absorb(session, other);
        }
        self.sessions.extend(session, time);
        let held = self.sessions.at(session);
        held.members.push(Member { input: input as u8, id });
        let last = held.last(self.gap);
        held.fired = false;
        if i128::from(last) < reach {
            let window = window(held, last);
            say_difference(held, window, emitter, out);
        } else if had_fired {
            self.sessions.note(session, last);
        }
    }

    /// The watermark moves: what is to be done then is done by [`go_on`](Self::go_on).
    pub fn advance(&mut self, now: Watermark) {
        // Before the first watermark nothing is over, not even what ends with the beginning of time.
        self.walk = Some(now).filter(|&now| now != Watermark::NONE);
    }

    /// Sessions fire, in order, and those that are over go, until the outbox is full.
    pub fn go_on(&mut self, emitter: &mut Emitter<K, N>, out: &mut Outbox) {
        let Some(now) = self.walk else { return };
        let until = reach(now);
        let latest = match now {
            Watermark::END => i64::MAX,
            at => at.time().as_millis().saturating_sub(1),
        };
        loop {
            while self.let_go(emitter, out)
                && let Some(&Due { id, .. }) = self.noted.get(self.looked_at)
            {
                if !self.look_at(id, until, emitter, out) {
                    return;
                }
                self.looked_at += 1;
            }
            if out.is_full() {
                return;
            }
            self.looked_at = 0;
            if !self.sessions.take_noted(latest, &mut self.noted) {
                break;
            }
        }
        emitter.settle(out);
        self.walk = None;
    }

    /// Whether it has more to do, once the outbox has room.
    pub fn has_more(&self) -> bool {
        self.walk.is_some()
    }

    // Returns false when the outbox is full and the session has to be looked at again.
    fn look_at(&mut self, id: RowId, until: i128, emitter: &mut Emitter<K, N>, out: &mut Outbox) -> bool {
        let session = self.sessions.get(id);
        let (last, has_fired) = (session.last(self.gap), session.fired);
        if i128::from(last) >= until {
            self.sessions.note(id, last);
            return true;
        }
        if !has_fired && !self.say(id, emitter, out) {
            return false;
        }
        if !self.is_over(last, until) {
            self.sessions.note(id, last.saturating_add(self.lateness));
            return true;
        }
        if let Some(session) = self.sessions.take(id) {
            (self.going, self.going_last) = (session.members, last);
        }
        true
    }

    // The rows of a session that is over leave; returns false when the outbox is full.
    fn let_go(&mut self, emitter: &mut Emitter<K, N>, out: &mut Outbox) -> bool {
        loop {
            if emitter.leaving() >= SETTLE_AFTER {
                emitter.settle(out);
            }
            if out.is_full() {
                return false;
            }
            let rows = &self.going[self.gone..];
            if rows.is_empty() {
                break;
            }
            let part = &rows[..rows.len().min(SETTLE_AFTER)];
            let last = clamp(i128::from(self.going_last));
            part.iter().for_each(|member| emitter.leave(usize::from(member.input), member.id, last));
            self.gone += part.len();
        }
        if self.gone > 0 {
            self.gone = 0;
            self.sessions.spare(std::mem::take(&mut self.going));
        }
        true
    }

    /// Notes when a session has to be looked at that was taken back.
    pub fn note_again(&mut self, id: RowId) {
        let session = self.sessions.get(id);
        let last = session.last(self.gap);
        let at = if session.fired { last.saturating_add(self.lateness) } else { last };
        self.sessions.note(id, at);
    }

    // Says what a session makes that has not come out yet; returns false when the outbox is full and there is more.
    fn say(&mut self, id: RowId, emitter: &mut Emitter<K, N>, out: &mut Outbox) -> bool {
        let session = self.sessions.at(id);
        let last = session.last(self.gap);
        let window = window(session, last);
        if !session.is_new() {
            say_difference(session, window, emitter, out);
            return true;
        }
        emitter.enter(window, out);
        self.lists.iter_mut().for_each(Vec::clear);
        for member in &session.members {
            self.lists[usize::from(member.input)].push(member.id);
        }
        let lists: [Runs<'_>; N] = std::array::from_fn(|input| (&self.lists[input][..], &[][..]));
        if !emitter.fire(&lists, window.last(), out) {
            return false;
        }
        session.has_fired();
        emitter.select_if_many(out);
        true
    }

    /// The earliest time that may still come out: that of a session that may still get rows.
    pub fn earliest(&self, watermark: Watermark) -> Option<EventTime> {
        let may_be_late = self.lateness > 0 && watermark != Watermark::END;
        may_be_late.then(|| clamp(reach(watermark) - i128::from(self.lateness)))
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        self.sessions.bytes(FiredRows::bytes)
    }
}

fn window<E>(session: &Session<E>, last: i64) -> Window {
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

// The rows that came out first, as those who add to them need them: they are read once.
fn recalled<K: Key, const N: usize>(session: &mut Session<FiredRows<N>>, emitter: &Emitter<K, N>) -> Box<FiredRows<N>> {
    session.extra.take().unwrap_or_else(|| Box::new(emitter.recall(lists(session.first_part()))))
}

fn lists<const N: usize>(members: &[Member]) -> [Vec<RowId>; N] {
    let mut lists: [Vec<RowId>; N] = std::array::from_fn(|_| Vec::new());
    members.iter().for_each(|member| lists[usize::from(member.input)].push(member.id));
    lists
}

fn say_difference<K: Key, const N: usize>(
    session: &mut Session<FiredRows<N>>,
    window: Window,
    emitter: &mut Emitter<K, N>,
    out: &mut Outbox,
) {
    emitter.enter(window, out);
    let from = emitter.said();
    let mut fired = recalled(session, emitter);
    let others: Vec<[Vec<RowId>; N]> = session.other_parts().map(lists).collect();
    let unsaid = session.unsaid().map(|member| (usize::from(member.input), member.id));
    emitter.merge(&mut fired, &others, unsaid, window.last());
    session.extra = Some(fired);
    say_apart(session, from, window, emitter, out);
    session.has_fired();
}

/// Rows that may leave before what they have left is sent.
const SETTLE_AFTER: usize = 4_096;
