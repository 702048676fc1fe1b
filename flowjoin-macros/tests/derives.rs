//! The derives against the traits of the core, which stands in for the facade: the code that comes out names it
//! `::flowjoin`.
#![allow(clippy::unwrap_used)]

extern crate flowjoin_core as flowjoin;

use flowjoin::{Data, Event, EventTime, Keyed, Watermarks, hours, minutes, secs};
use flowjoin_macros::{Event, Keyed};
use serde::{Deserialize, Serialize};

const ARRIVAL: EventTime = EventTime::from_millis(77);

fn millis_of(row: &impl Event) -> i64 {
    row.event_time(ARRIVAL).unwrap().as_millis()
}

#[test]
fn an_order_has_the_time_and_the_key_of_its_fields() {
    #[derive(Clone, Serialize, Deserialize, Event, Keyed)]
    #[event(time = placed_at, out_of_order = "5s", idle = "1m", max_future = "1h")]
    struct Order {
        #[key]
        order_id: u64,
        placed_at: EventTime,
    }
    let order = Order { order_id: 7, placed_at: EventTime::from_millis(5) };
    assert_eq!(millis_of(&order), 5);
    assert_eq!(order.key(), 7);
    let expected = Watermarks::of_field("placed_at").out_of_order(secs(5)).idle(minutes(1)).max_future(hours(1));
    assert_eq!(Order::watermarks(), expected);
}

#[test]
fn a_row_that_does_not_say_when_has_the_time_of_its_arrival() {
    #[derive(Clone, Serialize, Deserialize, Event)]
    #[event(time = ingestion, idle = "1m")]
    struct Tick;
    assert_eq!(Tick.event_time(ARRIVAL).unwrap(), ARRIVAL);
    assert_eq!(Tick::watermarks(), Watermarks::ingestion().idle(minutes(1)));
}

#[test]
fn a_tuple_struct_is_known_by_numbers_and_an_integer_by_its_unit() {
    #[derive(Clone, Serialize, Deserialize, Event, Keyed)]
    #[event(time = 2, unit = "s", max_future = "none")]
    struct Stock(#[key] String, #[key] Option<u64>, i64);
    let stock = Stock("Ghent".to_string(), None, 3);
    assert_eq!(millis_of(&stock), 3_000);
    assert_eq!(stock.key(), ("Ghent".to_string(), None));
    assert_eq!(Stock::watermarks(), Watermarks::of_field("2").any_future());
}

#[test]
fn a_text_that_is_no_time_makes_a_bad_row() {
    #[derive(Clone, Serialize, Deserialize, Event)]
    #[event(time = type)]
    struct Line {
        r#type: String,
    }
    assert_eq!(millis_of(&Line { r#type: "1970-01-01T00:00:01Z".to_string() }), 1_000);
    assert!(Line { r#type: "yesterday".to_string() }.event_time(ARRIVAL).is_err());
    assert_eq!(Line::watermarks(), Watermarks::of_field("type"));
}

#[test]
fn a_generic_struct_is_a_row_if_its_parts_are() {
    #[derive(Clone, Serialize, Deserialize, Event, Keyed)]
    #[event(time = at)]
    struct Reading<K, A, T = u8>
    where
        T: PartialEq,
    {
        #[key]
        sensor: Option<K>,
        #[key]
        place: u8,
        at: A,
        value: T,
    }
    fn key_and_time<T: Data + PartialEq>(value: T) -> ((Option<u64>, u8), i64) {
        let reading = Reading { sensor: Some(4u64), place: 1, at: 9i64, value };
        (reading.key(), millis_of(&reading))
    }
    assert_eq!(key_and_time("high".to_string()), ((Some(4), 1), 9));
}

#[test]
fn structs_that_a_macro_writes_can_be_derived_too() {
    macro_rules! rows {
        ($($name:ident { $time:ident: $ty:ty, $span:literal })*) => {$(
            #[derive(Clone, Serialize, Deserialize, Event, Keyed)]
            #[event(time = $time, out_of_order = $span)]
            struct $name {
                #[key]
                $time: $ty,
            }
        )*};
    }
    rows! { Early { at: u32, "5s" } Late { when: EventTime, "1s" } }
    assert_eq!(millis_of(&Early { at: 1 }), 1);
    assert_eq!(Late { when: ARRIVAL }.key(), ARRIVAL);
    assert_eq!(Late::watermarks(), Watermarks::of_field("when").out_of_order(secs(1)));
}
