//! Decisions: the rules of several grants, and the access that they give on a known object.
//!
//! A [`Decision`] is made from grants alone. [`Decision::on`] reads the conditions of the grants against the live schema, with
//! the values of the caller's variables, and returns the [`Access`] that a plan needs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use blockbase_schema::{Code, Error, Object, Registry, Relation, Result, Value, system};

use super::clause::{number_of, number_of_column};
use super::fields::{Known, Listed, Lists, Seen, Shapes};
use super::{Clause, Grant, RowPolicy};
use crate::condition::{Bounds, Condition, Reading, Variable, Variables, read};
use crate::plan::{Comparison, Predicate, Test};

/// The rows that a decision includes.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// Every row.
    All,
    /// Rows whose `created_by` is this actor.
    Own(String),
    /// Rows that meet a condition.
    Where(Arc<Condition>),
    /// No row, for example if a grant is for own rows and no actor could own one.
    Nothing,
    /// Rows in which some cells cannot be read.
    Seen(Arc<Seen>),
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

    /// The same rows, but with every cell readable.
    pub fn rows(&self) -> &Scope {
        match self {
            Scope::Seen(seen) => &seen.rows,
            Scope::All | Scope::Own(_) | Scope::Where(_) | Scope::Nothing => self,
        }
    }

    /// The same rows as a condition on the object itself.
    pub fn condition(&self, object: &Object) -> Condition {
        match self {
            Scope::All => Condition::TRUE,
            Scope::Own(actor) => own_rows(object, actor),
            Scope::Where(condition) => condition.as_ref().clone(),
            Scope::Nothing => Condition::FALSE,
            Scope::Seen(seen) => seen.rows.condition(object),
        }
    }

    /// The rows of `object` that both scopes include.
    pub fn and(&self, other: &Scope, object: &Object) -> Scope {
        match (self, other) {
            (Scope::Seen(seen), other) | (other, Scope::Seen(seen)) => Scope::Seen(Arc::new(seen.within(other.rows()))),
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

    /// Adds the other objects whose rows have to be read to test this scope.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        match self {
            Scope::Where(condition) => condition.objects_into(objects),
            Scope::Seen(seen) => seen.objects_into(objects),
            Scope::All | Scope::Own(_) | Scope::Nothing => {}
        }
    }

    /// Whether the test of this scope searches through complete texts. The engine's count of steps does not include the length of
    /// these texts.
    pub fn reads_texts(&self) -> bool {
        match self {
            Scope::Where(condition) => condition.reads_texts(),
            Scope::Seen(seen) => seen.reads_texts(),
            Scope::All | Scope::Own(_) | Scope::Nothing => false,
        }
    }
}

/// The refusal to read a field.
pub fn not_readable(field: &str) -> Error {
    Error::new(Code::Forbidden, format!("You may not read `{field}` of this record.")).with_field(field)
}

/// The refusal to write a field.
pub fn not_writable(field: &str) -> Error {
    Error::new(Code::Forbidden, format!("You may not write `{field}` of this record.")).with_field(field)
}

fn own_rows(object: &Object, actor: &str) -> Condition {
    if object.is_users() {
        // A user's own row is the row of their account.
        let (column, id) = (object.column_index(system::ID), actor.parse());
        return match (column, id) {
            (Some(column), Ok(id)) => {
                Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Uuid(id)) })
            }
            _ => Condition::FALSE,
        };
    }
    match object.column_index(system::CREATED_BY) {
        Some(column) => {
            Condition::Test(Predicate { column, test: Test::Compare(Comparison::Equal, Value::Text(actor.to_owned())) })
        }
        None => Condition::FALSE,
    }
}

/// The rows that one grant includes, and its `check`: the condition that a changed row has to meet at the end of the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub reached: Scope,
    pub leaves: Scope,
    /// The fields that the grant allows to write.
    write: Lists,
}

