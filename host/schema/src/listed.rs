//! Enums with a list of all their variants.

/// Makes an enum and `ALL`, the list of its variants in their order. Surfaces, documents and tests iterate over that list. The
/// macro makes both from the same text, so the list is always complete.
#[macro_export]
macro_rules! listed {
    ($(#[$about:meta])* $visible:vis enum $name:ident { $($(#[$detail:meta])* $variant:ident,)+ }) => {
        $(#[$about])*
        $visible enum $name {
            $($(#[$detail])* $variant,)+
        }

        impl $name {
            /// All variants, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }
    };
}

/// Joins names for a sentence: `a, b or c`. `word` stands before the last name.
pub fn enumerated<N: AsRef<str>>(names: impl IntoIterator<Item = N>, word: &str) -> String {
    let names: Vec<N> = names.into_iter().collect();
    let mut out = String::new();
    for (place, name) in names.iter().enumerate() {
        match place {
            0 => {}
            _ if place + 1 == names.len() => out.push_str(&format!(" {word} ")),
            _ => out.push_str(", "),
        }
        out.push_str(name.as_ref());
    }
    out
}

/// The lines of the Markdown table whose header row begins with `header`. Tests use them to compare the documentation with the lists.
pub fn table_rows<'t>(page: &'t str, header: &str) -> Vec<&'t str> {
    page.lines().skip_while(|line| !line.starts_with(header)).skip(2).take_while(|line| line.starts_with('|')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_enumerated() {
        for (names, shown) in [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "a or b"), (&["a", "b", "c"], "a, b or c")] {
            assert_eq!(enumerated(names, "or"), shown);
        }
    }
}
