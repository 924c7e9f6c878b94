//! The rights of all callers, and their changes during a run: a role gets other grants, a user gets or loses a role, or a row
//! changes on which grants depend.
//!
//! After each change, the admin changes a row that a listener now sees in another way than before. So the open stream or the
//! subscription has to follow at the next event.

use std::collections::BTreeMap;

use blockbase_tests::{Admin, Server};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::grants::{Caller, Grant, Layer};
use super::setup::{HOOK_MAKER, must, text};
use super::verbs::{Verb, Write};
use super::worlds::{self, Giver, NAMES, OBJECTS};
use super::{Run, State};
use crate::promises::conditions::model::{Place, Reader, World};
use crate::promises::conditions::worlds::{one_in, pick};

/// The names of the roles.
pub(super) const ROLES: [&str; 4] = ["role0", "role1", "role2", "role_of_maker"];
/// The number of changes of links and references that are tried until one of them changes what a listener sees of another row.
const MEMBERSHIPS_TRIED: usize = 12;
/// The number of changes of values that are tried until a listener sees only one image of the row.
const ROWS_TRIED: usize = 24;

/// An API key.
pub(super) struct Key {
    /// The users who made it and for whom it acts, as numbers of users.
    pub(super) maker: usize,
    pub(super) user: usize,
    /// Its role, as a number of a role.
    pub(super) role: usize,
    pub(super) credential: String,
    pub(super) id: String,
}

/// What everybody may do.
pub(super) struct Rights {
    /// The ids of the roles.
    pub(super) roles: Vec<String>,
    /// The grants of each role.
    pub(super) of_roles: Vec<Vec<Grant>>,
    pub(super) public: Vec<Grant>,
    /// The id of each user, and the token of their session. The admin is the first.
    pub(super) users: Vec<(String, String)>,
    /// The roles of each user, as numbers of roles.
    pub(super) given: Vec<Vec<usize>>,
    pub(super) keys: Vec<Key>,
    /// The id of a role that may do everything.
    pub(super) builder: String,
    /// A reader for whom each variable has a value.
    pub(super) variables: Reader,
}

/// The reader of a caller. Without a user, `$user.id` and `$user.roles` have no value.
pub(super) fn reader(user: Option<&str>, key: Option<&str>, roles: &[&str]) -> Reader {
    let variables = [("$user.id", user), ("$key.id", key)];
    let variables = variables.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned())));
    Reader {
        name: "",
        user: 0,
        reads: Vec::new(),
        variables: variables.collect(),
        roles: user.map(|_| roles.iter().map(|role| (*role).to_owned()).collect()),
    }
}

fn permissions(world: &World, grants: &[Grant], others: &[&str]) -> Value {
    let others = others.iter().map(|resource| json!({ "resource": resource, "actions": ["read"] }));
    grants.iter().map(|grant| grant.json(world)).chain(others).collect()
}

impl Rights {
    pub(super) async fn save_role(&self, admin: &Admin<'_>, world: &World, role: usize) {
        let permissions = permissions(world, &self.of_roles[role], &["data", "events", "parity:run"]);
        must(admin, "PATCH", &format!("/api/v1/roles/{}", self.roles[role]), json!({ "permissions": permissions })).await;
    }

    pub(super) async fn save_public(&self, admin: &Admin<'_>, world: &World) {
        let permissions = permissions(world, &self.public, &[]);
        must(admin, "PATCH", "/api/v1/roles/public", json!({ "permissions": permissions })).await;
    }

    /// All callers with the rights that they have now. The users come first, in their order, then the keys.
    pub(super) fn callers(&self, world: &World) -> Vec<Caller> {
        let plain = (0..OBJECTS.len()).map(|object| Grant::plain(object, &["manage"]));
        let mut callers = Vec::new();
        for (user, (id, token)) in self.users.iter().enumerate() {
            let given = &self.given[user];
            let mut grants: Vec<Grant> = if user == 0 { plain.clone().collect() } else { self.public.clone() };
            grants.extend(given.iter().flat_map(|role| self.of_roles[*role].clone()));
            let roles: Vec<&str> = if user == 0 { vec!["admin"] } else { given.iter().map(|role| ROLES[*role]).collect() };
            let reader = reader(Some(id), None, &roles);
            callers.push(Caller {
                name: ["admin", "ann", "bob", "cid", "mia"][user].to_owned(),
                credential: Some(token.clone()),
                user: Some(id.clone()),
                layers: vec![Layer::new(world, &reader, Some(id.clone()), grants)],
                reader,
                reads_events: user == 0 || !given.is_empty(),
            });
        }
        for (number, key) in self.keys.iter().enumerate() {
            let user = self.users[key.user].0.clone();
            let reader = reader(Some(&user), Some(&key.id), &[ROLES[key.role]]);
            let of_role = Layer::new(world, &reader, Some(user.clone()), self.of_roles[key.role].clone());
            let of_maker = callers[key.maker].layers[0].clone();
            callers.push(Caller {
                name: format!("key{number}"),
                credential: Some(key.credential.clone()),
                user: Some(user),
                layers: vec![of_role, of_maker],
                reader,
                reads_events: true,
            });
        }
        let nobody = reader(None, None, &[]);
        callers.push(Caller {
            name: "anonymous".to_owned(),
            credential: None,
            user: None,
            layers: vec![Layer::new(world, &nobody, None, self.public.clone())],
            reader: nobody,
            reads_events: false,
        });
        callers
    }

