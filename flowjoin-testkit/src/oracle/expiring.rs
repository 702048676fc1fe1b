//! The N-way join told as a changelog, with rows that leave by time-to-live, in silence.
//!
//! By brute force: the rows that live, and the combinations that were said and stand. A row that arrives is said with
//! the rows that live; a missing row that it fills is taken back if it stands and all its other rows still live. A row
//! that expires leaves without a word, what was said with it stands for ever, and nothing comes back.

use flowjoin_core::{RowKind, Span};

use super::regular::{Combination, assert_arity, has_partners, product};

/// A join of inputs, each optional or not and each with a time-to-live or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringJoin {
    /// One flag an input: whether it may be missing in the result.
    pub optional: Vec<bool>,
    /// One time-to-live an input; none keeps its rows for ever.
    pub ttl: Vec<Option<Span>>,
}

/// One thing that happens to the join. Rows are numbered by whoever writes the history; an input uses a number once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<K> {
    /// A row comes in.
    Arrive {
        /// The input that it comes in on.
        input: usize,
        /// Its key; none is null.
        key: Option<K>,
        /// Its number.
        row: usize,
        /// The instant that its time-to-live counts from: the clock on its arrival where rows live by processing
        /// time, its own time where they live by event time.
        written: i64,
    },
    /// A row that came is written again, so that its time-to-live begins anew. If it does not live any more, nothing
    /// happens.
    Write {
        /// The input that it came in on.
        input: usize,
        /// Its number.
        row: usize,
        /// As in `Arrive`.
        written: i64,
    },
    /// A row is taken back. If it does not live any more, nothing happens.
    Leave {
        /// The input that it came in on.
        input: usize,
        /// Its number.
        row: usize,
    },
    /// The clock, or the watermark, has come to this instant: a row leaves if written + time-to-live is at or before
    /// it. A row that arrives too old for that lives until the clock is told again.
    Clock(i64),
    /// The clock of one input, where they do not all live by the same one.
    ClockOf {
        /// The input.
        input: usize,
        /// The instant that its clock has come to.
        now: i64,
    },
}

/// A change of the result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The place in the history of the event that it answers.
    pub at: usize,
    /// `+I` or `-D`.
    pub kind: RowKind,
    /// The rows, by number.
    pub combination: Combination,
}

/// A row that left by time-to-live and was never said together with a row of another input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expired {
    /// The place in the history of the clock event.
    pub at: usize,
    /// The input of the row.
    pub input: usize,
    /// Its number.
    pub row: usize,
}

/// What the join must say about a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The changes, event by event; those of one event are a set, of which the retractions come first.
    pub said: Vec<Said>,
    /// The rows that expired without a partner; rows with a null key are not among them.
    pub expired: Vec<Expired>,
    /// What stands at the end, sorted.
    pub standing: Vec<Combination>,
    /// The rows that live at the end, one list an input, in the order of their arrival.
    pub live: Vec<Vec<usize>>,
}

impl ExpiringJoin {
    /// What the join must say, and when, by its definition.
    ///
    /// ```
    /// use flowjoin_core::{RowKind, millis};
    /// use flowjoin_testkit::oracle::{Event, ExpiringJoin};
    ///
    /// let left_join = ExpiringJoin { optional: vec![false, true], ttl: vec![None, Some(millis(10))] };
    /// let arrive = |input, row| Event::Arrive { input, key: Some('k'), row, written: 0 };
    /// let told = left_join.expect(&[arrive(0, 0), arrive(1, 0), Event::Clock(10), arrive(1, 1)]);
    /// let said: Vec<_> = told.said.iter().map(|s| (s.at, s.kind.symbol(), s.combination.clone())).collect();
    /// assert_eq!(said, [
    ///     (0, "+I", vec![Some(0), None]),
    ///     (1, "-D", vec![Some(0), None]),
    ///     (1, "+I", vec![Some(0), Some(0)]),
    ///     // The first partner has expired in silence, so no padding stands that could be taken back.
    ///     (3, "+I", vec![Some(0), Some(1)]),
    /// ]);
    /// ```
    ///
    /// # Panics
    /// If there are not 2 to 12 inputs with one flag and one time-to-live each, or an input is not one of them.
    pub fn expect<K: PartialEq + Clone>(&self, history: &[Event<K>]) -> Expectation {
        assert_arity(self.optional.len(), self.ttl.len());
        let mut play = Play { join: self, live: Vec::new(), told: Expectation::default(), at: 0 };
        for (at, event) in history.iter().enumerate() {
            play.at = at;
            match event {
                Event::Arrive { input, key, row, written } => play.arrive(*input, key, *row, *written),
                Event::Write { input, row, written } => play.write(*input, *row, *written),
                Event::Leave { input, row } => play.leave(*input, *row),
                Event::Clock(now) => play.clock(*now, None),
                Event::ClockOf { input, now } => play.clock(*now, Some(*input)),
            }
        }
        play.told.standing.sort();
        let live_of = |input| play.live.iter().filter(|live| live.input == input).map(|live| live.row).collect();
        Expectation { live: (0..self.optional.len()).map(live_of).collect(), ..play.told }
    }
}

