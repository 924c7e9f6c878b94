//! Cursors that were changed, or that belong to another caller or to another list.

use blockbase_tests::{Admin, Server, ServerBuilder, on_both_engines};
use serde_json::json;

use super::{define, encoded, fill, page};
use crate::accounts::roles::{key, role, user};

/// The conditions of the lists of these tests.
const SORT: &str = "sort=rank,-level";

/// A list may not begin at a cursor, neither after it nor before it.
async fn refused(who: &Admin<'_>, object: &str, query: &str, cursor: &str) {
    for parameter in ["after", "before"] {
        let answer = who.get(&format!("/api/v1/data/{object}?{query}&{parameter}={cursor}")).await;
        assert_eq!(answer.expect_error(400, "invalid_request")["field"], parameter, "{query}");
        // The message contains nothing of the cursor.
        assert!(cursor.len() < 4 || !answer.text.contains(cursor), "{}", answer.text);
    }
}

async fn accepted(who: &Admin<'_>, object: &str, query: &str, cursor: &str) {
    for parameter in ["after", "before"] {
        page(who, object, &format!("{query}&{parameter}={cursor}")).await;
    }
}

async fn cursor_of(who: &Admin<'_>, object: &str, query: &str) -> String {
    page(who, object, &format!("{query}&cursor=&limit=3")).await.cursor("endCursor")
}

/// A list of things as somebody from an address. Returns the status and the cursor at its end.
async fn from(server: &Server, credential: Option<&str>, address: &str, query: &str) -> (u16, String) {
    let request = server.request("GET", &format!("/api/v1/data/thing?{SORT}&limit=3&{query}")).header("x-forwarded-for", address);
    let request = match credential {
        Some(credential) => request.bearer_auth(credential),
        None => request,
    };
    let answer = server.send(request).await;
    if answer.status != 200 {
        assert_eq!(answer.expect_error(400, "invalid_request")["field"], "after");
        return (answer.status, String::new());
    }
    (answer.status, answer.json()["pagination"]["endCursor"].as_str().unwrap().to_owned())
}

