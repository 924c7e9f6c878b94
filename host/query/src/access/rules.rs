//! What a decision reaches: the rules of several grants, and what they are once the object is known.
//!
//! A [`Decision`] is made from grants alone. If conditions are among them, [`Decision::on`] reads these against the live schema, with
//! the values of the caller's variables, and gives the [`Access`] that a plan needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use blockbase_schema::{Object, Registry, Value, system};

use super::{Clause, Grant, RowPolicy};
use crate::condition::{Bounds, Condition, Reading, Variables, read};
use crate::plan::{Comparison, Predicate, Test};

/// The rows that a decision reaches.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// Every row.
    All,
    /// Rows whose `created_by` is this actor.
    Own(String),
    /// Rows that meet a condition.
    Where(Arc<Condition>),
    /// No row: an own-rows grant without an actor who could own one.
    Nothing,
}

impl Scope {
    fn of(condition: Condition, object: &Object) -> Scope {
        match &condition {
            condition if condition.is_true() => Scope::All,
            condition if condition.is_false() => Scope::Nothing,
            Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Text(actor)) })
                if Some(*column) == object.column_index(system::CREATED_BY) =>
            {
                Scope::Own(actor.clone())
            }
            _ => Scope::Where(Arc::new(condition)),
        }
    }

    /// The same rows as a condition.
    pub fn condition(&self, object: &Object) -> Condition {
        match self {
            Scope::All => Condition::TRUE,
            Scope::Own(actor) => own_rows(object, actor),
            Scope::Where(condition) => condition.as_ref().clone(),
            Scope::Nothing => Condition::FALSE,
        }
    }

    /// The rows of `object` that both reach.
    pub fn and(&self, other: &Scope, object: &Object) -> Scope {
        match (self, other) {
            (Scope::All, scope) | (scope, Scope::All) => scope.clone(),
            (Scope::Nothing, _) | (_, Scope::Nothing) => Scope::Nothing,
            (Scope::Own(one), Scope::Own(two)) => {
                if one == two {
                    self.clone()
                } else {
                    Scope::Nothing
                }
            }
            _ => Scope::of(Condition::all(vec![self.condition(object), other.condition(object)]), object),
        }
    }

    /// The objects whose rows are looked at beside the object's own.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        if let Scope::Where(condition) = self {
            condition.objects_into(objects);
        }
    }

    /// Whether it goes through whole texts, whose length no step of an engine measures.
    pub fn reads_texts(&self) -> bool {
        matches!(self, Scope::Where(condition) if condition.reads_texts())
    }
}

fn own_rows(object: &Object, actor: &str) -> Condition {
    match object.column_index(system::CREATED_BY) {
        Some(column) => {
            Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Text(actor.to_owned())) })
        }
        None => Condition::FALSE,
    }
}

/// The rows that one grant reaches, and the condition that they have to meet at the end of a call that changes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub reached: Scope,
    pub leaves: Scope,
}

/// Proof that a caller may do one thing to one resource, and to which rows. Only [`Permissions::decide`](super::Permissions::decide)
/// makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    scope: Scope,
    checks: Option<Arc<[Check]>>,
}

impl Access {
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// What rows have to meet at the end of a call that writes them: one of these, whose grant reached the row before. `None` if no
    /// write within the scope can be refused.
    pub fn checks(&self) -> Option<&Arc<[Check]>> {
        self.checks.as_ref()
    }

    /// The one actor whose things the decision reaches; `None` if it reaches everybody's. For resources on which conditions have no
    /// meaning.
    pub fn only(&self) -> Option<&str> {
        match &self.scope {
            Scope::All => None,
            Scope::Own(actor) => Some(actor),
            // Nobody has this id.
            Scope::Nothing | Scope::Where(_) => Some(""),
        }
    }

    /// The same decision for the rows that another one reaches too.
    pub fn within(&self, other: &Access, object: &Object) -> Access {
        Access { scope: self.scope.and(&other.scope, object), checks: self.checks.clone() }
    }

