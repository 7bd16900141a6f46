//! How many threads compute.

use std::thread;

use super::quota::Quota;
use crate::build_error::BuildError;

/// The environment variable that sets the number of threads.
pub(crate) const VARIABLE: &str = "TWOLANE_CPU_THREADS";

/// What a CPU quota keeps back for the I/O lane, in cores.
const RESERVE: f64 = 0.25;

/// How many threads each priority of a CPU lane has if
/// [`Builder::threads`](crate::Builder::threads) does not say.
///
/// 1. The environment variable `TWOLANE_CPU_THREADS`, if it is set: a number
///    from 1 up. Spaces around it don't matter; empty is an error as well.
/// 2. Else [`std::thread::available_parallelism`]: the cores that this process
///    may run on (its cpuset), or its cgroup's CPU quota, rounded down, if that
///    is less.
/// 3. If there is such a quota below the number of cores, a quarter of a core
///    of it is left to the I/O lane before rounding down: with a quota of 4
///    cores, 3 threads; of 2.5, 2; of 2, 1.
/// 4. At least 1. One thread is enough for everything to work.
///
/// So with a quota of 2 cores one priority alone can use half of what there is:
/// set the number if the lane shall have more and the I/O lane needs little.
///
/// A quota is not a number of cores. Once the process has used it up in a
/// period (100 ms, mostly), the kernel stops **all** its threads until the next
/// one, the I/O lane's too, whatever their weights. Counting threads can't
/// always prevent that: not with a quota of one core, nor where several
/// priorities compute. The rest is done by
/// [`Builder::throttle_to_quota`](crate::Builder::throttle_to_quota).
///
/// # Errors
/// [`BuildError::EnvThreads`]: the variable is not a number, or not one that
/// can be.
///
/// ```
/// assert!(twolane::default_threads().unwrap() >= 1);
/// ```
pub fn default_threads() -> Result<usize, BuildError> {
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
        _ => Err(BuildError::EnvThreads {
            value: value.to_owned(),
            max: max(),
        }),
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

    #[test]
    fn a_bad_variable_is_named() {
        assert_eq!(from_variable(" 3 ").unwrap(), 3);
        for bad in ["", "0", "-1", "2.5", "many", "99999999999999999999"] {
            let error = from_variable(bad).unwrap_err().to_string();
            let names = format!("TWOLANE_CPU_THREADS={bad:?}: ");
            assert!(error.starts_with(&names), "{error}");
        }
    }
}
