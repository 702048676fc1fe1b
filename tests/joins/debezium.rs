//! Tables out of Debezium events whose keys may be null.

use expect_test::expect;
use flowjoin::prelude::*;
use flowjoin_testkit::TestSink;

use super::tables::check;

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Bed {
    #[key]
    room: u64,
    #[key]
    guest: Option<u64>,
    price: u64,
}

// What stands after each is reckoned by hand: an update takes the row of the key before away, null or not.
#[test]
fn an_update_moves_a_row_away_from_a_key_that_is_null() {
    check(
        |flow| {
            flow.table::<Bed>(Debezium::json("beds.jsonl")).sink_to(TestSink::new("out"));
        },
        r#"beds op=c after={"room":1,"guest":null,"price":3}
         beds op=u before={"room":1,"guest":null,"price":3} after={"room":1,"guest":27,"price":4}
         beds op=u before={"room":1,"guest":27,"price":4} after={"room":1,"guest":null,"price":5}
         beds op=u before={"room":1,"guest":null,"price":5} after={"room":2,"guest":null,"price":5}
         beds op=u before={"room":2,"guest":null,"price":5} after={"room":2,"guest":null,"price":6}"#,
        expect![[r#"
            beds op=c after={"room":1,"guest":null,"price":3}
              out: +I room 1, guest -, price 3
            beds op=u before={"room":1,"guest":null,"price":3} after={"room":1,"guest":27,"price":4}
              out: -D room 1, guest -, price 3
              out: +I room 1, guest 27, price 4
            beds op=u before={"room":1,"guest":27,"price":4} after={"room":1,"guest":null,"price":5}
              out: -D room 1, guest 27, price 4
              out: +I room 1, guest -, price 5
            beds op=u before={"room":1,"guest":null,"price":5} after={"room":2,"guest":null,"price":5}
              out: -D room 1, guest -, price 5
              out: +I room 2, guest -, price 5
            beds op=u before={"room":2,"guest":null,"price":5} after={"room":2,"guest":null,"price":6}
              out: -U room 2, guest -, price 5
              out: +U room 2, guest -, price 6
        "#]],
    );
}
