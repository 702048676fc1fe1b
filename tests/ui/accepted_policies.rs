//! Conditions, semi and anti joins, gap and expiry policies, tables: closures without annotations, and what each makes of
//! the result.

use flowjoin::prelude::*;
use flowjoin::{Eager, EagerAfter, Final, Retract, Silent, Table, Unmatch};

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = at)]
struct Fact {
    #[key]
    id: u64,
    worth: Option<i64>,
    at: EventTime,
}

fn append_only(flow: &Flow) {
    let stream = |name: &str| flow.stream::<Fact>(JsonLines::file(format!("{name}.jsonl"))).keyed();
    let sink = |name: &str| JsonLines::sink(format!("{name}.jsonl"));

    // A gap that is told when nothing can fill it is never taken back.
    stream("a")
        .join(stream("b").optional().emit(Final))
        .ttl(hours(1))
        .select(|a, b| (a.id, b.map(|b| b.worth)))
        .sink_to(sink("left"));
    flowjoin::multi_join![stream("a").optional().emit(Final), stream("b"), stream("c").optional().emit(Final)]
        .ttl(hours(1))
        .on_expiry(Silent)
        .into_tuples()
        .sink_to(sink("of-3"));
    stream("a").where_exists(stream("b")).ttl(hours(1)).into_rows().sink_to(sink("known"));
    // Near in time, a row comes out once and is never taken back.
    stream("a").where_exists(stream("b")).between(-secs(5), secs(5)).into_rows().sink_to(sink("near"));
    stream("a")
        .where_not_exists(stream("b"))
        .on(|a, b| a.worth == b.worth)
        .between(secs(0), secs(5))
        .into_rows()
        .sink_to(sink("far"));
    stream("a").interval_join(stream("b").optional()).between(secs(0), secs(5)).into_tuples().sink_to(sink("closed"));
    stream("a")
        .interval_join(stream("b"))
        .on(|a, b| Some(a.worth? < b.worth?))
        .between(secs(0), secs(5))
        .into_tuples()
        .sink_to(sink("dearer"));
    stream("a").join(stream("b")).on(|a, b| a.worth == b.worth).ttl(hours(1)).into_tuples().sink_to(sink("worth"));
}

fn changelogs(flow: &Flow) {
    let stream = |name: &str| flow.stream::<Fact>(JsonLines::file(format!("{name}.jsonl"))).keyed();
    let table = flow.table::<Fact>(JsonLines::table("t.jsonl"));
    let sink = |name: &str| JsonLines::changelog(format!("{name}.jsonl"));

    stream("a")
        .join(stream("b").optional().emit(EagerAfter(secs(5))))
        .ttl(hours(1))
        .into_tuples()
        .sink_to(sink("delayed"));
    // A gap that is told before its interval has closed may be filled.
    stream("a")
        .interval_join(stream("b").optional().emit(Eager))
        .between(secs(0), secs(5))
        .into_tuples()
        .sink_to(sink("early"));
    stream("a")
        .optional()
        .interval_join(stream("b").optional().emit(EagerAfter(secs(1))))
        .between(secs(0), secs(5))
        .select(|a, b| (a.map(|a| a.id), b.map(|b| b.id)))
        .sink_to(sink("soon"));
    stream("a").join(stream("b")).ttl(hours(1)).on_expiry(Retract).into_tuples().sink_to(sink("recent"));
    stream("a").where_not_exists(table.clone()).keep_forever().into_rows().sink_to(sink("unknown"));
    let (known, (_, unused)) = stream("a").where_exists(table.clone()).keep_forever().into_rows_with_unmatched();
    known.sink_to(sink("known"));
    unused.sink_to(JsonLines::sink("unused.jsonl"));
    // A condition of a third input sees those before it, as they are: the second may be missing.
    flowjoin::multi_join(stream("a"))
        .and(stream("b").optional())
        .and(table.clone().optional())
        .on(|a, b, c| Some(a.worth? + b?.worth? < c.worth?))
        .ttl(hours(1))
        .on_expiry(Unmatch)
        .select(|a, b, c| (a.id, b.is_some(), c.is_some()))
        .sink_to(sink("conditional"));
    by_worth(&table).join(table.optional().keep_forever()).keep_forever().into_tuples().sink_to(sink("tables"));
}

// The type of the result says whether it can be corrected.
fn as_of(flow: &Flow) {
    let stream = |name: &str| flow.stream::<Fact>(JsonLines::file(format!("{name}.jsonl"))).keyed();
    let table = flow.table::<Fact>(JsonLines::table("t.jsonl"));
    let join = stream("a").temporal_join(table.clone());
    let late: Stream<Late<Fact>> = join.late();
    late.sink_to(JsonLines::sink("late.jsonl"));
    let told: Stream<_> = join.keep_versions(days(1)).select(|a, t| (a.id, t.worth));
    told.sink_to(JsonLines::sink("told.jsonl"));
    let (told, alone) =
        stream("a").temporal_join(table.optional()).named("left").select_with_unmatched(|a, t| (a.id, t.is_some()));
    told.sink_to(JsonLines::sink("left.jsonl"));
    alone.sink_to(JsonLines::sink("alone.jsonl"));
    let facts = flow.stream::<Fact>(JsonLines::file("f.jsonl")).latest_by_key();
    let corrected: Stream<(Fact, Fact), Changelog> =
        stream("a").temporal_join(facts.clone()).correct_late(minutes(5)).named("corrected").into_tuples();
    corrected.sink_to(JsonLines::changelog("corrected.jsonl"));

    let join = stream("a").snapshot_join(facts.optional()).named("now").after_load(flowjoin::Loaded::caught_up());
    let now: Stream<_> = join.select(|a, f| (a.id, f.is_some()));
    now.sink_to(JsonLines::sink("now.jsonl"));
    // Of a keyed changelog all rows that stand are met.
    stream("a").snapshot_join(by_worth(&table)).into_tuples().sink_to(JsonLines::sink("all.jsonl"));
}

// What a user has to name.
fn by_worth(table: &Table<u64, Fact>) -> KeyedStream<u64, Fact, Changelog> {
    table.filter(|fact| fact.worth.is_some()).key_by(|fact| fact.id + 1).unique_by(|fact| fact.id)
}

fn main() {
    let _ = (append_only, changelogs, as_of);
}
