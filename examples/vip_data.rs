//! The input of `vip`, made up: 90 days of orders, and what levels users had in that time.
//!
//! - `vip-levels.jsonl`: the level of a user from a time on, as an upsert file. Users rise and fall; some lose their level
//!   (`-D`), which holds from the newest time before it in the file, and some get one again. Some never had one.
//! - `orders.jsonl`: orders, some without a user, some of a user who never had a level.
//!
//! Both are out of order by less than an hour. The same seed gives the same lines.

use std::fs;
use std::io;
use std::path::Path;

use flowjoin::prelude::*;

#[path = "chance.rs"]
mod chance;

use chance::Chance;

/// What to write.
pub(crate) struct Shape {
    /// How many orders; there is a user to twenty of them.
    pub(crate) orders: u64,
    /// Where the random numbers begin.
    pub(crate) seed: u64,
}

/// Writes the two files into a directory.
pub(crate) fn write(shape: &Shape, directory: &Path) -> io::Result<()> {
    let mut chance = Chance(shape.seed);
    let users = shape.orders / 20 + 1;
    fs::create_dir_all(directory)?;
    let files = [("vip-levels", levels(users, &mut chance)), ("orders", orders(shape.orders, users, &mut chance))];
    files
        .into_iter()
        .try_for_each(|(name, lines)| fs::write(directory.join(format!("{name}.jsonl")), lines.join("\n") + "\n"))
}

/// None to six changes of the level of each user.
fn levels(users: u64, chance: &mut Chance) -> Vec<String> {
    let mut arrivals = Vec::new();
    for user_id in 0..users {
        for _ in 0..chance.below(7) {
            let since = some_time(chance);
            let line = match chance.one_in(5) {
                true => format!(r#"{{"op":"-D","user_id":{user_id}}}"#),
                false => {
                    format!(r#"{{"op":"+U","user_id":{user_id},"level":{},"since":"{since}"}}"#, 1 + chance.below(5))
                }
            };
            arrivals.push(arrival(since, line, chance));
        }
    }
    in_order(arrivals)
}

fn orders(orders: u64, users: u64, chance: &mut Chance) -> Vec<String> {
    let order = |order_id: u64| {
        let placed_at = some_time(chance);
        let user_id = match chance.one_in(15) {
            true => "null".to_string(),
            false => chance.below(users + users / 10 + 1).to_string(),
        };
        let amount = 100 + chance.below(50_000);
        let line =
            format!(r#"{{"order_id":{order_id},"user_id":{user_id},"amount":{amount},"placed_at":"{placed_at}"}}"#);
        arrival(placed_at, line, chance)
    };
    in_order((0..orders).map(order).collect())
}

fn some_time(chance: &mut Chance) -> EventTime {
    BEGIN.plus(millis(chance.between(0, days(90).as_millis())))
}

// A delay of less than the bound keeps the disorder less than the bound.
fn arrival(time: EventTime, line: String, chance: &mut Chance) -> (EventTime, String) {
    (time.plus(millis(chance.between(0, hours(1).as_millis()))), line)
}

fn in_order(mut arrivals: Vec<(EventTime, String)>) -> Vec<String> {
    arrivals.sort();
    arrivals.into_iter().map(|(_, line)| line).collect()
}

/// 2025-06-01T00:00:00Z.
const BEGIN: EventTime = EventTime::from_millis(1_748_736_000_000);
