//! One flow: sends its requests, and compares each answer and its mails with the recording.

use std::collections::{BTreeMap, BTreeSet};

use blockbase_tests::{Answer, MailServer, Server, until};
use serde_json::{Map, Value};

use super::deviations::{Difference, mails_expected};

/// The requests that can lead to mail.
const MAILING: [&str; 7] = [
    "/sign-up/email",
    "/sign-in/email",
    "/send-verification-email",
    "/verify-email",
    "/request-password-reset",
    "/change-email",
    "/delete-user",
];
/// Flows of links that delete an account. better-auth always mails such a link if it can. This server does so only if the session
/// is older than a day. So these flows make the sessions older.
const WITH_OLD_SESSIONS: [&str; 6] = [
    "delete-user-link",
    "delete-user-link-json",
    "delete-user-link-foreign",
    "delete-user-token",
    "delete-user-link-after-an-hour",
    "delete-user-link-expired",
];
const DAY_MS: u64 = 86_400_000;
const NOTHING: &str = "nothing";

/// A change of the database that a flow waits for.
pub(super) enum Pause {
    /// Time passes.
    Seconds(u64),
    /// The sessions become a day older, as if they had been used in that time.
    OldSessions,
}

pub(super) struct Replay<'r> {
    id: &'r str,
    steps: &'r [Value],
    next: usize,
    /// The domain of the flow's accounts.
    domain: String,
    /// The network address of the flow's client.
    address: String,
    /// The URL of the server.
    base: String,
    has_old_sessions: bool,
    /// The values of the names in the recording.
    names: Vec<(String, String)>,
    /// The cookies of each browser.
    browsers: BTreeMap<String, BTreeMap<String, String>>,
    mails_seen: usize,
    pub(super) differences: Vec<Difference>,
}

