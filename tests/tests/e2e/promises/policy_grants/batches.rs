//! The reference for batches: each operation finds what the earlier ones have left. A check looks at the state after the last
//! one. But if a later operation writes the row again, it looks at the state before that operation. If a grant of a later
//! operation looks at rows of its object, it may look at the state before that operation too. Such batches are not sent, unless
//! the row meets its check then.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::answers::Answered;
use super::grants::Caller;
use super::placeholders::number_of_placeholder;
use super::verbs::{Operation, Verb};
use super::worlds::NAMES;
use super::writes::{Call, Check, Left, Link, UnfitRows, further_refusals, refusals_of_checks};
use super::{Refusal, State};

/// The rows, by object and id, and the links that a write has changed.
#[derive(Default)]
pub(super) struct Touched {
    /// The rows that have to meet a check of this write.
    pub(super) written: BTreeSet<(usize, String)>,
    /// The rows whose links the write changes. They have to meet a check of this write too.
    pub(super) relinked: BTreeSet<(usize, String)>,
    pub(super) gone: BTreeSet<(usize, String)>,
    /// The rows that refer to deleted ones. They lose the reference.
    pub(super) cleared: BTreeSet<(usize, String)>,
    /// The links that the write named.
    pub(super) links: BTreeSet<Link>,
}

impl Touched {
    /// Whether the write replaces the row of an earlier check, which therefore ends. Links are a part of making a row, so its first
    /// check goes on.
    fn ends(&self, check: &Check) -> bool {
        let row = (check.object, check.id.clone());
        self.written.contains(&row) || self.gone.contains(&row) || (check.action != "create" && self.relinked.contains(&row))
    }

    /// Whether the write changes a reference of the row of an earlier check, or a link that the earlier operation named. That
    /// check goes on, because this write has none for the row.
    fn meets(&self, state: &State, check: &Check) -> bool {
        let is_gone = |(relation, source, target): &Link| {
            let relation = &state.world.relations[*relation];
            let ends = [(relation.source, source.clone()), (relation.target, target.clone())];
            ends.iter().any(|end| self.gone.contains(end))
        };
        self.cleared.contains(&(check.object, check.id.clone()))
            || !self.links.is_disjoint(&check.links)
            || (check.makes_links && check.links.iter().any(is_gone))
    }
}

/// The refusal of a batch that is not to be sent, because a grant of an operation may look at a row that fails its check then.
/// Whether it looks at the row depends on how the server reads the conditions of grants.
pub(super) const UNCLEAR: Refusal = Refusal { status: 0, code: "unclear", field: None, index: None };

/// The objects of the rows at which the grants of an operation may look before it.
fn looked_at(state: &State, caller: &Caller, object: usize, verb: &Verb) -> BTreeSet<usize> {
    let mut objects: BTreeSet<usize> =
        ["read", "update", "delete"].iter().flat_map(|action| caller.passes(&state.world, object, action)).collect();
    if let Verb::Link(_, key, ..) = verb
        && let Some(end) = state.end(object, key)
    {
        objects.extend(caller.passes(&state.world, end.object, "read"));
    }
    objects
}

/// An operation that has run.
struct Ran {
    before: State,
    after: State,
    refusals: Vec<Refusal>,
    answer: Option<Answered>,
}

impl Ran {
    /// Judges a check of the operation on the state of this moment.
    fn judge(&mut self, caller: &Caller, state: &State, check: &Check) {
        let unfit = refusals_of_checks(caller, (&self.before, state), std::slice::from_ref(check));
        self.refusals.extend(unfit.fields.into_iter().chain(unfit.checks));
    }
}