    /// Makes the webhooks that are missing besides those on `hooked`, and removes the suspended ones: a webhook needs more than
    /// read on own rows. Returns the objects whose events go to a webhook now.
    pub(super) async fn hook(&self, server: &Server, receiver_url: &str, hooked: &[usize]) -> Vec<usize> {
        let admin = server.with_token(self.users[0].1.clone());
        let (id, token) = &self.users[HOOK_MAKER];
        let missing: Vec<&str> =
            NAMES.into_iter().enumerate().filter(|(place, _)| !hooked.contains(place)).map(|(_, name)| name).collect();
        if !missing.is_empty() {
            // Their own roles do not allow to make webhooks.
            must(&admin, "POST", &format!("/api/v1/users/{id}/roles"), json!({ "roleId": self.builder })).await;
            for name in missing {
                let hook = json!({ "name": name, "url": receiver_url, "topics": [format!("data.{name}.#")] });
                must(&server.with_token(token.clone()), "POST", "/api/v1/webhooks", hook).await;
            }
            let gone = admin.delete(&format!("/api/v1/users/{id}/roles/{}", self.builder)).await;
            assert!(gone.status < 300, "{}", gone.text);
        }
        let mut hooked = Vec::new();
        for hook in admin.get("/api/v1/webhooks").await.data().as_array().expect("webhooks") {
            if hook["suspended"].is_null() {
                hooked.extend(NAMES.iter().position(|name| hook["name"] == *name));
            } else {
                let gone = admin.delete(&format!("/api/v1/webhooks/{}", text(&hook["id"]))).await;
                assert!(gone.status < 300, "{}", gone.text);
            }
        }
        hooked
    }

    /// Gives a role other grants, or everybody.
    async fn change_grants(&mut self, admin: &Admin<'_>, world: &World, random: &mut Rng) {
        let role = random.usize(..=ROLES.len());
        let mut giver = Giver { random, world, variables: &self.variables };
        if role == ROLES.len() {
            self.public = giver.public();
            return self.save_public(admin, world).await;
        }
        self.of_roles[role] = giver.other(&self.of_roles[role]);
        self.save_role(admin, world, role).await;
    }

    /// Gives a user one role more, or takes one of several from them.
    async fn change_roles(&mut self, admin: &Admin<'_>, random: &mut Rng) {
        let (user, role) = (random.usize(1..self.users.len()), random.usize(..ROLES.len()));
        let path = format!("/api/v1/users/{}/roles", self.users[user].0);
        match self.given[user].iter().position(|known| *known == role) {
            // Without a role, open streams and subscriptions of the user would end.
            Some(_) if self.given[user].len() == 1 => {}
            Some(place) => {
                let gone = admin.delete(&format!("{path}/{}", self.roles[role])).await;
                assert!(gone.status < 300, "{}", gone.text);
                self.given[user].remove(place);
            }
            None => {
                must(admin, "POST", &path, json!({ "roleId": self.roles[role] })).await;
                self.given[user].push(role);
            }
        }
    }
}

/// For each row, whether a caller sees each of its cells.
type Seen = BTreeMap<(usize, String), Vec<bool>>;

fn seen(world: &World, caller: &Caller) -> Seen {
    let mut seen = Seen::new();
    for (object, rows) in world.rows.iter().enumerate().take(NAMES.len()) {
        let columns = world.objects[object].columns.iter().map(|column| column.name.as_str());
        let known: Vec<&str> = columns.filter(|name| caller.knows(object, name)).collect();
        for row in rows {
            let sight = caller.sight(world, object, Place::Row(row));
            let cells = ["id"].iter().chain(&known).map(|name| sight.shows(name));
            seen.insert((object, row.id.clone()), cells.collect());
        }
    }
    seen
}

