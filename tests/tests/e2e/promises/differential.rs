//! Random schemas, records and requests, the same on both engines. Every response has to be the same, byte for byte.
//!
//! A failure prints its seed and the request. `BLOCKBASE_DIFFERENTIAL_SEED` runs a single seed, and `BLOCKBASE_DIFFERENTIAL_CASES` sets how
//! many requests each seed makes.

use blockbase_query::Operator;
use blockbase_tests::{Admin, Engine, ServerBuilder, is_long};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::promises::normalize::Mask;

/// The long command runs all seeds, and the gate only the first one.
const SEEDS: std::ops::Range<u64> = 0..8;
/// The number of requests for each seed, without those that make the schema.
const CASES: usize = 450;

const KINDS: [&str; 19] = [
    "text",
    "email",
    "url",
    "slug",
    "enum",
    "multi_enum",
    "integer",
    "big_integer",
    "decimal",
    "float",
    "percentage",
    "currency",
    "rating",
    "boolean",
    "date",
    "datetime",
    "time",
    "json",
    "uuid",
];
const OPTIONS: [&str; 5] = ["red", "Grün", "a\"b", "with space", "ß"];
const WORDS: [&str; 33] = [
    "",
    "a",
    "A",
    "abc",
    "ABC",
    "é",
    "É",
    "ß",
    "SS",
    "ﬀ",
    "İ",
    "i",
    "ı",
    "ſ",
    "K",
    "Σ",
    "ς",
    "σ",
    "%",
    "_",
    "\\",
    "'",
    "\"",
    ",",
    "null",
    "true",
    "007",
    "1e3",
    "日本語",
    "😀",
    "\u{1f}",
    "line\nbreak",
    "ŉ",
];
const OPERATORS: [&str; 17] =
    ["", "eq", "==", "neq", "<>", "gt", ">", "gte", "lt", "LTE", "like", "ilike", "Contains", "in", "nin", "is_null", "NotNull"];

struct Field {
    name: String,
    kind: &'static str,
}

/// The data from which requests are made.
struct World {
    random: Rng,
    /// The fields of `alpha` and of `beta`.
    fields: [Vec<Field>; 2],
    unique: String,
    /// The ids of the records on both engines. Requests name them by index.
    ids: [Vec<(String, String)>; 2],
}

const OBJECTS: [&str; 2] = ["alpha", "beta"];

/// One request: method, path and body. `{0:3}` means the fourth id of the first object.
#[derive(Clone, Debug)]
struct Request {
    method: &'static str,
    path: String,
    body: Option<Value>,
}

fn pick<'a, T>(random: &mut Rng, of: &'a [T]) -> &'a T {
    &of[random.usize(..of.len())]
}

fn words(random: &mut Rng) -> String {
    (0..random.usize(0..4)).map(|_| *pick(random, &WORDS)).collect()
}

