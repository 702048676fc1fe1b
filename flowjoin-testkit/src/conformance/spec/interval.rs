//! Interval joins.

use flowjoin_core::{EventTime, Span, Watermark, millis};

use super::condition::WrittenCondition;
use super::join::{demand_of, demands_of_steps};
use super::{Condition, Config, Demand, InputSpec, Unbuilt, existence, malformed, roles_of};
use crate::conformance::model::Case;
use crate::oracle::Role;

/// `right.time in [left.time + lower, left.time + upper]`, both ends included, over one key.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalSpec {
    /// The left and the right input.
    pub inputs: [InputSpec; 2],
    /// The least distance, shrunk by 1 ms if the case excludes it.
    pub lower: Span,
    /// The greatest distance, shrunk by 1 ms if the case excludes it.
    pub upper: Span,
    /// Which side may be missing in the result.
    pub optional: [bool; 2],
    /// Whose watermarks the case speaks of.
    pub flavor: Flavor,
    /// Which time the rows are joined by.
    pub time: TimeOf,
    /// How long Flink puts off cleaning up; none if it does not.
    pub min_cleanup: Option<Span>,
    /// What the pairs must fulfil beyond the key.
    pub conditions: Vec<Condition>,
    /// What the case asks for beyond a plain join of append-only inputs.
    pub demands: Vec<Demand>,
}

/// Whose interval join a case was taken from: they draw the line between early and late differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// A row at exactly the watermark is late.
    DataStream,
    /// A row at exactly the watermark is still taken.
    Sql,
}

/// Which time rows are joined by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOf {
    /// The time that rows carry.
    Event,
    /// The clock on their arrival.
    Processing,
}

impl IntervalSpec {
    /// The join of an `interval_join` case.
    ///
    /// # Errors
    /// If the configuration cannot be read here, or is refused by design because the interval is empty.
    pub fn of(case: &Case) -> Result<IntervalSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let join_type: String = config.take("type")?.unwrap_or_default();
        let inputs = config.inputs(2..=12)?;
        let conditions: Vec<WrittenCondition> = config.take("where")?.unwrap_or_default();
        let flavor: Option<String> = config.take("flavor")?;
        let time: Option<String> = config.take("time")?;
        let bound = |config: &mut Config<'_>, name: &str| {
            config.take(name)?.ok_or_else(|| malformed(format!("the interval has no `{name}`")))
        };
        let (lower, upper): (i64, i64) = (bound(&mut config, "lower")?, bound(&mut config, "upper")?);
        let excludes_lower = config.take("lower_inclusive")? == Some(false);
        let excludes_upper = config.take("upper_inclusive")? == Some(false);
        let min_cleanup: Option<i64> = config.take("min_cleanup")?;
        config.finish()?;
        let inputs: [InputSpec; 2] =
            inputs.try_into().map_err(|_| malformed("an interval join has 2 inputs".to_string()))?;
        if inputs[0].key.is_empty() || inputs[0].key.len() != inputs[1].key.len() {
            return Err(Unbuilt::Refused("a join needs one key that both inputs have".to_string()));
        }
        let roles = roles_of(&join_type)?;
        let mut demands: Vec<Demand> = existence(&roles, &join_type).into_iter().collect();
        let conditions = Condition::read_all(&conditions, &inputs)?;
        demands.extend(demand_of(&conditions, &roles));
        // Inputs are append-only: a unique key promises nothing, and a repeated one is a second row.
        let bags = inputs.clone().map(|input| InputSpec { unique_key: None, ..input });
        demands.extend(demands_of_steps(case, &bags, "an interval join takes facts only, by design"));
        let lower = lower.saturating_add(i64::from(excludes_lower));
        let upper = upper.saturating_sub(i64::from(excludes_upper));
        if lower > upper {
            let reason = format!("the interval [{lower} ms, {upper} ms] is empty: nothing could ever match");
            return Err(Unbuilt::Refused(reason));
        }
        Ok(IntervalSpec {
            inputs,
            lower: millis(lower),
            upper: millis(upper),
            optional: roles.map(|role| role == Role::Optional),
            flavor: flavor_of(flavor.as_deref())?,
            time: time_of(time.as_deref())?,
            min_cleanup: min_cleanup.filter(|&span| span > 0).map(millis),
            conditions,
            demands,
        })
    }

    /// The frontier that a watermark `t` of the case stands for.
    ///
    /// In the DataStream flavour a row at `t` is late, so the frontier is t + 1. Flink's SQL join still takes a row at
    /// exactly the watermark, so there the frontier is t. The greatest `t` is the end of time.
    pub fn frontier(&self, t: i64) -> Watermark {
        match self.flavor {
            _ if t == i64::MAX => Watermark::END,
            Flavor::DataStream => Watermark::at(EventTime::from_millis(t + 1)),
            Flavor::Sql => Watermark::at(EventTime::from_millis(t)),
        }
    }

    /// The last time a row of an input can be held at: it leaves when the frontier is beyond this.
    pub fn held_until(&self, input: usize, time: i64) -> i128 {
        let time = i128::from(time);
        if input == 0 { time + i128::from(self.upper.as_millis()) } else { time - i128::from(self.lower.as_millis()) }
    }
}

