//! What the schema of an event says about columns whose values do not say it themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use flowjoin_core::TimeUnit;
use serde::Deserialize;

use crate::file::json_place;

/// What the text of a column means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Timestamp(TimeUnit),
    /// Days since 1970.
    Date,
    /// What it says, though it may look like something else.
    Text,
    /// The base64 of the unscaled value.
    Decimal {
        scale: i64,
    },
    /// An object of the base64 and a scale.
    VariableDecimal,
    ArrayOf(Box<Meaning>),
}

/// The columns of a row that mean more than they say.
pub(super) type Columns = BTreeMap<String, Meaning>;

/// The schema of the event before, as that of the next one is most often the same.
#[derive(Default)]
pub(super) struct Schemas {
    text: String,
    columns: Arc<Columns>,
}

/// A type in the JSON form of Kafka Connect.
#[derive(Deserialize)]
struct Type {
    field: Option<String>,
    name: Option<String>,
    #[serde(default)]
    fields: Vec<Type>,
    items: Option<Box<Type>>,
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    scale: Option<String>,
}

impl Schemas {
    /// The columns of the row images of an envelope.
    pub(super) fn of_value(&mut self, schema: &str) -> Result<Arc<Columns>, String> {
        self.known_or(schema, |schema| {
            let is_row = |field: &&Type| matches!(field.field.as_deref(), Some("after" | "before"));
            columns(schema.fields.iter().find(is_row).map_or(&[], |row| row.fields.as_slice()))
        })
    }

    /// The columns of a message key.
    pub(super) fn of_key(&mut self, schema: &str) -> Result<Arc<Columns>, String> {
        self.known_or(schema, |schema| columns(&schema.fields))
    }

    fn known_or(
        &mut self,
        schema: &str,
        columns: impl Fn(&Type) -> Result<Columns, String>,
    ) -> Result<Arc<Columns>, String> {
        if self.text != schema {
            let read = json_place::read(schema).map_err(|reason| format!("in the schema: {reason}"))?;
            self.columns = Arc::new(columns(&read)?);
            self.text = schema.to_string();
        }
        Ok(self.columns.clone())
    }
}

fn columns(fields: &[Type]) -> Result<Columns, String> {
    let mut columns = Columns::new();
    for field in fields {
        let Some(name) = &field.field else { continue };
        let meaning = meaning(field).map_err(|reason| format!("in the schema: `{name}`: {reason}"))?;
        columns.extend(meaning.map(|meaning| (name.clone(), meaning)));
    }
    Ok(columns)
}

fn meaning(of: &Type) -> Result<Option<Meaning>, String> {
    if let Some(items) = &of.items {
        return Ok(meaning(items)?.map(|meaning| Meaning::ArrayOf(Box::new(meaning))));
    }
    Ok(Some(match of.name.as_deref() {
        Some("io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp") => {
            Meaning::Timestamp(TimeUnit::Millis)
        }
        Some("io.debezium.time.MicroTimestamp") => Meaning::Timestamp(TimeUnit::Micros),
        Some("io.debezium.time.NanoTimestamp") => Meaning::Timestamp(TimeUnit::Nanos),
        Some("io.debezium.time.Date" | "org.apache.kafka.connect.data.Date") => Meaning::Date,
        Some("io.debezium.data.VariableScaleDecimal") => Meaning::VariableDecimal,
        Some("org.apache.kafka.connect.data.Decimal") => {
            let scale = of.parameters.as_ref().and_then(|parameters| parameters.scale.as_deref());
            let scale = scale.ok_or("a decimal has to have the parameter `scale`")?;
            let scale = scale.parse().map_err(|_| format!("the scale \"{scale}\" is not an integer"))?;
            Meaning::Decimal { scale }
        }
        Some(_) | None => return Ok(None),
    }))
}
