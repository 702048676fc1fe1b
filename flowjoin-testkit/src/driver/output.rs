//! What comes out at a sink under test: as text, as a value, or as the row that it was.

use flowjoin_core::{EventTime, RowKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TestFlow;

/// A row that has come out at a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// What it does.
    pub kind: RowKind,
    /// The row, as serde writes it.
    pub row: Value,
    /// Its event time.
    pub time: EventTime,
}

impl std::fmt::Display for Output {
    /// `+I order_id 1, amount 100, status -`: the kind, and each field with its value, null as `-`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = |value: &Value| match value {
            Value::Null => "-".to_string(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let row = match &self.row {
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect::<Vec<_>>().join(", ")
            }
            Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
            other => plain(other),
        };
        write!(f, "{} {row}", self.kind)
    }
}

impl TestFlow {
    /// The rows that have come out at a sink since it was last asked.
    ///
    /// # Panics
    /// If there is no such sink.
    pub fn take(&mut self, sink: &str) -> Vec<Output> {
        std::mem::take(&mut self.sink(sink).rows)
    }

    /// The same as the rows that went in: a changelog for a [`ChangelogChecker`](crate::ChangelogChecker), or for the
    /// [`Contents`](crate::oracle::Contents) of what reads it.
    ///
    /// # Panics
    /// If there is no such sink, or its rows are of another type.
    pub fn take_changes<T: DeserializeOwned>(&mut self, sink: &str) -> Vec<(RowKind, T)> {
        let read = |Output { kind, row, .. }: Output| match T::deserialize(&row) {
            Ok(read) => (kind, read),
            Err(error) => panic!("`{sink}` gave {row}, which is no {}: {error}", std::any::type_name::<T>()),
        };
        self.take(sink).into_iter().map(read).collect()
    }

    /// The same as text, a row a line, in the order in which they came out.
    ///
    /// # Panics
    /// If there is no such sink.
    pub fn text(&mut self, sink: &str) -> String {
        self.take(sink).iter().map(Output::to_string).collect::<Vec<_>>().join("\n")
    }

    /// Compares what has come out at a sink since it was last asked: `t.check("paid", expect![["+I id 1"]])`.
    ///
    /// # Panics
    /// If there is no such sink, or it got something else.
    pub fn check(&mut self, sink: &str, expected: expect_test::Expect) -> &mut Self {
        expected.assert_eq(&self.text(sink));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TestSink, TestSource};
    use flowjoin_core::{Event, Flow, TimeError, Watermarks};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Serialize, Deserialize)]
    struct Row(u8);

    impl Event for Row {
        fn event_time(&self, arrival: EventTime) -> Result<EventTime, TimeError> {
            Ok(arrival)
        }

        fn watermarks() -> Watermarks {
            Watermarks::ingestion()
        }
    }

    fn build(flow: &Flow) {
        flow.stream::<Row>(TestSource::new("rows")).map(|row| (row.0, "x".to_string())).sink_to(TestSink::new("out"));
    }

    #[test]
    fn changes_are_read_as_what_went_in() {
        let mut t = TestFlow::new(build);
        t.send_all("rows", vec![Row(1), Row(2)]);
        let changes = t.take_changes::<(u8, String)>("out");
        assert_eq!(changes, [1, 2].map(|n| (RowKind::Insert, (n, "x".to_string()))));
        assert!(t.take("out").is_empty());
    }

    #[test]
    #[should_panic(expected = "`out` gave [1,\"x\"], which is no bool: invalid type: sequence, expected a boolean")]
    fn a_row_of_another_type_is_told() {
        TestFlow::new(build).send("rows", Row(1)).take_changes::<bool>("out");
    }
}
