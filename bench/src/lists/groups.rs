//! Groups, each with the statement that a developer who knows the rows would write.

use serde_json::{Value, json};

use super::{OBJECT, Options};
use crate::load::request;
use crate::report::Table;
use crate::run::Engine;
use crate::side::Side;
use crate::turns::{Contender, take};
use crate::workloads::always;

struct Case {
    name: &'static str,
    /// The parameters of the aggregate.
    query: &'static str,
    /// The statement, with `MONTH` for the month of the sale. Its last column is the number of records of a group.
    sql: &'static str,
}

const CASES: [Case; 7] = [
    Case {
        name: "4 groups of a text",
        query: "fn=count,sum:units&groupBy=state",
        sql: "SELECT state, sum(units), count(*) AS n FROM sale GROUP BY state ORDER BY state LIMIT 25",
    },
    Case {
        name: "1,000 groups of an indexed integer",
        query: "fn=count&groupBy=shop",
        sql: "SELECT shop, count(*) AS n FROM sale GROUP BY shop ORDER BY shop LIMIT 25",
    },
    Case {
        name: "the same, the 25 of the largest sum",
        query: "fn=count,sum:units&groupBy=shop&sort=-sum_units,shop",
        sql: "SELECT shop, sum(units) AS s, count(*) AS n FROM sale GROUP BY shop ORDER BY s DESC, shop LIMIT 25",
    },
    Case {
        name: "100,000 groups, the 25 of the largest sum",
        query: "fn=count,sum:units&groupBy=customer&sort=-sum_units,customer",
        sql: "SELECT customer, sum(units) AS s, count(*) AS n FROM sale GROUP BY customer ORDER BY s DESC, customer LIMIT 25",
    },
    Case {
        name: "36 months",
        query: "fn=count,avg:units&groupBy=at:month",
        sql: "SELECT MONTH AS m, avg(units), count(*) AS n FROM sale GROUP BY m ORDER BY m LIMIT 25",
    },
    Case {
        name: "144 groups of state and month",
        query: "fn=count,max:units&groupBy=state,at:month",
        sql: "SELECT state, MONTH AS m, max(units), count(*) AS n FROM sale GROUP BY state, m ORDER BY state, m LIMIT 25",
    },
    Case {
        name: "100,000 groups, having",
        query: r#"fn=count&groupBy=customer&having={"count":{"gte":15}}&sort=-count,customer"#,
        sql: "SELECT customer, count(*) AS n FROM sale GROUP BY customer HAVING count(*) >= 15 ORDER BY n DESC, customer LIMIT 25",
    },
];

/// The statements for an engine.
pub(super) fn statements(engine: Engine) -> Vec<String> {
    let month = match engine {
        Engine::Sqlite => "substr(at, 1, 7)",
        Engine::Postgres => "date_trunc('month', at, 'UTC')",
    };
    CASES.iter().map(|case| case.sql.replace("MONTH", month)).collect()
}

pub(super) async fn measure(options: &Options, side: &Side, base: &Side) -> Table {
    let mut rows = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let query: String = case.query.chars().map(encoded).collect();
        let path = format!("/api/v1/data/{OBJECT}/aggregate?{query}&count=none");
        let floor_path = format!("/{number}");
        agree(side, &path, base, &floor_path).await;
        let mut contenders = [(side, &path), (base, &floor_path)]
            .map(|(side, path)| Contender::new(&side.address, always(side, "GET", path, None)));
        take(&mut contenders, options.connections, options.seconds).await;
        let [ours, floor] = &contenders;
        let p50 = |contender: &Contender| crate::report::grouped(contender.mean().p50_us as f64 / 1000.0);
        let row = vec![case.name.to_owned(), p50(ours), p50(floor), ours.ratio(floor)];
        eprintln!("{row:?}");
        rows.push(row);
    }
    Table { head: vec!["groups", "p50 ms", "floor", "ratio"], rows }
}

/// The characters of JSON are escaped.
fn encoded(character: char) -> String {
    match character {
        '{' | '}' | '"' => format!("%{:02X}", u32::from(character)),
        _ => character.to_string(),
    }
}

/// Checks that both sides count the same records in each group, before they are measured.
async fn agree(side: &Side, path: &str, base: &Side, floor_path: &str) {
    let get = |side: &Side, path: &str| request("GET", path, side.token.as_deref(), None);
    let (found, expected) = (side.send(&get(side, path)).await, base.send(&get(base, floor_path)).await);
    let counts = |rows: &Value, of: &dyn Fn(&Value) -> Value| rows.as_array().unwrap().iter().map(of).collect::<Vec<_>>();
    let found = counts(&found["data"], &|group| group["count"].clone());
    let expected = counts(&expected, &|row| row.as_array().and_then(|row| row.last().cloned()).unwrap_or(json!(null)));
    assert_eq!(found, expected, "{path}");
}
