//! What has changed in an epoch, as keys and values in bytes.

use std::ops::Range;

use crate::error::OpError;
use crate::key::{Key, KeyGroup};
use crate::time::ProcTime;

/// Puts and deletes, in the order of their keys once they are sorted, each key once: the last word on it counts.
///
/// The bytes stand one behind the other, so that a change costs no allocation of its own.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    sorted: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Range<usize>,
    // Where the value ends that begins behind the key; none for a delete.
    value_end: Option<usize>,
}

impl Changes {
    /// A key has this value now.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let key = self.append(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry { key, value_end: Some(self.bytes.len()) });
        self.sorted = false;
    }

    /// A key has no value any more.
    pub fn delete(&mut self, key: &[u8]) {
        let key = self.append(key);
        self.entries.push(Entry { key, value_end: None });
        self.sorted = false;
    }

    fn append(&mut self, key: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        begin..self.bytes.len()
    }

    /// Takes in the changes of another one, which come after those here.
    pub fn append_all(&mut self, other: &Changes) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |entry: &Entry| Entry {
            key: entry.key.start + offset..entry.key.end + offset,
            value_end: entry.value_end.map(|end| end + offset),
        };
        self.entries.extend(other.entries.iter().map(moved));
        self.sorted = false;
    }

    /// Puts them in the order of their keys; of several for one key the last stays.
    pub fn sort(&mut self) {
        if std::mem::replace(&mut self.sorted, true) {
            return;
        }
        let bytes = &self.bytes;
        // A sort that keeps the order of equals leaves the last word last.
        self.entries.sort_by(|one, other| bytes[one.key.clone()].cmp(&bytes[other.key.clone()]));
        let mut kept: Vec<Entry> = Vec::with_capacity(self.entries.len());
        for entry in self.entries.drain(..) {
            match kept.last_mut() {
                Some(last) if bytes[last.key.clone()] == bytes[entry.key.clone()] => *last = entry,
                _ => kept.push(entry),
            }
        }
        self.entries = kept;
    }

    /// Each key with its value, or none where it was deleted; in the order of their keys if they are sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.entries.iter().map(|entry| {
            let value = entry.value_end.map(|end| &self.bytes[entry.key.end..end]);
            (&self.bytes[entry.key.clone()], value)
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

/// Where the changes of one step on one task go.
///
/// A key in the store begins with its key group, as a range of which is what moves when tasks become more or fewer; then
/// comes the step, then which part of its state it is. What belongs to a task and to no key stands behind all groups,
/// under the number of the task.
#[derive(Debug)]
pub struct Sealing<'a> {
    /// The processing time.
    pub now: ProcTime,
    changes: &'a mut Changes,
    step: u16,
    task: u16,
    key: Vec<u8>,
}

impl Sealing<'_> {
    /// The changes of a step on a task go there.
    pub fn new(changes: &mut Changes, step: u16, task: u16, now: ProcTime) -> Sealing<'_> {
        Sealing { now, changes, step, task, key: Vec::new() }
    }

    /// A key of this group has this value in a part of the state.
    pub fn put(&mut self, group: KeyGroup, part: u8, key: &[u8], value: &[u8]) {
        self.key_of(group.index() as u16, part, key);
        self.changes.put(&self.key, value);
    }

    /// A key of this group has no value there any more.
    pub fn delete(&mut self, group: KeyGroup, part: u8, key: &[u8]) {
        self.key_of(group.index() as u16, part, key);
        self.changes.delete(&self.key);
    }

    /// What belongs to the task has this value.
    pub fn put_own(&mut self, part: u8, key: &[u8], value: &[u8]) {
        self.key_of_own(part, key);
        self.changes.put(&self.key, value);
    }

    /// What belongs to the task has no value there any more.
    pub fn delete_own(&mut self, part: u8, key: &[u8]) {
        self.key_of_own(part, key);
        self.changes.delete(&self.key);
    }

    fn key_of(&mut self, group: u16, part: u8, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(&group.to_be_bytes());
        self.key.extend_from_slice(&self.step.to_be_bytes());
        self.key.push(part);
        self.key.extend_from_slice(key);
    }

    fn key_of_own(&mut self, part: u8, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(&OWN.to_be_bytes());
        self.key.extend_from_slice(&self.step.to_be_bytes());
        self.key.extend_from_slice(&self.task.to_be_bytes());
        self.key.push(part);
        self.key.extend_from_slice(key);
    }
}

/// What was sealed, as it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// Of which step it is.
    pub step: u16,
    /// Whose it is.
    pub owner: Owner,
    /// Which part of the state of the step.
    pub part: u8,
    /// The key there.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Whose a piece of state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// That of the task that has this group of keys, by its number.
    Group(u16),
    /// That of the task of this number.
    Task(u16),
}

impl<'a> Sealed<'a> {
    /// What a key and a value in the store are; none if the key is none that [`Sealing`] makes.
    pub fn of(key: &'a [u8], value: &'a [u8]) -> Option<Sealed<'a>> {
        let (group, rest) = number(key)?;
        let (step, rest) = number(rest)?;
        let (owner, rest) = match group {
            OWN => number(rest).map(|(task, rest)| (Owner::Task(task), rest))?,
            group => (Owner::Group(group), rest),
        };
        let (&part, key) = rest.split_first()?;
        Some(Sealed { step, owner, part, key, value })
    }

    /// The key there, of a part that goes by such keys.
    ///
    /// # Errors
    /// If it is none.
    pub fn key_as<K: Key>(&self) -> Result<K, OpError> {
        let mut bytes = self.key;
        K::decode(&mut bytes).map_err(|error| OpError::unreadable("a key", &error))
    }
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((u16::from_be_bytes(*head), rest))
}

// Behind all groups.
const OWN: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(changes: &Changes) -> Vec<(&[u8], Option<&[u8]>)> {
        changes.iter().collect()
    }

    #[test]
    fn of_several_changes_of_a_key_the_last_counts() {
        let (mut changes, mut later) = (Changes::default(), Changes::default());
        changes.put(b"b", b"1");
        changes.delete(b"a");
        changes.put(b"a", b"2");
        changes.put(b"c", b"");
        later.delete(b"b");
        later.put(b"", b"3");
        changes.append_all(&later);
        changes.sort();
        let expected: [(&[u8], Option<&[u8]>); 4] =
            [(b"", Some(b"3")), (b"a", Some(b"2")), (b"b", None), (b"c", Some(b""))];
        assert_eq!(told(&changes), expected);
        assert_eq!(changes.len(), 4);
    }

    #[test]
    fn what_is_sealed_is_known_again() {
        let mut changes = Changes::default();
        let mut sealing = Sealing::new(&mut changes, 7, 3, ProcTime::default());
        sealing.put(KeyGroup::of(u64::MAX), 2, b"key", b"value");
        sealing.put_own(255, b"", b"own");
        let sealed: Vec<_> = changes.iter().map(|(key, value)| Sealed::of(key, value.unwrap()).unwrap()).collect();
        let keyed = Sealed { step: 7, owner: Owner::Group(127), part: 2, key: b"key", value: b"value" };
        let own = Sealed { step: 7, owner: Owner::Task(3), part: 255, key: b"", value: b"own" };
        assert_eq!(sealed, [keyed, own]);
        assert_eq!(Sealed::of(&[0, 1, 0], b""), None);
    }
}
