//! What a grant demands of a row, part by part, so that an explanation can name the parts that a row does not meet.

use blockbase_schema::{Action, Object, system};

use super::{Bound, GrantContext, Rule};
use crate::access::fields::Listed;
use crate::access::grant::Grant;
use crate::condition::{Condition, Variable, Variables, own_rows};

/// A top-level conjunct of a grant's condition, for one caller. `own` is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The conjunct as JSON in normal form, with the values of the variables. If no row can meet it, it is shown as it is
    /// in the grant, with the names of fields and variables.
    pub text: String,
    /// `None` if a variable of the conjunct has no value for the caller. Then no row passes the grant.
    pub condition: Option<Condition>,
}

impl GrantContext<'_> {
    /// The demands that a row of `object` has to meet, so that a stored grant allows the action on it. For `create`, these are
    /// the demands of the grant's check, without `own`, because a new record belongs to its maker. `None` if the grant does not
    /// give the action, because it cannot ([`Grant::can_give`]), or because it does not fit the schema any more.
    pub fn demands(&self, grant: &Grant, action: Action, object: &Object, subject: &Variables) -> Option<Vec<Demand>> {
        if !grant.can_give(action) {
            return None;
        }
        let listed = Listed::of(grant.fields.as_ref()).on(action);
        if self.has_broken_condition(grant) || self.has_broken_list(&grant.resource, &listed) {
            return None;
        }
        let (rows, check) = grant.parts();
        let rule = Rule::of(&rows, &check, listed, subject.user_id.as_ref(), subject);
        Some(rule.demands(self, action, object))
    }
}

impl Rule {
    fn demands(&self, grant_context: &GrantContext<'_>, action: Action, object: &Object) -> Vec<Demand> {
        let (decisive, other) = if action == Action::Create { (&self.check, &self.rows) } else { (&self.rows, &self.check) };
        let of = |part: &Bound| part.demands(grant_context, object);
        // A new record belongs to its maker.
        let is_open = |part: &&Bound| action != Action::Create || !matches!(part, Bound::Own(_));
        // A grant gives nothing if one of its variables has no value, wherever the variable is. `own` of a grant with lists of
        // fields is an exception: its check alone decides about new rows, also for a caller who cannot own rows.
        let is_relevant = |part: &&Bound| **part != Bound::Nobody || !self.says_something();
        let unknown = other.iter().filter(is_relevant).flat_map(of).filter(|demand| demand.condition.is_none());
        let mut found: Vec<Demand> = Vec::new();
        for demand in decisive.iter().filter(is_open).flat_map(of).chain(unknown) {
            if !found.contains(&demand) {
                found.push(demand);
            }
        }
        found
    }
}

