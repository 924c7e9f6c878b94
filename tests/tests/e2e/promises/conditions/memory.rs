//! Random conditions find the same rows in memory as by the reference, and the comparison finds faults that are planted in the
//! conditions. This needs no server.

use std::collections::{BTreeMap, BTreeSet};

use blockbase_query::condition::{Image, Quantifier, Related, image};
use blockbase_query::predicate::{Comparison, Predicate, Test};
use blockbase_query::{Access, Action, Bounds, Condition, Decision, Operator, Permissions, Reading, Variables, read_condition};
use blockbase_schema::json::parse_members;
use blockbase_schema::{Code, Error, Registry, Relation, Relationship, Result, StoredObject};
use blockbase_tests::is_long;
use serde_json::{Value, json};

use super::model::{Everything, Eyes, OPERATORS, Reach, Reader, Row, Verdict, World};
use super::random::Generator;
use super::worlds;

const WORLDS: std::ops::Range<u64> = 0..4;
/// The number of conditions for each world. Each condition is tested on all rows of an object, of which there are about twenty.
const CONDITIONS: usize = 500;
const CONDITIONS_LONG: usize = 15_000;
/// The minimum number of tested rows.
const TESTED: usize = 20_000;
const TESTED_LONG: usize = 1_000_000;
/// The maximum number of conditions until a planted fault is found.
const TRIES_MAX: usize = 3_000;
/// The index of the column `id` of every object.
const ID: usize = 0;
/// The moment of all requests, in milliseconds since 1970: the first one of 2026.
const NOW: i64 = 1_767_225_600_000;

fn reader(reads: Vec<Reach>) -> Reader {
    let variables = BTreeMap::from([
        ("$user.id", "user 1".to_owned()),
        ("$now", "2026-01-01T00:00:00.000Z".to_owned()),
        ("$today", "2026-01-01".to_owned()),
    ]);
    Reader { name: "reader", user: 1, reads, variables, roles: Some(vec!["admin".to_owned()]) }
}

fn variables() -> Variables {
    Variables { user_id: Some("user 1".to_owned()), roles: Some(vec!["admin".to_owned()]), now: NOW, ..Variables::default() }
}

/// The objects and relations of a world in the server's own form.
fn registry(world: &World, definitions: &[Value]) -> Registry {
    let objects = definitions.iter().zip(1..).map(|(definition, id)| StoredObject {
        id,
        revision: 1,
        keys: definition["fields"].as_array().into_iter().flatten().zip(1..).map(|(_, number)| number).collect(),
        definition: serde_json::from_value(definition.clone()).expect("a definition"),
        since: Default::default(),
    });
    let relationships = world.relations.iter().zip(1..).map(|(relation, id)| {
        let (source, target) = (&world.objects[relation.source].name, &world.objects[relation.target].name);
        let definition = json!({ "name": relation.name, "kind": relation.kind, "source": source, "target": target });
        Relationship { id, definition: serde_json::from_value(definition).expect("a definition") }
    });
    Registry::new(1, objects.collect(), relationships.collect()).expect("a registry")
}

/// A row in both forms.
struct Both<'a> {
    object: usize,
    row: &'a Row,
    image: Image,
}

/// The rows of a world by their ids, as a reader sees them.
struct Memory<'a> {
    world: &'a World,
    reader: &'a Reader,
    rows: &'a BTreeMap<&'a str, Both<'a>>,
    fault: Option<Fault>,
}

