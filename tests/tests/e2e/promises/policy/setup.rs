//! The setup before the requests: objects, relations, rows, roles, keys.

use fastrand::Rng;
use serde_json::json;

use super::{ACTIONS, Caller, Grant, NAMES, Relation, World, permissions, text};

fn grants(random: &mut Rng, objects: usize) -> Vec<Grant> {
    (0..random.usize(1..5))
        .map(|_| {
            let resource = match random.u8(0..12) {
                0 => "*".to_owned(),
                1 => "objects".to_owned(),
                _ => NAMES[random.usize(..objects)].to_owned(),
            };
            let actions = match random.u8(0..8) {
                0 => vec!["manage"],
                _ => {
                    let count = random.usize(1..4);
                    random.choose_multiple(ACTIONS[..4].iter().copied(), count)
                }
            };
            Grant { resource, actions, is_own: random.u8(..) < 120 }
        })
        .collect()
}

impl World<'_> {
    /// Makes objects, relations, and rows of all users.
    pub(super) async fn make_rows(&mut self) {
        for name in NAMES[..self.objects()].iter().copied().chain(["beacon"]) {
            let fields = json!([
                { "name": "title", "type": "text", "required": true },
                { "name": "code", "type": "slug", "isUnique": true },
                { "name": "amount", "type": "integer" },
            ]);
            self.admin("POST", "/api/v1/objects", json!({ "name": name, "fields": fields })).await;
        }
        let objects = self.objects();
        for place in 0..self.random.usize(2..5) {
            // There is at least one relation of each kind.
            let is_many_to_many = if place < 2 { place == 1 } else { self.random.bool() };
            let relation = Relation {
                name: format!("{}{place}", if is_many_to_many { "peers" } else { "up" }),
                is_many_to_many,
                source: self.random.usize(..objects),
                target: self.random.usize(..objects),
                restricts: self.random.bool(),
            };
            let on_delete = match (relation.restricts, is_many_to_many) {
                (true, _) => "restrict",
                (false, true) => "cascade",
                (false, false) => "set_null",
            };
            let body = json!({
                "name": relation.name,
                "kind": if is_many_to_many { "many_to_many" } else { "many_to_one" },
                "source": NAMES[relation.source],
                "target": NAMES[relation.target],
                "onDelete": on_delete,
            });
            self.admin("POST", "/api/v1/relationships", body).await;
            self.relations.push(relation);
        }

        let everything = Grant { resource: "*".to_owned(), actions: vec!["manage"], is_own: false };
        // During the setup, everybody has all rights.
        self.admin("PATCH", "/api/v1/roles/public", json!({ "permissions": [everything.json()] })).await;
        let makers: Vec<Caller> =
            self.callers.iter().map(|caller| Caller { grants: vec![everything.clone()], ..caller.clone() }).collect();
        for turn in 0..30 {
            self.create(&makers[turn % makers.len()]).await;
        }
        for turn in 0..12 {
            self.link(&makers[turn % makers.len()]).await;
        }
        self.check_everything().await;
    }

    /// Makes random roles, and assigns them.
    pub(super) async fn give_roles(&mut self) {
        let objects = self.objects();
        let mut roles = Vec::new();
        // Everybody with a role sees the beacons, so that the test can recognize the beginning and the end of each stream.
        let beacon = Grant { resource: "beacon".to_owned(), actions: vec!["read"], is_own: false };
        for number in 0..6 {
            let mut grants = grants(&mut self.random, objects);
            if number == 0 {
                let whole = |name: &&str| Grant { resource: (*name).to_owned(), actions: vec!["manage"], is_own: true };
                grants = NAMES[..objects].iter().map(whole).collect();
            }
            grants.push(beacon.clone());
            self.admin("POST", "/api/v1/roles", json!({ "name": format!("role{number}"), "permissions": permissions(&grants) }))
                .await;
            roles.push(grants);
        }
        let public = if self.random.bool() { grants(&mut self.random, objects) } else { Vec::new() };
        self.admin("PATCH", "/api/v1/roles/public", json!({ "permissions": permissions(&public) })).await;
        for caller in 1..self.callers.len() {
            let mut held = public.clone();
            if let (Some(user), Some(_)) = (self.callers[caller].user, &self.callers[caller].credential) {
                let count = self.random.usize(0..4);
                let mut given = self.random.choose_multiple(1..roles.len(), count);
                if user == 1 {
                    // At least one caller has only rights to their own rows.
                    given = vec![0];
                }
                for role in given {
                    let path = format!("/api/v1/users/{}/roles", self.users[user]);
                    self.admin("POST", &path, json!({ "roleId": format!("role{role}") })).await;
                    held.extend(roles[role].iter().cloned());
                }
            }
            self.callers[caller].grants = held;
        }
        for number in 0..2 {
            let (role, user) =
                (if number == 0 { 0 } else { self.random.usize(1..roles.len()) }, self.random.usize(1..self.users.len()));
            let body = json!({ "name": "key", "roleId": format!("role{role}"), "userId": self.users[user] });
            let key = text(&self.admin("POST", "/api/v1/api-keys", body).await["key"]);
            let (name, grants) = (format!("key{number}"), roles[role].clone());
            self.callers.push(Caller { name, credential: Some(key), user: Some(user), grants });
        }
    }
}
