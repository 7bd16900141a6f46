//! TPC-H, as the benches of query engines share it: the queries, and the tables in memory or in
//! Parquet on a real S3 server.

pub mod queries;
pub mod tables;

/// That of the queries' times.
pub fn geometric_mean(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (logs / values.len() as f64).exp()
}
