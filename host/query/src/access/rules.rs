//! Decisions: the rules of several grants, and the access that they give on a known object.
//!
//! A [`Decision`] is made from grants alone. [`Decision::on`] reads the conditions of the grants against the live schema, with
//! the values of the caller's variables, and returns the [`Access`] that a plan needs.

mod demands;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use blockbase_schema::{Action, Object, Registry};
pub use demands::Demand;

use super::fields::{Known, Listed, Lists, Shapes};
use super::grant::{Grant, RowPolicy};
use super::policy::{Part, Policy};
use super::reading::{Bounds, Reading, read};
use super::{Access, Check, Clause};
use crate::condition::{Condition, Scope, Seen, Variables, own_rows};

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

    /// Whether the rule's check accepts a row of `owner`, as far as the creator of the row decides this.
    fn accepts_rows_of(&self, owner: Option<&String>) -> bool {
        let accepts = |part: &Bound| match part {
            Bound::Own(actor) => Some(actor) == owner,
            Bound::Nobody => false,
            Bound::Clause(..) => true,
        };
        self.check.iter().all(accepts)
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

    /// The intersection of both rules. `None` if one includes own rows of one caller, and the other those of another caller. Then
    /// they have no common row, and no common field either.
    fn and(&self, other: &Rule) -> Option<Rule> {
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
        let is_of_two = rows.contains(&Bound::Nobody) && !self.reaches_nothing() && !other.reaches_nothing();
        (!is_of_two).then_some(Rule { rows, check, listed })
    }

    /// Whether the rule gives less than it says: see [`GrantContext::is_broken`]. The rule of a key has the conditions of two
    /// grants, which together may be above the limits of one condition. So each of them is judged by itself.
    ///
    /// Reading a condition takes long, and several rules may have the same one. `known` has the conditions on `resource` that
    /// were read before, and whether they are broken.
    pub(super) fn is_broken(&self, grant_context: &GrantContext<'_>, resource: &str, known: &mut HashMap<Clause, bool>) -> bool {
        let check: &[Bound] = if self.check == self.rows { &[] } else { &self.check };
        let mut clauses = self.rows.iter().chain(check).filter_map(|part| match part {
            Bound::Own(_) | Bound::Nobody => None,
            Bound::Clause(policy, _) => Some(&policy.clause),
        });
        let is_broken = |clause: &Clause| match known.get(clause) {
            Some(is_broken) => *is_broken,
            None => {
                let is_broken = grant_context.has_broken(resource, std::iter::once(clause));
                known.insert(clause.clone(), is_broken);
                is_broken
            }
        };
        clauses.any(is_broken) || grant_context.has_broken_list(resource, &self.listed)
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
    fn on(&self, grant_context: &GrantContext<'_>, object: &Object) -> Option<(Condition, Condition)> {
        let condition = |parts: &[Bound]| {
            let read = parts.iter().map(|part| match part {
                Bound::Own(actor) => Some(own_rows(object, actor)),
                Bound::Nobody => Some(Condition::FALSE),
                Bound::Clause(policy, subject) => grant_context.read(object, &policy.clause, subject),
            });
            read.collect::<Option<Vec<Condition>>>().map(Condition::all)
        };
        let rows = condition(&self.rows)?;
        let check = if self.check == self.rows { rows.clone() } else { condition(&self.check)? };
        Some((rows, check))
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
pub struct GrantContext<'a> {
    /// The complete registry, with every object and field.
    pub registry: &'a Registry,
    /// The time in milliseconds since the epoch.
    pub now: i64,
    /// Reduced objects, for callers who know only some fields.
    pub shapes: &'a Shapes,
}

impl GrantContext<'_> {
    /// The fields that a caller knows of an object if they may neither read nor write its fields.
    pub fn id_alone(&self, object: &Object) -> Known {
        Known::of(object, &self.shapes.numbers(self.registry, object), &[])
    }

    /// Whether a stored condition can still be read for the rows of `object`.
    pub fn has_meaning(&self, object: &Object, clause: &Clause) -> bool {
        self.read(object, clause, &Variables::of_somebody(self.now)).is_some()
    }

    /// Whether a stored grant gives less than it says, because it does not fit the schema any more: one of its conditions or
    /// lists of fields names something that no longer exists, or one of its conditions tests a field that has another type now.
    pub fn is_broken(&self, grant: &Grant) -> bool {
        self.has_broken_condition(grant) || self.has_broken_list(&grant.resource, &Listed::of(grant.fields.as_ref()))
    }

    /// Whether one of the conditions of a stored grant is broken. Then the grant gives nothing.
    pub fn has_broken_condition(&self, grant: &Grant) -> bool {
        self.has_broken(&grant.resource, [&grant.rows, &grant.check].into_iter().flatten())
    }

    /// Whether one of these conditions cannot be read for the rows of a resource.
    fn has_broken<'c>(&self, resource: &str, mut clauses: impl Iterator<Item = &'c Clause>) -> bool {
        let object = self.registry.object(resource);
        clauses.any(|clause| object.is_none_or(|object| !self.has_meaning(object, clause)))
    }

    /// Whether a list of a grant on `resource` names a field that does not exist, or `resource` is no object.
    fn has_broken_list(&self, resource: &str, listed: &Listed) -> bool {
        !listed.are_all() && (self.registry.object(resource).is_none() || !self.have_fields(resource, listed))
    }

    /// What a stored grant gives: the grant without the actions that it cannot give ([`Grant::can_give`]), and without those
    /// for which it lists a field that no longer exists. `None` if it gives nothing.
    ///
    /// A list counts only for the actions that it limits. With a broken list for writes, a grant still allows to read and to
    /// delete.
    pub fn given_by<'g>(&self, grant: &'g Grant) -> Option<Cow<'g, Grant>> {
        let listed = Listed::of(grant.fields.as_ref());
        if self.have_fields(&grant.resource, &listed) && grant.can_give_all() {
            return Some(Cow::Borrowed(grant));
        }
        let names = |action: Action| grant.actions.contains(&action) || grant.actions.contains(&Action::Manage);
        let is_named = |action: Action| names(action) && grant.can_give(action);
        let is_given = |action: &Action| is_named(*action) && self.have_fields(&grant.resource, &listed.on(*action));
        let actions: Vec<Action> = Action::ALL.into_iter().filter(is_given).collect();
        (!actions.is_empty()).then(|| Cow::Owned(Grant { actions, ..grant.clone() }))
    }

    /// Whether every field exists that the lists of a grant on `resource` name.
    pub(super) fn have_fields(&self, resource: &str, listed: &Listed) -> bool {
        let object = self.registry.object(resource).filter(|_| !listed.are_all());
        object.is_none_or(|object| listed.has_meaning(&self.shapes.numbers(self.registry, object)))
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

/// A rule of a decision that counts, with its conditions as [`Rule::on`] reads them. `None` if it has none, or if nobody needs them.
struct Counted<'a> {
    rule: &'a Rule,
    conditions: Option<(Condition, Condition)>,
}

