//! Teams: each has its projects, whose tasks only the team's role reaches.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::fill::BULK_RECORDS;
use crate::side::Side;

const PROJECTS_OF_A_TEAM: usize = 10;

/// The projects of all teams. Project `n` belongs to team `n % count`.
pub(super) struct Teams {
    pub(super) count: usize,
    projects: Vec<Uuid>,
}

impl Teams {
    pub(super) async fn make(admin: &Side, count: usize) -> Teams {
        let field = json!({ "name": "team", "type": "text", "indexed": true });
        admin.post("/api/v1/objects/project/fields", &field).await;
        let mut projects = Vec::new();
        let numbers: Vec<usize> = (0..count * PROJECTS_OF_A_TEAM).collect();
        for chunk in numbers.chunks(BULK_RECORDS as usize) {
            let project = |number: &usize| json!({ "name": format!("project {number}"), "team": name(number % count) });
            let data: Vec<Value> = chunk.iter().map(project).collect();
            let made = admin.post(&format!("{}/bulk", admin.projects), &json!({ "data": data })).await;
            projects.extend(serde_json::from_value::<Vec<Uuid>>(made["ids"].clone()).unwrap());
        }
        Teams { count, projects }
    }

    /// Lets projects have members, which [`tasks_of_reader`] tests.
    pub(super) async fn allow_members(admin: &Side) {
        let relationship = json!({ "name": "members", "kind": "many_to_many", "source": "project", "target": "users" });
        admin.post("/api/v1/relationships", &relationship).await;
    }

    /// Makes users members of [`Teams::project_of_team`]. User `n` belongs to team `n % count`.
    pub(super) async fn add_members(&self, admin: &Side, users: &[String]) {
        for team in 0..self.count {
            let members: Vec<&String> = users.iter().skip(team).step_by(self.count).collect();
            for ids in members.chunks(BULK_RECORDS as usize) {
                let path = format!("{}/{}/links/members", admin.projects, self.project_of_team(team));
                admin.post(&path, &json!({ "ids": ids })).await;
            }
        }
    }

    /// The project of a task, and the number of its team. They are the same in each run, and tasks of one team are not neighbors.
    pub(super) fn project_of(&self, task: u32) -> (Uuid, usize) {
        let place = (task.wrapping_mul(0x9E37_79B1) >> 8) as usize % self.projects.len();
        (self.projects[place], place % self.count)
    }

    /// A project of a team.
    pub(super) fn project_of_team(&self, team: usize) -> Uuid {
        self.projects[team]
    }
}

fn name(team: usize) -> String {
    format!("team {team}")
}

/// The policy of a team: tasks of its projects.
pub(super) fn tasks_of(team: usize) -> Value {
    json!({ "project": { "team": name(team) } })
}

/// The policy that names its reader: tasks of the projects of which the reader is a member.
pub(super) fn tasks_of_reader() -> Value {
    json!({ "project": { "members": { "some": { "id": "$user.id" } } } })
}
