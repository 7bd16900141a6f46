//! How soon a lane is quiet after a query was dropped, and what that costs.
//!
//! # The question
//!
//! A client goes away, and the service drops its query. How long do threads compute on for it? And
//! how much longer does a query take that yields often enough to end soon?
//!
//! # Contenders
//!
//! `with`: [`twolane_datafusion::collect_on`], which has each plan yield
//! ([`twolane_datafusion::EnsureYields`]); `without`: the same frame by `run_on`, as DataFusion
//! plans it. Each turn is a process.
//!
//! # The turn
//!
//! - The 22 queries of TPC-H, in memory: each is timed, then begun again and dropped after a
//!   quarter, a half and three quarters of that time. From the drop on, a plain thread asks for the
//!   lane's metrics each 0.2 ms until no job, no Tokio task and no thread of an ended job is left.
//! - Four queries that take hours, of two tables of 100,000 rows: dropped after 100 ms, 200 ms and
//!   300 ms. After [`work::PATIENCE`] the bench gives up, and that is the figure.
//! - The 22 queries once more, whole, for their time.
//!
//! # What it is not
//!
//! The longest that a query of other tables could take: what an operator does in one call (the hash
//! table of a join) grows with them. `--full` has ten times the rows.
//!
//! ```text
//! cargo bench -p twolane-datafusion --bench dropped             # scale 0.1
//! cargo bench -p twolane-datafusion --bench dropped -- --full   # scale 1
//! ```

mod work;

use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::report::{digits, print_table};
use twolane_benches::{Bench, Column, Contender as Turn, Contest, Findings, Sample, child};

use work::{Answer, Role};

/// For one turn, at the largest scale.
const BOUND: Duration = Duration::from_secs(900);

const CONTENDERS: [(&str, bool); 2] = [("with", true), ("without", false)];

fn main() -> ExitCode {
    if let Some(role) = child::role::<Role>() {
        child::answer(&work::run(role));
    }
    let bench = Bench::new("dropped");
    let scale = bench.pick([0.01, 0.03, 0.1, 1.0]);
    let passes = bench.pick([1, 1, 8, 3]);
    let moments = bench.pick([1, 1, 3, 3]);
    let contenders = CONTENDERS.map(|(name, yields)| {
        Turn::new(name, move || {
            let role = Role {
                yields,
                scale,
                passes,
                moments,
            };
            Ok(sample(child::ask(&role)?))
        })
    });
    let contest = Contest::new(&bench, contenders, [1, 1, 5, 5], BOUND);
    contest.report(|report| {
        let found = &report.found;
        print_each(found);
        report.table(
            &format!(
                "scale {scale}; from the drop until the lane is quiet, the longest of a turn, ms"
            ),
            "",
            &[
                Column::spread("of the 22", "quiet_22"),
                Column::spread("of those of hours", "quiet_hours"),
                Column::spread("cross join", "quiet_cross_join"),
                Column::spread("22 queries, s", "queries"),
            ],
        );
        for metric in ["quiet_22", "quiet_hours", "quiet_cross_join"] {
            report.put(format!("{metric}_ms"), found.value(metric, "with"));
        }
        report.ratio("query_time_with_over_without", "queries", "with", "without");
    })
}

fn sample(answer: Answer) -> Sample {
    let mut sample = Sample::default();
    for (name, ms) in &answer.quiet {
        sample.put(name.clone(), "ms", *ms);
    }
    let longest = |prefix: &str| {
        let of = answer
            .quiet
            .iter()
            .filter(|(name, _)| name.starts_with(prefix));
        of.map(|(_, ms)| *ms).fold(0.0, f64::max)
    };
    sample.put("quiet_22", "ms", longest("q"));
    sample.put("quiet_hours", "ms", longest(work::HOURS));
    sample.put("quiet_cross_join", "ms", longest(work::CROSS_JOIN));
    sample.put("queries", "s", answer.seconds);
    sample
}

/// A line for each query.
fn print_each(found: &Findings) {
    let lines: Vec<_> = work::names()
        .into_iter()
        .map(|name| {
            let of = CONTENDERS.map(|(contender, _)| digits(found.median(contender, &name)));
            [vec![name], of.into()].concat()
        })
        .collect();
    print_table(
        "ms from the drop until the lane is quiet, medians",
        &["query", "with", "without"],
        &lines,
    );
}
