//! Pages of the rows that have one of few or of many foreign keys.

use blockbase_query::sql;
use blockbase_tests::{Admin, Engine, ServerBuilder, on_both_engines, until};
use serde_json::{Value, json};

use super::many::{make_all, numbers};
use crate::data::conditions::encoded;
use crate::data::search::{dialect, planned_in, registry, with_values};
use crate::mcp::user_with;

const TEAMS: usize = 60;
const PEOPLE: usize = 1_200;

/// Whether a person of a team meets a condition.
type Expected<'e> = Box<dyn Fn(usize, usize) -> bool + 'e>;

fn team_of(person: usize) -> Option<usize> {
    (!person.is_multiple_of(7)).then_some(person * 11 % TEAMS)
}

/// Three teams have the kind 1, and 45 teams the kind 2.
fn kind(team: usize) -> usize {
    match team {
        0..3 => 1,
        3..48 => 2,
        _ => 3,
    }
}

/// Checks all pages of a condition, by number and by cursor, with and without the total. `newest` are the numbers of the rows that
/// meet it, the newest first.
async fn check_pages(admin: &Admin<'_>, condition: &Value, newest: &[usize]) {
    let path = format!("/api/v1/data/person?where={}&select=number", encoded(&condition.to_string()));
    for (sort, rows) in [("-created_at", newest.to_vec()), ("created_at", newest.iter().rev().copied().collect())] {
        for (limit, offset) in [(10, 0), (25, 0), (25, 30), (25, 5_000), (100, 10)] {
            for count in ["none", "exact"] {
                let list = admin.get(&format!("{path}&sort={sort}&limit={limit}&offset={offset}&count={count}")).await;
                let page = &rows[offset.min(rows.len())..(offset + limit).min(rows.len())];
                assert_eq!(numbers(&list.json()), page, "{condition} {sort} {limit} {offset}: {}", list.text);
                let pagination = &list.json()["pagination"];
                assert_eq!(pagination["hasNextPage"], offset + limit < rows.len(), "{condition} {offset}: {}", list.text);
                let total = if count == "none" { Value::Null } else { json!(rows.len()) };
                assert_eq!(pagination["totalCount"], total, "{condition} {offset}: {}", list.text);
            }
        }
        let list = admin.get(&format!("{path},team_id&expand=team&sort={sort}&count=none&limit=25")).await;
        for (row, person) in list.json()["data"].as_array().unwrap().iter().zip(&rows) {
            assert_eq!(row["team"]["number"], json!(team_of(*person)), "{condition}: {}", list.text);
        }
        let (mut cursor, mut read) = (String::new(), Vec::new());
        loop {
            let list = admin.get(&format!("{path}&sort={sort}&pageSize=25&after={cursor}")).await;
            read.extend(numbers(&list.json()));
            let pagination = list.json()["pagination"].clone();
            if pagination["hasNextPage"] != true {
                break;
            }
            cursor = encoded(pagination["endCursor"].as_str().unwrap());
        }
        assert_eq!(read, rows, "{condition} {sort}, by cursor");
    }
}

on_both_engines! {
    async fn pages_of_few_and_of_many_foreign_keys_have_the_rows_in_their_order(server: Server) {
        let admin = server.admin().await;
        let number = json!({ "name": "number", "type": "integer", "required": true });
        let text = json!({ "name": "text", "type": "text" });
        let kind_of = json!({ "name": "kind", "type": "integer", "indexed": true });
        admin.define("person", json!([number, text])).await;
        admin.define("team", json!([number, text, kind_of])).await;
        admin.define("reader", json!([number])).await;
        for (name, kind, source, target) in
            [("team", "many_to_one", "person", "team"), ("readers", "many_to_many", "team", "reader")]
        {
            admin.relate(json!({ "name": name, "kind": kind, "source": source, "target": target })).await;
        }
        let text = |number: usize| (number % 2).to_string();
        let team = |number: usize| json!({ "number": number, "kind": kind(number), "text": text(number) });
        let teams = make_all(&admin, "team", (0..TEAMS).map(team).collect()).await;
        let person = |number: usize| {
            json!({ "number": number, "text": text(number), "team_id": team_of(number).map(|team| &teams[team]) })
        };
        // The records of one call have one time of creation.
        for people in (0..PEOPLE).collect::<Vec<_>>().chunks(300) {
            make_all(&admin, "person", people.iter().copied().map(person).collect()).await;
        }
        let mut newest = Vec::new();
        for offset in (0..PEOPLE).step_by(100) {
            newest.extend(numbers(&admin.get(&format!("/api/v1/data/person?select=number&limit=100&offset={offset}")).await.json()));
        }
        // The first reader has three teams, the second all, and the third none.
        let readers = make_all(&admin, "reader", (0..3).map(|number| json!({ "number": number })).collect()).await;
        let read_by = |reader: usize, team: usize| reader == 1 || (reader == 0 && [1, 5, 59].contains(&team));
        for (reader, id) in readers.iter().enumerate().take(2) {
            let ids: Vec<&String> = (0..TEAMS).filter(|team| read_by(reader, *team)).map(|team| &teams[team]).collect();
            let linked = admin.post(&format!("/api/v1/data/reader/{id}/links/readers"), json!({ "ids": ids })).await;
            assert_eq!(linked.status, 200, "{}", linked.text);
        }
        let of_reader = |reader: usize| json!({ "team": { "readers": { "some": { "id": readers[reader] } } } });
        let is_of = |kind_of: usize| move |team: usize| kind(team) == kind_of;
        // Each condition, the rows that meet it, by their person and their team, and whether the keys of a page are few. `None` if
        // they are not looked for.
        let conditions: Vec<(Value, Expected<'_>, Option<bool>)> = vec![
            (json!({ "team": { "kind": 1 } }), Box::new(|_, team| is_of(1)(team)), Some(true)),
            (json!({ "team": { "kind": 2 } }), Box::new(|_, team| is_of(2)(team)), Some(false)),
            (json!({ "team": { "kind": 9 } }), Box::new(|_, _| false), Some(false)),
            (json!({ "team": { "kind": 3, "text": "0" } }), Box::new(|_, team| is_of(3)(team) && team % 2 == 0), None),
            (json!({ "text": "1", "team": { "kind": 3 } }), Box::new(|person, team| is_of(3)(team) && person % 2 == 1), Some(true)),
            (of_reader(0), Box::new(|_, team| read_by(0, team)), Some(true)),
            (of_reader(1), Box::new(|_, _| true), Some(false)),
            (of_reader(2), Box::new(|_, _| false), Some(false)),
        ];
        let (registry, dialect) = (registry(&server).await, dialect(&server));
        for (condition, meets, are_few) in conditions {
            let meets = |person: &usize| team_of(*person).is_some_and(|team| meets(*person, team));
            let newest: Vec<usize> = newest.iter().copied().filter(meets).collect();
            check_pages(&admin, &condition, &newest).await;
            if server.engine() == Engine::Postgres {
                let text = condition.to_string();
                let query = [("where", text.as_str()), ("count", "none"), ("limit", "25")];
                let plan = planned_in(&registry, registry.object("person").unwrap(), &query);
                let attempt = sql::list_of_keys(dialect, &plan);
                assert_eq!(attempt.is_some(), are_few.is_some(), "{condition}");
                let Some(attempt) = attempt else { continue };
                let counted = format!("SELECT count(*) FROM ({}) AS page", with_values(dialect, attempt.statement));
                let rows = if are_few == Some(true) { newest.len().min(26) } else { 0 };
                assert_eq!(server.sql(&counted).await, [[rows.to_string()]], "{condition}");
            }
        }
    }
}