/// A value for a field of `kind`. Some values are not valid for the field.
fn value(random: &mut Rng, kind: &str) -> Value {
    let is_odd = random.u8(..) < 12;
    if is_odd && random.bool() {
        let odd = [json!(null), json!(5), json!("x"), json!([1]), json!({ "a": 1 }), json!(true), json!(1e300), json!("")];
        return pick(random, &odd).clone();
    }
    match kind {
        "text" => json!(words(random)),
        "email" => {
            json!(format!("{}@example.com", pick(random, if is_odd { &["é", ""] } else { &["ann", "Bob", "c.d", "x+y"] })))
        }
        "url" => json!(format!("https://example.com/{}", pick(random, if is_odd { &["x y"] } else { &["", "a", "A?b=%20"] }))),
        "slug" if is_odd => json!(*pick(random, &["a--b", "A", ""])),
        "slug" => json!(format!("{}{}", pick(random, &["a", "a-b", "b"]), random.u16(..2000))),
        "enum" => json!(*pick(random, &OPTIONS)),
        "multi_enum" => {
            let count = random.usize(0..4);
            json!(random.choose_multiple(OPTIONS.iter(), count))
        }
        "integer" if is_odd => pick(random, &[json!(2147483648_i64), json!(1.5)]).clone(),
        "integer" => pick(random, &[json!(0), json!(-1), json!(7), json!("12"), json!(77), json!(2147483647)]).clone(),
        "big_integer" => {
            pick(random, &[json!(0), json!(i64::MAX), json!(i64::MIN), json!("9007199254740993"), json!(-5), json!(1e3)]).clone()
        }
        "decimal" | "currency" | "percentage" => {
            let scaled = random.i64(-2_000_000..2_000_000);
            let exact = format!("{}.{:04}", scaled / 10_000, (scaled % 10_000).abs());
            pick(
                random,
                &[
                    json!(0),
                    json!(exact),
                    json!("0.00005"),
                    json!("-2.345678901"),
                    json!(if is_odd { 1e18 } else { 5.5 }),
                    json!(7),
                ],
            )
            .clone()
        }
        "float" => pick(
            random,
            &[json!(0.1), json!(0.2), json!(-0.0), json!(1e300), json!(-1e300), json!(5e-324), json!(3), json!("1e-7")],
        )
        .clone(),
        "rating" => json!(if is_odd { 6 } else { random.i64(0..6) }),
        "boolean" => pick(random, &[json!(true), json!(false), json!("true"), json!("false")]).clone(),
        "date" => json!(format!("2001-{:02}-{:02}", random.u8(1..13), if is_odd { 31 } else { random.u8(1..29) })),
        "datetime" => {
            let offset = pick(random, &["Z", "+02:00", "-11:30", ""]);
            json!(format!("2001-{:02}-03T{:02}:05:06.{:03}{offset}", random.u8(1..13), random.u8(0..24), random.u16(..1000)))
        }
        "time" => {
            json!(format!(
                "{:02}:{:02}{}",
                random.u8(0..24),
                random.u8(0..60),
                pick(random, if is_odd { &[":60"] } else { &["", ":07", ":07.25"] })
            ))
        }
        "json" => pick(
            random,
            &[
                json!({ "b": [1, 1.5, null], "a": "é" }),
                json!("[1, 2]"),
                json!(if is_odd { "{" } else { "{}" }),
                json!([]),
                json!(5),
                json!("\"x\""),
            ],
        )
        .clone(),
        _ => json!(format!("{:08x}-0000-4000-8000-00000000000{}", random.u8(0..4) as u32 + 0x2000_0000, random.u8(0..4))),
    }
}

fn field(random: &mut Rng, index: usize, kind: &'static str) -> (Field, Value) {
    let name = format!("f{index}_{kind}");
    let mut definition = json!({ "name": name, "type": kind });
    if matches!(kind, "enum" | "multi_enum") {
        definition["options"] = json!(OPTIONS);
    }
    if random.u8(..) < 60 && !matches!(kind, "json" | "multi_enum") {
        definition["indexed"] = json!(true);
    }
    if random.u8(..) < 40 && matches!(kind, "integer" | "decimal" | "float" | "currency") {
        definition["min"] = json!(-10);
        definition["max"] = json!(100_000);
    }
    if random.u8(..) < 40 && kind == "decimal" {
        definition["scale"] = json!(random.u8(0..10));
    }
    if random.u8(..) < 60 && kind == "text" {
        definition["max"] = json!(9);
    }
    (Field { name, kind }, definition)
}

impl World {
    fn new(seed: u64) -> (World, Vec<Request>) {
        let mut random = Rng::with_seed(seed);
        let mut requests = Vec::new();
        let mut all = Vec::new();
        for object in OBJECTS {
            let kinds = random.choose_multiple(KINDS.iter(), 9);
            let (mut fields, mut definitions) = (Vec::new(), Vec::new());
            for (index, kind) in kinds.into_iter().enumerate() {
                let (field, definition) = field(&mut random, index, kind);
                fields.push(field);
                definitions.push(definition);
            }
            fields.push(Field { name: "code".to_owned(), kind: "slug" });
            definitions.push(json!({ "name": "code", "type": "slug", "isUnique": true }));
            all.push(fields);
            requests.push(Request {
                method: "POST",
                path: "/api/v1/objects".to_owned(),
                body: Some(json!({ "name": object, "fields": definitions })),
            });
        }
        for (name, kind, source, target, on_delete) in [
            ("up", "many_to_one", "beta", "alpha", *pick(&mut random, &["restrict", "cascade", "set_null"])),
            ("mate", "one_to_one", "alpha", "alpha", "set_null"),
            ("friends", "many_to_many", "alpha", "beta", *pick(&mut random, &["restrict", "cascade"])),
        ] {
            let body = json!({ "name": name, "kind": kind, "source": source, "target": target, "onDelete": on_delete });
            requests.push(Request { method: "POST", path: "/api/v1/relationships".to_owned(), body: Some(body) });
        }
        all[0].push(Field { name: "mate_id".to_owned(), kind: "reference" });
        all[1].push(Field { name: "up_id".to_owned(), kind: "reference" });
        let [Some(beta), Some(alpha)] = [all.pop(), all.pop()] else { unreachable!() };
        let world = World { random, fields: [alpha, beta], unique: "code".to_owned(), ids: [Vec::new(), Vec::new()] };
        (world, requests)
    }

