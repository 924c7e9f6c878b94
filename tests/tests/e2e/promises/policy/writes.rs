//! Requests that make and change rows: create, bulk create, update, upsert.

use std::collections::BTreeMap;

use blockbase_tests::Answer;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::{Caller, Event, MISSING, NAMES, ROWS_MAX, Row, TITLES, World, pick, text};

impl World<'_> {
    /// A body for a new row, or for a change of some of its fields.
    fn body(&mut self, object: usize, is_change: bool) -> Map<String, Value> {
        let mut body = Map::new();
        let is_in = |random: &mut Rng| random.u8(..) < if is_change { 100 } else { 170 };
        if !is_change || is_in(&mut self.random) {
            body.insert("title".to_owned(), json!(pick(&mut self.random, &TITLES)));
        }
        if is_in(&mut self.random) {
            body.insert("code".to_owned(), json!(format!("c{}", self.random.u8(0..40))));
        }
        if is_in(&mut self.random) {
            body.insert("amount".to_owned(), json!(self.random.i64(-9..20)));
        }
        for place in 0..self.relations.len() {
            let relation = self.relations[place].clone();
            if !relation.is_many_to_many && relation.source == object && self.random.u8(..) < 100 {
                body.insert(format!("{}_id", relation.name), json!(self.id(relation.target)));
            }
        }
        body
    }

    /// Whether the caller sees every row that a body refers to.
    fn refers_to_visible(&self, caller: &Caller, object: usize, body: &Map<String, Value>) -> bool {
        self.relations.iter().filter(|relation| !relation.is_many_to_many && relation.source == object).all(|relation| match body
            .get(&format!("{}_id", relation.name))
            .and_then(Value::as_str)
        {
            Some(id) => self.reaches(caller, relation.target, "read", id),
            None => true,
        })
    }

    /// The row that already has the unique code of a body.
    fn holder_of_code(&self, object: usize, body: &Map<String, Value>) -> Option<&Row> {
        let code = body.get("code")?.as_str()?;
        self.rows[object].iter().find(|row| row.code.as_deref() == Some(code))
    }

    fn write(&mut self, caller: &Caller, object: usize, id: &str, body: &Map<String, Value>) {
        let relations = self.relations.clone();
        let row = self.rows[object].iter_mut().find(|row| row.id == id).unwrap();
        row.changer = caller.user;
        for (name, value) in body {
            match (name.as_str(), value) {
                ("title", value) => row.title = text(value),
                ("code", value) => row.code = value.as_str().map(str::to_owned),
                ("amount", Value::Object(sum)) => row.amount = row.amount.map(|known| known + sum["$inc"].as_i64().unwrap()),
                ("amount", value) => row.amount = value.as_i64(),
                (name, value) => {
                    let relation = relations.iter().position(|relation| name == format!("{}_id", relation.name));
                    if let Some(place) = relation {
                        row.references.insert(place, text(value));
                    }
                }
            }
        }
    }

    pub(super) fn insert(&mut self, caller: &Caller, object: usize, id: &str, created_at: &str, body: &Map<String, Value>) {
        self.rows[object].push(Row {
            id: id.to_owned(),
            created_at: created_at.to_owned(),
            owner: caller.user,
            changer: caller.user,
            title: String::new(),
            code: None,
            amount: None,
            references: BTreeMap::new(),
        });
        self.write(caller, object, id, body);
        self.tell(object, id, "created");
    }

    pub(super) fn tell(&mut self, object: usize, id: &str, op: &str) {
        let owner = self.row(object, id).unwrap().owner;
        self.events.push(Event { topic: format!("data.{}.{op}", NAMES[object]), id: id.to_owned(), object, owner });
    }

    #[track_caller]
    pub(super) fn conflict(&self, answer: &Answer) {
        self.expect(409, answer);
    }

    /// If a write refers to a hidden row, it is refused with the same words as a write that refers to a row that does not exist.
    pub(super) async fn hides_references(&mut self, caller: &Caller, method: &str, path: &str, body: Value, answer: &Answer) {
        let (mut sent, mut text) = (body.to_string(), answer.text.clone());
        let others = self.relations.iter().flat_map(|relation| [relation.source, relation.target]);
        let hidden: Vec<String> = others
            .flat_map(|other| self.rows[other].iter().map(move |row| (other, row.id.clone())))
            .filter(|(other, id)| sent.contains(id) && !self.reaches(caller, *other, "read", id))
            .map(|(_, id)| id)
            .collect();
        for id in hidden {
            (sent, text) = (sent.replace(&id, MISSING), text.replace(&id, MISSING));
        }
        let other = self.send(caller, method, path, Some(serde_json::from_str(&sent).unwrap())).await;
        assert_eq!((answer.status, &text), (other.status, &other.text), "{}", self.place);
    }

    pub(super) async fn create(&mut self, caller: &Caller) {
        let object = self.object();
        if self.rows[object].len() >= ROWS_MAX {
            return;
        }
        let body = self.body(object, false);
        let path = format!("/api/v1/data/{}", NAMES[object]);
        let answer = self.send(caller, "POST", &path, Some(Value::Object(body.clone()))).await;
        if !self.may(caller, object, "create") {
            return self.denied(caller, &answer);
        }
        if !self.refers_to_visible(caller, object, &body) {
            self.conflict(&answer);
            return self.hides_references(caller, "POST", &path, Value::Object(body), &answer).await;
        }
        if self.holder_of_code(object, &body).is_some() {
            return self.conflict(&answer);
        }
        self.expect(201, &answer);
        let record = answer.data();
        self.insert(caller, object, &text(&record["id"]), &text(&record["created_at"]), &body);
        self.check_record(&record, self.rows[object].last().unwrap(), object);
        self.tally.done += 1;
    }

    pub(super) async fn create_many(&mut self, caller: &Caller) {
        let object = self.object();
        let bodies: Vec<Map<String, Value>> = (0..self.random.usize(1..4)).map(|_| self.body(object, false)).collect();
        if self.rows[object].len() + bodies.len() > ROWS_MAX {
            return;
        }
        let path = format!("/api/v1/data/{}/bulk", NAMES[object]);
        let answer = self.send(caller, "POST", &path, Some(json!({ "data": bodies }))).await;
        if !self.may(caller, object, "create") {
            return self.denied(caller, &answer);
        }
        let codes: Vec<&Value> = bodies.iter().filter_map(|body| body.get("code")).collect();
        let is_taken = |body: &Map<String, Value>| self.holder_of_code(object, body).is_some();
        if bodies.iter().any(|body| !self.refers_to_visible(caller, object, body) || is_taken(body))
            || codes.iter().enumerate().any(|(place, code)| codes[..place].contains(code))
        {
            return self.conflict(&answer);
        }
        self.expect(201, &answer);
        let ids: Vec<String> = answer.json()["ids"].as_array().unwrap().iter().map(text).collect();
        assert_eq!((ids.len(), &answer.json()["count"]), (bodies.len(), &json!(bodies.len())), "{}", self.place);
        for (id, body) in ids.iter().zip(&bodies) {
            let path = format!("/api/v1/data/{}/{id}", NAMES[object]);
            let seen = self.server.call_as(self.callers[0].credential.as_deref(), "GET", &path, None).await;
            let created_at = text(&seen.data()["created_at"]);
            self.insert(caller, object, id, &created_at, body);
        }
        self.tally.done += 1;
    }

    /// Checks the response to the change of a row that the caller may not read: the response has the id, and the values that they
    /// sent.
    fn check_changed(&self, caller: &Caller, object: usize, record: &Value, id: &str, body: &Map<String, Value>) {
        let row = self.row(object, id).unwrap();
        if self.reaches(caller, object, "read", id) {
            return self.check_record(record, row, object);
        }
        for name in record.as_object().unwrap().keys() {
            let is_sent = body.get(name).is_some_and(|sent| !sent.is_object());
            assert!(name == "id" || is_sent, "shows {name} of {record}: {}", self.place);
        }
    }

    pub(super) async fn update(&mut self, caller: &Caller) {
        let object = self.object();
        let (id, mut body) = (self.id(object), self.body(object, true));
        if self.random.u8(..) < 60 {
            body.insert("amount".to_owned(), json!({ "$inc": self.random.i64(-3..4) }));
        }
        let path = format!("/api/v1/data/{}/{id}", NAMES[object]);
        let sent = Some(Value::Object(body.clone()));
        let answer = self.send(caller, "PATCH", &path, sent.clone()).await;
        if !self.may(caller, object, "update") {
            self.denied(caller, &answer);
            return self.tells_nothing(caller, "PATCH", &path, &id, sent, &answer).await;
        }
        if !self.reaches(caller, object, "update", &id) {
            self.expect(404, &answer);
            self.tally.hidden += 1;
            return self.tells_nothing(caller, "PATCH", &path, &id, sent, &answer).await;
        }
        let is_taken = self.holder_of_code(object, &body).is_some_and(|holder| holder.id != id);
        if !self.refers_to_visible(caller, object, &body) {
            self.conflict(&answer);
            return self.hides_references(caller, "PATCH", &path, Value::Object(body), &answer).await;
        }
        if is_taken {
            return self.conflict(&answer);
        }
        self.expect(200, &answer);
        if !body.is_empty() {
            self.write(caller, object, &id, &body);
            self.tell(object, &id, "updated");
        }
        self.check_changed(caller, object, &answer.data(), &id, &body);
        self.tally.done += 1;
    }

    pub(super) async fn upsert(&mut self, caller: &Caller) {
        let object = self.object();
        if self.rows[object].len() >= ROWS_MAX {
            return;
        }
        let mut body = self.body(object, false);
        let target = pick(&mut self.random, &["code", "code", "id"]);
        if target == "code" {
            body.insert("code".to_owned(), json!(format!("c{}", self.random.u8(0..40))));
        } else {
            let new = format!("20000000-0000-4000-8000-{:012x}", self.random.u64(1..1 << 40));
            let id = if self.random.bool() { new } else { self.id(object) };
            // There must never be a record with the id `MISSING`, but an upsert by the admin would make one.
            body.insert("id".to_owned(), json!(if id == MISSING { "20000000-0000-4000-8000-ffffffffffff" } else { &id }));
        }
        let path = format!("/api/v1/data/{}?on_conflict={target}", NAMES[object]);
        let answer = self.send(caller, "POST", &path, Some(Value::Object(body.clone()))).await;
        if !self.may(caller, object, "create") || !self.may(caller, object, "update") {
            return self.denied(caller, &answer);
        }
        let known = match body.get("id").filter(|_| target == "id") {
            Some(id) => self.row(object, id.as_str().unwrap()),
            None => self.holder_of_code(object, &body),
        };
        let known = known.cloned();
        if let Some(row) = known.as_ref().filter(|row| !self.reaches(caller, object, "update", &row.id)) {
            self.expect(403, &answer);
            assert!(target == "id" || !answer.text.contains(&row.id), "{}: {}", self.place, answer.text);
            assert!(answer.json()["data"].is_null() && !answer.text.contains(&row.title), "{}: {}", self.place, answer.text);
            self.tally.hidden += 1;
            return;
        }
        let known = known.map(|row| row.id);
        let is_taken = self.holder_of_code(object, &body).is_some_and(|holder| known.as_ref() != Some(&holder.id));
        if !self.refers_to_visible(caller, object, &body) {
            self.conflict(&answer);
            // The id in the body is not a reference.
            if target == "code" {
                self.hides_references(caller, "POST", &path, Value::Object(body), &answer).await;
            }
            return;
        }
        if is_taken {
            return self.conflict(&answer);
        }
        self.expect(if known.is_some() { 200 } else { 201 }, &answer);
        assert_eq!(answer.json()["created"], known.is_none(), "{}", self.place);
        let record = answer.data();
        match &known {
            Some(id) => {
                self.write(caller, object, id, &body);
                self.tell(object, id, "updated");
            }
            None => self.insert(caller, object, &text(&record["id"]), &text(&record["created_at"]), &body),
        }
        let id = text(&record["id"]);
        match known {
            Some(_) => self.check_changed(caller, object, &record, &id, &body),
            None => self.check_record(&record, self.row(object, &id).unwrap(), object),
        }
        self.tally.done += 1;
    }
}