impl Memory<'_> {
    /// The rows that a relation leads to from `row`, as far as the reader sees them.
    fn rows(&self, related: &Related, row: &[blockbase_schema::Value]) -> Vec<&Image> {
        let Some(blockbase_schema::Value::Uuid(id)) = row.first() else { panic!("a row without an id: {row:?}") };
        let Both { object, row, .. } = &self.rows[id.to_string().as_str()];
        let end = self.world.ends(*object).into_iter().find(|end| end.key == related.key).expect("a relation");
        let eyes: &dyn Eyes = match self.fault {
            Some(Fault::HiddenRowsTakePart) => &Everything,
            _ => self.reader,
        };
        let mut found = self.world.related(eyes, &end, *object, row);
        if self.fault == Some(Fault::OnlyOneRelatedRow) {
            found.truncate(1);
        }
        found.into_iter().map(|other| &self.rows[other.id.as_str()].image).collect()
    }

    /// Whether a condition is true for a row. The server's own code tests the row's values. The related rows are looked up here.
    fn holds(&self, condition: &Condition, row: &[blockbase_schema::Value]) -> bool {
        match condition {
            Condition::Test(_) | Condition::Not(_) => condition.clone().left_for(row).is_true(),
            Condition::All(parts) => parts.iter().all(|part| self.holds(part, row)),
            Condition::Any(parts) => parts.iter().any(|part| self.holds(part, row)),
            Condition::Related(related) => {
                let rows = self.rows(related, row);
                let meets = |row: &&Image| self.holds(&related.condition, row);
                match related.quantifier {
                    Quantifier::One => rows.first().map_or_else(|| related.condition.holds_on_nothing(), meets),
                    Quantifier::Some => rows.iter().any(meets),
                    Quantifier::None => !rows.iter().any(meets),
                }
            }
        }
    }
}

fn rows<'a>(world: &'a World, registry: &Registry) -> BTreeMap<&'a str, Both<'a>> {
    let mut all = BTreeMap::new();
    for (object, rows) in world.rows.iter().enumerate() {
        let known = registry.object(&world.objects[object].name).expect("an object");
        for row in rows {
            let members = parse_members(&Value::Object(row.values.clone()).to_string()).expect("a record");
            let cells = image(known, &members).into_iter().zip(&known.columns).map(|(cell, column)| {
                assert!(
                    cell.is_some() || !row.values.contains_key(&column.name),
                    "a value that is not of its type: {}",
                    column.name
                );
                cell.unwrap_or(blockbase_schema::Value::Null)
            });
            let image = cells.collect();
            all.insert(row.id.as_str(), Both { object, row, image });
        }
    }
    all
}

/// A fault of the conditions or of their meaning, which the comparison has to find.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// `neq` and `nin` are false for null.
    NullIsNotUnequal,
    /// The complement of a test is false for null.
    ComplementLosesNulls,
    /// `gte` excludes its value.
    AtLeastIsMore,
    /// `lt` includes its value.
    LessIsAtMost,
    /// `ilike` distinguishes upper and lower case.
    CaseCounts,
    /// `in` and `nin` ignore their last value.
    LastValueIsLost,
    /// `_or` demands all of its conditions.
    OrIsAnd,
    /// One part of several that are ANDed is ignored.
    LastPartIsLost,
    /// `none` is `some`.
    NoneIsSome,
    /// `some` is true if there are no rows.
    SomeOfNoRows,
    /// If a related row is absent, no condition on it is true.
    AbsentRowMeetsNothing,
    /// Related rows beyond the first one are ignored.
    OnlyOneRelatedRow,
    /// Related rows take part although the reader may not read them.
    HiddenRowsTakePart,
}

impl Fault {
    const ALL: [Fault; 13] = [
        Fault::NullIsNotUnequal,
        Fault::ComplementLosesNulls,
        Fault::AtLeastIsMore,
        Fault::LessIsAtMost,
        Fault::CaseCounts,
        Fault::LastValueIsLost,
        Fault::OrIsAnd,
        Fault::LastPartIsLost,
        Fault::NoneIsSome,
        Fault::SomeOfNoRows,
        Fault::AbsentRowMeetsNothing,
        Fault::OnlyOneRelatedRow,
        Fault::HiddenRowsTakePart,
    ];