impl<'r> Replay<'r> {
    pub(super) fn new(flow: &'r Value, number: u8) -> Replay<'r> {
        let id = flow["id"].as_str().unwrap();
        Replay {
            id,
            steps: flow["steps"].as_array().unwrap(),
            next: 0,
            domain: format!("@{id}.example.com"),
            address: format!("192.0.2.{number}"),
            base: String::new(),
            has_old_sessions: !WITH_OLD_SESSIONS.contains(&id),
            names: Vec::new(),
            browsers: BTreeMap::new(),
            mails_seen: 0,
            differences: Vec::new(),
        }
    }

    /// Continues until the database has to change, or until the end.
    pub(super) async fn until_pause(mut self, server: &Server, mails: Option<&MailServer>) -> (Self, Option<Pause>) {
        self.base.clone_from(&server.base);
        let steps = self.steps;
        while let Some(step) = steps.get(self.next) {
            if let Some(seconds) = step["waitSeconds"].as_u64() {
                self.next += 1;
                return (self, Some(Pause::Seconds(seconds)));
            }
            if !self.has_old_sessions && step["request"]["path"] != "/sign-up/email" {
                self.has_old_sessions = true;
                return (self, Some(Pause::OldSessions));
            }
            self.take(server, mails, step).await;
            self.next += 1;
        }
        (self, None)
    }

    /// Changes the rows of the flow's accounts.
    pub(super) async fn pass(&self, server: &Server, pause: Pause) {
        let users = format!("user_id IN (SELECT id FROM svc_users WHERE email LIKE '%{}')", self.domain);
        match pause {
            Pause::OldSessions => {
                server.sql(&format!("UPDATE svc_sessions SET created_at = created_at - {DAY_MS} WHERE {users}")).await;
            }
            Pause::Seconds(seconds) => {
                let past = seconds * 1000;
                let sessions = "created_at = created_at - PAST, updated_at = updated_at - PAST, expires_at = expires_at - PAST";
                let tokens = "created_at = created_at - PAST, expires_at = expires_at - PAST";
                for (table, change) in [("svc_sessions", sessions), ("svc_account_tokens", tokens)] {
                    server.sql(&format!("UPDATE {table} SET {change} WHERE {users}").replace("PAST", &past.to_string())).await;
                }
            }
        }
    }

    // ---- one step ------------------------------------------------------------

    async fn take(&mut self, server: &Server, mails: Option<&MailServer>, step: &Value) {
        let request = &step["request"];
        let mut body = request.get("body").cloned();
        if (self.id, &step["what"]) == ("delete-user-link", &Value::from("the right password")) {
            // A password deletes at once here, and the steps after this one need the account.
            body.as_mut().unwrap().as_object_mut().unwrap().remove("password");
        }
        let shown = [request["path"].as_str().unwrap().to_owned(), body.map_or_else(String::new, |body| body.to_string())];
        let [path, body] = shown.map(|text| self.with_values(text));
        if let Some(unknown) = name_in(&path).or_else(|| name_in(&body)) {
            self.differs(step, "request", "", &format!("nothing has the name {unknown}"));
            return;
        }
        let (method, path) = (request["method"].as_str().unwrap(), format!("/api/auth{path}"));
        let browser = request["browser"].as_str();
        let mut answer = self.send(server, browser, method, &path, &body).await;
        if answer.text.starts_with("<!doctype html>") {
            self.differs(step, "question", "", "a page asks first");
            answer = self.send(server, browser, "POST", &path, "").await;
        }
        self.compare_answer(step, &answer);
        self.compare_cookies(step, &answer);
        if let Some(mails) = mails
            && MAILING.iter().any(|mailing| path.starts_with(&format!("/api/auth{mailing}")))
        {
            self.compare_mails(server, mails, step).await;
        }
    }

    async fn send(&mut self, server: &Server, browser: Option<&str>, method: &str, path: &str, body: &str) -> Answer {
        let mut request = server.request(method, path).header("user-agent", "recorder").header("x-forwarded-for", &self.address);
        let cookies = browser.and_then(|browser| self.browsers.get(browser)).cloned().unwrap_or_default();
        if !cookies.is_empty() {
            let pairs: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("cookie", pairs.join("; "));
        }
        if method == "POST" {
            request = request.header("origin", &server.base).header("content-type", "application/json").body(body.to_owned());
        }
        let answer = server.send(request).await;
        if let Some(browser) = browser {
            let jar = self.browsers.entry(browser.to_owned()).or_default();
            for Cookie { name, value, attributes } in cookies_of(&answer) {
                match attributes.contains("Max-Age=0") {
                    true => drop(jar.remove(&name)),
                    false => drop(jar.insert(name, value)),
                }
            }
        }
        answer
    }

    // ---- the answer ------------------------------------------------------------

    fn compare_answer(&mut self, step: &Value, answer: &Answer) {
        let recorded = &step["response"];
        let theirs = recorded.get("body").cloned();
        let ours = (!answer.text.is_empty()).then(|| answer.json());
        let (our_location, their_location) = (header(answer, "location"), recorded["headers"]["location"].as_str());
        let our_location = our_location.map(|location| self.with_names(location));
        let summary = self.summary(answer.status, ours.as_ref(), our_location.as_deref());
        if recorded["status"] != answer.status {
            let theirs = self.summary_of_recorded(recorded);
            self.differs(step, "status", &theirs, &summary);
            return;
        }
        // A path leads to the same page as the URL of this server with this path.
        let whole = |location: &str| if location.starts_with('/') { format!("{{base}}{location}") } else { location.to_owned() };
        if our_location.as_deref().map(whole) != their_location.map(whole) {
            self.differs(step, "location", their_location.unwrap_or(NOTHING), our_location.as_deref().unwrap_or(NOTHING));
        }
        match (theirs, ours) {
            (Some(Value::Object(theirs)), Some(Value::Object(mut ours))) => {
                soften(&theirs, &mut ours);
                self.compare_members(step, "body", &theirs, &ours);
            }
            (theirs, ours) if theirs == ours => {}
            _ => {
                let theirs = self.summary_of_recorded(recorded);
                self.differs(step, "body", &theirs, &summary);
            }
        }
        let (theirs, ours) = (recorded["headers"]["content-type"].as_str(), header(answer, "content-type"));
        if !answer.text.is_empty() && recorded.get("body").is_some() && theirs != ours {
            self.differs(step, "content-type", theirs.unwrap_or(NOTHING), ours.unwrap_or(NOTHING));
        }
    }

    fn compare_members(&mut self, step: &Value, place: &str, theirs: &Map<String, Value>, ours: &Map<String, Value>) {
        let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        for name in names {
            let place = format!("{place}.{name}");
            match (theirs.get(name), ours.get(name)) {
                (Some(Value::Object(theirs)), Some(Value::Object(ours))) => {
                    self.compare_members(step, &place, theirs, ours);
                }
                (Some(Value::String(theirs)), Some(Value::String(ours))) => {
                    if !self.is_same(theirs, ours) {
                        let ours = self.shown(ours);
                        self.differs(step, &place, theirs, &ours);
                    }
                }
                (theirs, ours) if theirs == ours => {}
                (theirs, ours) => {
                    let [theirs, ours] = [theirs, ours].map(|value| match value {
                        None => NOTHING.to_owned(),
                        Some(Value::Object(_)) => "an object".to_owned(),
                        Some(Value::String(text)) => self.shown(text),
                        Some(other) => other.to_string(),
                    });
                    self.differs(step, &place, &theirs, &ours);
                }
            }
        }
    }

    fn compare_cookies(&mut self, step: &Value, answer: &Answer) {
        let recorded = step["response"]["cookies"].as_array().into_iter().flatten();
        let theirs: Vec<Cookie> = recorded.map(|line| Cookie::read(line.as_str().unwrap())).collect();
        let ours = cookies_of(answer);
        let names: BTreeSet<&String> = theirs.iter().chain(&ours).map(|cookie| &cookie.name).collect();
        for name in names {
            let [their, our] = [&theirs, &ours].map(|cookies| {
                let named: Vec<&Cookie> = cookies.iter().filter(|cookie| cookie.name == *name).collect();
                assert!(named.len() <= 1, "{} sets {name} twice", self.id);
                named.first().copied()
            });
            let field = format!("cookie {name}");
            let [shown_theirs, shown_ours] = [their, our].map(|cookie| cookie.map_or_else(|| NOTHING.to_owned(), Cookie::shown));
            if shown_theirs != shown_ours {
                self.differs(step, &field, &shown_theirs, &shown_ours);
            } else if let (Some(theirs), Some(ours)) = (their, our)
                && !ours.value.is_empty()
                && !self.names_the_same(theirs.token(), ours.token())
            {
                self.differs(step, &field, &theirs.value, "the token of another session");
            }
        }
        let (theirs, ours) = (step["response"]["headers"]["set-auth-token"].as_str(), header(answer, "set-auth-token"));
        match (theirs, ours) {
            (None, None) => {}
            (Some(theirs), Some(ours)) => {
                let is_same = self.names_the_same(theirs.split(".{").next().unwrap(), ours.split('.').next().unwrap());
                match (is_same, ours.contains('.')) {
                    (true, true) => {}
                    (true, false) => self.differs(step, "set-auth-token", theirs, "without the signature"),
                    (false, _) => self.differs(step, "set-auth-token", theirs, "the token of another session"),
                }
            }
            (theirs, ours) => {
                let [theirs, ours] = [theirs, ours].map(|token| if token.is_some() { "a token" } else { NOTHING });
                self.differs(step, "set-auth-token", theirs, ours);
            }
        }
    }

    // ---- mail ------------------------------------------------------------------

    async fn compare_mails(&mut self, server: &Server, mails: &MailServer, step: &Value) {
        let waiting = format!("SELECT id FROM svc_mails WHERE address LIKE '%{}'", self.domain);
        until("the mails are sent", async || server.sql(&waiting).await.is_empty()).await;
        let recorded: Vec<&Value> = step["mails"].as_array().into_iter().flatten().collect();
        let expected = mails_expected(self.id, step["what"].as_str().unwrap()).unwrap_or(recorded.len());
        let own = || -> Vec<Value> {
            let all = mails.events("mail").into_iter();
            all.filter(|mail| mail["to"][0].as_str().unwrap().ends_with(&self.domain)).collect()
        };
        until("the mails are read", async || own().len() >= self.mails_seen + expected).await;
        let sent = own();
        let new = &sent[self.mails_seen..];
        for (recorded, mail) in recorded.iter().zip(new) {
            if let (Some(name), Some(token)) = (token_in(recorded["url"].as_str().unwrap()), token_in(link_in(mail))) {
                self.names_the_same(name, token);
            }
        }
        let theirs: Vec<String> =
            recorded.iter().map(|mail| self.mail(mail["to"].as_str().unwrap(), mail["url"].as_str().unwrap())).collect();
        let ours: Vec<String> = new.iter().map(|mail| self.mail(mail["to"][0].as_str().unwrap(), link_in(mail))).collect();
        self.mails_seen = sent.len();
        if theirs != ours {
            let [theirs, ours] = [theirs, ours].map(|mails| if mails.is_empty() { NOTHING.to_owned() } else { mails.join(", ") });
            self.differs(step, "mails", &theirs, &ours);
        }
    }

    fn mail(&self, to: &str, link: &str) -> String {
        let link = token_in(link).map_or_else(|| link.to_owned(), |token| link.replace(token, "{token}"));
        self.shown(&format!("{to} {link}"))
    }

    // ---- values ------------------------------------------------------------------

    /// Whether a name of the recording means this value, and no other. A new name means this value from now on.
    fn names_the_same(&mut self, name: &str, value: &str) -> bool {
        match self.names.iter().find(|(known, other)| known == name || other == value) {
            Some((known, other)) => known == name && other == value,
            None => {
                self.names.push((name.to_owned(), value.to_owned()));
                true
            }
        }
    }

    fn is_same(&mut self, theirs: &str, ours: &str) -> bool {
        match theirs {
            "{date}" => ours.len() == 24 && ours.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(ours).is_ok(),
            name if name_in(name) == Some(name) => self.names_the_same(name, ours),
            text => text == self.with_names(ours),
        }
    }

    /// A text of the recording with values instead of names.
    fn with_values(&self, text: String) -> String {
        let text = self.names.iter().fold(text, |text, (name, value)| text.replace(name, value));
        text.replace("{base}", &self.base).replace("{encodedBase}", &encoded(&self.base))
    }

    /// A text of the server with names instead of values.
    fn with_names(&self, text: &str) -> String {
        let text = self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(value, name));
        text.replace(&self.base, "{base}").replace(&encoded(&self.base), "{encodedBase}")
    }

