//! Cursors while fields of the sort change, and while records move in the order of the list.

use blockbase_tests::{Admin, on_both_engines};
use serde_json::{Value, json};

use super::{RECORDS, backward, define, fill, forward, listed, page};
use crate::accounts::roles::user;

/// The field of the error of a list that is refused.
async fn refused(who: &Admin<'_>, query: &str, code: &str) -> Value {
    who.get(&format!("/api/v1/data/thing?{query}")).await.expect_error(400, code)["field"].clone()
}

on_both_engines! {
    async fn a_cursor_follows_the_fields_of_its_sort(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let expected = listed(&admin, "thing", "sort=rank,-level").await;
        let sorted = page(&admin, "thing", "sort=rank,-level&cursor=&limit=6").await;
        let filtered = page(&admin, "thing", "sort=rank&level=1&cursor=&limit=3").await;
        let (after, after_filtered) =
            (format!("after={}", sorted.cursor("endCursor")), format!("after={}", filtered.cursor("endCursor")));
        let field = "/api/v1/objects/thing/fields/level";
        assert_eq!(admin.patch(field, json!({ "name": "grade" })).await.status, 200);
        // The cursor knows the field, and not its name.
        let next = page(&admin, "thing", &format!("sort=rank,-grade&limit=100&{after}")).await;
        assert_eq!((&next.ids[..], next.is("hasPreviousPage")), (&expected[6..], true));
        let previous = page(&admin, "thing", &format!("sort=rank,-grade&limit=3&before={}", next.cursor("startCursor"))).await;
        assert_eq!(previous.ids, expected[3..6]);
        assert_eq!(refused(&admin, &format!("sort=rank,-level&{after}"), "unknown_field").await, "level");
        // Conditions count as they are spelled.
        assert_eq!(refused(&admin, &format!("sort=rank&grade=1&{after_filtered}"), "invalid_request").await, "after");
        assert_eq!(refused(&admin, &format!("sort=rank&level=1&{after_filtered}"), "unknown_field").await, "level");
        // Another field that has the name now is not the field of the cursor.
        let made = admin.post("/api/v1/objects/thing/fields", json!({ "name": "level", "type": "integer" })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert_eq!(refused(&admin, &format!("sort=rank,-level&{after}"), "invalid_request").await, "after");
        assert_eq!(page(&admin, "thing", &format!("sort=rank,-grade&limit=100&{after}")).await.ids, next.ids);

        assert_eq!(admin.delete("/api/v1/objects/thing/fields/grade").await.status, 204);
        assert_eq!(refused(&admin, &format!("sort=rank,-grade&{after}"), "unknown_field").await, "grade");
        for sort in ["", "rank", "rank,-level"] {
            assert_eq!(refused(&admin, &format!("sort={sort}&{after}"), "invalid_request").await, "after", "{sort}");
        }
        let again = admin.post("/api/v1/objects/thing/fields", json!({ "name": "grade", "type": "integer", "indexed": true })).await;
        assert_eq!(again.status, 201, "{}", again.text);
        assert_eq!(refused(&admin, &format!("sort=rank,-grade&{after}"), "invalid_request").await, "after");
    }

    async fn a_field_of_the_sort_may_get_and_lose_rules(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let cursor = page(&admin, "thing", "sort=-level,title&cursor=&limit=6").await.cursor("endCursor");
        let query = format!("sort=-level,title&limit=100&after={cursor}");
        let rest = page(&admin, "thing", &query).await.ids;
        assert_eq!(rest.len(), RECORDS - 6);
        // The statements differ, because the field can have nulls, and then has no index. The rows are the same.
        for rules in [json!({ "required": false }), json!({ "indexed": false }), json!({ "max": 2 }), json!({ "required": true, "indexed": true })] {
            let changed = admin.patch("/api/v1/objects/thing/fields/level", rules.clone()).await;
            assert_eq!(changed.status, 200, "{rules}: {}", changed.text);
            assert_eq!(page(&admin, "thing", &query).await.ids, rest, "{rules}");
        }
    }

    async fn records_that_move_do_not_take_others_along(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        // Values at the beginning and at the end of each order. Ascending, nulls come last.
        for (sort, field, first, last) in [
            ("rank", "rank", json!(-7), Value::Null),
            ("-rank", "rank", Value::Null, json!(-8)),
            ("title,-level", "title", json!("!"), Value::Null),
            ("-at", "at", Value::Null, json!("1900-01-01T00:00:00.000Z")),
        ] {
            for is_forward in [true, false] {
                let before = listed(&admin, "thing", &format!("sort={sort}")).await;
                let (read_goes_to, unread_goes_to) = if is_forward { (&last, &first) } else { (&first, &last) };
                let (mut seen, mut moved): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
                let mut cursor = if is_forward { "cursor=" } else { "before=" }.to_owned();
                loop {
                    let page = page(&admin, "thing", &format!("sort={sort}&pageSize=6&{cursor}")).await;
                    seen.extend(if is_forward { page.ids.clone() } else { page.ids.iter().rev().cloned().collect() });
                    if !page.is(if is_forward { "hasNextPage" } else { "hasPreviousPage" }) {
                        break;
                    }
                    // The record at the cursor moves to where no page was yet, and so does one in front of it. The next two records
                    // move to where the pages have been.
                    let read: Vec<String> = seen.iter().rev().step_by(2).take(2).cloned().collect();
                    let mut unread: Vec<String> = before.iter().filter(|id| !seen.contains(id) && !moved.contains(id)).cloned().collect();
                    if !is_forward {
                        unread.reverse();
                    }
                    let read = read.into_iter().map(|id| (id, read_goes_to));
                    for (id, value) in read.chain(unread.into_iter().take(2).map(|id| (id, unread_goes_to))) {
                        if !moved.contains(&id) {
                            let answer = admin.patch(&format!("/api/v1/data/thing/{id}"), json!({ field: value })).await;
                            assert_eq!(answer.status, 200, "{}", answer.text);
                            moved.push(id);
                        }
                    }
                    let name = if is_forward { ("after", "endCursor") } else { ("before", "startCursor") };
                    cursor = format!("{}={}", name.0, page.cursor(name.1));
                }
                let mut stayed: Vec<String> = before.into_iter().filter(|id| !moved.contains(id)).collect();
                if !is_forward {
                    stayed.reverse();
                }
                assert!(moved.len() >= 10 && stayed.len() >= 10, "{} of {}", moved.len(), stayed.len());
                seen.retain(|id| stayed.contains(id));
                assert_eq!(seen, stayed, "{sort} {is_forward}");
            }
        }
    }

    async fn users_have_pages_too(server: Server) {
        let admin = server.admin().await;
        for name in ["ann", "ben", "cem", "dua", "eva"] {
            user(&admin, name, None).await;
        }
        for sort in ["", "-id", "name", "-email", "image,-name"] {
            let query = format!("sort={sort}");
            let expected = listed(&admin, "users", &query).await;
            assert_eq!(expected.len(), 6, "{sort}");
            assert_eq!(forward(&admin, "users", &query, 2).await, expected, "{sort}");
            assert_eq!(backward(&admin, "users", &query, 4).await, expected, "{sort}");
        }
    }
}