/// Proof that a caller may do one action on one resource, and on which rows. It can only be made from a decision of
/// [`Permissions::decide`](super::Permissions::decide).
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    scope: Scope,
    checks: Option<Arc<[Check]>>,
    /// For a write: a named field that some of the grants do not allow to write, and the indexes of the grants that allow all
    /// named fields.
    contested: Option<(String, Vec<usize>)>,
    /// For a write: the fields whose values the write reads, each with the rows in which the caller may read it.
    reads: Vec<(String, Scope)>,
}

impl Access {
    fn new(scope: Scope, checks: Option<Arc<[Check]>>) -> Access {
        Access { scope, checks, contested: None, reads: Vec::new() }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The object as a reader with this access knows it. `None` if they know the complete object.
    pub fn seen(&self) -> Option<&Arc<Seen>> {
        match &self.scope {
            Scope::Seen(seen) => Some(seen),
            Scope::All | Scope::Own(_) | Scope::Where(_) | Scope::Nothing => None,
        }
    }

    /// The same access, for a write that names these columns of `object`. Only grants that allow all of these columns count.
    ///
    /// # Errors
    /// `forbidden` with `field` if no grant allows all of them.
    pub fn naming<'c>(&self, object: &Object, columns: impl IntoIterator<Item = &'c str>) -> Result<Access> {
        let columns = columns.into_iter().filter_map(|name| object.column(name)).filter(|column| !column.is_system);
        self.allowing(columns.map(|column| (column.name.as_str(), number_of_column(object, column))).collect())
    }

    /// The same access, for a change of links.
    ///
    /// # Errors
    /// `forbidden` with `field` if no grant allows it.
    pub fn linking(&self, relation: &Relation) -> Result<Access> {
        self.allowing(vec![(relation.key.as_str(), number_of(relation))])
    }

    fn allowing(&self, named: Vec<(&str, String)>) -> Result<Access> {
        let Some(checks) = self.checks.as_ref().filter(|checks| !checks.iter().all(|check| check.write.is_all())) else {
            return Ok(self.clone());
        };
        let refused = |check: &Check| named.iter().find(|(_, number)| !check.write.list(number));
        let places: Vec<usize> = (0..checks.len()).filter(|place| refused(&checks[*place]).is_none()).collect();
        if places.len() == checks.len() {
            return Ok(self.clone());
        }
        // If no grant allows a certain field, the error names that field.
        let by_none = named.iter().find(|(_, number)| !checks.iter().any(|check| check.write.list(number)));
        let contested = by_none.or_else(|| checks.iter().find_map(refused));
        let contested = contested.map_or(String::new(), |(name, _)| (*name).to_owned());
        if places.is_empty() {
            return Err(not_writable(&contested));
        }
        let allowing: Vec<Check> = places.iter().map(|place| checks[*place].clone()).collect();
        Ok(Access { checks: Some(allowing.into()), contested: Some((contested, places)), ..self.clone() })
    }

    /// The indexes of the grants that allow the write. `None` if all of them do. If the same grants allow two writes, the result
    /// is equal.
    pub fn allowed_by(&self) -> Option<&[usize]> {
        self.contested.as_ref().map(|(_, places)| places.as_slice())
    }

