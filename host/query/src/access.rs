//! Grants, and the decision that every plan needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use blockbase_schema::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An action that a grant allows. `manage` includes all actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Action {
    Create,
    Read,
    Update,
    Delete,
    Manage,
}

impl Action {
    /// All of them, in the order of the documentation.
    pub const ALL: [Action; 5] = [Action::Create, Action::Read, Action::Update, Action::Delete, Action::Manage];

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

/// Which rows a grant covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RowPolicy {
    // Rows that the caller created. (A sentence of one value alone would make the schema a choice of schemas.)
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
}

fn described_resources() -> String {
    let names: Vec<String> = Resource::ALL.iter().map(|resource| format!("`{}`", resource.name())).collect();
    format!("An object's name, {}, what a block declares as `<block>:<name>`, or `*` for all.", names.join(", "))
}

/// A set of actions, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Actions(u8);

impl Actions {
    fn insert(&mut self, action: Action) {
        self.0 |= match action {
            // It stands for all of them.
            Action::Manage => u8::MAX,
            one => 1_u8 << one as u8,
        };
    }

    fn contains(self, action: Action) -> bool {
        self.0 & (1_u8 << action as u8) != 0
    }
}

/// What all grants on one resource give together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rights {
    /// Actions on every row.
    all: Actions,
    /// Actions on own rows.
    own: Actions,
}

/// Grants by their resource, each right once: a decision is a look-up, whatever the number of grants.
#[derive(Debug, Default, PartialEq)]
struct Grants {
    /// Of the resource `*`.
    everywhere: Rights,
    /// Of the other resources.
    named: BTreeMap<String, Rights>,
}

impl Grants {
    fn of(list: Vec<Grant>) -> Grants {
        let mut grants = Grants::default();
        for Grant { resource, actions, row_policy } in list {
            let rights = if resource == "*" { &mut grants.everywhere } else { grants.named.entry(resource).or_default() };
            let set = match row_policy {
                None => &mut rights.all,
                Some(RowPolicy::Own) => &mut rights.own,
            };
            actions.into_iter().for_each(|action| set.insert(action));
        }
        grants
    }

    /// The rights on a resource: those of its own grants, and those of `*`.
    fn on(&self, resource: &str) -> [Rights; 2] {
        [self.everywhere, self.named.get(resource).copied().unwrap_or_default()]
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

    /// The one actor whose things the decision reaches; `None` if it reaches everybody's.
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
    grants: Arc<Grants>,
    /// The user whose rows `own` means.
    actor_id: Option<String>,
    /// Enforcement is off, or the service itself acts.
    unrestricted: bool,
    /// What somebody else has to hold as well: whoever made the key that these rights come from.
    limit: Option<Arc<Permissions>>,
}

impl Permissions {
    pub fn new(grants: Vec<Grant>, actor_id: Option<String>) -> Permissions {
        Permissions { grants: Arc::new(Grants::of(grants)), actor_id, unrestricted: false, limit: None }
    }

    /// No check at all: enforcement is off, or the service itself acts.
    pub fn unrestricted() -> Permissions {
        Permissions { grants: Arc::default(), actor_id: None, unrestricted: true, limit: None }
    }

    /// The same rights with `own` meaning another actor's rows.
    pub fn of_actor(mut self, actor_id: Option<String>) -> Permissions {
        self.actor_id = actor_id;
        self
    }

    /// The same rights, cut to those that `limit` holds as well.
    pub fn limited_to(mut self, limit: Arc<Permissions>) -> Permissions {
        self.limit = Some(limit);
        self
    }

    /// Whether nothing is checked at all.
    pub fn is_unrestricted(&self) -> bool {
        self.unrestricted && self.limit.is_none()
    }

