//! Which of the things that no key names have changed since they were last sealed: rows of a window, sessions.
//!
//! In a store each goes by a number that runs on and is never given twice within a key group. Where it stands in memory
//! says nothing there: another place is free for it once it is taken back. What comes and goes between two seals leaves
//! nothing behind: it was never sealed, so nothing has to be deleted.

use super::{Sealed, Sealing};
use crate::error::OpError;
use crate::key::KeyGroup;

/// The numbers and the changes of things, by the places where they stand: in one of so many lists, at an index.
#[derive(Debug)]
pub struct Numbered<const LISTS: usize> {
    next: u64,
    things: [Vec<Thing>; LISTS],
    changed: Vec<(u8, u32)>,
    // Those that were sealed and are there no more.
    gone: Vec<(KeyGroup, u64)>,
}

/// The number of a list, and an index there.
pub type At = (usize, usize);

#[derive(Clone, Copy, Debug, Default)]
struct Thing {
    number: u64,
    has_changed: bool,
    is_sealed: bool,
}

impl<const LISTS: usize> Default for Numbered<LISTS> {
    fn default() -> Self {
        let things = std::array::from_fn(|_| Vec::new());
        Numbered { next: 0, things, changed: Vec::new(), gone: Vec::new() }
    }
}

impl<const LISTS: usize> Numbered<LISTS> {
    #[inline]
    fn thing(&mut self, (list, index): At) -> &mut Thing {
        let things = &mut self.things[list];
        if index >= things.len() {
            things.resize((index + 1).next_power_of_two(), Thing::default());
        }
        &mut things[index]
    }

    /// A thing has come to a place: it is written whole, whatever was told of that place before.
    #[inline]
    pub fn on_come(&mut self, at: At) {
        let number = self.next;
        self.next += 1;
        *self.thing(at) = Thing { number, has_changed: true, is_sealed: false };
        self.changed.push((at.0 as u8, at.1 as u32));
    }

    /// The thing at a place may have changed.
    #[inline]
    pub fn on_change(&mut self, at: At) {
        let thing = self.thing(at);
        if !std::mem::replace(&mut thing.has_changed, true) {
            self.changed.push((at.0 as u8, at.1 as u32));
        }
    }

    /// The thing at a place has gone, whose key is of this group.
    #[inline]
    pub fn on_gone(&mut self, at: At, group: KeyGroup) {
        let thing = std::mem::take(self.thing(at));
        if thing.is_sealed {
            self.gone.push((group, thing.number));
        }
    }

    /// A thing that was sealed under this number stands at a place again.
    pub fn on_back(&mut self, at: At, number: u64) {
        *self.thing(at) = Thing { number, has_changed: false, is_sealed: true };
        self.next = self.next.max(number + 1);
    }

    /// Tells, of a part of a state, which things have gone since the last time, and the bytes of each that has changed, as
    /// the function writes them, which says too of which key group it is.
    ///
    /// # Errors
    /// If the function cannot.
    pub fn seal(
        &mut self,
        part: u8,
        into: &mut Sealing<'_>,
        mut write: impl FnMut(At, &mut Vec<u8>) -> Result<KeyGroup, OpError>,
    ) -> Result<(), OpError> {
        for (group, number) in self.gone.drain(..) {
            into.delete(group, part, &number.to_be_bytes());
        }
        let mut value = Vec::new();
        for (list, index) in std::mem::take(&mut self.changed) {
            let at = (usize::from(list), index as usize);
            let thing = self.thing(at);
            // What has gone is noted still, and once more if another thing has come to its place.
            if !std::mem::take(&mut thing.has_changed) {
                continue;
            }
            thing.is_sealed = true;
            let number = thing.number;
            value.clear();
            let group = write(at, &mut value)?;
            into.put(group, part, &number.to_be_bytes(), &value);
        }
        Ok(())
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let gone = self.gone.capacity() * size_of::<(KeyGroup, u64)>();
        let things: usize = self.things.iter().map(Vec::capacity).sum();
        (things * size_of::<Thing>() + self.changed.capacity() * size_of::<(u8, u32)>() + gone) as u64
    }
}

/// The number under which a thing that was sealed is given back.
///
/// # Errors
/// If it has none.
pub fn number_of(sealed: &Sealed<'_>) -> Result<u64, OpError> {
    let number = <[u8; 8]>::try_from(sealed.key);
    number.map(u64::from_be_bytes).map_err(|_| OpError::unreadable("its state", &"a number has another length"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Changes;
    use crate::time::ProcTime;
    use std::collections::BTreeMap;

    fn sealed(things: &mut Numbered<2>, values: &[Option<u64>]) -> Changes {
        let mut changes = Changes::default();
        let write = |at: At, bytes: &mut Vec<u8>| {
            bytes.extend(values[place(at)].unwrap().to_be_bytes());
            Ok(group(place(at)))
        };
        things.seal(1, &mut Sealing::new(&mut changes, 0, 0, ProcTime::default()), write).unwrap();
        changes.sort();
        changes
    }

    fn at(place: usize) -> At {
        (place % 2, place / 2)
    }

    fn place((list, index): At) -> usize {
        index * 2 + list
    }

    fn group(place: usize) -> KeyGroup {
        KeyGroup::numbered(place % 3)
    }

    // What is sealed, put into a map, is what there is; of what came and went in between nothing is told.
    #[test]
    fn what_is_sealed_is_the_net_change() {
        let (mut things, mut kept, mut seed) = (Numbered::<2>::default(), BTreeMap::new(), 1u64);
        let mut values: Vec<Option<u64>> = vec![None; 40];
        for step in 0..20_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (seed >> 33) as usize % values.len();
            match (values[place], (seed >> 20) % 3) {
                (Some(_), 0) => {
                    things.on_gone(at(place), group(place));
                    values[place] = None;
                }
                (Some(_), _) => {
                    things.on_change(at(place));
                    values[place] = Some(step);
                }
                (None, _) => {
                    things.on_come(at(place));
                    values[place] = Some(step);
                }
            }
            if step % 25 == 7 {
                for (key, value) in sealed(&mut things, &values).iter() {
                    match value {
                        Some(value) => drop(kept.insert(key.to_vec(), value.to_vec())),
                        None => assert!(kept.remove(key).is_some(), "only what was sealed is deleted"),
                    }
                }
                let mut held: Vec<Vec<u8>> =
                    values.iter().flatten().map(|value| value.to_be_bytes().to_vec()).collect();
                let mut found: Vec<Vec<u8>> = kept.values().cloned().collect();
                held.sort();
                found.sort();
                assert!(held == found, "after {step} steps");
                assert!(sealed(&mut things, &values).is_empty());
            }
        }
    }

    #[test]
    fn numbers_go_on_behind_those_that_were_taken_back() {
        let mut things = Numbered::<2>::default();
        things.on_back(at(3), 7);
        things.on_back(at(1), 2);
        assert!(sealed(&mut things, &[]).is_empty());
        things.on_come(at(0));
        things.on_gone(at(3), group(3));
        let changes = sealed(&mut things, &[Some(9)]);
        let told: Vec<_> =
            changes.iter().map(|(key, value)| (Sealed::of(key, &[]).unwrap(), value.is_some())).collect();
        let numbers: Vec<_> = told.iter().map(|(sealed, put)| (number_of(sealed).unwrap(), *put)).collect();
        assert_eq!(numbers, [(7, false), (8, true)]);
        assert!(number_of(&Sealed { key: b"no", ..told[0].0 }).is_err());
    }
}
