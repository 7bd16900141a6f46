//! Rows, and how to tell that none was lost or doubled.

use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub series: u64,
    pub time: i64,
    pub value: f64,
}

impl Row {
    /// Unique, and the order of rows in a file.
    pub fn key(&self) -> (u64, i64) {
        (self.series, self.time)
    }
}

/// What a set of rows is, in whatever order: a row that is lost, doubled or
/// changed makes another one (but for a chance in 2^64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    pub rows: u64,
    sum: u64,
}

impl Fingerprint {
    pub fn of(rows: &[Row]) -> Self {
        rows.iter().fold(Self::default(), |all, row| {
            let mut hasher = DefaultHasher::new();
            (row.key(), row.value.to_bits()).hash(&mut hasher);
            let one = Self {
                rows: 1,
                sum: hasher.finish(),
            };
            all + one
        })
    }
}

impl std::ops::Add for Fingerprint {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            sum: self.sum.wrapping_add(other.sum),
        }
    }
}

/// Sensors, each with a reading about once a second, in the order of arrival.
/// `nth` of `of` such memtables whose rows interleave and never coincide.
pub fn readings(sensors: u64, rows: usize, nth: u64, of: u64) -> Vec<Row> {
    let mut random = fastrand::Rng::with_seed(nth);
    let mut values: Vec<i64> = (0..sensors).map(|_| random.i64(1_000..100_000)).collect();
    (0..rows as u64)
        .map(|i| {
            let (second, sensor) = (i / sensors, i % sensors);
            // The sensors don't report in the order of their names.
            let sensor = (sensor * 7_919) % sensors;
            let value = &mut values[sensor as usize];
            *value += random.i64(-999..=999);
            Row {
                series: sensor.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                time: ((second * of + nth) * 1_000 + random.u64(..1_000)) as i64,
                value: *value as f64 / 100.0 + random.f64() / 64.0,
            }
        })
        .collect()
}
