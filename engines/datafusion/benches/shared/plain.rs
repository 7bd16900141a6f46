//! What plain DataFusion answers, for the results of the contenders.

use std::collections::BTreeSet;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use tokio::runtime::Runtime;
use twolane_benches::Report;
use twolane_benches::findings::Ratio;
use twolane_tpch::queries;
use twolane_tpch::tables::in_memory;

/// The digests of plain DataFusion's rows, of each query, in this process.
pub fn digests(scale: f64) -> Result<Vec<u64>> {
    Runtime::new()?.block_on(async {
        let context = SessionContext::new();
        in_memory(&context, scale)?;
        let mut digests = Vec::new();
        for query in queries::all() {
            let rows = context.sql(query).await?.collect().await?;
            digests.push(queries::digest(&rows)?);
        }
        Ok(digests)
    })
}

/// Reports the number of queries that had plain DataFusion's rows, whichever the contender.
/// `unequal` are the numbers of the others, which fail the bench.
pub fn compare(report: &Report, unequal: &BTreeSet<usize>) {
    let found = &report.found;
    // Of all contenders; no figure if one of them could not run.
    if !found.contenders().any(|name| found.is_out(name)) {
        let equal = queries::all().len() - unequal.len();
        report.put("results_equal", Ratio::once(equal as f64));
    }
    if !unequal.is_empty() {
        report.fail(format!("queries with other rows: {unequal:?}"));
    }
}
