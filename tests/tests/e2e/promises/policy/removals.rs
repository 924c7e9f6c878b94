//! Requests that delete rows, and those that make and remove links.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Caller, NAMES, World, pick};

impl World<'_> {
    /// Whether a reference prevents the deletion of these rows.
    fn is_held(&self, object: usize, ids: &[String]) -> bool {
        self.relations.iter().enumerate().filter(|(_, relation)| relation.restricts).any(|(place, relation)| {
            match relation.is_many_to_many {
                true => self.links.iter().any(|(of, source, target)| {
                    let is_end = |end: usize, id: &String| end == object && ids.contains(id);
                    *of == place && (is_end(relation.source, source) || is_end(relation.target, target))
                }),
                false => {
                    relation.target == object
                        && self.rows[relation.source].iter().any(|row| {
                            let goes = relation.source == object && ids.contains(&row.id);
                            !goes && row.references.get(&place).is_some_and(|to| ids.contains(to))
                        })
                }
            }
        })
    }

    /// Deletes rows. In the rows that stay, it clears references to the deleted rows. The caller then counts as the one who last
    /// updated these rows.
    fn remove(&mut self, caller: &Caller, object: usize, ids: &[String]) {
        let mut unlinked = Vec::new();
        for (place, relation) in self.relations.clone().into_iter().enumerate() {
            let source = relation.source;
            if relation.is_many_to_many {
                let is_end = |end: usize, id: &String| end == object && ids.contains(id);
                // There is one event for each deleted record. If only one side shows the relation, the event belongs to the
                // source.
                let mut told = BTreeSet::new();
                self.links.retain(|(of, from, to)| {
                    let goes = *of == place && (is_end(source, from) || is_end(relation.target, to));
                    if goes {
                        let is_of_target = source != relation.target && !is_end(source, from);
                        told.insert((is_of_target, if is_of_target { to.clone() } else { from.clone() }));
                    }
                    !goes
                });
                unlinked
                    .extend(told.into_iter().map(|(is_of_target, id)| (if is_of_target { relation.target } else { source }, id)));
                continue;
            }
            if relation.target != object {
                continue;
            }
            let mut cleared = Vec::new();
            for row in &mut self.rows[source] {
                let goes = source == object && ids.contains(&row.id);
                if !goes && row.references.get(&place).is_some_and(|to| ids.contains(to)) {
                    row.references.remove(&place);
                    row.changer = caller.user;
                    cleared.push(row.id.clone());
                }
            }
            cleared.iter().for_each(|id| self.tell(source, id, "updated"));
        }
        unlinked.iter().for_each(|(near, id)| self.tell(*near, id, "unlinked"));
        ids.iter().for_each(|id| self.tell(object, id, "deleted"));
        self.rows[object].retain(|row| !ids.contains(&row.id));
    }

    pub(super) async fn delete(&mut self, caller: &Caller) {
        let object = self.object();
        let id = self.id(object);
        let path = format!("/api/v1/data/{}/{id}", NAMES[object]);
        let answer = self.send(caller, "DELETE", &path, None).await;
        if !self.may(caller, object, "delete") {
            self.denied(caller, &answer);
            return self.tells_nothing(caller, "DELETE", &path, &id, None, &answer).await;
        }
        if !self.reaches(caller, object, "delete", &id) {
            self.expect(404, &answer);
            self.tally.hidden += 1;
            return self.tells_nothing(caller, "DELETE", &path, &id, None, &answer).await;
        }
        if self.is_held(object, std::slice::from_ref(&id)) {
            return self.conflict(&answer);
        }
        self.expect(204, &answer);
        self.remove(caller, object, &[id]);
        self.tally.done += 1;
    }

    pub(super) async fn delete_many(&mut self, caller: &Caller) {
        let object = self.object();
        let ids: BTreeSet<String> = (0..self.random.usize(1..4)).map(|_| self.id(object)).collect();
        let mut ids: Vec<String> = ids.into_iter().collect();
        self.random.shuffle(&mut ids);
        let path = format!("/api/v1/data/{}/bulk", NAMES[object]);
        let answer = self.send(caller, "DELETE", &path, Some(json!({ "ids": ids }))).await;
        if !self.may(caller, object, "delete") {
            return self.denied(caller, &answer);
        }
        let reached: Vec<String> = ids.iter().filter(|id| self.reaches(caller, object, "delete", id)).cloned().collect();
        if self.is_held(object, &reached) {
            return self.conflict(&answer);
        }
        self.expect(200, &answer);
        assert_eq!(answer.json(), json!({ "count": reached.len(), "ids": reached }), "{}", self.place);
        self.tally.hidden += usize::from(reached.len() < ids.len());
        self.remove(caller, object, &reached);
        self.tally.done += 1;
    }

    pub(super) async fn link(&mut self, caller: &Caller) {
        let many: Vec<usize> = (0..self.relations.len()).filter(|place| self.relations[*place].is_many_to_many).collect();
        let place = pick(&mut self.random, &many);
        let relation = self.relations[place].clone();
        let is_forward = relation.source == relation.target || self.random.bool();
        let (object, other) = if is_forward { (relation.source, relation.target) } else { (relation.target, relation.source) };
        let (id, count) = (self.id(object), self.random.usize(1..4));
        let ids: BTreeSet<String> = (0..count).map(|_| self.id(other)).collect();
        let adds = self.random.u8(..) < 160;
        let path = format!("/api/v1/data/{}/{id}/links/{}", NAMES[object], relation.name);
        let (method, sent) = (if adds { "POST" } else { "DELETE" }, Some(json!({ "ids": ids })));
        let answer = self.send(caller, method, &path, sent.clone()).await;
        if !self.may(caller, object, "update") || !self.may(caller, other, "read") {
            self.denied(caller, &answer);
            return self.tells_nothing(caller, method, &path, &id, sent, &answer).await;
        }
        if !self.reaches(caller, object, "update", &id) {
            self.expect(404, &answer);
            self.tally.hidden += 1;
            return self.tells_nothing(caller, method, &path, &id, sent, &answer).await;
        }
        let visible: Vec<String> = ids.iter().filter(|id| self.reaches(caller, other, "read", id)).cloned().collect();
        if adds && visible.len() < ids.len() {
            self.tally.hidden += 1;
            self.conflict(&answer);
            return self.hides_references(caller, method, &path, sent.unwrap(), &answer).await;
        }
        self.expect(200, &answer);
        let mut changed = 0;
        for other in visible {
            let link = if is_forward { (place, id.clone(), other) } else { (place, other, id.clone()) };
            changed += usize::from(if adds { self.links.insert(link) } else { self.links.remove(&link) });
        }
        let expected = if adds { json!({ "added": changed }) } else { json!({ "removed": changed }) };
        assert_eq!(answer.data(), expected, "{}", self.place);
        if changed > 0 {
            self.tell(object, &id, if adds { "linked" } else { "unlinked" });
        }
        self.tally.done += 1;
    }
}
