//! Grants: the permissions that a role gives.

use std::sync::Arc;

use blockbase_schema::{Action, Resource, USERS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clause::Clause;
use super::fields::{Fields, Listed};
use super::policy::{Part, Policy};

/// Which rows a grant covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RowPolicy {
    // Rows that the caller created. This must not be a doc comment: with a description on its only variant, the JSON schema would
    // become a choice of schemas.
    Own,
}

/// The permissions that a role gives on one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SvcGrant")]
pub struct Grant {
    #[schemars(
        description = described_resources(),
        regex(pattern = r"^(\*|[a-z][a-z0-9_\-]*(:[a-z][a-z0-9_\-]*)?)$"),
        length(max = 128)
    )]
    pub resource: String,
    /// `manage` includes all actions.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub actions: Vec<Action>,
    /// `own`: only rows that the caller created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_policy: Option<RowPolicy>,
    /// A condition on the rows that the grant reaches. `rowPolicy` and `where` are ANDed.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Clause>,
    /// A condition that a created or changed row has to meet at the end of the call. By default it is `rowPolicy` and `where`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Clause>,
    /// The fields that can be read and written in these rows. By default they are all fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Fields>,
    /// True in answers if the grant does not fit the schema any more: a condition or a list of fields names a field or relation
    /// that no longer exists, or a condition tests a field that has another type now. With a broken condition, the grant gives
    /// nothing. With a broken list, it lacks the actions that the list limits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("readOnly" = true))]
    pub broken: bool,
}

impl Grant {
    /// A grant of these actions on every row, or on own rows.
    pub fn new(resource: impl Into<String>, actions: Vec<Action>, row_policy: Option<RowPolicy>) -> Grant {
        Grant { resource: resource.into(), actions, row_policy, rows: None, check: None, fields: None, broken: false }
    }

    /// Whether it has a condition, or lists fields.
    pub fn is_conditional(&self) -> bool {
        self.rows.is_some() || self.check.is_some() || self.fields.is_some()
    }

    /// Whether the grant can give an action that it names. On `users`, conditions and lists of fields work for reading only: the
    /// operations that change an account look neither at conditions nor at fields. So a grant with a condition gives nothing
    /// else there, and a grant with lists of fields gives only the other actions that its lists do not limit.
    pub fn can_give(&self, action: Action) -> bool {
        let is_limited = || self.rows.is_some() || self.check.is_some() || !Listed::of(self.fields.as_ref()).on(action).are_all();
        action == Action::Read || self.resource != USERS || !is_limited()
    }

    /// Whether the grant can give all actions that it names ([`Grant::can_give`]). Only such grants are saved, but earlier
    /// versions of the server saved others too.
    pub fn can_give_all(&self) -> bool {
        self.actions.iter().all(|action| self.can_give(*action))
    }

    /// The grant that a giver needs in order to give this grant to somebody else. `own` and conditions that depend on the caller
    /// mean other rows for another user, so the giver needs the grant without them. Parts of a condition that do not depend on
    /// the caller stay.
    pub fn for_all(self) -> Grant {
        let rows = self.rows.and_then(Clause::for_all);
        // If nothing is left of the check, the giver needs the grant without it. `{}` accepts every row after a write.
        let check = self.check.map(|check| check.for_all().unwrap_or_else(|| Clause::new("{}")));
        Grant { row_policy: None, rows, check, ..self }
    }

    /// The conditions on the rows that the grant includes, and the conditions on these rows after a write.
    pub(super) fn parts(&self) -> (Vec<Part>, Vec<Part>) {
        let of_clause = |clause: &Clause| Part::Clause(Arc::new(Policy::of(clause.clone())));
        let rows: Vec<Part> =
            self.row_policy.map(|RowPolicy::Own| Part::Own).into_iter().chain(self.rows.as_ref().map(of_clause)).collect();
        let check = self.check.as_ref().map_or_else(|| rows.clone(), |check| vec![of_clause(check)]);
        (rows, check)
    }
}

fn described_resources() -> String {
    let names: Vec<String> = Resource::ALL.iter().map(|resource| format!("`{}`", resource.name())).collect();
    format!("An object's name, {}, what a block declares as `<block>:<name>`, or `*` for all.", names.join(", "))
}
