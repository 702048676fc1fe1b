//! Keys: what rows are joined on.
//!
//! A key has an order-preserving byte form (a prefix scan is a range scan) and a stable 64-bit hash over those
//! bytes (XXH3-64, frozen). The hash gives the key group, the key group gives the task. `None` is a null: it
//! matches nothing, not even another `None`, also inside a tuple.

use std::fmt::Debug;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::time::EventTime;

/// A value that rows can be keyed by.
///
/// Implemented for integers, `bool`, `char`, `String`, `Vec<u8>`, [`EventTime`], [`FloatKey`], `Option` of a key and
/// tuples of up to six keys. For a type of your own, write `encode` and `decode` by those of its fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a key",
    note = "keys are integers of a fixed size (not `usize`), `bool`, `char`, `String`, `Vec<u8>`, `EventTime`, `Option`s and tuples of these; a float only as `FloatKey`"
)]
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// Appends the bytes of the key; their order is the order of the keys, and no key's bytes begin another's.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a key from the front of `bytes` and moves past it.
    ///
    /// # Errors
    /// If the bytes are not those of a key.
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError>;

    /// Whether the key, or a part of it, is null: such a key matches nothing.
    fn is_null(&self) -> bool {
        false
    }

    /// Whether a key of this type can be null: `true` wherever [`is_null`](Key::is_null) can be.
    fn may_be_null() -> bool {
        false
    }

    /// The stable hash of the key; `scratch` is room to encode in.
    #[inline]
    fn stable_hash(&self, scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        self.encode(scratch);
        twox_hash::XxHash3_64::oneshot(scratch)
    }
}

/// Bytes that are not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not a key of type {expected}")]
pub struct KeyError {
    expected: &'static str,
}

fn wrong<K>() -> KeyError {
    KeyError { expected: std::any::type_name::<K>() }
}

fn take<'a, K>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], KeyError> {
    match bytes.split_at_checked(count) {
        Some((head, tail)) => {
            *bytes = tail;
            Ok(head)
        }
        None => Err(wrong::<K>()),
    }
}

/// The unit in which state is sharded, moved and expired: a slice of the hash space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyGroup(u16);

/// How many key groups a flow has; stored in every savepoint, so it never changes.
pub const KEY_GROUPS: u16 = 128;

impl KeyGroup {
    /// The group of a hash: its top bits.
    #[inline]
    pub fn of(hash: u64) -> KeyGroup {
        KeyGroup((hash >> 57) as u16)
    }

    /// The group of this number, which is less than [`KEY_GROUPS`].
    pub fn numbered(index: usize) -> KeyGroup {
        debug_assert!(index < usize::from(KEY_GROUPS), "there is no such group");
        KeyGroup(index as u16)
    }

    /// Its number, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The task, of `tasks`, that owns this group: contiguous ranges of almost equal size.
    #[inline]
    pub fn task(self, tasks: usize) -> usize {
        self.index() * tasks / usize::from(KEY_GROUPS)
    }
}

macro_rules! integer_keys {
    ($($int:ty as $unsigned:ty),*) => {$(
        impl Key for $int {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                // Flipping the sign bit puts negative numbers first.
                let flipped = (*self as $unsigned) ^ (<$int>::MIN as $unsigned);
                out.extend_from_slice(&flipped.to_be_bytes());
            }
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                let head = take::<Self>(bytes, size_of::<$int>())?;
                let raw = <$unsigned>::from_be_bytes(head.try_into().map_err(|_| wrong::<Self>())?);
                Ok((raw ^ (<$int>::MIN as $unsigned)) as $int)
            }
            #[inline]
            fn stable_hash(&self, _: &mut Vec<u8>) -> u64 {
                let flipped = (*self as $unsigned) ^ (<$int>::MIN as $unsigned);
                twox_hash::XxHash3_64::oneshot(&flipped.to_be_bytes())
            }
        }
    )*};
}
integer_keys!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, i128 as u128);
integer_keys!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, u128 as u128);

impl Key for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match u8::decode(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(wrong::<Self>()),
        }
    }
}

impl Key for char {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        char::from_u32(u32::decode(bytes)?).ok_or_else(wrong::<Self>)
    }
}

impl Key for EventTime {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_millis().encode(out);
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        i64::decode(bytes).map(EventTime::from_millis)
    }
}

impl Key for () {
    fn encode(&self, _: &mut Vec<u8>) {}
    fn decode(_: &mut &[u8]) -> Result<Self, KeyError> {
        Ok(())
    }
}

// A zero byte inside is written as 00 FF, and 00 00 ends the text: a prefix sorts before what it begins.
fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn decode_bytes<K>(bytes: &mut &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut text = Vec::new();
    loop {
        match take::<K>(bytes, 1)?[0] {
            0 => match take::<K>(bytes, 1)?[0] {
                0 => return Ok(text),
                0xFF => text.push(0),
                _ => return Err(wrong::<K>()),
            },
            byte => text.push(byte),
        }
    }
}

impl Key for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self, out);
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        decode_bytes::<Self>(bytes)
    }
}

impl Key for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), out);
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        String::from_utf8(decode_bytes::<Self>(bytes)?).map_err(|_| wrong::<Self>())
    }
}

impl<K: Key> Key for Option<K> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(key) => {
                out.push(1);
                key.encode(out);
            }
        }
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match u8::decode(bytes)? {
            0 => Ok(None),
            1 => K::decode(bytes).map(Some),
            _ => Err(wrong::<Self>()),
        }
    }
    fn is_null(&self) -> bool {
        self.as_ref().is_none_or(Key::is_null)
    }
    fn may_be_null() -> bool {
        true
    }
}

