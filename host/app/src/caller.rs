//! The caller of an operation, and their rights.

pub(crate) mod block_rights;
pub(crate) mod check_basis;
pub(crate) mod client;
pub(crate) mod identity;
pub(crate) mod maker_rights;
pub(crate) mod origin;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use blockbase_auth::{Actor, Principal};
use blockbase_query::{Access, Action, Compiled, Decision, Grant, GrantContext, Known, KnownObjects, Permissions, Variables};
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Code, Error, Object, Registry, Relation, Resource, Result, USERS};
use blockbase_store::{TicketCredential, UserRow};

use crate::caller::check_basis::{CheckBasis, CheckedRights};
use crate::caller::identity::{Identity, PrincipalSlot, RenewalSlot};
use crate::caller::origin::{Operator, Origin};

/// The resource of a grant for everything, future objects included.
const EVERY_RESOURCE: &str = "*";

/// The credentials that a request presented. Surfaces only take them out of their headers.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The value of `Authorization: Bearer`.
    pub bearer: Option<String>,
    /// The value of `X-API-Key`.
    pub api_key: Option<String>,
    /// The `Cookie` header.
    pub cookies: Option<String>,
    /// The ticket of a request that opens an event stream. It takes precedence over the cookies.
    pub ticket: Option<GivenTicket>,
    /// Reports to the surface that the session was extended.
    pub renewal: RenewalSlot,
    /// Reports the caller to the surface, for its log.
    pub principal: PrincipalSlot,
    /// The id of the role as which the caller wants to view the service.
    pub view_as: Option<String>,
    /// The address from which the request comes, if its surface knows it. Guests and callers without a credential share a quota
    /// by address.
    pub address: Option<IpAddr>,
    /// Whether the request comes from the operator of this server, through the socket in the data directory or from a command that has the
    /// database open. The operator may do everything.
    pub is_operator: bool,
    /// The user of the operating system who is the operator, if it is known.
    pub operator_uid: Option<u32>,
    /// The id of the request in the log.
    pub request_id: Option<Arc<str>>,
}

impl Credentials {
    /// The request that presented them.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            address: self.address,
            request_id: self.request_id.clone(),
            operator: self.is_operator.then_some(Operator { uid: self.operator_uid }),
        }
    }
}

/// A ticket that a request presents to open an event stream.
#[derive(Clone, Debug)]
pub struct GivenTicket(pub(crate) TicketState);

#[derive(Clone, Debug)]
pub(crate) enum TicketState {
    /// The ticket as the client sent it.
    Unused(String),
    /// The ticket has opened its stream. The stream's caller is checked again by the credential that the ticket was made with.
    Used(Option<TicketCredential>),
}

impl GivenTicket {
    /// A ticket as the client sent it.
    pub fn new(ticket: String) -> GivenTicket {
        GivenTicket(TicketState::Unused(ticket))
    }
}

/// The values of variables in conditions if this user is the caller, with or without a key. `now` is set later.
pub(crate) fn variables_of(user: &UserRow, roles: Vec<String>, key_id: Option<String>) -> Variables {
    Variables {
        user_id: Some(user.id.clone()),
        email: user.email_verified.then(|| user.email.clone()),
        roles: Some(roles),
        key_id,
        now: 0,
    }
}

/// The caller of an operation.
#[derive(Clone)]
pub struct Caller {
    pub principal: Principal,
    pub authority: Authority,
    /// The number of handlers whose writes led to this call.
    pub depth: i64,
    /// The rights with which the caller views the service as a role, if they do. The variables of the caller's own conditions
    /// have the values that they have in these rights.
    pub(crate) view: Option<Arc<Permissions>>,
    pub(crate) quota_owner: QuotaOwner,
    /// The bytes that further lists may add to the answer, if the answer has several lists.
    pub(crate) answer_left: Option<Arc<AtomicUsize>>,
    /// The data by which the authority was checked, so that it can be checked again.
    pub(crate) basis: CheckBasis,
    /// The request of the call, for the audit log.
    pub(crate) origin: Origin,
}