    /// Whether and to which rows `action` on `resource` is allowed. Deny by default; grants add up, and one without a row
    /// policy beats one with it. Where there is a limit, the answer is what both sides allow.
    pub fn decide(&self, resource: &str, action: Action) -> Option<Access> {
        let own = self.decide_by_grants(resource, action)?;
        let Some(limit) = &self.limit else { return Some(own) };
        let shared = own.and(&limit.decide(resource, action)?);
        match &shared.scope {
            // One side allows the rows of one actor, the other those of another actor. No row is in both.
            Scope::Nothing if own.scope != Scope::Nothing => None,
            // A new row belongs to the actor here. The limit's grant for own rows covers rows of somebody else.
            Scope::Own(owner) if action == Action::Create && self.actor_id.as_ref() != Some(owner) => None,
            _ => Some(shared),
        }
    }

    /// Whether the grants alone would allow what the limit takes away.
    pub fn is_cut(&self, resource: &str, action: Action) -> bool {
        self.decide_by_grants(resource, action).is_some() && self.decide(resource, action).is_none()
    }

    fn decide_by_grants(&self, resource: &str, action: Action) -> Option<Access> {
        if self.unrestricted {
            return Some(Access { scope: Scope::All });
        }
        let rights = self.grants.on(resource);
        let scope = match &self.actor_id {
            _ if rights.iter().any(|rights| rights.all.contains(action)) => Scope::All,
            _ if !rights.iter().any(|rights| rights.own.contains(action)) => return None,
            Some(actor) => Scope::Own(actor.clone()),
            None => Scope::Nothing,
        };
        Some(Access { scope })
    }

    /// The resources that grants name, `*` aside: each once.
    pub fn named_resources(&self) -> impl Iterator<Item = &str> {
        self.grants.named.keys().map(String::as_str)
    }

    /// `*`, and the resources that grants name here or in a limit. Rights are the same on every resource beside these.
    fn resources_that_differ(&self) -> BTreeSet<&str> {
        let mut resources = BTreeSet::from(["*"]);
        let mut side = Some(self);
        while let Some(permissions) = side {
            resources.extend(permissions.named_resources());
            side = permissions.limit.as_deref();
        }
        resources
    }

    /// All rights as grants, by resource. The grants of a named resource have the rights of `*` in them, so that a reader looks
    /// for the resource, and for `*` only where it is not named. Actions on every row come before those on own rows.
    pub fn effective(&self) -> Vec<Grant> {
        let mut grants = Vec::new();
        for resource in self.resources_that_differ() {
            let (mut on_all, mut on_own) = (Vec::new(), Vec::new());
            for action in Action::ALL {
                match self.decide(resource, action).as_ref().map(Access::scope) {
                    Some(Scope::All) => on_all.push(action),
                    Some(Scope::Own(_)) => on_own.push(action),
                    Some(Scope::Nothing) | None => {}
                }
            }
            for (mut actions, row_policy) in [(on_all, None), (on_own, Some(RowPolicy::Own))] {
                if actions.contains(&Action::Manage) {
                    actions = vec![Action::Manage];
                }
                if !actions.is_empty() {
                    grants.push(Grant { resource: resource.to_owned(), actions, row_policy });
                }
            }
        }
        grants
    }

    /// Whether every right that `grant` would give is held here: nobody gives more than they hold.
    pub fn covers(&self, grant: &Grant) -> bool {
        grant.actions.iter().all(|action| self.holds(&grant.resource, *action, grant.row_policy))
    }

    fn holds(&self, resource: &str, action: Action, row_policy: Option<RowPolicy>) -> bool {
        match self.decide(resource, action) {
            None => false,
            Some(access) => *access.scope() == Scope::All || row_policy.is_some(),
        }
    }