    /// Adds the objects whose rows are looked at to decide.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        self.scope.objects_into(objects);
        for check in self.checks.iter().flat_map(|checks| checks.iter()) {
            check.reached.objects_into(objects);
            check.leaves.objects_into(objects);
        }
    }
}

/// The condition of a grant with its conjuncts, by which grants are compared.
#[derive(Debug, PartialEq)]
pub(super) struct Policy {
    clause: Clause,
    conjuncts: BTreeSet<String>,
    /// Whether it depends on the moment of the call.
    is_of_moment: bool,
}

impl Policy {
    pub(super) fn of(clause: Clause) -> Policy {
        let conjuncts = clause.conjuncts();
        let names = |conjunct: &String| ["\"$now\"", "\"$today\""].iter().any(|variable| conjunct.contains(variable));
        Policy { is_of_moment: conjuncts.iter().any(names), conjuncts, clause }
    }
}

/// One part of what a grant asks of rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Own,
    Clause(Arc<Policy>),
}

impl Part {
    /// Whether it names a variable.
    pub(super) fn names(&self, variable: &str) -> bool {
        match self {
            Part::Own => false,
            Part::Clause(policy) => policy.conjuncts.iter().any(|conjunct| conjunct.contains(&format!("\"{variable}\""))),
        }
    }
}

/// The same for one caller.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Own(String),
    Clause(Arc<Policy>, Arc<Variables>),
}

/// What one grant gives a caller, or two that both have to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    rows: Vec<Bound>,
    check: Vec<Bound>,
}

impl Rule {
    /// `None` if it reaches no row, because nobody in particular owns rows.
    pub(super) fn of(rows: &[Part], check: &[Part], subject: &Arc<Variables>) -> Option<Rule> {
        let bound = |parts: &[Part]| {
            let bound = parts.iter().map(|part| match part {
                Part::Own => subject.user_id.clone().map(Bound::Own),
                Part::Clause(policy) => Some(Bound::Clause(Arc::clone(policy), Arc::clone(subject))),
            });
            bound.collect::<Option<Vec<Bound>>>()
        };
        Some(Rule { rows: bound(rows)?, check: bound(check)? })
    }

    /// What a decision without conditions is; no rule for one that reaches nothing.
    pub(super) fn of_scope(scope: &Scope) -> Option<Rule> {
        match scope {
            Scope::All => Some(Rule { rows: Vec::new(), check: Vec::new() }),
            Scope::Own(actor) => {
                let own = vec![Bound::Own(actor.clone())];
                Some(Rule { rows: own.clone(), check: own })
            }
            Scope::Nothing | Scope::Where(_) => None,
        }
    }

    /// The conjuncts of parts.
    pub(super) fn symbolic(parts: &[Part]) -> BTreeSet<&str> {
        let of = |part| match part {
            &Part::Own => vec![OWN],
            Part::Clause(policy) => policy.conjuncts.iter().map(String::as_str).collect(),
        };
        parts.iter().flat_map(of).collect()
    }

    /// The conjuncts of the rows that it reaches.
    pub(super) fn rows(&self) -> BTreeSet<&str> {
        conjuncts(&self.rows)
    }

    /// The conjuncts of what it leaves.
    pub(super) fn leaves(&self) -> BTreeSet<&str> {
        conjuncts(&self.check)
    }

    /// What both give; `None` if they are for rows of different actors.
    fn and(&self, other: &Rule) -> Option<Rule> {
        let joined = |one: &[Bound], two: &[Bound]| {
            let mut parts = one.to_vec();
            for part in two {
                let is_foreign = |known: &Bound| matches!((known, part), (Bound::Own(one), Bound::Own(two)) if one != two);
                if parts.iter().any(is_foreign) {
                    return None;
                }
                if !parts.contains(part) {
                    parts.push(part.clone());
                }
            }
            Some(parts)
        };
        Some(Rule { rows: joined(&self.rows, &other.rows)?, check: joined(&self.check, &other.check)? })
    }

