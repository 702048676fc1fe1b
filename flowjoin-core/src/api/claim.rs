//! What others take a join's word for: that each result has the key that it was joined on, where a sink keeps the newest row
//! of each key, or another join reads the results by it. Keys are known by type and name alone while a flow is put
//! together, and a `select` may put any value under a name, so each result is compared with the rows it is made of.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::input::Input;
use crate::error::OpError;
use crate::key::Key;
use crate::op::key_by::KeyOf;
use crate::record::Data;

/// As [`KeyOf`], row and key each behind its type: makes the key of a row and shows it.
pub type AnyKeyOf = Arc<dyn Fn(&dyn Any, &mut dyn FnMut(&dyn Any)) + Send + Sync>;

/// Puts the function behind its type.
pub fn key_of<T: Data, K: Key>(key: KeyOf<K, T>) -> AnyKeyOf {
    Arc::new(move |row, show| {
        if let Some(row) = row.downcast_ref::<T>() {
            show(&key(row));
        }
    })
}

/// Somebody who takes the join's word.
#[derive(Clone)]
struct Claim {
    // Who does, in words, and what to do if it is not so.
    by: Arc<str>,
    // What is different, if the row has another key than this one.
    differs: Arc<dyn Fn(&dyn Any, &dyn Any) -> Option<String> + Send + Sync>,
}

/// All who take the word of one join; a clone is another handle.
#[derive(Clone, Default)]
pub struct Claims(Arc<Mutex<Vec<Claim>>>);

impl Claims {
    /// Adds one, who goes by this key of the results.
    pub fn add(&self, by: &str, differs: impl Fn(&dyn Any, &dyn Any) -> Option<String> + Send + Sync + 'static) {
        let claim = Claim { by: by.into(), differs: Arc::new(differs) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(claim);
    }

    /// The check of the results of a join of these inputs, if anybody takes its word.
    pub fn check(&self, keys: &[Option<AnyKeyOf>]) -> Option<KeyCheck> {
        let claims = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (!claims.is_empty()).then(|| KeyCheck { keys: keys.to_vec(), claims })
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(claims.iter().map(|claim| &claim.by)).finish()
    }
}

/// The functions for the keys of the inputs.
pub fn keys_of(inputs: &[Input]) -> Vec<Option<AnyKeyOf>> {
    inputs.iter().map(|input| input.key.clone()).collect()
}

/// Compares the key of each result with that of the rows it is made of.
pub struct KeyCheck {
    keys: Vec<Option<AnyKeyOf>>,
    claims: Vec<Claim>,
}

impl KeyCheck {
    /// Checks one result.
    ///
    /// # Errors
    /// If it has another key than the rows.
    pub fn check(&self, rows: &[Option<&dyn Any>], made: &dyn Any) -> Result<(), OpError> {
        let known = rows.iter().zip(&self.keys).find_map(|(row, key)| Some(((*row)?, key.as_ref()?)));
        let Some((row, key_of)) = known else { return Ok(()) };
        let mut found = Ok(());
        key_of(row, &mut |key| {
            for claim in &self.claims {
                if let Some(differs) = (claim.differs)(made, key)
                    && found.is_ok()
                {
                    found = Err(OpError::other_key(&differs, &claim.by));
                }
            }
        });
        found
    }
}
