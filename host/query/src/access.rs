//! Grants, and the decision that every plan needs.

use serde::{Deserialize, Serialize};

/// What a grant allows. `manage` stands for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Read,
    Update,
    Delete,
    Manage,
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Read => "read",
            Action::Update => "update",
            Action::Delete => "delete",
            Action::Manage => "manage",
        }
    }
}

/// Which rows a grant reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowPolicy {
    /// Rows that the caller created.
    Own,
}

/// `{ resource, actions, rowPolicy? }`; the resource `*` stands for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Grant {
    pub resource: String,
    pub actions: Vec<Action>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_policy: Option<RowPolicy>,
}

impl Grant {
    fn allows(&self, resource: &str, action: Action) -> bool {
        (self.resource == "*" || self.resource == resource)
            && (self.actions.contains(&action) || self.actions.contains(&Action::Manage))
    }
}

/// The rows that a decision reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every row.
    All,
    /// Rows whose `created_by` is this actor.
    Own(String),
    /// No row: an own-rows grant without an actor who could own one.
    Nothing,
}

/// Proof that a caller may do one thing to one resource, and to which rows. Only [`Permissions::decide`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    scope: Scope,
}

impl Access {
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The one actor whose things the decision reaches; `None` where it reaches everybody's.
    pub fn only(&self) -> Option<&str> {
        match &self.scope {
            Scope::All => None,
            Scope::Own(actor) => Some(actor),
            // Nobody has this id.
            Scope::Nothing => Some(""),
        }
    }

    /// What both decisions reach.
    pub fn and(&self, other: &Access) -> Access {
        let scope = match (&self.scope, &other.scope) {
            (Scope::All, scope) | (scope, Scope::All) => scope.clone(),
            (Scope::Own(one), Scope::Own(two)) if one == two => self.scope.clone(),
            _ => Scope::Nothing,
        };
        Access { scope }
    }

    /// Whether a row created by `owner` is within reach.
    pub fn reaches(&self, owner: Option<&str>) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Own(actor) => owner == Some(actor),
            Scope::Nothing => false,
        }
    }
}

/// Everything that one caller may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Permissions {
    grants: Vec<Grant>,
    /// Whose rows `own` means.
    actor_id: Option<String>,
    /// Enforcement is off, or the service itself acts.
    unrestricted: bool,
}

impl Permissions {
    pub fn new(grants: Vec<Grant>, actor_id: Option<String>) -> Permissions {
        Permissions { grants, actor_id, unrestricted: false }
    }

    /// No check at all: enforcement is off, or the service itself acts.
    pub fn unrestricted() -> Permissions {
        Permissions { grants: Vec::new(), actor_id: None, unrestricted: true }
    }

    /// The same rights with `own` meaning another actor's rows.
    pub fn of_actor(mut self, actor_id: Option<String>) -> Permissions {
        self.actor_id = actor_id;
        self
    }

    /// Whether and to which rows `action` on `resource` is allowed. Deny by default; grants add up, and one without a row
    /// policy beats one with it.
    pub fn decide(&self, resource: &str, action: Action) -> Option<Access> {
        if self.unrestricted {
            return Some(Access { scope: Scope::All });
        }
        let mut scope = None;
        for grant in self.grants.iter().filter(|grant| grant.allows(resource, action)) {
            match (grant.row_policy, &self.actor_id) {
                (None, _) => return Some(Access { scope: Scope::All }),
                (Some(RowPolicy::Own), Some(actor)) => scope = Some(Scope::Own(actor.clone())),
                (Some(RowPolicy::Own), None) => scope = scope.or(Some(Scope::Nothing)),
            }
        }
        scope.map(|scope| Access { scope })
    }

    /// Whether every right that `grant` would give is held here: nobody gives more than they hold.
    pub fn covers(&self, grant: &Grant) -> bool {
        grant.actions.iter().all(|action| match self.decide(&grant.resource, *action) {
            None => false,
            Some(access) => *access.scope() == Scope::All || grant.row_policy.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(resource: &str, actions: &[Action], row_policy: Option<RowPolicy>) -> Grant {
        Grant { resource: resource.to_owned(), actions: actions.to_vec(), row_policy }
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        assert_eq!(Permissions::new(Vec::new(), Some("u".into())).decide("task", Action::Read), None);
    }

    #[test]
    fn a_grant_without_row_policy_beats_one_with_it() {
        let own = grant("task", &[Action::Read], Some(RowPolicy::Own));
        let all = grant("*", &[Action::Read], None);
        let permissions = Permissions::new(vec![own.clone()], Some("u".into()));
        assert_eq!(permissions.decide("task", Action::Read), Some(Access { scope: Scope::Own("u".into()) }));
        let permissions = Permissions::new(vec![own.clone(), all], Some("u".into()));
        assert_eq!(permissions.decide("task", Action::Read), Some(Access { scope: Scope::All }));
        let nobody = Permissions::new(vec![own], None).decide("task", Action::Read).expect("a decision");
        assert!(!nobody.reaches(None));
    }

    #[test]
    fn nobody_covers_more_than_they_hold() {
        let holder = Permissions::new(vec![grant("task", &[Action::Read], Some(RowPolicy::Own))], Some("u".into()));
        assert!(holder.covers(&grant("task", &[Action::Read], Some(RowPolicy::Own))));
        assert!(!holder.covers(&grant("task", &[Action::Read], None)));
        assert!(!holder.covers(&grant("task", &[Action::Manage], Some(RowPolicy::Own))));
        assert!(!holder.covers(&grant("*", &[Action::Read], Some(RowPolicy::Own))));
        let admin = Permissions::new(vec![grant("*", &[Action::Manage], None)], None);
        assert!(admin.covers(&grant("*", &[Action::Manage], None)));
    }
}