    /// The same access, for a write that reads the values of columns. `reader` is the access for reading the records.
    ///
    /// # Errors
    /// `forbidden` with `field` for a column that the caller does not know.
    pub fn reading<'c>(self, reader: &Access, columns: impl IntoIterator<Item = &'c str>) -> Result<Access> {
        let rows = |name: &str| match reader.scope() {
            Scope::Seen(seen) => seen.rows_with(name).map(|rows| (name.to_owned(), rows)).ok_or_else(|| not_readable(name)),
            rows => Ok((name.to_owned(), rows.clone())),
        };
        if matches!(reader.scope(), Scope::All) {
            return Ok(self);
        }
        let reads = columns.into_iter().map(rows).collect::<Result<Vec<_>>>()?;
        Ok(Access { reads, ..self })
    }

    /// The fields whose values the write reads, each with the rows in which the caller may read it.
    pub fn reads(&self) -> &[(String, Scope)] {
        &self.reads
    }

    /// A field that the write sets and some of the grants do not allow. In that case the scope may include rows that no check
    /// includes.
    pub fn contested(&self) -> Option<&str> {
        self.contested.as_ref().map(|(field, _)| field.as_str())
    }

    /// The checks of the grants. At the end of a call, each written row has to meet one of these checks, whose grant included the
    /// row before the write. `None` if no write within the scope can be refused.
    pub fn checks(&self) -> Option<&Arc<[Check]>> {
        self.checks.as_ref()
    }

    /// The only actor whose entries the access includes. `None` if it includes those of every actor. It is for resources to which
    /// conditions do not apply.
    pub fn only(&self) -> Option<&str> {
        match &self.scope {
            Scope::All => None,
            Scope::Own(actor) => Some(actor),
            // Nobody has this id.
            Scope::Nothing | Scope::Where(_) | Scope::Seen(_) => Some(""),
        }
    }

    /// The same access, but only with the rows that `other` includes too.
    pub fn within(&self, other: &Access, object: &Object) -> Access {
        Access { scope: self.scope.and(&other.scope, object), ..self.clone() }
    }

    /// Adds the objects whose rows have to be read for the decision.
    pub fn objects_into(&self, objects: &mut Vec<Arc<Object>>) {
        self.scope.objects_into(objects);
        for check in self.checks.iter().flat_map(|checks| checks.iter()) {
            check.reached.objects_into(objects);
            check.leaves.objects_into(objects);
        }
        self.reads.iter().for_each(|(_, rows)| rows.objects_into(objects));
    }
}

/// The condition of a grant, with its conjuncts. Grants are compared by their conjuncts.
#[derive(Debug, PartialEq)]
pub(super) struct Policy {
    clause: Clause,
    conjuncts: BTreeSet<String>,
    /// Whether the condition depends on the time of the call.
    is_of_moment: bool,
}

impl Policy {
    pub(super) fn of(clause: Clause) -> Policy {
        let mut policy = Policy { conjuncts: clause.conjuncts(), clause, is_of_moment: false };
        policy.is_of_moment = policy.names(Variable::Now) || policy.names(Variable::Today);
        policy
    }

    fn names(&self, variable: Variable) -> bool {
        let quoted = format!("\"{}\"", variable.name());
        self.conjuncts.iter().any(|conjunct| conjunct.contains(&quoted))
    }

    /// The values of the variables that the condition names, without the other variables. So the result is the same for two
    /// callers who differ only in other variables.
    fn values_of(&self, subject: &Variables) -> Variables {
        Variables {
            user_id: subject.user_id.clone().filter(|_| self.names(Variable::UserId)),
            email: subject.email.clone().filter(|_| self.names(Variable::UserEmail)),
            roles: subject.roles.clone().filter(|_| self.names(Variable::UserRoles)),
            key_id: subject.key_id.clone().filter(|_| self.names(Variable::KeyId)),
            now: 0,
        }
    }
}

/// One part of the condition that a grant sets on rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Own,
    Clause(Arc<Policy>),
}

impl Part {
    /// Whether the part names a variable.
    pub(super) fn names(&self, variable: Variable) -> bool {
        match self {
            Part::Own => false,
            Part::Clause(policy) => policy.names(variable),
        }
    }
}

/// A part that is bound to one caller.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Own(String),
    /// Own rows of a caller who cannot own rows, or of two callers at once. This includes no row.
    Nobody,
    Clause(Arc<Policy>, Arc<Variables>),
}

/// The rights that one grant gives a caller, or that two grants both have to give.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    rows: Vec<Bound>,
    check: Vec<Bound>,
    listed: Listed,
}