    /// Does the same, and also removes the texts that belong to this flow, so that flows can be compared.
    fn shown(&self, text: &str) -> String {
        self.with_names(text).replace(&self.address, "{address}").replace(&self.domain, "@{domain}")
    }

    /// An answer in a few words.
    fn summary(&self, status: u16, body: Option<&Value>, location: Option<&str>) -> String {
        let said = match body {
            None => String::new(),
            Some(Value::Object(body)) => match (body.get("code"), body.get("message")) {
                (Some(code), Some(message)) => format!(" {}: {}", code.as_str().unwrap(), message.as_str().unwrap()),
                (None, Some(message)) => format!(" {}", message.as_str().unwrap()),
                _ => format!(" {{ {} }}", body.keys().cloned().collect::<Vec<_>>().join(", ")),
            },
            Some(other) => format!(" {other}"),
        };
        let location = location.map(|location| format!(" {location}")).unwrap_or_default();
        self.shown(&format!("{status}{said}{location}"))
    }

    fn summary_of_recorded(&self, recorded: &Value) -> String {
        let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
        self.summary(status, recorded.get("body"), recorded["headers"]["location"].as_str())
    }

    fn differs(&mut self, step: &Value, field: &str, theirs: &str, ours: &str) {
        self.differences.push(Difference {
            flow: self.id.to_owned(),
            step: step["what"].as_str().unwrap().to_owned(),
            field: field.to_owned(),
            theirs: theirs.to_owned(),
            ours: ours.to_owned(),
        });
    }
}

