//! What is written once for each number of inputs, 2 to 12: the rows of a join with the user's `select` over them, and
//! the methods that end a join.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use super::claim::KeyCheck;
use super::input::{Condition, JoinInput, JoinsOn};
use super::mode::{MergeMode, Mode};
use super::multi::{Merged, MultiJoin, keeps, mode_of};
use super::owed::NeedsTtl;
use super::policy::{ExpiryPolicy, Truth};
use super::sides::{Names, send_late, send_unmatched, stage_in, take_in};
use super::stream::Stream;
use super::unmatched::{Late, Unmatched};
use crate::account::Reason;
use crate::batch::{AnyBatch, Batch};
use crate::change::RowKind;
use crate::error::OpError;
use crate::key::Key;
use crate::op::joined::{
    Arrivals, Combo, Identity, JoinRows, Lateness, Located, Placing, Shelf, Staged, Waiting, held, prefetch_row,
    stage_table, unmatched_port,
};
use crate::op::multi_join::{MultiJoin as MultiJoinOp, Spec};
use crate::op::{Outbox, Port};
use crate::record::Data;
use crate::state::{Equality, Held, RowId, Slab, Slots, StateShape, prefetch_all, read_row, write_row};
use crate::time::{EventTime, Watermark};

/// Rows asked for ahead of use.
const AHEAD: usize = 12;

macro_rules! shelf {
    ($rows:ident, $i:tt) => {
        Shelf::new(&mut $rows.slabs.$i, &mut $rows.slots, |slot| &mut slot.$i, &mut $rows.in_slots[$i])
    };
}

