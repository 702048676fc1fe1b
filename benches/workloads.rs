//! The join workloads on flowjoin itself: sources that make their rows, the flow, and sinks that count and sum.
//!
//! ```text
//! cargo bench --bench workloads -- mj3 --size default --parallelism 2 --runs 5
//! ```
//!
//! A line of JSON a run: see `benches/WORKLOADS.md` for what is measured, and `--bench limit` for the yardstick.

use std::env;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use flowjoin::connectors::Generate;
use flowjoin::io::{Endpoint, Sink, TableChange, TakesChanges, Writer};
use flowjoin::prelude::*;
use flowjoin::{Batch, Data, IoError, Report as Accounting, RowKind};
use report::{Held, Report, Request};
use rows::*;
use updates::Change;
use workload::{Answer, Size, Tally, Workload};

#[path = "support/report.rs"]
mod report;
#[path = "workloads/rows.rs"]
mod rows;
#[path = "support/updates.rs"]
mod updates;
#[path = "support/workload.rs"]
mod workload;

fn main() -> ExitCode {
    let request = match Request::parse(env::args().skip(1), &Workload::ALL) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("workloads: {error}");
            return ExitCode::from(2);
        }
    };
    if report::run_all(&request, run) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(workload: Workload, request: &Request) -> Report {
    let &Request { size, parallelism, .. } = request;
    let flow = Flow::new(workload.name());
    let (joined, unmatched) = build(&flow, workload, size, parallelism);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(parallelism).enable_all().build();
    let config = Config::from_env().expect("settings that can be read").quiet().with_parallelism(parallelism);
    let began = Instant::now();
    let ended = runtime.expect("a runtime").block_on(async { flow.start(config)?.wait().await });
    // To the last row that a sink took: giving memory back is not part of the join, here as in the yardstick.
    let seconds = joined.ended().unwrap_or_else(Instant::now).duration_since(began).as_secs_f64();
    let accounting = match ended {
        Ok(accounting) => accounting,
        Err(error) => panic!("{error}"),
    };
    assert!(accounting.is_balanced(), "every row is in one bucket:\n{accounting}");
    let answer = Answer { joined: joined.total(), unmatched: unmatched.map(|sums| sums.total()) };
    let peak_rss_mb = report::peak_rss_mb();
    let held = Some(held(&accounting));
    Report { bench: "workloads", workload, size, parallelism, seconds, answer, peak_rss_mb, held }
}

fn held(accounting: &Accounting) -> Held {
    let inputs = accounting.steps.iter().flat_map(|step| &step.inputs);
    Held {
        rows: inputs.map(|input| input.state_rows).sum(),
        bytes: accounting.steps.iter().map(|step| step.state_bytes).sum(),
        longest_call_ms: accounting.longest_call.as_secs_f64() * 1e3,
    }
}

fn build(flow: &Flow, workload: Workload, size: Size, partitions: usize) -> (Sums, Option<Sums>) {
    let joined = Sums::default();
    match workload {
        Workload::Mj3 => mj3(flow, size, partitions).sink_to(CountSink::new("joined", &joined)),
        Workload::Mj3Left => mj3_left(flow, size, partitions).sink_to(CountSink::new("joined", &joined)),
        Workload::Updates => updating(flow, size, partitions).sink_to(CountSink::new("joined", &joined)),
        Workload::Mj10 => mj10(flow, size, partitions).sink_to(CountSink::new("joined", &joined)),
        Workload::Temporal => temporal(flow, size, partitions).sink_to(CountSink::new("joined", &joined)),
        Workload::Window => windows(flow, size, partitions).sink_to(CountSink::new("joined", &joined)),
        Workload::Interval | Workload::IntervalLeft => {
            let orders = source(flow, "orders", size.rows(), partitions, workload::timed_order).key_by(|o| o.order_id);
            let payments = source(flow, "payments", size.rows(), partitions, workload::timed_payment);
            let payments = payments.key_by(|p| p.order_id);
            let (before, after) = (millis(-workload::INTERVAL_BEFORE_MS), millis(workload::INTERVAL_AFTER_MS));
            let join = orders.interval_join(payments).between(before, after);
            let select = |order: &workload::TimedOrder, payment: &workload::TimedPayment| Paid {
                order_id: order.order_id,
                ordered: order.ts,
                paid: payment.ts,
                method: payment.method,
            };
            if workload == Workload::Interval {
                join.select(select).sink_to(CountSink::new("joined", &joined));
            } else {
                let (paid, (unpaid, _)) = join.select_with_unmatched(select);
                paid.sink_to(CountSink::new("joined", &joined));
                let unmatched = Sums::default();
                unpaid.sink_to(CountSink::new("unmatched", &unmatched));
                return (joined, Some(unmatched));
            }
        }
    }
    (joined, None)
}

fn source<T: Event>(flow: &Flow, name: &str, rows: u64, partitions: usize, row: fn(u64) -> T) -> Stream<T> {
    flow.stream::<T>(Generate::new(name, row).count(rows).partitions(partitions))
}

fn temporal(flow: &Flow, size: Size, partitions: usize) -> Stream<Leveled> {
    let users = size.users();
    let orders = Generate::new("orders", move |index| workload::user_order(index, users));
    // Ten times fewer rows cover the same time: read as fast as the orders, all levels to come would be held.
    let orders =
        flow.stream::<workload::UserOrder>(orders.count(size.rows()).partitions(partitions)).align("time", secs(10));
    let levels = Generate::new("vip", move |index| workload::level(index, users));
    let levels =
        flow.stream::<workload::Level>(levels.count(size.levels()).partitions(partitions)).align("time", secs(10));
    let join = orders.key_by(|order| order.user_id).temporal_join(levels.latest_by_key());
    join.select(|order, level| Leveled { order_id: order.order_id, user_id: order.user_id, level: level.level })
}

