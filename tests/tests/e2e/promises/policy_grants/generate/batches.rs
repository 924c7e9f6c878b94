//! Random batches. Many of them depend on when their checks are judged.

use serde_json::{Map, Value, json};

use super::Requests;
use crate::promises::conditions::worlds::pick;
use crate::promises::policy_grants::Refusal;
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
        let kind = self.random.u8(0..4);
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
            0 => self.twice(),
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

    /// Two changes of one record. The first one often leaves a record that fails its check, and the second one may mend it.
    fn twice(&mut self) -> Write {
        let object = self.object("update");
        let id = self.id(object, "update");
        let mut first = self.values(object, "update");
        for _ in 1..CHANGES_TRIED {
            let alone = Write::new(object, Verb::Update(id.clone(), first.clone()));
            let fails_check = match self.state.write(self.caller, &alone) {
                Ok(_) => false,
                Err(refusals) => {
                    refusals.contains(&Refusal::new(403, "forbidden")) && refusals.iter().all(|other| other.status == 403)
                }
            };
            if fails_check {
                break;
            }
            first = self.values(object, "update");
        }
        // The second change sets the same fields again.
        let mut second = self.values(object, "update");
        for name in first.keys().filter(|name| !second.contains_key(*name)).cloned().collect::<Vec<_>>() {
            let value = self.value(object, &name);
            second.insert(name, value);
        }
        let operations = [first, second].map(|values| Operation { object, verb: Verb::Update(id.clone(), values) });
        batch_of(operations.into())
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
