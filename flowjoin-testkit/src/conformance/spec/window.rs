//! Window joins.

use flowjoin_core::{Span, millis};
use serde::Deserialize;

use super::condition::WrittenCondition;
use super::join::demands_of_steps;
use super::{Condition, Config, Demand, InputSpec, Unbuilt, malformed, roles_of};
use crate::conformance::model::Case;
use crate::oracle::{Role, Windows};

/// Rows of one key that are in the same window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// The left and the right input.
    pub inputs: [InputSpec; 2],
    /// What they are to each other.
    pub roles: [Role; 2],
    /// The windows.
    pub windows: Windows,
    /// How long a window takes rows after it has fired.
    pub lateness: Span,
    /// What the pairs must fulfil beyond the key.
    pub conditions: Vec<Condition>,
    /// What the case asks for beyond append-only inputs.
    pub demands: Vec<Demand>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWindow {
    kind: String,
    size: Option<i64>,
    slide: Option<i64>,
    offset: Option<i64>,
    gap: Option<i64>,
}

impl WindowSpec {
    /// The join of a `window_join` case.
    ///
    /// # Errors
    /// If the configuration cannot be read here.
    pub fn of(case: &Case) -> Result<WindowSpec, Unbuilt> {
        let mut config = Config::of(&case.config);
        let join_type: String = config.take("type")?.unwrap_or_default();
        let inputs = config.inputs(2..=12)?;
        let conditions: Vec<WrittenCondition> = config.take("where")?.unwrap_or_default();
        let window: Option<WrittenWindow> = config.take("window")?;
        let lateness: Option<i64> = config.take("allowed_lateness")?;
        // Both draw the line of lateness alike.
        let flavor: Option<String> = config.take("flavor")?;
        if let Some(other) = flavor.filter(|flavor| flavor != "sql" && flavor != "datastream") {
            return Err(malformed(format!("there is no flavor `{other}`")));
        }
        config.finish()?;
        let inputs: [InputSpec; 2] =
            inputs.try_into().map_err(|_| malformed("a window join has 2 inputs".to_string()))?;
        if inputs[0].key.is_empty() || inputs[0].key.len() != inputs[1].key.len() {
            return Err(Unbuilt::Refused("a join needs one key that both inputs have".to_string()));
        }
        let conditions = Condition::read_all(&conditions, &inputs)?;
        // Inputs are append-only: a unique key promises nothing, and a repeated one is a second row.
        let bags = inputs.clone().map(|input| InputSpec { unique_key: None, ..input });
        Ok(WindowSpec {
            inputs,
            roles: roles_of(&join_type)?,
            windows: windows(window)?,
            lateness: millis(lateness.unwrap_or(0)),
            conditions,
            demands: demands_of_steps(case, &bags, "a window join takes facts only, by design"),
        })
    }
}

fn windows(window: Option<WrittenWindow>) -> Result<Windows, Unbuilt> {
    let Some(WrittenWindow { kind, size, slide, offset, gap }) = window else {
        return Err(malformed("the case has no windows".to_string()));
    };
    let offset = millis(offset.unwrap_or(0));
    match (kind.as_str(), size, slide, gap) {
        ("tumbling", Some(size), None, None) => Ok(Windows::Every { size: millis(size), slide: millis(size), offset }),
        ("hop", Some(size), Some(slide), None) => {
            Ok(Windows::Every { size: millis(size), slide: millis(slide), offset })
        }
        ("session", None, None, Some(gap)) => Ok(Windows::Session { gap: millis(gap) }),
        (kind, ..) => Err(malformed(format!("a `{kind}` window does not have these options"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(more: Value) -> Result<WindowSpec, Unbuilt> {
        let input = |name| json!({"name": name, "fields": ["k", "v"], "key": ["k"], "unique_key": null});
        let mut config = json!({"type": "inner", "inputs": [input("L"), input("R")]});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let case = json!({"id": "x", "operator": "window_join", "config": config, "steps": []});
        WindowSpec::of(&serde_json::from_value(case).unwrap())
    }

    #[test]
    fn the_windows_of_a_case_are_read() {
        let windows = |window| spec(json!({"window": window})).map(|spec| spec.windows);
        let every = |size, slide, offset| {
            Ok(Windows::Every { size: millis(size), slide: millis(slide), offset: millis(offset) })
        };
        assert_eq!(windows(json!({"kind": "tumbling", "size": 10})), every(10, 10, 0));
        assert_eq!(windows(json!({"kind": "hop", "size": 10, "slide": 5, "offset": 3})), every(10, 5, 3));
        assert_eq!(windows(json!({"kind": "session", "gap": 5})), Ok(Windows::Session { gap: millis(5) }));
        for wrong in [json!({"kind": "hop", "size": 10}), json!({"kind": "moon", "size": 1}), json!(null)] {
            assert!(matches!(windows(wrong), Err(Unbuilt::Malformed(_))));
        }
    }

    #[test]
    fn other_options_are_read_and_unknown_ones_refused() {
        let window = json!({"kind": "session", "gap": 5});
        let all = spec(json!({"window": window, "type": "anti", "allowed_lateness": 7, "flavor": "sql"})).unwrap();
        assert_eq!((all.roles, all.lateness), ([Role::Required, Role::NotExists], millis(7)));
        for more in [json!({"flavor": "mint"}), json!({"x": 1}), json!({"type": "odd"})] {
            let mut config = json!({"window": window});
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert!(matches!(spec(config), Err(Unbuilt::Malformed(_))));
        }
    }
}