/// The source of a caller's rights.
#[derive(Clone)]
pub enum Authority {
    /// The rights of roles.
    Own(Arc<Permissions>),
    /// The consented permissions of the block with this name. Those "as caller" apply only if the invoking caller has them too.
    Block {
        name: Arc<str>,
        plain: Arc<Permissions>,
        as_caller: Arc<Permissions>,
        caller: Arc<Permissions>,
        /// The compiled conditions of the three rights together.
        compiled: Arc<Compiled>,
    },
}

/// The rights of a caller who may do nothing. They are one value, so that what follows from them can be cached by its address.
static NO_RIGHTS: LazyLock<Arc<Permissions>> = LazyLock::new(|| Arc::new(Permissions::new(Vec::new(), None)));

impl Caller {
    /// The service itself.
    pub fn system() -> Caller {
        Caller {
            principal: Principal::Anonymous,
            authority: Authority::Own(Arc::new(Permissions::unrestricted())),
            depth: 0,
            view: None,
            quota_owner: QuotaOwner::Service,
            answer_left: None,
            basis: CheckBasis::default(),
            origin: Origin::default(),
        }
    }

    /// A caller without a credential, who has the rights of `public`.
    pub(crate) fn anonymous(public: Arc<CheckedRights>) -> Caller {
        Caller {
            authority: Authority::Own(Arc::clone(&public.rights)),
            basis: CheckBasis::as_everybody(public),
            ..Caller::system()
        }
    }

    /// A caller who may do nothing.
    pub(crate) fn nobody() -> Caller {
        Caller { authority: Authority::Own(Arc::clone(&NO_RIGHTS)), ..Caller::system() }
    }

    /// A caller without an address, for whom the service acts later.
    pub(crate) fn of_identity(identity: Arc<Identity>) -> Caller {
        Caller::at(identity, None)
    }

    /// The caller of a request from `address`.
    pub(crate) fn at(identity: Arc<Identity>, address: Option<IpAddr>) -> Caller {
        Caller {
            principal: Principal::Known(identity.actor()),
            authority: Authority::Own(Arc::clone(&identity.permissions)),
            depth: 0,
            view: None,
            quota_owner: identity.quota_owner(address),
            answer_left: None,
            basis: CheckBasis::of(&identity),
            origin: Origin::default(),
        }
    }

    /// The same caller, who makes this request.
    pub(crate) fn with_origin(self, origin: Origin) -> Caller {
        Caller { origin, ..self }
    }

    /// The owner of the share that the caller's requests use.
    pub fn quota_owner(&self) -> &QuotaOwner {
        &self.quota_owner
    }

    /// The identity of the credential, or of a thing's maker.
    pub(crate) fn identity(&self) -> Option<&Arc<Identity>> {
        self.basis.identity.as_ref()
    }

    /// The same caller for a request whose lists have at most these bytes together (`SVC_MAX_ANSWER_BYTES`).
    pub fn with_one_answer(&self, bytes_max: usize) -> Caller {
        Caller { answer_left: Some(Arc::new(AtomicUsize::new(bytes_max))), ..self.clone() }
    }

    /// Counts the bytes of a list against the limit of the answer.
    pub(crate) fn spend_answer(&self, bytes: usize) {
        if let Some(left) = &self.answer_left {
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
        }
    }

    pub fn is_known(&self) -> bool {
        self.principal.actor().is_some()
    }

    /// The value for `created_by` and `updated_by`.
    pub fn actor_id(&self) -> Option<&str> {
        self.principal.actor().and_then(Actor::id)
    }

    /// The values of variables in a condition. A key has the values of its user, but only its own role. A caller who views the
    /// service as a role has only this role.
    pub(crate) fn variables(&self, now: i64) -> Variables {
        if let Some(view) = &self.view {
            return Variables { now, ..view.subject().clone() };
        }
        let actor = self.principal.actor();
        let user_id = actor.and_then(|actor| actor.user_id.clone());
        let identity = self.identity().filter(|identity| Some(&identity.user.id) == user_id.as_ref());
        let key_id = actor.and_then(|actor| actor.api_key_id.clone());
        match identity {
            Some(identity) => Variables { now, ..variables_of(&identity.user, identity.roles.clone(), key_id) },
            None => Variables { user_id, key_id, now, ..Variables::default() },
        }
    }

