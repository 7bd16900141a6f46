//! The rows that are written: a pure function of their number.

use std::ops::Range;

use bytes::Bytes;

/// Of a row's value, in bytes.
pub const VALUE: usize = 1_024;
/// Rows in a write.
const BATCH: usize = 32;

#[derive(Clone, Copy)]
pub struct Rows {
    pub n: usize,
}

impl Rows {
    pub fn of_megabytes(megabytes: usize) -> Self {
        Self {
            n: megabytes * 1_000_000 / VALUE,
        }
    }

    pub fn batches(self) -> impl Iterator<Item = Range<usize>> + Clone {
        let starts = (0..self.n).step_by(BATCH);
        starts.map(move |start| start..self.n.min(start + BATCH))
    }

    /// Its key and its value.
    pub fn row(self, n: usize) -> (Bytes, Bytes) {
        let key = Bytes::from(format!("{:016x}", mixed(n as u64)));
        let value = self.value_of(&key);
        (key, value)
    }

    /// As many bytes that no two keys share, and that do not compress to nothing.
    pub fn value_of(self, key: &[u8]) -> Bytes {
        let mut state = key.iter().fold(1_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        let words = (0..VALUE / 8).flat_map(|_| {
            state = mixed(state);
            state.to_le_bytes()
        });
        words.collect::<Vec<u8>>().into()
    }
}

/// A bijection: keys do not come in their order.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n ^ (n >> 29)
}
