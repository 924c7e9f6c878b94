//! A strict reader of Prometheus' text format. If a scraper could fail at something, the test fails.

use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// The contents of a scrape.
#[derive(Debug, Default)]
pub struct Exposition {
    /// The kind of each family.
    pub kinds: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Exposition {
    /// # Panics
    /// At the first line that breaks the format.
    pub fn parse(text: &str) -> Exposition {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut read = Exposition::default();
        let (mut helped, mut ended) = (BTreeSet::new(), BTreeSet::new());
        let mut current = String::new();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (what, name) = (words.next().expect("a word"), words.next().expect("a name"));
                let rest = words.next().expect("text").to_owned();
                assert!(is_name(name), "{line}");
                match what {
                    "HELP" => assert!(helped.insert(name.to_owned()), "{line}: twice"),
                    "TYPE" => {
                        assert!(["counter", "gauge", "histogram"].contains(&rest.as_str()), "{line}");
                        assert!(read.kinds.insert(name.to_owned(), rest).is_none(), "{line}: twice");
                        assert!(ended.insert(std::mem::replace(&mut current, name.to_owned())), "{line}: taken up again");
                    }
                    _ => panic!("{line}"),
                }
                continue;
            }
            let (name, labels, value) = sample(line);
            let family = match read.kinds.get(&current).map(String::as_str) {
                Some("histogram") => {
                    ["_bucket", "_sum", "_count"].into_iter().find_map(|suffix| name.strip_suffix(suffix)).expect(line)
                }
                kind => {
                    assert!(kind != Some("counter") || name.ends_with("_total") && value >= 0.0, "{line}");
                    name.as_str()
                }
            };
            assert_eq!(family, current, "{line}: under another family");
            assert!(read.samples.insert((name, labels), value).is_none(), "{line}: twice");
        }
        read.check_histograms();
        read
    }

    /// The values of the buckets increase up to the count, and each histogram has a sum.
    fn check_histograms(&self) {
        for family in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(family, _)| family) {
            let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((_, labels), value) in self.samples.iter().filter(|((name, _), _)| *name == format!("{family}_bucket")) {
                let mut labels = labels.clone();
                let bound = number(&labels.remove("le").expect("a bound"));
                series.entry(labels).or_default().push((bound, *value));
            }
            for (labels, mut buckets) in series {
                buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
                assert!(buckets.is_sorted_by(|left, right| left.1 <= right.1), "{family} {labels:?}");
                let last = buckets.last().expect("a bucket");
                let of = |suffix: &str| self.samples.get(&(format!("{family}{suffix}"), labels.clone())).copied();
                assert!(last.0 == f64::INFINITY && of("_count") == Some(last.1) && of("_sum").is_some(), "{family} {labels:?}");
            }
        }
    }

    /// The value of the series with exactly these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    /// The labels of every series with this name.
    pub fn series(&self, name: &str) -> Vec<&Labels> {
        self.samples.keys().filter(|(known, _)| known == name).map(|(_, labels)| labels).collect()
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        _ => text.parse().unwrap_or_else(|_| panic!("{text:?} is no number")),
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}: a label twice");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect(line);
    (name.to_owned(), labels, number(value))
}

/// The value of a label up to its closing quote, and the text after it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[place + 1..]),
            '\\' => value.push(match letters.next().expect("an escaped letter").1 {
                'n' => '\n',
                letter @ ('\\' | '"') => letter,
                letter => panic!("\\{letter} is no escape"),
            }),
            letter => value.push(letter),
        }
    }
    panic!("{text:?} has no closing quote")
}