    fn decide(&self, resource: &str, action: Action) -> Option<Decision> {
        match &self.authority {
            Authority::Own(permissions) => permissions.decide(resource, action),
            Authority::Block { plain, as_caller, caller, .. } => {
                let plain = plain.decide(resource, action);
                if plain.as_ref().is_some_and(Decision::is_all) {
                    return plain;
                }
                let shared = as_caller
                    .decide(resource, action)
                    .and_then(|block| caller.decide(resource, action).map(|caller| block.and(&caller)));
                match (plain, shared) {
                    (Some(plain), Some(shared)) => Some(plain.or(shared)),
                    (plain, shared) => plain.or(shared),
                }
            }
        }
    }

    /// The access to a resource of the platform or of a block. It is not secret that the resource exists. Conditions of grants
    /// have no effect here.
    ///
    /// # Errors
    /// `unauthorized` for callers without a credential, `forbidden` for others.
    pub fn access(&self, resource: impl AsRef<str>, action: Action) -> Result<Access> {
        let resource = resource.as_ref();
        self.decide(resource, action).and_then(Decision::plain).ok_or_else(|| self.denied(resource, action))
    }

    /// The access to the rows of an object.
    ///
    /// # Errors
    /// The errors of [`Caller::access`].
    pub(crate) fn access_to(&self, grant_context: &GrantContext<'_>, object: &str, action: Action) -> Result<Access> {
        let decision = self.decide(object, action).ok_or_else(|| self.denied(object, action))?;
        let known = grant_context.registry.object(object).ok_or_else(|| Error::unknown_object(object))?;
        Ok(self.on(decision, grant_context, known, action))
    }

    /// The fields that the caller may read. The result lists an object only if the caller may not read all of its fields.
    pub(crate) fn known_objects(&self, grant_context: &GrantContext<'_>) -> Arc<KnownObjects> {
        self.known_by(grant_context, Action::Read)
    }

    /// The fields that the caller may name in a new record or in a change. The result lists an object only if the caller may not
    /// name all of its fields.
    pub(crate) fn writable_objects(&self, grant_context: &GrantContext<'_>, action: Action) -> Arc<KnownObjects> {
        self.known_by(grant_context, action)
    }

    fn known_by(&self, grant_context: &GrantContext<'_>, action: Action) -> Arc<KnownObjects> {
        let make = || {
            let objects = self.resources_with_fields().into_iter().filter_map(|name| grant_context.registry.object(name));
            objects.filter_map(|object| Some((object.id, self.known_of(grant_context, object, action)?))).collect()
        };
        match &self.authority {
            Authority::Own(permissions) => permissions.known_once(grant_context.registry.version, action, make),
            Authority::Block { compiled, .. } => compiled.known(grant_context.registry.version, action, make),
        }
    }

    /// Whether the caller may read or write a column.
    pub(crate) fn may_name(&self, grant_context: &GrantContext<'_>, object: &Object, column: &str) -> bool {
        if !self.resources_with_fields().contains(object.name()) {
            return true;
        }
        let lists = |action: Action| {
            self.decide(object.name(), action).is_some() && {
                let known = self.known_by(grant_context, action);
                known.get(&object.id).is_none_or(|known| known.has(object, column))
            }
        };
        [Action::Read, Action::Create, Action::Update].into_iter().any(lists)
    }

    /// The fields of an object that the caller knows by `action`. Descriptions also show actions that the caller does not have.
    /// For these the result has the fields that the caller knows by another action.
    fn known_of(&self, grant_context: &GrantContext<'_>, object: &Object, action: Action) -> Option<Known> {
        let mut actions = [action, Action::Read, Action::Create, Action::Update].into_iter();
        let decided = actions.find_map(|action| Some((action, self.decide(object.name(), action)?)));
        match decided {
            Some((Action::Read, decision)) => decision.known(grant_context, object),
            Some((_, decision)) => decision.writable(grant_context, object),
            None => Some(grant_context.id_alone(object)),
        }
    }

