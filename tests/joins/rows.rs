//! Rows of any shape that serde can write: what is compared of them is all of it.

use std::collections::HashMap;

use flowjoin::Table;
use flowjoin::prelude::*;
use flowjoin_testkit::{TestFlow, TestSink, TestSource};

#[derive(Clone, Debug, Serialize, Deserialize, Event, Keyed)]
#[event(time = ingestion)]
struct Profile {
    #[key]
    id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phone: Option<String>,
    #[serde(default)]
    settings: HashMap<String, u64>,
    #[serde(flatten)]
    contact: Contact,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Contact {
    Home { home: String },
    Work { work: String },
}

fn profiles(flow: &Flow) -> Table<u64, Profile> {
    flow.table::<Profile>(TestSource::new("profiles"))
}

fn profile(id: u64) -> Profile {
    let settings = (0..20).map(|n| (format!("setting {n}"), n)).collect();
    Profile { id, mail: None, phone: None, settings, contact: Contact::Home { home: "x".to_string() } }
}

#[test]
fn a_value_that_moves_to_the_next_field_is_an_update() {
    let mut t = TestFlow::new(|flow| profiles(flow).sink_to(TestSink::new("out")));
    t.put("profiles", Profile { mail: Some("x".to_string()), ..profile(1) });
    t.put("profiles", Profile { phone: Some("x".to_string()), ..profile(1) });
    t.put("profiles", Profile { contact: Contact::Work { work: "x".to_string() }, ..profile(1) });
    let kinds: Vec<String> = t.text("out").lines().map(|line| line[..2].to_string()).collect();
    assert_eq!(kinds, ["+I", "-U", "+U", "-U", "+U"]);
}

#[test]
fn a_row_that_comes_again_with_its_map_in_another_order_changes_nothing() {
    let mut t = TestFlow::new(|flow| profiles(flow).sink_to(TestSink::new("out")));
    for _ in 0..5 {
        // Each map hashes in its own way.
        t.put("profiles", profile(1));
    }
    assert_eq!(t.text("out").lines().count(), 1);
}

#[derive(Clone, Debug, Serialize, Deserialize, Event)]
#[event(time = ingestion)]
struct Other {
    id: u64,
}

#[test]
fn a_row_of_a_bag_is_taken_back_whatever_the_order_of_its_map() {
    let mut t = TestFlow::new(|flow| {
        let others = flow.stream::<Other>(TestSource::new("others")).key_by(|other| other.id);
        // Made anew for each half of a change, as `map` does it: the maps of both have other orders.
        let bag = profiles(flow).map(|row| Profile { settings: profile(row.id).settings, ..row });
        let join = bag.key_by(|profile| profile.id).join(others).keep_forever();
        join.select(|profile, _| profile.mail.clone()).sink_to(TestSink::new("out"));
    });
    t.play("others id=1");
    t.put("profiles", Profile { mail: Some("x".to_string()), ..profile(1) });
    assert_eq!(t.text("out"), "+I x");
    t.delete::<Profile>("profiles", 1);
    assert_eq!(t.text("out"), "-D x");
}
