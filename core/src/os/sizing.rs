//! The number of threads of a CPU lane.

use std::thread;

use super::quota::Quota;
use crate::build_error::{BuildError, BuildErrorKind};

/// The environment variable that sets the number of threads.
pub(crate) const VARIABLE: &str = "TWOLANE_CPU_THREADS";

/// The part of a CPU quota that is left to the I/O lane, in cores.
const RESERVE: f64 = 0.25;

/// Returns how many threads each priority of a CPU lane has by default.
///
/// [`Builder::worker_threads`](crate::Builder::worker_threads) sets another number. The default is:
///
/// 1. The environment variable `TWOLANE_CPU_THREADS`, if it is set: a positive number.
///    Spaces around it are ignored. An empty value is an error.
/// 2. Otherwise [`std::thread::available_parallelism`]: the cores that the calling thread
///    may use (its CPU mask, within the cpuset of its cgroup), or the CPU quota of its
///    cgroup, rounded down, if that is less.
/// 3. If the quota is less than the number of cores, a quarter of a core is subtracted
///    from it before rounding down, and left to the I/O lane. A quota of 4 cores gives
///    3 threads; 2.5 cores give 2; 2 cores give 1.
/// 4. At least 1. Everything works with one thread.
///
/// A lane keeps the number that it was built with, also if the quota changes.
///
/// So with a quota of 2 cores, one priority alone can use half of the quota. Set the
/// number yourself if the I/O lane needs little and the CPU lane should have more.
///
/// A quota is not a number of cores. When the process has used up the quota of a period
/// (mostly 100 ms), the kernel stops **all** its threads until the next period. It
/// stops the I/O lane's threads too, whatever their nice values. A smaller number of
/// threads cannot always prevent that: not with a quota of one core, and not where
/// several priorities compute at the same time.
/// [`Builder::throttle_to_quota`](crate::Builder::throttle_to_quota) does the rest; see
/// the guide (`twolane::guide::containers`).
///
/// # Errors
///
/// [`BuildError`] if the variable is not a number in the valid range.
///
/// # Examples
///
/// ```
/// assert!(twolane::default_threads().unwrap() >= 1);
/// ```
pub fn default_threads() -> Result<usize, BuildError> {
    if let Some(value) = std::env::var_os(VARIABLE) {
        return Ok(from_variable(&value.to_string_lossy())?);
    }
    let available = thread::available_parallelism().map_or(1, usize::from);
    let quota = Quota::below_cores().map(|quota| quota.cores);
    Ok(fit(available, quota).min(max()))
}

pub(crate) fn max() -> usize {
    rayon_core::max_num_threads()
}

fn from_variable(value: &str) -> Result<usize, BuildErrorKind> {
    match value.trim().parse() {
        Ok(threads) if (1..=max()).contains(&threads) => Ok(threads),
        _ => Err(BuildErrorKind::EnvThreads {
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
            let error = from_variable(bad).unwrap_err();
            let error = BuildError::from(error).to_string();
            let names = format!("TWOLANE_CPU_THREADS={bad:?}: ");
            assert!(error.starts_with(&names), "{error}");
        }
    }
}
