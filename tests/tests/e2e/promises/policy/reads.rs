//! Requests that read: list, get, aggregate, discovery.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Caller, NAMES, Reach, Row, TERMS, World, allowed, ids_of, pick, text};

/// A filter of a list.
enum Condition {
    Search(&'static str),
    TitleHolds(&'static str),
    AmountFrom(i64),
    CreatedBy(usize),
    RefersTo(usize, String),
}

impl World<'_> {
    fn conditions(&mut self, object: usize) -> Vec<Condition> {
        (0..self.random.usize(0..3))
            .map(|_| match self.random.u8(0..5) {
                0 => Condition::Search(pick(&mut self.random, &TERMS)),
                1 => Condition::TitleHolds(pick(&mut self.random, &TERMS)),
                2 => Condition::CreatedBy(self.random.usize(..self.users.len())),
                3 => {
                    let relations = self.relations.iter().enumerate();
                    let found = relations.clone().find(|(_, relation)| !relation.is_many_to_many && relation.source == object);
                    match found.map(|(place, relation)| (place, relation.target)) {
                        Some((place, target)) => Condition::RefersTo(place, self.id(target)),
                        None => Condition::AmountFrom(0),
                    }
                }
                _ => Condition::AmountFrom(self.random.i64(-5..10)),
            })
            .collect()
    }

    fn query(&self, conditions: &[Condition]) -> Vec<String> {
        let one = |condition: &Condition| match condition {
            Condition::Search(term) => format!("search={term}"),
            Condition::TitleHolds(term) => format!("title%5Bilike%5D={term}"),
            Condition::AmountFrom(amount) => format!("amount%5Bgte%5D={amount}"),
            Condition::CreatedBy(user) => format!("created_by={}", self.users[*user]),
            Condition::RefersTo(place, id) => format!("{}_id={id}", self.relations[*place].name),
        };
        // If there were several searches, only the last would apply.
        let mut query: Vec<String> = Vec::new();
        for condition in conditions {
            query.retain(|known| !(matches!(condition, Condition::Search(_)) && known.starts_with("search=")));
            query.push(one(condition));
        }
        query
    }

    /// The rows in a caller's list, in the order of their creation.
    fn visible(&self, caller: &Caller, object: usize, conditions: &[Condition]) -> Vec<&Row> {
        let last_search = conditions.iter().rposition(|condition| matches!(condition, Condition::Search(_)));
        let holds = |text: &str, term: &str| text.to_lowercase().contains(&term.to_lowercase());
        let is_match = |row: &Row| {
            conditions.iter().enumerate().all(|(place, condition)| match condition {
                Condition::Search(_) if Some(place) != last_search => true,
                Condition::Search(term) => holds(&row.title, term) || row.code.as_deref().is_some_and(|code| holds(code, term)),
                Condition::TitleHolds(term) => holds(&row.title, term),
                Condition::AmountFrom(amount) => row.amount.is_some_and(|known| known >= *amount),
                Condition::CreatedBy(user) => row.owner == Some(*user),
                Condition::RefersTo(place, id) => row.references.get(place).is_some_and(|known| known == id),
            })
        };
        self.rows[object].iter().filter(|row| self.reaches(caller, object, "read", &row.id) && is_match(row)).collect()
    }

    pub(super) async fn list(&mut self, caller: &Caller) {
        let object = self.object();
        let (conditions, expand) = (self.conditions(object), self.expand(object));
        let mut query = self.query(&conditions);
        let sort = pick(&mut self.random, &["", "amount", "-amount", "title,-amount", "-title"]);
        if !sort.is_empty() {
            query.push(format!("sort={sort}"));
        }
        if !expand.is_empty() {
            query.push(format!("expand={}", expand.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(",")));
        }
        let (limit, offset) = match self.random.u8(0..3) {
            0 => {
                let (limit, offset) = (self.random.usize(1..6), self.random.usize(0..6));
                query.push(format!("limit={limit}&offset={offset}"));
                (limit, offset)
            }
            1 => {
                let (page, size) = (self.random.usize(1..4), self.random.usize(1..5));
                query.push(format!("page={page}&pageSize={size}"));
                (size, (page - 1) * size)
            }
            _ => (25, 0),
        };
        let counts = self.random.u8(..) < 220;
        if !counts {
            query.push("count=none".to_owned());
        }
        let path = format!("/api/v1/data/{}?{}", NAMES[object], query.join("&"));
        let answer = self.send(caller, "GET", &path, None).await;
        if !self.may(caller, object, "read") {
            self.denied(caller, &answer);
            // The refusal does not reveal whether the object exists, except to callers who may know of all objects.
            if allowed(caller, "objects", "read") != Some(Reach::All) {
                let other = self.send(caller, "GET", "/api/v1/data/ghost", None).await;
                let same = other.text.replace("ghost", NAMES[object]);
                assert_eq!((answer.status, &answer.text), (other.status, &same), "{}", self.place);
            }
            return;
        }
        if !self.may_expand(caller, object, &expand) {
            return self.denied(caller, &answer);
        }
        self.expect(200, &answer);
        let all = self.visible(&self.callers[0], object, &conditions).len();
        let mut found = self.visible(caller, object, &conditions);
        let hides = found.len() < all;
        found.sort_by(|one, other| order(one, other, sort));
        let (page, json) =
            (found[offset.min(found.len())..].iter().take(limit).map(|row| row.id.clone()).collect::<Vec<_>>(), answer.json());
        assert_eq!(ids_of(&json["data"]), page, "{}", self.place);
        let pagination = &json["pagination"];
        let total = |count: usize| if counts { json!(count) } else { Value::Null };
        assert_eq!(pagination["totalCount"], total(found.len()), "{}", self.place);
        assert_eq!(pagination["totalPages"], total(found.len().div_ceil(limit)), "{}", self.place);
        assert_eq!(pagination["hasNextPage"], offset + limit < found.len(), "{}", self.place);
        for record in json["data"].as_array().unwrap() {
            self.check_record(record, self.row(object, record["id"].as_str().unwrap()).unwrap(), object);
            expand.iter().for_each(|path| self.check_expanded(caller, object, record, path));
        }
        self.tally.hidden += usize::from(hides);
        self.tally.done += 1;
    }

    pub(super) async fn get(&mut self, caller: &Caller) {
        let object = self.object();
        let (id, expand) = (self.id(object), self.expand(object));
        let expanded: Vec<String> = expand.iter().map(|path| path.join(".")).collect();
        let path = format!("/api/v1/data/{}/{id}?expand={}", NAMES[object], expanded.join(","));
        let answer = self.send(caller, "GET", &path, None).await;
        if !self.may(caller, object, "read") || !self.may_expand(caller, object, &expand) {
            self.denied(caller, &answer);
            return self.tells_nothing(caller, "GET", &path, &id, None, &answer).await;
        }
        if !self.reaches(caller, object, "read", &id) {
            self.expect(404, &answer);
            self.tally.hidden += 1;
            return self.tells_nothing(caller, "GET", &path, &id, None, &answer).await;
        }
        self.expect(200, &answer);
        let record = answer.data();
        self.check_record(&record, self.row(object, &id).unwrap(), object);
        expand.iter().for_each(|path| self.check_expanded(caller, object, &record, path));
        self.tally.done += 1;
    }

    pub(super) async fn aggregate(&mut self, caller: &Caller) {
        let object = self.object();
        let conditions = self.conditions(object);
        let function = pick(&mut self.random, &["fn=count", "fn=sum&field=amount", "fn=max&field=amount"]);
        let mut query = self.query(&conditions);
        query.push(function.to_owned());
        let path = format!("/api/v1/data/{}/aggregate?{}", NAMES[object], query.join("&"));
        let answer = self.send(caller, "GET", &path, None).await;
        if !self.may(caller, object, "read") {
            return self.denied(caller, &answer);
        }
        self.expect(200, &answer);
        let found = self.visible(caller, object, &conditions);
        let amounts: Vec<i64> = found.iter().filter_map(|row| row.amount).collect();
        let value = match function {
            "fn=count" => json!(found.len()),
            "fn=sum&field=amount" if !amounts.is_empty() => json!(amounts.iter().sum::<i64>()),
            _ => json!(amounts.iter().max()),
        };
        let data = answer.data();
        assert_eq!((&data["value"], &data["filteredCount"]), (&value, &json!(found.len())), "{}: {data}", self.place);
        self.tally.done += 1;
    }

    pub(super) async fn discover(&mut self, caller: &Caller) {
        let answer = self.send(caller, "GET", "/api/v1/data", None).await;
        self.expect(200, &answer);
        let shown: BTreeSet<String> = answer.data().as_array().unwrap().iter().map(|object| text(&object["name"])).collect();
        let names = NAMES[..self.objects()].iter().copied().chain(["beacon"]);
        let expected: BTreeSet<String> =
            names.filter(|name| allowed(caller, name, "read").is_some()).map(str::to_owned).collect();
        assert_eq!(shown, expected, "{}", self.place);
    }
}

/// The order of a list. If two rows are equal, they are in the order of their ids, in the direction of the first key.
fn order(one: &Row, other: &Row, sort: &str) -> Ordering {
    let sort = if sort.is_empty() { "-created_at" } else { sort };
    let mut ordering = Ordering::Equal;
    for key in sort.split(',') {
        let (name, descends) = key.strip_prefix('-').map_or((key, false), |name| (name, true));
        let by_key = match name {
            // Null sorts as the largest value.
            "amount" => one.amount.unwrap_or(i64::MAX).cmp(&other.amount.unwrap_or(i64::MAX)),
            "title" => one.title.cmp(&other.title),
            _ => one.created_at.cmp(&other.created_at),
        };
        ordering = ordering.then(if descends { by_key.reverse() } else { by_key });
    }
    let by_id = one.id.cmp(&other.id);
    ordering.then(if sort.starts_with('-') { by_id.reverse() } else { by_id })
}
