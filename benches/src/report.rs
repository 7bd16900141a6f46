//! Tables, ratios, and the file `target/twolane/BENCH.json`.

use std::cell::RefCell;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::args::{Bench, Form};
use crate::findings::{self, Findings, Ratio, quantile};
use crate::{cores, folder};

/// A column of a table.
pub struct Column {
    head: &'static str,
    metric: &'static str,
    shows: Shows,
}

const OTHERS: Column = Column::median(findings::OTHERS, findings::OTHERS);

enum Shows {
    Median,
    Spread,
    Sum,
    Pooled(f64),
}

impl Column {
    const fn new(head: &'static str, metric: &'static str, shows: Shows) -> Self {
        Self {
            head,
            metric,
            shows,
        }
    }

    /// The median of the rounds.
    pub const fn median(head: &'static str, metric: &'static str) -> Self {
        Self::new(head, metric, Shows::Median)
    }

    /// The median of the rounds, and their range.
    pub const fn spread(head: &'static str, metric: &'static str) -> Self {
        Self::new(head, metric, Shows::Spread)
    }

    /// The sum over all rounds.
    pub const fn sum(head: &'static str, metric: &'static str) -> Self {
        Self::new(head, metric, Shows::Sum)
    }

    /// A quantile of the latencies of all rounds together, in ms.
    pub const fn pooled(head: &'static str, latencies: &'static str, q: f64) -> Self {
        Self::new(head, latencies, Shows::Pooled(q))
    }

    fn cell(&self, findings: &Findings, contender: &str) -> String {
        let rounds = findings.rounds(contender, self.metric);
        let at = |q| digits(quantile(rounds.iter().copied(), q));
        let median = digits(findings.median(contender, self.metric));
        match self.shows {
            Shows::Median => median,
            Shows::Spread => match rounds.len() {
                0 | 1 => median,
                2 => format!("{} and {}", at(0.0), at(1.0)),
                _ => format!("{median} ({} to {})", at(0.0), at(1.0)),
            },
            Shows::Sum => digits(findings.sum(contender, self.metric)),
            Shows::Pooled(q) => digits(findings.pooled_ms(contender, self.metric, q)),
        }
    }
}

/// Three digits that matter, or the whole of an integer; a dot for what was not measured.
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
    let rule = |(i, width): (usize, &usize)| {
        let end = if i == 0 { '-' } else { ':' };
        "-".repeat(width - 1) + &end.to_string()
    };
    let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
    line(&mut rules.iter().map(String::as_str));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}

pub struct Report {
    bench: &'static str,
    form: Form,
    pub found: Findings,
    ratios: RefCell<Vec<(String, Ratio)>>,
    failures: RefCell<Vec<String>>,
}

impl Report {
    pub(crate) fn new(bench: &Bench, found: Findings) -> Self {
        Self {
            bench: bench.name,
            form: bench.form(),
            found,
            ratios: RefCell::default(),
            failures: RefCell::default(),
        }
    }

    /// Has the bench fail if the figures are not good. Not in a test, which asks whether a bench runs
    /// at all, on whatever machine.
    pub fn verdict(&self, is_good: bool) {
        if !is_good && self.form != Form::Test {
            self.fail("the figures are not what they have to be");
        }
    }

    /// Has the bench fail.
    pub fn fail(&self, why: impl Into<String>) {
        self.failures.borrow_mut().push(why.into());
    }

    /// Prints a row for each contender whose name begins with `prefix`, without the rows and the
    /// columns that have nothing. The last column says how much of the machine others had.
    pub fn table(&self, title: &str, prefix: &str, columns: &[Column]) {
        let found = &self.found;
        let named = found
            .contenders()
            .filter_map(|c| Some((c, c.strip_prefix(prefix)?)));
        let named: Vec<(&str, &str)> = named.collect();
        let has = |column: &&Column| named.iter().any(|(c, _)| column.cell(found, c) != ".");
        let columns: Vec<&Column> = columns.iter().filter(has).collect();
        let mut rows = Vec::new();
        for (contender, name) in &named {
            let why_out = found.why_out(contender);
            let is_out = why_out.is_some();
            let mut cells: Vec<String> = match why_out {
                Some(why) => vec![why],
                None => columns.iter().map(|c| c.cell(found, contender)).collect(),
            };
            if cells.iter().any(|cell| cell != ".") {
                cells.insert(0, (*name).to_owned());
                if !is_out {
                    cells.push(OTHERS.cell(found, contender));
                }
                rows.push(cells);
            }
        }
        if !rows.is_empty() {
            let heads = columns.iter().map(|column| column.head);
            let head: Vec<&str> = [""].into_iter().chain(heads).chain([OTHERS.head]).collect();
            print_table(title, &head, &rows);
        }
    }

    /// The ratio of two contenders. A metric that no contender has is a failure.
    pub fn ratio(&self, name: impl Into<String>, metric: &str, over: &str, under: &str) {
        let name = name.into();
        if [over, under].iter().any(|of| self.found.has_run(of)) && !self.found.has(metric) {
            self.fail(format!("{name}: no contender has `{metric}`"));
        }
        self.put(name, self.found.ratio(metric, over, under));
    }

    /// A ratio a line: `NAME: METRIC of CONTENDER / CONTENDER`.
    ///
    /// # Panics
    /// If a line has another form.
    pub fn ratios(&self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let parts = || {
                let (name, rest) = line.split_once(": ")?;
                let (metric, rest) = rest.split_once(" of ")?;
                let (over, under) = rest.split_once(" / ")?;
                Some([name, metric, over, under].map(str::trim))
            };
            let [name, metric, over, under] = parts().unwrap_or_else(|| panic!("{line}"));
            self.ratio(name, metric, over, under);
        }
    }

    pub fn put(&self, name: impl Into<String>, ratio: Ratio) {
        self.ratios.borrow_mut().push((name.into(), ratio));
    }

    /// Prints the ratios, writes the file, and says what has failed.
    pub(crate) fn finish(&self) -> ExitCode {
        let ratios = self.ratios.borrow();
        let measured = ratios.iter().filter(|(_, ratio)| !ratio.median.is_nan());
        let widths = measured.clone().map(|(name, _)| name.len());
        let width = widths.max().unwrap_or(0);
        println!(
            "\n{}: the rounds' own ratios; of three or more: the median (least to most)\n",
            self.bench
        );
        for (name, ratio) in measured {
            println!("  {name:width$}  {ratio}");
        }
        // What was not measured is NaN, and so `null`.
        let ratios = ratios.iter().map(|(name, of)| (name.clone(), json!(of)));
        let ratios: Map<String, Value> = ratios.collect();
        let file = folder().join(format!("{}.json", self.bench));
        let found = json!({
            "bench": self.bench,
            "machine": {"cores": cores()},
            "rows": self.found.rows(),
            "ratios": ratios,
        });
        std::fs::write(&file, format!("{found:#}\n")).unwrap();
        println!("\nwritten to {}", file.display());
        for why in self.found.not_run() {
            eprintln!("NOT RUN: {}/{why}", self.bench);
        }
        let of_report = self.failures.borrow();
        let failures = self.found.failures().chain(of_report.iter().cloned());
        let count = failures.map(|why| eprintln!("FAILED: {}/{why}", self.bench));
        ExitCode::from(u8::from(count.count() > 0))
    }
}
