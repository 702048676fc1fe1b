//! What a store of state promises, for any store: it says what a map would say that saw the same commits.
//!
//! A store is opened anew after each commit, or in histories by chance; all that it says is compared each time.

use std::collections::BTreeMap;

use flowjoin::state::{Changes, Epoch, StateStore};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

/// Where stores of one kind are kept; each value is a new place.
pub trait Place: Default {
    type Store: StateStore;

    /// The store of this place.
    fn open(&self) -> Self::Store;

    /// The same after its process has ended.
    fn reopen(&self, store: Self::Store) -> Self::Store;
}

/// The tests of the suite, for stores of a place.
macro_rules! conforms {
    ($place:ty) => {
        crate::suite::conforms! { $place:
            a_new_store_is_empty
            what_is_committed_is_there_when_it_is_opened_anew
            the_last_word_on_a_key_counts
            an_epoch_without_changes_counts
            epochs_may_be_left_out_but_do_not_go_back
            keys_may_be_empty_and_begin_with_each_other
            values_may_be_empty_and_large
            a_scan_gives_the_keys_that_begin_so_and_no_others
            many_keys_in_many_epochs_are_found_in_order
            any_history_leaves_what_a_map_would_hold
        }
    };
    ($place:ty: $($test:ident)*) => {
        $(#[test]
        fn $test() {
            crate::suite::$test::<$place>();
        })*
    };
}
pub(crate) use conforms;

type Values = BTreeMap<Vec<u8>, Vec<u8>>;
type Word<'a> = (&'a [u8], Option<&'a [u8]>);

/// A store, and what it must say.
struct Checked<P: Place> {
    place: P,
    // None only while it is opened anew.
    store: Option<P::Store>,
    values: Values,
    epoch: Option<Epoch>,
    record: Vec<u8>,
}

impl<P: Place> Checked<P> {
    fn new() -> Checked<P> {
        let place = P::default();
        let store = Some(place.open());
        Checked { place, store, values: Values::new(), epoch: None, record: Vec::new() }
    }

    fn store(&mut self) -> &mut P::Store {
        self.store.as_mut().unwrap()
    }

    fn commit(&mut self, epoch: u64, words: &[Word<'_>], record: &[u8]) {
        let mut changes = Changes::default();
        for (key, value) in words {
            match value {
                Some(value) => {
                    changes.put(key, value);
                    self.values.insert(key.to_vec(), value.to_vec());
                }
                None => {
                    changes.delete(key);
                    self.values.remove(*key);
                }
            }
        }
        changes.sort();
        self.store().commit(Epoch(epoch), &changes, record).unwrap();
        (self.epoch, self.record) = (Some(Epoch(epoch)), record.to_vec());
    }

    fn reopen(&mut self) {
        let store = self.store.take().unwrap();
        self.store = Some(self.place.reopen(store));
    }

    fn scan(&mut self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        self.store().scan(prefix, &mut |key, value| found.push((key.to_vec(), value.to_vec()))).unwrap();
        found
    }

    #[track_caller]
    fn check_scan(&mut self, prefix: &[u8]) {
        let expected: Vec<_> = self.values.clone().into_iter().filter(|(key, _)| key.starts_with(prefix)).collect();
        // Values may be large: what differs is told by its key.
        let found = self.scan(prefix);
        let keys = |entries: &[(Vec<u8>, Vec<u8>)]| entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&found), keys(&expected), "keys that begin with {prefix:?}");
        let other = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert!(other.is_none(), "another value at {:?}", other.map(|(found, _)| &found.0));
    }

    #[track_caller]
    fn check(&mut self) {
        assert_eq!(self.store().epoch(), self.epoch);
        assert_eq!(self.store.as_ref().unwrap().record(), self.record);
        self.check_scan(b"");
    }

    #[track_caller]
    fn check_get(&mut self, key: &[u8]) {
        let found = self.store().get(key).unwrap();
        assert!(found.as_ref() == self.values.get(key), "another value at {key:?}");
    }

    #[track_caller]
    fn check_now_and_anew(&mut self) {
        self.check();
        self.reopen();
        self.check();
    }
}

