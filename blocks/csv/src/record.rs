//! A record as the service returns it: fields in order, and numbers with all their digits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub struct Record(pub Vec<(String, Box<RawValue>)>);

impl Record {
    /// A field as JSON.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(known, value)| (known == name).then(|| value.get()))
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Record;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
                let mut record = Record::default();
                while let Some(field) = map.next_entry()? {
                    record.0.push(field);
                }
                Ok(record)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