    /// The same as a grant without actions.
    pub(super) fn grant(&self, resource: &str) -> Grant {
        let clauses = |parts: &[Bound]| {
            let clause = |part: &Bound| match part {
                Bound::Own(_) => None,
                Bound::Clause(policy, _) => Some(policy.clause.clone()),
            };
            Clause::all(parts.iter().filter_map(clause).collect())
        };
        let is_own = self.rows.iter().any(|part| matches!(part, Bound::Own(_)));
        let check = if self.check == self.rows { None } else { Some(clauses(&self.check).unwrap_or_else(|| Clause::new("{}"))) };
        Grant { rows: clauses(&self.rows), check, ..Grant::new(resource, Vec::new(), is_own.then_some(RowPolicy::Own)) }
    }

    /// What the rule means for rows of `object`. `None` if it means nothing: the schema lacks what it names, or a variable has no
    /// value for this caller.
    fn on(&self, ground: &Ground<'_>, object: &Object) -> Option<(Condition, Condition)> {
        let condition = |parts: &[Bound]| {
            let read = parts.iter().map(|part| match part {
                Bound::Own(actor) => Some(own_rows(object, actor)),
                Bound::Clause(policy, subject) => ground.read(object, &policy.clause, subject),
            });
            read.collect::<Option<Vec<Condition>>>().map(Condition::all)
        };
        Some((condition(&self.rows)?, condition(&self.check)?))
    }
}

/// Most grants with conditions that count for one caller, object and action.
const RULES_MAX: usize = 50;
/// The conjunct of rows that the caller created.
const OWN: &str = "own";

fn conjuncts(parts: &[Bound]) -> BTreeSet<&str> {
    let of = |part| match part {
        &Bound::Own(_) => vec![OWN],
        Bound::Clause(policy, _) => policy.conjuncts.iter().map(String::as_str).collect(),
    };
    parts.iter().flat_map(of).collect()
}

/// What conditions of grants are read by.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub registry: &'a Registry,
    /// Milliseconds since the epoch.
    pub now: i64,
}

impl Ground<'_> {
    /// Whether a stored condition means something on the rows of `object`.
    pub fn has_meaning(&self, object: &Object, clause: &Clause) -> bool {
        self.read(object, clause, &Variables::of_somebody(self.now)).is_some()
    }

    fn read(&self, object: &Object, clause: &Clause, subject: &Variables) -> Option<Condition> {
        let named = clause.named(self.registry, object)?;
        let variables = || Variables { now: self.now, ..subject.clone() };
        // Related rows are looked at without the caller's rights, so that policies cannot lead to policies.
        let all = Access { scope: Scope::All, checks: None };
        let reading =
            Reading { registry: self.registry, decide: &|_| Ok(all.clone()), variables: &variables, bounds: Bounds::of_policy() };
        read(object, named.text(), &reading).ok()
    }
}

/// Whose rows a decision reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners<'a> {
    All,
    One(&'a str),
    Nobody,
}

/// Whether an action is allowed, and on which rows, before the object is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Without conditions.
    Rows(Scope),
    /// Rows that one of these rules reaches.
    Rules(Vec<Rule>),
}

impl Decision {
    /// Whether it has conditions whose meaning stays the same until the schema changes.
    pub(super) fn is_kept(&self) -> bool {
        let is_of_moment = |part: &Bound| matches!(part, Bound::Clause(policy, _) if policy.is_of_moment);
        match self {
            Decision::Rows(_) => false,
            Decision::Rules(rules) => !rules.iter().any(|rule| rule.rows.iter().chain(&rule.check).any(is_of_moment)),
        }
    }

    /// Whether it reaches every row, with no condition on what it leaves.
    pub fn is_all(&self) -> bool {
        *self == Decision::Rows(Scope::All)
    }

    fn rules(&self) -> Vec<Rule> {
        match self {
            Decision::Rows(scope) => Rule::of_scope(scope).into_iter().collect(),
            Decision::Rules(rules) => rules.clone(),
        }
    }

