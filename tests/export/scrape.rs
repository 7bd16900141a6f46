//! Reads the text that a scrape gets.

use std::collections::BTreeMap;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use twolane::metrics::PrometheusCollector;

/// The samples by name and labels: `name{a="1",b="2"}`, in the labels' order.
pub(crate) type Samples = BTreeMap<String, f64>;

pub(crate) fn text(collector: PrometheusCollector) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

pub(crate) fn samples(text: &str) -> Samples {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = name.strip_suffix('}').unwrap().split_once('{').unwrap();
        let labels = labels.split(',').map(|label| {
            let (label, of) = label.split_once('=').unwrap();
            let of = of.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            (label.to_owned(), unescaped(of))
        });
        (key(name, labels), value.parse().unwrap())
    };
    let all: Vec<(String, f64)> = lines.map(sample).collect();
    let n = all.len();
    let map = Samples::from_iter(all);
    assert_eq!(map.len(), n, "a sample is there twice:\n{text}");
    map
}

fn unescaped(label: &str) -> String {
    let mut text = String::new();
    let mut chars = label.chars();
    while let Some(char) = chars.next() {
        assert_ne!(char, '"', "{label}");
        text.push(match char {
            '\\' => chars.next().unwrap(),
            char => char,
        });
    }
    text
}

pub(crate) fn key(name: &str, labels: impl Iterator<Item = (String, String)>) -> String {
    // `0.00001` and `1e-5` are the same bound.
    let labels = labels.map(|(label, of)| match of.parse::<f64>() {
        Ok(bound) if label == "le" => (label, bound.to_string()),
        _ => (label, of),
    });
    let mut labels: Vec<_> = labels.map(|(label, of)| format!("{label}={of}")).collect();
    labels.sort();
    format!("{name}{{{}}}", labels.join(","))
}
