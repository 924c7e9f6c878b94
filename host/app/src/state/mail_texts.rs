//! The texts of mail: the built-in ones in English, and those of a folder that replace them, by language.
//!
//! A text contains no name of a user. Otherwise somebody could sign up with another person's address and an advertisement as the
//! name, and the server would mail the advertisement.

use std::collections::HashMap;
use std::path::Path;

use blockbase_store::MailKind;

/// The maximum size of a text's file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// The language of the built-in texts, which is also used if there is no text in the language of a user.
const FALLBACK: &str = "en";
/// The text before the subject in the first line of a text.
const SUBJECT: &str = "Subject: ";
const LINK: &str = "link";
/// The names that are allowed in `{{…}}`.
const PLACEHOLDERS: [&str; 5] = [LINK, "email", "server", "hours", "time"];

/// The values of the placeholders in one mail.
#[derive(Clone, Debug)]
pub struct MailValues<'a> {
    pub link: &'a str,
    pub email: &'a str,
    /// The host of the public URL.
    pub server: &'a str,
    /// How long the link is valid.
    pub hours: i64,
}

/// The texts of one mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMail {
    pub subject: String,
    pub text: String,
    pub html: Option<String>,
}

#[derive(Clone, Debug)]
struct Template {
    subject: String,
    text: String,
    html: Option<String>,
}

