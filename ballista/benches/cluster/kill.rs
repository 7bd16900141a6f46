//! SIGKILL for an executor in mid-query.

use std::time::{Duration, Instant};

use twolane_benches::Sample;

use crate::cluster::{Cluster, EXECUTORS, Plan, Rows};

/// For a query on a cluster that loses an executor: it takes the scheduler seconds to see that.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a query that is over too soon is tried again.
const TRIES: usize = 10;

/// Queries with their rows.
pub type Known<'a> = [(&'static str, &'a Rows)];

#[derive(Default)]
struct Outcomes {
    equal: usize,
    error: usize,
    next_equal: usize,
    seconds: f64,
}

/// Kills an executor in each query, in a fresh cluster each; the next one then runs on the two
/// that are left.
///
/// # Errors
///
/// If a query hangs, or has other rows.
pub fn turn(plan: &Plan, queries: &Known<'_>) -> Result<Sample, String> {
    let mut outcomes = Outcomes::default();
    for nth in 0..queries.len() {
        let next = queries[(nth + 1) % queries.len()];
        one(plan, queries[nth], next, &mut outcomes)?;
    }
    let mut sample = Sample::default();
    sample.put("killed_equal", "", outcomes.equal as f64);
    sample.put("killed_error", "", outcomes.error as f64);
    sample.put("next_equal", "", outcomes.next_equal as f64);
    sample.put("killed", "", queries.len() as f64);
    sample.put("seconds", "s", outcomes.seconds / queries.len() as f64);
    Ok(sample)
}

fn one(
    plan: &Plan,
    (sql, rows): (&'static str, &Rows),
    (next, next_rows): (&'static str, &Rows),
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    let mut cluster = Cluster::start(plan)?;
    for _ in 0..TRIES {
        cluster.forget()?;
        let query = cluster.begin(sql);
        // Until all three have had tasks of it.
        while !query.is_finished() && cluster.seen()?.busy.len() < EXECUTORS {
            std::thread::sleep(Duration::from_millis(1));
        }
        if query.is_finished() {
            continue;
        }
        cluster.kill_executor(1)?;
        let killed = Instant::now();
        // Whether the kill came in time.
        let is_in_time = !query.is_finished();
        let ended = cluster.end(query, LIMIT);
        outcomes.seconds += killed.elapsed().as_secs_f64();
        match ended.ok_or_else(|| cluster.error("hangs after a kill", sql))? {
            Ok(found) if found != *rows => return Err(format!("other rows after a kill: {sql}")),
            Ok(_) => outcomes.equal += usize::from(is_in_time),
            Err(error) => {
                println!("after a kill: {error}");
                outcomes.error += 1;
            }
        }
        let found = cluster.query(next, LIMIT)?;
        if found != *next_rows {
            return Err(format!("other rows on two executors: {next}"));
        }
        outcomes.next_equal += 1;
        return Ok(());
    }
    Err(format!("it is always over too soon to kill: {sql}"))
}
