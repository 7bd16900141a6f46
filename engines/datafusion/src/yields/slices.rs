//! [`Slices`]: parts of batches, such that the reader asks again soon.
//!
//! It learns how many rows the reader works on for some milliseconds: it begins with few, and
//! doubles them while the reader asks for the next within a millisecond. A reader that is not slow
//! has whole batches after the first one or two.

use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;

/// A join with 100,000 rows to compare each of them with takes some 50 ms for them.
const FIRST: usize = 32;
/// More rows than a batch has.
const MOST: usize = 1 << 24;
/// Below it, more rows.
const SHORT: Duration = Duration::from_millis(1);
/// Above it, fewer: such that they take about this.
const LONG: Duration = Duration::from_millis(5);

pub struct Slices {
    /// What is left of a batch.
    rest: Option<RecordBatch>,
    /// How many rows a slice has.
    rows: usize,
    /// How many rows the reader has been given, and when.
    given: Option<(usize, Instant)>,
}

impl Default for Slices {
    fn default() -> Self {
        Self {
            rest: None,
            rows: FIRST,
            given: None,
        }
    }
}

impl Slices {
    /// Call when the reader asks.
    pub fn asked(&mut self, now: Instant) {
        let Some((rows, given)) = self.given.take() else {
            return;
        };
        let took = now - given;
        if took < SHORT {
            self.rows = self.rows.max((2 * rows).min(MOST));
        } else if took > LONG {
            let fewer = rows as f64 * LONG.as_secs_f64() / took.as_secs_f64();
            self.rows = (fewer as usize).max(1);
        }
    }

    /// The next slice of the last batch.
    pub fn next(&mut self, now: Instant) -> Option<RecordBatch> {
        let batch = self.rest.take()?;
        Some(self.divide(batch, now))
    }

    /// The first slice of `batch`. The rest is to come.
    pub fn divide(&mut self, batch: RecordBatch, now: Instant) -> RecordBatch {
        let (all, rows) = (batch.num_rows(), batch.num_rows().min(self.rows));
        self.given = Some((rows, now));
        if rows == all {
            return batch;
        }
        self.rest = Some(batch.slice(rows, all - rows));
        batch.slice(0, rows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn batch(from: i64, rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
        RecordBatch::try_from_iter([("n", numbers)]).unwrap()
    }

    fn numbers(batch: &RecordBatch) -> Vec<i64> {
        let column = batch.column(0).as_primitive::<Int64Type>();
        column.values().to_vec()
    }

    /// The slices of batches, for a reader that takes `time` for each row.
    fn slices(batches: Vec<RecordBatch>, time: Duration) -> Vec<Vec<i64>> {
        let (mut slices, mut now) = (Slices::default(), Instant::now());
        let mut found = Vec::new();
        for batch in batches {
            let mut slice = Some(slices.divide(batch, now));
            while let Some(part) = slice {
                found.push(numbers(&part));
                now += time * part.num_rows() as u32;
                slices.asked(now);
                slice = slices.next(now);
            }
        }
        found
    }

    #[test]
    fn all_rows_come_once_and_in_order() {
        for time in [0, 1_000, 100_000, 20_000_000].map(Duration::from_nanos) {
            let found = slices(
                vec![batch(0, 5_000), batch(5_000, 0), batch(5_000, 77)],
                time,
            );
            assert_eq!(found.concat(), (0..5_077).collect::<Vec<i64>>());
        }
    }

    #[test]
    fn a_fast_reader_has_whole_batches_soon() {
        let batches = (0..5).map(|n| batch(n * 8_192, 8_192)).collect();
        let found = slices(batches, Duration::ZERO);
        assert_eq!(found.iter().filter(|slice| slice.len() == 8_192).count(), 4);
        assert!(found.len() < 15, "{} slices", found.len());
    }

    #[test]
    fn a_slow_reader_asks_again_within_some_milliseconds() {
        for micros in [100, 1_000, 20_000] {
            let time = Duration::from_micros(micros);
            let found = slices(vec![batch(0, 8_192)], time);
            let long = found.iter().skip(1).find(|slice| {
                let took = time * slice.len() as u32;
                slice.len() > 1 && took > LONG + SHORT
            });
            assert_eq!(long, None, "{micros}");
        }
    }
}