fn mj3(flow: &Flow, size: Size, partitions: usize) -> Stream<Order3> {
    let orders = source(flow, "orders", size.rows(), partitions, workload::order).key_by(|o| o.order_id);
    let payments = source(flow, "payments", size.rows(), partitions, workload::payment).key_by(|p| p.order_id);
    let logistics = source(flow, "logistics", size.rows(), partitions, workload::logistics).key_by(|l| l.order_id);
    multi_join![orders, payments, logistics].keep_forever().select(|order, payment, logistics| Order3 {
        order_id: order.order_id,
        amount: order.amount,
        method: Some(payment.method),
        status: Some(logistics.status),
    })
}

fn mj3_left(flow: &Flow, size: Size, partitions: usize) -> Stream<Order3, Changelog> {
    let orders = source(flow, "orders", size.rows(), partitions, workload::order).key_by(|o| o.order_id);
    let payments = source(flow, "payments", size.rows(), partitions, workload::payment).key_by(|p| p.order_id);
    let logistics = source(flow, "logistics", size.rows(), partitions, workload::logistics).key_by(|l| l.order_id);
    multi_join![orders, payments.optional(), logistics.optional()].keep_forever().select(|order, payment, logistics| {
        Order3 {
            order_id: order.order_id,
            amount: order.amount,
            method: payment.map(|p| p.method),
            status: logistics.map(|l| l.status),
        }
    })
}

fn updating(flow: &Flow, size: Size, partitions: usize) -> Stream<Order3, Changelog> {
    let rows = size.rows();
    // All changes of a row have to be read by one reader.
    let readers = 1 << partitions.ilog2();
    let orders = Generate::table("orders", move |number| {
        updates::order_changes(number, rows).map(|change| match change {
            Change::Put(order) => TableChange::Put(order),
            Change::Delete(key) => TableChange::delete(key),
        })
    });
    let orders = flow.table::<workload::Order>(orders.count(updates::order_numbers(rows)).partitions(readers));
    let payments =
        Generate::table("payments", move |number| updates::payment_changes(number, rows).map(TableChange::Put));
    let payments = payments.count(updates::payment_numbers(rows)).partitions(readers);
    let payments = flow.table::<updates::PaymentVersion>(payments);
    let logistics = source(flow, "logistics", rows, partitions, workload::logistics).key_by(|l| l.order_id);
    multi_join![orders, payments, logistics].keep_forever().select(|order, payment, logistics| Order3 {
        order_id: order.order_id,
        amount: order.amount,
        method: Some(payment.method),
        status: Some(logistics.status),
    })
}

fn mj10(flow: &Flow, size: Size, partitions: usize) -> Stream<Wide10> {
    let keys = size.keys();
    let wide = |input: usize| {
        let rows = Generate::new(format!("wide{input}"), move |index| workload::wide(input, index, keys));
        let rows = rows.count(size.wide_rows()).partitions(partitions);
        flow.stream::<workload::Wide>(rows).key_by(|row| row.key)
    };
    multi_join![wide(0), wide(1), wide(2), wide(3), wide(4), wide(5), wide(6), wide(7), wide(8), wide(9)]
        .keep_forever()
        .select(|a, b, c, d, e, f, g, h, i, j| Wide10 {
            key: a.key,
            vals: [a.val, b.val, c.val, d.val, e.val, f.val, g.val, h.val, i.val, j.val],
        })
}

fn windows(flow: &Flow, size: Size, partitions: usize) -> Stream<Together> {
    let orders = source(flow, "orders", size.rows(), partitions, workload::timed_order);
    let payments = source(flow, "payments", size.rows(), partitions, workload::timed_payment);
    let orders = orders.key_by(|order| workload::window_key(order.order_id));
    let payments = payments.key_by(|payment| workload::window_key(payment.order_id));
    orders.window_join(payments).tumbling(millis(workload::WINDOW_MS)).select(|order, payment| Together {
        order: order.order_id,
        payment: payment.order_id,
        window: workload::window_start(order.ts),
    })
}

/// Sums of what a sink has taken, over its tasks, and when the last of them had taken all.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<(Tally, Option<Instant>)>>);

impl Sums {
    fn total(&self) -> Tally {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn ended(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// A sink that counts and sums rows and keeps none.
struct CountSink {
    name: &'static str,
    sums: Sums,
}

impl CountSink {
    fn new(name: &'static str, sums: &Sums) -> CountSink {
        CountSink { name, sums: sums.clone() }
    }
}

impl<T: Data + Counted> Sink<T> for CountSink {
    type Takes = TakesChanges;

    fn endpoint(&self) -> Endpoint {
        Endpoint::new("count", self.name)
    }

    fn open(&self, _: usize, _: usize) -> Result<Box<dyn Writer<T>>, IoError> {
        Ok(Box::new(CountWriter { tally: Tally::default(), sums: self.sums.clone() }))
    }
}

struct CountWriter {
    tally: Tally,
    sums: Sums,
}

#[flowjoin::async_trait]
impl<T: Data + Counted> Writer<T> for CountWriter {
    async fn write(&mut self, batch: Batch<T>) -> Result<(), IoError> {
        for (kind, row, _) in batch.iter() {
            row.count(RowKind::adds(kind), &mut self.tally);
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), IoError> {
        let mut sums = self.sums.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sums = (sums.0.merge(self.tally), Some(Instant::now()));
        Ok(())
    }
}