    /// A placeholder for an id of `object`, or an id that does not exist.
    fn id(&mut self, object: usize) -> String {
        match (self.ids[object].len(), self.random.u8(..)) {
            (0, _) | (_, 0..10) => pick(&mut self.random, &["20000000-0000-4000-8000-000000000000", "x"]).to_string(),
            (count, _) => format!("{{{object}:{}}}", self.random.usize(..count)),
        }
    }

    fn record(&mut self, object: usize, is_patch: bool) -> Value {
        let mut record = Map::new();
        let count = self.fields[object].len();
        for place in 0..count {
            if self.random.u8(..) < 110 {
                continue;
            }
            let Field { name, kind } = &self.fields[object][place];
            let (name, kind) = (name.clone(), *kind);
            let value = match kind {
                "reference" => json!(self.id(0)),
                "integer" | "decimal" | "float" | "rating" | "big_integer" if is_patch && self.random.u8(..) < 70 => {
                    let amount =
                        pick(&mut self.random, &[json!(1), json!(-3), json!(2), json!(0.25), json!("1"), json!(i64::MAX)])
                            .clone();
                    json!({ *pick(&mut self.random, &["$inc", "$inc", "$dec", "$dec", "$mul"]): amount })
                }
                kind => value(&mut self.random, kind),
            };
            record.insert(name, value);
        }
        if self.random.u8(..) < 4 {
            record.insert("unknown".to_owned(), json!(1));
        }
        Value::Object(record)
    }

    fn filter(&mut self, object: usize, query: &mut form_urlencoded_pairs::Pairs) {
        let place = self.random.usize(..self.fields[object].len());
        let Field { name, kind } = &self.fields[object][place];
        let (name, kind) = (name.clone(), *kind);
        let operator = *pick(&mut self.random, &OPERATORS);
        let mut one = || match kind {
            "reference" => self.id(0),
            kind => match value(&mut self.random, kind) {
                Value::String(text) => text,
                Value::Array(items) => items.first().and_then(Value::as_str).unwrap_or("null").to_owned(),
                other => other.to_string(),
            },
        };
        let text = match operator {
            "in" | "nin" => {
                (0..3).map(|_| one().replace('"', "\"\"")).map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(",")
            }
            _ => one(),
        };
        let key = if operator.is_empty() { name } else { format!("{name}[{operator}]") };
        query.push(&key, &text);
    }

