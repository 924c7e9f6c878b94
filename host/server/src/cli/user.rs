//! `blockbase user …`: commands for accounts that run on the machine of the server.

use axum::http::Method;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Problem;
use super::operator::{Operator, SETTINGS_HELP};
use super::terminal::{confirmed, inert, note, print_json, print_line, read_secret, table};

/// The number of users that one request lists.
const PAGE: usize = 1000;

#[derive(Subcommand)]
#[command(after_help = SETTINGS_HELP)]
pub(super) enum UserCommand {
    /// List users, the newest first
    #[command(after_help = "Example:\n  blockbase user list --role admin")]
    List {
        /// Only users whose address or name contains this text
        #[arg(long)]
        search: Option<String>,
        /// Only users with this role
        #[arg(long)]
        role: Option<String>,
        /// Print the users as JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a user and print a link with which they set their password
    #[command(
        after_help = "Example:\n  blockbase user create ann@example.com --role admin      # also the first user of a server"
    )]
    Create {
        /// Address of the new user
        email: String,
        /// Name of the new user
        #[arg(long)]
        name: Option<String>,
        /// A role that the user gets; may be repeated
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// Print the user and the link as JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a user's password and end their sessions; reads it unseen from the terminal, or from standard input
    #[command(after_help = "Example:\n  blockbase user set-password ann@example.com < password.txt")]
    SetPassword {
        /// Address of the user, or their id
        email: String,
        /// Print the user as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a link with which a user sets another password
    #[command(after_help = "Example:\n  blockbase user password-link ann@example.com")]
    PasswordLink {
        /// Address of the user, or their id
        email: String,
        /// Print the link and its end as JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a user a role
    #[command(after_help = "Example:\n  blockbase user grant ann@example.com admin")]
    Grant {
        /// Address of the user, or their id
        email: String,
        /// Name of the role, or its id
        role: String,
        /// Print the user as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a role from a user
    #[command(after_help = "Example:\n  blockbase user revoke ann@example.com editor")]
    Revoke {
        /// Address of the user, or their id
        email: String,
        /// Name of the role, or its id
        role: String,
        /// Print the user as JSON
        #[arg(long)]
        json: bool,
    },
    /// Ban a user: their sessions end, their keys stop working, and what they made is suspended
    #[command(after_help = "Example:\n  blockbase user ban ann@example.com")]
    Ban {
        /// Address of the user, or their id
        email: String,
        /// Print the user as JSON
        #[arg(long)]
        json: bool,
    },
    /// Lift a ban
    #[command(after_help = "Example:\n  blockbase user unban ann@example.com")]
    Unban {
        /// Address of the user, or their id
        email: String,
        /// Print the user as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a user with their sessions and keys
    #[command(after_help = "Example:\n  blockbase user delete ann@example.com --hand-over-to bob@example.com")]
    Delete(Deletion),
}

#[derive(Args)]
pub(super) struct Deletion {
    /// Address of the user, or their id
    email: String,
    /// Who becomes the maker of the webhooks, keys, tasks and blocks that the user made
    #[arg(long, value_name = "EMAIL", conflicts_with = "suspend")]
    hand_over_to: Option<String>,
    /// Suspend what the user made until somebody adopts it
    #[arg(long)]
    suspend: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print the user who was deleted as JSON
    #[arg(long)]
    json: bool,
}

/// A change of a user that is done.
struct Done {
    /// The user before the change.
    user: Value,
    /// What happened, in a sentence.
    line: String,
}

/// Runs one command.
pub(super) fn run(command: UserCommand) -> Result<(), Problem> {
    let may_create = matches!(command, UserCommand::Create { .. });
    // The password is read before the database is opened, so that nobody waits for the terminal.
    let password = match &command {
        UserCommand::SetPassword { email, .. } => Some(read_secret(&format!("New password of {}: ", inert(email)))?),
        _ => None,
    };
    Operator::run(may_create, |operator| match command {
        UserCommand::List { search, role, json } => list(operator, search.as_deref(), role.as_deref(), json),
        UserCommand::Create { email, name, roles, json } => create(operator, &email, name.as_deref(), &roles, json),
        UserCommand::SetPassword { email, json } => {
            report(operator, json, &set_password(operator, &email, &password.unwrap_or_default())?)
        }
        UserCommand::PasswordLink { email, json } => password_link(operator, &email, json),
        UserCommand::Grant { email, role, json } => report(operator, json, &grant(operator, &email, &role)?),
        UserCommand::Revoke { email, role, json } => report(operator, json, &revoke(operator, &email, &role)?),
        UserCommand::Ban { email, json } => report(operator, json, &set_banned(operator, &email, true)?),
        UserCommand::Unban { email, json } => report(operator, json, &set_banned(operator, &email, false)?),
        UserCommand::Delete(deletion) => {
            let done = delete(operator, &deletion)?;
            if deletion.json {
                return print_json(&done.user);
            }
            print_line(&done.line);
            Ok(())
        }
    })
}

/// Reports a change of a user: with a sentence, or with the user after the change as JSON.
///
/// # Errors
/// If the user cannot be read. The error says that the change is done.
fn report(operator: &Operator, json: bool, done: &Done) -> Result<(), Problem> {
    if !json {
        print_line(&done.line);
        return Ok(());
    }
    let changed = operator.get(&["users", text(&done.user, "id")], &[]).map_err(|problem| {
        let (Problem::Usage(line) | Problem::Failed(line)) = problem;
        Problem::Failed(format!("The change is done, but the user cannot be read: {line}"))
    })?;
    print_json(&changed["data"])
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// All users that match. They are read page by page.
fn users(operator: &Operator, search: Option<&str>, role: Option<&str>) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    loop {
        let (limit, offset) = (PAGE.to_string(), found.len().to_string());
        let mut query = vec![("limit", limit.as_str()), ("offset", offset.as_str())];
        query.extend(search.map(|search| ("search", search)));
        query.extend(role.map(|role| ("role", role)));
        let page = operator.get(&["users"], &query)?;
        found.extend(page["data"].as_array().cloned().unwrap_or_default());
        if page["pagination"]["hasNextPage"] != true {
            return Ok(found);
        }
    }
}

/// The user with this address or id.
pub(super) fn find(operator: &Operator, named: &str) -> Result<Value, Problem> {
    let named = named.trim();
    let found = users(operator, Some(named), None)?.into_iter().find(|user| text(user, "email").eq_ignore_ascii_case(named));
    if let Some(user) = found {
        return Ok(user);
    }
    let missing = || Problem::Failed(format!("There is no user `{}`. `blockbase user list` lists the users.", inert(named)));
    if named.is_empty() || named.contains('@') {
        return Err(missing());
    }
    operator.get(&["users", named], &[]).map(|answer| answer["data"].clone()).map_err(|_| missing())
}

fn list(operator: &Operator, search: Option<&str>, role: Option<&str>, json: bool) -> Result<(), Problem> {
    let users = users(operator, search, role)?;
    if json {
        return print_json(&Value::Array(users));
    }
    if users.is_empty() {
        note("There is no such user.");
        return Ok(());
    }
    let row = |user: &Value| {
        let roles: Vec<&str> = user["roles"].as_array().into_iter().flatten().map(|role| text(role, "name")).collect();
        let state = match (user["banned"] == true, user["isAnonymous"] == true) {
            (true, _) => "banned",
            (false, true) => "guest",
            (false, false) => "",
        };
        let verified = if user["emailVerified"] == true { "yes" } else { "no" };
        [text(user, "email"), text(user, "name"), &roles.join(", "), verified, state, text(user, "id")]
            .map(|cell| inert(cell).into_owned())
            .to_vec()
    };
    let rows: Vec<Vec<String>> = users.iter().map(row).collect();
    for line in table(&["EMAIL", "NAME", "ROLES", "VERIFIED", "STATE", "ID"], &rows) {
        print_line(&line);
    }
    Ok(())
}

fn create(operator: &Operator, email: &str, name: Option<&str>, roles: &[String], json: bool) -> Result<(), Problem> {
    let mut body = json!({ "email": email, "roles": roles });
    if let Some(name) = name {
        body["name"] = json!(name);
    }
    let made = operator.change(Method::POST, &["users"], &[], Some(&body))?;
    if json {
        return print_json(&made);
    }
    note(&format!(
        "{} is created. They set their password with this link, which works once and until {}:",
        inert(text(&made["data"], "email")),
        inert(text(&made, "linkExpiresAt"))
    ));
    print_line(&inert(text(&made, "link")));
    Ok(())
}

fn set_password(operator: &Operator, email: &str, password: &str) -> Result<Done, Problem> {
    let user = find(operator, email)?;
    let body = json!({ "password": password });
    operator.change(Method::PUT, &["users", text(&user, "id"), "password"], &[], Some(&body))?;
    let line = format!("The password of {} is set, and their sessions have ended.", inert(text(&user, "email")));
    Ok(Done { user, line })
}

fn password_link(operator: &Operator, email: &str, json: bool) -> Result<(), Problem> {
    let user = find(operator, email)?;
    let made = operator.change(Method::POST, &["users", text(&user, "id"), "password-link"], &[], None)?;
    if json {
        return print_json(&made["data"]);
    }
    note(&format!(
        "{} sets another password with this link, which works once and until {}:",
        inert(text(&user, "email")),
        inert(text(&made["data"], "expiresAt"))
    ));
    print_line(&inert(text(&made["data"], "link")));
    Ok(())
}

fn grant(operator: &Operator, email: &str, role: &str) -> Result<Done, Problem> {
    let user = find(operator, email)?;
    operator.change(Method::POST, &["users", text(&user, "id"), "roles"], &[], Some(&json!({ "roleId": role })))?;
    let line = format!("{} has the role {}.", inert(text(&user, "email")), inert(role));
    Ok(Done { user, line })
}

fn revoke(operator: &Operator, email: &str, role: &str) -> Result<Done, Problem> {
    let user = find(operator, email)?;
    // The path only accepts an id.
    let named = |held: &&Value| text(held, "name") == role || text(held, "id") == role;
    let Some(held) = user["roles"].as_array().into_iter().flatten().find(named) else {
        return Err(Problem::Failed(format!("{} does not have the role {}.", inert(text(&user, "email")), inert(role))));
    };
    operator.change(Method::DELETE, &["users", text(&user, "id"), "roles", text(held, "id")], &[], None)?;
    let line = format!("{} no longer has the role {}.", inert(text(&user, "email")), inert(role));
    Ok(Done { user, line })
}

fn set_banned(operator: &Operator, email: &str, banned: bool) -> Result<Done, Problem> {
    let user = find(operator, email)?;
    operator.change(Method::PATCH, &["users", text(&user, "id")], &[], Some(&json!({ "banned": banned })))?;
    let state = if banned { "banned" } else { "no longer banned" };
    let line = format!("{} is {state}.", inert(text(&user, "email")));
    Ok(Done { user, line })
}

fn delete(operator: &Operator, deletion: &Deletion) -> Result<Done, Problem> {
    let user = find(operator, &deletion.email)?;
    let heir = deletion.hand_over_to.as_deref().map(|heir| find(operator, heir)).transpose()?;
    let keys = keys_of(operator, text(&user, "id"));
    let question =
        format!("{} goes, with their sessions and {keys}; records stay. Delete this user?", inert(text(&user, "email")));
    let without_terminal = "There is no terminal to ask at; say --yes to delete without a question.";
    if !confirmed(&question, deletion.yes, without_terminal)? {
        return Err(Problem::Failed("Nobody was deleted.".to_owned()));
    }
    let mut query = Vec::new();
    query.extend(heir.as_ref().map(|heir| ("handOverTo", text(heir, "id"))));
    query.extend(deletion.suspend.then_some(("suspend", "true")));
    operator.change(Method::DELETE, &["users", text(&user, "id")], &query, None)?;
    let line = format!("{} is deleted, with their sessions and {keys}.", inert(text(&user, "email")));
    Ok(Done { user, line })
}

/// How many API keys act as a user, in words.
fn keys_of(operator: &Operator, id: &str) -> String {
    // The list can be longer than an answer may be. That must not hinder a deletion.
    let Ok(keys) = operator.get(&["api-keys"], &[]) else { return "their API keys".to_owned() };
    match keys["data"].as_array().into_iter().flatten().filter(|key| text(key, "userId") == id).count() {
        0 => "no API key".to_owned(),
        1 => "1 API key".to_owned(),
        many => format!("{many} API keys"),
    }
}
