//! Everything that a caller may do, by the grants of their roles.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use blockbase_schema::{Action, Object};

use super::compiled::Compiled;
use super::fields::{KnownObjects, Listed};
use super::grant::{Grant, RowPolicy};
use super::policy::Part;
use super::rules::{Decision, GrantContext, Rule};
use super::{Access, Scope};
use crate::condition::{Variable, Variables};

/// A set of actions, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Actions(u8);

impl Actions {
    fn insert(&mut self, action: Action) {
        self.0 |= match action {
            // `manage` includes all actions.
            Action::Manage => u8::MAX,
            one => 1_u8 << one as u8,
        };
    }

    fn add(&mut self, others: Actions) {
        self.0 |= others.0;
    }

    fn contains(self, action: Action) -> bool {
        self.0 & (1_u8 << action as u8) != 0
    }

    /// Those of the actions for which `keep` is true.
    fn filter(self, keep: impl Fn(Action) -> bool) -> Actions {
        let kept = Action::ALL.into_iter().filter(|action| self.contains(*action) && keep(*action));
        Actions(kept.fold(0, |kept, action| kept | (1_u8 << action as u8)))
    }
}

/// The rights that all grants on one resource give together.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rights {
    /// Actions on every row.
    all: Actions,
    /// Actions on own rows.
    own: Actions,
    /// Actions on rows that meet a condition.
    conditional: Vec<Conditional>,
}

/// The rights of a grant that has a condition or lists fields.
#[derive(Clone, Debug, PartialEq)]
struct Conditional {
    actions: Actions,
    rows: Vec<Part>,
    check: Vec<Part>,
    listed: Listed,
}

impl Conditional {
    fn names(&self, variable: Variable) -> bool {
        self.rows.iter().chain(&self.check).any(|part| part.names(variable))
    }
}

/// Grants by resource, with each right only once. A decision is a look-up, so its cost does not depend on the number of grants.
#[derive(Clone, Debug, Default, PartialEq)]
struct Grants {
    /// Rights on the resource `*`.
    everywhere: Rights,
    /// Rights on the other resources, by name.
    named: BTreeMap<String, Rights>,
    /// Resources with a grant that lists only some of their fields.
    with_fields: BTreeSet<String>,
}

impl Grants {
    fn of(list: Vec<Grant>) -> Grants {
        let mut grants = Grants::default();
        for grant in list {
            let mut actions = Actions::default();
            grant.actions.iter().for_each(|action| actions.insert(*action));
            if grant.is_conditional() {
                actions = actions.filter(|action| grant.can_give(action));
                if actions == Actions::default() {
                    continue;
                }
            }
            let parts = grant.is_conditional().then(|| (grant.parts(), Listed::of(grant.fields.as_ref())));
            let Grant { resource, row_policy, .. } = grant;
            if parts.as_ref().is_some_and(|(_, listed)| !listed.are_all()) {
                grants.with_fields.insert(resource.clone());
            }
            let rights = if resource == "*" { &mut grants.everywhere } else { grants.named.entry(resource).or_default() };
            match (parts, row_policy) {
                (Some(((rows, check), listed)), _) => {
                    let conditional = Conditional { actions, rows, check, listed };
                    if !rights.conditional.contains(&conditional) {
                        rights.conditional.push(conditional);
                    }
                }
                (None, None) => rights.all.add(actions),
                (None, Some(RowPolicy::Own)) => rights.own.add(actions),
            }
        }
        grants
    }

    /// The rights on a resource: those of its own grants, and those of `*`.
    fn on(&self, resource: &str) -> impl Iterator<Item = &Rights> + Clone {
        std::iter::once(&self.everywhere).chain(self.named.get(resource))
    }
}

/// Everything that one caller may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Permissions {
    grants: Arc<Grants>,
    /// The values of the variables in conditions.
    subject: Arc<Variables>,
    /// The id of the caller whose rows `own` means.
    owner: Option<String>,
    /// Whether everything is allowed, because enforcement is off or the service itself acts.
    unrestricted: bool,
    /// Further rights that have to allow an action too, for example those of the maker of the key that these rights come from.
    limit: Option<Arc<Permissions>>,
    /// The compiled conditions of the grants.
    compiled: Arc<Compiled>,
}

