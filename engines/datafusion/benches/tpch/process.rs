//! A contender's process, as the bench sees it.

use std::collections::BTreeSet;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use twolane_tpch::tables::Access;

use crate::children::{Process, text};
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
    let mut process = Process::start(role)?;
    let address = process.line()?.trim().parse().map_err(text)?;
    let health = Client::start(address).map_err(text)?;
    process.go()?;
    let measured = process.line();
    let health = health.stop();
    measured?;
    let answer = serde_json::from_str(&process.line()?).map_err(text)?;
    let health = health.map_err(|error| format!("/health: {error}"))?;
    Ok((answer, health))
}
