//! Rows of the audit log on both engines: they are counted, and replaced in steps.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::sync::Arc;

use blockbase_schema::Result;
use blockbase_store::{AuditFilter, AuditRow, Connection, REPLACED, Service, Store};
use blockbase_tests::on_both_engines;
use futures_util::future::BoxFuture;

use crate::support::store;

/// Runs one transaction.
async fn write<T, F>(store: &Store, body: F) -> T
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
{
    store.write(Service, body).await.unwrap()
}

/// An act of a user on another one. `counted` is the key of a failed sign-in to the account of that one.
fn row(id: &str, actor: &str, subject: &str, counted: Option<&str>) -> AuditRow {
    AuditRow {
        id: id.to_owned(),
        at: 1,
        actor: actor.to_owned(),
        credential: None,
        address: Some("192.0.2.1".to_owned()),
        action: "update".to_owned(),
        resource: "users".to_owned(),
        target: Some(subject.to_owned()),
        before: None,
        after: Some(format!(r#"{{"name":"{subject}","email":"{subject}@example.com"}}"#)),
        request_id: None,
        subject: Some(subject.to_owned()),
        counted: counted.map(str::to_owned),
        times: 1,
    }
}

/// All rows, by their ids.
async fn rows(store: &Store) -> Vec<AuditRow> {
    let filter = AuditFilter::default();
    let (mut rows, _) =
        write(store, move |connection| Box::pin(async move { Ok(connection.audit(&filter, 100, 0).await?) })).await;
    rows.sort_by(|one, other| one.id.cmp(&other.id));
    rows
}

async fn insert(store: &Store, rows: Vec<AuditRow>) {
    write(store, move |connection| {
        Box::pin(async move {
            for row in rows {
                connection.insert_audit(row).await?;
            }
            Ok(())
        })
    })
    .await;
}

on_both_engines! {
    async fn a_row_with_a_known_key_is_counted(engine: Engine) {
        let (store, _place) = store(engine, Arc::new(|_| ())).await;
        let counted = |id: &str, key: &str| row(id, "anonymous", "ann", Some(key));
        insert(&store, vec![counted("1", "a minute"), counted("2", "a minute"), counted("3", "another minute")]).await;
        insert(&store, vec![counted("4", "a minute")]).await;
        insert(&store, ["5", "6"].map(|id| row(id, "anonymous", "ann", None)).into()).await;
        let times: Vec<(String, i64)> = rows(&store).await.into_iter().map(|row| (row.id, row.times)).collect();
        let wanted = [("1", 3), ("3", 1), ("5", 1), ("6", 1)].map(|(id, times)| (id.to_owned(), times));
        assert_eq!(times, wanted);
        store.close().await;
    }

    async fn texts_about_a_user_are_replaced_in_steps(engine: Engine) {
        let (store, _place) = store(engine, Arc::new(|_| ())).await;
        let acts = ["1", "2", "3"].map(|id| row(id, "user:ann", "bob", None));
        let failed = ["4", "5", "6"].map(|id| row(id, "anonymous", "ann", Some(id)));
        insert(&store, acts.into_iter().chain(failed).chain([row("7", "user:bob", "ann", None)]).collect()).await;

        let replaced = write(&store, |connection| {
            Box::pin(async move {
                let mut replaced = Vec::new();
                for _ in 0..3 {
                    replaced.push(connection.replace_audit_addresses("user:ann", 2).await?);
                    replaced.push(connection.replace_audit_counted("ann", 2).await?);
                }
                Ok(replaced)
            })
        });
        assert_eq!(replaced.await, [2, 2, 1, 1, 0, 0]);
        let about = write(&store, |connection| Box::pin(async move { Ok(connection.audit_about("ann", 10).await?) })).await;
        assert_eq!(about.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["7"]);
        write(&store, |connection| {
            Box::pin(async move { Ok(connection.forget_audit_states("7", None, Some("{}".to_owned())).await?) })
        })
        .await;
        let about = write(&store, |connection| Box::pin(async move { Ok(connection.audit_about("ann", 10).await?) })).await;
        assert!(about.is_empty(), "{about:?}");
        for row in rows(&store).await {
            let is_replaced = row.id != "7";
            assert_eq!(row.address.as_deref(), Some(if is_replaced { REPLACED } else { "192.0.2.1" }), "{row:?}");
            assert_eq!((row.counted.is_none(), row.subject.as_deref() == Some("ann")), (true, false), "{row:?}");
        }
        store.close().await;
    }

    async fn a_text_is_found_in_pages(engine: Engine) {
        let (store, _place) = store(engine, Arc::new(|_| ())).await;
        insert(&store, ["1", "2", "3"].map(|id| row(id, "service", if id == "2" { "ann" } else { "bob" }, None)).into()).await;
        let (ends, found) = write(&store, |connection| {
            Box::pin(async move {
                let (mut ends, mut found, mut after) = (Vec::new(), Vec::new(), String::new());
                while let Some(end) = connection.audit_page_end(&after, 2).await? {
                    let rows = connection.audit_containing("Ann@Example.com", &after, &end).await?;
                    found.extend(rows.into_iter().map(|row| row.id));
                    ends.push(end.clone());
                    after = end;
                }
                Ok((ends, found))
            })
        })
        .await;
        assert_eq!((ends, found), (vec!["2".to_owned(), "3".to_owned()], vec!["2".to_owned()]));
        store.close().await;
    }
}