impl Permissions {
    pub fn new(grants: Vec<Grant>, actor_id: Option<String>) -> Permissions {
        Permissions::of_subject(grants, Variables { user_id: actor_id, ..Variables::default() })
    }

    /// The rights of a caller of whom not only the id is known, but also the values of the other variables.
    pub fn of_subject(grants: Vec<Grant>, subject: Variables) -> Permissions {
        Permissions {
            grants: Arc::new(Grants::of(grants)),
            owner: subject.user_id.clone(),
            subject: Arc::new(subject),
            unrestricted: false,
            limit: None,
            compiled: Arc::default(),
        }
    }

    /// Rights that allow everything, because enforcement is off or the service itself acts.
    pub fn unrestricted() -> Permissions {
        Permissions {
            grants: Arc::default(),
            subject: Arc::default(),
            owner: None,
            unrestricted: true,
            limit: None,
            compiled: Arc::default(),
        }
    }

    /// The same rights for another caller: `own` means the rows of `subject`, and variables in conditions get the values of
    /// `subject`.
    pub fn with_subject(mut self, subject: Variables) -> Permissions {
        self.owner = subject.user_id.clone();
        self.subject = Arc::new(subject);
        self.compiled = Arc::default();
        self
    }

    /// The same rights, but `own` means the rows of another caller. Variables in conditions keep their values.
    pub fn with_owner(mut self, owner: Option<String>) -> Permissions {
        self.limit = self.limit.map(|limit| Arc::new(limit.as_ref().clone().with_owner(owner.clone())));
        self.owner = owner;
        self.compiled = Arc::default();
        self
    }

    /// The caller who has these rights.
    pub fn subject(&self) -> &Variables {
        &self.subject
    }

    /// The same rights, limited to those that `limit` has too.
    pub fn limited_to(mut self, limit: Arc<Permissions>) -> Permissions {
        self.limit = Some(limit);
        self.compiled = Arc::default();
        self
    }

