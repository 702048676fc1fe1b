//! Semi and anti joins: `a.where_exists(b)`, `a.where_not_exists(b)`.
//!
//! ```text
//!   where_exists:      for each key:  rows of a,  if there is a row of b     (once, however many there are)
//!   where_not_exists:  for each key:  rows of a,  if there is none           (also where the key of a is null)
//! ```
//!
//! A row of `a` comes out (`+I`) when what is asked for begins to hold and is taken back (`-D`) when it ends. Both inputs
//! are kept, as in [`multi`](super::multi); the rows of `b` are never shown. With `.between(lower, upper)` only rows of
//! `b` near in time count, and rows come out once and are never taken back, as in [`interval`](super::interval).

use std::marker::PhantomData;
use std::panic::Location;

use super::arity::MergedMode;
use super::input::{Input, JoinInput, JoinsOn};
use super::interval::{ClosingInput, IntervalJoin};
use super::mode::{Append, AppendOnly, Changelog, MergeMode, Mode};
use super::multi::MultiJoin;
use super::owed::NeedsTtl;
use super::policy::ExpiryPolicy;
use super::stream::Stream;
use super::unmatched::Unmatched;
use crate::key::Key;
use crate::op::kernel::Kind;
use crate::record::Data;
use crate::time::ToSpan;

/// An input of which there has to be a row; made by `where_exists`.
pub struct Exists<I>(pub(super) I);

/// An input of which there must be no row; made by `where_not_exists`.
pub struct NotExists<I>(pub(super) I);

macro_rules! tested {
    ($Test:ident, $kind:expr, $Padding:ty) => {
        impl<I: JoinInput> JoinInput for $Test<I> {
            type Key = I::Key;
            type Row = I::Row;
            type Mode = I::Mode;
            type Padding = $Padding;
            type Ref<'a> = ();
            type Owned = ();

            #[inline]
            fn view(_: Option<&I::Row>) {}

            fn own((): ()) {}

            fn lower(self) -> Input {
                Input { kind: $kind, ..self.0.lower() }
            }
        }

        impl<K: Key, I: JoinInput<Key = K>> JoinsOn<K> for $Test<I> {}

        impl<I: JoinInput> ClosingInput for $Test<I> {
            type Closing = Append;
        }

        impl<A: JoinInput, I: JoinInput> NeedsTtl<MultiJoin<(A, $Test<I>)>> {
            /// Rows are partners only if their times are close enough: `right.time − left.time` from `lower` to `upper`,
            /// both ends included. They are then kept for as long as a partner can come, and the result is
            /// append-only, as that of an interval join.
            #[track_caller]
            pub fn between(self, lower: impl ToSpan, upper: impl ToSpan) -> IntervalJoin<A, $Test<I>>
            where
                A::Mode: AppendOnly,
                I::Mode: AppendOnly,
            {
                IntervalJoin::within(self, (lower.to_span(), upper.to_span()), Location::caller())
            }
        }

        impl<A: ClosingInput, I: JoinInput> IntervalJoin<A, $Test<I>>
        where
            I: JoinsOn<A::Key>,
            A::Closing: MergeMode<Append>,
            A::Owned: Data,
        {
            /// The rows as they are.
            pub fn into_rows<M: Mode>(self) -> Stream<A::Owned, M>
            where
                (A::Closing, Append): MergedMode<Out = M>,
            {
                self.select(|row, ()| A::own(row))
            }

            /// As [`into_rows`](Self::into_rows), with the rows of each input whose interval closed without a partner.
            #[allow(clippy::type_complexity)]
            pub fn into_rows_with_unmatched<M: Mode>(
                self,
            ) -> (Stream<A::Owned, M>, (Stream<Unmatched<A::Row>>, Stream<Unmatched<I::Row>>))
            where
                (A::Closing, Append): MergedMode<Out = M>,
            {
                self.select_with_unmatched(|row, ()| A::own(row))
            }
        }

        impl<A: JoinInput, I: JoinInput<Key = A::Key>, X: ExpiryPolicy> MultiJoin<(A, $Test<I>), X>
        where
            A::Padding: MergeMode<$Padding>,
        {
            /// The rows as they are.
            pub fn into_rows<M: Mode>(self) -> Stream<A::Owned, M>
            where
                (A::Padding, $Padding, X::Mode): super::arity::MergedMode<Out = M>,
                A::Owned: Data,
            {
                self.select_rows(A::own)
            }

            /// As [`into_rows`](Self::into_rows), with the rows of each input that leave without having met one of the
            /// other.
            #[allow(clippy::type_complexity)]
            pub fn into_rows_with_unmatched<M: Mode>(
                self,
            ) -> (Stream<A::Owned, M>, (Stream<Unmatched<A::Row>>, Stream<Unmatched<I::Row>>))
            where
                (A::Padding, $Padding, X::Mode): super::arity::MergedMode<Out = M>,
                A::Owned: Data,
            {
                let unmatched = (self.placed().unmatched::<A::Row>(0), self.placed().unmatched::<I::Row>(1));
                (self.select_rows(A::own), unmatched)
            }

            fn select_rows<O: Data, M: Mode>(self, f: impl Fn(A::Ref<'_>) -> O + Send + Sync + 'static) -> Stream<O, M>
            where
                (A::Padding, $Padding, X::Mode): super::arity::MergedMode<Out = M>,
            {
                let MultiJoin { placed, draft, ttl, .. } = self;
                let shown = MultiJoin::<(A, $Test<I>), X> { placed, draft, ttl, inputs: PhantomData };
                shown.select(move |row, ()| f(row))
            }
        }
    };
}

tested!(Exists, Kind::Exists, I::Mode);
tested!(NotExists, Kind::NotExists, Changelog);