    /// The first right of `other` that is not held here, as a grant; `None` where all are. Nobody acts on somebody who holds
    /// more than they do.
    ///
    /// Rights are the same for every resource that no grant names, so the named ones and `*` are all that has to be compared.
    /// Each of them takes a few look-ups: this runs in the transaction that holds the accounts.
    pub fn first_not_held(&self, other: &Permissions) -> Option<Grant> {
        if self.is_unrestricted() {
            return None;
        }
        other.resources_that_differ().into_iter().find_map(|resource| {
            Action::ALL.into_iter().find_map(|action| {
                let access = other.decide(resource, action)?;
                let row_policy = (*access.scope() != Scope::All).then_some(RowPolicy::Own);
                let missing = || Grant { resource: resource.to_owned(), actions: vec![action], row_policy };
                (!self.holds(resource, action, row_policy)).then(missing)
            })
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

    fn limited(role: Grant, user: &str, maker: Grant, maker_id: &str) -> Permissions {
        let limit = Permissions::new(vec![maker], Some(maker_id.into()));
        Permissions::new(vec![role], Some(user.into())).limited_to(Arc::new(limit))
    }

    #[test]
    fn a_limit_cuts_rights_to_what_both_hold() {
        let all = |actions: &[Action]| grant("*", actions, None);
        let reads = limited(all(&[Action::Manage]), "u", grant("task", &[Action::Read], None), "m");
        assert_eq!(reads.decide("task", Action::Read), Some(Access { scope: Scope::All }));
        assert_eq!(reads.decide("task", Action::Update), None);
        assert_eq!(reads.decide("note", Action::Read), None);
        let own = |actions: &[Action]| grant("task", actions, Some(RowPolicy::Own));
        // The maker's own rows are the maker's, also where the key acts as somebody else.
        let rows_of_maker = limited(all(&[Action::Manage]), "u", own(&[Action::Manage]), "m");
        assert_eq!(rows_of_maker.decide("task", Action::Read), Some(Access { scope: Scope::Own("m".into()) }));
        assert_eq!(rows_of_maker.decide("task", Action::Create), None);
        assert_eq!(limited(own(&[Action::Read]), "u", own(&[Action::Read]), "m").decide("task", Action::Read), None);
        let same = limited(own(&[Action::Create]), "u", own(&[Action::Create]), "u");
        assert_eq!(same.decide("task", Action::Create), Some(Access { scope: Scope::Own("u".into()) }));
        // A chain of keys: each link cuts.
        let chain = Permissions::new(vec![all(&[Action::Manage])], None).limited_to(Arc::new(reads));
        assert_eq!(chain.decide("task", Action::Update), None);
        assert!(chain.decide("task", Action::Read).is_some());
    }

    #[test]
    fn rights_are_compared_as_they_are_cut() {
        let admin = Permissions::new(vec![grant("*", &[Action::Manage], None)], Some("a".into()));
        let reader = Permissions::new(vec![grant("task", &[Action::Read], None)], Some("r".into()));
        assert_eq!(admin.first_not_held(&reader), None);
        let missing = reader.first_not_held(&admin).expect("a right that the reader lacks");
        assert_eq!((missing.resource.as_str(), missing.row_policy), ("*", None));
        // A key with the role `admin` whose maker may read tasks carries no more than that.
        let cut = limited(grant("*", &[Action::Manage], None), "u", grant("task", &[Action::Read], None), "m");
        assert_eq!(reader.first_not_held(&cut), None);
        let own = Permissions::new(vec![grant("task", &[Action::Read], Some(RowPolicy::Own))], Some("o".into()));
        assert_eq!(reader.first_not_held(&own), None);
        assert!(own.first_not_held(&reader).is_some());
        assert_eq!(reader.first_not_held(&Permissions::new(Vec::new(), None)), None);
        assert!(reader.first_not_held(&Permissions::unrestricted()).is_some());
    }

    #[test]
    fn grants_on_one_resource_add_up() {
        let own = Some(RowPolicy::Own);
        let grants = vec![
            grant("task", &[Action::Read], own),
            grant("task", &[Action::Read, Action::Update], own),
            grant("task", &[Action::Update], None),
            grant("*", &[Action::Create], None),
            grant("note", &[Action::Manage], own),
        ];
        let permissions = Permissions::new(grants, Some("u".into()));
        let scope = |resource, action| permissions.decide(resource, action).map(|access| access.scope().clone());
        let of_actor = Some(Scope::Own("u".into()));
        assert_eq!((scope("task", Action::Read), scope("task", Action::Update)), (of_actor.clone(), Some(Scope::All)));
        assert_eq!((scope("task", Action::Create), scope("note", Action::Create)), (Some(Scope::All), Some(Scope::All)));
        assert_eq!((scope("note", Action::Manage), scope("task", Action::Manage)), (of_actor, None));
        assert_eq!((scope("*", Action::Create), scope("*", Action::Read)), (Some(Scope::All), None));
        assert_eq!(permissions.named_resources().collect::<Vec<_>>(), ["note", "task"]);
        // All actions are not `manage`, which may come to mean more.
        let all = [Action::Create, Action::Read, Action::Update, Action::Delete];
        assert!(!Permissions::new(vec![grant("task", &all, None)], None).covers(&grant("task", &[Action::Manage], None)));
    }

    #[test]
    fn effective_grants_are_merged_and_cut() {
        let own = Some(RowPolicy::Own);
        let permissions = Permissions::new(
            vec![
                grant("task", &[Action::Read], own),
                grant("task", &[Action::Update, Action::Create], own),
                grant("task", &[Action::Update], None),
                grant("note", &[Action::Manage], None),
                grant("*", &[Action::Read], None),
            ],
            Some("u".into()),
        );
        let expected = [
            grant("*", &[Action::Read], None),
            grant("note", &[Action::Manage], None),
            grant("task", &[Action::Read, Action::Update], None),
            grant("task", &[Action::Create], own),
        ];
        assert_eq!(permissions.effective(), expected);
        // A limit cuts, and names resources of its own.
        let all = Permissions::new(vec![grant("*", &[Action::Manage], None)], Some("u".into()));
        let maker = Permissions::new(vec![grant("task", &[Action::Read], None)], Some("m".into()));
        assert_eq!(all.limited_to(Arc::new(maker)).effective(), [grant("task", &[Action::Read], None)]);
        assert_eq!(Permissions::unrestricted().effective(), [grant("*", &[Action::Manage], None)]);
        // Nobody in particular has no own rows.
        assert_eq!(Permissions::new(vec![grant("task", &[Action::Read], own)], None).effective(), []);
    }

    #[test]
    fn many_grants_are_compared_one_by_one() {
        const GRANTS: usize = 10_000;
        let list = |policy: fn(usize) -> Option<RowPolicy>| -> Vec<Grant> {
            (0..GRANTS).map(|number| grant(&format!("r{number:05}"), &[Action::Read], policy(number))).collect()
        };
        let of = |grants: Vec<Grant>| Permissions::new(grants, Some("u".into()));
        let (own, all) = (of(list(|_| Some(RowPolicy::Own))), of(list(|_| None)));
        assert_eq!((all.first_not_held(&own), all.first_not_held(&all), own.first_not_held(&own)), (None, None, None));
        let first = |holder: &Permissions, other: &Permissions| holder.first_not_held(other).map(|grant| grant.resource);
        assert_eq!(first(&own, &all).as_deref(), Some("r00000"));
        // One of them all reaches further.
        let one = of(list(|number| (number != 7_777).then_some(RowPolicy::Own)));
        assert_eq!(own.first_not_held(&one), Some(grant("r07777", &[Action::Read], None)));
        let everywhere = of(vec![grant("*", &[Action::Read], Some(RowPolicy::Own))]);
        assert_eq!((everywhere.first_not_held(&own), first(&everywhere, &one).as_deref()), (None, Some("r07777")));
        assert_eq!(first(&all, &everywhere).as_deref(), Some("*"));
        // The same grants a hundred times over are the same rights.
        let once = vec![grant("task", &[Action::Read], None), grant("task", &[Action::Read], Some(RowPolicy::Own))];
        assert_eq!(of(vec![once.clone(); 100].concat()), of(once));
    }
}
