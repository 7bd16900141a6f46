//! Tables, ratios, and the file `target/twolane/BENCH.json`.

use serde_json::{Map, Value, json};

use crate::findings::{Findings, Ratio, quantile};
use crate::{cores, folder};

/// A column of a table.
pub struct Column {
    head: &'static str,
    metric: &'static str,
    shows: Shows,
}

enum Shows {
    Median,
    Spread,
    Sum,
    Pooled(f64),
}

impl Column {
    /// The median of the rounds.
    pub const fn median(head: &'static str, metric: &'static str) -> Self {
        let shows = Shows::Median;
        Self {
            head,
            metric,
            shows,
        }
    }

    /// The median of the rounds, and their range.
    pub const fn spread(head: &'static str, metric: &'static str) -> Self {
        let shows = Shows::Spread;
        Self {
            head,
            metric,
            shows,
        }
    }

    /// The sum over all rounds.
    pub const fn sum(head: &'static str, metric: &'static str) -> Self {
        let shows = Shows::Sum;
        Self {
            head,
            metric,
            shows,
        }
    }

    /// A quantile of the latencies of all rounds together, in ms.
    pub const fn pooled(head: &'static str, latencies: &'static str, q: f64) -> Self {
        let shows = Shows::Pooled(q);
        Self {
            head,
            metric: latencies,
            shows,
        }
    }

    fn cell(&self, findings: &Findings, contender: &str) -> String {
        let rounds = findings.rounds(contender, self.metric);
        let at = |q| digits(quantile(rounds.iter().copied(), q));
        let median = digits(findings.median(contender, self.metric));
        match self.shows {
            Shows::Median => median,
            Shows::Spread if rounds.len() > 1 => {
                format!("{median} ({} to {})", at(0.0), at(1.0))
            }
            Shows::Spread => median,
            Shows::Sum => digits(findings.sum(contender, self.metric)),
            Shows::Pooled(q) => digits(findings.pooled_ms(contender, self.metric, q)),
        }
    }
}

/// Three digits that matter, or the whole of an integer; a dot for what was not
/// measured.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value.is_nan() => return ".".to_owned(),
        value if value.fract() == 0.0 || value >= 100.0 => 0,
        value => 2 - value.log10().floor() as i32,
    };
    format!("{value:.*}", decimals.clamp(0, 6) as usize)
}

/// Prints a table in Markdown, for the docs.
pub fn print_table(title: &str, head: &[&str], rows: &[Vec<String>]) {
    let chars = |cell: &str| cell.chars().count();
    let mut widths: Vec<usize> = head.iter().copied().map(chars).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = chars(cell).max(*width);
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        print!("|");
        for (i, (cell, width)) in cells.zip(&widths).enumerate() {
            match i {
                0 => print!(" {cell:width$} |"),
                _ => print!(" {cell:>width$} |"),
            }
        }
        println!();
    };
    println!("\n{title}\n");
    line(&mut head.iter().copied());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width - 1)).collect();
    let rules = rules.iter().enumerate();
    let rules: Vec<String> = rules
        .map(|(i, rule)| {
            if i == 0 {
                format!("{rule}-")
            } else {
                format!("{rule}:")
            }
        })
        .collect();
    line(&mut rules.iter().map(String::as_str));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}

pub struct Report<'a> {
    bench: &'static str,
    findings: &'a Findings,
    ratios: Vec<(String, Ratio)>,
}

impl<'a> Report<'a> {
    pub fn new(bench: &'static str, findings: &'a Findings) -> Self {
        Self {
            bench,
            findings,
            ratios: Vec::new(),
        }
    }

    /// Prints a row for each contender whose name begins with `prefix`, without the
    /// rows and the columns that have nothing.
    pub fn table(&self, title: &str, prefix: &str, columns: &[Column]) {
        let found = self.findings;
        let named = found
            .contenders()
            .filter_map(|c| Some((c, c.strip_prefix(prefix)?)));
        let named: Vec<(&str, &str)> = named.collect();
        let has = |column: &&Column| named.iter().any(|(c, _)| column.cell(found, c) != ".");
        let columns: Vec<&Column> = columns.iter().filter(has).collect();
        let mut rows = Vec::new();
        for (contender, name) in &named {
            let cells: Vec<String> = match found.skipped(contender) {
                Some(why) => vec![format!("skipped: {why}")],
                None => columns.iter().map(|c| c.cell(found, contender)).collect(),
            };
            if cells.iter().any(|cell| cell != ".") {
                rows.push([vec![(*name).to_owned()], cells].concat());
            }
        }
        if !rows.is_empty() {
            let heads = columns.iter().map(|column| column.head);
            let head: Vec<&str> = [""].into_iter().chain(heads).collect();
            print_table(title, &head, &rows);
        }
    }

    /// The ratio of two contenders.
    pub fn ratio(&mut self, name: impl Into<String>, metric: &str, over: &str, under: &str) {
        self.put(name, self.findings.ratio(metric, over, under));
    }

    pub fn put(&mut self, name: impl Into<String>, ratio: Ratio) {
        self.ratios.push((name.into(), ratio));
    }

    /// Prints the ratios and writes the file.
    pub fn finish(self) {
        let measured = self
            .ratios
            .iter()
            .filter(|(_, ratio)| !ratio.median.is_nan());
        let width = measured
            .clone()
            .map(|(name, _)| name.len())
            .max()
            .unwrap_or(0);
        println!(
            "\n{}: medians of the rounds' own ratios (least to most)\n",
            self.bench
        );
        for (name, ratio) in measured {
            println!("  {name:width$}  {ratio}");
        }
        // What was not measured is NaN, and so `null`.
        let ratios: Map<String, Value> = self
            .ratios
            .into_iter()
            .map(|(name, ratio)| (name, json!(ratio)))
            .collect();
        let file = folder().join(format!("{}.json", self.bench));
        let found = json!({
            "bench": self.bench,
            "machine": {"cores": cores()},
            "rows": self.findings.rows(),
            "ratios": ratios,
        });
        std::fs::write(&file, format!("{found:#}\n")).unwrap();
        println!("\nwritten to {}", file.display());
    }
}
