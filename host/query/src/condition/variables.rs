//! Variables in conditions. Each stands for a value of the caller or for the time of the request.

use std::collections::BTreeSet;

use blockbase_schema::{Code, Error, Result, enumerated, listed, time};

listed! {
    /// A variable of conditions. Reading, the table in `docs/filter.md`, the command line's words and the console's list follow
    /// [`Variable::ALL`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Variable {
        UserId,
        UserEmail,
        UserRoles,
        KeyId,
        Now,
        Today,
    }
}

/// The requests that share the values of variables. A condition has the smallest audience of the variables that it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Many callers have the same value.
    #[default]
    ManyCallers,
    /// Only the requests of one caller have it.
    OneCaller,
    /// Hardly any two requests have it, because it is the present moment.
    OneRequest,
}

impl Variable {
    /// A sentence about all variables, for documents.
    pub const ABOUT: &str = "A text that begins with `$` is a variable (`$user.id`, `$now`, …); write `$$` for the sign itself.";

    pub const fn name(self) -> &'static str {
        match self {
            Variable::UserId => "$user.id",
            Variable::UserEmail => "$user.email",
            Variable::UserRoles => "$user.roles",
            Variable::KeyId => "$key.id",
            Variable::Now => "$now",
            Variable::Today => "$today",
        }
    }

    /// A sentence about the variable's value, for documents.
    pub const fn sentence(self) -> &'static str {
        match self {
            Variable::UserId => "the id of the caller's user. For a key it is the key's user",
            Variable::UserEmail => "the user's address, if it is verified",
            Variable::UserRoles => "the names of the user's roles, for `in` and `nin`. For a key it is the key's role",
            Variable::KeyId => "the id of the API key",
            Variable::Now => "the time of the request",
            Variable::Today => "the date of the request, in UTC",
        }
    }

    /// The variable's value in a few words, for a sentence about a condition.
    pub const fn words(self) -> &'static str {
        match self {
            Variable::UserId => "the caller's id",
            Variable::UserEmail => "the caller's address",
            Variable::UserRoles => "the caller's roles",
            Variable::KeyId => "the caller's API key",
            Variable::Now => "the present moment",
            Variable::Today => "today",
        }
    }

    /// The requests in which the variable has the same value.
    pub const fn audience(self) -> Audience {
        match self {
            Variable::UserRoles | Variable::Today => Audience::ManyCallers,
            Variable::UserId | Variable::UserEmail | Variable::KeyId => Audience::OneCaller,
            Variable::Now => Audience::OneRequest,
        }
    }

    /// The variable with this name, which begins with `$`.
    pub fn named(name: &str) -> Option<Variable> {
        Variable::ALL.iter().copied().find(|variable| variable.name() == name)
    }
}

/// The values of variables, which conditions refer to by names such as `$user.id`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables {
    pub user_id: Option<String>,
    /// The user's address, if it is proved.
    pub email: Option<String>,
    /// The names of the user's roles. If the caller presents a key, only the name of the key's role.
    pub roles: Option<Vec<String>>,
    pub key_id: Option<String>,
    /// The moment of the request, in milliseconds since the epoch.
    pub now: i64,
}

/// The value of a variable.
pub(crate) enum Meaning {
    Text(String),
    /// A list, which can only be the complete list of `in` or `nin`.
    List(Vec<String>),
}

impl Variables {
    /// A caller who has a value for every variable.
    pub fn of_somebody(now: i64) -> Variables {
        let id = "00000000-0000-0000-0000-000000000000".to_owned();
        Variables {
            user_id: Some(id.clone()),
            email: Some("somebody@example.org".to_owned()),
            roles: Some(vec!["somebody".to_owned()]),
            key_id: Some(id),
            now,
        }
    }

    /// Whether both have the same roles, in any order.
    pub(crate) fn has_roles_of(&self, other: &Variables) -> bool {
        let set = |variables: &Variables| variables.roles.as_ref().map(|roles| roles.iter().cloned().collect::<BTreeSet<_>>());
        set(self) == set(other)
    }

    /// The value of the variable `name`, which begins with `$`.
    ///
    /// # Errors
    /// `invalid_request` for an unknown name, `invalid_value` if the variable has no value for this caller.
    pub(crate) fn meaning(&self, name: &str) -> Result<Meaning> {
        let variable = Variable::named(name).ok_or_else(|| {
            let names = enumerated(Variable::ALL.iter().map(|variable| format!("`{}`", variable.name())), "and");
            Error::invalid_request(format!(
                "There is no variable {name:?}. Use {names}, or write a text that begins with `$` as `$$`."
            ))
        })?;
        let known = match variable {
            Variable::UserId => self.user_id.clone().map(Meaning::Text),
            Variable::UserEmail => self.email.clone().map(Meaning::Text),
            Variable::UserRoles => self.roles.clone().map(Meaning::List),
            Variable::KeyId => self.key_id.clone().map(Meaning::Text),
            Variable::Now => Some(Meaning::Text(written(|out| time::write_datetime(out, self.now)))),
            Variable::Today => {
                let days = self.now.div_euclid(time::DAY_MS);
                Some(Meaning::Text(written(|out| time::write_date(out, i32::try_from(days).unwrap_or(i32::MAX)))))
            }
        };
        known.ok_or_else(|| Error::new(Code::InvalidValue, format!("`{name}` has no value for this caller.")))
    }
}

fn written(write: impl Fn(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}