    /// The condition with this fault in each of its parts.
    fn planted(self, condition: Condition) -> Condition {
        let all = |parts: Vec<Condition>| parts.into_iter().map(|part| self.planted(part)).collect::<Vec<_>>();
        match condition {
            Condition::Test(predicate) => self.in_test(predicate),
            Condition::Not(predicate) => {
                let known = is_not_null(predicate.column);
                let test = Condition::Not(predicate);
                if self == Fault::ComplementLosesNulls { Condition::All(vec![test, known]) } else { test }
            }
            Condition::All(parts) => {
                let mut parts = all(parts);
                if self == Fault::LastPartIsLost {
                    parts.pop();
                }
                Condition::All(parts)
            }
            Condition::Any(parts) => {
                let parts = all(parts);
                if self == Fault::OrIsAnd { Condition::All(parts) } else { Condition::Any(parts) }
            }
            Condition::Related(related) => self.in_related(*related),
        }
    }

    fn in_test(self, predicate: Predicate) -> Condition {
        let Predicate { column, mut test } = predicate;
        let is_negative = matches!(test, Test::Compare(Comparison::NotEqual, _) | Test::In { negated: true, .. });
        match (self, &mut test) {
            (Fault::AtLeastIsMore, Test::Compare(comparison, _)) if *comparison == Comparison::GreaterOrEqual => {
                *comparison = Comparison::Greater;
            }
            (Fault::LessIsAtMost, Test::Compare(comparison, _)) if *comparison == Comparison::Less => {
                *comparison = Comparison::LessOrEqual;
            }
            (Fault::CaseCounts, Test::Contains { fold_case, .. }) => *fold_case = false,
            (Fault::LastValueIsLost, Test::In { values, .. }) => drop(values.pop()),
            _ => {}
        }
        let test = Condition::Test(Predicate { column, test });
        match self == Fault::NullIsNotUnequal && is_negative {
            true => Condition::All(vec![test, is_not_null(column)]),
            false => test,
        }
    }

    fn in_related(self, mut related: Related) -> Condition {
        related.condition = self.planted(related.condition);
        match (self, related.quantifier) {
            (Fault::NoneIsSome, Quantifier::None) => related.quantifier = Quantifier::Some,
            (Fault::AbsentRowMeetsNothing, Quantifier::One) => {
                related.condition = Condition::All(vec![related.condition, is_not_null(ID)]);
            }
            (Fault::SomeOfNoRows, Quantifier::Some) => {
                let nothing = Related { quantifier: Quantifier::None, condition: Condition::TRUE, ..related.clone() };
                return Condition::Any(vec![Condition::Related(Box::new(related)), Condition::Related(Box::new(nothing))]);
            }
            _ => {}
        }
        Condition::Related(Box::new(related))
    }
}

fn is_not_null(column: usize) -> Condition {
    Condition::Test(Predicate { column, test: Test::IsNotNull })
}

/// The verdict of the server's own reading and testing in memory.
fn verdict(registry: &Registry, memory: &Memory<'_>, object: usize, condition: &Value) -> Verdict {
    let (world, reader, images) = (memory.world, memory.reader, memory.rows);
    let decide = |relation: &Relation| -> Result<Access> {
        let place = world.objects.iter().position(|object| object.name == relation.related).expect("an object");
        let all = || Permissions::unrestricted().decide(&relation.related, Action::Read).and_then(Decision::plain);
        match reader.reads[place] {
            Reach::Nothing => Err(Error::new(Code::Forbidden, "The reader may not read the related object.")),
            Reach::Own | Reach::All => Ok(all().expect("a right")),
        }
    };
    let reading = Reading { registry, decide: &decide, variables: &variables, bounds: Bounds::of_request() };
    let known = registry.object(&world.objects[object].name).expect("an object");
    let read = match read_condition(known, &condition.to_string(), &reading) {
        Ok(read) => match memory.fault {
            Some(fault) => fault.planted(read),
            None => read,
        },
        Err(error) if error.code == Code::Forbidden => return Verdict::Forbidden,
        Err(error) => panic!("{error:?}: {condition}"),
    };
    let rows = world.rows[object].iter().filter(|row| reader.sees(object, row));
    let mut found = BTreeSet::new();
    for row in rows {
        if memory.holds(&read, &images[row.id.as_str()].image) {
            found.insert(row.id.clone());
        }
    }
    Verdict::Found(found)
}