/// The rows of which a caller sees other cells than before.
fn differing(before: &Seen, after: &Seen) -> Vec<(usize, String)> {
    let rows = after.iter().filter(|(row, cells)| before.get(*row).is_some_and(|old| old != *cells));
    rows.map(|(row, _)| row.clone()).collect()
}

/// A change of a row of which nothing depends on the values.
fn touching(random: &mut Rng, (object, id): (usize, String)) -> Write {
    let note = loop {
        match worlds::value(random, "note", &[]) {
            Value::Null => {}
            note => break note,
        }
    };
    Write::new(object, Verb::Update(id, Map::from_iter([("note".to_owned(), note)])))
}

impl State {
    /// A change of one link or one reference.
    fn membership(&self, random: &mut Rng) -> Option<Write> {
        let place = random.usize(..self.world.relations.len());
        let relation = &self.world.relations[place];
        let (holder, referred) = if relation.is_links() { (relation.source, relation.target) } else { relation.sides() };
        let (row, other) = (random.choice(&self.world.rows[holder])?, random.choice(&self.world.rows[referred])?);
        let verb = if relation.is_links() {
            let is_there = self.world.links.contains(&(place, row.id.clone(), other.id.clone()));
            Verb::Link(row.id.clone(), relation.name.clone(), vec![other.id.clone()], is_there)
        } else {
            let value = if one_in(random, 4) { Value::Null } else { json!(other.id) };
            Verb::Update(row.id.clone(), Map::from_iter([(relation.column(), value)]))
        };
        Some(Write::new(holder, verb))
    }
}

impl Run<'_> {
    /// Changes the rights of somebody, and then a row that shows whether open streams follow.
    pub(super) async fn change_rights(&mut self, case: usize, random: &mut Rng) {
        self.tally.changes += 1;
        let watched = if random.bool() { self.listener } else { self.subscriber };
        let before = seen(&self.state.world, &self.callers[watched]);
        let admin = self.server.with_token(self.rights.users[0].1.clone());
        match random.u8(0..7) {
            0 | 1 => self.rights.change_grants(&admin, &self.state.world, random).await,
            2 | 3 => self.rights.change_roles(&admin, random).await,
            4 => return self.change_sight(case, random, watched).await,
            _ => return self.change_membership(case, random, watched, &before).await,
        }
        self.callers = self.rights.callers(&self.state.world);
        self.hooked = self.rights.hook(self.server, &self.receiver.url, &self.hooked).await;
        let touched = differing(&before, &seen(&self.state.world, &self.callers[watched]));
        self.touch(case, random, &touched).await;
    }

    /// Changes a link or a reference, so that a listener sees something else of another row.
    async fn change_membership(&mut self, case: usize, random: &mut Rng, watched: usize, before: &Seen) {
        let admin = self.callers[0].clone();
        for _ in 0..MEMBERSHIPS_TRIED {
            let Some(write) = self.state.membership(random) else { continue };
            let Ok(left) = self.state.write(&admin, &write) else { continue };
            let mut touched = differing(before, &seen(&left.state.world, &self.callers[watched]));
            touched.retain(|(object, id)| !left.emitted.iter().any(|event| event.object == *object && event.id == *id));
            if !touched.is_empty() {
                self.write(case, &admin, write).await;
                return self.touch(case, random, &touched).await;
            }
        }
    }

    /// Changes a value of a row, so that a listener sees only one of the two images.
    async fn change_sight(&mut self, case: usize, random: &mut Rng, watched: usize) {
        let admin = self.callers[0].clone();
        for _ in 0..ROWS_TRIED {
            let object = random.usize(..NAMES.len());
            let Some(id) = random.choice(&self.state.world.rows[object]).map(|row| row.id.clone()) else { continue };
            // Most conditions of grants test one of these.
            let field = *pick(random, &["holder", "amount", "kind"]);
            let values = Map::from_iter([(field.to_owned(), worlds::value(random, field, &self.holders))]);
            let write = Write::new(object, Verb::Update(id.clone(), values));
            let Ok(left) = self.state.write(&admin, &write) else { continue };
            let watcher = &self.callers[watched];
            let sees = |state: &State| state.row(object, &id).is_some_and(|row| watcher.sees(&state.world, object, row));
            if sees(&self.state) != sees(&left.state) {
                return self.write(case, &admin, write).await;
            }
        }
    }

    /// Changes one of the rows that a listener sees in another way than before, as the admin.
    async fn touch(&mut self, case: usize, random: &mut Rng, touched: &[(usize, String)]) {
        if touched.is_empty() {
            return;
        }
        self.tally.followed += 1;
        let row = pick(random, touched).clone();
        let write = touching(random, row);
        let admin = self.callers[0].clone();
        self.write(case, &admin, write).await;
    }
}
