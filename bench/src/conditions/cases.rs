//! The conditions, each with the statements that a developer who knows the rows would write.

/// The members of a record, on either side.
pub(super) const COLUMNS: [&str; 5] = ["id", "title", "code", "kind", "state"];

/// Each condition has two lines. The first has its name, its object and the condition itself. The second has the text after `FROM
/// object t` for the page of 25. If another form is faster for the total, a third line has it. `LINKS` is the table of links.
const TEXT: &str = r#"
OR of two indexed fields | task | {"_or":[{"kind":7},{"code":"task5"}]}
  WHERE t.kind = 7 OR t.code = 'task5'
to-one, 1 % | task | {"project":{"kind":3}}
  WHERE t.project_id IN (SELECT id FROM project WHERE kind = 3)
to-one, unique | task | {"project":{"code":"project500"}}
  WHERE t.project_id = (SELECT id FROM project WHERE code = 'project500')
to-one, frequent | task | {"project":{"state":"open"}}
  JOIN project p ON p.id = t.project_id WHERE p.state = 'open'
two to-one | task | {"project":{"kind":3},"owner":{"state":"open"}}
  JOIN project p ON p.id = t.project_id JOIN person o ON o.id = t.owner_id WHERE p.kind = 3 AND o.state = 'open'
two to-one, frequent | task | {"project":{"state":"open"},"owner":{"kind":{"lt":50}}}
  JOIN project p ON p.id = t.project_id JOIN person o ON o.id = t.owner_id WHERE p.state = 'open' AND o.kind < 50
to-one neq | task | {"project":{"kind":{"neq":3}}}
  LEFT JOIN project p ON p.id = t.project_id WHERE p.kind IS DISTINCT FROM 3
to-one neq, unique | task | {"project":{"code":{"neq":"project500"}}}
  LEFT JOIN project p ON p.id = t.project_id WHERE p.code IS DISTINCT FROM 'project500'
some, rare | project | {"task_by_project":{"some":{"state":"rare"}}}
  WHERE t.id IN (SELECT project_id FROM task WHERE state = 'rare')
some, rare by index | project | {"task_by_project":{"some":{"kind":7}}}
  WHERE t.id IN (SELECT project_id FROM task WHERE kind = 7)
some, frequent | project | {"task_by_project":{"some":{"state":"open"}}}
  WHERE EXISTS (SELECT 1 FROM task k WHERE k.project_id = t.id AND k.state = 'open')
some, unique | project | {"task_by_project":{"some":{"code":"task778"}}}
  WHERE t.id = (SELECT project_id FROM task WHERE code = 'task778')
none, rare | project | {"task_by_project":{"none":{"state":"rare"}}}
  WHERE NOT EXISTS (SELECT 1 FROM task k WHERE k.project_id = t.id AND k.state = 'rare')
  WHERE t.id NOT IN (SELECT project_id FROM task WHERE state = 'rare' AND project_id IS NOT NULL)
none, frequent | project | {"task_by_project":{"none":{"state":"open"}}}
  WHERE NOT EXISTS (SELECT 1 FROM task k WHERE k.project_id = t.id AND k.state = 'open')
some beside a test | project | {"kind":3,"task_by_project":{"some":{"state":"open"}}}
  WHERE t.kind = 3 AND EXISTS (SELECT 1 FROM task k WHERE k.project_id = t.id AND k.state = 'open')
links, 1 % | task | {"tags":{"some":{"kind":3}}}
  WHERE t.id IN (SELECT k.source_id FROM label l JOIN LINKS k ON k.target_id = l.id WHERE l.kind = 3)
links, frequent | task | {"tags":{"some":{"state":"open"}}}
  WHERE EXISTS (SELECT 1 FROM LINKS k JOIN label l ON l.id = k.target_id WHERE k.source_id = t.id AND l.state = 'open')
links, other side | label | {"tags":{"some":{"kind":7}}}
  WHERE t.id IN (SELECT k.target_id FROM task s JOIN LINKS k ON k.source_id = s.id WHERE s.kind = 7)
"#;

#[derive(Default)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) object: &'static str,
    pub(super) condition: &'static str,
    page: &'static str,
    total: &'static str,
}

pub(super) fn all() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in TEXT.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("  "), cases.last_mut()) {
            (Some(sql), Some(case)) if case.page.is_empty() => (case.page, case.total) = (sql, sql),
            (Some(sql), Some(case)) => case.total = sql,
            _ => {
                let parts: Vec<&str> = line.split(" | ").collect();
                cases.push(Case { name: parts[0], object: parts[1], condition: parts[2], ..Case::default() });
            }
        }
    }
    cases
}

impl Case {
    /// The page and the total as SQL.
    pub(super) fn statements(&self, links: &str) -> (String, String) {
        let columns = COLUMNS.map(|column| format!("t.{column}")).join(", ");
        let from = |part: &str| format!("FROM {} t {}", self.object, part.replace("LINKS", links));
        (
            format!("SELECT {columns} {} ORDER BY t.created_at DESC, t.id DESC LIMIT 25", from(self.page)),
            format!("SELECT count(*) {}", from(self.total)),
        )
    }

    /// The path of the server for the page. With `counts`, it also asks for the total.
    pub(super) fn path(&self, counts: bool) -> String {
        let condition: String = self.condition.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let count = if counts { "exact" } else { "none" };
        format!("/api/v1/data/{}?select={}&count={count}&where={condition}", self.object, COLUMNS.join(","))
    }
}
