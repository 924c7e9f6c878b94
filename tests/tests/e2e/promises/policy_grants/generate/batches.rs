//! Random batches. Many of them depend on when their checks are judged.

use serde_json::{Map, Value, json};

use super::Requests;
use crate::promises::conditions::worlds::pick;
use crate::promises::policy_grants::Refusal;
use crate::promises::policy_grants::batches::UNCLEAR;
use crate::promises::policy_grants::placeholders::placeholder;
use crate::promises::policy_grants::verbs::{Operation, Verb, Write};
use crate::promises::policy_grants::worlds::NAMES;

/// The number of batches of which the first one is sent that the reference accepts. If it refuses all, the last one is sent.
const TRIED: usize = 3;
/// The number of changes of one row that are tried to find one that only fails a check.
const CHANGES_TRIED: usize = 4;

fn batch_of(operations: Vec<Operation>) -> Write {
    let object = operations.first().map_or(0, |operation| operation.object);
    Write::new(object, Verb::Batch(operations))
}

impl Requests<'_> {
    pub(super) fn batch(&mut self) -> Write {
        for _ in 0..TRIED {
            let batch = self.any_batch();
            if !self.state.write(self.caller, &batch).is_err_and(|refusals| refusals.contains(&UNCLEAR)) {
                return batch;
            }
        }
        self.single()
    }

    fn any_batch(&mut self) -> Write {
        let kind = self.random.u8(0..4);
        // Half of the batches that write a record twice are wrong, because their first operation leaves it failing its check.
        if kind == 0 && self.random.bool() {
            return self.twice(true);
        }
        let mut batch = self.some_batch(kind);
        for _ in 1..TRIED {
            if self.state.write(self.caller, &batch).is_ok() {
                break;
            }
            batch = self.some_batch(kind);
        }
        batch
    }

    fn some_batch(&mut self, kind: u8) -> Write {
        match kind {
            0 => self.twice(false),
            1 | 2 => self.family(),
            _ => self.several(),
        }
    }

    /// Any writes of single records.
    fn several(&mut self) -> Write {
        let count = self.random.usize(2..4);
        let mut operations = Vec::new();
        while operations.len() < count {
            let Write { object, verb, .. } = self.single();
            if !matches!(verb, Verb::CreateMany(_) | Verb::UpdateMany(..) | Verb::DeleteMany(_)) {
                operations.push(Operation { object, verb });
            }
        }
        batch_of(operations)
    }

    /// Two writes of one record. `is_failing` says whether the first one leaves a record that fails its check. The second one
    /// often mends or deletes it, which does not help.
    fn twice(&mut self, is_failing: bool) -> Write {
        let object = self.object("update");
        let id = self.id(object, "update");
        let mut first = self.values(object, "update");
        for _ in 1..CHANGES_TRIED {
            let alone = Write::new(object, Verb::Update(id.clone(), first.clone()));
            let fails_check = match self.state.write(self.caller, &alone) {
                Ok(_) => Some(false),
                Err(refusals) => {
                    let is_of_check = refusals.contains(&Refusal::new(403, "forbidden"));
                    (is_of_check && refusals.iter().all(|other| other.status == 403)).then_some(true)
                }
            };
            if fails_check == Some(is_failing) {
                break;
            }
            first = self.values(object, "update");
        }
        let mut batch = self.written_again(object, &id, &first);
        for _ in 1..CHANGES_TRIED {
            // Without the check of the first operation, this batch would succeed.
            let is_at_first = |refusals: Vec<Refusal>| refusals.iter().all(|refusal| refusal.index == Some(0));
            if self.state.write(self.caller, &batch).map_or_else(is_at_first, |_| true) {
                break;
            }
            batch = self.written_again(object, &id, &first);
        }
        batch
    }

    /// A change of a record, and another write of it.
    fn written_again(&mut self, object: usize, id: &str, first: &Map<String, Value>) -> Write {
        let ends = self.state.world.ends(object).into_iter().filter(|end| self.state.world.relations[end.relation].is_links());
        let ends: Vec<_> = ends.collect();
        let second = match self.random.u8(0..6) {
            0 | 1 => Verb::Delete(id.to_owned()),
            2 if !ends.is_empty() => {
                let end = pick(self.random, &ends);
                let ids = vec![self.id(end.object, "read")];
                Verb::Link(id.to_owned(), end.key.clone(), ids, self.random.bool())
            }
            _ => {
                // The second change sets the same fields again.
                let mut second = self.values(object, "update");
                for name in first.keys().filter(|name| !second.contains_key(*name)).cloned().collect::<Vec<_>>() {
                    let value = self.value(object, &name);
                    second.insert(name, value);
                }
                Verb::Update(id.to_owned(), second)
            }
        };
        let verbs = [Verb::Update(id.to_owned(), first.clone()), second];
        batch_of(verbs.map(|verb| Operation { object, verb }).into())
    }

    /// A new record, and another write that refers to it.
    fn family(&mut self) -> Write {
        let state = self.state;
        let place = self.random.usize(..state.world.relations.len());
        let relation = &state.world.relations[place];
        let (holder, referred) = if relation.is_links() { (relation.source, relation.target) } else { relation.sides() };
        // Nobody makes users as records.
        if referred >= NAMES.len() || [holder, referred].into_iter().any(|object| self.is_full(object)) {
            return self.several();
        }
        let first = Operation { object: referred, verb: Verb::Create(self.values(referred, "create")) };
        let second = if relation.is_links() {
            let ids = vec![placeholder(0)];
            Operation { object: holder, verb: Verb::Link(self.id(holder, "update"), relation.name.clone(), ids, false) }
        } else {
            let reference = (relation.column(), json!(placeholder(0)));
            if self.random.bool() {
                let mut values = self.values(holder, "create");
                values.extend([reference]);
                Operation { object: holder, verb: Verb::Create(values) }
            } else {
                let values: Map<String, Value> = Map::from_iter([reference]);
                Operation { object: holder, verb: Verb::Update(self.id(holder, "update"), values) }
            }
        };
        let mut operations = vec![first, second];
        // Sometimes the new record changes too.
        if self.sometimes(3) {
            let values = self.values(referred, "update");
            operations.push(Operation { object: referred, verb: Verb::Update(placeholder(0), values) });
        }
        // And sometimes it is linked with others.
        let ends = state.world.ends(referred).into_iter().filter(|end| state.world.relations[end.relation].is_links());
        let ends: Vec<_> = ends.collect();
        if !ends.is_empty() && self.sometimes(3) {
            let end = pick(self.random, &ends);
            let ids = vec![self.id(end.object, "read")];
            operations.push(Operation { object: referred, verb: Verb::Link(placeholder(0), end.key.clone(), ids, false) });
        }
        batch_of(operations)
    }
}
