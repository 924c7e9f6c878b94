//! The arguments of a tool. They are the members of one object, and stay text until the tool reads them.

use blockbase_app::run_offloaded;
use blockbase_app::schema::json::{Members, Misfit, parse_list, strict_from_str, write_string};
use blockbase_app::schema::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The arguments of one call. The tool moves them out one by one.
pub(crate) struct Arguments(Members);

/// The text that replaces missing arguments.
pub(crate) const NONE: &str = "{}";

fn unfit(name: &str, error: &Misfit) -> Error {
    Error::invalid_request(format!("`{name}` does not match the tool's input schema: {error}.")).with_field(name)
}

impl Arguments {
    /// Reads the arguments of any tool.
    ///
    /// # Errors
    /// `invalid_request` if the arguments are not an object, or a parameter occurs twice.
    pub(crate) fn parse(raw: Option<&RawValue>) -> Result<Arguments> {
        let text = raw.map(RawValue::get).filter(|text| *text != "null").unwrap_or(NONE);
        let members = run_offloaded(text.len(), || serde_json::from_str(text)).map_err(|error| {
            Error::invalid_request(format!("The arguments are not an object that the tool accepts: {error}."))
        })?;
        Ok(Arguments(members))
    }

    /// The object that the arguments name, if its name is a string.
    pub(crate) fn object_name(&self) -> Option<String> {
        let (_, value) = self.0.0.iter().find(|(name, _)| name == "object_name")?;
        run_offloaded(value.get().len(), || strict_from_str(value.get())).ok()
    }

    /// Checks that the arguments contain only the parameters `known`. A `null` counts as left out.
    ///
    /// # Errors
    /// `invalid_request` for a parameter that the tool does not have.
    pub(crate) fn only(mut self, known: &[&str]) -> Result<Arguments> {
        if let Some((name, _)) = self.0.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let message = format!("The tool has no parameter `{name}`. It has {}.", known.join(", "));
            return Err(Error::invalid_request(message).with_field(name.clone()));
        }
        self.0.0.retain(|(_, value)| value.get() != "null");
        Ok(self)
    }

    pub(crate) fn have(&self, name: &str) -> bool {
        self.0.0.iter().any(|(known, _)| known == name)
    }

    pub(crate) fn raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        let place = self.0.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.0.remove(place).1)
    }

    /// Takes a required parameter as text.
    pub(crate) fn needed(&mut self, name: &str) -> Result<Box<RawValue>> {
        self.raw(name).ok_or_else(|| Error::invalid_request(format!("`{name}` is missing.")).with_field(name))
    }

    /// Takes an optional parameter.
    pub(crate) fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        self.raw(name).map(|raw| strict_from_str(raw.get()).map_err(|error| unfit(name, &error))).transpose()
    }

    /// Takes a required parameter.
    pub(crate) fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let raw = self.needed(name)?;
        run_offloaded(raw.get().len(), || strict_from_str(raw.get())).map_err(|error| unfit(name, &error))
    }

    /// Takes a list of at most `items_max` items.
    pub(crate) fn list<T: DeserializeOwned>(&mut self, name: &str, items_max: usize) -> Result<Vec<T>> {
        let raw = self.needed(name)?;
        run_offloaded(raw.get().len(), || parse_list(raw.get(), items_max)).map_err(|error| {
            let message = error.message.replacen("The body", &format!("`{name}`"), 1);
            Error { message, ..error }.with_field(name)
        })
    }

    /// The remaining parameters, as the text of an object. Some get the names that operations use.
    pub(crate) fn rest(&self, renamed: &[(&str, &str)]) -> String {
        let mut out = vec![b'{'];
        for (place, (name, value)) in self.0.0.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            let spelt = renamed.iter().find(|(known, _)| known == name).map_or(name.as_str(), |(_, spelt)| spelt);
            write_string(&mut out, spelt);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Arguments> {
        let raw = RawValue::from_string(text.to_owned()).expect("JSON");
        Arguments::parse(Some(&raw))?.only(&["object_name", "page_size", "data"])
    }

    #[test]
    fn parameters_that_there_are_not_and_wrong_types_are_refused() {
        for bad in [r#"{"colour":1}"#, r#"{"page_size":1,"page_size":2}"#, "[]", "7", r#""x""#] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
        let mut arguments = parsed(r#"{"object_name":7}"#).expect("an object");
        assert_eq!(
            arguments.required::<String>("object_name").map_err(|error| error.field).err(),
            Some(Some("object_name".to_owned()))
        );
        assert!(parsed("{}").expect("an object").required::<String>("object_name").is_err());
        assert!(parsed("null").is_ok());
    }

    #[test]
    fn the_rest_keeps_its_digits() {
        let mut arguments =
            parsed(r#"{"object_name":"task","page_size":10,"data":{"n":12345678901234567.890}}"#).expect("an object");
        assert_eq!(arguments.required::<String>("object_name").ok().as_deref(), Some("task"));
        assert_eq!(arguments.rest(&[("page_size", "pageSize")]), r#"{"pageSize":10,"data":{"n":12345678901234567.890}}"#);
    }
}
