//! What comes out of a window of one key, whichever kind of window it is, and where its rows go.

use std::sync::Arc;

use super::super::Outbox;
use super::super::conditional::{self, Steps};
use super::super::joined::{Combo, JoinRows};
use super::super::kernel::{Kind, Out, Pair, is_empty, rows};
use super::super::product::{self, Shape};
use super::Spec;
use super::fired::FiredRows;
use super::keep::RowJournal;
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
    /// Which rows have met a partner.
    pub met: [Bits; N],
    /// Where state is kept and rows stand in panes: which of them have changed.
    pub journal: Option<Box<RowJournal<N>>>,
    combos: Vec<Combo<N>>,
    // Where to go on with the product of a key that was told in part.
    place: Option<[usize; N]>,
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
            journal: None,
            combos: Vec::new(),
            place: None,
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

    /// Whether it has to be known under which window a result was told: it can be taken back.
    pub fn recalls_windows(&self) -> bool {
        self.shown.is_some() && self.kinds.iter().any(|kind| kind.may_be_empty())
    }

    /// How much has been said that is not selected yet.
    pub fn said(&self) -> usize {
        self.combos.len()
    }

    /// Unsays what was said from then on.
    pub fn take_said(&mut self, from: usize) -> Vec<Combo<N>> {
        self.combos.split_off(from)
    }

    /// Says combinations of the window that was entered.
    pub fn say(&mut self, combos: impl IntoIterator<Item = Combo<N>>) {
        self.combos.extend(combos);
    }

    /// A window of one key fires: says all that its lists make. Returns false when the outbox is full; it then has to be
    /// called again with the same lists before anything else.
    #[inline]
    pub fn fire(&mut self, lists: &[Runs<'_>; N], cause: EventTime, out: &mut Outbox) -> bool {
        if self.steps.is_some() {
            match self.tests_alone() {
                true => self.fire_test(lists, cause),
                false => self.fire_conditional(lists, cause),
            }
            self.select_if_many(out);
            return true;
        }
        let present = (0..N).filter(|&input| !is_empty(lists[input])).fold(0u16, |bits, input| bits | 1 << input);
        if self.shape.required() & !present == 0 && !self.fire_single(lists, present, cause, out) {
            if !self.fire_product(lists, cause, out) {
                return false;
            }
            self.meet_lists(lists, present);
        }
        self.meet_partners(lists);
        true
    }

    // Whether there are two inputs, and rows of the second one only have to exist or not.
    fn tests_alone(&self) -> bool {
        N == 2 && !self.kinds[1].shows()
    }

    // Whether it is noted of rows of windows that have fired which of them have a partner there.
    fn notes_partners(&self) -> bool {
        N == 2 && (self.steps.is_some() || !self.kinds[1].shows())
    }

    fn fire_conditional(&mut self, lists: &[Runs<'_>; N], cause: EventTime) {
        let Some(steps) = &self.steps else { return };
        let (rows, combos) = (&self.rows, &mut self.combos);
        let from = combos.len();
        conditional::result(steps, lists, &mut |step, ids| rows.holds(step, ids), &mut |ids| {
            combos.push(Combo { ids: *ids, kind: RowKind::Insert, cause });
        });
        self.meet_combos(from);
    }

    // A row that has a partner is not looked at again, but for one of them by each that comes.
    fn fire_test(&mut self, lists: &[Runs<'_>; N], cause: EventTime) {
        let mut fired: FiredRows<N> = FiredRows::default();
        rows(lists[1]).for_each(|right| fired.push(1, right));
        let mut partners = Vec::new();
        for left in rows(lists[0]) {
            let (all, condition) = (&self.rows, self.steps.is_some());
            let holds = |right| !condition || all.holds(1, &pair((0, left), right));
            let met = fired.meet((0, left), false, holds, |right, _| partners.push(right));
            partners.drain(..).for_each(|right| self.meet(1, right));
            if met {
                self.meet(0, left);
            }
            if met == (self.kinds[1] == Kind::Exists) {
                self.combos.push(Combo { ids: alone(0, left), kind: RowKind::Insert, cause });
            }
        }
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
    fn fire_product(&mut self, lists: &[Runs<'_>; N], cause: EventTime, out: &mut Outbox) -> bool {
        let mut place = self.place.take().unwrap_or([0; N]);
        loop {
            let combos = &mut self.combos;
            let next = product::result_from(&self.shape, lists, place, &mut |ids| {
                combos.push(Combo { ids: *ids, kind: RowKind::Insert, cause });
                combos.len() < COMBOS_MAX
            });
            self.select_if_many(out);
            match next {
                None => return true,
                Some(next) if out.is_full() => {
                    self.place = Some(next);
                    return false;
                }
                Some(next) => place = next,
            }
        }
    }

    /// What has to be known of the rows of a key in a window that has fired, once rows come late.
    pub fn recall(&self, lists: [Vec<RowId>; N]) -> FiredRows<N> {
        if !self.notes_partners() {
            return FiredRows::of(lists);
        }
        let mut fired = FiredRows::default();
        // Those of the second input first: a test needs one of them.
        for input in (0..N).rev() {
            for &id in &lists[input] {
                let holds = |other| self.holds_pair((input, id), other);
                fired.meet((input, id), false, holds, |_, _| {});
            }
        }
        fired
    }

    fn holds_pair(&self, row: (usize, RowId), other: RowId) -> bool {
        self.steps.is_none() || self.rows.holds(1, &pair(row, other))
    }

    /// A row comes into a window of its key that has fired with these rows: says what it changes.
    pub fn add(&mut self, fired: &mut FiredRows<N>, (input, id): (usize, RowId), cause: EventTime) {
        if self.notes_partners() {
            return self.add_pairs(fired, (input, id), cause);
        }
        let from = self.combos.len();
        let (rows, combos, pairs) = (&self.rows, &mut self.combos, [Pair::added(id)]);
        let mut say = |change: Out<N>| {
            let (goes, comes) = change.parts();
            let halves = [(goes, RowKind::Delete), (comes, RowKind::Insert)];
            combos.extend(halves.into_iter().filter_map(|(ids, kind)| Some(Combo { ids: ids?, kind, cause })));
        };
        match &self.steps {
            Some(steps) => {
                let holds = &mut |step: usize, ids: &[RowId; N]| rows.holds(step, ids);
                conditional::change(steps, &fired.lists(), input, &pairs, holds, &mut say);
            }
            // Of its own list it only counts whether it is empty.
            None => product::change(&self.shape, &fired.lists_beside(input), input, &pairs, &mut say),
        }
        self.meet_combos(from);
        fired.push(input, id);
    }

    // The same for two inputs with a condition, or where a partner only has to exist or not.
    fn add_pairs(&mut self, fired: &mut FiredRows<N>, (input, id): (usize, RowId), cause: EventTime) {
        let other_input = 1 - input;
        let shows = self.kinds[1].shows();
        let mut partners = Vec::new();
        let holds = |other| self.holds_pair((input, id), other);
        let met = fired.meet((input, id), shows, holds, |other, first| partners.push((other, first)));
        let insert = |ids| Combo { ids, kind: RowKind::Insert, cause };
        // What goes comes before all that comes.
        if self.pads(other_input) {
            let first = partners.iter().filter(|(_, first)| *first);
            let gap =
                |&(other, _): &(RowId, bool)| Combo { kind: RowKind::Delete, ..insert(alone(other_input, other)) };
            self.combos.extend(first.map(gap));
        }
        let exists = self.kinds[1] == Kind::Exists;
        for &(other, first) in &partners {
            self.meet(other_input, other);
            if shows {
                self.combos.push(insert(pair((input, id), other)));
            } else if exists && first && other_input == 0 {
                self.combos.push(insert(alone(0, other)));
            }
        }
        if met {
            self.meet(input, id);
        }
        let stands_alone = if met { exists && input == 0 } else { self.pads(input) };
        if stands_alone {
            self.combos.push(insert(alone(input, id)));
        }
    }

    // Whether a row of one of two inputs is in the result while it has no partner.
    fn pads(&self, input: usize) -> bool {
        self.kinds[input].shows() && self.kinds[1 - input].may_be_empty()
    }

    /// A window of one key fires again, with rows that it had not when it did before: it has become longer, or one with
    /// others that had fired too, of which these are the lists. Says the difference to all that was said; `fired` has all
    /// rows then.
    pub fn merge(
        &mut self,
        fired: &mut FiredRows<N>,
        others: &[[Vec<RowId>; N]],
        unsaid: impl Iterator<Item = (usize, RowId)>,
        cause: EventTime,
    ) {
        let from = self.combos.len();
        for (input, list) in others.iter().flat_map(|lists| lists.iter().enumerate()) {
            list.iter().for_each(|&id| self.add(fired, (input, id), cause));
        }
        unsaid.for_each(|row| self.add(fired, row, cause));
        // Of what was added one by one only what is left counts, and only if it was not said before.
        let change = |combo: &Combo<N>| (combo.ids, if combo.kind.adds() { 1 } else { -1 });
        let mut changes: Vec<([RowId; N], i32)> = self.combos.drain(from..).as_slice().iter().map(change).collect();
        changes.extend(others.iter().flat_map(|lists| self.result(lists)).map(|ids| (ids, -1)));
        changes.sort_unstable();
        let net = changes.chunk_by(|one, other| one.0 == other.0);
        let net: Vec<_> = net.map(|same| (same[0].0, same.iter().map(|change| change.1).sum::<i32>())).collect();
        for (sign, kind) in [(-1, RowKind::Delete), (1, RowKind::Insert)] {
            let changed = net.iter().filter(|change| change.1.signum() == sign);
            self.combos.extend(changed.map(|&(ids, _)| Combo { ids, kind, cause }));
        }
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
        self.combos.push(Combo { ids: alone(input, id), kind: RowKind::Insert, cause });
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
            if let Some(journal) = &mut self.journal {
                journal.on_change(input, id);
            }
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
            if self.journal.is_some() {
                rows(list).for_each(|id| self.meet(input, id));
                continue;
            }
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
    #[inline]
    fn meet_partners(&mut self, lists: &[Runs<'_>; N]) {
        if self.tests_alone() && !is_empty(lists[0]) && !is_empty(lists[1]) {
            (0..2).for_each(|input| rows(lists[input]).for_each(|id| self.meet(input, id)));
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

    /// How many rows have left that still have to be let go.
    pub fn leaving(&self) -> usize {
        self.matched.iter().map(Vec::len).chain(self.unmatched.iter().map(Vec::len)).sum()
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
        let journal = self.journal.as_ref().map_or(0, |journal| journal.bytes());
        self.rows.bytes() + self.met.iter().map(Bits::bytes).sum::<u64>() + journal
    }
}

// A row with nothing beside it.
fn alone<const N: usize>(input: usize, id: RowId) -> [RowId; N] {
    std::array::from_fn(|other| if other == input { id } else { RowId::MISSING })
}

// A row of one of two inputs, and one of the other.
fn pair<const N: usize>((input, id): (usize, RowId), other: RowId) -> [RowId; N] {
    std::array::from_fn(|place| if place == input { id } else { other })
}

const COMBOS_MAX: usize = 1_024;