    /// What both decisions reach.
    pub fn and(&self, other: &Decision) -> Decision {
        match (self, other) {
            (one, two) if one == two => one.clone(),
            (Decision::Rows(Scope::All), decision) | (decision, Decision::Rows(Scope::All)) => decision.clone(),
            (Decision::Rows(_), Decision::Rows(_)) => Decision::Rows(Scope::Nothing),
            (one, two) => {
                let others = two.rules();
                let mut both: Vec<Rule> = Vec::new();
                for rule in one.rules().iter().flat_map(|rule| others.iter().filter_map(|other| rule.and(other))) {
                    if !both.contains(&rule) {
                        both.push(rule);
                    }
                }
                Decision::Rules(both)
            }
        }
    }

    /// What one of the decisions reaches.
    pub fn or(self, other: Decision) -> Decision {
        match (self, other) {
            (one, two) if one.is_all() || one == two => one,
            (_, two) if two.is_all() => two,
            (Decision::Rows(Scope::Nothing), two) => two,
            (one, Decision::Rows(Scope::Nothing)) => one,
            (one, two) => Decision::Rules(one.rules().into_iter().chain(two.rules()).collect()),
        }
    }

    /// Whether this decision reaches all that another one of the same caller reaches.
    pub fn has_all_of(&self, other: &Decision) -> bool {
        match (self, other) {
            (Decision::Rows(_), Decision::Rows(_)) => self.and(other) == *other,
            _ => other.rules().iter().all(|rule| self.covers(&rule.rows(), &rule.leaves())),
        }
    }

    /// Whether a grant with these conjuncts gives no more than this decision.
    pub(super) fn covers(&self, rows: &BTreeSet<&str>, leaves: &BTreeSet<&str>) -> bool {
        self.rules().iter().any(|rule| rule.rows().is_subset(rows) && rule.leaves().is_subset(leaves))
    }

    /// Whose rows it reaches, as far as their creator decides that.
    pub fn owners(&self) -> Owners<'_> {
        match self {
            Decision::Rows(Scope::All) => Owners::All,
            Decision::Rows(Scope::Own(actor)) => Owners::One(actor),
            Decision::Rows(Scope::Nothing | Scope::Where(_)) => Owners::Nobody,
            Decision::Rules(rules) => match rules.iter().any(|rule| rule.rows.is_empty()) {
                true => Owners::All,
                false => rules
                    .iter()
                    .find_map(|rule| match rule.rows.as_slice() {
                        [Bound::Own(actor)] => Some(Owners::One(actor)),
                        _ => None,
                    })
                    .unwrap_or(Owners::Nobody),
            },
        }
    }

    /// The decision on a resource on which conditions have no meaning. A rule with a condition gives nothing there.
    pub fn plain(self) -> Option<Access> {
        match self {
            Decision::Rows(scope) => Some(Access { scope, checks: None }),
            Decision::Rules(_) => None,
        }
    }

    /// The decision on the rows of `object`.
    pub fn on(self, ground: &Ground<'_>, object: &Object) -> Access {
        let rules = match self {
            Decision::Rows(scope) => return Access { scope, checks: None },
            Decision::Rules(rules) => rules,
        };
        // What is beyond the bound gives nothing, so that no statement grows without one.
        let read: Vec<(Condition, Condition)> = rules.iter().take(RULES_MAX).filter_map(|rule| rule.on(ground, object)).collect();
        let scope = Scope::of(Condition::any(read.iter().map(|(rows, _)| rows.clone()).collect()), object);
        let checks: Vec<Check> = read
            .into_iter()
            .map(|(rows, leaves)| Check { reached: Scope::of(rows, object), leaves: Scope::of(leaves, object) })
            .collect();
        let passes_all = |check: &Check| check.reached == Scope::All && check.leaves == Scope::All;
        match checks.iter().any(passes_all) {
            true => Access { scope: Scope::All, checks: None },
            false => Access { scope, checks: Some(checks.into()) },
        }
    }
}
