//! SIGKILL for an executor in mid-query.

use std::time::{Duration, Instant};

use twolane_benches::Sample;

use crate::cluster::{Cluster, EXECUTORS, Plan, Rows, rows};

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
/// If a query hangs, has other rows or an error that is not of the loss; or if another process
/// ends or panics.
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
    (sql, expected): (&'static str, &Rows),
    (next, next_expected): (&'static str, &Rows),
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    for _ in 0..TRIES {
        // A fresh one for each try: nothing of the try before makes its executors busy.
        let mut cluster = Cluster::start(plan)?;
        cluster.forget()?;
        let query = cluster.begin(sql);
        // Until all three have had tasks of it.
        while !query.is_finished() && cluster.seen()?.busy.len() < EXECUTORS {
            std::thread::sleep(Duration::from_millis(1));
        }
        let is_begun = !query.is_finished();
        if is_begun {
            cluster.kill_executor(1)?;
        }
        let killed = Instant::now();
        let is_in_time = is_begun && !query.is_finished();
        let ended = cluster.end(query, LIMIT);
        let seconds = killed.elapsed().as_secs_f64();
        // The others have to live on.
        cluster.check()?;
        match ended.ok_or_else(|| cluster.error("hangs after a kill", sql))? {
            Ok(found) if rows(&found)? != *expected => {
                return Err(format!("other rows, killed {is_begun}: {sql}"));
            }
            Ok(_) if !is_in_time => continue,
            Ok(_) => outcomes.equal += 1,
            Err(error) if is_begun && is_of_the_loss(&error.to_string()) => {
                println!("after a kill: {error}");
                outcomes.error += 1;
            }
            Err(error) => return Err(cluster.error(&error.to_string(), sql)),
        }
        outcomes.seconds += seconds;
        let found = cluster.query(next, LIMIT)?;
        if rows(&found)? != *next_expected {
            return Err(format!("other rows on two executors: {next}"));
        }
        cluster.check()?;
        outcomes.next_equal += 1;
        return Ok(());
    }
    Err(format!("it is always over too soon to kill: {sql}"))
}

/// Whether an error is the engine's own, for an executor is lost. The other executors' lanes have
/// to be unharmed.
fn is_of_the_loss(error: &str) -> bool {
    let losses = [
        // The client, or a stage that the scheduler has tried too often, had no answer of it.
        "fetch partition error",
        "FetchFailed",
        "GrpcConnectionError",
        // The scheduler gave up.
        "executors were lost",
        "rejected by executor",
        "most recent failure reason",
    ];
    let lanes = ["panic", "Panic", "ShutDown", "CPU lane", "JoinError"];
    let names = |names: &[&str]| names.iter().any(|name| error.contains(name));
    names(&losses) && !names(&lanes)
}
