//! The input of `wide_table`, made up: tables that change in all ways in which tables can, and facts about deliveries.
//!
//! - `users.jsonl`, `products.jsonl`: change events as Debezium writes them: rows that come, change, go, come back, and
//!   get another key.
//! - `orders.jsonl`: changes of rows. Orders change their user and their product, and go and come back. Some have no user,
//!   some one who never was.
//! - `logistics.jsonl`: the statuses of an order, out of order by less than 30 seconds; some of orders that are not there.
//!
//! The same seed gives the same lines.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use flowjoin::prelude::*;

#[path = "chance.rs"]
mod chance;

use chance::Chance;

/// What to write.
pub(crate) struct Shape {
    /// How many orders; there are a tenth as many users, and a twentieth as many products.
    pub(crate) orders: u64,
    /// Where the random numbers begin.
    pub(crate) seed: u64,
}

/// Writes the four files into a directory.
pub(crate) fn write(shape: &Shape, directory: &Path) -> io::Result<()> {
    let mut chance = Chance(shape.seed);
    let (users, products) = (shape.orders / 10 + 1, shape.orders / 20 + 1);
    let user = |user_id, chance: &mut Chance| {
        format!(r#"{{"user_id":{user_id},"name":"user {user_id}","level":{}}}"#, 1 + chance.below(5))
    };
    let product = |product_id, chance: &mut Chance| {
        let category = CATEGORIES[chance.below(CATEGORIES.len() as u64) as usize];
        format!(r#"{{"product_id":{product_id},"category":"{category}"}}"#)
    };
    fs::create_dir_all(directory)?;
    let files = [
        ("users", change_events("users", users, user, &mut chance)),
        ("products", change_events("products", products, product, &mut chance)),
        ("orders", orders(shape.orders, users, products, &mut chance)),
        ("logistics", logistics(shape.orders, &mut chance)),
    ];
    files
        .into_iter()
        .try_for_each(|(name, lines)| fs::write(directory.join(format!("{name}.jsonl")), lines.join("\n") + "\n"))
}

/// So many rows that come, and three times as many events of what becomes of them.
fn change_events(table: &str, rows: u64, row: impl Fn(u64, &mut Chance) -> String, chance: &mut Chance) -> Vec<String> {
    let mut standing: BTreeMap<u64, String> = BTreeMap::new();
    let mut events = Vec::new();
    let mut tell = |op: &str, before: Option<&String>, after: Option<&String>| {
        let image = |row: Option<&String>| row.map_or("null", String::as_str).to_string();
        let ts_ms = BEGIN.plus(secs(events.len() as i64)).as_millis();
        events.push(format!(
            r#"{{"before":{},"after":{},"source":{{"db":"shop","table":"{table}","ts_ms":{ts_ms}}},"op":"{op}"}}"#,
            image(before),
            image(after)
        ));
    };
    for id in 0..4 * rows {
        // At first each comes, and then something happens to one of them.
        let id = if id < rows { id } else { chance.below(rows) };
        let new = row(id, chance);
        match standing.remove(&id) {
            None => {
                tell("c", None, Some(&new));
                standing.insert(id, new);
            }
            Some(old) if chance.one_in(4) => tell("d", Some(&old), None),
            Some(old) if chance.one_in(6) && !standing.contains_key(&(rows + id)) => {
                let moved = row(rows + id, chance);
                tell("u", Some(&old), Some(&moved));
                standing.insert(rows + id, moved);
            }
            Some(old) => {
                tell("u", Some(&old), Some(&new));
                standing.insert(id, new);
            }
        }
    }
    events
}

/// So many orders that come, and one change more for every other.
fn orders(orders: u64, users: u64, products: u64, chance: &mut Chance) -> Vec<String> {
    let mut lines = Vec::new();
    // Keys from the rows on are those that rows have moved to, and then those that never were.
    let some = |rows: u64, chance: &mut Chance| {
        if chance.one_in(6) { rows + chance.below(rows + rows / 4 + 1) } else { chance.below(rows) }
    };
    for index in 0..orders + orders / 2 {
        let order_id = if index < orders { index } else { chance.below(orders) };
        if index >= orders && chance.one_in(5) {
            lines.push(format!(r#"{{"op":"-D","order_id":{order_id}}}"#));
            continue;
        }
        let user_id = match chance.one_in(15) {
            true => "null".to_string(),
            false => some(users, chance).to_string(),
        };
        let (product_id, amount) = (some(products, chance), 100 + chance.below(50_000));
        lines.push(format!(
            r#"{{"op":"+U","order_id":{order_id},"user_id":{user_id},"product_id":{product_id},"amount":{amount}}}"#
        ));
    }
    lines
}

/// None to three statuses of each order, in the order in which they arrive.
fn logistics(orders: u64, chance: &mut Chance) -> Vec<String> {
    let mut arrivals = Vec::new();
    for order_id in 0..orders + orders / 20 {
        let placed_at = BEGIN.plus(secs(order_id as i64));
        for status in &STATUSES[..chance.below(4) as usize] {
            // The statuses of an order are seconds apart, so they overtake each other.
            let moved_at = placed_at.plus(millis(chance.between(0, 60_000)));
            let arrives = moved_at.as_millis() + chance.between(0, 30_000);
            let line = format!(r#"{{"order_id":{order_id},"status":"{status}","moved_at":"{moved_at}"}}"#);
            arrivals.push((arrives, line));
        }
    }
    arrivals.sort();
    arrivals.into_iter().map(|(_, line)| line).collect()
}

/// 2025-06-01T00:00:00Z.
const BEGIN: EventTime = EventTime::from_millis(1_748_736_000_000);
const CATEGORIES: [&str; 4] = ["tea", "books", "tools", "toys"];
const STATUSES: [&str; 3] = ["packed", "sent", "delivered"];
