//! The configurations of joins, read from the `config` of a case into types.
//!
//! What a configuration asks for beyond a plain join (conditions, retracting inputs, …) is listed as [`Demand`]s, so
//! that an engine says which of them it meets, and a case that asks for more is not applicable with its reason.

mod condition;
mod holdings;
mod interval;
mod join;
mod materializer;
mod multi;
mod temporal;
mod window;

pub use condition::{Comparison, Condition, Operand};
pub use holdings::{Effect, Holdings};
pub use interval::{Flavor, IntervalSpec, TimeOf};
pub use join::JoinSpec;
pub use materializer::MaterializerSpec;
pub use temporal::{AsOf, TemporalSpec};
pub use window::WindowSpec;

use std::ops::RangeInclusive;

use flowjoin_core::{Span, millis};
use serde::Deserialize;
use serde_json::Value;

use super::cell::{Cell, CellRow, cells};
use super::engine::Unbuilt;
use crate::oracle::Role;

/// One input of a join.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// Its name, as conditions use it.
    pub name: String,
    /// The names of the values of its rows.
    pub fields: Vec<String>,
    /// The places of the values that make the key, in the order that all inputs share.
    pub key: Vec<usize>,
    /// The places of the values that no two rows share; none is a bag of rows.
    pub unique_key: Option<Vec<usize>>,
    /// How long a row is kept, by processing time; none is for ever.
    pub ttl: Option<Span>,
}

impl InputSpec {
    /// The key of a row; none if a part of it is null (or not there).
    pub fn key_of(&self, row: &[Value]) -> Option<CellRow> {
        let part = |&place: &usize| row.get(place).map(Cell::from).filter(|cell| !cell.is_null());
        self.key.iter().map(part).collect()
    }

    /// What makes a row unique; none where rows are a bag.
    pub fn unique_of(&self, row: &[Value]) -> Option<CellRow> {
        let places = self.unique_key.as_ref()?;
        Some(places.iter().map(|&place| row.get(place).map_or(Cell::Null, Cell::from)).collect())
    }
}

/// Something that a case needs beyond a plain join of append-only inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// What it is.
    pub need: Need,
    /// The same in words, with its place in the case.
    pub reason: String,
}

/// The kinds of demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Conditions beyond the key, where all inputs are required.
    Filters,
    /// Conditions beyond the key, where some input is optional.
    Conditions,
    /// Semi and anti joins.
    Existence,
    /// Rows that are taken back or updated.
    Retractions,
    /// A row that replaces one with the same unique key.
    Replacements,
    /// A time-to-live that begins anew when a partner comes or goes.
    Refreshes,
}

/// Whether an engine that meets `met` can play a case with these demands.
///
/// # Errors
/// With the reason, if there is a demand that it does not meet.
pub fn check_demands(demands: &[Demand], met: &[Need]) -> Result<(), Unbuilt> {
    match demands.iter().find(|demand| !met.contains(&demand.need)) {
        None => Ok(()),
        Some(demand) => Err(Unbuilt::NotApplicable(demand.reason.clone())),
    }
}

/// How many values the rows of each input have; empty where the configuration does not say.
pub fn widths(config: &Value) -> Vec<usize> {
    let inputs = config.get("inputs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let width = |input: &Value| input.get("fields").and_then(Value::as_array).map(Vec::len);
    inputs.iter().map(width).collect::<Option<_>>().unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenInput {
    name: String,
    fields: Vec<String>,
    #[serde(default)]
    key: Vec<String>,
    #[serde(default)]
    unique_key: Option<Vec<String>>,
    #[serde(default)]
    ttl_ms: Option<i64>,
}

// The fields of a configuration, taken one by one so that one that nobody knows is noticed at the end.
struct Config<'a> {
    fields: Vec<(&'a str, &'a Value)>,
}

impl<'a> Config<'a> {
    fn of(config: &'a Value) -> Config<'a> {
        let fields = config.as_object().into_iter().flatten();
        Config { fields: fields.map(|(name, value)| (name.as_str(), value)).collect() }
    }

    fn take<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Unbuilt> {
        let Some(place) = self.fields.iter().position(|(field, _)| *field == name) else {
            return Ok(None);
        };
        let (_, value) = self.fields.swap_remove(place);
        let parsed: Result<Option<T>, _> = serde_json::from_value(value.clone());
        parsed.map_err(|error| malformed(format!("the option `{name}`: {error}")))
    }

    fn inputs(&mut self, count: RangeInclusive<usize>) -> Result<Vec<InputSpec>, Unbuilt> {
        let written: Vec<WrittenInput> = self.take("inputs")?.unwrap_or_default();
        let inputs = written.len();
        if inputs < *count.start() {
            return Err(malformed(format!("there are {inputs} inputs, and {} are needed", count.start())));
        }
        if inputs > *count.end() {
            return Err(not_applicable(format!("{inputs} inputs are more than {}", count.end())));
        }
        written.into_iter().map(input_spec).collect()
    }

    fn finish(self) -> Result<(), Unbuilt> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(malformed(format!("there is no option `{name}`"))),
        }
    }
}

fn input_spec(written: WrittenInput) -> Result<InputSpec, Unbuilt> {
    let key = places(&written.key, &written.name, &written.fields)?;
    let unique_key =
        written.unique_key.as_ref().map(|names| places(names, &written.name, &written.fields)).transpose()?;
    // A time-to-live of 0 is none, as in Flink's options.
    let ttl = written.ttl_ms.filter(|&ttl| ttl > 0).map(millis);
    Ok(InputSpec { name: written.name.clone(), fields: written.fields.clone(), key, unique_key, ttl })
}

fn places(names: &[String], input: &str, fields: &[String]) -> Result<Vec<usize>, Unbuilt> {
    let place = |name: &String| {
        let missing = || malformed(format!("the input `{input}` has no field `{name}`"));
        fields.iter().position(|field| field == name).ok_or_else(missing)
    };
    names.iter().map(place).collect()
}

fn not_applicable(reason: String) -> Unbuilt {
    Unbuilt::NotApplicable(reason)
}

fn malformed(reason: String) -> Unbuilt {
    Unbuilt::Malformed(reason)
}

// What the two inputs of a join of this type are.
fn roles_of(join_type: &str) -> Result<[Role; 2], Unbuilt> {
    match join_type {
        "inner" => Ok([Role::Required, Role::Required]),
        "left" => Ok([Role::Required, Role::Optional]),
        "right" => Ok([Role::Optional, Role::Required]),
        "full" => Ok([Role::Optional, Role::Optional]),
        "semi" => Ok([Role::Required, Role::Exists]),
        "anti" => Ok([Role::Required, Role::NotExists]),
        other => Err(malformed(format!("there is no join type `{other}`"))),
    }
}

fn existence(roles: &[Role; 2], join_type: &str) -> Option<Demand> {
    let filters = matches!(roles[1], Role::Exists | Role::NotExists);
    filters.then(|| Demand { need: Need::Existence, reason: format!("{join_type} joins are not played here yet") })
}
