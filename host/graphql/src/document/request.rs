//! A GraphQL request, read from a body or a query string.

use blockbase_app::schema::json::{Members, malformed, parse_members};
use blockbase_app::schema::{Error, Result};
use serde_json::Value;
use serde_json::value::RawValue;

/// `{ query, operationName?, variables?, extensions? }`.
#[derive(Debug, Default)]
pub(crate) struct GraphqlRequest {
    pub(crate) query: String,
    pub(crate) operation_name: Option<String>,
    /// The values are still text, so that numbers keep all their digits.
    pub(crate) variables: Members,
    /// The name of an operation on a single connection (`graphql-sse`).
    pub(crate) operation_id: Option<String>,
}

impl GraphqlRequest {
    /// Reads a JSON body.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(crate) fn from_json(text: &str) -> Result<GraphqlRequest> {
        if text.trim_start().starts_with('[') {
            return Err(Error::invalid_request("Batches are not supported. Send each operation in a request of its own."));
        }
        let mut members = parse_members(text)?;
        let mut take = |name: &str| {
            let place = members.0.iter().position(|(known, _)| known == name)?;
            Some(members.0.swap_remove(place).1).filter(|raw| raw.get() != "null")
        };
        GraphqlRequest::of(take("query"), take("operationName"), take("variables"), take("extensions"))
    }

    /// Reads decoded query parameters. `variables` and `extensions` are JSON text.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(crate) fn from_parameters(text: &str) -> Result<GraphqlRequest> {
        let (mut query, mut operation_name, mut variables, mut extensions) = (None, None, None, None);
        for (name, value) in url::form_urlencoded::parse(text.as_bytes()) {
            match name.as_ref() {
                "query" => query = Some(value.into_owned()),
                "operationName" => operation_name = Some(value.into_owned()).filter(|name| !name.is_empty()),
                "variables" => variables = Some(value.into_owned()),
                "extensions" => extensions = Some(value.into_owned()),
                _ => {}
            }
        }
        let raw = |name: &str, text: Option<String>| -> Result<Option<Box<RawValue>>> {
            let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
            let raw: Box<RawValue> =
                serde_json::from_str(&text).map_err(|error| Error::invalid_request(format!("`{name}` is not JSON: {error}.")))?;
            Ok(Some(raw).filter(|raw| raw.get() != "null"))
        };
        let mut request = GraphqlRequest::of(None, None, raw("variables", variables)?, raw("extensions", extensions)?)?;
        request.query = query.unwrap_or_default();
        request.operation_name = operation_name;
        Ok(request)
    }

    fn of(
        query: Option<Box<RawValue>>,
        operation_name: Option<Box<RawValue>>,
        variables: Option<Box<RawValue>>,
        extensions: Option<Box<RawValue>>,
    ) -> Result<GraphqlRequest> {
        let text = |name: &str, raw: Option<Box<RawValue>>| -> Result<Option<String>> {
            let Some(raw) = raw else { return Ok(None) };
            let text = serde_json::from_str(raw.get());
            text.map(Some).map_err(|_| Error::invalid_request(format!("`{name}` of a GraphQL request must be a string.")))
        };
        let map = |name: &str, raw: Option<Box<RawValue>>| -> Result<Members> {
            let Some(raw) = raw else { return Ok(Members::default()) };
            if !raw.get().starts_with('{') {
                return Err(Error::invalid_request(format!("`{name}` of a GraphQL request must be a JSON object.")));
            }
            serde_json::from_str(raw.get()).map_err(|error| malformed(&error))
        };
        let extensions = map("extensions", extensions)?;
        let operation_id = extensions.0.iter().find(|(name, _)| name == "operationId").map(|(_, raw)| raw.get());
        let operation_id = match operation_id.map(serde_json::from_str::<Value>) {
            None => None,
            Some(Ok(Value::String(id))) => Some(id),
            Some(Ok(Value::Number(id))) => Some(id.to_string()),
            Some(_) => return Err(Error::invalid_request("`extensions.operationId` must be a string.")),
        };
        Ok(GraphqlRequest {
            query: text("query", query)?.unwrap_or_default(),
            operation_name: text("operationName", operation_name)?.filter(|name| !name.is_empty()),
            variables: map("variables", variables)?,
            operation_id,
        })
    }

    /// # Errors
    /// `invalid_request` if there is no query.
    pub(crate) fn expect_query(&self) -> Result<()> {
        match self.query.trim().is_empty() {
            true => Err(Error::invalid_request("`query` is missing. It is the text of a GraphQL document.")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_one_form() {
        let request = GraphqlRequest::from_json(r#"{"query":"{a}","operationName":null,"variables":{"x":1.50},"other":1}"#);
        let request = request.expect("a request");
        assert_eq!(request.query, "{a}");
        assert_eq!(request.variables.0[0].1.get(), "1.50");
        for bad in [
            "[]",
            r#"[{"query":"{a}"}]"#,
            r#"{"query":1}"#,
            r#"{"query":"{a}","variables":[]}"#,
            r#"{"query":"{a}","variables":"{}"}"#,
            r#"{"query":"{a}","operationName":7}"#,
            r#"{"query":"{a}","extensions":1}"#,
            r#"{"query":"{a}","variables":{"x":1,"x":2}}"#,
            "{",
        ] {
            assert!(GraphqlRequest::from_json(bad).is_err(), "{bad}");
        }
        assert!(GraphqlRequest::from_json("{}").expect("no query").expect_query().is_err());
        let request = GraphqlRequest::from_parameters("query=%7Ba%7D&variables=%7B%22x%22%3A2%7D").expect("a request");
        assert_eq!((request.query.as_str(), request.variables.0[0].1.get()), ("{a}", "2"));
        assert!(GraphqlRequest::from_parameters("query=%7Ba%7D&variables=x").is_err());
    }
}
