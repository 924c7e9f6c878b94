//! Random conditions find the same rows in memory as by the reference. This needs no server.

use std::collections::{BTreeMap, BTreeSet};

use blockbase_query::condition::{Image, Related, RelatedRows, image, read};
use blockbase_query::{Access, Action, Bounds, Decision, Permissions, Reading, Variables};
use blockbase_schema::json::parse_members;
use blockbase_schema::{Code, Error, Registry, Relation, Relationship, Result, StoredObject};
use blockbase_tests::is_long;
use serde_json::{Value, json};

use super::model::{Eyes, Reach, Reader, Row, Verdict, World};
use super::random::Generator;
use super::worlds;

const WORLDS: std::ops::Range<u64> = 0..4;
/// The number of conditions for each world. Each condition is tested on all rows of an object, of which there are about twenty.
const CONDITIONS: usize = 500;
const CONDITIONS_LONG: usize = 15_000;
/// The moment of all requests, in milliseconds since 1970: the first one of 2026.
const NOW: i64 = 1_767_225_600_000;

fn reader(reads: Vec<Reach>) -> Reader {
    let variables = BTreeMap::from([
        ("$user.id", "user 1".to_owned()),
        ("$now", "2026-01-01T00:00:00.000Z".to_owned()),
        ("$today", "2026-01-01".to_owned()),
    ]);
    Reader { name: "reader", user: 1, reads, variables, roles: vec!["admin".to_owned()] }
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
}

impl RelatedRows for Memory<'_> {
    fn rows(&mut self, related: &Related, row: &[blockbase_schema::Value]) -> Result<Vec<Image>> {
        let Some(blockbase_schema::Value::Uuid(id)) = row.first() else { panic!("a row without an id: {row:?}") };
        let Both { object, row, .. } = &self.rows[id.to_string().as_str()];
        let end = self.world.ends(*object).into_iter().find(|end| end.key == related.key).expect("a relation");
        let found = self.world.related(self.reader, &end, *object, row);
        Ok(found.into_iter().map(|other| self.rows[other.id.as_str()].image.clone()).collect())
    }
}

fn rows<'a>(world: &'a World, registry: &Registry) -> BTreeMap<&'a str, Both<'a>> {
    let mut all = BTreeMap::new();
    for (object, rows) in world.rows.iter().enumerate() {
        let known = registry.object(&world.objects[object].name).expect("an object");
        for row in rows {
            let members = parse_members(&Value::Object(row.values.clone()).to_string()).expect("a record");
            let image = image(known, &members).expect("values of their types");
            all.insert(row.id.as_str(), Both { object, row, image });
        }
    }
    all
}

/// The verdict of the server's own reading and testing in memory.
fn verdict(registry: &Registry, memory: &mut Memory<'_>, object: usize, condition: &Value) -> Verdict {
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
    let read = match read(known, &condition.to_string(), &reading) {
        Ok(read) => read,
        Err(error) if error.code == Code::Forbidden => return Verdict::Forbidden,
        Err(error) => panic!("{error:?}: {condition}"),
    };
    let rows = world.rows[object].iter().filter(|row| reader.sees(object, row));
    let mut found = BTreeSet::new();
    for row in rows {
        if read.holds(&images[row.id.as_str()].image, memory).expect("an answer") {
            found.insert(row.id.clone());
        }
    }
    Verdict::Found(found)
}

#[test]
fn conditions_in_memory_find_what_the_reference_finds() {
    let conditions = if is_long() { CONDITIONS_LONG } else { CONDITIONS };
    let (mut tested, mut asked, mut telling, mut forbidden) = (0, 0, 0, 0);
    for seed in WORLDS {
        let (mut world, definitions) = worlds::world(seed);
        worlds::complete(&mut world);
        let registry = registry(&world, &definitions);
        let rows = rows(&world, &registry);
        let mut generator = Generator::new(seed, &world);
        let reads = generator.reaches();
        for number in 0..conditions {
            let reader = reader(reads[number % reads.len()].clone());
            let object = generator.random.usize(..world.objects.len());
            let condition = generator.condition(object, &reader);
            if reader.reads[object] == Reach::Nothing {
                continue;
            }
            let expected = world.judge(&reader, object, &condition);
            let (expected, _) = expected.unwrap_or_else(|problem| panic!("{problem}: {condition}"));
            let mut memory = Memory { world: &world, reader: &reader, rows: &rows };
            let found = verdict(&registry, &mut memory, object, &condition);
            let name = &world.objects[object].name;
            assert_eq!(found, expected, "seed {seed}, {name}, by a reader of {:?}: {condition}", reader.reads);
            asked += 1;
            tested += world.rows[object].len();
            match expected {
                Verdict::Forbidden => forbidden += 1,
                Verdict::Found(ids) => telling += usize::from(!ids.is_empty() && ids.len() < world.rows[object].len()),
            }
        }
    }
    assert!(tested >= 20_000 && telling * 3 > asked && forbidden > 0, "{tested} rows: {telling}, {forbidden} of {asked}");
}
