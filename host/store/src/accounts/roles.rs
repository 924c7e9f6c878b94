//! Roles and their users.

use blockbase_query::{Dialect, Statement};

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// A role. `permissions` is the JSON text of its grants.
#[derive(Clone, Debug)]
pub struct RoleRow {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub permissions: String,
    pub created_at: i64,
    pub updated_at: i64,
}

/// The columns of [`RoleRow`], in its order, for a table with the alias `r`.
macro_rules! role_columns {
    () => {
        "r.id, r.name, r.description, r.permissions, r.created_at, r.updated_at"
    };
}
pub(super) use role_columns;

/// Reads a role from the columns that begin at `from`.
pub(super) fn role(row: &Row, from: usize) -> Result<RoleRow, DbError> {
    Ok(RoleRow {
        id: row.text(from)?,
        name: row.text(from + 1)?,
        description: row.optional_text(from + 2)?,
        permissions: row.text(from + 3)?,
        created_at: row.integer(from + 4)?,
        updated_at: row.integer(from + 5)?,
    })
}

impl Connection {
    pub async fn roles_of(&mut self, user_id: &str) -> Result<Vec<RoleRow>, DbError> {
        let rows = self
            .fetch(
                concat!(
                    "SELECT ",
                    role_columns!(),
                    " FROM svc_user_roles ur JOIN svc_roles r ON r.id = ur.role_id WHERE ur.user_id = $1 ORDER BY r.created_at, r.id"
                ),
                vec![user_id.into()],
            )
            .await?;
        rows.iter().map(|row| role(row, 0)).collect()
    }

    /// The roles of every user who has the role `role_id`, except those of the user `but_for`.
    pub async fn roles_beside(&mut self, role_id: &str, but_for: &str) -> Result<Vec<RoleRow>, DbError> {
        let rows = self
            .fetch(
                concat!(
                    "SELECT ",
                    role_columns!(),
                    " FROM svc_roles r WHERE r.id IN (SELECT b.role_id FROM svc_user_roles a JOIN svc_user_roles b \
                      ON b.user_id = a.user_id WHERE a.role_id = $1 AND a.user_id <> $2) ORDER BY r.id"
                ),
                vec![role_id.into(), but_for.into()],
            )
            .await?;
        rows.iter().map(|row| role(row, 0)).collect()
    }

    /// All roles, the oldest first.
    pub async fn roles(&mut self) -> Result<Vec<RoleRow>, DbError> {
        let rows =
            self.fetch(concat!("SELECT ", role_columns!(), " FROM svc_roles r ORDER BY r.created_at, r.id"), Vec::new()).await?;
        rows.iter().map(|row| role(row, 0)).collect()
    }