/// A random world in both forms, and its readers.
struct Case<'a> {
    world: &'a World,
    registry: &'a Registry,
    rows: &'a BTreeMap<&'a str, Both<'a>>,
    reads: [Vec<Reach>; 3],
}

/// A condition with both verdicts.
struct Compared {
    object: usize,
    reader: Reader,
    condition: Value,
    expected: Verdict,
    found: Verdict,
}

impl Case<'_> {
    /// Compares the next condition. `None` if its reader may not read the object.
    fn compared(&self, generator: &mut Generator<'_>, number: usize, fault: Option<Fault>) -> Option<Compared> {
        let reader = reader(self.reads[number % self.reads.len()].clone());
        let object = generator.random.usize(..self.world.objects.len());
        let condition = generator.condition(object, &reader);
        if reader.reads[object] == Reach::Nothing {
            return None;
        }
        let expected = self.world.judge(&reader, object, &condition);
        let (expected, _) = expected.unwrap_or_else(|problem| panic!("{problem}: {condition}"));
        let memory = Memory { world: self.world, reader: &reader, rows: self.rows, fault };
        let found = verdict(self.registry, &memory, object, &condition);
        Some(Compared { object, reader, condition, expected, found })
    }
}

/// Calls a function with the world of a seed.
fn with_world(seed: u64, check: impl FnOnce(&Case<'_>, &mut Generator<'_>)) {
    let (mut world, definitions) = worlds::world(seed);
    worlds::complete(&mut world);
    let registry = registry(&world, &definitions);
    let rows = rows(&world, &registry);
    let mut generator = Generator::new(seed, &world);
    let reads = generator.reaches();
    check(&Case { world: &world, registry: &registry, rows: &rows, reads }, &mut generator);
}

/// The reference lists the operators by itself, because it shares no code with the server. So a new operator has to be added there
/// too.
#[test]
fn the_reference_has_the_operators_of_the_server() {
    let listed: Vec<Vec<&str>> = OPERATORS.iter().map(|(_, names)| names.to_vec()).collect();
    let names = |operator: &Operator| [&[operator.name()][..], operator.aliases()].concat();
    let served: Vec<Vec<&str>> = Operator::ALL.iter().map(names).collect();
    assert_eq!(listed, served);
}

#[test]
fn conditions_in_memory_find_what_the_reference_finds() {
    let (conditions, least) = if is_long() { (CONDITIONS_LONG, TESTED_LONG) } else { (CONDITIONS, TESTED) };
    let (mut tested, mut asked, mut telling, mut forbidden) = (0, 0, 0, 0);
    for seed in WORLDS {
        with_world(seed, |case, generator| {
            for number in 0..conditions {
                let Some(compared) = case.compared(generator, number, None) else { continue };
                let Compared { object, reader, condition, expected, found } = compared;
                let (name, rows) = (&case.world.objects[object].name, case.world.rows[object].len());
                assert_eq!(found, expected, "seed {seed}, {name}, by a reader of {:?}: {condition}", reader.reads);
                asked += 1;
                tested += rows;
                match expected {
                    Verdict::Forbidden => forbidden += 1,
                    Verdict::Found(ids) => telling += usize::from(!ids.is_empty() && ids.len() < rows),
                }
            }
        });
    }
    assert!(tested >= least && telling * 3 > asked && forbidden > 0, "{tested} rows: {telling}, {forbidden} of {asked}");
}

#[test]
fn each_planted_fault_is_found() {
    for fault in Fault::ALL {
        with_world(0, |case, generator| {
            let mut tries = 0..TRIES_MAX;
            let is_found = tries.any(|number| {
                let compared = case.compared(generator, number, Some(fault));
                compared.is_some_and(|compared| compared.found != compared.expected)
            });
            assert!(is_found, "{fault:?} is not found");
        });
    }
}