/// Replaces the members that every error has, so that a few lines of the table cover them.
fn soften(theirs: &Map<String, Value>, ours: &mut Map<String, Value>) {
    let Some(code) = ours.get("code").cloned() else { return };
    if ours.get("error") == Some(&code) {
        ours.insert("error".to_owned(), "the code".into());
    }
    if code == "VALIDATION_ERROR" && theirs.get("code").is_none_or(|theirs| *theirs == code) && ours["message"] != "" {
        ours.insert("message".to_owned(), "a sentence of its own".into());
    }
}

/// A line `Set-Cookie`.
struct Cookie {
    name: String,
    value: String,
    attributes: String,
}

impl Cookie {
    fn read(line: &str) -> Cookie {
        let (pair, attributes) = line.split_once("; ").unwrap_or((line, ""));
        let (name, value) = pair.split_once('=').unwrap();
        Cookie { name: name.to_owned(), value: value.to_owned(), attributes: attributes.to_owned() }
    }

    fn token(&self) -> &str {
        // The recording has names instead of values, and they contain a dot.
        let recorded = self.value.strip_suffix(".{signature}");
        recorded.unwrap_or_else(|| self.value.split('.').next().unwrap())
    }

    fn shown(&self) -> String {
        format!("{}; {}", if self.value.is_empty() { "no value" } else { "a value" }, self.attributes)
    }
}

fn cookies_of(answer: &Answer) -> Vec<Cookie> {
    answer.headers.get_all("set-cookie").iter().map(|line| Cookie::read(line.to_str().unwrap())).collect()
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(|value| value.to_str().unwrap())
}

/// The link of a mail.
fn link_in(mail: &Value) -> &str {
    mail["text"].as_str().unwrap().lines().find(|line| line.starts_with("http")).unwrap_or("without a link")
}

/// The token in a link, or its name.
fn token_in(link: &str) -> Option<&str> {
    let rest = ["token=", "/reset-password/"].iter().find_map(|mark| link.split_once(mark).map(|(_, rest)| rest))?;
    rest.split(['&', '?']).next()
}

/// The first name of a random value in a text.
fn name_in(text: &str) -> Option<&str> {
    let kinds = ["{mail", "{user", "{session", "{guest"];
    let start = kinds.iter().filter_map(|kind| text.find(kind)).min()?;
    let length = text[start..].find('}')? + 1;
    Some(&text[start..start + length])
}

/// A URL, encoded as a parameter.
fn encoded(url: &str) -> String {
    url.replace(':', "%3A").replace('/', "%2F")
}
