//! The yardstick: the workloads as loops written by hand, with nothing between the rows and the join.
//!
//! It tells how far the framework is from what the machine can do. It keeps the framework's terms: rows are joined as
//! they come, no key is presumed unique, nothing is sized beforehand, interval state is cleaned by watermark, and the
//! checksum of every result row is part of the work.
//!
//! ```text
//! cargo bench --bench limit -- mj3 --size default --threads 2 --runs 5
//! ```

use std::env;
use std::process::ExitCode;

use report::{Report, Request};
use workload::{Answer, Tally, Workload};

#[path = "limit/updates.rs"]
mod by_key;
#[path = "limit/exchange.rs"]
mod exchange;
#[path = "limit/interval.rs"]
mod interval;
#[path = "limit/multi.rs"]
mod multi;
#[path = "support/report.rs"]
mod report;
#[path = "limit/table.rs"]
mod table;
#[path = "limit/temporal.rs"]
mod temporal;
#[path = "support/updates.rs"]
mod updates;
#[path = "limit/window.rs"]
mod window;
#[path = "support/workload.rs"]
mod workload;

fn main() -> ExitCode {
    let request = match Request::parse(env::args().skip(1), &OFFERED) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("limit: {error}");
            return ExitCode::from(2);
        }
    };
    if report::run_all(&request, run) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(workload: Workload, request: &Request) -> Report {
    let &Request { size, parallelism, .. } = request;
    let (seconds, shares) = match workload {
        Workload::Mj3 => exchange::run(parallelism, |_| multi::MultiJoin::<multi::Orders, 3>::new(size)),
        Workload::Mj3Left => exchange::run(parallelism, |_| multi::MultiJoin::<multi::LeftOrders, 3>::new(size)),
        Workload::Updates => exchange::run(parallelism, |_| by_key::Updating::new(size)),
        Workload::Mj10 => exchange::run(parallelism, |_| multi::MultiJoin::<multi::WideInputs, 10>::new(size)),
        Workload::Interval => exchange::run(parallelism, |_| interval::IntervalJoin::new(size, parallelism)),
        Workload::Temporal => exchange::run(parallelism, |_| temporal::TemporalJoin::new(size, parallelism)),
        Workload::Window => exchange::run(parallelism, |_| window::WindowJoin::new(size, parallelism)),
        Workload::IntervalLeft => unreachable!("the request is for offered workloads only"),
    };
    let joined = shares.into_iter().fold(Tally::default(), Tally::merge);
    let answer = Answer::joined(joined);
    Report {
        bench: "limit",
        workload,
        size,
        parallelism,
        seconds,
        answer,
        peak_rss_mb: report::peak_rss_mb(),
        held: None,
    }
}

/// The workloads that exist by hand.
const OFFERED: [Workload; 7] = [
    Workload::Mj3,
    Workload::Mj3Left,
    Workload::Updates,
    Workload::Mj10,
    Workload::Interval,
    Workload::Temporal,
    Workload::Window,
];