/// The rules that count. Those beyond the maximum give nothing, so that the size of a statement is limited.
fn first_rules(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    rules.iter().take(RULES_MAX)
}

/// The rules that count on rows of `object`.
fn counted<'a>(rules: &'a [Rule], grant_context: &GrantContext<'_>, object: &Object) -> Vec<Counted<'a>> {
    let read = |rule: &'a Rule| Counted { rule, conditions: rule.on(grant_context, object) };
    first_rules(rules).map(read).collect()
}

/// The fields that a reader with these rules knows of an object. `None` if they may read every cell of the rows.
fn known_of(grant_context: &GrantContext<'_>, object: &Object, counted: &[Counted<'_>]) -> Option<Known> {
    // A grant with its own check includes no row if a variable of the check has no value.
    let is_for_all = |counted: &Counted<'_>| counted.rule.rows.is_empty() && counted.conditions.is_some();
    fields_of(grant_context, object, counted, |rule| &rule.listed.read, is_for_all)
}

/// The fields that these rules list. `None`, for all fields, if one rule lists every field and `is_enough` accepts this rule, or if
/// all rules list every field.
///
/// Broken rules give nothing, so they list no field. A rule with a variable that has no value for the caller is not broken: its
/// fields are known, and they are null.
fn fields_of(
    grant_context: &GrantContext<'_>,
    object: &Object,
    counted: &[Counted<'_>],
    lists: impl Fn(&Rule) -> &Lists,
    is_enough: impl Fn(&Counted<'_>) -> bool,
) -> Option<Known> {
    let numbers = grant_context.shapes.numbers(grant_context.registry, object);
    let mut known = HashMap::new();
    let mut is_valid = |counted: &&Counted<'_>| match counted.conditions.is_some() {
        true => counted.rule.listed.has_meaning(&numbers),
        false => !counted.rule.is_broken(grant_context, object.name(), &mut known),
    };
    let valid: Vec<&Counted<'_>> = counted.iter().filter(|counted| is_valid(counted)).collect();
    let is_whole = |counted: &&Counted<'_>| lists(counted.rule).is_all();
    let has_enough = valid.iter().any(|valid| is_whole(valid) && is_enough(valid));
    if has_enough || (!valid.is_empty() && valid.iter().all(is_whole)) {
        return None;
    }
    let lists: Vec<&Lists> = valid.into_iter().map(|counted| lists(counted.rule)).collect();
    Some(Known::of(object, &numbers, &lists))
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
    pub fn known(&self, grant_context: &GrantContext<'_>, object: &Object) -> Option<Known> {
        let Decision::Rules(rules) = self else { return None };
        known_of(grant_context, object, &counted(rules, grant_context, object))
    }

    /// The fields of an object that a writer with this decision may name. `None` for all of them.
    pub fn writable(&self, grant_context: &GrantContext<'_>, object: &Object) -> Option<Known> {
        let Decision::Rules(rules) = self else { return None };
        let unread: Vec<Counted<'_>> = first_rules(rules).map(|rule| Counted { rule, conditions: None }).collect();
        fields_of(grant_context, object, &unread, |rule| &rule.listed.write, |_| true)
    }

    /// Whether the decision includes no row, because nobody can own rows by it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Decision::Rows(scope) => *scope == Scope::Nothing,
            Decision::Rules(rules) => rules.iter().all(Rule::reaches_nothing),
        }
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
                for rule in first_rules(&rules).flat_map(|rule| first_rules(&others).filter_map(|other| rule.and(other))) {
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

    /// The decision without the rules whose check refuses rows of `owner`. `None` if nothing is left.
    pub(super) fn for_new_rows_of(self, owner: Option<&String>) -> Option<Decision> {
        match self {
            Decision::Rows(Scope::Own(actor)) if Some(&actor) != owner => None,
            Decision::Rows(_) => Some(self),
            Decision::Rules(mut rules) => {
                rules.retain(|rule| rule.accepts_rows_of(owner));
                (!rules.is_empty()).then_some(Decision::Rules(rules))
            }
        }
    }

    /// Whether a condition or a list of fields is a part of the decision. Own rows alone are not.
    pub fn has_conditions(&self) -> bool {
        let has_conditions = |rule: &Rule| {
            let is_own = |part: &Bound| matches!(part, Bound::Own(_));
            !rule.listed.are_all() || rule.check != rule.rows || !rule.rows.iter().all(is_own)
        };
        match self {
            Decision::Rows(_) => false,
            Decision::Rules(rules) => rules.iter().any(has_conditions),
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
    pub fn on(self, grant_context: &GrantContext<'_>, object: &Arc<Object>) -> Access {
        let rules = match self {
            Decision::Rows(Scope::Own(actor)) if object.is_users() => {
                return Access::new(Scope::of(own_rows(object, &actor), object), None);
            }
            Decision::Rows(scope) => return Access::new(scope, None),
            Decision::Rules(rules) => rules,
        };
        let counted = counted(&rules, grant_context, object);
        let limits_reading = rules.iter().any(|rule| !rule.listed.read.is_all());
        let known = if limits_reading { known_of(grant_context, object, &counted) } else { None };
        let numbers = grant_context.shapes.numbers(grant_context.registry, object);
        let read: Vec<(Condition, Condition, &Listed)> = counted
            .into_iter()
            .filter(|counted| counted.rule.listed.has_meaning(&numbers))
            .filter_map(|Counted { rule, conditions }| conditions.map(|(rows, leaves)| (rows, leaves, &rule.listed)))
            .collect();
        let reached = |by: &dyn Fn(&Listed) -> bool| {
            Condition::any(read.iter().filter(|(.., listed)| by(listed)).map(|(rows, ..)| rows.clone()).collect())
        };
        let all = reached(&|_| true);
        let scope = Scope::of(all.clone(), object);
        if let Some(known) = known {
            let shown = grant_context.shapes.to_read(grant_context.registry, object, &known);
            let readable = |number: &str| Some(reached(&|listed| listed.read.list(number))).filter(|readable| *readable != all);
            let full = Scope::of(reached(&|listed| listed.read.is_all()), object);
            let links = numbers.links.iter().map(|link| (link.key, link.number.as_str()));
            let seen = Seen::new((shown, Arc::clone(object)), (scope, full), (numbers.columns.as_slice(), links), readable);
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
