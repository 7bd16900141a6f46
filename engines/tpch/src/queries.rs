//! The queries, and their rows.

use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;

/// All 22, in their order.
pub fn all() -> Vec<&'static str> {
    let queries = include_str!("queries.sql")
        .split_terminator(';')
        .map(str::trim);
    queries.filter(|query| !query.is_empty()).collect()
}

/// The rows as text. In an order of their own, since the queries leave that of equal rows open.
pub fn rows(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let options = FormatOptions::default();
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
        let columns: Vec<_> = columns.collect::<std::result::Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| column.value(row).to_string())
                .collect();
            rows.push(cells.join("|"));
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

/// A hash of the [`rows`], of which there may be too many to hand to another process of the same
/// program.
pub fn digest(batches: &[RecordBatch]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    rows(batches)?.hash(&mut hasher);
    Ok(hasher.finish())
}
