//! What comes out of a window of one key, whichever kind of window it is, and where its rows go.

use std::sync::Arc;

use super::super::Outbox;
use super::super::conditional::{self, Steps};
use super::super::joined::{Combo, JoinRows};
use super::super::kernel::{Kind, Out, Pair, is_empty, rows};
use super::super::product::{self, Shape};
use super::Spec;
use super::windows::{CurrentWindow, Window};
use crate::account::{Account, Reason};
use crate::change::RowKind;
use crate::key::Key;
use crate::state::{Bits, RowId, Runs};
use crate::time::{EventTime, Watermark};

/// The kernel of a window join, what it has said, and the rows that go.
pub struct Emitter<K: Key, const N: usize> {
    /// The rows.
    pub rows: Box<dyn JoinRows<K, N>>,
    /// Where they went.
    pub accounts: [Account; N],
    kinds: [Kind; N],
    shape: Shape,
    // Whether results show a row, or the gap, of every input.
    all_shown: bool,
    // The other kernel, where there are conditions.
    steps: Option<Steps<N>>,
    met: [Bits; N],
    combos: Vec<Combo<N>>,
    // The window that they are of, where `select` asks for it.
    shown: Option<Arc<CurrentWindow>>,
    // Rows that go once the combinations that name them have been selected.
    matched: [Vec<RowId>; N],
    // Those without a partner, with the time of their going.
    unmatched: [Vec<(EventTime, RowId)>; N],
    late: Vec<RowId>,
}

impl<K: Key, const N: usize> Emitter<K, N> {
    /// Nothing said yet.
    pub fn new(spec: &Spec<N>, rows: Box<dyn JoinRows<K, N>>, shown: Option<Arc<CurrentWindow>>) -> Self {
        let with = (1..N).filter(|input| spec.conditions >> input & 1 == 1);
        let steps = (spec.conditions != 0).then(|| with.fold(Steps::of(spec.kinds), Steps::on));
        Emitter {
            rows,
            accounts: [Account::default(); N],
            kinds: spec.kinds,
            shape: Shape::of(&spec.kinds),
            all_shown: spec.kinds.iter().all(|kind| kind.shows()),
            steps,
            met: std::array::from_fn(|_| Bits::default()),
            combos: Vec::new(),
            shown,
            matched: std::array::from_fn(|_| Vec::new()),
            unmatched: std::array::from_fn(|_| Vec::new()),
            late: Vec::new(),
        }
    }

    /// What is said from here on is of this window.
    #[inline]
    pub fn enter(&mut self, window: Window, out: &mut Outbox) {
        if self.shown.as_ref().is_some_and(|shown| shown.get() != window) {
            self.select(out);
        }
        if let Some(shown) = &self.shown {
            shown.set(window);
        }
    }

