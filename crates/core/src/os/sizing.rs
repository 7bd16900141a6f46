//! The number of threads of a CPU lane.

use std::thread;

use super::quota::Quota;
use crate::build_error::BuildError;

/// The part of a CPU quota that is left to the I/O lane, in cores.
const RESERVE: f64 = 0.25;

/// See [`CpuRuntime::default_threads`](crate::CpuRuntime::default_threads).
pub(crate) fn default_threads() -> Result<usize, BuildError> {
    if let Some(value) = std::env::var_os("TWOLANE_CPU_THREADS") {
        let value = value.to_string_lossy();
        let setting = format!("TWOLANE_CPU_THREADS={value:?}");
        return check(value.trim().parse().ok(), &setting, "unset the variable");
    }
    let available = thread::available_parallelism().map_or(1, usize::from);
    let quota = Quota::below_cores().map(|quota| quota.cores);
    Ok(fit(available, quota).min(rayon_core::max_num_threads()))
}

/// `threads`, if a lane may have so many, and they are a number at all.
pub(crate) fn check(threads: Option<usize>, what: &str, remedy: &str) -> Result<usize, BuildError> {
    let max = rayon_core::max_num_threads();
    let valid = threads.filter(|threads| (1..=max).contains(threads));
    valid.ok_or_else(|| {
        BuildError::new(format!(
            "{what}: the CPU lane takes 1 to {max} threads; {remedy} for one per core"
        ))
    })
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