    /// Objects with a grant that lists only some of their fields.
    fn resources_with_fields(&self) -> BTreeSet<&str> {
        match &self.authority {
            Authority::Own(permissions) => permissions.resources_with_fields(),
            Authority::Block { plain, as_caller, caller, .. } => {
                [plain, as_caller, caller].iter().flat_map(|held| held.resources_with_fields()).collect()
            }
        }
    }

    /// Whether a grant lists only some fields of an object, so that the caller may not know all of its fields.
    pub fn has_fields(&self) -> bool {
        !self.resources_with_fields().is_empty()
    }

    /// The decision about reading records of an object, without its conditions.
    pub(crate) fn reads(&self, object: &str) -> Option<Decision> {
        self.decide(object, Action::Read)
    }

    /// Whether a right of the caller on an object depends on a condition or a list of fields.
    pub(crate) fn has_rules_on(&self, object: &str) -> bool {
        Action::ALL.into_iter().filter_map(|action| self.decide(object, action)).any(|decision| decision.has_conditions())
    }

    /// The access to the records that a relation leads to. The caller named the relation by its key in `parameter`. The error
    /// names the related object only to callers who may know of it.
    ///
    /// # Errors
    /// The errors of [`Caller::access`].
    pub(crate) fn access_by(&self, grant_context: &GrantContext<'_>, relation: &Relation, parameter: &str) -> Result<Access> {
        self.access_to(grant_context, &relation.related, Action::Read).map_err(|error| match error.code {
            Code::Forbidden if !self.knows(&relation.related) => {
                Error::new(Code::Forbidden, format!("You may not read the records of `{}` in `{parameter}`.", relation.key))
            }
            _ => error,
        })
    }

    /// Requires a right on a resource without rows. A grant for own rows has no effect on it.
    ///
    /// # Errors
    /// `unauthorized` for callers without a credential, `forbidden` for others.
    pub fn require(&self, resource: impl AsRef<str>, action: Action) -> Result<()> {
        let resource = resource.as_ref();
        if self.holds(resource, action) { Ok(()) } else { Err(self.denied(resource, action)) }
    }

    /// Whether the caller has a right on a resource that has no rows of its own.
    pub fn holds(&self, resource: impl AsRef<str>, action: Action) -> bool {
        self.decide(resource.as_ref(), action).is_some_and(|decision| decision.is_all())
    }

    /// Whether the caller has a right on some records of an object. It is false for writing users, because users are not changed
    /// as records.
    pub fn may_data(&self, object: &str, action: Action) -> bool {
        self.may(object, action) && (object != USERS || action == Action::Read)
    }

    /// Whether the caller may create, change or delete some records of an object.
    pub fn may_write(&self, object: &str) -> bool {
        [Action::Create, Action::Update, Action::Delete].into_iter().any(|action| self.may_data(object, action))
    }

    /// Requires the right to write some records of at least one object, or of every future object.
    ///
    /// # Errors
    /// `unauthorized` for callers without a credential, `forbidden` for others.
    pub(crate) fn admit_to_writes(&self, registry: &Registry) -> Result<()> {
        if self.may_write(EVERY_RESOURCE) || registry.objects().any(|object| self.may_write(object.name())) {
            return Ok(());
        }
        match self.is_known() {
            true => Err(Error::new(Code::Forbidden, "You need the permission to create, update or delete records.")),
            false => Err(Error::unauthenticated()),
        }
    }

    /// The resources that the caller's grants name.
    pub(crate) fn named_resources(&self) -> Vec<String> {
        self.rights().named_resources().map(str::to_owned).collect()
    }

    /// Whether the caller has a right on at least some rows.
    pub fn may(&self, resource: impl AsRef<str>, action: Action) -> bool {
        self.decide(resource.as_ref(), action).is_some()
    }

    /// Whether the caller may know of an object. Callers who may read `objects` know every object. Others know the objects on
    /// which they have a right.
    pub(crate) fn knows(&self, object: &str) -> bool {
        let holds_any =
            || [Action::Read, Action::Create, Action::Update, Action::Delete].into_iter().any(|action| self.may(object, action));
        self.holds(Resource::Objects, Action::Read) || holds_any()
    }

