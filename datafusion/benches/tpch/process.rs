//! A contender's process, as the bench sees it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use twolane_benches::child;
use twolane_tpch::tables::Access;

use crate::contender::Contender;
use crate::health::Client;

/// For one turn, at the largest scale.
pub const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Serialize, Deserialize)]
pub struct Role {
    pub contender: Contender,
    /// Where the tables are on S3, or none if they are in memory.
    pub access: Option<Access>,
    pub scale: f64,
    /// The digests of plain DataFusion's rows.
    pub plain: Vec<u64>,
    pub work: Work,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Two copies of each query at a time, so many times.
    Queries { passes: usize },
    /// Each query at `High`, so many times alone, and beside four others at `Low`.
    Priorities { times: usize },
}

#[derive(Serialize, Deserialize)]
pub struct Answer {
    /// Of each query. (Of `Work::Priorities`: its ratio.)
    pub seconds: Vec<f64>,
    /// How much of the process's CPU time the I/O runtime's threads had.
    pub io_cpu: f64,
    /// The numbers of the queries that had other rows than plain DataFusion's, at least once.
    pub unequal: BTreeSet<usize>,
}

/// Runs the contender, and asks for `/health` while it measures.
pub fn ask(role: &Role) -> Result<(Answer, Histogram<u64>), String> {
    let mut command = child::command(role);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut told = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = || -> Result<String, String> {
        let mut line = String::new();
        match told.read_line(&mut line) {
            Ok(0) => Err("its process ended".to_owned()),
            Ok(_) => Ok(line),
            Err(error) => Err(error.to_string()),
        }
    };
    let address = line()?.trim().parse().map_err(|error| format!("{error}"))?;
    let health = Client::start(address).map_err(|error| error.to_string())?;
    let mut go = child.stdin.take().expect("it is piped");
    writeln!(go, "go").map_err(|error| error.to_string())?;
    let measured = line();
    let health = health.stop();
    let answer = measured.and_then(|_| line());
    // The process ends, with all that its contender left.
    drop(go);
    let status = child.wait().map_err(|error| error.to_string())?;
    let answer = answer.map_err(|error| format!("{error}: {status}"))?;
    let answer = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    let health = health.map_err(|error| format!("/health: {error}"))?;
    Ok((answer, health))
}
