//! Sorted runs into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::row::Row;

pub fn merge(runs: Vec<Vec<Row>>) -> Vec<Row> {
    let mut merged = Vec::with_capacity(runs.iter().map(Vec::len).sum());
    let mut runs: Vec<_> = runs
        .into_iter()
        .map(|run| run.into_iter().peekable())
        .collect();
    let head = |(i, row): (usize, &Row)| Reverse((row.key(), i));
    let mut heads: BinaryHeap<_> = runs
        .iter_mut()
        .enumerate()
        .filter_map(|(i, run)| Some(head((i, run.peek()?))))
        .collect();
    while let Some(Reverse((_, i))) = heads.pop() {
        merged.extend(runs[i].next());
        heads.extend(runs[i].peek().map(|row| head((i, row))));
    }
    merged
}
