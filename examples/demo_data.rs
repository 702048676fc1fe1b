//! Writes the input of `fulfilment`: orders, their payments and their shipments, as JSON Lines.
//!
//! `cargo run --release --example demo_data -- examples/out/in --orders 200000 --seed 1 --until 2026-01-01T00:00:00Z`
//!
//! An order comes every 432 ms (200,000 in a day). Payments follow after seconds to minutes, shipments after hours. One
//! order in twenty is never paid and one in twenty never shipped; for each twentieth order a payment strays in, of an
//! order that nobody placed. The lines stand as they would have arrived: out of order, by less than the bounds that
//! `fulfilment` declares. The same seed gives the same rows; `--until`, the present hour by default, moves them in time.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flowjoin::prelude::*;

#[path = "chance.rs"]
mod chance;

use chance::Chance;

/// What to write.
pub(crate) struct Shape {
    /// How many orders.
    pub(crate) orders: u64,
    /// Where the random numbers begin.
    pub(crate) seed: u64,
    /// All times are before this one.
    pub(crate) until: EventTime,
}

/// Writes `orders.jsonl`, `payments.jsonl` and `shipments.jsonl` into a directory; returns how many lines each has.
pub(crate) fn write(shape: &Shape, directory: &Path) -> io::Result<[usize; 3]> {
    fs::create_dir_all(directory)?;
    let [mut orders, mut payments, mut shipments] = [Vec::new(), Vec::new(), Vec::new()];
    let mut chance = Chance(shape.seed);
    // The last order can be shipped nine hours after it was placed.
    let span = millis(GAP.as_millis().saturating_mul(shape.orders as i64));
    let begin = shape.until.minus(span).minus(hours(10));
    for index in 0..shape.orders {
        let order_id = 1_000_000 + index;
        let user_id = chance.below(20_000);
        let amount = 100 + chance.below(50_000);
        let placed_at = begin.plus(millis(GAP.as_millis() * index as i64 + chance.between(0, 400)));
        orders.push(Arrival::new(placed_at, chance.between(0, 5_000), || {
            format!(r#"{{"order_id":{order_id},"user_id":{user_id},"amount":{amount},"placed_at":"{placed_at}"}}"#)
        }));
        let mut pay = |order_id: u64, amount: u64, after: i64, chance: &mut Chance| {
            let paid_at = placed_at.plus(millis(after));
            let method = METHODS[chance.below(METHODS.len() as u64) as usize];
            payments.push(Arrival::new(paid_at, chance.between(0, 5_000), || {
                format!(r#"{{"order_id":{order_id},"method":"{method}","amount":{amount},"paid_at":"{paid_at}"}}"#)
            }));
        };
        if !chance.one_in(20) {
            // Most pay within half a minute, some take ten.
            let patience = if chance.one_in(4) { 600_000 } else { 30_000 };
            let after = chance.between(2_000, patience);
            pay(order_id, amount, after, &mut chance);
        }
        if chance.one_in(20) {
            let (nobodys, amount) = (9_000_000 + index, 100 + chance.below(50_000));
            pay(nobodys, amount, 10_000, &mut chance);
        }
        if !chance.one_in(20) {
            let moved_at = placed_at.plus(millis(chance.between(3_600_000, 9 * 3_600_000)));
            let status = STATUSES[chance.below(STATUSES.len() as u64) as usize];
            shipments.push(Arrival::new(moved_at, chance.between(0, 30_000), || {
                format!(r#"{{"order_id":{order_id},"status":"{status}","moved_at":"{moved_at}"}}"#)
            }));
        }
    }
    let files = [("orders", orders), ("payments", payments), ("shipments", shipments)];
    let mut counts = [0; 3];
    for ((name, lines), count) in files.into_iter().zip(&mut counts) {
        *count = lines.len();
        write_lines(&directory.join(format!("{name}.jsonl")), lines)?;
    }
    Ok(counts)
}

/// A line, and when it arrives.
struct Arrival {
    at: i64,
    line: String,
}

impl Arrival {
    // A delay of less than the bound keeps the disorder less than the bound.
    fn new(time: EventTime, delay: i64, line: impl FnOnce() -> String) -> Arrival {
        Arrival { at: time.as_millis() + delay, line: line() }
    }
}

fn write_lines(path: &Path, mut lines: Vec<Arrival>) -> io::Result<()> {
    lines.sort_by_key(|arrival| arrival.at);
    let mut file = BufWriter::new(File::create(path)?);
    for arrival in lines {
        writeln!(file, "{}", arrival.line)?;
    }
    file.flush()
}

/// Between two orders.
const GAP: Span = millis(432);
const METHODS: [&str; 4] = ["card", "bank", "wallet", "invoice"];
const STATUSES: [&str; 3] = ["sent", "in transit", "delivered"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut directory = "examples/out/in".to_string();
    let mut shape = Shape { orders: 200_000, seed: 1, until: present_hour()? };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} takes a value"));
        match argument.as_str() {
            "--orders" => shape.orders = value()?.parse()?,
            "--seed" => shape.seed = value()?.parse()?,
            "--until" => shape.until = value()?.parse()?,
            other if other.starts_with('-') => {
                return Err(format!("unknown option {other}; there are --orders, --seed and --until").into());
            }
            _ => directory = argument,
        }
    }
    let [orders, payments, shipments] = write(&shape, Path::new(&directory))?;
    println!("wrote {orders} orders, {payments} payments and {shipments} shipments to {directory}");
    Ok(())
}

fn present_hour() -> Result<EventTime, std::time::SystemTimeError> {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(EventTime::from_millis(since_epoch.as_secs() as i64 / 3_600 * 3_600_000))
}
