//! Closures without annotations, in joins of 2 to 12 inputs of which any may be optional; and every name from `flowjoin`.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = at)]
struct Fact {
    #[key]
    id: u64,
    worth: i64,
    at: EventTime,
}

// Names that a macro must not fall over.
mod core {}
mod std {}
mod flowjoin_core {}
mod flowjoin_macros {}
fn multi_join() {}

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Shadowed {
    #[key]
    id: Option<u64>,
}

fn joins(flow: &Flow) {
    let stream = |name: &str| flow.stream::<Fact>(JsonLines::file(format!("{name}.jsonl"))).keyed();
    let sink = |name: &str| JsonLines::changelog(format!("{name}.jsonl"));

    flowjoin::multi_join![stream("a"), stream("b").optional()]
        .ttl(hours(1))
        .select(|a, b| a.worth + b.map_or(0, |b| b.worth))
        .sink_to(sink("of-2-0"));

    flowjoin::multi_join![stream("a").optional(), stream("b")]
        .ttl(hours(1))
        .select(|a, b| a.map_or(0, |a| a.worth) + b.worth)
        .sink_to(sink("of-2-1"));

    flowjoin::multi_join![stream("a"), stream("b")]
        .ttl(hours(1))
        .select(|a, b| a.worth + b.worth)
        .sink_to(sink("of-2-2"));

    flowjoin::multi_join![stream("a"), stream("b").optional(), stream("c")]
        .ttl(hours(1))
        .select(|a, b, c| a.worth + b.map_or(0, |b| b.worth) + c.worth)
        .sink_to(sink("of-3-0"));

    flowjoin::multi_join![stream("a").optional(), stream("b"), stream("c")]
        .ttl(hours(1))
        .select(|a, b, c| a.map_or(0, |a| a.worth) + b.worth + c.worth)
        .sink_to(sink("of-3-1"));

    flowjoin::multi_join![stream("a"), stream("b"), stream("c")]
        .ttl(hours(1))
        .select(|a, b, c| a.worth + b.worth + c.worth)
        .sink_to(sink("of-3-2"));

    flowjoin::multi_join![stream("a"), stream("b").optional(), stream("c"), stream("d").optional()]
        .ttl(hours(1))
        .select(|a, b, c, d| a.worth + b.map_or(0, |b| b.worth) + c.worth + d.map_or(0, |d| d.worth))
        .sink_to(sink("of-4-0"));

    flowjoin::multi_join![stream("a").optional(), stream("b"), stream("c"), stream("d").optional()]
        .ttl(hours(1))
        .select(|a, b, c, d| a.map_or(0, |a| a.worth) + b.worth + c.worth + d.map_or(0, |d| d.worth))
        .sink_to(sink("of-4-1"));

    flowjoin::multi_join![stream("a"), stream("b"), stream("c"), stream("d")]
        .ttl(hours(1))
        .select(|a, b, c, d| a.worth + b.worth + c.worth + d.worth)
        .sink_to(sink("of-4-2"));

    flowjoin::multi_join![stream("a"), stream("b").optional(), stream("c"), stream("d").optional(), stream("e")]
        .ttl(hours(1))
        .select(|a, b, c, d, e| a.worth + b.map_or(0, |b| b.worth) + c.worth + d.map_or(0, |d| d.worth) + e.worth)
        .sink_to(sink("of-5-0"));

    flowjoin::multi_join![stream("a").optional(), stream("b"), stream("c"), stream("d").optional(), stream("e")]
        .ttl(hours(1))
        .select(|a, b, c, d, e| a.map_or(0, |a| a.worth) + b.worth + c.worth + d.map_or(0, |d| d.worth) + e.worth)
        .sink_to(sink("of-5-1"));

    flowjoin::multi_join![stream("a"), stream("b"), stream("c"), stream("d"), stream("e")]
        .ttl(hours(1))
        .select(|a, b, c, d, e| a.worth + b.worth + c.worth + d.worth + e.worth)
        .sink_to(sink("of-5-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional()
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f| {
        a.worth + b.map_or(0, |b| b.worth) + c.worth + d.map_or(0, |d| d.worth) + e.worth + f.map_or(0, |f| f.worth)
    })
    .sink_to(sink("of-6-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f| {
        a.map_or(0, |a| a.worth) + b.worth + c.worth + d.map_or(0, |d| d.worth) + e.worth + f.worth
    })
    .sink_to(sink("of-6-1"));

    flowjoin::multi_join![stream("a"), stream("b"), stream("c"), stream("d"), stream("e"), stream("f")]
        .ttl(hours(1))
        .select(|a, b, c, d, e, f| a.worth + b.worth + c.worth + d.worth + e.worth + f.worth)
        .sink_to(sink("of-6-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional(),
        stream("g")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g| {
        a.worth
            + b.map_or(0, |b| b.worth)
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.map_or(0, |f| f.worth)
            + g.worth
    })
    .sink_to(sink("of-7-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f"),
        stream("g").optional()
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g| {
        a.map_or(0, |a| a.worth)
            + b.worth
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.worth
            + g.map_or(0, |g| g.worth)
    })
    .sink_to(sink("of-7-1"));

    flowjoin::multi_join![stream("a"), stream("b"), stream("c"), stream("d"), stream("e"), stream("f"), stream("g")]
        .ttl(hours(1))
        .select(|a, b, c, d, e, f, g| a.worth + b.worth + c.worth + d.worth + e.worth + f.worth + g.worth)
        .sink_to(sink("of-7-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional(),
        stream("g"),
        stream("h").optional()
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h| {
        a.worth
            + b.map_or(0, |b| b.worth)
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.map_or(0, |f| f.worth)
            + g.worth
            + h.map_or(0, |h| h.worth)
    })
    .sink_to(sink("of-8-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f"),
        stream("g").optional(),
        stream("h")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h| {
        a.map_or(0, |a| a.worth)
            + b.worth
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.worth
            + g.map_or(0, |g| g.worth)
            + h.worth
    })
    .sink_to(sink("of-8-1"));

    flowjoin::multi_join![
        stream("a"),
        stream("b"),
        stream("c"),
        stream("d"),
        stream("e"),
        stream("f"),
        stream("g"),
        stream("h")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h| a.worth + b.worth + c.worth + d.worth + e.worth + f.worth + g.worth + h.worth)
    .sink_to(sink("of-8-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional(),
        stream("g"),
        stream("h").optional(),
        stream("i")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i| {
        a.worth
            + b.map_or(0, |b| b.worth)
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.map_or(0, |f| f.worth)
            + g.worth
            + h.map_or(0, |h| h.worth)
            + i.worth
    })
    .sink_to(sink("of-9-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f"),
        stream("g").optional(),
        stream("h"),
        stream("i")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i| {
        a.map_or(0, |a| a.worth)
            + b.worth
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.worth
            + g.map_or(0, |g| g.worth)
            + h.worth
            + i.worth
    })
    .sink_to(sink("of-9-1"));

    flowjoin::multi_join![
        stream("a"),
        stream("b"),
        stream("c"),
        stream("d"),
        stream("e"),
        stream("f"),
        stream("g"),
        stream("h"),
        stream("i")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i| {
        a.worth + b.worth + c.worth + d.worth + e.worth + f.worth + g.worth + h.worth + i.worth
    })
    .sink_to(sink("of-9-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional(),
        stream("g"),
        stream("h").optional(),
        stream("i"),
        stream("j").optional()
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j| {
        a.worth
            + b.map_or(0, |b| b.worth)
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.map_or(0, |f| f.worth)
            + g.worth
            + h.map_or(0, |h| h.worth)
            + i.worth
            + j.map_or(0, |j| j.worth)
    })
    .sink_to(sink("of-10-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f"),
        stream("g").optional(),
        stream("h"),
        stream("i"),
        stream("j").optional()
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j| {
        a.map_or(0, |a| a.worth)
            + b.worth
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.worth
            + g.map_or(0, |g| g.worth)
            + h.worth
            + i.worth
            + j.map_or(0, |j| j.worth)
    })
    .sink_to(sink("of-10-1"));

    flowjoin::multi_join![
        stream("a"),
        stream("b"),
        stream("c"),
        stream("d"),
        stream("e"),
        stream("f"),
        stream("g"),
        stream("h"),
        stream("i"),
        stream("j")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j| {
        a.worth + b.worth + c.worth + d.worth + e.worth + f.worth + g.worth + h.worth + i.worth + j.worth
    })
    .sink_to(sink("of-10-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional(),
        stream("g"),
        stream("h").optional(),
        stream("i"),
        stream("j").optional(),
        stream("k")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j, k| {
        a.worth
            + b.map_or(0, |b| b.worth)
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.map_or(0, |f| f.worth)
            + g.worth
            + h.map_or(0, |h| h.worth)
            + i.worth
            + j.map_or(0, |j| j.worth)
            + k.worth
    })
    .sink_to(sink("of-11-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f"),
        stream("g").optional(),
        stream("h"),
        stream("i"),
        stream("j").optional(),
        stream("k")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j, k| {
        a.map_or(0, |a| a.worth)
            + b.worth
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.worth
            + g.map_or(0, |g| g.worth)
            + h.worth
            + i.worth
            + j.map_or(0, |j| j.worth)
            + k.worth
    })
    .sink_to(sink("of-11-1"));

    flowjoin::multi_join![
        stream("a"),
        stream("b"),
        stream("c"),
        stream("d"),
        stream("e"),
        stream("f"),
        stream("g"),
        stream("h"),
        stream("i"),
        stream("j"),
        stream("k")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j, k| {
        a.worth + b.worth + c.worth + d.worth + e.worth + f.worth + g.worth + h.worth + i.worth + j.worth + k.worth
    })
    .sink_to(sink("of-11-2"));

    flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f").optional(),
        stream("g"),
        stream("h").optional(),
        stream("i"),
        stream("j").optional(),
        stream("k"),
        stream("l").optional()
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j, k, l| {
        a.worth
            + b.map_or(0, |b| b.worth)
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.map_or(0, |f| f.worth)
            + g.worth
            + h.map_or(0, |h| h.worth)
            + i.worth
            + j.map_or(0, |j| j.worth)
            + k.worth
            + l.map_or(0, |l| l.worth)
    })
    .sink_to(sink("of-12-0"));

    flowjoin::multi_join![
        stream("a").optional(),
        stream("b"),
        stream("c"),
        stream("d").optional(),
        stream("e"),
        stream("f"),
        stream("g").optional(),
        stream("h"),
        stream("i"),
        stream("j").optional(),
        stream("k"),
        stream("l")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j, k, l| {
        a.map_or(0, |a| a.worth)
            + b.worth
            + c.worth
            + d.map_or(0, |d| d.worth)
            + e.worth
            + f.worth
            + g.map_or(0, |g| g.worth)
            + h.worth
            + i.worth
            + j.map_or(0, |j| j.worth)
            + k.worth
            + l.worth
    })
    .sink_to(sink("of-12-1"));

    flowjoin::multi_join![
        stream("a"),
        stream("b"),
        stream("c"),
        stream("d"),
        stream("e"),
        stream("f"),
        stream("g"),
        stream("h"),
        stream("i"),
        stream("j"),
        stream("k"),
        stream("l")
    ]
    .ttl(hours(1))
    .select(|a, b, c, d, e, f, g, h, i, j, k, l| {
        a.worth
            + b.worth
            + c.worth
            + d.worth
            + e.worth
            + f.worth
            + g.worth
            + h.worth
            + i.worth
            + j.worth
            + k.worth
            + l.worth
    })
    .sink_to(sink("of-12-2"));

    let (both, (left, right)) = stream("a")
        .interval_join(stream("b").optional())
        .between(-secs(5), secs(30))
        .exclusive_upper()
        .select_with_unmatched(|a, b| (a.id, b.map(|b| b.worth)));
    // An interval join is append-only whatever is optional, and so is a join of required append-only inputs.
    both.sink_to(JsonLines::sink("both.jsonl"));
    left.sink_to(JsonLines::sink("left.jsonl"));
    right.sink_to(JsonLines::sink("right.jsonl"));
    stream("a").join(stream("b")).keep_forever().into_tuples().sink_to(JsonLines::sink("tuples.jsonl"));
    stream("a")
        .ttl(minutes(5))
        .optional()
        .join(stream("b").keep_forever().optional())
        .ttl(days(1))
        .select(|a, b| a.or(b).map(|either| either.id))
        .sink_to(sink("full"));
}

// What a user has to name: handles, with one parameter or two.
fn big(facts: Stream<Fact>) -> Stream<Fact> {
    facts.filter(|fact| fact.worth > 1_000)
}

fn by_worth(facts: Stream<Fact, Changelog>) -> KeyedStream<i64, Fact, Changelog> {
    facts.key_by(|fact| fact.worth)
}

fn main() {
    let _ = (joins, big, by_worth, multi_join);
}