impl Bound {
    fn demands(&self, grant_context: &GrantContext<'_>, object: &Object) -> Vec<Demand> {
        match self {
            Bound::Own(actor) => {
                let condition = own_rows(object, actor);
                vec![Demand { text: condition.to_json(object), condition: Some(condition) }]
            }
            Bound::Nobody => {
                let owner = if object.is_users() { system::ID } else { system::CREATED_BY };
                vec![Demand { text: format!("{{\"{owner}\":\"{}\"}}", Variable::UserId.name()), condition: None }]
            }
            Bound::Clause(policy, subject) => {
                let conjuncts = policy.clause.split().into_iter().map(|conjunct| {
                    let condition = grant_context.read(object, &conjunct, subject);
                    let text = match condition.as_ref().filter(|condition| !condition.is_false()) {
                        Some(condition) => condition.to_json(object),
                        None => conjunct.named(grant_context.registry, object).unwrap_or(conjunct).text().to_owned(),
                    };
                    Demand { text, condition }
                });
                conjuncts.collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::{Registry, Relationship, StoredObject};
    use serde_json::{Value, json};

    use super::*;
    use crate::access::Shapes;

    fn registry() -> Registry {
        let fields = json!([{ "name": "title", "type": "text" }, { "name": "rank", "type": "integer" }]);
        let object = |id: i64, name: &str| StoredObject {
            id,
            revision: 1,
            keys: vec![1, 2],
            definition: serde_json::from_value(json!({ "name": name, "fields": fields })).expect("a definition"),
            since: Default::default(),
        };
        let definition = json!({ "name": "project", "kind": "many_to_one", "source": "task", "target": "project" });
        let relationship = Relationship { id: 1, definition: serde_json::from_value(definition).expect("a definition") };
        Registry::new(1, vec![object(1, "task"), object(2, "project")], vec![relationship]).expect("a registry")
    }

    /// The texts of the demands, each with whether a variable has no value.
    fn demanded(grant: &Value, action: Action, user: Option<&str>) -> Option<Vec<(String, bool)>> {
        let (registry, shapes) = (registry(), Shapes::default());
        let grant_context = GrantContext { registry: &registry, now: 0, shapes: &shapes };
        let grant: Grant = serde_json::from_value(grant.clone()).expect("a grant");
        let subject = Variables { user_id: user.map(str::to_owned), ..Variables::default() };
        let object = registry.object("task").expect("an object");
        let demands = grant_context.demands(&grant, action, object, &subject)?;
        Some(demands.into_iter().map(|demand| (demand.text, demand.condition.is_none())).collect())
    }

    fn owned(demands: &[(&str, bool)]) -> Vec<(String, bool)> {
        demands.iter().map(|(text, is_unknown)| ((*text).to_owned(), *is_unknown)).collect()
    }

    #[test]
    fn a_grant_demands_each_part_of_its_condition() {
        let grant = json!({
            "resource": "task", "actions": ["manage"], "rowPolicy": "own",
            "where": { "#1:1": "a", "#1:2": { "in": [] }, "@1>": { "#2:1": "$user.email", "#2:2": { "lt": 3 } } },
            "check": { "#1:2": { "lt": 5 }, "#1:1": { "neq": "$user.id" } },
        });
        let of = |grant: &Value, action, user| demanded(grant, action, user).expect("demands");
        let email = (r#"{"project":{"title":"$user.email"}}"#, true);
        let rows = [
            (r#"{"title":{"eq":"a"}}"#, false),
            // A part that no row can meet is as the grant has it.
            (r#"{"rank":{"in":[]}}"#, false),
            email,
            (r#"{"project":{"rank":{"lt":3}}}"#, false),
        ];
        let read: Vec<(&str, bool)> = std::iter::once((r#"{"created_by":{"eq":"u"}}"#, false)).chain(rows).collect();
        assert_eq!(of(&grant, Action::Read, Some("u")), owned(&read));
        let created = [(r#"{"rank":{"lt":5}}"#, false), (r#"{"title":{"neq":"u"}}"#, false), email];
        assert_eq!(of(&grant, Action::Create, Some("u")), owned(&created));
        // Without a user, nobody owns rows. A variable without a value counts for each action, wherever the grant has it.
        let (own, checked) = ((r#"{"created_by":"$user.id"}"#, true), (r#"{"title":{"neq":"$user.id"}}"#, true));
        let read: Vec<(&str, bool)> = std::iter::once(own).chain(rows).chain([checked]).collect();
        assert_eq!(of(&grant, Action::Read, None), owned(&read));
        assert_eq!(of(&grant, Action::Create, None), owned(&[(r#"{"rank":{"lt":5}}"#, false), checked, own, email]));
        // A check that is left out is the same as the rows.
        let plain = json!({ "resource": "*", "actions": ["manage"], "rowPolicy": "own" });
        assert_eq!(of(&plain, Action::Create, None), owned(&[own]));
        // A new record belongs to its maker.
        assert_eq!(of(&plain, Action::Create, Some("u")), owned(&[]));
        let whole = json!({ "resource": "task", "actions": ["create"], "rowPolicy": "own", "where": { "#1:1": "a" } });
        assert_eq!(of(&whole, Action::Create, Some("u")), owned(&[(r#"{"title":{"eq":"a"}}"#, false)]));
        // If a grant lists fields, its own check alone decides about a new record, also for callers who cannot own records.
        let checked = json!({ "#1:2": { "lt": 5 } });
        let mut listing = json!({ "resource": "task", "actions": ["create"], "rowPolicy": "own", "check": checked });
        let low = (r#"{"rank":{"lt":5}}"#, false);
        assert_eq!(of(&listing, Action::Create, None), owned(&[low, own]));
        listing["fields"] = json!({ "write": ["#1:1"] });
        assert_eq!(of(&listing, Action::Create, None), owned(&[low]));
        assert!(of(&json!({ "resource": "task", "actions": ["read"] }), Action::Read, None).is_empty());
    }

    #[test]
    fn a_broken_grant_has_no_demands() {
        let grant = json!({ "resource": "task", "actions": ["manage"], "where": { "#1:9": 1 } });
        assert_eq!(demanded(&grant, Action::Read, Some("u")), None);
        // A broken list counts only for the actions that it limits.
        let grant = json!({ "resource": "task", "actions": ["manage"], "fields": { "read": ["#1:9"] } });
        assert_eq!(demanded(&grant, Action::Read, Some("u")), None);
        assert_eq!(demanded(&grant, Action::Delete, Some("u")), Some(Vec::new()));
    }
}