    fn list(&mut self, object: usize) -> Request {
        let mut query = form_urlencoded_pairs::Pairs::default();
        for _ in 0..self.random.usize(0..3) {
            self.filter(object, &mut query);
        }
        if self.random.u8(..) < 80 {
            query.push("search", &words(&mut self.random));
        }
        if self.random.u8(..) < 30 {
            let path = format!("/api/v1/data/{}/aggregate", OBJECTS[object]);
            let place = self.random.usize(..self.fields[object].len());
            let function = *pick(&mut self.random, &["count", "sum", "avg", "min", "max"]);
            query.push("fn", function);
            query.push("field", &self.fields[object][place].name.clone());
            return Request { method: "GET", path: format!("{path}?{}", query.text()), body: None };
        }
        let names = |random: &mut Rng, descends: bool| -> String {
            (0..random.usize(1..3))
                .map(|_| {
                    let sign = if descends && random.bool() { "-" } else { "" };
                    format!("{sign}{}", pick(random, &self.fields[object]).name)
                })
                .collect::<Vec<_>>()
                .join(",")
        };
        let (sort, select) = (names(&mut self.random, true), names(&mut self.random, false));
        if self.random.u8(..) < 150 {
            query.push("sort", &sort);
        }
        if self.random.u8(..) < 50 {
            query.push("select", &select);
        }
        if self.random.u8(..) < 90 {
            let keys = [
                "up",
                "mate",
                "friends",
                "beta_by_up",
                "alpha_by_mate",
                "up.mate",
                "friends.up.mate",
                "friends.friends",
                "nothing",
            ];
            let expand: Vec<&str> = (0..2).map(|_| *pick(&mut self.random, &keys)).collect();
            query.push("expand", &expand.join(","));
        }
        match self.random.u8(0..4) {
            0 => query.push("page", &self.random.u8(0..4).to_string()),
            1 => query.push("limit", &self.random.u8(0..7).to_string()),
            2 => query.push("count", "none"),
            _ => {}
        }
        Request { method: "GET", path: format!("/api/v1/data/{}?{}", OBJECTS[object], query.text()), body: None }
    }

    fn request(&mut self) -> Request {
        let object = self.random.usize(0..2);
        let path = format!("/api/v1/data/{}", OBJECTS[object]);
        let of_record = |id: String| format!("{path}/{id}");
        match self.random.u8(0..100) {
            0..18 => Request { method: "POST", body: Some(self.record(object, false)), path },
            18..21 => {
                let records: Vec<Value> = (0..3).map(|_| self.record(object, false)).collect();
                Request { method: "POST", path: format!("{path}/bulk"), body: Some(json!({ "data": records })) }
            }
            21..26 => {
                let mut record = self.record(object, false);
                record[&self.unique] = json!(*pick(&mut self.random, &["a", "b", "c"]));
                let target = pick(&mut self.random, &["code", "code", "code", "id", "nothing"]);
                Request { method: "POST", path: format!("{path}?on_conflict={target}"), body: Some(record) }
            }
            26..29 => {
                let ids: Vec<String> = (0..3).map(|_| self.id(object)).collect();
                let body = json!({ "ids": ids, "values": self.record(object, true) });
                Request { method: "PATCH", path: format!("{path}/bulk"), body: Some(body) }
            }
            29..38 => Request { method: "PATCH", path: of_record(self.id(object)), body: Some(self.record(object, true)) },
            38..42 => Request { method: "DELETE", path: of_record(self.id(object)), body: None },
            42..44 => {
                let ids: Vec<String> = (0..2).map(|_| self.id(object)).collect();
                Request { method: "DELETE", path: format!("{path}/bulk"), body: Some(json!({ "ids": ids })) }
            }
            44..52 => {
                let ids: Vec<String> = (0..2).map(|_| self.id(1 - object)).collect();
                let method = if self.random.bool() { "POST" } else { "DELETE" };
                let path = format!("{}/links/friends", of_record(self.id(object)));
                Request { method, path, body: Some(json!({ "ids": ids })) }
            }
            52..56 => Request { method: "GET", path: of_record(self.id(object)), body: None },
            _ => self.list(object),
        }
    }
}

/// Query strings, encoded in the same way as by browsers.
mod form_urlencoded_pairs {
    #[derive(Default)]
    pub(super) struct Pairs(Vec<String>);

    impl Pairs {
        pub(super) fn push(&mut self, name: &str, value: &str) {
            // Placeholders replace ids until these are known.
            let encode = |text: &str| -> String {
                let is_place = text.starts_with('{') && text.ends_with('}');
                text.bytes()
                    .map(|byte| match byte {
                        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
                        b'{' | b'}' | b':' if is_place => char::from(byte).to_string(),
                        _ => format!("%{byte:02X}"),
                    })
                    .collect()
            };
            self.0.push(format!("{}={}", encode(name), encode(value)));
        }

        pub(super) fn text(&self) -> String {
            self.0.join("&")
        }
    }
}