/// All texts, by kind and language.
#[derive(Clone, Debug)]
pub struct MailTexts(HashMap<(&'static str, String), Template>);

const fn built_in(kind: MailKind) -> &'static str {
    match kind {
        MailKind::Invite => {
            "Subject: Your account on {{server}}\n\nHello,\n\nsomebody made an account for {{email}} on {{server}}. \
             Choose your password here:\n\n{{link}}\n\nThe link works once, within {{time}}.\n"
        }
        MailKind::Reset => {
            "Subject: Another password for {{server}}\n\nHello,\n\nsomebody asked for another password for {{email}} on {{server}}. \
             Choose it here:\n\n{{link}}\n\nThe link works once, within {{time}}. If you did not ask for it, ignore this mail: \
             your password stays as it is.\n"
        }
        MailKind::Verify => {
            "Subject: Confirm your address for {{server}}\n\nHello,\n\nconfirm that {{email}} is your address on {{server}}:\n\n\
             {{link}}\n\nThe link works once, within {{time}}. If you have no account there, ignore this mail.\n"
        }
        MailKind::ChangeEmail => {
            "Subject: Confirm your new address for {{server}}\n\nHello,\n\nconfirm that {{email}} is your new address on {{server}}:\n\n\
             {{link}}\n\nThe link works once, within {{time}}. If you have no account there, ignore this mail.\n"
        }
        MailKind::EmailChanged => {
            "Subject: Your address on {{server}} has changed\n\nHello,\n\nyour account on {{server}} has another address now, and \
             {{email}} no longer opens it. If this was not you, tell the people who run {{server}}.\n"
        }
        MailKind::DeleteUser => {
            "Subject: Delete your account on {{server}}\n\nHello,\n\nsomebody who is signed in to your account on {{server}} wants to \
             delete it. Open this link in the same browser to do so:\n\n{{link}}\n\nThe link works once, within {{time}}. If it \
             was not you, change your password: the account stays.\n"
        }
    }
}

impl MailTexts {
    /// The built-in texts, replaced by the files `<kind>.<language>.txt` and `<kind>.<language>.html` of a folder.
    ///
    /// # Errors
    /// A sentence for the operator about the folder or a file that is not valid.
    pub fn read(folder: Option<&Path>) -> Result<MailTexts, String> {
        let mut texts = HashMap::new();
        for kind in MailKind::ALL {
            let template = Template::parse(kind, built_in(kind), None).map_err(|why| format!("the built-in text {why}"))?;
            texts.insert((kind.as_str(), FALLBACK.to_owned()), template);
        }
        let Some(folder) = folder else { return Ok(MailTexts(texts)) };
        let explain = |error: std::io::Error| format!("{} cannot be read: {error}.", folder.display());
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(explain)? {
            names.extend(entry.map_err(explain)?.file_name().into_string());
        }
        names.sort();
        for name in &names {
            let Some((base, ending)) = name.rsplit_once('.') else { continue };
            let Some((kind, language)) = kind_and_language(base) else { continue };
            let explain = |why: String| format!("{} in {}: {why}", name, folder.display());
            match ending {
                "txt" => {}
                // No mail would contain it.
                "html" if !names.contains(&format!("{base}.txt")) => {
                    return Err(explain(format!("there is no {base}.txt beside it.")));
                }
                _ => continue,
            }
            let html = format!("{base}.html");
            let html = names.contains(&html).then(|| read_file(&folder.join(html))).transpose().map_err(explain)?;
            let text = read_file(&folder.join(name)).map_err(explain)?;
            let template = Template::parse(kind, &text, html).map_err(explain)?;
            texts.insert((kind.as_str(), language.to_ascii_lowercase()), template);
        }
        Ok(MailTexts(texts))
    }

    /// The texts of a mail in a language. If there are none, those in the language that it falls back to.
    pub(crate) fn write(&self, kind: MailKind, language: Option<&str>, values: &MailValues<'_>) -> WrittenMail {
        let language = language.unwrap_or(FALLBACK).to_ascii_lowercase();
        let general = language.split('-').next().unwrap_or_default().to_owned();
        let template =
            [language, general, FALLBACK.to_owned()].into_iter().find_map(|language| self.0.get(&(kind.as_str(), language)));
        let Some(Template { subject, text, html }) = template else {
            return WrittenMail { subject: String::new(), text: values.link.to_owned(), html: None };
        };
        WrittenMail {
            subject: fill(subject, values, str::to_owned),
            text: fill(text, values, str::to_owned),
            html: html.as_ref().map(|html| fill(html, values, escaped_html)),
        }
    }
}

/// The kind and the language of a text, by the name of its file without the ending. It is `None` for other files, and for kinds
/// that only later versions know.
fn kind_and_language(base: &str) -> Option<(MailKind, &str)> {
    let (kind, language) = base.split_once('.')?;
    let kind = MailKind::ALL.into_iter().find(|known| known.as_str() == kind)?;
    Some((kind, language))
}

fn read_file(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("a text has {FILE_BYTES_MAX} bytes at most."));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

impl Template {
    fn parse(kind: MailKind, text: &str, html: Option<String>) -> Result<Template, String> {
        let text = text.replace("\r\n", "\n");
        let (subject, body) = text.split_once('\n').unwrap_or((&text, ""));
        let subject = subject.strip_prefix(SUBJECT).map(str::trim).filter(|subject| !subject.is_empty());
        let subject = subject.ok_or_else(|| format!("the first line has to be `{SUBJECT}…`."))?;
        let parts = [Some(subject), Some(body), html.as_deref()];
        for part in parts.into_iter().flatten() {
            let unknown = placeholders(part).find(|name| !PLACEHOLDERS.contains(name));
            if let Some(unknown) = unknown {
                return Err(format!("there is no `{{{{{unknown}}}}}`; there are {}.", PLACEHOLDERS.join(", ")));
            }
        }
        let has_link = kind != MailKind::EmailChanged;
        if has_link
            && [Some(body), html.as_deref()].into_iter().flatten().any(|part| !placeholders(part).any(|name| name == LINK))
        {
            return Err("the text needs `{{link}}`.".to_owned());
        }
        Ok(Template { subject: subject.to_owned(), text: body.trim_start_matches('\n').to_owned(), html })
    }
}

/// A number of hours in English words. If the hours are whole days, the text has the number of days.
fn in_words(hours: i64) -> String {
    match (hours, hours % 24) {
        (1, _) => "1 hour".to_owned(),
        (24, _) => "1 day".to_owned(),
        (_, 0) => format!("{} days", hours / 24),
        _ => format!("{hours} hours"),
    }
}

/// The names within `{{…}}`.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).filter_map(|part| part.split_once("}}")).map(|(name, _)| name.trim())
}