/// The answer of a list, and the statement by which it reads the table of its object. A lock on the table holds the statement up until
/// the test has seen it.
async fn statement_of_list(admin: &Admin<'_>, object: &str, query: &str) -> (Value, String) {
    let (server, path) = (admin.server, format!("/api/v1/data/{object}?{query}"));
    let waiting = format!(
        "SELECT query FROM pg_stat_activity AS activity JOIN pg_locks AS lock ON lock.pid = activity.pid AND NOT lock.granted \
         WHERE datname = current_database() AND lock.relation = '{object}'::regclass"
    );
    let mut found = Vec::new();
    // If the machine stands still meanwhile, the server stops waiting for the lock.
    for _ in 0..5 {
        let lock = server.lock_rows(&format!("LOCK TABLE {object} IN ACCESS EXCLUSIVE MODE")).await;
        let statement = async {
            until("the list waits for the lock", async || {
                found = server.sql(&waiting).await;
                !found.is_empty()
            })
            .await;
            lock.release().await;
        };
        let (list, ()) = tokio::join!(admin.get(&path), statement);
        if list.status == 503 {
            continue;
        }
        assert_eq!((list.status, found.len()), (200, 1), "{query}: {} {found:?}", list.text);
        let statement = found.remove(0).remove(0);
        // Postgres shows the first 1,023 bytes of a statement.
        assert!(statement.contains(&format!("FROM \"{object}\"")) && statement.len() < 1_023, "{query}: {statement}");
        return (list.json(), statement);
    }
    panic!("{query}: the server stopped waiting each time");
}

#[tokio::test]
async fn a_list_by_few_foreign_keys_begins_with_the_small_statement_on_postgres() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    let number = json!({ "name": "number", "type": "integer", "required": true });
    admin.define("team", json!([number, { "name": "kind", "type": "integer", "indexed": true }])).await;
    admin.define("person", json!([number])).await;
    admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "person", "target": "team" })).await;
    let teams = make_all(&admin, "team", (0..3).map(|number| json!({ "number": number, "kind": number })).collect()).await;
    let people = (0..9).map(|number| json!({ "number": number, "team_id": teams[number % 3] })).collect();
    make_all(&admin, "person", people).await;
    let of_kind = encoded(&json!({ "team": { "kind": 1 } }).to_string());
    let of_number = encoded(&json!({ "team": { "number": 1 } }).to_string());
    let grants = json!([
        { "resource": "team", "actions": ["read"] },
        { "resource": "person", "actions": ["read"], "where": { "team": { "kind": 1 } } },
    ]);
    let reader = user_with(&admin, "ann", grants).await;
    for (caller, query, is_small, found) in [
        (&admin, format!("where={of_kind}&count=none"), true, 3),
        (&admin, format!("where={of_kind}&count=exact"), true, 3),
        (&admin, format!("where={of_kind}&count=none&sort=created_at&limit=2&offset=1"), true, 2),
        (&admin, format!("where={of_kind}&pageSize=2&after="), true, 2),
        (&reader, "count=none".to_owned(), true, 3),
        (&reader, "count=exact&limit=2".to_owned(), true, 2),
        // In these, no index leads to the keys, or the rows of a key are not in the order of the page.
        (&admin, format!("where={of_number}&count=none"), false, 3),
        (&admin, format!("where={of_kind}&count=none&sort=number"), false, 3),
    ] {
        let (list, statement) = statement_of_list(caller, "person", &query).await;
        assert_eq!(statement.contains("svc_found CROSS JOIN LATERAL"), is_small, "{query}: {statement}");
        let numbers = numbers(&list);
        assert_eq!((numbers.len(), numbers.iter().all(|number| number % 3 == 1)), (found, true), "{query}: {list}");
    }
}