impl Rule {
    pub(super) fn of(rows: &[Part], check: &[Part], listed: Listed, owner: Option<&String>, subject: &Variables) -> Rule {
        let bound = |parts: &[Part]| {
            let bound = parts.iter().map(|part| match part {
                Part::Own => owner.cloned().map_or(Bound::Nobody, Bound::Own),
                Part::Clause(policy) => Bound::Clause(Arc::clone(policy), Arc::new(policy.values_of(subject))),
            });
            bound.collect::<Vec<Bound>>()
        };
        Rule { rows: bound(rows), check: bound(check), listed }
    }

    /// Whether the rule has an effect: it includes rows, or it determines which fields are known.
    pub(super) fn says_something(&self) -> bool {
        !self.reaches_nothing() || !self.listed.are_all()
    }

    /// Whether the rule includes no row, because nobody can own rows by it.
    pub(super) fn reaches_nothing(&self) -> bool {
        self.rows.contains(&Bound::Nobody)
    }

    /// Whether another rule gives nothing in addition to this one.
    fn makes_needless(&self, other: &Rule) -> bool {
        let all_of = |parts: &[Bound], others: &[Bound]| parts.iter().all(|part| others.contains(part));
        // If two lists differ, each can become invalid by itself when a field is dropped.
        let has_fields = self.listed.are_all() || self.listed == other.listed;
        has_fields && all_of(&self.rows, &other.rows) && all_of(&self.check, &other.check)
    }

    /// Whether the rule allows all fields of every row, without a condition.
    pub(super) fn is_whole(&self) -> bool {
        self.rows.is_empty() && self.check.is_empty() && self.listed.are_all()
    }

    /// The rule of a scope without conditions. `None` if the scope includes nothing.
    pub(super) fn of_scope(scope: &Scope) -> Option<Rule> {
        match scope {
            Scope::All => Some(Rule { rows: Vec::new(), check: Vec::new(), listed: Listed::ALL }),
            Scope::Own(actor) => {
                let own = vec![Bound::Own(actor.clone())];
                Some(Rule { rows: own.clone(), check: own, listed: Listed::ALL })
            }
            Scope::Nothing | Scope::Where(_) | Scope::Seen(_) => None,
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

    /// The conjuncts of the condition on the rows that the rule includes.
    pub(super) fn rows(&self) -> BTreeSet<&str> {
        conjuncts(&self.rows)
    }

    /// The conjuncts of the rule's check.
    pub(super) fn leaves(&self) -> BTreeSet<&str> {
        conjuncts(&self.check)
    }

    /// The intersection of both rules.
    fn and(&self, other: &Rule) -> Rule {
        let joined = |one: &[Bound], two: &[Bound]| {
            let mut parts = one.to_vec();
            for part in two {
                let is_foreign = |known: &Bound| matches!((known, part), (Bound::Own(one), Bound::Own(two)) if one != two);
                let part = if parts.iter().any(is_foreign) { &Bound::Nobody } else { part };
                if !parts.contains(part) {
                    parts.push(part.clone());
                }
            }
            parts
        };
        let (rows, check) = (joined(&self.rows, &other.rows), joined(&self.check, &other.check));
        let listed = self.listed.and(&other.listed);
        // If two rules have no common row, they have no common field either.
        let is_of_two = rows.contains(&Bound::Nobody) && !self.reaches_nothing() && !other.reaches_nothing();
        Rule { rows, check, listed: if is_of_two { listed.without_fields() } else { listed } }
    }

    /// The rule as a grant without actions.
    pub(super) fn grant(&self, resource: &str) -> Grant {
        let clauses = |parts: &[Bound]| {
            let clause = |part: &Bound| match part {
                Bound::Own(_) | Bound::Nobody => None,
                Bound::Clause(policy, _) => Some(policy.clause.clone()),
            };
            Clause::all(parts.iter().filter_map(clause).collect())
        };
        let is_own = self.rows.iter().any(|part| matches!(part, Bound::Own(_)));
        let check = if self.check == self.rows { None } else { Some(clauses(&self.check).unwrap_or_else(|| Clause::new("{}"))) };
        let own = is_own.then_some(RowPolicy::Own);
        Grant { rows: clauses(&self.rows), check, fields: self.listed.fields(), ..Grant::new(resource, Vec::new(), own) }
    }

    /// The conditions of the rule on rows of `object`: the condition for the rows that it includes, and its check. `None` if the
    /// schema lacks something that the rule names, or if a variable has no value for this caller.
    fn on(&self, ground: &Ground<'_>, object: &Object) -> Option<(Condition, Condition)> {
        let condition = |parts: &[Bound]| {
            let read = parts.iter().map(|part| match part {
                Bound::Own(actor) => Some(own_rows(object, actor)),
                Bound::Nobody => Some(Condition::FALSE),
                Bound::Clause(policy, subject) => ground.read(object, &policy.clause, subject),
            });
            read.collect::<Option<Vec<Condition>>>().map(Condition::all)
        };
        Some((condition(&self.rows)?, condition(&self.check)?))
    }
}

/// The maximum number of grants with conditions that count for one caller, object and action.
const RULES_MAX: usize = 50;
/// The conjunct of rows that the caller created.
const OWN: &str = "own";
/// A conjunct that no grant has.
const NOBODY: &str = "nobody";

fn conjuncts(parts: &[Bound]) -> BTreeSet<&str> {
    let of = |part| match part {
        &Bound::Own(_) => vec![OWN],
        &Bound::Nobody => vec![NOBODY],
        Bound::Clause(policy, _) => policy.conjuncts.iter().map(String::as_str).collect(),
    };
    parts.iter().flat_map(of).collect()
}

/// The context in which conditions of grants are read.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The complete registry, with every object and field.
    pub registry: &'a Registry,
    /// The time in milliseconds since the epoch.
    pub now: i64,
    /// Reduced objects, for callers who know only some fields.
    pub shapes: &'a Shapes,
}

impl Ground<'_> {
    /// The fields that a caller knows of an object if they may neither read nor write its fields.
    pub fn id_alone(&self, object: &Object) -> Known {
        Known::of(object, &self.shapes.numbers(self.registry, object), &[])
    }