/// The text with the values in it. Placeholders within a value are not replaced.
fn fill(text: &str, values: &MailValues<'_>, write: impl Fn(&str) -> String) -> String {
    let hours = values.hours.to_string();
    let time = in_words(values.hours);
    let mut parts = text.split("{{");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((name, rest)) = part.split_once("}}") else {
            filled.push_str("{{");
            filled.push_str(part);
            continue;
        };
        filled.push_str(&write(match name.trim() {
            LINK => values.link,
            "email" => values.email,
            "server" => values.server,
            "hours" => &hours,
            _ => &time,
        }));
        filled.push_str(rest);
    }
    filled
}

/// A text, escaped for HTML.
pub fn escaped_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: MailValues<'static> =
        MailValues { link: "https://a.example/?x=1&y={{email}}", email: "ann+<b>@example.com", server: "a.example", hours: 1 };

    #[test]
    fn a_folder_replaces_texts_by_language() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("reset.de.txt", "Subject: Neues Passwort\r\n\r\nHier: {{ link }}\r\n");
        write("reset.de.html", "<a href=\"{{link}}\">{{email}}</a>");
        write("reset.de-CH.txt", "Subject: Nöis Passwort\n\n{{link}}");
        write("magic-link.en.txt", "of a later version");
        write("notes.md", "anything");
        let texts = MailTexts::read(Some(folder.path())).expect("texts");
        let german = texts.write(MailKind::Reset, Some("de-AT"), &VALUES);
        assert_eq!(german.subject, "Neues Passwort");
        assert_eq!(german.text, "Hier: https://a.example/?x=1&y={{email}}\n");
        let html = "<a href=\"https://a.example/?x=1&amp;y={{email}}\">ann+&lt;b&gt;@example.com</a>";
        assert_eq!(german.html.as_deref(), Some(html));
        assert_eq!(texts.write(MailKind::Reset, Some("DE-ch"), &VALUES).subject, "Nöis Passwort");
        for language in [None, Some("fr"), Some("")] {
            let fallback = texts.write(MailKind::Reset, language, &VALUES);
            assert_eq!(fallback.subject, "Another password for a.example");
            assert!(fallback.text.contains("ann+<b>@example.com") && fallback.html.is_none());
            assert!(fallback.text.contains("within 1 hour."), "{}", fallback.text);
        }
    }

    #[test]
    fn a_time_is_said_in_words() {
        assert_eq!([1, 2, 24, 25, 168].map(in_words), ["1 hour", "2 hours", "1 day", "25 hours", "7 days"]);
    }

    #[test]
    fn a_wrong_text_is_refused_with_its_file() {
        for (text, why) in [
            ("{{link}}", "the first line"),
            ("Subject: x\n\nno link", "{{link}}"),
            ("Subject: x\n\n{{link}} {{password}}", "{{password}}"),
            ("Subject: {{name}}\n\n{{link}}", "{{name}}"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join("verify.en.txt"), text).expect("a file");
            let error = MailTexts::read(Some(folder.path())).expect_err("a wrong text");
            assert!(error.contains("verify.en.txt") && error.contains(why), "{error}");
        }
        assert!(MailTexts::read(Some(Path::new("/nonexistent"))).is_err());
    }

    #[test]
    fn an_html_file_needs_its_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str| std::fs::write(folder.path().join(name), "{{link}}").expect("a file");
        write("magic-link.de.html");
        write("notes.html");
        MailTexts::read(Some(folder.path())).expect("other files are ignored");
        write("reset.de.html");
        let error = MailTexts::read(Some(folder.path())).expect_err("a file without its text");
        assert!(error.starts_with("reset.de.html in ") && error.contains("reset.de.txt"), "{error}");
    }
}