    /// Requires that the caller has every right of `grants`. Nobody may give more rights than they have. A grant does not give the
    /// actions for which it lists a field that no longer exists. So nobody needs these rights, and nobody has them.
    ///
    /// # Errors
    /// `forbidden`, which names the first grant that they do not have.
    pub(crate) fn covers(&self, grant_context: &GrantContext<'_>, grants: &[Grant]) -> Result<()> {
        let held = self.rights().with_meaning(grant_context);
        let mut given = grants.iter().filter_map(|grant| grant_context.given_by(grant));
        match given.find(|grant| !held.covers(grant)) {
            None => Ok(()),
            // Only callers who may read roles may know the rights of a role.
            Some(grant) if self.holds(Resource::Roles, Action::Read) => {
                let actions: Vec<&str> = grant.actions.iter().map(|action| action.name()).collect();
                let message =
                    format!("You cannot grant permissions that you do not have: {} on `{}`.", actions.join(", "), grant.resource);
                Err(Error::new(Code::Forbidden, message))
            }
            Some(_) => Err(Error::new(Code::Forbidden, "You cannot grant permissions that you do not have.")),
        }
    }

    fn denied(&self, resource: &str, action: Action) -> Error {
        let needs = || Error::new(Code::Forbidden, format!("You need the permission to {} `{resource}`.", action.name()));
        match (&self.authority, self.is_known()) {
            (Authority::Own(_), false) => Error::unauthenticated(),
            (Authority::Own(_), true) => needs(),
            // The block may act as its caller here, so the caller lacks the right.
            (Authority::Block { as_caller, .. }, true) if as_caller.decide(resource, action).is_some() => needs(),
            (Authority::Block { as_caller, .. }, false) if as_caller.decide(resource, action).is_some() => Error::new(
                Code::Forbidden,
                format!(
                    "The block may {} `{resource}` only if its caller has this permission, and this caller does not have it.",
                    action.name()
                ),
            ),
            (Authority::Block { plain, as_caller, .. }, _)
                if [plain, as_caller].iter().any(|held| held.is_cut(resource, action)) =>
            {
                Error::new(
                    Code::Forbidden,
                    format!(
                        "The block may no longer {} `{resource}`: its maker has lost this permission. Somebody who has it \
                         can adopt the block.",
                        action.name()
                    ),
                )
            }
            (Authority::Block { .. }, _) => Error::new(
                Code::Forbidden,
                format!(
                    "The block may not {} `{resource}`, because its manifest does not ask for this permission.",
                    action.name()
                ),
            ),
        }
    }

    /// The object and the access to it. For a read, the object has only the fields that the caller knows. A caller without the
    /// permission gets the same error as for a missing object, except for callers who may read `objects`.
    pub(crate) fn object(&self, grant_context: &GrantContext<'_>, name: &str, action: Action) -> Result<(Arc<Object>, Access)> {
        let (object, decision) = self.admit_to(grant_context.registry, name, action)?;
        let access = self.on(decision, grant_context, &object, action);
        let object = access.seen().map_or(object, |seen| Arc::clone(&seen.object));
        Ok((object, access))
    }

    /// The access that a decision gives to the rows of an object.
    fn on(&self, decision: Decision, grant_context: &GrantContext<'_>, object: &Arc<Object>, action: Action) -> Access {
        match &self.authority {
            Authority::Own(permissions) => permissions.decided_on(decision, grant_context, object, action),
            Authority::Block { compiled, .. } => compiled.access(decision, grant_context, object, action),
        }
    }

    /// The object and the decision about it, without its conditions.
    pub(crate) fn admit_to(&self, registry: &Registry, name: &str, action: Action) -> Result<(Arc<Object>, Decision)> {
        let object = registry.object(name);
        match (object, self.decide(name, action)) {
            (Some(object), Some(_)) if object.is_users() && action != Action::Read => {
                Err(Error::invalid_request("Users cannot be changed as records. Change their accounts instead."))
            }
            (Some(object), Some(decision)) => Ok((Arc::clone(object), decision)),
            (None, Some(_)) => Err(Error::unknown_object(name)),
            (None, None) if self.holds(Resource::Objects, Action::Read) => Err(Error::unknown_object(name)),
            (_, None) => Err(self.denied(name, action)),
        }
    }
}
