//! Window joins: closures without annotations, and what each makes of the result.

use flowjoin::prelude::*;

#[derive(Clone, Serialize, Deserialize, Event, Keyed)]
#[event(time = at)]
struct Fact {
    #[key]
    id: u64,
    worth: i64,
    at: EventTime,
}

fn append_only(flow: &Flow) {
    let stream = |name: &str| flow.stream::<Fact>(JsonLines::file(format!("{name}.jsonl"))).keyed();
    let sink = |name: &str| JsonLines::sink(format!("{name}.jsonl"));

    stream("a").window_join(stream("b")).tumbling(hours(1)).select(|a, b| a.worth + b.worth).sink_to(sink("inner"));
    let join = stream("a").optional().window_join(stream("b").optional()).named("full").sliding(hours(1), minutes(5));
    let (late, _) = join.late();
    let (full, (left, _)) = join.select_with_unmatched(|a, b| a.or(b).map(|either| either.id));
    full.sink_to(sink("full"));
    left.sink_to(sink("left"));
    late.sink_to(sink("late"));
    stream("a").where_exists(stream("b")).session(minutes(5)).into_rows().sink_to(sink("with"));
    stream("a").where_not_exists(stream("b")).tumbling(days(1)).into_rows().sink_to(sink("without"));
    // A row that comes late can only add to the result of required inputs.
    stream("a")
        .window_join(stream("b"))
        .on(|a, b| a.worth < b.worth)
        .session(minutes(5))
        .allowed_lateness(hours(1))
        .into_tuples()
        .sink_to(sink("late-inner"));
    flowjoin::multi_join![stream("a"), stream("b").optional(), stream("c")]
        .on(|a, b, c| a.worth + b.map_or(0, |b| b.worth) == c.worth)
        .tumbling(hours(1))
        .offset(minutes(30))
        .select(|a, b, c| (a.id, b.is_some(), c.worth))
        .sink_to(sink("of-3"));
    let many = flowjoin::multi_join![
        stream("a"),
        stream("b").optional(),
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
    ];
    many.tumbling(hours(1))
        .select(|a, b, c, d, e, f, g, h, i, j, k, l| {
            let rest = [c, d, e, f, g, h, i, j, k, l];
            a.worth + b.map_or(0, |b| b.worth) + rest.iter().map(|row| row.worth).sum::<i64>()
        })
        .sink_to(sink("of-12"));
}

fn changelogs(flow: &Flow) {
    let stream = |name: &str| flow.stream::<Fact>(JsonLines::file(format!("{name}.jsonl"))).keyed();
    let left: Stream<(u64, bool), Changelog> = stream("a")
        .window_join(stream("b").optional())
        .tumbling(hours(1))
        .allowed_lateness(minutes(1))
        .select(|a, b| (a.id, b.is_some()));
    left.sink_to(JsonLines::changelog("left.jsonl"));
    let without: Stream<Fact, Changelog> =
        stream("a").where_not_exists(stream("b")).tumbling(hours(1)).allowed_lateness(minutes(1)).into_rows();
    without.sink_to(JsonLines::changelog("without.jsonl"));
}

fn main() {
    let _ = (append_only, changelogs);
}
