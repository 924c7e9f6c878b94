//! Relationships: columns, links, expansion, the effects of deletions, and conflicts of names.

use blockbase_tests::{Admin, Engine, Server, ServerBuilder, on_both_engines};
use serde_json::{Value, json};

/// Defines `person`, `post` (author, tags), `comment` (of a post), `card` (one per person) and `tag`.
async fn blog(admin: &Admin<'_>) {
    let name = json!([{ "name": "name", "type": "text", "required": true }]);
    for object in ["person", "post", "comment", "card", "tag"] {
        admin.define(object, name.clone()).await;
    }
    for (name, kind, source, target) in [
        ("author", "many_to_one", "post", "person"),
        ("comments", "one_to_many", "post", "comment"),
        ("owner", "one_to_one", "card", "person"),
        ("tags", "many_to_many", "post", "tag"),
        ("friends", "many_to_many", "person", "person"),
    ] {
        admin.relate(json!({ "name": name, "kind": kind, "source": source, "target": target })).await;
    }
}

fn names(records: &Value) -> Vec<&str> {
    records.as_array().expect("an array").iter().map(|record| record["name"].as_str().unwrap()).collect()
}

on_both_engines! {
    async fn expand_takes_a_bounded_number_of_paths(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let post = admin.make("post", json!({ "name": "First" })).await;
        let paths = |count: usize| (0..count).map(|number| format!("unknown{number}")).collect::<Vec<_>>().join(",");
        for path in ["post".to_owned(), format!("post/{post}")] {
            assert_eq!(admin.get(&format!("/api/v1/data/{path}?expand={}", paths(1000))).await.status, 200);
            let error = admin.get(&format!("/api/v1/data/{path}?expand={}", paths(1001))).await.expect_error(400, "invalid_request");
            assert!(error["message"].as_str().unwrap().contains("1000 paths"), "{error}");
        }
        // If a key is repeated, it is compared each time.
        let same = vec!["author"; 1001].join(",");
        admin.get(&format!("/api/v1/data/post?expand={same}")).await.expect_error(400, "invalid_request");
    }

    async fn a_deletion_takes_a_bounded_number_of_links_along(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let made = async |object: &str, count: usize| {
            let records: Vec<Value> = (0..count).map(|number| json!({ "name": number.to_string() })).collect();
            let made = admin.post(&format!("/api/v1/data/{object}/bulk"), json!({ "data": records })).await;
            assert_eq!(made.status, 201, "{}", made.text);
            let mut ids = Vec::new();
            for page in 1..=count.div_ceil(100) {
                let listed = admin.get(&format!("/api/v1/data/{object}?pageSize=100&page={page}&sort=id&select=id")).await.data();
                ids.extend(listed.as_array().unwrap().iter().map(|record| record["id"].clone()));
            }
            ids
        };
        let (tags, posts) = (made("tag", 1000).await, made("post", 21).await);
        for post in &posts {
            let links = format!("/api/v1/data/post/{}/links/tags", post.as_str().unwrap());
            assert_eq!(admin.post(&links, json!({ "ids": tags })).await.data(), json!({ "added": 1000 }));
        }
        let error = admin.request("DELETE", "/api/v1/data/post/bulk").json(&json!({ "ids": posts }));
        server.send(error).await.expect_error(400, "answer_too_large");
        assert_eq!(admin.get("/api/v1/data/post").await.json()["pagination"]["totalCount"], 21);
        let few = admin.request("DELETE", "/api/v1/data/post/bulk").json(&json!({ "ids": posts[..20] }));
        assert_eq!(server.send(few).await.status, 200);
        let left = admin.get(&format!("/api/v1/data/post/{}?expand=tags", posts[20].as_str().unwrap())).await.data();
        assert_eq!(left["tags"].as_array().unwrap().len(), 1000);
    }

    async fn related_records_come_along(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let ann = admin.make("person", json!({ "name": "Ann" })).await;
        let bob = admin.make("person", json!({ "name": "Bob" })).await;
        let post = admin.make("post", json!({ "name": "First", "author_id": ann })).await;
        let orphan = admin.make("post", json!({ "name": "Second" })).await;
        let card = admin.make("card", json!({ "name": "Ann's card", "owner_id": ann })).await;
        for name in ["one", "two", "three"] {
            admin.make("comment", json!({ "name": name, "comments_id": post })).await;
        }
        let mut tags = Vec::new();
        for name in ["rust", "wasm"] {
            tags.push(admin.make("tag", json!({ "name": name })).await);
        }
        let links = format!("/api/v1/data/post/{post}/links/tags");
        assert_eq!(admin.post(&links, json!({ "ids": tags })).await.data(), json!({ "added": 2 }));

        let get = async |path: String| admin.get(&format!("/api/v1/data/{path}")).await.data();
        let whole = get(format!("post/{post}?expand=author,comment_by_comments,tags,unknown.key")).await;
        assert_eq!((&whole["author_id"], &whole["author"]["name"]), (&json!(ann), &json!("Ann")));
        assert_eq!(names(&whole["comment_by_comments"]), ["three", "two", "one"]);
        assert_eq!(names(&whole["tags"]), ["wasm", "rust"]);
        assert!(whole.get("unknown").is_none());
        assert_eq!(get(format!("post/{orphan}?expand=author,tags")).await["author"], Value::Null);
        assert_eq!(get(format!("post/{orphan}?expand=author,tags")).await["tags"], json!([]));

        let person = get(format!("person/{ann}?expand=post_by_author,card_by_owner,friends")).await;
        assert_eq!(names(&person["post_by_author"]), ["First"]);
        assert_eq!((&person["card_by_owner"]["id"], &person["friends"]), (&json!(card), &json!([])));
        assert_eq!(get(format!("person/{bob}?expand=card_by_owner")).await["card_by_owner"], Value::Null);
        assert_eq!(names(&get(format!("tag/{}?expand=tags", tags[0])).await["tags"]), ["First"]);

        let dotted = get("comment?expand=comments.author.card_by_owner&sort=name&limit=1".to_owned()).await;
        assert_eq!(dotted[0]["comments"]["author"]["card_by_owner"]["name"], "Ann's card");
        let selected = get("post?expand=author&select=name&sort=name".to_owned()).await;
        assert_eq!(selected[0].as_object().unwrap().keys().collect::<Vec<_>>(), ["id", "name", "author"]);
        assert_eq!((&selected[0]["author"]["name"], &selected[1]["author"]), (&json!("Ann"), &Value::Null));
        let filtered = get(format!("post?author_id={ann}&expand=author&count=none")).await;
        assert_eq!(names(&filtered), ["First"]);
        admin.get("/api/v1/data/comment?expand=comments.author.card_by_owner.owner").await.expect_error(400, "invalid_request");
    }

    async fn a_relation_key_that_is_none_is_left_out_with_a_warning(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let ann = admin.make("person", json!({ "name": "Ann" })).await;
        let (all, known, unknown) = ("/api/v1/data/post", "expand=author", "expand=author.nothing,writer,author");
        let created = admin.post(&format!("{all}?{unknown}"), json!({ "name": "First", "author_id": ann })).await;
        assert_eq!((created.status, &created.data()["author"]["name"]), (201, &json!("Ann")));
        let id = created.data()["id"].as_str().unwrap().to_owned();
        let one = format!("{all}/{id}");
        let body = json!({ "id": id, "name": "Second" });
        let answers = [
            created,
            admin.post(&format!("{all}?on_conflict=id&{unknown}"), body).await,
            admin.patch(&format!("{one}?{unknown}"), json!({ "name": "Third" })).await,
            admin.get(&format!("{one}?{unknown}")).await,
            admin.get(&format!("{all}?{unknown}")).await,
        ];
        let expected = json!([
            "`person` has no relation `nothing`, so `author.nothing` of `expand` is left out.",
            "`post` has no relation `writer`, so `expand` leaves it out.",
        ]);
        for answer in &answers {
            assert_eq!((answer.status < 300, &answer.json()["warnings"]), (true, &expected), "{}", answer.text);
        }
        for answer in [
            admin.patch(&format!("{one}?{known}"), json!({ "name": "Fourth" })).await,
            admin.patch(&one, json!({ "name": "Fifth" })).await,
            admin.get(&format!("{one}?{known}")).await,
            admin.get(&format!("{all}?{known}")).await,
        ] {
            assert_eq!((answer.status, answer.json().get("warnings")), (200, None), "{}", answer.text);
        }
        // The response shows at most 50 warnings, and an excerpt of each, no matter how many and how long they are.
        let many = (0..120).map(|number| format!("{number}{}", "k".repeat(200))).collect::<Vec<_>>().join(",");
        let answer = admin.get(&format!("{one}?expand={many}")).await;
        assert_eq!(answer.json()["warnings"].as_array().unwrap().len(), 50);
        assert!(answer.text.len() < 50 * 300, "{} bytes", answer.text.len());
    }

    async fn links_change_once_and_tell_what_changed(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let post = admin.make("post", json!({ "name": "p" })).await;
        let mut tags = Vec::new();
        for number in 0..3 {
            tags.push(admin.make("tag", json!({ "name": format!("t{number}") })).await);
        }
        let path = format!("/api/v1/data/post/{post}/links/tags");
        let nobody = "01890000-0000-7000-8000-000000000000";
        let refused = admin.post(&path, json!({ "ids": [tags[0], nobody] })).await.expect_error(409, "foreign_key_violation");
        assert!(refused["message"].as_str().unwrap().contains(nobody));
        assert_eq!(admin.post(&path, json!({ "ids": [tags[0], tags[1], tags[0]] })).await.data(), json!({ "added": 2 }));
        assert_eq!(admin.post(&path, json!({ "ids": [tags[1], tags[2]] })).await.data(), json!({ "added": 1 }));
        assert_eq!(admin.post(&path, json!({ "ids": tags })).await.data(), json!({ "added": 0 }));
        // The same links, seen from the other object.
        let back = format!("/api/v1/data/tag/{}/links/tags", tags[0]);
        assert_eq!(admin.delete_with(&back, json!({ "ids": [post, nobody] })).await.data(), json!({ "removed": 1 }));
        assert_eq!(admin.delete_with(&path, json!({ "ids": tags })).await.data(), json!({ "removed": 2 }));
        assert_eq!(admin.delete_with(&path, json!({ "ids": tags })).await.data(), json!({ "removed": 0 }));

        let told: Vec<(String, Value)> = admin.outbox("post").await.into_iter().skip(1).collect();
        assert_eq!(told.iter().map(|(topic, _)| topic.as_str()).collect::<Vec<_>>(), ["data.post.linked", "data.post.linked", "data.post.unlinked"]);
        assert_eq!(told[1].1["targetIds"], json!([tags[2]]));
        let first = &told[0].1;
        assert_eq!((&first["object"], &first["id"], &first["op"]), (&json!("post"), &json!(post), &json!("linked")));
        assert_eq!((&first["relationship"], &first["targetObject"]), (&json!("tags"), &json!("tag")));
        assert_eq!(first["actor"]["via"], "session");
        let other = admin.outbox("tag").await;
        assert_eq!((other[3].0.as_str(), &other[3].1["targetIds"]), ("data.tag.unlinked", &json!([post])));

        for (path, status, code) in [
            (format!("/api/v1/data/post/{post}/links/author"), 404, "not_found"),
            (format!("/api/v1/data/post/{post}/links/nothing"), 404, "not_found"),
            (format!("/api/v1/data/post/{nobody}/links/tags"), 404, "not_found"),
            ("/api/v1/data/post/x/links/tags".to_owned(), 404, "not_found"),
            (format!("/api/v1/data/nothing/{post}/links/tags"), 404, "not_found"),
        ] {
            admin.post(&path, json!({ "ids": [tags[0]] })).await.expect_error(status, code);
        }
        let malformed = admin.post(&path, json!({ "ids": ["x"] })).await.expect_error(400, "invalid_value");
        assert_eq!(malformed["field"], "ids");
        for body in [json!({}), json!({ "ids": "x" }), json!({ "ids": [1] }), json!({ "ids": [], "more": 1 }), json!([])] {
            admin.post(&path, body).await.expect_error(400, "invalid_request");
        }
        let many: Vec<String> = (0..1001).map(|_| nobody.to_owned()).collect();
        admin.post(&path, json!({ "ids": many })).await.expect_error(400, "invalid_request");
    }

    async fn references_hold(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let nobody = "01890000-0000-7000-8000-000000000000";
        let refused = admin.post("/api/v1/data/post", json!({ "name": "p", "author_id": nobody })).await;
        assert_eq!(refused.expect_error(409, "foreign_key_violation")["field"], "author_id");
        let bad = admin.post("/api/v1/data/post", json!({ "name": "p", "author_id": "x" })).await;
        assert_eq!(bad.expect_error(400, "invalid_value")["field"], "author_id");
        let ann = admin.make("person", json!({ "name": "Ann" })).await;
        let post = admin.make("post", json!({ "name": "p", "author_id": ann })).await;
        let path = format!("/api/v1/data/post/{post}");
        assert_eq!(admin.patch(&path, json!({ "author_id": nobody })).await.expect_error(409, "foreign_key_violation")["field"], "author_id");
        assert_eq!(admin.get(&path).await.data()["author_id"], json!(ann));
        let person = format!("/api/v1/data/person/{ann}");
        let kept = admin.delete(&person).await.expect_error(409, "foreign_key_violation");
        assert!(kept["message"].as_str().unwrap().contains("`post` (`author`)"), "{kept}");
        admin.make("card", json!({ "name": "c", "owner_id": ann })).await;
        let twice = admin.post("/api/v1/data/card", json!({ "name": "d", "owner_id": ann })).await;
        assert_eq!(twice.expect_error(409, "unique_violation")["field"], "owner_id");
        admin.patch(&path, json!({ "author_id": null })).await.data();
        // The card still refers to the person.
        admin.delete(&person).await.expect_error(409, "foreign_key_violation");
    }

    async fn deletion_does_what_the_relationship_says(server: Server) {
        let admin = server.admin().await;
        for object in ["team", "member", "task", "note"] {
            admin.define(object, json!([{ "name": "name", "type": "text" }])).await;
        }
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "member", "target": "team", "onDelete": "cascade", "required": true })).await;
        admin.relate(json!({ "name": "boss", "kind": "many_to_one", "source": "member", "target": "member", "onDelete": "cascade" })).await;
        admin.relate(json!({ "name": "assignee", "kind": "many_to_one", "source": "task", "target": "member", "onDelete": "set_null" })).await;
        admin.relate(json!({ "name": "notes", "kind": "one_to_many", "source": "member", "target": "note", "onDelete": "restrict" })).await;
        admin.relate(json!({ "name": "skills", "kind": "many_to_many", "source": "member", "target": "note" })).await;
        let team = admin.make("team", json!({ "name": "t" })).await;
        let boss = admin.make("member", json!({ "name": "boss", "team_id": team })).await;
        let other = admin.make("member", json!({ "name": "other", "team_id": team, "boss_id": boss })).await;
        // The records refer to each other: each is the boss of the other.
        admin.patch(&format!("/api/v1/data/member/{boss}"), json!({ "boss_id": other })).await.data();
        let task = admin.make("task", json!({ "name": "work", "assignee_id": other })).await;
        let free = admin.make("note", json!({ "name": "free" })).await;
        admin.post(&format!("/api/v1/data/member/{boss}/links/skills"), json!({ "ids": [free] })).await.data();
        let note = admin.make("note", json!({ "name": "held", "notes_id": other })).await;

        let held = admin.delete(&format!("/api/v1/data/team/{team}")).await.expect_error(409, "foreign_key_violation");
        assert!(held["message"].as_str().unwrap().contains("still referenced"), "{held}");
        assert_eq!(admin.get("/api/v1/data/member").await.json()["pagination"]["totalCount"], 2);
        assert_eq!(admin.get(&format!("/api/v1/data/task/{task}")).await.data()["assignee_id"], json!(other));

        assert_eq!(admin.delete(&format!("/api/v1/data/note/{note}")).await.status, 204);
        assert_eq!(admin.delete(&format!("/api/v1/data/team/{team}")).await.status, 204);
        assert_eq!(admin.get("/api/v1/data/member").await.json()["pagination"]["totalCount"], 0);
        assert_eq!(admin.get("/api/v1/data/member?search=boss").await.json()["pagination"]["totalCount"], 0);
        let left = admin.get(&format!("/api/v1/data/task/{task}")).await.data();
        assert_eq!(left["assignee_id"], Value::Null);
        assert_eq!(admin.get(&format!("/api/v1/data/note/{free}?expand=skills")).await.data()["skills"], json!([]));

        let topics = async |object: &str| admin.outbox(object).await.into_iter().map(|(topic, _)| topic).collect::<Vec<_>>();
        assert_eq!(topics("task").await, ["data.task.created", "data.task.updated"]);
        let cleared = admin.outbox("task").await.pop().unwrap().1;
        assert_eq!(cleared["diff"], json!({ "assignee_id": { "before": other, "after": null } }));
        let members = admin.outbox("member").await;
        let deleted: Vec<&Value> = members.iter().filter(|(topic, _)| topic.ends_with("deleted")).map(|(_, event)| &event["before"]["name"]).collect();
        assert_eq!(deleted.len(), 2);
        assert!(deleted.contains(&&json!("boss")) && deleted.contains(&&json!("other")));
        assert_eq!(topics("team").await, ["data.team.created", "data.team.deleted"]);
    }

    async fn a_deletion_tells_of_each_link_that_goes(server: Server) {
        let admin = server.admin().await;
        for object in ["team", "member", "tag"] {
            admin.define(object, json!([{ "name": "name", "type": "text" }])).await;
        }
        admin.relate(json!({ "name": "team", "kind": "many_to_one", "source": "member", "target": "team", "onDelete": "cascade" })).await;
        admin.relate(json!({ "name": "tags", "kind": "many_to_many", "source": "member", "target": "tag" })).await;
        admin.relate(json!({ "name": "friends", "kind": "many_to_many", "source": "member", "target": "member" })).await;
        let team = admin.make("team", json!({ "name": "t" })).await;
        let (mut members, mut tags) = (Vec::new(), Vec::new());
        for number in 0..5 {
            members.push(admin.make("member", json!({ "name": format!("m{number}"), "team_id": if number < 2 { Some(&team) } else { None } })).await);
            tags.push(admin.make("tag", json!({ "name": format!("g{number}") })).await);
        }
        let link = async |object: &str, id: &str, relation: &str, ids: Vec<&String>| {
            let path = format!("/api/v1/data/{object}/{id}/links/{relation}");
            assert_eq!(admin.post(&path, json!({ "ids": ids })).await.data()["added"], ids.len());
        };
        for member in &members {
            link("member", member, "tags", tags.iter().collect()).await;
        }
        link("member", &members[0], "friends", vec![&members[1], &members[2]]).await;
        link("member", &members[3], "friends", vec![&members[0], &members[2], &members[4]]).await;
        let unlinked = async |object: &str| -> Vec<(String, String, Value)> {
            let events = admin.outbox(object).await.into_iter().filter(|(topic, _)| topic.ends_with(".unlinked"));
            let shown = |event: &Value| {
                let text = |key: &str| event[key].as_str().unwrap().to_owned();
                (text("id"), format!("{} {}", text("relationship"), text("targetObject")), event["targetIds"].clone())
            };
            events.map(|(_, event)| shown(&event)).collect()
        };
        let order = async |object: &str, id: &str| -> Vec<String> {
            let events = admin.outbox(object).await.into_iter().filter(|(_, event)| event["id"] == id);
            events.map(|(topic, _)| topic.rsplit('.').next().unwrap().to_owned()).collect()
        };

        // The event names the deleted record, and all records that were linked with it.
        assert_eq!(admin.delete(&format!("/api/v1/data/tag/{}", tags[0])).await.status, 204);
        assert_eq!(unlinked("tag").await, [(tags[0].clone(), "tags member".to_owned(), json!(members))]);
        assert_eq!(unlinked("member").await, []);
        assert_eq!(order("tag", &tags[0]).await, ["created", "unlinked", "deleted"]);
        let event = admin.outbox("tag").await.into_iter().find(|(topic, _)| topic == "data.tag.unlinked").unwrap().1;
        assert_eq!((&event["object"], &event["op"], &event["actor"]["via"]), (&json!("tag"), &json!("unlinked"), &json!("session")));

        // If one call deletes several records, each has one event. An id that does not exist has no event.
        let nobody = "01890000-0000-7000-8000-000000000000";
        let gone = admin.delete_with("/api/v1/data/tag/bulk", json!({ "ids": [tags[2], nobody, tags[1]] })).await;
        assert_eq!(gone.json()["count"], 2);
        let told = unlinked("tag").await;
        assert_eq!(told[1..], [(tags[1].clone(), "tags member".to_owned(), json!(members)), (tags[2].clone(), "tags member".to_owned(), json!(members))]);

        // A cascade deletes both members of the team. Each link is reported once. The event of a link between a remaining member
        // and a deleted one belongs to the remaining member.
        assert_eq!(admin.delete(&format!("/api/v1/data/team/{team}")).await.status, 204);
        let left = json!([tags[3], tags[4]]);
        assert_eq!(unlinked("member").await, [
            (members[0].clone(), "tags tag".to_owned(), left.clone()),
            (members[1].clone(), "tags tag".to_owned(), left),
            (members[0].clone(), "friends member".to_owned(), json!([members[1], members[2]])),
            (members[3].clone(), "friends member".to_owned(), json!([members[0]])),
        ]);
        assert_eq!(order("member", &members[0]).await, ["created", "linked", "linked", "unlinked", "unlinked", "deleted"]);
        assert_eq!(unlinked("team").await, []);
        // If there are no links, there is no event. A refused deletion emits no event either.
        let lone = admin.make("tag", json!({ "name": "lone" })).await;
        let events = admin.outbox("tag").await.len();
        assert_eq!(admin.delete(&format!("/api/v1/data/tag/{lone}")).await.status, 204);
        assert_eq!(admin.outbox("tag").await.len(), events + 1);
    }

    async fn what_a_dropped_object_takes_along(server: Server) {
        let admin = server.admin().await;
        let name = json!([{ "name": "name", "type": "text" }, { "name": "place", "type": "text" }]);
        for object in ["author", "book"] {
            admin.define(object, name.clone()).await;
        }
        admin.relate(json!({ "name": "writer", "kind": "many_to_one", "source": "book", "target": "author" })).await;
        let groups = json!({ "constraints": { "uniqueTogether": [["name", "writer_id"], ["name", "place"]] }, "indexes": [["writer_id", "name"], ["place", "name"]] });
        assert_eq!(admin.patch("/api/v1/objects/book", groups).await.status, 200);
        let author = admin.make("author", json!({ "name": "a" })).await;
        admin.make("book", json!({ "name": "b", "place": "p", "writer_id": author })).await;
        admin.delete("/api/v1/objects/author").await.expect_error(409, "object_in_use");
        let gone = admin.delete("/api/v1/objects/author?cascade=true").await;
        assert_eq!(gone.status, 204, "{}", gone.text);
        let left = admin.get("/api/v1/objects/book").await.data();
        assert_eq!((&left["constraints"], &left["indexes"]), (&json!({ "uniqueTogether": [["name", "place"]] }), &json!([["place", "name"]])));
        // The other groups still apply, also in the table.
        let twice = admin.post("/api/v1/data/book", json!({ "name": "b", "place": "p" })).await;
        twice.expect_error(409, "unique_violation");
        admin.make("book", json!({ "name": "b", "place": "q" })).await;
        assert_eq!(admin.get("/api/v1/data/book?search=b").await.json()["pagination"]["totalCount"], 2);
    }

    async fn expansion_and_deletion_keep_within_bounds(server: Server) {
        let admin = server.admin().await;
        admin.define("node", json!([{ "name": "name", "type": "text" }])).await;
        admin.relate(json!({ "name": "parent", "kind": "many_to_one", "source": "node", "target": "node", "onDelete": "cascade" })).await;
        let root = admin.make("node", json!({ "name": "root" })).await;
        let children: Vec<Value> = (0..1000).map(|_| json!({ "name": "x".repeat(200), "parent_id": root })).collect();
        assert_eq!(admin.post("/api/v1/data/node/bulk", json!({ "data": children })).await.status, 201);
        // Each of the thousand children with its parent, and each of these parents with all its thousand children.
        let much = admin.get(&format!("/api/v1/data/node/{root}?expand=node_by_parent.parent.node_by_parent")).await;
        assert!(much.expect_error(400, "answer_too_large")["message"].as_str().unwrap().contains("limit"));
        let some = admin.get(&format!("/api/v1/data/node/{root}?expand=node_by_parent.parent")).await.data();
        assert_eq!(some["node_by_parent"].as_array().unwrap().len(), 1000);
        assert_eq!(admin.delete(&format!("/api/v1/data/node/{root}")).await.status, 204);
        assert_eq!(admin.get("/api/v1/data/node").await.json()["pagination"]["totalCount"], 0);

        // A chain that is longer than any database can follow by itself.
        let chain: Vec<Value> = (0..1000).map(|number| json!({ "name": format!("link {number}") })).collect();
        let more: Vec<Value> = (1000..1300).map(|number| json!({ "name": format!("link {number}") })).collect();
        let mut ids: Vec<String> = Vec::new();
        for part in [chain, more] {
            let made = admin.post("/api/v1/data/node/bulk", json!({ "data": part })).await;
            ids.extend(serde_json::from_value::<Vec<String>>(made.json()["ids"].clone()).unwrap());
        }
        let patches = ids.windows(2).map(|pair| (format!("/api/v1/data/node/{}", pair[1]), json!({ "parent_id": pair[0] })));
        for (path, body) in patches {
            assert_eq!(admin.patch(&path, body).await.status, 200);
        }
        let deleted = admin.delete(&format!("/api/v1/data/node/{}", ids[0])).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text);
        assert_eq!(admin.get("/api/v1/data/node").await.json()["pagination"]["totalCount"], 0);
        let gone = admin.outbox("node").await.iter().filter(|(topic, _)| topic.ends_with("deleted")).count();
        assert_eq!(gone, 1001 + 1300);
    }

    async fn names_that_engines_use_are_only_names(server: Server) {
        let admin = server.admin().await;
        for object in ["item", "new", "svc", "source", "texts"] {
            let tags = |name: &str| json!({ "name": name, "type": "multi_enum", "options": ["a", "b"] });
            let fields = json!([tags("value"), tags("key"), tags("type"), { "name": "id_text", "type": "integer" }, { "name": "order", "type": "text", "isUnique": true }]);
            admin.define(object, fields).await;
            let id = admin.make(object, json!({ "value": ["a"], "key": ["b"], "id_text": 7, "order": "x y z" })).await;
            for query in ["value=a", "key%5Bneq%5D=a", "type%5Bnin%5D=a", "search=x+y", "search=b", "order%5Bilike%5D=Y+Z", "value%5Bin%5D=a,b"] {
                let found = admin.get(&format!("/api/v1/data/{object}?{query}")).await;
                assert_eq!(found.json()["pagination"]["totalCount"], 1, "{object} {query}: {}", found.text);
            }
            assert_eq!(admin.post(&format!("/api/v1/data/{object}?on_conflict=order"), json!({ "order": "x y z" })).await.status, 200);
            let altered = admin.patch(&format!("/api/v1/objects/{object}/fields/id_text"), json!({ "type": "text" })).await;
            assert_eq!(altered.status, 200, "{}", altered.text);
            assert_eq!(admin.get(&format!("/api/v1/data/{object}/{id}")).await.data()["id_text"], "7");
        }
        admin.post("/api/v1/objects", json!({ "name": "excluded" })).await.expect_error(400, "invalid_schema");
        for groups in [json!({ "constraints": { "uniqueTogether": [["order", "id_text"], ["order", "id_text"]] } }), json!({ "indexes": [["order"], ["order"]] })] {
            admin.patch("/api/v1/objects/item", groups).await.expect_error(400, "invalid_schema");
        }
    }

    async fn relationships_are_checked_when_they_are_made(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let make = async |definition: Value| admin.post("/api/v1/relationships", definition).await;
        let base = json!({ "name": "x", "kind": "many_to_one", "source": "post", "target": "tag" });
        let with = |changes: Value| {
            let mut definition = base.clone();
            for (key, value) in changes.as_object().unwrap() {
                definition[key] = value.clone();
            }
            definition
        };
        for (changes, word) in [
            (json!({ "name": "name" }), "name"),
            (json!({ "name": "author" }), "author_id"),
            (json!({ "name": "tags" }), "tags"),
            (json!({ "name": "Bad" }), "Bad"),
            (json!({ "name": "svc_x" }), "svc_"),
            (json!({ "source": "nothing" }), "nothing"),
            (json!({ "kind": "many_to_few" }), "many_to_few"),
            (json!({ "onDelete": "explode" }), "explode"),
            (json!({ "required": true, "onDelete": "set_null" }), "set_null"),
            (json!({ "kind": "many_to_many", "required": true }), "required"),
            (json!({ "colour": 1 }), "colour"),
        ] {
            let refused = make(with(changes)).await.expect_error(400, "invalid_schema");
            assert!(refused["message"].as_str().unwrap().contains(word), "{word}: {refused}");
        }
        // A reverse key that would be the name of an object in GraphQL, and a field with the name of a relation key.
        let field = admin.post("/api/v1/objects/person/fields", json!({ "name": "post_by_author", "type": "text" })).await;
        assert!(field.expect_error(400, "invalid_schema")["message"].as_str().unwrap().contains("post_by_author"));
        admin.post("/api/v1/objects/post/fields", json!({ "name": "author_id", "type": "text" })).await.expect_error(400, "invalid_schema");
        admin.post("/api/v1/objects", json!({ "name": "post_by_id" })).await.expect_error(400, "invalid_schema");

        admin.make("post", json!({ "name": "p" })).await;
        let required = make(with(json!({ "required": true }))).await.expect_error(400, "invalid_schema_change");
        assert!(required["message"].as_str().unwrap().contains("(1)"), "{required}");
        let made = make(base.clone()).await;
        assert_eq!((made.status, &made.json()["data"]["onDelete"]), (201, &json!("restrict")));
        let id = made.json()["data"]["id"].clone();
        assert_eq!(admin.get("/api/v1/relationships").await.data().as_array().unwrap().len(), 6);
        assert_eq!(admin.get("/api/v1/schema").await.data()["relationships"][5], made.json()["data"]);
        assert_eq!(admin.delete(&format!("/api/v1/relationships/{id}")).await.status, 204);
        admin.delete(&format!("/api/v1/relationships/{id}")).await.expect_error(404, "not_found");
        admin.delete("/api/v1/relationships/x").await.expect_error(404, "not_found");
        admin.get("/api/v1/data/post?x_id=null").await.expect_error(400, "unknown_field");
        assert_eq!(admin.get("/api/v1/data/post").await.json()["pagination"]["totalCount"], 1);
    }

    async fn an_object_in_use_goes_with_its_relationships_alone(server: Server) {
        let admin = server.admin().await;
        blog(&admin).await;
        let tag = admin.make("tag", json!({ "name": "t" })).await;
        let post = admin.make("post", json!({ "name": "p" })).await;
        admin.post(&format!("/api/v1/data/post/{post}/links/tags"), json!({ "ids": [tag] })).await.data();
        for object in ["person", "tag", "comment", "post"] {
            let refused = admin.delete(&format!("/api/v1/objects/{object}")).await.expect_error(409, "object_in_use");
            assert!(refused["message"].as_str().unwrap().contains("cascade"), "{refused}");
        }
        // The object refers to other objects, but no object refers to it.
        assert_eq!(admin.delete("/api/v1/objects/card").await.status, 204);
        assert_eq!(admin.delete("/api/v1/objects/person?cascade=true").await.status, 204);
        let post = admin.get(&format!("/api/v1/data/post/{post}?expand=author,tags")).await.data();
        assert!(post.get("author_id").is_none() && post.get("author").is_none());
        assert_eq!(names(&post["tags"]), ["t"]);
        let schema = admin.get("/api/v1/schema").await.data();
        let left: Vec<&str> = schema["relationships"].as_array().unwrap().iter().map(|relationship| relationship["name"].as_str().unwrap()).collect();
        assert_eq!(left, ["comments", "tags"]);
        admin.post("/api/v1/data/post", json!({ "name": "q" })).await.data();
    }
}