    /// Ids of the roles with a grant that names this resource, the oldest first.
    pub async fn roles_naming(&mut self, resource: &str) -> Result<Vec<String>, DbError> {
        // The text in the form in which grants are stored. A resource's name needs no escape in JSON.
        let text = format!("\"resource\":\"{resource}\"");
        let holds = self.dialect().contains("permissions", "$1", false);
        let sql = self.placeholders(format!("SELECT id FROM svc_roles WHERE {holds} ORDER BY created_at, id"));
        let rows = self.fetch_rows(Statement { sql, params: vec![text.into()] }).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// The ids of the roles with a grant that has a condition or lists fields, and perhaps of some others.
    pub async fn roles_with_conditions(&mut self) -> Result<Vec<String>, DbError> {
        // The texts in the form in which grants are stored. Within a value of a grant, such a text would be escaped.
        let holds = ["$1", "$2", "$3"].map(|text| self.dialect().contains("permissions", text, false)).join(" OR ");
        let sql = self.placeholders(format!("SELECT id FROM svc_roles WHERE {holds} ORDER BY created_at, id"));
        let params = ["where", "check", "fields"].map(|key| format!("\"{key}\":").into()).into();
        let rows = self.fetch_rows(Statement { sql, params }).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// The number of roles.
    pub async fn roles_count(&mut self) -> Result<i64, DbError> {
        let rows = self.fetch("SELECT COUNT(*) FROM svc_roles", Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// The number of a user's roles other than `but_for`.
    pub async fn roles_count_beside(&mut self, user_id: &str, but_for: &str) -> Result<i64, DbError> {
        let sql = "SELECT COUNT(*) FROM svc_user_roles WHERE user_id = $1 AND role_id <> $2";
        let rows = self.fetch(sql, vec![user_id.into(), but_for.into()]).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// The approximate length of a list of all roles, in characters.
    pub async fn roles_length(&mut self) -> Result<i64, DbError> {
        let sql = "SELECT COALESCE(SUM(LENGTH(name) + LENGTH(permissions) + COALESCE(LENGTH(description), 0)), 0) FROM svc_roles";
        let rows = self.fetch(sql, Vec::new()).await?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    pub async fn role_named(&mut self, name: &str) -> Result<Option<RoleRow>, DbError> {
        let rows =
            self.fetch(concat!("SELECT ", role_columns!(), " FROM svc_roles r WHERE r.name = $1"), vec![name.into()]).await?;
        rows.first().map(|row| role(row, 0)).transpose()
    }

    /// Does the same as [`Connection::role_named`], but the role is not deleted until the transaction ends.
    async fn kept_role_named(&mut self, name: &str) -> Result<Option<RoleRow>, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return self.role_named(name).await,
            Dialect::Postgres => concat!("SELECT ", role_columns!(), " FROM svc_roles r WHERE r.name = $1 FOR KEY SHARE"),
        };
        let rows = self.fetch(sql, vec![name.into()]).await?;
        rows.first().map(|row| role(row, 0)).transpose()
    }

    /// A role by its id or its name.
    pub async fn role(&mut self, id_or_name: &str) -> Result<Option<RoleRow>, DbError> {
        let sql = concat!("SELECT ", role_columns!(), " FROM svc_roles r WHERE r.id = $1 OR r.name = $1");
        let rows = self.fetch(sql, vec![id_or_name.into()]).await?;
        rows.first().map(|row| role(row, 0)).transpose()
    }

    /// Does the same as [`Connection::role`], but no other transaction changes or deletes the role until this one ends.
    pub async fn held_role(&mut self, id_or_name: &str) -> Result<Option<RoleRow>, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return self.role(id_or_name).await,
            Dialect::Postgres => {
                concat!("SELECT ", role_columns!(), " FROM svc_roles r WHERE r.id = $1 OR r.name = $1 FOR UPDATE")
            }
        };
        let rows = self.fetch(sql, vec![id_or_name.into()]).await?;
        rows.first().map(|row| role(row, 0)).transpose()
    }

    /// Creates a role. `false` if the name is taken.
    pub async fn insert_role(&mut self, role: &RoleRow) -> Result<bool, DbError> {
        let inserted = self
            .run(
                "INSERT INTO svc_roles (id, name, description, permissions, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO NOTHING",
                vec![
                    role.id.clone().into(),
                    role.name.clone().into(),
                    role.description.clone().into(),
                    role.permissions.clone().into(),
                    role.created_at.into(),
                    role.updated_at.into(),
                ],
            )
            .await?;
        Ok(inserted == 1)
    }

    /// Stores all columns of a role except its id.
    pub async fn update_role(&mut self, role: &RoleRow) -> Result<(), DbError> {
        self.run(
            "UPDATE svc_roles SET name = $2, description = $3, permissions = $4, updated_at = $5 WHERE id = $1",
            vec![
                role.id.clone().into(),
                role.name.clone().into(),
                role.description.clone().into(),
                role.permissions.clone().into(),
                role.updated_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// Deletes a role. Its users lose it, and its keys are deleted.
    pub async fn delete_role(&mut self, id: &str) -> Result<bool, DbError> {
        Ok(self.run("DELETE FROM svc_roles WHERE id = $1", vec![id.into()]).await? == 1)
    }

    /// Gives a user a role. Returns whether the user did not have it yet.
    pub async fn give_role(&mut self, user_id: &str, role_id: &str) -> Result<bool, DbError> {
        let sql = "INSERT INTO svc_user_roles (user_id, role_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        Ok(self.run(sql, vec![user_id.into(), role_id.into()]).await? == 1)
    }

    /// Whether a user has the role with this name.
    pub async fn has_role_named(&mut self, user_id: &str, name: &str) -> Result<bool, DbError> {
        let sql = "SELECT r.id FROM svc_roles r JOIN svc_user_roles ur ON ur.role_id = r.id \
                   WHERE r.name = $2 AND ur.user_id = $1";
        Ok(!self.fetch(sql, vec![user_id.into(), name.into()]).await?.is_empty())
    }

    /// Gives a user the role with this name. Returns whether there is one. The role is not deleted until the transaction ends.
    pub async fn give_role_named(&mut self, user_id: &str, name: &str) -> Result<bool, DbError> {
        match self.kept_role_named(name).await? {
            Some(role) => self.give_role(user_id, &role.id).await.map(|_| true),
            None => Ok(false),
        }
    }

    /// Whether the user is the first one of those who have the role with this name, can sign in and are not banned.
    pub async fn is_first_with_role(&mut self, name: &str, user_id: &str) -> Result<bool, DbError> {
        let rows = self
            .fetch(
                "SELECT u.id FROM svc_roles r JOIN svc_user_roles ur ON ur.role_id = r.id JOIN svc_users u ON u.id = ur.user_id \
                 JOIN svc_credentials c ON c.user_id = u.id WHERE r.name = $1 AND NOT u.banned \
                 ORDER BY u.created_at, u.id LIMIT 1",
                vec![name.into()],
            )
            .await?;
        rows.first().map_or(Ok(false), |row| Ok(row.text(0)? == user_id))
    }

    /// Takes a role away from a user. Returns whether the user had it.
    pub async fn take_role(&mut self, user_id: &str, role_id: &str) -> Result<bool, DbError> {
        let taken = self
            .run("DELETE FROM svc_user_roles WHERE user_id = $1 AND role_id = $2", vec![user_id.into(), role_id.into()])
            .await?;
        Ok(taken == 1)
    }

    /// Gives `to` the roles of `from`, except the role with the id `except`.
    pub async fn move_roles(&mut self, from: &str, to: &str, except: &str) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_user_roles (user_id, role_id) SELECT $2, role_id FROM svc_user_roles \
             WHERE user_id = $1 AND role_id <> $3 ON CONFLICT DO NOTHING",
            vec![from.into(), to.into(), except.into()],
        )
        .await
        .map(|_| ())
    }
}