impl State {
    /// The outcome of a batch, or all reasons to refuse it, each with the operation at fault. After a fault, the reference runs the
    /// other operations too, because the specification does not say which fault is reported.
    pub(super) fn batch(&self, caller: &Caller, operations: &[Operation]) -> Result<Left, Vec<Refusal>> {
        let may_write = |object: usize| ["create", "update", "delete"].iter().any(|action| caller.may(object, action));
        if !(0..NAMES.len()).any(may_write) {
            return Err(vec![caller.denied()]);
        }
        let (mut state, mut made, mut emitted, mut all) = (self.clone(), BTreeSet::new(), Vec::new(), Vec::<Ran>::new());
        // The checks that are not judged for the last time, each with the number of its operation.
        let mut pending: Vec<(usize, Check)> = Vec::new();
        let mut is_unclear = false;
        for (number, Operation { object, verb }) in operations.iter().enumerate() {
            let (answer, after, refusals, events, checks, touched) = {
                let mut call = Call::new(caller, &state, &made, number);
                let answer = call.run(*object, verb);
                (answer, call.state, call.refusals, call.emitted, call.checks, call.touched)
            };
            let looked_at = looked_at(&state, caller, *object, verb);
            let fails = |(earlier, check): &(usize, Check)| {
                let unfit = || refusals_of_checks(caller, (&all[*earlier].before, &state), std::slice::from_ref(check));
                looked_at.contains(&check.object) && {
                    let UnfitRows { fields, checks } = unfit();
                    !fields.is_empty() || !checks.is_empty()
                }
            };
            is_unclear |= pending.iter().any(fails);
            // What the operation writes again has to meet its checks as the operation finds it.
            pending.retain(|(earlier, check)| {
                let ends = touched.ends(check);
                if ends || touched.meets(&state, check) {
                    all[*earlier].judge(caller, &state, check);
                }
                !ends
            });
            made.extend(checks.iter().filter(|check| check.action == "create").map(|check| check.id.clone()));
            emitted.extend(events);
            pending.extend(checks.into_iter().map(|check| (number, check)));
            let before = std::mem::replace(&mut state, after.clone());
            all.push(Ran { before, after, refusals, answer });
        }
        for (number, check) in &pending {
            all[*number].judge(caller, &state, check);
        }
        if is_unclear {
            return Err(vec![UNCLEAR]);
        }
        let mut refusals = Vec::new();
        for (index, (ran, operation)) in all.iter().zip(operations).enumerate() {
            let mut of_one = ran.refusals.clone();
            of_one.extend(further_refusals(caller, operation.object, &operation.verb, &of_one));
            refusals.extend(of_one.into_iter().map(|refusal| Refusal { index: Some(index), ..refusal }));
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let results = all.into_iter().map(|ran| (ran.answer.expect("an answer, or a refusal"), ran.after)).collect();
        Ok(Left { state, emitted, answer: Answered::Results(results) })
    }
}

impl Operation {
    fn as_json(&self) -> Value {
        let object = NAMES[self.object];
        let mut json = match &self.verb {
            Verb::Create(values) => json!({ "op": "create", "values": values }),
            Verb::Update(id, values) => json!({ "op": "update", "id": id, "values": values }),
            Verb::Upsert(target, values) => json!({ "op": "upsert", "values": values, "onConflict": [target] }),
            Verb::Delete(id) => json!({ "op": "delete", "id": id }),
            Verb::Link(id, key, ids, is_removal) => {
                json!({ "op": if *is_removal { "unlink" } else { "link" }, "id": id, "relation": key, "ids": ids })
            }
            Verb::CreateMany(_) | Verb::UpdateMany(..) | Verb::DeleteMany(_) | Verb::Batch(_) => {
                unreachable!("an operation writes one record")
            }
        };
        json["object"] = json!(object);
        refer(&mut json);
        json
    }

    /// The result of the operation in a batch of a block, in the form that REST has.
    pub(super) fn result_of_block(&self, result: &Value) -> Value {
        match &self.verb {
            Verb::Link(.., is_removal) => {
                let name = if *is_removal { "removed" } else { "added" };
                json!({ "data": { name: result } })
            }
            Verb::Upsert(..) => result.clone(),
            Verb::Delete(_) if *result == true => Value::Null,
            _ => json!({ "data": result }),
        }
    }
}

/// Puts references to earlier results in the place of placeholders.
fn refer(json: &mut Value) {
    match json {
        Value::String(text) => {
            if let Some(number) = number_of_placeholder(text) {
                *json = json!({ "$ref": format!("{number}.id") });
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer),
        Value::Object(members) => members.values_mut().for_each(refer),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The operations as the surfaces take them.
pub(super) fn as_json(operations: &[Operation]) -> Value {
    operations.iter().map(Operation::as_json).collect()
}

/// The operations without one of them, as long as no reference would lead to another operation than before.
pub(super) fn smaller(operations: &[Operation]) -> Vec<Vec<Operation>> {
    let has_references = as_json(operations).to_string().contains("$ref");
    let first = if has_references { operations.len() - 1 } else { 0 };
    let places = first..operations.len();
    places.filter(|_| operations.len() > 1).map(|place| [&operations[..place], &operations[place + 1..]].concat()).collect()
}