pub fn a_new_store_is_empty<P: Place>() {
    let mut store = Checked::<P>::new();
    store.check_now_and_anew();
    store.check_get(b"");
    store.check_get(b"key");
    assert_eq!(store.store().stats().keys, 0);
}

pub fn what_is_committed_is_there_when_it_is_opened_anew<P: Place>() {
    let mut store = Checked::<P>::new();
    store.commit(1, &[(b"b", Some(b"2")), (b"a", Some(b"1"))], b"first");
    store.check_now_and_anew();
    assert_eq!(store.store().stats().keys, 2);
    store.commit(2, &[(b"c", Some(b"3"))], b"");
    store.check_now_and_anew();
    store.commit(3, &[(b"a", Some(b"4"))], b"third");
    store.check_now_and_anew();
    [&b"a"[..], b"b", b"c", b"d", b"aa", b""].into_iter().for_each(|key| store.check_get(key));
}

pub fn the_last_word_on_a_key_counts<P: Place>() {
    let mut store = Checked::<P>::new();
    store.commit(1, &[(b"k", Some(b"1")), (b"k", None), (b"l", None), (b"l", Some(b"2"))], b"");
    store.check_now_and_anew();
    store.commit(2, &[(b"l", None), (b"never", None)], b"");
    store.check_now_and_anew();
    store.check_get(b"l");
    store.commit(3, &[(b"l", Some(b"3"))], b"");
    store.check_now_and_anew();
    store.check_get(b"l");
    store.check_get(b"never");
}

pub fn an_epoch_without_changes_counts<P: Place>() {
    let mut store = Checked::<P>::new();
    store.commit(1, &[], b"nothing yet");
    store.check_now_and_anew();
    store.commit(2, &[(b"k", Some(b"1"))], b"something");
    for epoch in 3..40 {
        store.commit(epoch, &[], format!("still {epoch}").as_bytes());
        store.check_now_and_anew();
    }
    for epoch in 40..100 {
        store.commit(epoch, &[], b"");
    }
    store.check_now_and_anew();
}

pub fn epochs_may_be_left_out_but_do_not_go_back<P: Place>() {
    let mut store = Checked::<P>::new();
    store.commit(0, &[(b"k", Some(b"0"))], b"zero");
    store.check_now_and_anew();
    store.commit(7, &[(b"k", Some(b"7"))], b"seven");
    let mut changes = Changes::default();
    changes.put(b"k", b"other");
    changes.sort();
    for (last, epoch) in [(7, 7), (7, 6), (7, 0), (7, 7)] {
        let error = store.store().commit(Epoch(epoch), &changes, b"other").unwrap_err().to_string();
        assert_eq!(error, format!("epoch {epoch} cannot be committed after epoch {last}; please report this"));
        store.check_now_and_anew();
    }
    store.commit(u64::MAX, &[], b"last");
    store.check_now_and_anew();
    assert!(store.store().commit(Epoch(0), &changes, b"other").is_err());
}

pub fn keys_may_be_empty_and_begin_with_each_other<P: Place>() {
    let keys: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\xff", b"ab", b"\xff", b"\xff\xff"];
    let mut store = Checked::<P>::new();
    for (epoch, key) in (1..).zip(keys) {
        store.commit(epoch, &[(key, Some(key))], b"");
        store.check_now_and_anew();
    }
    store.commit(10, &keys.map(|key| (key, Some(&b"again"[..]))), b"");
    for (epoch, key) in (11..).zip(keys) {
        keys.iter().for_each(|key| store.check_get(key));
        keys.iter().for_each(|key| store.check_scan(key));
        store.commit(epoch, &[(key, None)], b"");
        store.check_now_and_anew();
    }
}