fn flavor_of(written: Option<&str>) -> Result<Flavor, Unbuilt> {
    match written {
        None | Some("datastream") => Ok(Flavor::DataStream),
        Some("sql") => Ok(Flavor::Sql),
        Some(other) => Err(malformed(format!("there is no flavor `{other}`"))),
    }
}

fn time_of(written: Option<&str>) -> Result<TimeOf, Unbuilt> {
    match written {
        None | Some("event") => Ok(TimeOf::Event),
        Some("processing") => Ok(TimeOf::Processing),
        Some(other) => Err(malformed(format!("there is no time `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::spec::Need;
    use serde_json::{Value, json};

    pub(crate) fn spec(more: Value) -> Result<IntervalSpec, Unbuilt> {
        let input = |name| json!({"name": name, "fields": ["k", "v"], "key": ["k"], "unique_key": null});
        let mut config = json!({"type": "inner", "lower": -5, "upper": 10, "inputs": [input("L"), input("R")]});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let case = json!({"id": "x", "operator": "interval_join", "config": config, "steps": []});
        IntervalSpec::of(&serde_json::from_value(case).unwrap())
    }

    #[test]
    fn excluded_ends_shrink_the_interval_and_an_empty_one_is_refused() {
        let bounds = |more| spec(more).map(|spec| (spec.lower.as_millis(), spec.upper.as_millis()));
        assert_eq!(bounds(json!({})), Ok((-5, 10)));
        assert_eq!(bounds(json!({"lower_inclusive": false, "upper_inclusive": false})), Ok((-4, 9)));
        let empty = bounds(json!({"lower": 0, "upper": 0, "upper_inclusive": false}));
        let reason = "the interval [0 ms, -1 ms] is empty: nothing could ever match".to_string();
        assert_eq!(empty, Err(Unbuilt::Refused(reason)));
    }

    #[test]
    fn the_flavors_draw_the_line_of_lateness_one_apart() {
        let frontier = |flavor: &str, t| spec(json!({"flavor": flavor})).unwrap().frontier(t).time().as_millis();
        assert_eq!((frontier("datastream", 7), frontier("sql", 7)), (8, 7));
        assert_eq!((frontier("datastream", i64::MAX), frontier("sql", i64::MAX)), (i64::MAX, i64::MAX));
    }

    #[test]
    fn options_and_demands_are_read() {
        let all = spec(json!({"type": "full", "time": "processing", "min_cleanup": 15})).unwrap();
        assert_eq!((all.optional, all.time, all.min_cleanup), ([true, true], TimeOf::Processing, Some(millis(15))));
        assert_eq!((all.held_until(0, 1), all.held_until(1, 1)), (11, 6));
        assert_eq!(spec(json!({"type": "semi"})).unwrap().demands[0].need, Need::Existence);
        assert_eq!(spec(json!({"where": [["L.v", "=", 1]]})).unwrap().demands[0].need, Need::Filters);
        for more in [json!({"flavor": "mint"}), json!({"time": "tea"}), json!({"lower": null}), json!({"x": 1})] {
            assert!(matches!(spec(more), Err(Unbuilt::Malformed(_))));
        }
    }
}