    /// Whether a stored condition can still be read for the rows of `object`.
    pub fn has_meaning(&self, object: &Object, clause: &Clause) -> bool {
        self.read(object, clause, &Variables::of_somebody(self.now)).is_some()
    }

    fn read(&self, object: &Object, clause: &Clause, subject: &Variables) -> Option<Condition> {
        let named = clause.named(self.registry, object)?;
        let variables = || Variables { now: self.now, ..subject.clone() };
        // A policy reads related rows without the caller's rights, so that it never depends on another policy.
        let all = Access::new(Scope::All, None);
        let reading =
            Reading { registry: self.registry, decide: &|_| Ok(all.clone()), variables: &variables, bounds: Bounds::of_policy() };
        read(object, named.text(), &reading).ok()
    }
}

/// The owners of the rows that a decision includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners<'a> {
    All,
    One(&'a str),
    Nobody,
}

/// Whether an action is allowed, and on which rows. The object need not be known yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Rows that need no condition.
    Rows(Scope),
    /// Rows that at least one of these rules includes.
    Rules(Vec<Rule>),
}

impl Decision {
    /// Whether the decision has conditions whose meaning stays the same until the schema changes.
    pub(super) fn is_kept(&self) -> bool {
        let is_of_moment = |part: &Bound| matches!(part, Bound::Clause(policy, _) if policy.is_of_moment);
        match self {
            Decision::Rows(_) => false,
            Decision::Rules(rules) => !rules.iter().any(|rule| rule.rows.iter().chain(&rule.check).any(is_of_moment)),
        }
    }

    /// The fields that a reader with this decision knows of an object. `None` if they may read every cell of the rows.
    pub fn known(&self, ground: &Ground<'_>, object: &Object) -> Option<Known> {
        self.known_by(ground, object, |rule| &rule.listed.read, |rule| rule.rows.is_empty())
    }

    /// The fields of an object that a writer with this decision may name. `None` for all of them.
    pub fn writable(&self, ground: &Ground<'_>, object: &Object) -> Option<Known> {
        self.known_by(ground, object, |rule| &rule.listed.write, |_| true)
    }

