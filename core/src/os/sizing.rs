//! The number of threads of a CPU lane.

use std::thread;

use super::quota::Quota;
use crate::build_error::BuildError;

/// The environment variable that sets the number of threads.
pub(crate) const VARIABLE: &str = "TWOLANE_CPU_THREADS";

/// The part of a CPU quota that is left to the I/O lane, in cores.
const RESERVE: f64 = 0.25;

/// See [`CpuRuntime::default_threads`](crate::CpuRuntime::default_threads).
pub(crate) fn default_threads() -> Result<usize, BuildError> {
    if let Some(value) = std::env::var_os(VARIABLE) {
        return from_variable(&value.to_string_lossy());
    }
    let available = thread::available_parallelism().map_or(1, usize::from);
    let quota = Quota::below_cores().map(|quota| quota.cores);
    Ok(fit(available, quota).min(max()))
}

pub(crate) fn max() -> usize {
    rayon_core::max_num_threads()
}

fn from_variable(value: &str) -> Result<usize, BuildError> {
    match value.trim().parse() {
        Ok(threads) if (1..=max()).contains(&threads) => Ok(threads),
        _ => Err(BuildError::new(format!(
            "TWOLANE_CPU_THREADS={value:?}: the CPU lane takes 1 to {} threads; \
             unset the variable for one per core",
            max()
        ))),
    }
}

fn fit(available: usize, quota: Option<f64>) -> usize {
    let left = quota.map_or(usize::MAX, |cores| (cores - RESERVE).floor() as usize);
    available.min(left).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_keeps_a_reserve() {
        let cases = [
            (8, None, 8),
            (3, Some(4.0), 3),
            (4, Some(4.0), 3),
            (2, Some(2.5), 2),
            (2, Some(2.0), 1),
            (1, Some(1.25), 1),
            (1, Some(1.0), 1),
            (1, Some(0.1), 1),
        ];
        for (available, quota, threads) in cases {
            assert_eq!(fit(available, quota), threads, "{available} {quota:?}");
        }
    }
}