on_both_engines! {
    async fn a_cursor_belongs_to_one_list(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let fields = json!([{ "name": "rank", "type": "integer" }, { "name": "level", "type": "integer" }, { "name": "name", "type": "text" }]);
        admin.define("other", fields).await;
        let condition = encoded(r#"{"price":{"is_not_null":true},"level":{"lte":1}}"#);
        let query = format!("{SORT}&level=1&name[neq]=x&search=name&where={condition}");
        let cursor = cursor_of(&admin, "thing", &query).await;
        accepted(&admin, "thing", &query, &cursor).await;
        // The rest of the request may differ, and so may the order of the filters, and the spaces and members of the condition.
        let spaced = encoded(r#"{ "level": { "lte": 1 }, "price": { "is_not_null": true } }"#);
        let same = format!("name[neq]=x&level=1&where={spaced}&q=name&{SORT}&select=name&expand=shelf&limit=2&count=exact");
        accepted(&admin, "thing", &same, &cursor).await;
        let others = [
            query.replace(SORT, "sort=rank,level"),
            query.replace(SORT, "sort=rank"),
            query.replace(SORT, "sort=level,-rank"),
            query.replace(SORT, ""),
            query.replace("level=1", "level=0"),
            query.replace("level=1", "level[eq]=2"),
            query.replace("level=1&", ""),
            query.replace("name[neq]", "name[eq]"),
            query.replace("search=name", "search=nam"),
            query.replace("search=name", ""),
            query.replace(&condition, &encoded(r#"{"price":{"is_not_null":true},"level":{"lte":2}}"#)),
            query.replace(&format!("&where={condition}"), ""),
            format!("{query}&done=true"),
        ];
        for other in others {
            refused(&admin, "thing", &other, &cursor).await;
        }
        let short = cursor_of(&admin, "thing", SORT).await;
        refused(&admin, "other", SORT, &short).await;
        // The same values in another object.
        for rank in 0..5 {
            admin.make("other", json!({ "rank": rank, "level": 1 })).await;
        }
        refused(&admin, "thing", SORT, &cursor_of(&admin, "other", SORT).await).await;
        // A column whose type has changed.
        let typed = cursor_of(&admin, "other", "sort=rank").await;
        accepted(&admin, "other", "sort=rank", &typed).await;
        let changed = admin.patch("/api/v1/objects/other/fields/rank", json!({ "type": "text" })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        refused(&admin, "other", "sort=rank", &typed).await;
    }

    async fn a_changed_cursor_is_refused(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let cursor = cursor_of(&admin, "thing", SORT).await;
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{cursor}");
        // Two cursors of one record differ, and neither shows a value.
        assert_ne!(cursor_of(&admin, "thing", SORT).await, cursor);
        for place in (0..cursor.len()).step_by(7) {
            let mut changed = cursor.clone();
            let other = if &cursor[place..=place] == "A" { "B" } else { "A" };
            changed.replace_range(place..=place, other);
            refused(&admin, "thing", SORT, &changed).await;
        }
        let longer = format!("{cursor}AAAA");
        for other in [&cursor[1..], &cursor[..cursor.len() - 1], &longer, "x", "null", "%F0%9F%98%80", "W10", &"A".repeat(44_000)] {
            refused(&admin, "thing", SORT, other).await;
        }
        let body = json!({ "sort": "rank,-level", "after": "A".repeat(1_000_000) });
        assert_eq!(admin.post("/api/v1/data/thing/query", body).await.expect_error(400, "invalid_request")["field"], "after");
        accepted(&admin, "thing", SORT, &cursor).await;
    }

    async fn a_page_has_a_number_or_a_cursor(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let cursor = cursor_of(&admin, "thing", "").await;
        let field = async |query: &str| {
            let answer = admin.get(&format!("/api/v1/data/thing?{query}")).await;
            answer.expect_error(400, "invalid_request")["field"].as_str().unwrap_or_default().to_owned()
        };
        for by_cursor in ["cursor=".to_owned(), "before=".to_owned(), format!("after={cursor}")] {
            assert_eq!(field(&format!("{by_cursor}&page=1")).await, "page");
            assert_eq!(field(&format!("{by_cursor}&page=2&limit=3")).await, "page");
            assert_eq!(field(&format!("{by_cursor}&offset=0")).await, "offset");
        }
        assert_eq!(field(&format!("cursor={cursor}")).await, "cursor");
        assert_eq!(field("cursor=&cursor=").await, "cursor");
        assert_eq!(field(&format!("after={cursor}&after={cursor}")).await, "after");
        for body in [json!({ "cursor": true, "page": 1 }), json!({ "after": cursor, "page": 1 })] {
            let refused = admin.post("/api/v1/data/thing/query", body).await;
            assert_eq!(refused.expect_error(400, "invalid_request")["field"], "page");
        }
        for body in [json!({ "cursor": "" }), json!({ "after": 7 }), json!({ "cursors": true })] {
            admin.post("/api/v1/data/thing/query", body).await.expect_error(400, "invalid_request");
        }
        let switched_on = admin.post("/api/v1/data/thing/query", json!({ "cursor": true, "after": null, "limit": 2 })).await.json();
        assert_eq!((switched_on["data"].as_array().unwrap().len(), &switched_on["pagination"]["hasPreviousPage"]), (2, &json!(false)));
        // Exports and aggregates have no such pages.
        for path in ["export?format=csv", "aggregate?fn=count", "aggregate?fn=count&groupBy=level"] {
            for (query, name) in [("after=", "after"), ("before=x", "before"), ("cursor=", "cursor")] {
                let answer = admin.get(&format!("/api/v1/data/thing/{path}&{query}")).await;
                assert_eq!(answer.expect_error(400, "invalid_request")["field"], name, "{path}");
            }
        }
    }

    async fn every_list_has_the_same_maximum_of_sort_fields(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        // The number and the length of the statements of a page by cursors depend on it.
        let sort = |fields: usize| vec!["level"; fields].join(",");
        for path in ["?", "?cursor=&", "/export?format=csv&", "/aggregate?fn=count&groupBy=level&"] {
            let answer = admin.get(&format!("/api/v1/data/thing{path}sort={}", sort(17))).await;
            assert_eq!(answer.expect_error(400, "invalid_request")["field"], "sort", "{path}");
            assert_eq!(admin.get(&format!("/api/v1/data/thing{path}sort={}", sort(16))).await.status, 200, "{path}");
        }
        let refused = admin.post("/api/v1/data/thing/query", json!({ "sort": sort(17) })).await;
        assert_eq!(refused.expect_error(400, "invalid_request")["field"], "sort");
        let keys = |fields: usize| vec![r#"{ field: "level" }"#; fields].join(",");
        for (list, shown) in [("thing", "data { id }"), ("thing_connection", "edges { cursor }"), ("thing_groups", "data")] {
            let groups = if list == "thing_groups" { r#"functions: ["count"], groupBy: ["level"], "# } else { "" };
            let ask = async |fields: usize| {
                let query = format!("{{ {list}({groups} sort: [{}]) {{ {shown} }} }}", keys(fields));
                admin.post("/api/v1/graphql", json!({ "query": query })).await.json()
            };
            let extensions = ask(17).await["errors"][0]["extensions"].clone();
            assert_eq!((&extensions["code"], &extensions["field"]), (&json!("invalid_request"), &json!("sort")), "{list}");
            let answer = ask(16).await;
            assert!(answer["errors"].is_null(), "{answer}");
        }
    }

    async fn json_that_is_written_differently_is_the_same_condition(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let body = |filters: &str, condition: &str, after: &str| {
            format!(r#"{{ "sort": "rank", "limit": 3, "filters": {filters}, "where": {condition}, "after": "{after}" }}"#)
        };
        let ask = async |filters: &str, condition: &str, after: &str| {
            let request = admin.request("POST", "/api/v1/data/thing/query").header("content-type", "application/json");
            server.send(request.body(body(filters, condition, after))).await
        };
        let filters = r#"[{"field":"level","operator":"in","value":[0,1]},{"field":"name","operator":"neq","value":"é"}]"#;
        let condition = concat!(
            r#"{"price":{"gte":-1.50,"lt":9999999999999999.99},"#,
            r#""_or":[{"rank":{"lte":2}},{"rank":{"is_null":true}}]}"#
        );
        let first = ask(filters, condition, "").await;
        assert_eq!(first.status, 200, "{}", first.text);
        let cursor = first.json()["pagination"]["endCursor"].as_str().unwrap().to_owned();
        let expected = ask(filters, condition, &cursor).await.json()["data"].clone();
        assert_eq!(expected.as_array().unwrap().len(), 3, "{expected}");
        let spaced_filters = concat!(
            "[ { \"value\" : \"\\u00e9\", \"field\" : \"name\", \"operator\" : \"neq\" },\n",
            r#"{ "field" : "level", "value" : [ 0 , 1 ], "operator" : "in" } ]"#
        );
        let sorted_condition = concat!(
            r#"{ "_or" : [ { "rank" : { "lte" : 2 } } , { "rank" : { "is_null" : true } } ],"#,
            r#" "price" : { "lt" : 9999999999999999.99 , "gte" : -1.50 } }"#
        );
        let same = [(spaced_filters, condition), (filters, sorted_condition), (spaced_filters, sorted_condition)];
        for (filters, condition) in same {
            let next = ask(filters, condition, &cursor).await;
            assert_eq!(next.status, 200, "{}", next.text);
            assert_eq!(next.json()["data"], expected);
        }
        // Other values are another list, even those that only differ in their last digit.
        let others = [
            (filters.replace("[0,1]", "[1,0,2]"), condition.to_owned()),
            (filters.replace("é", "e"), condition.to_owned()),
            (filters.to_owned(), condition.replace("9.99", "9.98")),
            (filters.to_owned(), condition.replace("_or", "_and")),
        ];
        for (filters, condition) in others {
            let refused = ask(&filters, &condition, &cursor).await;
            assert_eq!(refused.expect_error(400, "invalid_request")["field"], "after", "{filters} {condition}");
        }
    }

    async fn fields_with_the_names_of_the_parameters_keep_their_filters(server: Server) {
        let admin = server.admin().await;
        let fields = json!([{ "name": "after", "type": "integer" }, { "name": "before", "type": "integer" }, { "name": "cursor", "type": "text" }]);
        admin.define("span", fields).await;
        for number in 0..6 {
            admin.make("span", json!({ "after": number % 2, "before": number, "cursor": "x" })).await;
        }
        let found = async |query: &str| admin.get(&format!("/api/v1/data/span?{query}")).await.json()["pagination"]["totalCount"].clone();
        assert_eq!((found("after=1").await, found("after=1&before=3").await, found("cursor=").await), (json!(3), json!(1), json!(0)));
        assert_eq!(found("cursor=x&page=1&sort=-after").await, 6);
        let count = admin.get("/api/v1/data/span/aggregate?fn=count&after=1").await.data();
        assert_eq!(count["value"], 3);
        let groups = admin.get("/api/v1/data/span/aggregate?fn=count&groupBy=after&before=3").await.json();
        assert_eq!(groups["data"], json!([{ "group": { "after": 1 }, "count": 1 }]));
        let exported = admin.get("/api/v1/data/span/export?format=ndjson&after=1&select=id").await;
        assert_eq!(exported.text.lines().count(), 3, "{}", exported.text);
        // The body has no filters of this form.
        let asked = json!({ "filters": [{ "field": "after", "value": 1 }], "sort": "-before", "limit": 2, "after": "" });
        let first = admin.post("/api/v1/data/span/query", asked.clone()).await.json();
        assert_eq!((&first["data"][0]["before"], &first["pagination"]["hasNextPage"]), (&json!(5), &json!(true)));
        let mut next = asked;
        next["after"] = first["pagination"]["endCursor"].clone();
        assert_eq!(admin.post("/api/v1/data/span/query", next).await.data()[0]["before"], 1);
        let many: String = (0..101).map(|_| "&after=1").collect();
        admin.get(&format!("/api/v1/data/span?{many}")).await.expect_error(400, "invalid_request");
    }

    async fn a_cursor_belongs_to_one_caller(server: Server) {
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let reader = role(&admin, "reader", json!([{ "resource": "thing", "actions": ["read"] }])).await;
        let (ann, ann_id) = user(&admin, "ann", Some("reader")).await;
        let (bob, _) = user(&admin, "bob", Some("reader")).await;
        let (by_key, _) = key(&admin, json!({ "name": "one", "roleId": "reader", "userId": ann_id })).await;
        let (by_other_key, _) = key(&admin, json!({ "name": "two", "roleId": "reader", "userId": ann_id })).await;
        let callers = [&ann, &bob, &by_key, &by_other_key, &admin];
        for one in callers {
            let cursor = cursor_of(one, "thing", SORT).await;
            for other in callers {
                match std::ptr::eq(one, other) {
                    true => accepted(other, "thing", SORT, &cursor).await,
                    false => refused(other, "thing", SORT, &cursor).await,
                }
            }
        }
        // A cursor is good in the user's next session, and after a restart.
        let cursor = cursor_of(&ann, "thing", SORT).await;
        assert_eq!(server.call_as(Some(&ann.token), "POST", "/api/auth/sign-out", Some(json!({}))).await.status, 200);
        let body = json!({ "email": "ann@example.com", "password": "correct horse battery" });
        let signed_in = server.call("POST", "/api/auth/sign-in/email", Some(body)).await;
        let token = signed_in.json()["token"].as_str().unwrap().to_owned();
        assert_ne!(token, ann.token);
        accepted(&server.with_token(token.clone()), "thing", SORT, &cursor).await;
        let server = server.restart().await;
        let ann = server.with_token(token);
        accepted(&ann, "thing", SORT, &cursor).await;
        // It gives no right: without the role, there is no list.
        let admin_token = server.call("POST", "/api/auth/sign-in/email", Some(json!({ "email": "admin@example.com", "password": "correct horse battery" })));
        let admin = server.with_token(admin_token.await.json()["token"].as_str().unwrap().to_owned());
        let gone = admin.delete(&format!("/api/v1/users/{ann_id}/roles/{reader}")).await;
        assert!(gone.status < 300, "{}", gone.text);
        ann.get(&format!("/api/v1/data/thing?{SORT}&after={cursor}")).await.expect_error(403, "forbidden");
    }
}

on_both_engines! {
    async fn callers_without_an_account_have_the_cursors_of_their_address(engine: Engine) {
        let server = ServerBuilder::new(engine)
            .env("SVC_ANONYMOUS_AUTH", "true")
            .env("SVC_TRUSTED_PROXIES", "127.0.0.0/8,::1/128")
            .start()
            .await;
        let admin = server.admin().await;
        define(&admin).await;
        fill(&admin).await;
        let grants = json!([{ "resource": "thing", "actions": ["read"] }]);
        for role in ["public", "anonymous"] {
            assert_eq!(admin.patch(&format!("/api/v1/roles/{role}"), json!({ "permissions": grants })).await.status, 200);
        }
        let (status, cursor) = from(&server, None, "192.0.2.1", "cursor=").await;
        assert_eq!(status, 200);
        let after = format!("after={cursor}");
        assert_eq!(from(&server, None, "192.0.2.1", &after).await.0, 200);
        assert_eq!(from(&server, None, "192.0.2.2", &after).await.0, 400);
        assert_eq!(from(&server, Some(&admin.token), "192.0.2.1", &after).await.0, 400);
        // A guest has an account, so their cursors belong to them at any address.
        let guest = async || {
            let request = server.request("POST", "/api/auth/sign-in/anonymous").header("x-forwarded-for", "192.0.2.1");
            let answer = server.send(request).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.json()["token"].as_str().unwrap().to_owned()
        };
        let (one, two) = (guest().await, guest().await);
        assert_eq!(from(&server, Some(&one), "192.0.2.1", &after).await.0, 400);
        let (_, cursor) = from(&server, Some(&one), "192.0.2.1", "cursor=").await;
        let after = format!("after={cursor}");
        assert_eq!(from(&server, Some(&one), "192.0.2.9", &after).await.0, 200);
        assert_eq!(from(&server, Some(&two), "192.0.2.1", &after).await.0, 400);
        assert_eq!(from(&server, None, "192.0.2.1", &after).await.0, 400);
    }
}