    /// Returns `None`, for all fields, if one rule lists every field and `is_enough` accepts this rule.
    fn known_by(
        &self,
        ground: &Ground<'_>,
        object: &Object,
        lists: impl Fn(&Rule) -> &Lists,
        is_enough: impl Fn(&Rule) -> bool,
    ) -> Option<Known> {
        let Decision::Rules(rules) = self else { return None };
        if rules.iter().all(|rule| lists(rule).is_all()) {
            return None;
        }
        let numbers = ground.shapes.numbers(ground.registry, object);
        let mut rules = rules.iter().filter(|rule| rule.listed.has_meaning(&numbers));
        if rules.clone().any(|rule| is_enough(rule) && lists(rule).is_all()) {
            return None;
        }
        let lists: Vec<&Lists> = rules.by_ref().map(&lists).collect();
        Some(Known::of(object, &numbers, &lists))
    }

    /// Whether the decision includes every row, without a check on the rows after a write.
    pub fn is_all(&self) -> bool {
        *self == Decision::Rows(Scope::All)
    }

    fn rules(&self) -> Cow<'_, [Rule]> {
        match self {
            Decision::Rows(scope) => Rule::of_scope(scope).into_iter().collect(),
            Decision::Rules(rules) => Cow::Borrowed(rules),
        }
    }

    /// The intersection of both decisions.
    pub fn and(&self, other: &Decision) -> Decision {
        match (self, other) {
            (one, two) if one == two => one.clone(),
            (Decision::Rows(Scope::All), decision) | (decision, Decision::Rows(Scope::All)) => decision.clone(),
            (Decision::Rows(_), Decision::Rows(_)) => Decision::Rows(Scope::Nothing),
            (one, two) => {
                let (rules, others) = (one.rules(), two.rules());
                let mut both: Vec<Rule> = Vec::new();
                for rule in
                    rules.iter().take(RULES_MAX).flat_map(|rule| others.iter().take(RULES_MAX).map(|other| rule.and(other)))
                {
                    if rule.says_something() && !both.iter().any(|known| known.makes_needless(&rule)) {
                        both.retain(|known| !rule.makes_needless(known));
                        both.push(rule);
                    }
                    // Further rules would not count, and a chain of such decisions must not grow.
                    if both.len() >= RULES_MAX {
                        break;
                    }
                }
                Decision::Rules(both)
            }
        }
    }

    /// The union of both decisions.
    pub fn or(self, other: Decision) -> Decision {
        match (self, other) {
            (one, two) if one.is_all() || one == two => one,
            (_, two) if two.is_all() => two,
            (Decision::Rows(Scope::Nothing), two) => two,
            (one, Decision::Rows(Scope::Nothing)) => one,
            (one, two) => Decision::Rules(one.rules().iter().chain(two.rules().iter()).cloned().collect()),
        }
    }

    /// Whether this decision includes everything that `other` includes. `other` is a decision for the same caller.
    pub fn has_all_of(&self, other: &Decision) -> bool {
        match (self, other) {
            (Decision::Rows(_), Decision::Rows(_)) => self.and(other) == *other,
            _ => other.rules().iter().all(|rule| rule.reaches_nothing() || self.has_rule(rule)),
        }
    }

    /// Whether a rule gives nothing in addition to this decision.
    pub(super) fn has_rule(&self, rule: &Rule) -> bool {
        self.covers(&rule.rows(), &rule.leaves(), &rule.listed)
    }

    /// Whether a grant with these conjuncts and fields gives nothing in addition to this decision.
    pub(super) fn covers(&self, rows: &BTreeSet<&str>, leaves: &BTreeSet<&str>, listed: &Listed) -> bool {
        let covers = |rule: &Rule| rule.rows().is_subset(rows) && rule.leaves().is_subset(leaves) && rule.listed.covers(listed);
        self.rules().iter().any(covers)
    }

    /// The owners whose rows the decision includes with all fields, as far as the creator of a row alone decides this.
    pub fn owners(&self) -> Owners<'_> {
        match self {
            Decision::Rows(Scope::All) => Owners::All,
            Decision::Rows(Scope::Own(actor)) => Owners::One(actor),
            Decision::Rows(Scope::Nothing | Scope::Where(_) | Scope::Seen(_)) => Owners::Nobody,
            Decision::Rules(rules) => {
                // A grant with its own check gives nothing if a variable of the check has no value.
                let mut whole = rules.iter().filter(|rule| rule.listed.are_all() && rule.check == rule.rows);
                match whole.clone().any(|rule| rule.rows.is_empty()) {
                    true => Owners::All,
                    false => whole
                        .find_map(|rule| match rule.rows.as_slice() {
                            [Bound::Own(actor)] => Some(Owners::One(actor)),
                            _ => None,
                        })
                        .unwrap_or(Owners::Nobody),
                }
            }
        }
    }

    /// The access to a resource to which conditions and lists of fields do not apply. On these resources, a rule with a condition
    /// or a list of fields gives nothing.
    pub fn plain(self) -> Option<Access> {
        let rules = match self {
            Decision::Rows(scope) => return Some(Access::new(scope, None)),
            Decision::Rules(rules) => rules,
        };
        let own = rules.iter().find_map(|rule| match (rule.rows.as_slice(), rule.check.as_slice()) {
            ([Bound::Own(actor)], [Bound::Own(_)]) if rule.listed.are_all() => Some(Scope::Own(actor.clone())),
            _ => None,
        });
        let scope = if rules.iter().any(Rule::is_whole) { Some(Scope::All) } else { own };
        scope.map(|scope| Access::new(scope, None))
    }

    /// The access to the rows of `object`.
    pub fn on(self, ground: &Ground<'_>, object: &Arc<Object>) -> Access {
        let known = self.known(ground, object);
        let rules = match self {
            Decision::Rows(Scope::Own(actor)) if object.is_users() => {
                return Access::new(Scope::of(own_rows(object, &actor), object), None);
            }
            Decision::Rows(scope) => return Access::new(scope, None),
            Decision::Rules(rules) => rules,
        };
        let numbers = ground.shapes.numbers(ground.registry, object);
        // Rules beyond the maximum give nothing, so that the size of a statement is limited.
        let read: Vec<(Condition, Condition, &Listed)> = rules
            .iter()
            .take(RULES_MAX)
            .filter(|rule| rule.listed.has_meaning(&numbers))
            .filter_map(|rule| rule.on(ground, object).map(|(rows, leaves)| (rows, leaves, &rule.listed)))
            .collect();
        let reached = |by: &dyn Fn(&Listed) -> bool| {
            Condition::any(read.iter().filter(|(.., listed)| by(listed)).map(|(rows, ..)| rows.clone()).collect())
        };
        let all = reached(&|_| true);
        let scope = Scope::of(all.clone(), object);
        if let Some(known) = known {
            let shown = ground.shapes.to_read(ground.registry, object, &known);
            let readable = |number: &str| Some(reached(&|listed| listed.read.list(number))).filter(|readable| *readable != all);
            let full = Scope::of(reached(&|listed| listed.read.is_all()), object);
            let seen = Seen::new((shown, Arc::clone(object)), (scope, full), &numbers, readable);
            return Access::new(Scope::Seen(Arc::new(seen)), None);
        }
        let checks: Vec<Check> = read
            .into_iter()
            .map(|(rows, leaves, listed)| Check {
                reached: Scope::of(rows, object),
                leaves: Scope::of(leaves, object),
                write: listed.write.clone(),
            })
            .collect();
        let passes_all = |check: &Check| check.reached == Scope::All && check.leaves == Scope::All && check.write.is_all();
        match checks.iter().any(passes_all) {
            true => Access::new(Scope::All, None),
            false => Access::new(scope, Some(checks.into())),
        }
    }
}