/// Replaces placeholders with the ids of one engine.
fn filled(text: &str, ids: &[Vec<(String, String)>; 2], side: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{0:").into_iter().chain(rest.find("{1:")).min() {
        let Some(end) = rest[start..].find('}') else { break };
        let (object, place) = rest[start + 1..start + end].split_once(':').unwrap();
        let known = &ids[object.parse::<usize>().unwrap()][place.parse::<usize>().unwrap()];
        out.push_str(&rest[..start]);
        out.push_str(if side == 0 { &known.0 } else { &known.1 });
        rest = &rest[start + end + 1..];
    }
    out.push_str(rest);
    out
}

async fn send(admin: &Admin<'_>, request: &Request, ids: &[Vec<(String, String)>; 2], side: usize) -> (u16, String) {
    let mut builder = admin.request(request.method, &filled(&request.path, ids, side));
    if let Some(body) = &request.body {
        builder = builder.header("content-type", "application/json").body(filled(&body.to_string(), ids, side));
    }
    let answer = admin.server.send(builder).await;
    (answer.status, answer.text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_get_the_same_bytes_from_both_engines() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = setting("BLOCKBASE_DIFFERENTIAL_CASES").map_or(CASES, |cases| cases as usize);
    let seeds = setting("BLOCKBASE_DIFFERENTIAL_SEED")
        .map_or_else(|| if is_long() { SEEDS } else { SEEDS.start..SEEDS.start + 1 }, |seed| seed..seed + 1);
    let (mut answered, mut well, mut found) = (0, 0, 0);
    for seed in seeds {
        let (sqlite, postgres) =
            tokio::join!(ServerBuilder::new(Engine::Sqlite).start(), ServerBuilder::new(Engine::Postgres).start());
        let (one, other) = tokio::join!(sqlite.admin(), postgres.admin());
        let (mut world, setup) = World::new(seed);
        let mut masks = [Mask::default(), Mask::default()];
        let mut setup = setup.into_iter();
        for case in 0..cases {
            let request = setup.next().unwrap_or_else(|| world.request());
            let ids = &world.ids;
            let ((status, text), (other_status, other_text)) =
                tokio::join!(send(&one, &request, ids, 0), send(&other, &request, ids, 1));
            let masked = [masks[0].mask(&text), masks[1].mask(&other_text)];
            assert_eq!((status, &masked[0]), (other_status, &masked[1]), "seed {seed}, case {case}: {request:?}");
            assert!(status < 500, "seed {seed}, case {case}: {request:?}: {status} {text}");
            answered += 1;
            well += usize::from(status < 300);
            found += usize::from(request.method == "GET" && text.contains("\"created_at\""));
            if request.method == "POST" && status == 201 {
                remember(&mut world, &request, &text, &other_text);
            }
        }
        let outbox = "SELECT topic, payload FROM svc_events WHERE topic LIKE 'data.%' ORDER BY seq";
        let (left, right) = tokio::join!(sqlite.sql(outbox), postgres.sql(outbox));
        for (one, other) in left.iter().zip(&right) {
            assert_eq!((&one[0], masks[0].mask(&one[1])), (&other[0], masks[1].mask(&other[1])), "the outbox of seed {seed}");
        }
        assert_eq!(left.len(), right.len(), "the outbox of seed {seed}");
    }
    assert!(well * 2 > answered && found * 20 > answered, "{well} went well and {found} found records, of {answered}");
}

/// Stores the ids of created records on both engines.
fn remember(world: &mut World, request: &Request, text: &str, other: &str) {
    let Some(object) = OBJECTS.iter().position(|name| request.path.starts_with(&format!("/api/v1/data/{name}"))) else { return };
    let ids = |text: &str| -> Vec<String> {
        let answer: Value = serde_json::from_str(text).unwrap();
        match (&answer["ids"], &answer["data"]["id"]) {
            (Value::Array(ids), _) => ids.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            (_, Value::String(id)) => vec![id.clone()],
            _ => Vec::new(),
        }
    };
    world.ids[object].extend(ids(text).into_iter().zip(ids(other)));
}

#[test]
fn every_operator_is_compared() {
    let drawn: Vec<Operator> = OPERATORS.iter().filter_map(|name| Operator::parse(name).ok()).collect();
    for operator in Operator::ALL {
        assert!(drawn.contains(operator), "{operator:?} is never drawn");
    }
}