macro_rules! arity {
    ($n:literal, $Rows:ident: $A:ident $(, $T:ident)+; $($i:tt $I:ident $row:ident),+) => {
        /// The rows of a join of this many inputs, and the user's `select`.
        pub(super) struct $Rows<$A: JoinInput $(, $T: JoinInput)+, F, O> {
            slabs: (Slab<$A::Row>, $(Slab<$T::Row>),+),
            slots: Slots<(Option<Held<$A::Row>>, $(Option<Held<$T::Row>>),+)>,
            in_slots: [usize; $n],
            // Rows that have come and have no place yet.
            waiting: (Waiting<$A::Row>, $(Waiting<$T::Row>),+),
            select: Arc<F>,
            conditions: [Option<Condition>; $n],
            identities: (Option<Identity<$A::Row>>, $(Option<Identity<$T::Row>>),+),
            names: Names,
            equality: Equality,
            key_check: Option<KeyCheck>,
            emitted: u64,
            out: PhantomData<fn() -> O>,
        }

        impl<$A: JoinInput $(, $T: JoinInput)+, F, O> $Rows<$A $(, $T)+, F, O> {
            #[allow(clippy::type_complexity)]
            pub(super) fn new(
                select: Arc<F>,
                conditions: [Option<Condition>; $n],
                identities: (Option<Identity<$A::Row>>, $(Option<Identity<$T::Row>>),+),
                names: &Names,
            ) -> Self {
                let (slabs, slots, waiting, equality) = Default::default();
                let (in_slots, emitted, out) = ([0; $n], 0, PhantomData);
                let (key_check, names) = (names.key_check(), names.clone());
                $Rows {
                    slabs, slots, in_slots, waiting, select, conditions, identities, names, equality,
                    key_check, emitted, out,
                }
            }
        }

        impl<K, $A $(, $T)+, F, O> JoinRows<K, $n> for $Rows<$A $(, $T)+, F, O>
        where
            K: Key,
            $A: JoinInput<Key = K>,
            $($T: JoinInput<Key = K>,)+
            F: for<'a> Fn($A::Ref<'a> $(, $T::Ref<'a>)+) -> O + Send + Sync + 'static,
            O: Data,
        {
            fn arrive(
                &mut self,
                input: usize,
                batch: AnyBatch,
                lateness: Lateness,
                arrivals: &mut Arrivals<K>,
                out: &mut Outbox,
            ) -> Result<(), OpError> {
                let side = self.names.late_side(input);
                match input {
                    $($i => take_in(&mut self.slabs.$i, batch, lateness, side, arrivals, out),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn stage(
                &mut self,
                input: usize,
                batch: AnyBatch,
                lateness: Lateness,
                out: &mut Outbox,
            ) -> Result<Staged<K>, OpError> {
                let side = self.names.late_side(input);
                match input {
                    $($i => stage_in(&mut self.waiting.$i, batch, lateness, side, out),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn stage_table(
                &mut self,
                input: usize,
                batch: AnyBatch,
                not_before: EventTime,
            ) -> Result<(Staged<K>, Vec<(usize, EventTime)>), OpError> {
                match input {
                    $($i => stage_table(&mut self.waiting.$i, batch, not_before),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn are_small(&self) -> bool {
                Slots::<(Option<Held<$A::Row>>, $(Option<Held<$T::Row>>),+)>::are_small()
            }

            fn settle(&mut self, input: usize, rows: &mut [Located], how: Placing) -> Result<(), OpError> {
                match input {
                    $($i => shelf!(self, $i).settle(&mut self.waiting.$i, rows, how),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn select(&mut self, combos: &[Combo<$n>], out: &mut Outbox) {
                self.emitted += combos.len() as u64;
                if !out.wants(Port::MAIN) {
                    return;
                }
                let mut batch = Batch::with_capacity(combos.len());
                let (slabs, slots) = (&self.slabs, &self.slots);
                for combo in combos.iter().take(AHEAD) {
                    $(prefetch_row(&slabs.$i, slots, |slot| &slot.$i, combo.ids[$i]);)+
                }
                // Neighbours share most of their rows, which need to be found once.
                let mut found = [RowId::MISSING; $n];
                let mut times = [EventTime::MIN; $n];
                $(let mut $row: Option<&Held<$I::Row>> = None;)+
                for (index, combo) in combos.iter().enumerate() {
                    if let Some([before, next]) = combos.get(index + AHEAD - 1..=index + AHEAD) {
                        let home = next.home();
                        if home != before.home() {
                            home.slot().and_then(|slot| slots.get(slot)).into_iter().for_each(prefetch_all);
                        }
                        $(if next.ids[$i] != before.ids[$i] && next.ids[$i] != home {
                            prefetch_row(&slabs.$i, slots, |slot| &slot.$i, next.ids[$i]);
                        })+
                    }
                    let home = combo.home();
                    let beside = home.slot().and_then(|slot| slots.get(slot));
                    $(if combo.ids[$i] != found[$i] {
                        $row = match beside {
                            Some(slot) if combo.ids[$i] == home => slot.$i.as_ref(),
                            _ => held(&slabs.$i, slots, |slot| &slot.$i, combo.ids[$i]),
                        };
                        times[$i] = $row.map_or(EventTime::MIN, |held| held.time());
                    })+
                    found = combo.ids;
                    let time = times.iter().fold(combo.cause, |latest, &time| latest.max(time));
                    let made = (self.select)($($I::view($row.map(|held| &held.row))),+);
                    if let Some(key_check) = &self.key_check {
                        let rows = [$($row.map(|held| &held.row as &dyn Any)),+];
                        out.fail_unless(key_check.check(&rows, &made));
                    }
                    // The second half of an update that shows nothing of what has changed takes the first with it.
                    let updates = combo.kind == RowKind::UpdateAfter && index > 0;
                    if updates && combos[index - 1].kind == RowKind::UpdateBefore {
                        let before = batch.rows().last();
                        if before.is_some_and(|before| self.equality.holds(before, &made)) {
                            batch.pop();
                            self.emitted -= 2;
                            continue;
                        }
                    }
                    batch.push(made, time, combo.kind);
                }
                out.send(Port::MAIN, AnyBatch::new(batch));
            }

            fn discard(&mut self, input: usize, ids: &[RowId]) {
                match input {
                    $($i => {
                        let mut shelf = shelf!(self, $i);
                        ids.iter().for_each(|&id| shelf.discard(id));
                    })+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn vacate(&mut self, input: usize, id: RowId) {
                match input {
                    $($i => { self.slabs.$i.vacate(id); })+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn release(&mut self, input: usize, id: RowId) {
                match input {
                    $($i => self.slabs.$i.release(id),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn unmatched(
                &mut self,
                input: usize,
                ids: &[RowId],
                reason: Reason,
                not_before: EventTime,
                out: &mut Outbox,
            ) {
                let port = unmatched_port(input);
                match input {
                    $($i => send_unmatched(shelf!(self, $i), ids, (reason, not_before), port, out),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn late(&mut self, input: usize, ids: &[RowId], watermark: Watermark, out: &mut Outbox) {
                let side = self.names.late_side(input);
                match input {
                    $($i => send_late(&mut self.slabs.$i, ids, watermark, side, out),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn holds_row(&self, input: usize, id: RowId) -> bool {
                match input {
                    $($i => held(&self.slabs.$i, &self.slots, |slot| &slot.$i, id).is_some(),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn has_identity(&self, input: usize) -> bool {
                match input {
                    $($i => self.identities.$i.is_some(),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn print(&mut self, input: usize, id: RowId) -> u64 {
                match input {
                    $($i => match (held(&self.slabs.$i, &self.slots, |slot| &slot.$i, id), &self.identities.$i) {
                        (Some(held), Some(identity)) => (identity.hash)(&held.row),
                        (Some(held), None) => self.equality.print(&held.row),
                        (None, _) => 0,
                    })+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn same(&mut self, input: usize, a: RowId, b: RowId) -> bool {
                let (slabs, slots) = (&self.slabs, &self.slots);
                match input {
                    $($i => match [a, b].map(|id| held(&slabs.$i, slots, |slot| &slot.$i, id)) {
                        [Some(a), Some(b)] => match &self.identities.$i {
                            Some(identity) => (identity.same)(&a.row, &b.row),
                            None => self.equality.holds(&a.row, &b.row),
                        },
                        _ => false,
                    })+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn holds(&self, input: usize, ids: &[RowId; $n]) -> bool {
                let rows: [Option<&dyn Any>; $n] =
                    [$(held(&self.slabs.$i, &self.slots, |slot| &slot.$i, ids[$i]).map(|held| &held.row as &dyn Any)),+];
                self.conditions[input].as_ref().is_none_or(|condition| condition(&rows))
            }

            fn prefetch(&self, input: usize, id: RowId) {
                $(if input == $i { prefetch_row(&self.slabs.$i, &self.slots, |slot| &slot.$i, id); })+
            }

            fn time(&self, input: usize, id: RowId) -> EventTime {
                let time = match input {
                    $($i => held(&self.slabs.$i, &self.slots, |slot| &slot.$i, id).map(|held| held.time()),)+
                    _ => unreachable!("a join has {} inputs", $n),
                };
                time.expect("only rows that are held are asked for")
            }

            fn held(&self, input: usize) -> Vec<RowId> {
                match input {
                    $($i => {
                        let mut ids = self.slabs.$i.ids();
                        let in_slots = self.slots.iter().filter(|(_, slot)| slot.$i.is_some());
                        ids.extend(in_slots.map(|(number, _)| RowId::in_slot(number)));
                        ids.sort_unstable();
                        ids
                    })+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn len(&self, input: usize) -> usize {
                match input {
                    $($i => self.slabs.$i.len() + self.in_slots[$i],)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn bytes(&self) -> u64 {
                [$(self.slabs.$i.bytes()),+].iter().sum::<u64>() + self.slots.bytes()
            }

            fn emitted(&self) -> u64 {
                self.emitted
            }

            fn go_on(&mut self, emitted: u64) {
                self.emitted = emitted;
            }

            fn write_row(&self, input: usize, id: RowId, out: &mut Vec<u8>) -> Result<(), OpError> {
                match input {
                    $($i => {
                        let held = held(&self.slabs.$i, &self.slots, |slot| &slot.$i, id);
                        write_row(&held.expect("only rows that are held are asked for").row, out)
                    })+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }

            fn read_row(
                &mut self,
                input: usize,
                bytes: &[u8],
                time: EventTime,
                slot: Option<u32>,
            ) -> Result<RowId, OpError> {
                match input {
                    $($i => shelf!(self, $i).take_in(read_row(bytes)?, time, slot),)+
                    _ => unreachable!("a join has {} inputs", $n),
                }
            }
        }

        // The bounds stand on the methods, so that an input of another key is told why.
        impl<$A, $($T),+, X: ExpiryPolicy> MultiJoin<($A, $($T),+), X> {
            /// Makes a row of each result: the function gets a reference to the row of each input, `Option<&Row>` for
            /// an optional one.
            pub fn select<O, F, M>(self, select: F) -> Stream<O, M>
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                O: Data,
                F: for<'a> Fn($A::Ref<'a> $(, $T::Ref<'a>)+) -> O + Send + Sync + 'static,
                M: Mode,
                ($A::Padding, $($T::Padding),+, X::Mode): MergedMode<Out = M>,
            {
                let spec = self.spec::<$n>();
                let op = self.op(&spec);
                let conditions = self.conditions::<$n>();
                let select = Arc::new(select);
                let placed = self.placed.expect("a join that says how long its rows are kept has its place");
                let inputs = &placed.draft.inputs;
                let identities = ($(inputs[$i].identity::<$I::Row>(),)+);
                let state = (StateShape::KeyedRows, keeps(&spec.ttls));
                Stream::at(placed.finish(op, state, mode_of::<M>(), move |cx, names| {
                    let spec = Spec { tables: cx.tables, ..spec.clone() };
                    let (select, conditions) = (select.clone(), conditions.clone());
                    let rows = $Rows::<$A $(, $T)+, F, O>::new(select, conditions, identities.clone(), names);
                    Box::new(MultiJoinOp::<$A::Key, $n>::new(spec, Box::new(rows)))
                }))
            }

            /// As [`select`](Self::select), with the rows of each input that leave without ever having been in the
            /// result: by time-to-live, at the end of input, or because their key is null.
            #[allow(clippy::type_complexity)]
            pub fn select_with_unmatched<O, F, M>(self, select: F)
                -> (Stream<O, M>, (Stream<Unmatched<$A::Row>>, $(Stream<Unmatched<$T::Row>>),+))
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                O: Data,
                F: for<'a> Fn($A::Ref<'a> $(, $T::Ref<'a>)+) -> O + Send + Sync + 'static,
                M: Mode,
                ($A::Padding, $($T::Padding),+, X::Mode): MergedMode<Out = M>,
            {
                let unmatched = ($(self.placed().unmatched::<$I::Row>($i),)+);
                (self.select(select), unmatched)
            }

            /// The rows of each input that came behind the watermark; to be taken before the join is ended.
            pub fn late(&self) -> ($(Stream<Late<$I::Row>>,)+)
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
            {
                ($(self.placed().late::<$I::Row>($i),)+)
            }

            /// Makes a tuple of copies of each result: for a quick start.
            pub fn into_tuples<M>(self) -> Stream<($A::Owned, $($T::Owned),+), M>
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                M: Mode,
                ($A::Padding, $($T::Padding),+, X::Mode): MergedMode<Out = M>,
                ($A::Owned, $($T::Owned),+): Data,
            {
                self.select(|$($row),+| ($($I::own($row),)+))
            }
        }
    };
}

/// The mode of the result of several inputs: append-only if all of theirs are.
pub trait MergedMode {
    /// That mode.
    type Out: Mode;
}

impl<A: Mode> MergedMode for (A,) {
    type Out = A;
}

macro_rules! merged {
    ($A:ident) => {};
    ($A:ident, $($T:ident),+) => {
        impl<$A: Mode $(, $T: Mode)+> MergedMode for ($A, $($T),+)
        where
            ($($T,)+): MergedMode,
            $A: MergeMode<<($($T,)+) as MergedMode>::Out>,
        {
            type Out = Merged<$A, <($($T,)+) as MergedMode>::Out>;
        }

        merged!($($T),+);
    };
}

// The modes of up to twelve inputs, and what expiry adds.
merged!(A, B, C, D, E, G, H, I, J, L, N, P, Q);

macro_rules! first {
    ($T:ident $(, $rest:ident)*) => {
        $T::Key
    };
}

macro_rules! and {
    ($($T:ident),+) => {
        impl<$($T: JoinInput),+> NeedsTtl<MultiJoin<($($T,)+)>> {
            /// Adds an input, keyed by the same type.
            pub fn and<Next: JoinsOn<first!($($T),+)>>(self, next: Next) -> NeedsTtl<MultiJoin<($($T,)+ Next)>> {
                self.with(next)
            }
        }
    };
}

macro_rules! on {
    ($($i:tt $T:ident),+; $last:tt $Last:ident) => {
        impl<$($T: JoinInput,)+ $Last: JoinInput> NeedsTtl<MultiJoin<($($T,)+ $Last)>> {
            /// Adds a condition between the last input and those before it, besides the key: a row of the last input is
            /// a match only where it holds. `None` is unknown, which is no match. The function must answer the same for
            /// the same rows.
            ///
            /// The join is evaluated from left to right, as SQL does, by a kernel of its own; it costs a call for each
            /// row that comes and each row of its key on the other side.
            pub fn on<R, F>(self, condition: F) -> Self
            where
                R: Truth,
                F: for<'a> Fn($($T::Ref<'a>,)+ &'a $Last::Row) -> R + Send + Sync + 'static,
            {
                self.require(Arc::new(move |rows| {
                    let last = rows[$last].and_then(|row| row.downcast_ref());
                    condition(
                        $($T::view(rows[$i].and_then(|row| row.downcast_ref())),)+
                        last.expect("a condition is asked of a row of its input"),
                    )
                    .is_true()
                }))
            }
        }
    };
}

on!(0 A; 1 B);
on!(0 A, 1 B; 2 C);
on!(0 A, 1 B, 2 C; 3 D);
on!(0 A, 1 B, 2 C, 3 D; 4 E);
on!(0 A, 1 B, 2 C, 3 D, 4 E; 5 G);
on!(0 A, 1 B, 2 C, 3 D, 4 E, 5 G; 6 H);
on!(0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H; 7 I);
on!(0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I; 8 J);
on!(0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J; 9 L);
on!(0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J, 9 L; 10 N);
on!(0 A, 1 B, 2 C, 3 D, 4 E, 5 G, 6 H, 7 I, 8 J, 9 L, 10 N; 11 P);

and!(A);
and!(A, B);
and!(A, B, C);
and!(A, B, C, D);
and!(A, B, C, D, E);
and!(A, B, C, D, E, G);
and!(A, B, C, D, E, G, H);
and!(A, B, C, D, E, G, H, I);
and!(A, B, C, D, E, G, H, I, J);
and!(A, B, C, D, E, G, H, I, J, L);
and!(A, B, C, D, E, G, H, I, J, L, N);

arity!(2, Rows2: A, B; 0 A a, 1 B b);
arity!(3, Rows3: A, B, C; 0 A a, 1 B b, 2 C c);
arity!(4, Rows4: A, B, C, D; 0 A a, 1 B b, 2 C c, 3 D d);
arity!(5, Rows5: A, B, C, D, E; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e);
arity!(6, Rows6: A, B, C, D, E, G; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g);
arity!(7, Rows7: A, B, C, D, E, G, H; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h);
arity!(8, Rows8: A, B, C, D, E, G, H, I; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i);
arity!(9, Rows9: A, B, C, D, E, G, H, I, J; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j);
arity!(10, Rows10: A, B, C, D, E, G, H, I, J, L; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j, 9 L l);
arity!(11, Rows11: A, B, C, D, E, G, H, I, J, L, N;
    0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j, 9 L l, 10 N n);
arity!(12, Rows12: A, B, C, D, E, G, H, I, J, L, N, P;
    0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j, 9 L l, 10 N n, 11 P p);