/// A key whose nulls are equal to each other and match: `IS NOT DISTINCT FROM` in SQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NullSafe<K>(pub K);

impl<K: Key> Key for NullSafe<K> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        K::decode(bytes).map(NullSafe)
    }
    fn stable_hash(&self, scratch: &mut Vec<u8>) -> u64 {
        self.0.stable_hash(scratch)
    }
}

macro_rules! tuple_keys {
    ($($name:ident),*) => {
        impl<$($name: Key),*> Key for ($($name,)*) {
            #[expect(non_snake_case, reason = "the values are named after their types")]
            fn encode(&self, out: &mut Vec<u8>) {
                let ($($name,)*) = self;
                $($name.encode(out);)*
            }
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                Ok(($($name::decode(bytes)?,)*))
            }
            #[expect(non_snake_case, reason = "the values are named after their types")]
            fn is_null(&self) -> bool {
                let ($($name,)*) = self;
                $($name.is_null())||*
            }
            fn may_be_null() -> bool {
                $($name::may_be_null())||*
            }
        }
    };
}
tuple_keys!(A);
tuple_keys!(A, B);
tuple_keys!(A, B, C);
tuple_keys!(A, B, C, D);
tuple_keys!(A, B, C, D, E);
tuple_keys!(A, B, C, D, E, F);

/// A float as a key: one NaN, which equals itself and comes last, and no negative zero.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(from = "f64")]
pub struct FloatKey(f64);

impl FloatKey {
    /// The key of a number: -0.0 becomes 0.0, every NaN the same NaN.
    pub fn new(value: f64) -> FloatKey {
        FloatKey(if value.is_nan() { f64::NAN } else { value + 0.0 })
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl From<f64> for FloatKey {
    fn from(value: f64) -> FloatKey {
        FloatKey::new(value)
    }
}

impl PartialEq for FloatKey {
    fn eq(&self, other: &FloatKey) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for FloatKey {}
impl PartialOrd for FloatKey {
    fn partial_cmp(&self, other: &FloatKey) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for FloatKey {
    fn cmp(&self, other: &FloatKey) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
impl Hash for FloatKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Key for FloatKey {
    fn encode(&self, out: &mut Vec<u8>) {
        let bits = self.0.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        ordered.encode(out);
    }
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        let ordered = u64::decode(bytes)?;
        let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
        Ok(FloatKey::new(f64::from_bits(bits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes<K: Key>(key: &K) -> Vec<u8> {
        let mut out = Vec::new();
        key.encode(&mut out);
        out
    }

    fn holds<K: Key>(a: &K, b: &K) {
        assert_eq!(bytes(a).cmp(&bytes(b)), a.cmp(b), "{a:?} {b:?}");
        let encoded = bytes(a);
        let mut rest = &encoded[..];
        assert_eq!(&K::decode(&mut rest).unwrap(), a);
        assert!(rest.is_empty());
        assert_eq!(a.stable_hash(&mut Vec::new()), twox_hash::XxHash3_64::oneshot(&encoded));
    }

    proptest! {
        #[test]
        fn bytes_keep_the_order_and_come_back(
            a in any::<(i64, String, Option<u8>)>(), b in any::<(i64, String, Option<u8>)>(),
            v in any::<Vec<u8>>(), w in any::<Vec<u8>>(), x in any::<f64>(), y in any::<f64>(), m in any::<i8>(), n in any::<i8>(),
        ) {
            holds(&a, &b);
            holds(&v, &w);
            holds(&FloatKey::new(x), &FloatKey::new(y));
            holds(&m, &n);
            holds(&(v, m), &(w, n));
        }
    }

    #[test]
    fn the_hash_and_the_bytes_are_frozen() {
        assert_eq!(bytes(&42u64), [0, 0, 0, 0, 0, 0, 0, 42]);
        assert_eq!(bytes(&-1i32), [0x7F, 0xFF, 0xFF, 0xFF]);
        assert_eq!(bytes(&("a\0b".to_string(), Some(true))), [b'a', 0, 0xFF, b'b', 0, 0, 1, 1]);
        assert_eq!(42u64.stable_hash(&mut Vec::new()), GOLDEN_42);
        assert_eq!("order".to_string().stable_hash(&mut Vec::new()), GOLDEN_ORDER);
    }
    // From the reference implementation of XXH3-64 (xxhash 0.8), seed 0, over the bytes above.
    const GOLDEN_42: u64 = 0x2e4f_e982_b689_10ac;
    const GOLDEN_ORDER: u64 = 0x1062_21bc_39a6_a9b9;

    #[test]
    fn a_null_anywhere_makes_the_key_null() {
        assert!(None::<u8>.is_null());
        assert!((1u8, None::<String>).is_null());
        assert!(!(1u8, Some(2u8)).is_null());
        assert!(<(u8, Option<u8>)>::may_be_null() && !<(u8, String)>::may_be_null());
        assert!(!NullSafe::<Option<u8>>::may_be_null());
    }

    #[test]
    fn groups_spread_over_tasks_without_gaps() {
        for tasks in [1, 2, 3, 7, 128] {
            let owners: Vec<_> = (0..KEY_GROUPS).map(|g| KeyGroup(g).task(tasks)).collect();
            assert!(owners.is_sorted() && owners[0] == 0 && owners[127] == tasks - 1);
        }
    }

    #[test]
    fn floats_have_one_nan_and_one_zero() {
        assert_eq!(FloatKey::new(-0.0), FloatKey::new(0.0));
        assert_eq!(FloatKey::new(f64::NAN), FloatKey::new(-f64::NAN));
    }
}
