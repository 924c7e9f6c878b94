//! Oracles: requests whose answers could tell whether a hidden record exists. On every surface, a hidden record has the same
//! answers as one that does not exist. If a value or a reference of a hidden record is in the way of a write, the answer is the
//! same as for a record that the caller sees.

use blockbase_tests::{Admin, Server, on_both_engines, test_block};
use serde_json::{Value, json};

use crate::accounts::roles::{role, user};
use crate::mcp::Client;

/// The ids of a book, of a shelf and of a label.
type Ids = [String; 3];

const BOOKS: &str = "/api/v1/data/book";

fn path(book: &str) -> String {
    format!("{BOOKS}/{book}")
}

fn shelf_path(shelf: &str) -> String {
    format!("/api/v1/data/shelf/{shelf}")
}

fn links(book: &str) -> String {
    format!("{BOOKS}/{book}/links/labels")
}

#[derive(Debug)]
enum Request {
    /// The method, the path and the body.
    Rest(&'static str, String, Value),
    /// The document and its variables.
    Graphql(&'static str, Value),
    /// The tool of MCP and its arguments.
    Tool(&'static str, Value),
    /// The input of the block `parity`, which runs an operation of the data interface.
    Block(Value),
}

impl Request {
    /// The status and the text of the answer, with words in place of the ids and of other texts that were sent.
    async fn send(&self, who: &Admin<'_>, words: &[(&str, &str)]) -> (u16, String) {
        let answer = match self {
            Request::Rest(method, path, body) => {
                let body = (!body.is_null()).then(|| body.clone());
                who.server.call_as(Some(who.token.as_str()), method, path, body).await
            }
            Request::Graphql(query, variables) => {
                who.post("/api/v1/graphql", json!({ "query": query, "variables": variables })).await
            }
            Request::Tool(tool, arguments) => {
                let params = json!({ "name": tool, "arguments": arguments });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                Client::of(who).send(call.to_string()).await
            }
            Request::Block(input) => who.post("/api/v1/blocks/parity/actions/run", input.clone()).await,
        };
        let text = words.iter().fold(answer.text, |text, (word, other)| text.replace(word, other));
        (answer.status, text)
    }
}

fn words(ids: &Ids) -> [(&str, &str); 3] {
    [(ids[0].as_str(), "the book"), (ids[1].as_str(), "the shelf"), (ids[2].as_str(), "the label")]
}

struct World<'a> {
    admin: Admin<'a>,
    visitor: Admin<'a>,
    /// A book that the visitor reads and changes. The hidden label is one of its labels.
    seen: String,
    /// A label that the visitor reads.
    plain: String,
    /// The book, the shelf and the label are hidden from the visitor.
    hidden: Ids,
}

/// Books on shelves, with labels. The visitor reads some of each, and writes open books.
async fn world(server: &Server) -> World<'_> {
    let admin = server.admin().await;
    let installed = admin.install("", test_block("parity").await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    admin.define("shelf", json!([{ "name": "name", "type": "text" }])).await;
    admin.define("label", json!([{ "name": "text", "type": "text" }])).await;
    let code = json!({ "name": "code", "type": "text", "isUnique": true });
    admin.define("book", json!([{ "name": "title", "type": "text" }, code, { "name": "state", "type": "text" }])).await;
    let shelf = json!({ "name": "shelf", "kind": "many_to_one", "source": "book", "target": "shelf", "onDelete": "restrict" });
    admin.relate(shelf).await;
    admin.relate(json!({ "name": "labels", "kind": "many_to_many", "source": "book", "target": "label" })).await;
    let grants = json!([
        { "resource": "book", "actions": ["read"], "where": { "state": { "in": ["open", "shown"] } } },
        { "resource": "book", "actions": ["create", "update", "delete"], "where": { "state": "open" } },
        { "resource": "shelf", "actions": ["read", "delete"], "where": { "name": { "neq": "hidden" } } },
        { "resource": "label", "actions": ["read"], "where": { "text": { "neq": "hidden" } } },
        { "resource": "data", "actions": ["read"] },
        { "resource": "parity:run", "actions": ["read"] },
    ]);
    role(&admin, "visitor", grants).await;
    let (visitor, _) = user(&admin, "visitor", Some("visitor")).await;
    let shelf = admin.make("shelf", json!({ "name": "hidden" })).await;
    let label = admin.make("label", json!({ "text": "hidden" })).await;
    let book = admin.make("book", json!({ "title": "hidden", "state": "shut", "shelf_id": shelf })).await;
    let seen = admin.make("book", json!({ "title": "seen", "state": "open" })).await;
    let plain = admin.make("label", json!({ "text": "plain" })).await;
    for book in [&book, &seen] {
        let linked = admin.post(&links(book), json!({ "ids": [label] })).await;
        assert_eq!(linked.status, 200, "{}", linked.text);
    }
    World { admin, visitor, seen, plain, hidden: [book, shelf, label] }
}

impl World<'_> {
    /// All records with their links, as the admin sees them.
    async fn records(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for query in ["book?sort=id&expand=labels,shelf", "shelf?sort=id", "label?sort=id"] {
            texts.push(self.admin.get(&format!("/api/v1/data/{query}")).await.text);
        }
        texts
    }

    /// Makes an open book on a new shelf, and a label of the book `seen`. The visitor sees all of them.
    async fn visible(&self) -> Ids {
        let create = |object: &str, values: Value| json!({ "op": "create", "object": object, "values": values });
        let linked = json!([{ "$ref": "1.id" }]);
        let operations = json!([
            create("shelf", json!({ "name": "new" })),
            create("label", json!({ "text": "new" })),
            create("book", json!({ "title": "new", "state": "open", "shelf_id": { "$ref": "0.id" } })),
            { "op": "link", "object": "book", "id": self.seen, "relation": "labels", "ids": linked },
        ]);
        let made = self.admin.post("/api/v1/batch", json!({ "operations": operations })).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let made = made.data();
        [2, 0, 1].map(|place: usize| made[place]["data"]["id"].as_str().unwrap().to_owned())
    }

    /// The requests that name a book, a shelf or a label.
    fn requests(&self, ids: &Ids) -> Vec<Request> {
        let batch = "mutation($operations: [JSON!]!) { batch(operations: $operations) }";
        let mut requests = self.by_rest(ids);
        requests.extend(self.by_graphql(ids));
        requests.extend(self.by_tools(ids));
        requests.extend(self.by_the_block(ids));
        // The other surfaces take turns with batches.
        for (place, operations) in self.batches(ids).into_iter().enumerate() {
            let input = json!({ "op": "batch", "object": "", "json": operations.to_string() });
            // In a block, an operation that finds no record is null, and the others are not undone.
            let is_for_a_block = operations.as_array().is_some_and(|operations| operations.len() == 1);
            let operations = json!({ "operations": operations });
            requests.push(Request::Rest("POST", "/api/v1/batch".to_owned(), operations.clone()));
            requests.push(match place % 3 {
                0 => Request::Graphql(batch, operations),
                2 if is_for_a_block => Request::Block(input),
                _ => Request::Tool("batch_records", operations),
            });
        }
        requests
    }

    fn by_rest(&self, [book, shelf, label]: &Ids) -> Vec<Request> {
        let seen = &self.seen;
        let (changed, moved) = (json!({ "title": "x" }), json!({ "shelf_id": shelf }));
        let new = json!({ "title": "new", "state": "open", "shelf_id": shelf });
        let upserted = json!({ "code": "of REST", "state": "open", "shelf_id": shelf });
        let bulk = |values: &Value, id: &str| json!({ "ids": [id], "values": values });
        let mut requests = vec![
            ("GET", format!("{}?expand=shelf,labels", path(book)), Value::Null),
            ("GET", format!("{BOOKS}/aggregate?fn=count&id={book}"), Value::Null),
            ("PATCH", path(book), changed.clone()),
            ("DELETE", path(book), Value::Null),
            ("POST", links(book), json!({ "ids": [self.plain] })),
            ("DELETE", links(book), json!({ "ids": [self.plain] })),
            ("GET", format!("{}?expand=book_by_shelf", shelf_path(shelf)), Value::Null),
            ("DELETE", shelf_path(shelf), Value::Null),
            ("DELETE", "/api/v1/data/shelf/bulk".to_owned(), json!({ "ids": [shelf] })),
            ("POST", BOOKS.to_owned(), new.clone()),
            ("POST", format!("{BOOKS}/bulk"), json!({ "data": [{ "title": "first", "state": "open" }, new] })),
            ("POST", format!("{BOOKS}?on_conflict=code"), upserted),
            ("PATCH", path(seen), moved.clone()),
            ("PATCH", format!("{BOOKS}/bulk"), bulk(&moved, seen)),
            ("PATCH", format!("{BOOKS}/bulk"), bulk(&changed, book)),
            ("PATCH", format!("{BOOKS}/bulk?dryRun=true"), bulk(&changed, book)),
            ("DELETE", format!("{BOOKS}/bulk"), json!({ "ids": [book] })),
            ("POST", links(seen), json!({ "ids": [label] })),
            ("DELETE", links(seen), json!({ "ids": [label] })),
        ];
        for (object, condition) in [
            ("book", json!({ "shelf_id": shelf })),
            ("book", json!({ "shelf": { "id": shelf } })),
            ("book", json!({ "labels": { "some": { "id": label } } })),
            ("shelf", json!({ "book_by_shelf": { "some": { "id": book } } })),
        ] {
            requests.push(("POST", format!("/api/v1/data/{object}/query"), json!({ "where": condition, "sort": "id" })));
        }
        requests.into_iter().map(|(method, path, body)| Request::Rest(method, path, body)).collect()
    }

    fn by_graphql(&self, [book, shelf, label]: &Ids) -> Vec<Request> {
        let (changed, moved) = (json!({ "title": "x" }), json!({ "shelf_id": shelf }));
        let update = "mutation($id: ID!, $input: BookUpdateInput!) { update_book(id: $id, input: $input) { id } }";
        let update_many =
            "mutation($ids: [ID!], $input: BookUpdateInput!) { update_book_many(ids: $ids, input: $input) { count ids } }";
        let link = "mutation($id: ID!, $ids: [ID!]!) { link_book_labels(id: $id, ids: $ids) }";
        let unlink = "mutation($id: ID!, $ids: [ID!]!) { unlink_book_labels(id: $id, ids: $ids) }";
        let upsert = "mutation($input: BookCreateInput!) {
            upsert_book(input: $input, onConflict: [\"code\"]) { created data { id } } }";
        let requests = [
            ("query($id: ID!) { book_by_id(id: $id) { id shelf { name } labels { text } } }", json!({ "id": book })),
            ("query($id: ID!) { shelf_by_id(id: $id) { id name } }", json!({ "id": shelf })),
            (update, json!({ "id": book, "input": changed })),
            (update, json!({ "id": self.seen, "input": moved })),
            (update_many, json!({ "ids": [book], "input": changed })),
            (update_many, json!({ "ids": [self.seen], "input": moved })),
            ("mutation($id: ID!) { delete_book(id: $id) }", json!({ "id": book })),
            ("mutation($id: ID!) { delete_shelf(id: $id) }", json!({ "id": shelf })),
            ("mutation($ids: [ID!]) { delete_book_many(ids: $ids) { count ids } }", json!({ "ids": [book] })),
            (
                "mutation($input: BookCreateInput!) { create_book(input: $input) { id } }",
                json!({ "input": { "state": "open", "shelf_id": shelf } }),
            ),
            (upsert, json!({ "input": { "code": "of GraphQL", "state": "open", "shelf_id": shelf } })),
            (link, json!({ "id": book, "ids": [self.plain] })),
            (link, json!({ "id": self.seen, "ids": [label] })),
            (unlink, json!({ "id": self.seen, "ids": [label] })),
        ];
        requests.into_iter().map(|(query, variables)| Request::Graphql(query, variables)).collect()
    }

    fn by_tools(&self, [book, shelf, label]: &Ids) -> Vec<Request> {
        let (changed, moved) = (json!({ "title": "x" }), json!({ "shelf_id": shelf }));
        let new = json!({ "state": "open", "shelf_id": shelf });
        let upserted = json!({ "code": "of MCP", "state": "open", "shelf_id": shelf });
        let requests = [
            ("get_record", json!({ "id": book, "expand": "shelf,labels" })),
            ("update_record", json!({ "id": book, "data": changed })),
            ("update_record", json!({ "id": self.seen, "data": moved })),
            ("delete_record", json!({ "id": book })),
            ("create_record", json!({ "data": new })),
            ("bulk_create_records", json!({ "data": [{ "state": "open" }, new] })),
            ("upsert_record", json!({ "data": upserted, "on_conflict": ["code"] })),
            ("bulk_update_records", json!({ "ids": [book], "data": changed })),
            ("bulk_delete_records", json!({ "ids": [book] })),
            ("link_records", json!({ "id": book, "relation": "labels", "ids": [self.plain] })),
            ("link_records", json!({ "id": self.seen, "relation": "labels", "ids": [label] })),
            ("unlink_records", json!({ "id": self.seen, "relation": "labels", "ids": [label] })),
        ];
        let request = |(tool, mut arguments): (&'static str, Value)| {
            arguments["object_name"] = json!("book");
            Request::Tool(tool, arguments)
        };
        requests.into_iter().map(request).collect()
    }

    fn by_the_block(&self, [book, shelf, label]: &Ids) -> Vec<Request> {
        let (changed, moved) = (json!({ "title": "x" }).to_string(), json!({ "shelf_id": shelf }).to_string());
        let new = json!({ "state": "open", "shelf_id": shelf });
        let upserted = json!({ "code": "of a block", "state": "open", "shelf_id": shelf }).to_string();
        let requests = [
            json!({ "op": "get", "id": book, "expand": "shelf,labels" }),
            json!({ "op": "update", "id": book, "json": changed }),
            json!({ "op": "update", "id": self.seen, "json": moved }),
            json!({ "op": "delete", "id": book }),
            json!({ "op": "create", "json": new.to_string() }),
            json!({ "op": "create_many", "json": json!([{ "state": "open" }, new]).to_string() }),
            json!({ "op": "upsert", "json": upserted, "on_conflict": ["code"] }),
            json!({ "op": "delete_many", "ids": [book] }),
            json!({ "op": "link", "id": book, "relation": "labels", "ids": [self.plain] }),
            json!({ "op": "link", "id": self.seen, "relation": "labels", "ids": [label] }),
            json!({ "op": "unlink", "id": self.seen, "relation": "labels", "ids": [label] }),
        ];
        let request = |mut input: Value| {
            input["object"] = json!("book");
            Request::Block(input)
        };
        requests.into_iter().map(request).collect()
    }

    /// The operations of each batch.
    fn batches(&self, [book, shelf, label]: &Ids) -> Vec<Value> {
        let (changed, moved) = (json!({ "title": "x" }), json!({ "shelf_id": shelf }));
        let update = |id: &str, values: &Value| json!({ "op": "update", "object": "book", "id": id, "values": values });
        let create = |values: Value| json!({ "op": "create", "object": "book", "values": values });
        let change_links = |op: &str, id: Value, label: &str| {
            let mut operation = json!({ "op": op, "object": "book", "relation": "labels", "ids": [label] });
            operation["id"] = id;
            operation
        };
        let new = create(json!({ "title": "first", "state": "open" }));
        let upserted = json!({ "code": "of a batch", "state": "open", "shelf_id": shelf });
        let mut versioned = update(book, &changed);
        versioned["ifVersion"] = json!("\"stale\"");
        vec![
            json!([update(book, &changed)]),
            json!([versioned]),
            json!([update(&self.seen, &moved)]),
            json!([{ "op": "delete", "object": "book", "id": book }]),
            json!([{ "op": "delete", "object": "shelf", "id": shelf }]),
            json!([create(json!({ "state": "open", "shelf_id": shelf }))]),
            json!([{ "op": "upsert", "object": "book", "values": upserted, "onConflict": ["code"] }]),
            json!([change_links("link", json!(book), &self.plain)]),
            json!([change_links("link", json!(self.seen), label)]),
            json!([change_links("unlink", json!(self.seen), label)]),
            // References to results of earlier operations.
            json!([new, change_links("link", json!({ "$ref": "0.id" }), label)]),
            json!([new, update(book, &json!({ "title": { "$ref": "0.title" } }))]),
            json!([update(book, &changed), create(json!({ "state": "open", "title": { "$ref": "0.title" } }))]),
        ]
    }
}

/// The writes of a visitor that a record is in the way of, each with the code of its refusal: a book has this id and this code, and
/// is on this shelf.
fn conflicts(seen: &str, [book, shelf, _]: &Ids, code: &str) -> Vec<(&'static str, Request)> {
    let taken = json!({ "state": "open", "code": code });
    let change = json!({ "code": code });
    let named = json!({ "state": "open", "id": book });
    let batch = |operation: Value| Request::Rest("POST", "/api/v1/batch".to_owned(), json!({ "operations": [operation] }));
    let block = |mut input: Value, values: Value| {
        input["json"] = json!(values.to_string());
        Request::Block(input)
    };
    let create = "mutation($input: BookCreateInput!) { create_book(input: $input) { id } }";
    let update = "mutation($id: ID!, $input: BookUpdateInput!) { update_book(id: $id, input: $input) { id } }";
    let mut conflicts: Vec<(&'static str, Request)> = [
        Request::Rest("POST", BOOKS.to_owned(), taken.clone()),
        Request::Rest("POST", format!("{BOOKS}/bulk"), json!({ "data": [{ "state": "open" }, taken] })),
        Request::Rest("PATCH", path(seen), change.clone()),
        Request::Rest("PATCH", format!("{BOOKS}/bulk"), json!({ "ids": [seen], "values": change })),
        batch(json!({ "op": "create", "object": "book", "values": taken })),
        batch(json!({ "op": "update", "object": "book", "id": seen, "values": change })),
        Request::Graphql(create, json!({ "input": taken })),
        Request::Graphql(update, json!({ "id": seen, "input": change })),
        Request::Tool("create_record", json!({ "object_name": "book", "data": taken })),
        Request::Tool("update_record", json!({ "object_name": "book", "id": seen, "data": change })),
        block(json!({ "op": "create", "object": "book" }), taken.clone()),
        block(json!({ "op": "update", "object": "book", "id": seen }), change),
    ]
    .into_iter()
    .map(|request| ("unique_violation", request))
    .collect();
    let upsert = "mutation($input: BookCreateInput!, $target: [String!]!) {
        upsert_book(input: $input, onConflict: $target) { created } }";
    for (target, values) in [("code", taken), ("id", named)] {
        conflicts.extend(
            [
                Request::Rest("POST", format!("{BOOKS}?on_conflict={target}"), values.clone()),
                batch(json!({ "op": "upsert", "object": "book", "values": values, "onConflict": [target] })),
                Request::Graphql(upsert, json!({ "input": values, "target": [target] })),
                Request::Tool("upsert_record", json!({ "object_name": "book", "data": values, "on_conflict": [target] })),
                block(json!({ "op": "upsert", "object": "book", "on_conflict": [target] }), values),
            ]
            .map(|request| ("forbidden", request)),
        );
    }
    conflicts.extend(
        [
            Request::Rest("DELETE", shelf_path(shelf), Value::Null),
            Request::Rest("DELETE", "/api/v1/data/shelf/bulk".to_owned(), json!({ "ids": [shelf] })),
            batch(json!({ "op": "delete", "object": "shelf", "id": shelf })),
            Request::Graphql("mutation($id: ID!) { delete_shelf(id: $id) }", json!({ "id": shelf })),
            Request::Tool("delete_record", json!({ "object_name": "shelf", "id": shelf })),
            Request::Block(json!({ "op": "delete", "object": "shelf", "id": shelf })),
            Request::Block(json!({ "op": "delete_many", "object": "shelf", "ids": [shelf] })),
        ]
        .map(|request| ("foreign_key_violation", request)),
    );
    conflicts
}

on_both_engines! {
    async fn a_hidden_record_and_one_that_does_not_exist_have_the_same_answers(server: Server) {
        let world = world(&server).await;
        let World { visitor, hidden, .. } = &world;
        let missing: Ids = ["a", "b", "c"].map(|end| format!("20000000-0000-4000-8000-00000000000{end}"));
        let before = world.records().await;
        let mut answers = Vec::new();
        for (of_hidden, of_missing) in world.requests(hidden).iter().zip(&world.requests(&missing)) {
            let answer = of_hidden.send(visitor, &words(hidden)).await;
            assert_eq!(answer, of_missing.send(visitor, &words(&missing)).await, "{of_hidden:?}");
            answers.push(answer);
        }
        assert_eq!(world.records().await, before);
        // The same requests about records that the visitor sees have other answers. So the assertions above can fail.
        for (place, answer) in answers.iter().enumerate() {
            let visible = world.visible().await;
            let request = world.requests(&visible).swap_remove(place);
            assert_ne!(request.send(visitor, &words(&visible)).await, *answer, "{request:?}");
        }
    }

    async fn a_conflict_with_a_hidden_record_reads_like_one_with_a_record_that_is_seen(server: Server) {
        let world = world(&server).await;
        let World { admin, visitor, seen, .. } = &world;
        // The visitor sees both shelves and the second book, but may change neither of the books.
        let book_on_a_shelf = async |state: &str, code: &str| -> Ids {
            let shelf = admin.make("shelf", json!({ "name": "full" })).await;
            let values = json!({ "title": "secret title", "state": state, "code": code, "shelf_id": shelf });
            [admin.make("book", values).await, shelf, "no label".to_owned()]
        };
        let (first, second) = ("the first code", "the second code");
        let (of_hidden, of_seen) = (book_on_a_shelf("shut", first).await, book_on_a_shelf("shown", second).await);
        assert_eq!(visitor.get(&path(&of_hidden[0])).await.status, 404);
        assert_eq!(visitor.get(&path(&of_seen[0])).await.status, 200);
        let before = world.records().await;
        let with_seen = conflicts(seen, &of_seen, second);
        for ((code, with_hidden), (_, other)) in conflicts(seen, &of_hidden, first).iter().zip(&with_seen) {
            let (status, text) = with_hidden.send(visitor, &words(&of_hidden)).await;
            assert_eq!((status, text.clone()), other.send(visitor, &words(&of_seen)).await, "{with_hidden:?}");
            let names_something = ["secret title", first, "shut"].iter().any(|hidden| text.contains(hidden));
            assert!(text.contains(code) && !names_something, "{with_hidden:?}: {text}");
        }
        assert_eq!(world.records().await, before);
    }

    async fn a_relation_to_a_hidden_record_leads_to_null(server: Server) {
        let world = world(&server).await;
        let World { admin, visitor, seen, plain, hidden: [_, shelf, label] } = &world;
        admin.patch(&path(seen), json!({ "shelf_id": shelf })).await.data();
        assert_eq!(admin.post(&links(seen), json!({ "ids": [plain] })).await.status, 200);
        let expanded = async |who: &Admin<'_>| -> Vec<(Value, Value)> {
            let expand = "expand=shelf,labels";
            let get = who.get(&format!("{}?{expand}", path(seen))).await.data();
            let list = who.get(&format!("{BOOKS}?id={seen}&{expand}")).await.data()[0].clone();
            let query = format!("{{ book_by_id(id: \"{seen}\") {{ shelf {{ id }} labels {{ id }} }} }}");
            let shown = who.post("/api/v1/graphql", json!({ "query": query })).await.json()["data"]["book_by_id"].clone();
            let arguments = json!({ "object_name": "book", "id": seen, "expand": "shelf,labels" });
            let called: Value = serde_json::from_str(&Client::of(who).call("get_record", arguments).await.text).unwrap();
            let input = json!({ "op": "get", "object": "book", "id": seen, "expand": "shelf,labels" });
            let done = who.post("/api/v1/blocks/parity/actions/run", input).await.data()["done"].clone();
            let related = |record: &Value| {
                let labels = record["labels"].as_array().unwrap_or_else(|| panic!("{record}"));
                let mut ids: Vec<Value> = labels.iter().map(|label| label["id"].clone()).collect();
                ids.sort_by_key(Value::to_string);
                (record.as_object().unwrap()["shelf"].clone(), json!(ids))
            };
            [get, list, shown, called["data"].clone(), done].iter().map(related).collect()
        };
        for (shelf, labels) in expanded(visitor).await {
            assert_eq!((shelf, labels), (Value::Null, json!([plain])));
        }
        let mut both = [plain, label];
        both.sort();
        for (related, labels) in expanded(admin).await {
            assert_eq!((&related["id"], labels), (&json!(shelf), json!(both)));
        }
    }
}
