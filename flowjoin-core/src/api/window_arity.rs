//! The methods that end a window join, written once for each number of inputs, 2 to 12.

use std::sync::Arc;

use super::arity::{Rows2, Rows3, Rows4, Rows5, Rows6, Rows7, Rows8, Rows9, Rows10, Rows11, Rows12};
use super::input::{JoinInput, JoinsOn};
use super::mode::Mode;
use super::multi::mode_of;
use super::stream::Stream;
use super::unmatched::{Late, Unmatched};
use super::window::{Lateness, WindowJoin};
use crate::op::window_join::{CurrentWindow, Window, WindowJoin as WindowJoinOp};
use crate::record::Data;

macro_rules! window {
    ($n:literal, $Rows:ident: $A:ident $(, $T:ident)+; $($i:tt $I:ident $row:ident),+) => {
        // The bounds stand on the methods, so that an input of another key is told why.
        impl<$A, $($T),+, Z> WindowJoin<($A, $($T),+), Z> {
            /// Makes a row of each result: the function gets a reference to the row of each input, `Option<&Row>` for
            /// an optional one. The time of a result is the last one of its window.
            pub fn select<O, F, M>(self, select: F) -> Stream<O, M>
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                O: Data,
                F: for<'a> Fn($A::Ref<'a> $(, $T::Ref<'a>)+) -> O + Send + Sync + 'static,
                M: Mode,
                Z: Lateness<($A::Padding, $($T::Padding),+), Out = M>,
            {
                let spec = self.spec::<$n>();
                let (op, state) = self.op(&spec);
                let conditions = self.conditions::<$n>();
                let select = Arc::new(select);
                Stream::at(self.placed.finish(op, state, mode_of::<M>(), move |_, names| {
                    let (select, conditions) = (select.clone(), conditions.clone());
                    let rows = $Rows::<$A $(, $T)+, F, O>::new(select, conditions, Default::default(), names);
                    Box::new(WindowJoinOp::<$A::Key, $n>::new(&spec, Box::new(rows), None))
                }))
            }

            /// As [`select`](Self::select); the function also gets the window, before the rows.
            ///
            /// It is the window as it is when the result comes out. With an allowed lateness a session that has fired may
            /// become longer: what it told before keeps the window that it was told with as long as it stands, and is
            /// taken back with that one; what comes out from then on has the new one.
            pub fn select_with_window<O, F, M>(self, select: F) -> Stream<O, M>
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                O: Data,
                F: for<'a> Fn(Window, $A::Ref<'a> $(, $T::Ref<'a>)+) -> O + Send + Sync + 'static,
                M: Mode,
                Z: Lateness<($A::Padding, $($T::Padding),+), Out = M>,
            {
                let spec = self.spec::<$n>();
                let (op, state) = self.op(&spec);
                let conditions = self.conditions::<$n>();
                let select = Arc::new(select);
                Stream::at(self.placed.finish(op, state, mode_of::<M>(), move |_, names| {
                    let window = Arc::new(CurrentWindow::default());
                    let (select, current) = (select.clone(), window.clone());
                    // Says that all references live equally long, which a closure alone does not.
                    fn of_one_life<$A: JoinInput $(, $T: JoinInput)+, O, F>(f: F) -> F
                    where
                        F: for<'a> Fn($A::Ref<'a> $(, $T::Ref<'a>)+) -> O,
                    {
                        f
                    }
                    let select = of_one_life::<$A $(, $T)+, O, _>(move |$($row),+| select(current.get(), $($row),+));
                    let (select, conditions) = (Arc::new(select), conditions.clone());
                    let rows = $Rows::<$A $(, $T)+, _, O>::new(select, conditions, Default::default(), names);
                    Box::new(WindowJoinOp::<$A::Key, $n>::new(&spec, Box::new(rows), Some(window)))
                }))
            }

            /// As [`select`](Self::select), with the rows of each input whose windows are over without their having been
            /// in the result, or whose key is null.
            #[allow(clippy::type_complexity)]
            pub fn select_with_unmatched<O, F, M>(self, select: F)
                -> (Stream<O, M>, (Stream<Unmatched<$A::Row>>, $(Stream<Unmatched<$T::Row>>),+))
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                O: Data,
                F: for<'a> Fn($A::Ref<'a> $(, $T::Ref<'a>)+) -> O + Send + Sync + 'static,
                M: Mode,
                Z: Lateness<($A::Padding, $($T::Padding),+), Out = M>,
            {
                let unmatched = ($(self.placed.unmatched::<$I::Row>($i),)+);
                (self.select(select), unmatched)
            }

            /// The rows of each input that came when all their windows were over; to be taken before the join is ended.
            pub fn late(&self) -> ($(Stream<Late<$I::Row>>,)+)
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
            {
                ($(self.placed.late::<$I::Row>($i),)+)
            }

            /// Makes a tuple of copies of each result: for a quick start.
            pub fn into_tuples<M>(self) -> Stream<($A::Owned, $($T::Owned),+), M>
            where
                $A: JoinInput,
                $($T: JoinsOn<$A::Key>,)+
                M: Mode,
                Z: Lateness<($A::Padding, $($T::Padding),+), Out = M>,
                ($A::Owned, $($T::Owned),+): Data,
            {
                self.select(|$($row),+| ($($I::own($row),)+))
            }
        }
    };
}

window!(2, Rows2: A, B; 0 A a, 1 B b);
window!(3, Rows3: A, B, C; 0 A a, 1 B b, 2 C c);
window!(4, Rows4: A, B, C, D; 0 A a, 1 B b, 2 C c, 3 D d);
window!(5, Rows5: A, B, C, D, E; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e);
window!(6, Rows6: A, B, C, D, E, G; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g);
window!(7, Rows7: A, B, C, D, E, G, H; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h);
window!(8, Rows8: A, B, C, D, E, G, H, I; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i);
window!(9, Rows9: A, B, C, D, E, G, H, I, J; 0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j);
window!(10, Rows10: A, B, C, D, E, G, H, I, J, L;
    0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j, 9 L l);
window!(11, Rows11: A, B, C, D, E, G, H, I, J, L, N;
    0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j, 9 L l, 10 N n);
window!(12, Rows12: A, B, C, D, E, G, H, I, J, L, N, P;
    0 A a, 1 B b, 2 C c, 3 D d, 4 E e, 5 G g, 6 H h, 7 I i, 8 J j, 9 L l, 10 N n, 11 P p);
