//! Variables in conditions, which stand for a value of the caller or for the time of the request.

use std::collections::BTreeSet;

use blockbase_schema::{Code, Error, Result, time};

/// Values that a condition refers to by names such as `$user.id`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables {
    pub user_id: Option<String>,
    /// The user's address, if it is verified.
    pub email: Option<String>,
    /// Names of the user's roles. If the caller presents a key, only the name of the key's role.
    pub roles: Option<Vec<String>>,
    pub key_id: Option<String>,
    /// The moment of the request, in milliseconds since the epoch.
    pub now: i64,
}

/// The value of a variable.
pub(super) enum Meaning {
    Text(String),
    /// It can only be the whole list of `in` or `nin`.
    List(Vec<String>),
}

const NAMES: &str = "`$user.id`, `$user.email`, `$user.roles`, `$key.id`, `$now` and `$today`";

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

    /// Whether both have the same roles. Nothing depends on their order.
    pub(crate) fn has_roles_of(&self, other: &Variables) -> bool {
        let set = |variables: &Variables| variables.roles.as_ref().map(|roles| roles.iter().cloned().collect::<BTreeSet<_>>());
        set(self) == set(other)
    }

    /// The value of the variable `name`, which begins with `$`.
    ///
    /// # Errors
    /// `invalid_request` for an unknown name, `invalid_value` for a variable that has no value for this caller.
    pub(super) fn meaning(&self, name: &str) -> Result<Meaning> {
        let known = match name {
            "$user.id" => self.user_id.clone().map(Meaning::Text),
            "$user.email" => self.email.clone().map(Meaning::Text),
            "$user.roles" => self.roles.clone().map(Meaning::List),
            "$key.id" => self.key_id.clone().map(Meaning::Text),
            "$now" => Some(Meaning::Text(written(|out| time::write_datetime(out, self.now)))),
            "$today" => {
                let days = self.now.div_euclid(DAY_MILLIS);
                Some(Meaning::Text(written(|out| time::write_date(out, i32::try_from(days).unwrap_or(i32::MAX)))))
            }
            _ => {
                let message =
                    format!("There is no variable {name:?}. Use {NAMES}, or write a text that begins with `$` as `$$`.");
                return Err(Error::invalid_request(message));
            }
        };
        known.ok_or_else(|| Error::new(Code::InvalidValue, format!("`{name}` has no value for this caller.")))
    }
}

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

fn written(write: impl Fn(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}