pub fn values_may_be_empty_and_large<P: Place>() {
    // No two stretches of it are the same.
    let large: Vec<u8> =
        (0..1_000_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let mut store = Checked::<P>::new();
    store.commit(
        1,
        &[(b"a", Some(b"")), (b"b", Some(&large)), (b"c", Some(b"c")), (&large[..99_999], Some(b"d"))],
        b"",
    );
    store.check_now_and_anew();
    for key in [b"a", b"b", b"c", &large[..99_999], &large[..99_998]] {
        store.check_get(key);
        store.check_scan(key);
    }
    store.commit(2, &[(b"b", Some(b"")), (b"a", Some(&large[1..])), (b"c", Some(&large[2..]))], &large);
    store.check_now_and_anew();
    store.commit(3, &[(b"b", None), (b"c", Some(b""))], b"");
    store.check_now_and_anew();
}

pub fn a_scan_gives_the_keys_that_begin_so_and_no_others<P: Place>() {
    let mut store = Checked::<P>::new();
    for epoch in 1..=3_u64 {
        let keys: Vec<[u8; 4]> = (0..30_000_u32).map(|number| (number * 3 + epoch as u32).to_be_bytes()).collect();
        let value = epoch.to_be_bytes();
        let words: Vec<Word<'_>> = keys.iter().map(|key| (&key[..], Some(&value[..]))).collect();
        store.commit(epoch, &words, b"");
    }
    store.reopen();
    for prefix in
        [&[][..], &[0], &[1], &[0, 0], &[0, 1], &[0, 1, 95], &[0, 1, 96], &[0, 0, 255], &[255], &[0, 0, 0, 1, 0]]
    {
        store.check_scan(prefix);
    }
}

pub fn many_keys_in_many_epochs_are_found_in_order<P: Place>() {
    let mut store = Checked::<P>::new();
    // Each epoch writes a part of the keys again and takes some away, enough for large merges.
    for epoch in 1..=30_u64 {
        let keys: Vec<[u8; 8]> = (0..5_000).map(|number: u64| (number * epoch % 20_011).to_be_bytes()).collect();
        let value = [epoch as u8; 30];
        let word = |(at, key): (usize, &[u8; 8])| (*key, (at % 5 > 0).then_some(value));
        let words: Vec<([u8; 8], Option<[u8; 30]>)> = keys.iter().enumerate().map(word).collect();
        let words: Vec<Word<'_>> =
            words.iter().map(|(key, value)| (&key[..], value.as_ref().map(|value| &value[..]))).collect();
        store.commit(epoch, &words, b"");
        if epoch % 7 == 0 {
            store.check_now_and_anew();
        }
    }
    store.check_now_and_anew();
    (0..20_011_u64).step_by(997).for_each(|key| store.check_get(&key.to_be_bytes()));
}

/// A commit of a history: words on keys, how many epochs later, a record, and whether the store is opened anew.
#[derive(Clone, Debug)]
struct Commit {
    words: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    later: u64,
    record: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    GoOn,
    Reopen,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few letters, so that keys come again and begin with each other.
    vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..4)
}

fn commit() -> impl Strategy<Value = Commit> {
    let value = prop_oneof![1 => Just(None), 3 => vec(any::<u8>(), 0..40).prop_map(Some)];
    let then = prop_oneof![Just(Then::GoOn), Just(Then::Reopen)];
    let parts = (vec((key(), value), 0..12), 1_u64..3, vec(any::<u8>(), 0..5), then);
    parts.prop_map(|(words, later, record, then)| Commit { words, later, record, then })
}

pub fn any_history_leaves_what_a_map_would_hold<P: Place>() {
    let asked = std::env::var("FLOWJOIN_CASES").ok().and_then(|cases| cases.parse().ok());
    let seeds = FileFailurePersistence::Direct("tests/seeds/stores.txt");
    let config = Config { cases: asked.unwrap_or(25), failure_persistence: Some(Box::new(seeds)), ..Config::default() };
    let histories = (vec(commit(), 0..25), vec(key(), 1..6));
    let result = TestRunner::new(config).run(&histories, |(history, keys)| {
        let mut store = Checked::<P>::new();
        let mut epoch = 0;
        for Commit { words, later, record, then } in &history {
            epoch += later;
            let words: Vec<Word<'_>> = words.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
            store.commit(epoch, &words, record);
            store.check();
            if let Then::Reopen = then {
                store.reopen();
                store.check();
            }
            keys.iter().for_each(|key| store.check_get(key));
            keys.iter().for_each(|key| store.check_scan(key));
        }
        store.check_now_and_anew();
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