    /// A window of one key fires: says all that its lists make.
    #[inline]
    pub fn fire(&mut self, lists: &[Runs<'_>; N], cause: EventTime, out: &mut Outbox) {
        let present = (0..N).filter(|&input| !is_empty(lists[input])).fold(0u16, |bits, input| bits | 1 << input);
        let Some(steps) = &self.steps else {
            if self.shape.required() & !present == 0 && !self.fire_single(lists, present, cause, out) {
                self.fire_product(lists, cause, out);
                self.meet_lists(lists, present);
            }
            if N == 2 && !self.kinds[1].shows() {
                self.meet_partners(lists);
            }
            return;
        };
        let (rows, combos) = (&self.rows, &mut self.combos);
        let from = combos.len();
        conditional::result(steps, lists, &mut |step, ids| rows.holds(step, ids), &mut |ids| {
            combos.push(Combo { ids: *ids, kind: RowKind::Insert, cause });
        });
        self.meet_combos(from);
        self.meet_partners(lists);
        self.select_if_many(out);
    }

    // Where no input has a second row, as is common, there is one result, and that takes no product. Returns whether it is so.
    #[inline]
    fn fire_single(&mut self, lists: &[Runs<'_>; N], present: u16, cause: EventTime, out: &mut Outbox) -> bool {
        if !self.all_shown || lists.iter().any(|list| list.0.len() > 1 || !list.1.is_empty()) {
            return false;
        }
        let ids = std::array::from_fn(|input| lists[input].0.first().copied().unwrap_or(RowId::MISSING));
        self.combos.push(Combo { ids, kind: RowKind::Insert, cause });
        self.select_if_many(out);
        if present.count_ones() > 1 {
            (0..N).filter(|input| present >> input & 1 == 1).for_each(|input| self.meet(input, ids[input]));
        }
        true
    }

    #[inline]
    fn fire_product(&mut self, lists: &[Runs<'_>; N], cause: EventTime, out: &mut Outbox) {
        let (rows, combos) = (&mut self.rows, &mut self.combos);
        product::result(&self.shape, lists, &mut |ids| {
            combos.push(Combo { ids: *ids, kind: RowKind::Insert, cause });
            if combos.len() >= COMBOS_MAX {
                rows.select(combos, out);
                combos.clear();
            }
        });
    }

    /// A row comes into a window of its key that has fired with these lists, without it: says what it changes.
    pub fn add(&mut self, lists: &mut [Vec<RowId>; N], (input, id): (usize, RowId), cause: EventTime) {
        let from = self.combos.len();
        let runs: [Runs<'_>; N] = std::array::from_fn(|input| (&lists[input][..], &[][..]));
        let (rows, combos, pairs) = (&self.rows, &mut self.combos, [Pair::added(id)]);
        let mut say = |change: Out<N>| {
            let (goes, comes) = change.parts();
            let halves = [(goes, RowKind::Delete), (comes, RowKind::Insert)];
            combos.extend(halves.into_iter().filter_map(|(ids, kind)| Some(Combo { ids: ids?, kind, cause })));
        };
        match &self.steps {
            Some(steps) => {
                conditional::change(steps, &runs, input, &pairs, &mut |step, ids| rows.holds(step, ids), &mut say);
            }
            None => product::change(&self.shape, &runs, input, &pairs, &mut say),
        }
        self.meet_combos(from);
        lists[input].push(id);
        self.meet_partners(&std::array::from_fn(|input| (&lists[input][..], &[][..])));
    }

    /// Several windows of a key that have fired, each with its lists, have become one: says the difference.
    pub fn merge(&mut self, fired: &[[Vec<RowId>; N]], all: &[Vec<RowId>; N], cause: EventTime) {
        let from = self.combos.len();
        let mut said: Vec<[RowId; N]> = fired.iter().flat_map(|lists| self.result(lists)).collect();
        let mut now = self.result(all);
        said.sort_unstable();
        now.sort_unstable();
        let goes = said.iter().filter(|ids| now.binary_search(ids).is_err());
        self.combos.extend(goes.map(|&ids| Combo { ids, kind: RowKind::Delete, cause }));
        let comes = now.iter().filter(|ids| said.binary_search(ids).is_err());
        self.combos.extend(comes.map(|&ids| Combo { ids, kind: RowKind::Insert, cause }));
        self.meet_combos(from);
        self.meet_partners(&std::array::from_fn(|input| (&all[input][..], &[][..])));
    }

    fn result(&self, lists: &[Vec<RowId>; N]) -> Vec<[RowId; N]> {
        let runs: [Runs<'_>; N] = std::array::from_fn(|input| (&lists[input][..], &[][..]));
        let mut result = Vec::new();
        match &self.steps {
            Some(steps) => {
                let holds = &mut |step: usize, ids: &[RowId; N]| self.rows.holds(step, ids);
                conditional::result(steps, &runs, holds, &mut |ids| result.push(*ids));
            }
            None => product::result(&self.shape, &runs, &mut |ids| result.push(*ids)),
        }
        result
    }

    /// A row with a null key comes into a window that is not over: it is there alone.
    pub fn alone(&mut self, input: usize, id: RowId, cause: EventTime) {
        let mut ids = [RowId::MISSING; N];
        ids[input] = id;
        self.combos.push(Combo { ids, kind: RowKind::Insert, cause });
    }

    /// A row with a null key is in no result.
    pub fn null_unmatched(&mut self, input: usize, id: RowId, last: EventTime, out: &mut Outbox) {
        self.rows.unmatched(input, &[id], Reason::NullKey, last, out);
    }

    /// Whether a row is in the result though no other input has any.
    pub fn stands_alone(&self, input: usize) -> bool {
        self.shape.stands_alone(input)
    }

    #[inline]
    fn meet(&mut self, input: usize, id: RowId) {
        if self.met[input].insert(id) {
            self.accounts[input].matched += 1;
            self.accounts[input].open -= 1;
        }
    }

    // All rows of lists that make results together have met, if two of the lists have any.
    #[inline]
    fn meet_lists(&mut self, lists: &[Runs<'_>; N], present: u16) {
        let present = present & self.shape.shown();
        if present.count_ones() < 2 {
            return;
        }
        for (input, &list) in lists.iter().enumerate().filter(|(input, _)| present >> input & 1 == 1) {
            let (met, account) = (&mut self.met[input], &mut self.accounts[input]);
            let met = [list.0, list.1].map(|run| run.iter().filter(|&&id| met.insert(id)).count() as u64);
            account.matched += met[0] + met[1];
            account.open -= met[0] + met[1];
        }
    }

    fn meet_combos(&mut self, from: usize) {
        for index in from..self.combos.len() {
            let Combo { ids, kind, .. } = self.combos[index];
            if kind.adds() && ids.iter().filter(|id| !id.is_missing()).count() > 1 {
                ids.iter().enumerate().filter(|(_, id)| !id.is_missing()).for_each(|(input, &id)| self.meet(input, id));
            }
        }
    }

    // Partners that are in no combination, since they only have to exist or not, have met all the same.
    fn meet_partners(&mut self, lists: &[Runs<'_>; N]) {
        if N != 2 || self.kinds[1].shows() {
            return;
        }
        if self.steps.is_none() {
            if !is_empty(lists[0]) && !is_empty(lists[1]) {
                (0..2).for_each(|input| rows(lists[input]).for_each(|id| self.meet(input, id)));
            }
            return;
        }
        for left in rows(lists[0]) {
            for right in rows(lists[1]) {
                let ids = std::array::from_fn(|input| if input == 0 { left } else { right });
                if self.rows.holds(1, &ids) {
                    self.meet(0, left);
                    self.meet(1, right);
                }
            }
        }
    }

    /// The last window of a row is over, which ended with this time.
    #[inline]
    pub fn leave(&mut self, input: usize, id: RowId, last: EventTime) {
        if self.met[input].remove(id) {
            self.matched[input].push(id);
        } else {
            self.accounts[input].open -= 1;
            self.accounts[input].unmatched += 1;
            self.unmatched[input].push((last, id));
        }
    }

    /// A row that has just come leaves at once, and was counted.
    pub fn drop_later(&mut self, input: usize, id: RowId) {
        self.matched[input].push(id);
    }

    /// A row has come too late.
    pub fn is_late(&mut self, input: usize, id: RowId) {
        self.accounts[input].late += 1;
        self.late.push(id);
    }

    /// Sends the rows of an input that came too late to their output.
    pub fn send_late(&mut self, input: usize, watermark: Watermark, out: &mut Outbox) {
        if !self.late.is_empty() {
            self.rows.late(input, &self.late, watermark, out);
            self.late.clear();
        }
    }

    /// Makes results of what was said, if it is much.
    #[inline]
    pub fn select_if_many(&mut self, out: &mut Outbox) {
        if self.combos.len() >= COMBOS_MAX {
            self.select(out);
        }
    }

    fn select(&mut self, out: &mut Outbox) {
        for combos in self.combos.chunks(COMBOS_MAX) {
            self.rows.select(combos, out);
        }
        self.combos.clear();
    }

    /// Makes results of all that was said, and lets the rows go that have left.
    pub fn settle(&mut self, out: &mut Outbox) {
        self.select(out);
        for input in 0..N {
            self.rows.discard(input, &self.matched[input]);
            self.matched[input].clear();
            let gone = std::mem::take(&mut self.unmatched[input]);
            for together in gone.chunk_by(|one, other| one.0 == other.0) {
                let ids: Vec<RowId> = together.iter().map(|&(_, id)| id).collect();
                // A row that stood alone in the result has come out already.
                match self.stands_alone(input) {
                    true => self.rows.discard(input, &ids),
                    false => self.rows.unmatched(input, &ids, Reason::WindowClosed, together[0].0, out),
                }
            }
            self.unmatched[input] = gone;
            self.unmatched[input].clear();
        }
    }

    /// Bytes taken, but for what waits within a call.
    pub fn bytes(&self) -> u64 {
        self.rows.bytes() + self.met.iter().map(Bits::bytes).sum::<u64>()
    }
}

const COMBOS_MAX: usize = 1_024;
