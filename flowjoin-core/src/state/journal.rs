//! Which entries of a table have changed since they were last sealed.
//!
//! An entry that comes and goes between two seals leaves nothing behind: it was never sealed, so nothing has to be deleted.

use super::table::Place;
use crate::key::KeyGroup;

/// The changes of a table, by the numbers of its entries.
#[derive(Debug, Default)]
pub struct Journal<K> {
    // By entry: whether it has changed, and whether it was sealed before.
    marks: Vec<u8>,
    changed: Vec<Place>,
    // Keys that were sealed and have no entry any more, or have got another one since.
    gone: Vec<(KeyGroup, K)>,
}

const CHANGED: u8 = 1;
const SEALED: u8 = 2;

impl<K> Journal<K> {
    /// A journal of a table with these entries, all of which are sealed.
    pub fn of(places: &[Place]) -> Journal<K> {
        let mut journal = Journal { marks: Vec::new(), changed: Vec::new(), gone: Vec::new() };
        places.iter().for_each(|&place| *journal.mark(place) = SEALED);
        journal
    }

    #[inline]
    fn mark(&mut self, place: Place) -> &mut u8 {
        let number = place.number() as usize;
        if number >= self.marks.len() {
            self.marks.resize((number + 1).next_power_of_two(), 0);
        }
        &mut self.marks[number]
    }

    /// An entry may have changed.
    #[inline]
    pub fn on_change(&mut self, place: Place) {
        let mark = self.mark(place);
        if *mark & CHANGED == 0 {
            *mark |= CHANGED;
            self.changed.push(place);
        }
    }

    /// An entry has gone.
    pub fn on_gone(&mut self, place: Place, group: KeyGroup, key: impl FnOnce() -> K) {
        let mark = std::mem::take(self.mark(place));
        if mark & SEALED != 0 {
            self.gone.push((group, key()));
        }
    }

    /// What has to be deleted first, and then the places of the entries to be written, each once. All count as sealed from
    /// then on.
    pub fn take(&mut self) -> (Vec<(KeyGroup, K)>, Vec<Place>) {
        let mut changed = std::mem::take(&mut self.changed);
        // The place of an entry that has gone is noted still, in front of that of the entry which got its number since.
        changed.reverse();
        changed.retain(|&place| {
            let mark = &mut self.marks[place.number() as usize];
            let has_changed = *mark & CHANGED != 0;
            if has_changed {
                *mark = SEALED;
            }
            has_changed
        });
        (std::mem::take(&mut self.gone), changed)
    }

    /// Bytes taken.
    pub fn bytes(&self) -> u64 {
        let gone = self.gone.capacity() * size_of::<(KeyGroup, K)>();
        (self.marks.capacity() + self.changed.capacity() * size_of::<Place>() + gone) as u64
    }
}
