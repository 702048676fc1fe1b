//! What a sink needs that keeps the newest row of each key: all changes of a key in order, from one task.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::batch::{AnyBatch, Batch, KeyedBatch};
use crate::error::OpError;
use crate::key::Key;
use crate::op::Operator;
use crate::op::key_by::{Batching, KeyBy};
use crate::op::normalize::History;
use crate::record::{Data, Keyed};

/// The operators that put the changes of a key in order, where they are not already.
pub struct ByKey<T> {
    pub(crate) of: TypeId,
    pub(crate) name: &'static str,
    pub(crate) exchange: fn(Batching, usize) -> Box<dyn Operator>,
    pub(crate) table: fn() -> Box<dyn Operator>,
    pub(crate) changes: fn(AnyBatch) -> Result<AnyBatch, OpError>,
    pub(crate) differs: fn(&dyn Any, &dyn Any) -> Option<String>,
    rows: PhantomData<fn() -> T>,
}

impl<T: Data> ByKey<T> {
    /// By the key of the rows.
    pub fn of() -> ByKey<T>
    where
        T: Keyed,
    {
        ByKey {
            of: TypeId::of::<T::Key>(),
            name: T::key_name(),
            exchange: |batching, tasks| Box::new(KeyBy::<T::Key, T>::before_table(Arc::new(T::key), batching, tasks)),
            table: || Box::new(History::<T::Key, T>::new(None)),
            changes: changes::<T::Key, T>,
            differs: |made, joined_on| differs(&made.downcast_ref::<T>()?.key(), joined_on),
            rows: PhantomData,
        }
    }
}

/// What is different in the key of a result of a join, if it is not the one that it was joined on.
pub(crate) fn differs<K: Key>(made: &K, joined_on: &dyn Any) -> Option<String> {
    let joined_on = joined_on.downcast_ref::<K>()?;
    (made != joined_on).then(|| format!("has the key {made:?}, and is made of rows with the key {joined_on:?}"))
}

/// The rows of a keyed batch, without their keys.
pub(crate) fn changes<K: Key, T: Data>(batch: AnyBatch) -> Result<AnyBatch, OpError> {
    let batch = batch.take::<KeyedBatch<K, T>>()?;
    let mut out = Batch::with_capacity(batch.len());
    for (keyed, kind) in batch.into_rows() {
        out.push(keyed.row, keyed.time, kind);
    }
    Ok(AnyBatch::new(out))
}
