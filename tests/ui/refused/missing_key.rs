//! `Keyed` without a field that is marked `#[key]`.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Keyed)]
struct Fulfilled {
    order_id: u64,
    amount: i64,
}

fn needs_a_key<T: Keyed>() {}

fn main() {
    // Not told again: the derive stands there, and the mistake is in it.
    needs_a_key::<Fulfilled>();
}