    /// The same rights without those that no grant gives any more, because its list for the action names a field that no longer
    /// exists. Their holder has nothing of them to give to others.
    pub fn with_meaning(&self, grant_context: &GrantContext<'_>) -> Cow<'_, Permissions> {
        let limit = self.limit.as_ref().map(|limit| limit.with_meaning(grant_context));
        let has_fields = |resource: &str, given: &Conditional| grant_context.have_fields(resource, &given.listed);
        let mut named = self.grants.named.iter();
        let is_broken = named.any(|(resource, rights)| !rights.conditional.iter().all(|given| has_fields(resource, given)));
        if !is_broken && !matches!(limit, Some(Cow::Owned(_))) {
            return Cow::Borrowed(self);
        }
        let mut grants = Grants::clone(&self.grants);
        for (resource, rights) in &mut grants.named {
            for given in &mut rights.conditional {
                if !has_fields(resource, given) {
                    given.actions = given.actions.filter(|action| grant_context.have_fields(resource, &given.listed.on(action)));
                }
            }
        }
        let limit = limit.map(|limit| Arc::new(limit.into_owned()));
        Cow::Owned(Permissions { grants: Arc::new(grants), limit, compiled: Arc::default(), ..self.clone() })
    }

    /// Whether everything is allowed without a check.
    pub fn is_unrestricted(&self) -> bool {
        self.unrestricted && self.limit.is_none()
    }

    /// Decides whether `action` on `resource` is allowed, and on which rows. `None` means that it is denied, which is the
    /// default. Grants add up, and a grant without a row policy includes a grant with one. If there is a limit, both the grants
    /// and the limit have to allow the action.
    pub fn decide(&self, resource: &str, action: Action) -> Option<Decision> {
        let decision = self.decide_with_limits(resource, action)?;
        // To manage rows is also to create them. New rows belong to the owner of these rights, also where a limit has another owner.
        match action {
            Action::Create | Action::Manage if self.limit.is_some() => decision.for_new_rows_of(self.owner.as_ref()),
            _ => Some(decision),
        }
    }

    fn decide_with_limits(&self, resource: &str, action: Action) -> Option<Decision> {
        let own = self.decide_by_grants(resource, action)?;
        let Some(limit) = &self.limit else { return Some(own) };
        let shared = own.and(&limit.decide_with_limits(resource, action)?);
        match &shared {
            // The grants allow the rows of one actor, and the limit the rows of another actor. No row belongs to both.
            Decision::Rows(Scope::Nothing) if !own.is_empty() => None,
            Decision::Rules(rules) if rules.is_empty() && !own.is_empty() => None,
            _ => Some(shared),
        }
    }

    /// Whether the conditions of these grants keep their meaning with the values that variables have in `other`. `other` are
    /// rights of the same caller that were read later. Variables that no condition names do not matter.
    pub fn mean_the_same_for(&self, other: &Permissions) -> bool {
        let names = |variable: Variable| {
            let rights = std::iter::once(&self.grants.everywhere).chain(self.grants.named.values());
            rights.flat_map(|rights| &rights.conditional).any(|conditional| conditional.names(variable))
        };
        let means_the_same = (self.subject.email == other.subject.email || !names(Variable::UserEmail))
            && (self.subject.has_roles_of(&other.subject) || !names(Variable::UserRoles));
        means_the_same
            && match (&self.limit, &other.limit) {
                (Some(limit), Some(other)) => limit.mean_the_same_for(other),
                // If only one side has a limit, the rights differ. This function does not compare that.
                _ => true,
            }
    }

    /// The access that a decision of these rights gives to the rows of an object. Conditions are compiled once for each version
    /// of the schema, unless they depend on the time of the call.
    pub fn decided_on(
        &self,
        decision: Decision,
        grant_context: &GrantContext<'_>,
        object: &Arc<Object>,
        action: Action,
    ) -> Access {
        self.compiled.access(decision, grant_context, object, action)
    }

    /// The known fields of those objects of which these rights list only some fields. `make` computes it once for each version of
    /// the schema.
    pub fn known_once(&self, version: i64, action: Action, make: impl FnOnce() -> KnownObjects) -> Arc<KnownObjects> {
        self.compiled.known(version, action, make)
    }

    /// Whether the grants would allow the action, but the limit forbids it.
    pub fn is_cut(&self, resource: &str, action: Action) -> bool {
        self.decide_by_grants(resource, action).is_some() && self.decide(resource, action).is_none()
    }

    fn decide_by_grants(&self, resource: &str, action: Action) -> Option<Decision> {
        if self.unrestricted {
            return Some(Decision::Rows(Scope::All));
        }
        let rights = self.grants.on(resource);
        if rights.clone().any(|rights| rights.all.contains(action)) {
            return Some(Decision::Rows(Scope::All));
        }
        let has_own = rights.clone().any(|rights| rights.own.contains(action));
        let conditional: Vec<&Conditional> =
            rights.flat_map(|rights| &rights.conditional).filter(|conditional| conditional.actions.contains(action)).collect();
        let own = match &self.owner {
            _ if !has_own => None,
            Some(actor) => Some(Scope::Own(actor.clone())),
            None => Some(Scope::Nothing),
        };
        if conditional.is_empty() {
            return own.map(Decision::Rows);
        }
        let rules = conditional
            .into_iter()
            .map(|given| Rule::of(&given.rows, &given.check, given.listed.on(action), self.owner.as_ref(), &self.subject))
            .filter(Rule::says_something);
        let rules: Vec<Rule> = own.iter().flat_map(Rule::of_scope).chain(rules).collect();
        Some(match rules.iter().any(Rule::is_whole) {
            true => Decision::Rows(Scope::All),
            false => Decision::Rules(rules),
        })
    }

    /// The resources with a grant, here or in a limit, that lists only some of their fields.
    pub fn resources_with_fields(&self) -> BTreeSet<&str> {
        let mut resources = BTreeSet::new();
        let mut side = Some(self);
        while let Some(permissions) = side {
            resources.extend(permissions.grants.with_fields.iter().map(String::as_str));
            side = permissions.limit.as_deref();
        }
        resources
    }

    /// The resources that grants name, each once and without `*`.
    pub fn named_resources(&self) -> impl Iterator<Item = &str> {
        self.grants.named.keys().map(String::as_str)
    }

    /// `*`, and the resources that grants name here or in a limit. On all other resources, the rights are the same as on `*`.
    fn resources_that_differ(&self) -> BTreeSet<&str> {
        let mut resources = BTreeSet::from(["*"]);
        let mut side = Some(self);
        while let Some(permissions) = side {
            resources.extend(permissions.named_resources());
            side = permissions.limit.as_deref();
        }
        resources
    }

    /// All rights as grants, by resource. The grants of a named resource include the rights of `*`. So a reader looks for the
    /// resource, and for `*` only if the resource is not named. Actions on every row come first, then actions on own rows, then
    /// actions on rows that meet a condition. Conditions and lists of fields are in their stored form, and a grant is marked as
    /// broken if it does not fit the schema any more.
    pub fn effective(&self, grant_context: &GrantContext<'_>) -> Vec<Grant> {
        let mut grants = Vec::new();
        for resource in self.resources_that_differ() {
            // Grants without their actions, each with its actions.
            let mut given: Vec<(Grant, Vec<Action>)> =
                [None, Some(RowPolicy::Own)].map(|policy| (Grant::new(resource, Vec::new(), policy), Vec::new())).into();
            let mut add = |grant: Grant, action: Action| match given.iter_mut().find(|(known, _)| *known == grant) {
                Some((_, actions)) if actions.contains(&action) => {}
                Some((_, actions)) => actions.push(action),
                None => given.push((grant, vec![action])),
            };
            let mut known = HashMap::new();
            for action in Action::ALL {
                match self.decide(resource, action) {
                    Some(Decision::Rows(Scope::All)) => add(Grant::new(resource, Vec::new(), None), action),
                    Some(Decision::Rows(Scope::Own(_))) => add(Grant::new(resource, Vec::new(), Some(RowPolicy::Own)), action),
                    Some(Decision::Rules(rules)) => {
                        for rule in rules.iter().filter(|rule| !rule.reaches_nothing()) {
                            let broken = rule.is_broken(grant_context, resource, &mut known);
                            add(Grant { broken, ..rule.grant(resource) }, action);
                        }
                    }
                    Some(Decision::Rows(Scope::Nothing | Scope::Where(_) | Scope::Seen(_))) | None => {}
                }
            }
            for (grant, actions) in given.into_iter().filter(|(_, actions)| !actions.is_empty()) {
                let actions = if actions.contains(&Action::Manage) { vec![Action::Manage] } else { actions };
                grants.push(Grant { actions, ..grant });
            }
        }
        grants
    }

    /// Whether these rights include every right that `grant` would give. Nobody may give more rights than they have.
    ///
    /// One grant covers another one if each conjunct of its conditions is also a conjunct of the other grant's conditions.
    pub fn covers(&self, grant: &Grant) -> bool {
        grant.actions.iter().all(|action| self.holds(grant, *action))
    }

    fn holds(&self, grant: &Grant, action: Action) -> bool {
        match self.decide(&grant.resource, action) {
            None => false,
            Some(Decision::Rows(Scope::All)) => true,
            // It does not matter who owns the rows, because `own` means the rows of the caller who uses the grant.
            Some(Decision::Rows(_)) if !grant.is_conditional() => grant.row_policy.is_some(),
            Some(decision) => {
                let (rows, check) = grant.parts();
                let listed = Listed::of(grant.fields.as_ref()).on(action);
                decision.covers(&Rule::symbolic(&rows), &Rule::symbolic(&check), &listed)
            }
        }
    }

    /// The first right of `other` that these rights lack, as a grant. `None` if they lack none. Nobody may act on a user who has
    /// rights that they lack.
    ///
    /// Rights are the same for every resource that no grant names. So this compares only the named resources and `*`. Each of
    /// them takes only a few look-ups, because this runs in a transaction that locks the accounts.
    pub fn first_not_held(&self, other: &Permissions) -> Option<Grant> {
        if self.is_unrestricted() {
            return None;
        }
        other.resources_that_differ().into_iter().find_map(|resource| {
            Action::ALL.into_iter().find_map(|action| {
                let of = |policy| Grant::new(resource, vec![action], policy);
                match other.decide(resource, action)? {
                    Decision::Rows(Scope::All) => Some(of(None)).filter(|grant| !self.holds(grant, action)),
                    Decision::Rows(_) => Some(of(Some(RowPolicy::Own))).filter(|grant| !self.holds(grant, action)),
                    Decision::Rules(rules) => {
                        let held = self.decide(resource, action);
                        let is_held = |rule: &Rule| held.as_ref().is_some_and(|held| held.has_rule(rule));
                        rules
                            .iter()
                            .find(|rule| !rule.reaches_nothing() && !is_held(rule))
                            .map(|rule| Grant { actions: vec![action], ..rule.grant(resource) })
                    }
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use blockbase_schema::Registry;

    use super::*;
    use crate::access::{Clause, Fields, Owners, Shapes};

    fn grant(resource: &str, actions: &[Action], row_policy: Option<RowPolicy>) -> Grant {
        Grant::new(resource, actions.to_vec(), row_policy)
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
        assert_eq!(permissions.decide("task", Action::Read), Some(Decision::Rows(Scope::Own("u".into()))));
        let permissions = Permissions::new(vec![own.clone(), all], Some("u".into()));
        assert_eq!(permissions.decide("task", Action::Read), Some(Decision::Rows(Scope::All)));
        let nobody = Permissions::new(vec![own], None).decide("task", Action::Read).expect("a decision");
        assert_eq!(nobody.owners(), Owners::Nobody);
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
        assert_eq!(reads.decide("task", Action::Read), Some(Decision::Rows(Scope::All)));
        assert_eq!(reads.decide("task", Action::Update), None);
        assert_eq!(reads.decide("note", Action::Read), None);
        let own = |actions: &[Action]| grant("task", actions, Some(RowPolicy::Own));
        // The maker's own rows stay those of the maker, even if the key acts as another user.
        let rows_of_maker = limited(all(&[Action::Manage]), "u", own(&[Action::Manage]), "m");
        assert_eq!(rows_of_maker.decide("task", Action::Read), Some(Decision::Rows(Scope::Own("m".into()))));
        assert_eq!(rows_of_maker.decide("task", Action::Create), None);
        assert_eq!(rows_of_maker.decide("task", Action::Manage), None);
        assert_eq!(limited(own(&[Action::Read]), "u", own(&[Action::Read]), "m").decide("task", Action::Read), None);
        // A condition beside it changes nothing, because the maker's grant still accepts only rows of the maker.
        let rule = Grant { rows: Some(Clause::new(r##"{"#1:1":"open"}"##)), ..grant("task", &[Action::Create], None) };
        let others = limited(rule.clone(), "u", own(&[Action::Create]), "m");
        assert_eq!(others.decide("task", Action::Create), None);
        assert!(limited(rule.clone(), "u", own(&[Action::Create]), "u").decide("task", Action::Create).is_some());
        // A check of its own decides instead.
        let checked = Grant { check: Some(Clause::new("{}")), ..own(&[Action::Create]) };
        assert!(limited(rule, "u", checked, "m").decide("task", Action::Create).is_some());
        // A key of another user, made by `m`, makes a key that acts as `m`. New rows of the second key belong to `m`.
        let first = limited(all(&[Action::Create]), "u", own(&[Action::Create]), "m");
        let second =
            |user: &str| Permissions::new(vec![all(&[Action::Create])], Some(user.into())).limited_to(Arc::new(first.clone()));
        assert_eq!(second("m").decide("task", Action::Create), Some(Decision::Rows(Scope::Own("m".into()))));
        assert_eq!(second("u").decide("task", Action::Create), None);
        let same = limited(own(&[Action::Create]), "u", own(&[Action::Create]), "u");
        assert_eq!(same.decide("task", Action::Create), Some(Decision::Rows(Scope::Own("u".into()))));
        // In a chain of keys, each key limits the rights.
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
        // A key has the role `admin`, and its maker may only read tasks. So the key may only read tasks.
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
        let scope = |resource, action| match permissions.decide(resource, action) {
            Some(Decision::Rows(scope)) => Some(scope),
            other => {
                assert_eq!(other, None);
                None
            }
        };
        let of_actor = Some(Scope::Own("u".into()));
        assert_eq!((scope("task", Action::Read), scope("task", Action::Update)), (of_actor.clone(), Some(Scope::All)));
        assert_eq!((scope("task", Action::Create), scope("note", Action::Create)), (Some(Scope::All), Some(Scope::All)));
        assert_eq!((scope("note", Action::Manage), scope("task", Action::Manage)), (of_actor, None));
        assert_eq!((scope("*", Action::Create), scope("*", Action::Read)), (Some(Scope::All), None));
        assert_eq!(permissions.named_resources().collect::<Vec<_>>(), ["note", "task"]);
        // All single actions together are less than `manage`, which may include further actions later.
        let all = [Action::Create, Action::Read, Action::Update, Action::Delete];
        assert!(!Permissions::new(vec![grant("task", &all, None)], None).covers(&grant("task", &[Action::Manage], None)));
    }

    #[test]
    fn effective_grants_are_merged_and_cut() {
        let (registry, shapes) = (Registry::default(), Shapes::default());
        let grant_context = GrantContext { registry: &registry, now: 0, shapes: &shapes };
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
        assert_eq!(permissions.effective(&grant_context), expected);
        // A limit removes rights, and may name resources that the grants do not name.
        let all = Permissions::new(vec![grant("*", &[Action::Manage], None)], Some("u".into()));
        let maker = Permissions::new(vec![grant("task", &[Action::Read], None)], Some("m".into()));
        let cut = all.limited_to(Arc::new(maker));
        assert_eq!(cut.effective(&grant_context), [grant("task", &[Action::Read], None)]);
        assert_eq!(Permissions::unrestricted().effective(&grant_context), [grant("*", &[Action::Manage], None)]);
        // Without an owner, there are no own rows.
        assert_eq!(Permissions::new(vec![grant("task", &[Action::Read], own)], None).effective(&grant_context), []);
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
        // In one of the lists, a single grant covers more rows.
        let one = of(list(|number| (number != 7_777).then_some(RowPolicy::Own)));
        assert_eq!(own.first_not_held(&one), Some(grant("r07777", &[Action::Read], None)));
        let everywhere = of(vec![grant("*", &[Action::Read], Some(RowPolicy::Own))]);
        assert_eq!((everywhere.first_not_held(&own), first(&everywhere, &one).as_deref()), (None, Some("r07777")));
        assert_eq!(first(&all, &everywhere).as_deref(), Some("*"));
        // The same grants, repeated a hundred times, give the same rights.
        let once = vec![grant("task", &[Action::Read], None), grant("task", &[Action::Read], Some(RowPolicy::Own))];
        assert_eq!(of(vec![once.clone(); 100].concat()), of(once));
    }

    #[test]
    fn a_key_and_its_maker_with_the_same_grants_have_as_many_rules() {
        let grants: Vec<Grant> = (0..RULES)
            .map(|number| conditional(&[Action::Read], Some(&format!("{{\"#1:1\":{number},\"#1:2\":\"$user.id\"}}")), None))
            .collect();
        let of = |key: Option<&str>| Variables {
            user_id: Some("u".into()),
            key_id: key.map(str::to_owned),
            roles: key.map(|_| vec!["r".to_owned()]),
            ..Variables::default()
        };
        let maker = Permissions::of_subject(grants.clone(), of(None));
        let key = Permissions::of_subject(grants.clone(), of(Some("k"))).limited_to(Arc::new(maker));
        let Some(Decision::Rules(rules)) = key.decide("task", Action::Read) else { panic!("rules") };
        assert_eq!(rules.len(), RULES);
        assert!(grants.iter().all(|grant| key.covers(grant)));
        // If one person's grants limit the other's, the result combines each grant of one with each grant of the other, up to the
        // maximum number of rules.
        let other = Variables { user_id: Some("o".into()), ..Variables::default() };
        let both = Permissions::of_subject(grants, other).limited_to(Arc::new(key));
        let Some(Decision::Rules(rules)) = both.decide("task", Action::Read) else { panic!("rules") };
        assert_eq!(rules.len(), 50);
    }

    const RULES: usize = 8;

    fn conditional(actions: &[Action], rows: Option<&str>, check: Option<&str>) -> Grant {
        let clause = |text: Option<&str>| text.map(Clause::new);
        Grant { rows: clause(rows), check: clause(check), ..grant("task", actions, None) }
    }

    #[test]
    fn conditions_are_compared_by_their_conjuncts() {
        let held = |rows: &str| Permissions::new(vec![conditional(&[Action::Read], Some(rows), None)], Some("u".into()));
        let covers = |rows: &str, given: &str| held(rows).covers(&conditional(&[Action::Read], Some(given), None));
        let narrow = r##"{"#1:1":"open","@1>.#2:1":"one"}"##;
        for given in [
            narrow,
            r##"{"@1>":{"#2:1":{"eq":"one"}},"#1:1":{"=":"open"}}"##,
            r##"{"_and":[{"#1:1":"open"},{"@1>":{"_and":[{"#2:1":"one"},{"#2:2":1}]}}]}"##,
            r##"{"#1:1":"\u006fpen","@1>.#2:1":"one","_or":[]}"##,
        ] {
            assert!(covers(narrow, given), "{given}");
            assert!(covers("{}", given), "{given}");
            assert!(!covers(given, "{}") && !covers(given, r##"{"#1:1":"open"}"##), "{given}");
        }
        for given in [
            r##"{"#1:1":"open"}"##,
            r##"{"#1:1":"open","@1<.#2:1":"one"}"##,
            r##"{"_or":[{"#1:1":"open","@1>.#2:1":"one"}]}"##,
            r##"{"_not":{"#1:1":"open"},"@1>.#2:1":"one"}"##,
            r##"{"#1:1":{"neq":"open"},"@1>.#2:1":"one"}"##,
        ] {
            assert!(!covers(narrow, given), "{given}");
        }
        for (held, given) in [
            (r##"{"_or":[]}"##, r##"{"_or":[{}]}"##),
            (r##"{"_or":[{"_or":[]}]}"##, r##"{"_or":[{"_or":[{}]}]}"##),
            (r##"{"_not":{"_or":[{}]}}"##, r##"{"_not":{"_or":[]}}"##),
            (r##"{"@1<":{"some":{"_or":[]}}}"##, r##"{"@1<":{"some":{}}}"##),
            (r##"{"@1<":{"none":{}}}"##, r##"{"@1<":{"none":{"#2:1":1}}}"##),
        ] {
            assert!(!covers(held, given) && !covers(given, held), "{held} {given}");
        }
        // Numbers with different digits count as different. If the comparison cannot find that two conditions are equal, the
        // right counts as not held.
        assert!(!covers(r##"{"#1:1":1}"##, r##"{"#1:1":1.0}"##));
        assert!(covers(r##"{"#1:1":{"in":[2,1]}}"##, r##"{"#1:1":{"in":[1,2]}}"##));
        let someone = |rows| Permissions::new(vec![conditional(&[Action::Read], Some(rows), None)], Some("v".into()));
        assert_eq!(held(narrow).first_not_held(&someone(narrow)), None);
        assert_eq!(held("{}").first_not_held(&someone(narrow)), None);
        let missing = held(narrow).first_not_held(&someone(r##"{"#1:1":"open"}"##)).expect("a wider grant");
        assert_eq!(missing.rows.as_ref().map(Clause::text), Some(r##"{"#1:1":"open"}"##));
    }

    #[test]
    fn conditions_on_users_give_read_only() {
        let (registry, shapes) = (Registry::default(), Shapes::default());
        let grant_context = GrantContext { registry: &registry, now: 0, shapes: &shapes };
        let actions = [Action::Create, Action::Update, Action::Delete, Action::Manage];
        let of_users = |actions: &[Action]| Grant { rows: Some(Clause::new("{}")), ..grant("users", actions, None) };
        for named in [of_users(&[Action::Manage]), of_users(&[Action::Read, Action::Create, Action::Update, Action::Delete])] {
            let held = Permissions::new(vec![named.clone()], Some("u".into()));
            assert!(matches!(held.decide("users", Action::Read), Some(Decision::Rules(_))));
            assert!(actions.iter().all(|action| held.decide("users", *action).is_none()), "{named:?}");
            assert_eq!(grant_context.given_by(&named).map(|given| given.actions.clone()), Some(vec![Action::Read]));
        }
        let update = of_users(&[Action::Update]);
        assert_eq!(grant_context.given_by(&update), None);
        // A list limits only the actions that it is for.
        let fields = |json: &str| Some(serde_json::from_str::<Fields>(json).expect("lists of fields"));
        let (read, write) = (fields(r#"{"read":[]}"#), fields(r#"{"write":[]}"#));
        for (fields, action, gives) in [
            (&read, Action::Create, true),
            (&read, Action::Update, true),
            (&read, Action::Delete, true),
            (&read, Action::Manage, false),
            (&write, Action::Create, false),
            (&write, Action::Update, false),
            (&write, Action::Delete, true),
            (&write, Action::Manage, false),
        ] {
            let listing = Grant { fields: fields.clone(), ..grant("users", &[Action::Read, action], None) };
            assert_eq!(listing.can_give(action), gives, "{listing:?}");
            let held = Permissions::new(vec![listing.clone()], Some("u".into()));
            let all = Some(Decision::Rows(Scope::All));
            assert_eq!(held.decide("users", action), all.filter(|_| gives), "{listing:?}");
            let given = grant_context.given_by(&listing).expect("a grant for reading");
            assert_eq!(given.actions.contains(&action), gives, "{listing:?}");
        }
        assert_eq!(Permissions::new(vec![update], None), Permissions::new(Vec::new(), None));
        // Without a condition, `own` means the caller's account.
        let own = Permissions::new(vec![grant("users", &[Action::Update], Some(RowPolicy::Own))], Some("u".into()));
        assert_eq!(own.decide("users", Action::Update), Some(Decision::Rows(Scope::Own("u".into()))));
    }

    #[test]
    fn a_check_is_what_the_grant_reaches_unless_it_says_otherwise() {
        let own = Some(RowPolicy::Own);
        let all = [Action::Update];
        let held = |rows, check, policy| {
            let given = Grant { row_policy: policy, ..conditional(&all, rows, check) };
            Permissions::new(vec![given], Some("u".into()))
        };
        let a = r##"{"#1:1":"a"}"##;
        let given = |rows, check, policy| Grant { row_policy: policy, ..conditional(&all, rows, check) };
        assert!(held(Some(a), None, None).covers(&given(Some(a), Some(a), None)));
        assert!(!held(Some(a), None, None).covers(&given(Some(a), Some("{}"), None)));
        assert!(held(Some(a), Some("{}"), None).covers(&given(Some(a), None, None)));
        assert!(!held(Some(a), None, own).covers(&given(Some(a), None, None)));
        assert!(held(Some(a), None, own).covers(&given(Some(a), None, own)));
        assert!(held(None, None, own).covers(&given(Some(a), None, own)));
        assert!(!held(None, None, own).covers(&given(None, Some(a), own)));
        // If two people each have a grant for own rows, no row belongs to both.
        let mine = held(Some(a), None, own);
        let theirs = Permissions::new(vec![given(Some(a), None, own)], Some("v".into()));
        assert_eq!(mine.clone().limited_to(Arc::new(theirs)).decide("task", Action::Update), None);
        assert!(matches!(mine.decide("task", Action::Update), Some(Decision::Rules(rules)) if rules.len() == 1));
    }

    #[test]
    fn what_depends_on_the_caller_is_left_out_for_all() {
        let of = |rows| conditional(&[Action::Read], Some(rows), None).for_all().rows;
        assert_eq!(of(r##"{"#1:1":"$user.id"}"##), None);
        assert_eq!(of(r##"{"_or":[{"#1:1":{"in":["\u0024key.id"]}}]}"##), None);
        let checked = conditional(&[Action::Read], Some(r##"{"#1:1":1}"##), Some(r##"{"#1:1":"$user.id"}"##)).for_all();
        assert_eq!((checked.rows.is_some(), checked.check.as_ref().map(Clause::text)), (true, Some("{}")));
        for (rows, left) in [
            (r##"{"#1:1":"a","#1:2":"$user.id"}"##, r##"{"#1:1":"a"}"##),
            (r##"{"_and":[{"#1:2":"$user.id"},{"#1:1":"a"}]}"##, r##"{"#1:1":"a"}"##),
            (r##"{"#1:1":{"gt":"a","neq":"$user.id"}}"##, r##"{"#1:1":{"gt":"a"}}"##),
            (r##"{"@1>":{"#2:1":"a","#2:2":"$key.id"}}"##, r##"{"@1>":{"#2:1":"a"}}"##),
            (r##"{"@1<":{"some":{"#2:2":"$user.id","#2:1":"a"},"none":{"#2:1":"b"}}}"##, r##"{"@1<":{"none":{"#2:1":"b"}}}"##),
            (r##"{"#1:1":"a","_not":{"#1:2":"$user.id"}}"##, r##"{"#1:1":"a"}"##),
        ] {
            assert_eq!(of(rows).as_ref().map(Clause::text), Some(left), "{rows}");
        }
        assert!(of(r##"{"#1:1":"$now"}"##).is_some());
        assert!(of(r##"{"#1:1":"$$user.id"}"##).is_some());
    }
}
