//! Look-ups of many keys, each begun while those before it are at work.

use super::table::{Guess, Table};
use crate::key::Key;

/// What is known of the next keys of a run: first the place of a key in the index is asked for, then the entry that it
/// names, so that both are near when the key's turn comes.
#[derive(Debug, Default)]
pub struct Ahead {
    guesses: [Guess; ENTRY],
    turn: usize,
}

impl Ahead {
    /// Begins a run over a table; `hash` tells that of the row so many places after the first, if there is one.
    #[inline]
    pub fn begin<K: Key, E: Default, S: Default>(table: &Table<K, E, S>, hash: impl Fn(usize) -> Option<u64>) -> Ahead {
        (0..INDEX).map_while(&hash).for_each(|hash| table.prefetch(hash));
        let guess = |at: usize| hash(at).map_or(Guess::default(), |hash| table.prefetch_entry(hash));
        Ahead { guesses: std::array::from_fn(guess), turn: 0 }
    }

    /// The guess for the row whose turn it is; `hash` tells that of the row so many places after it, if there is one.
    #[inline]
    pub fn next<K: Key, E: Default, S: Default>(
        &mut self,
        table: &Table<K, E, S>,
        hash: impl Fn(usize) -> Option<u64>,
    ) -> Guess {
        if let Some(hash) = hash(INDEX) {
            table.prefetch(hash);
        }
        let later = hash(ENTRY).map_or(Guess::default(), |hash| table.prefetch_entry(hash));
        let guess = std::mem::replace(&mut self.guesses[self.turn], later);
        self.turn = (self.turn + 1) % ENTRY;
        guess
    }
}

/// Rows ahead of which the place in the index is asked for.
const INDEX: usize = 2 * ENTRY;

/// Rows ahead of which the entry is; a power of two.
const ENTRY: usize = 16;
