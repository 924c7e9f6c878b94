//! Passwords that were in a breach. They are read from a folder of prefix files, as the downloader of Have I Been Pwned writes
//! them.
//!
//! A file is named after the first five hexadecimal digits of a SHA-1, with or without `.txt`. Each of its lines has the other 35
//! digits, a colon, and the number of times that the password was seen. The server asks no other host.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

/// The number of digits of a hash that name its file.
const PREFIX: usize = 5;
/// Largest file that is read. Those of the whole list have about 100 KB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A folder of breached passwords.
#[derive(Clone, Debug)]
pub struct BreachedPasswords {
    folder: PathBuf,
}

impl BreachedPasswords {
    /// # Errors
    /// If the folder cannot be read, or has no prefix file.
    pub fn open(folder: &Path) -> Result<BreachedPasswords, String> {
        let explain = |error: std::io::Error| format!("{} cannot be read: {error}.", folder.display());
        let mut entries = std::fs::read_dir(folder).map_err(explain)?;
        let has_one = entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_prefix_file)));
        match has_one {
            true => Ok(BreachedPasswords { folder: folder.to_owned() }),
            false => Err(format!("{} has no file that is named after five hexadecimal digits.", folder.display())),
        }
    }

    /// Whether the list has a password. It reads a file, so it must not run on a thread of requests.
    ///
    /// # Errors
    /// If the file for the password cannot be read. A missing file is not an error.
    pub fn has(&self, password: &str) -> Result<bool, String> {
        let hash = hex::encode_upper(Sha1::digest(password.as_bytes()));
        let (prefix, suffix) = hash.split_at(PREFIX);
        let lower = prefix.to_ascii_lowercase();
        for name in [prefix.to_owned(), format!("{prefix}.txt"), lower.clone(), format!("{lower}.txt")] {
            if let Some(lines) = read(&self.folder.join(name))? {
                return Ok(lines.lines().any(|line| is_seen(line, suffix)));
            }
        }
        Ok(false)
    }
}

fn is_prefix_file(name: &str) -> bool {
    let prefix = name.strip_suffix(".txt").unwrap_or(name);
    prefix.len() == PREFIX && prefix.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a line has this suffix and a count above 0. The downloader pads the list with lines that have a count of 0.
fn is_seen(line: &str, suffix: &str) -> bool {
    let (known, count) = line.trim().split_once(':').unwrap_or((line.trim(), "1"));
    known.eq_ignore_ascii_case(suffix) && count.trim() != "0"
}

fn read(path: &Path) -> Result<Option<String>, String> {
    let explain = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let length = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        known => known.map_err(explain)?.len(),
    };
    if length > FILE_BYTES_MAX {
        return Err(format!("{} has more than {FILE_BYTES_MAX} bytes", path.display()));
    }
    std::fs::read_to_string(path).map(Some).map_err(explain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(password: &str) -> String {
        hex::encode_upper(Sha1::digest(password.as_bytes()))
    }

    #[test]
    fn a_listed_password_is_found_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two, three) = (hash_of("one of them"), hash_of("two of them"), hash_of("three of them"));
        assert_eq!(hash_of("abc"), "A9993E364706816ABA3E25717850C26C9CD0D89D");
        std::fs::write(folder.path().join(&one[..5]), format!("00000000000000000000000000000000000:3\r\n{}:12\r\n", &one[5..]))
            .expect("a file");
        std::fs::write(folder.path().join(format!("{}.txt", two[..5].to_lowercase())), two[5..].to_lowercase()).expect("a file");
        std::fs::write(folder.path().join(format!("{}.txt", &three[..5])), format!("{}:0\n", &three[5..])).expect("a file");
        let breached = BreachedPasswords::open(folder.path()).expect("a folder of prefix files");
        for (password, listed) in
            [("one of them", true), ("two of them", true), ("three of them", false), ("four of them", false)]
        {
            assert_eq!(breached.has(password), Ok(listed), "{password}");
        }
    }

    #[test]
    fn a_folder_of_something_else_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("pwned-passwords.txt"), "").expect("a file");
        assert!(BreachedPasswords::open(folder.path()).expect_err("no prefix file").contains("five hexadecimal digits"));
        assert!(BreachedPasswords::open(&folder.path().join("missing")).expect_err("no folder").contains("cannot be read"));
    }
}
