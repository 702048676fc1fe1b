//! The inputs of a join, and what the user's `select` sees of each.

use std::any::Any;
use std::sync::Arc;

use super::claim::{AnyKeyOf, key_of};
use super::flow::Output;
use super::keyed::KeyedStream;
use super::mode::{Changelog, Mode};
use super::policy::{GapPolicy, Usual};
use crate::key::Key;
use crate::op::joined::Identity;
use crate::op::kernel::Kind;
use crate::op::multi_join::Emit;
use crate::plan::ChangeMode;
use crate::record::Data;
use crate::state::Ttl;

/// An input that may be missing in the result; made by `.optional()`. When its gap is told, is its policy.
#[derive(Clone)]
pub struct Optional<I, P = Usual> {
    pub(super) input: I,
    pub(super) policy: P,
}

/// An input of which only the running program knows whether it may be missing; made by `.optional_if(..)`.
#[derive(Clone)]
pub struct MaybeOptional<I> {
    pub(super) input: I,
    pub(super) optional: bool,
}

/// An input of a join, as the plan sees it.
pub struct Input {
    pub(super) output: Output,
    pub(super) ttl: Option<Ttl>,
    pub(super) kind: Kind,
    // When its gap is told, if that is said.
    pub(super) emit: Option<Emit>,
    pub(super) mode: ChangeMode,
    // What it has to hold with the inputs before it, besides the key.
    pub(super) condition: Option<Condition>,
    // The `Identity` of its rows, if they have a unique key, and the name of that.
    pub(super) unique: Option<(Box<dyn Any + Send + Sync>, String)>,
    // Whether that is the key of the join.
    pub(super) unique_is_key: bool,
    // Its key, if the rows tell it.
    pub(super) key: Option<AnyKeyOf>,
}

/// A condition over the rows of the inputs so far, each behind its type.
pub type Condition = Arc<dyn Fn(&[Option<&dyn Any>]) -> bool + Send + Sync>;

impl Input {
    /// When two of its rows are the same, in two versions.
    pub(super) fn identity<T: Data>(&self) -> Option<Identity<T>> {
        self.unique.as_ref().and_then(|(same, _)| same.downcast_ref::<Identity<T>>()).cloned()
    }
}

mod sealed {
    pub trait Sealed {}
    impl<K, T, M> Sealed for super::KeyedStream<K, T, M> {}
    impl<I, P> Sealed for super::Optional<I, P> {}
    impl<I> Sealed for super::super::exists::Exists<I> {}
    impl<I> Sealed for super::super::exists::NotExists<I> {}
    impl<K, T> Sealed for super::super::table::Table<K, T> {}
    impl<I> Sealed for super::MaybeOptional<I> {}
    impl<T> Sealed for super::super::temporal::Versions<T> {}
    impl<T> Sealed for super::super::temporal::OptionalVersions<T> {}
}

/// What can be an input of a join: a keyed stream, optional or not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an input of a join",
    label = "not keyed",
    note = "key the stream first: `.keyed()` or `.key_by(|row| ..)`"
)]
pub trait JoinInput: sealed::Sealed + 'static {
    /// The key that it is joined on.
    type Key: Key;
    /// Its rows.
    type Row: Data;
    /// Whether rows only come, or go too.
    type Mode: Mode;
    /// What that makes of the result: an optional input makes it a changelog, as a missing row may be filled later.
    type Padding: Mode;
    /// What `select` gets: `&Row`, or `Option<&Row>` where it is optional.
    type Ref<'a>;
    /// What `into_tuples` gives: `Row`, or `Option<Row>`.
    type Owned: Data;

    /// What `select` gets for a row, or for none.
    fn view(row: Option<&Self::Row>) -> Self::Ref<'_>;

    /// A copy of what `select` gets.
    fn own(view: Self::Ref<'_>) -> Self::Owned;

    /// The input as the plan sees it, which includes whether it is optional.
    fn lower(self) -> Input;
}

impl<K: Key, T: Data, M: Mode> JoinInput for KeyedStream<K, T, M> {
    type Key = K;
    type Row = T;
    type Mode = M;
    type Padding = M;
    type Ref<'a> = &'a T;
    type Owned = T;

    #[inline]
    fn view(row: Option<&T>) -> &T {
        row.expect("a required input has a row in every result")
    }

    fn own(view: &T) -> T {
        view.clone()
    }

    fn lower(self) -> Input {
        let unique = self.unique_key().map(|unique| (Box::new(unique.same.clone()) as Box<_>, unique.name.clone()));
        let unique_is_key = self.unique_key().is_some_and(|unique| unique.whole);
        Input {
            output: self.out,
            ttl: self.ttl,
            kind: Kind::Required,
            emit: None,
            mode: M::MODE,
            condition: None,
            unique,
            unique_is_key,
            key: Some(key_of(self.key)),
        }
    }
}

impl<K: Key, T: Data, M: Mode, P: GapPolicy> JoinInput for Optional<KeyedStream<K, T, M>, P> {
    type Key = K;
    type Row = T;
    type Mode = M;
    type Padding = P::Padding;
    type Ref<'a> = Option<&'a T>;
    type Owned = Option<T>;

    #[inline]
    fn view(row: Option<&T>) -> Option<&T> {
        row
    }

    fn own(view: Option<&T>) -> Option<T> {
        view.cloned()
    }

    fn lower(self) -> Input {
        Input { kind: Kind::Optional, emit: self.policy.emit(), ..self.input.lower() }
    }
}

impl<K: Key, T: Data, M: Mode> JoinInput for MaybeOptional<KeyedStream<K, T, M>> {
    type Key = K;
    type Row = T;
    type Mode = M;
    type Padding = Changelog;
    type Ref<'a> = Option<&'a T>;
    type Owned = Option<T>;

    #[inline]
    fn view(row: Option<&T>) -> Option<&T> {
        row
    }

    fn own(view: Option<&T>) -> Option<T> {
        view.cloned()
    }

    fn lower(self) -> Input {
        let kind = if self.optional { Kind::Optional } else { Kind::Required };
        Input { kind, ..self.input.lower() }
    }
}

/// An input that is keyed by `K`, as the other inputs of the join are.
#[diagnostic::on_unimplemented(
    message = "this input is not keyed by `{K}`",
    label = "this input is `{Self}`",
    note = "all inputs of a join need one key type: convert inside `.key_by(|row| ..)`",
    note = "where the keys of one are an `Option`, those of the others are too: `.key_by(|row| Some(row.user_id))`",
    note = "a stream that is not keyed yet is by `.keyed()` or `.key_by(|row| ..)`"
)]
pub trait JoinsOn<K: Key>: JoinInput<Key = K> {}

impl<K: Key, T: Data, M: Mode> JoinsOn<K> for KeyedStream<K, T, M> {}
impl<K: Key, T: Data, M: Mode, P: GapPolicy> JoinsOn<K> for Optional<KeyedStream<K, T, M>, P> {}
impl<K: Key, T: Data, M: Mode> JoinsOn<K> for MaybeOptional<KeyedStream<K, T, M>> {}