/// A server whose new users may do everything with `post`, `note` and `tag`. They see only their own rows of `note`, and nothing of
/// `secret`.
async fn with_members(engine: Engine) -> Server {
    let server = ServerBuilder::new(engine).env("SVC_SIGNUP_ROLE", "member").start().await;
    let grants = json!([
        { "resource": "post", "actions": ["create", "read", "update", "delete"] },
        { "resource": "note", "actions": ["create", "read", "update", "delete"], "rowPolicy": "own" },
    ]);
    server.sql(&format!("INSERT INTO svc_roles VALUES ('r-member', 'member', NULL, '{grants}', 0, 0)")).await;
    server
}

async fn hidden_rows_stay_hidden(engine: Engine) {
    let server = with_members(engine).await;
    let admin = server.admin().await;
    for object in ["post", "note", "secret"] {
        admin.define(object, json!([{ "name": "name", "type": "text" }])).await;
    }
    admin.relate(json!({ "name": "note", "kind": "many_to_one", "source": "post", "target": "note" })).await;
    admin.relate(json!({ "name": "notes", "kind": "many_to_many", "source": "post", "target": "note" })).await;
    admin.relate(json!({ "name": "secret", "kind": "many_to_one", "source": "post", "target": "secret" })).await;
    let member = server.with_token(server.sign_up("member").await);
    let theirs = admin.make("note", json!({ "name": "theirs" })).await;
    let mine = member.make("note", json!({ "name": "mine" })).await;
    let post = admin.make("post", json!({ "name": "p", "note_id": theirs })).await;
    admin.post(&format!("/api/v1/data/post/{post}/links/notes"), json!({ "ids": [theirs, mine] })).await.data();

    let seen = member.get(&format!("/api/v1/data/post/{post}?expand=note,notes")).await.data();
    assert_eq!(seen["note"], Value::Null);
    assert_eq!(names(&seen["notes"]), ["mine"]);
    member.get(&format!("/api/v1/data/post/{post}?expand=secret")).await.expect_error(403, "forbidden");
    member.get("/api/v1/data/post?expand=note.post_by_note.secret").await.expect_error(403, "forbidden");
    // The record shows its `secret_id`, but not the record that it refers to. If callers may not know of an object, they do not
    // see which of its records refer to this record or are linked with it.
    admin.define("audit", json!([{ "name": "name", "type": "text" }])).await;
    admin.relate(json!({ "name": "subject", "kind": "many_to_one", "source": "post", "target": "audit" })).await;
    admin.relate(json!({ "name": "post", "kind": "many_to_one", "source": "audit", "target": "post" })).await;
    admin.relate(json!({ "name": "audits", "kind": "many_to_many", "source": "post", "target": "audit" })).await;
    let refused = member.get("/api/v1/data/post?expand=subject").await;
    refused.expect_error(403, "forbidden");
    assert!(!refused.text.contains("audit"), "{}", refused.text);
    for path in [format!("/api/v1/data/post/{post}"), "/api/v1/data/post".to_owned()] {
        let of = async |who: &Admin<'_>, key: &str| {
            let answer = who.get(&format!("{path}?expand={key}")).await;
            assert_eq!(answer.status, 200, "{key}: {}", answer.text);
            answer.text.replace(key, "KEY")
        };
        for key in ["audit_by_post", "audits"] {
            assert_eq!(of(&member, key).await, of(&member, "nothing").await, "{key}");
        }
        let below = async |key: &str| of(&member, &format!("note.post_by_note.{key}")).await.replace(key, "LAST");
        assert_eq!(below("audit_by_post").await, below("nothing").await);
        // Callers who may read `objects` know the object.
        let reader = json!([{ "resource": "post", "actions": ["read"] }, { "resource": "objects", "actions": ["read"] }]);
        let role = if path.ends_with("post") { "readers of lists" } else { "readers" };
        assert_eq!(admin.post("/api/v1/roles", json!({ "name": role, "permissions": reader })).await.status, 201);
        let made = admin.post("/api/v1/api-keys", json!({ "name": role, "roleId": role })).await;
        let reader = server.with_token(made.json()["key"].as_str().unwrap().to_owned());
        reader.get(&format!("{path}?expand=audit_by_post")).await.expect_error(403, "forbidden");
    }
    server.call("GET", "/api/v1/data/post?expand=secret", None).await.expect_error(401, "unauthorized");
    let links = format!("/api/v1/data/post/{post}/links/notes");
    member.post(&links, json!({ "ids": [theirs] })).await.expect_error(409, "foreign_key_violation");
    assert_eq!(member.delete_with(&links, json!({ "ids": [theirs, mine] })).await.data(), json!({ "removed": 1 }));
    // No write can refer to a row that the caller may not read. Nor can it refer to any row of an object that the caller may not read at
    // all.
    let hidden = admin.make("secret", json!({ "name": "s" })).await;
    let mut refused = Vec::new();
    for reference in [
        json!({ "note_id": theirs }),
        json!({ "secret_id": hidden }),
        json!({ "note_id": "01890000-0000-7000-8000-000000000000" }),
    ] {
        refused.push(member.post("/api/v1/data/post", reference.clone()).await);
        refused.push(member.patch(&format!("/api/v1/data/post/{post}"), reference.clone()).await);
        refused.push(member.post("/api/v1/data/post/bulk", json!({ "data": [reference.clone()] })).await);
        let mut upsert = reference;
        upsert["id"] = json!(post);
        refused.push(member.post("/api/v1/data/post?on_conflict=id", upsert).await);
    }
    for answer in refused {
        let error = answer.expect_error(409, "foreign_key_violation");
        assert!(!error["message"].as_str().unwrap().contains("`secret`"), "{error}");
    }
    assert_eq!(member.patch(&format!("/api/v1/data/post/{post}"), json!({ "note_id": mine })).await.status, 200);
    member.patch(&format!("/api/v1/data/note/{theirs}"), json!({ "name": "x" })).await.expect_error(404, "not_found");
    member
        .post(&format!("/api/v1/data/note/{theirs}/links/notes"), json!({ "ids": [post] }))
        .await
        .expect_error(404, "not_found");
    let aggregate = member.get("/api/v1/data/note/aggregate?fn=count").await.data();
    assert_eq!(aggregate["value"], 1);
    member.patch(&format!("/api/v1/data/post/{post}"), json!({ "note_id": null })).await.data();
    let gone = member.delete_with("/api/v1/data/note/bulk", json!({ "ids": [theirs, mine] })).await.json();
    assert_eq!(gone, json!({ "count": 1, "ids": [mine] }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_rows_stay_hidden_on_sqlite() {
    hidden_rows_stay_hidden(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_rows_stay_hidden_on_postgres() {
    hidden_rows_stay_hidden(Engine::Postgres).await;
}