struct Live<K> {
    input: usize,
    row: usize,
    key: Option<K>,
    due: Option<i64>,
    met: bool,
}

struct Play<'a, K> {
    join: &'a ExpiringJoin,
    live: Vec<Live<K>>,
    told: Expectation,
    at: usize,
}

impl<K: PartialEq + Clone> Play<'_, K> {
    fn arrive(&mut self, input: usize, key: &Option<K>, row: usize, written: i64) {
        let mut lists = self.lists_under(key);
        let is_first = lists[input].is_empty();
        let due = self.due(input, written);
        self.live.push(Live { input, row, key: key.clone(), due, met: false });
        if is_first && self.join.optional[input] {
            self.take_back(|combination, of| combination[input].is_none() && of.is_some() && of == key);
        }
        lists[input] = vec![row];
        self.say(product(&lists, &self.join.optional));
    }

    fn due(&self, input: usize, written: i64) -> Option<i64> {
        self.join.ttl[input].map(|ttl| written.saturating_add(ttl.as_millis()))
    }

    fn write(&mut self, input: usize, row: usize, written: i64) {
        let due = self.due(input, written);
        for live in self.live.iter_mut().filter(|live| (live.input, live.row) == (input, row)) {
            live.due = due;
        }
    }

    fn leave(&mut self, input: usize, row: usize) {
        let Some(place) = self.live.iter().position(|live| (live.input, live.row) == (input, row)) else {
            return;
        };
        self.take_back(|combination, _| combination[input] == Some(row));
        let key = self.live.remove(place).key;
        let lists = self.lists_under(&key);
        if lists[input].is_empty() && self.join.optional[input] {
            self.say(product(&lists, &self.join.optional));
        }
    }

    // On one input, or on all.
    fn clock(&mut self, now: i64, of: Option<usize>) {
        let is_due =
            |live: &Live<K>| of.is_none_or(|input| live.input == input) && live.due.is_some_and(|due| due <= now);
        let (dead, live): (Vec<_>, Vec<_>) = std::mem::take(&mut self.live).into_iter().partition(is_due);
        self.live = live;
        for row in dead.iter().filter(|row| !row.met && row.key.is_some()) {
            self.told.expired.push(Expired { at: self.at, input: row.input, row: row.row });
        }
    }

    // A null key is shared with nobody, so its lists are empty.
    fn lists_under(&self, key: &Option<K>) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.join.optional.len()];
        for live in self.live.iter().filter(|live| key.is_some() && live.key == *key) {
            lists[live.input].push(live.row);
        }
        lists
    }

    // Takes back what stands, is chosen, and has no row that has left; `chosen` sees its key.
    fn take_back(&mut self, chosen: impl Fn(&Combination, &Option<K>) -> bool) {
        for combination in std::mem::take(&mut self.told.standing) {
            if self.key_of_live(&combination).is_some_and(|key| chosen(&combination, key)) {
                self.told.said.push(Said { at: self.at, kind: RowKind::Delete, combination });
            } else {
                self.told.standing.push(combination);
            }
        }
    }

    fn say(&mut self, combinations: Vec<Combination>) {
        for combination in combinations {
            if has_partners(&combination) {
                for live in &mut self.live {
                    live.met |= combination[live.input] == Some(live.row);
                }
            }
            self.told.standing.push(combination.clone());
            self.told.said.push(Said { at: self.at, kind: RowKind::Insert, combination });
        }
    }

    // The key of a combination whose rows all live.
    fn key_of_live(&self, combination: &Combination) -> Option<&Option<K>> {
        let find = |(input, row): (usize, &Option<usize>)| {
            row.map(|row| self.live.iter().find(|live| (live.input, live.row) == (input, row)))
        };
        let rows: Option<Vec<&Live<K>>> = combination.iter().enumerate().filter_map(find).collect();
        rows?.first().map(|live| &live.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChangelogChecker;
    use crate::oracle::regular;
    use flowjoin_core::millis;
    use proptest::prelude::*;

    // Plays `a1` (a row comes in on input a), `=a1` (it is written again), `-a1` (it is taken back) and `@10` (the clock); all under one key, or
    // null where the row is written `a1?`. What is said comes back as text, event by event.
    fn play(optional: &str, ttl: &[i64], history: &str) -> Vec<String> {
        let join = ExpiringJoin {
            optional: optional.chars().map(|c| c == '?').collect(),
            ttl: ttl.iter().map(|&t| (t > 0).then(|| millis(t))).collect(),
        };
        let mut now = 0;
        let mut events = Vec::new();
        for word in history.split_whitespace() {
            let place = |word: &str| {
                let input = usize::from(word.as_bytes()[0] - b'a');
                (input, word[1..].trim_end_matches('?').parse().unwrap())
            };
            events.push(if let Some(t) = word.strip_prefix('@') {
                now = t.parse().unwrap();
                Event::Clock(now)
            } else if let Some(again) = word.strip_prefix('=') {
                let (input, row) = place(again);
                Event::Write { input, row, written: now }
            } else if let Some(gone) = word.strip_prefix('-') {
                let (input, row) = place(gone);
                Event::Leave { input, row }
            } else {
                let (input, row) = place(word);
                Event::Arrive { input, key: (!word.ends_with('?')).then_some('k'), row, written: now }
            });
        }
        let told = join.expect(&events);
        let mut lines = vec![String::new(); events.len()];
        for said in &told.said {
            let rows = said.combination.iter().map(|row| row.map_or("-".to_string(), |row| row.to_string()));
            lines[said.at] += &format!(" {}{}", &said.kind.symbol()[..1], rows.collect::<Vec<_>>().join("·"));
        }
        for gone in &told.expired {
            lines[gone.at] += &format!(" expired {}{}", char::from(b'a' + gone.input as u8), gone.row);
        }
        lines.iter().map(|line| line.trim().to_string()).collect()
    }

    #[test]
    fn padding_goes_with_the_first_partner_and_returns_with_the_last() {
        assert_eq!(
            play("!?", &[0, 0], "a1 b1 b2 -b1 -b2 -a1"),
            ["+1·-", "-1·- +1·1", "+1·2", "-1·1", "-1·2 +1·-", "-1·-"]
        );
    }

    #[test]
    fn the_order_of_arrival_does_not_matter_to_what_stands_in_the_end() {
        assert_eq!(play("!??", &[0; 3], "c1 b1 a1"), ["", "", "+1·1·1"]);
        assert_eq!(play("!??", &[0; 3], "a1 b1 c1"), ["+1·-·-", "-1·-·- +1·1·-", "-1·1·- +1·1·1"]);
    }

    #[test]
    fn an_expired_row_leaves_in_silence_and_a_second_one_takes_nothing_back() {
        assert_eq!(play("!?", &[0, 10], "a1 b1 @9 @10 b2"), ["+1·-", "-1·- +1·1", "", "", "+1·2"]);
        // The padding of a2 stands, that of a1 does not.
        assert_eq!(play("!?", &[0, 10], "a1 b1 @10 a2 b2"), ["+1·-", "-1·- +1·1", "", "+2·-", "-2·- +1·2 +2·2"]);
    }

    #[test]
    fn a_row_that_is_written_again_lives_as_long_again() {
        assert_eq!(play("!!", &[10, 0], "a1 @9 =a1 @10 b1 @19 b2"), ["", "", "", "", "+1·1", "", ""]);
    }

    #[test]
    fn what_was_said_with_an_expired_row_stands_for_ever() {
        // b1 has left when c1 comes: 1·1·- cannot be taken back, and -b1 comes too late.
        assert_eq!(
            play("!??", &[0, 10, 0], "a1 b1 @10 c1 -b1 -a1"),
            ["+1·-·-", "-1·-·- +1·1·-", "", "+1·-·1", "", "-1·-·1"]
        );
        // The padding of an expired row is not taken back either.
        assert_eq!(play("!?", &[10, 0], "a1 @10 b1"), ["+1·-", "expired a1", ""]);
    }

    #[test]
    fn rows_that_never_met_another_are_told_when_they_expire() {
        assert_eq!(play("!!?", &[10, 10, 10], "a1 c1 @5 b1 a2 @10 @15"), ["", "", "", "+1·1·1", "+2·1·1", "", ""]);
        assert_eq!(play("!!?", &[10; 3], "a1 c1 @10"), ["", "", "expired a1 expired c1"]);
        assert_eq!(play("??", &[10, 0], "a1 @10"), ["+1·-", "expired a1"]);
    }

    #[test]
    fn null_keys_are_padded_alone_and_never_meet() {
        assert_eq!(play("??", &[0, 0], "a1? b1? -a1 -b1"), ["+1·-", "+-·1", "-1·-", "--·1"]);
        assert_eq!(play("!?", &[10, 10], "b1? a1? @10"), ["", "+1·-", ""]);
    }

    // A history over three inputs and two keys; every row that leaves was there once.
    fn history() -> impl Strategy<Value = Vec<Event<u8>>> {
        let step = (0..3usize, prop::option::weighted(0.9, 0..2u8), 0..10u8, 0..30usize);
        prop::collection::vec(step, 0..30).prop_map(|steps| {
            let mut events: Vec<Event<u8>> = Vec::new();
            for (now, (input, key, dice, row)) in steps.into_iter().enumerate() {
                events.push(match dice {
                    0..=5 => Event::Arrive { input, key, row: now, written: now as i64 },
                    6..=7 => Event::Leave { input, row },
                    _ => Event::Clock(now as i64),
                });
            }
            events
        })
    }

    proptest! {
        #[test]
        fn what_is_said_is_legal_and_stands_in_the_end(
            history in history(),
            optional in prop::array::uniform3(any::<bool>()),
            ttl in prop::array::uniform3(prop::option::of(1..10i64)),
        ) {
            let join = ExpiringJoin { optional: optional.to_vec(), ttl: ttl.iter().map(|t| t.map(millis)).collect() };
            let told = join.expect(&history);
            let mut checker = ChangelogChecker::new();
            for said in &told.said {
                checker.apply(said.kind, said.combination.clone()).unwrap();
            }
            prop_assert_eq!(checker.table(), told.standing);
        }

        #[test]
        fn without_expiry_the_rows_that_live_make_what_stands(
            history in history(), optional in prop::array::uniform3(any::<bool>()),
        ) {
            let join = ExpiringJoin { optional: optional.to_vec(), ttl: vec![None; 3] };
            let told = join.expect(&history);
            let key_of = |input: usize, id: usize| {
                let find = |event: &Event<u8>| match event {
                    Event::Arrive { input: i, key, row, .. } if (*i, *row) == (input, id) => Some(*key),
                    _ => None,
                };
                history.iter().find_map(find).unwrap()
            };
            let keys: Vec<Vec<Option<u8>>> = told.live.iter().enumerate()
                .map(|(input, rows)| rows.iter().map(|&row| key_of(input, row)).collect()).collect();
            let numbered = |combination: Combination| {
                combination.iter().enumerate().map(|(input, row)| row.map(|row| told.live[input][row])).collect()
            };
            let mut defined: Vec<Combination> = regular(&keys, &optional).into_iter().map(numbered).collect();
            defined.sort();
            prop_assert_eq!(defined, told.standing);
        }
    }
}
