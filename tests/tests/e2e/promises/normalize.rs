//! Removes from responses all parts that differ from run to run, so that two runs can be compared literally.

/// Replaces ids by the order in which they appear, and masks instants.
#[derive(Default)]
pub(crate) struct Mask {
    known: Vec<String>,
}

/// Whether `text` matches `pattern`. In the pattern, `9` means a digit, and `x` a hexadecimal digit.
pub(crate) fn fits(text: &[u8], pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text.iter().zip(pattern.bytes()).all(|(byte, expected)| match expected {
            b'9' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            expected => *byte == expected,
        })
}

impl Mask {
    pub(crate) fn mask(&mut self, text: &str) -> String {
        const ID: &str = "01xxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx";
        const INSTANT: &str = "2099-99-99T99:99:99.999Z";
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(first) = rest.chars().next() {
            let bytes = rest.as_bytes();
            let taken = if fits(bytes, ID) {
                let id = &rest[..ID.len()];
                let place = self.known.iter().position(|known| known == id).unwrap_or_else(|| {
                    self.known.push(id.to_owned());
                    self.known.len() - 1
                });
                out.push_str(&format!("<id {place}>"));
                ID.len()
            } else if fits(bytes, INSTANT) && !rest.starts_with("2001") {
                out.push_str("<instant>");
                INSTANT.len()
            } else {
                out.push(first);
                first.len_utf8()
            };
            rest = &rest[taken..];
        }
        out
    }
}
