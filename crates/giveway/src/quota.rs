//! The CPU quota of this process's cgroup: `cpu.max` in version 2, `cpu.cfs_quota_us`
//! in version 1.
//!
//! The quota of a cgroup limits the group and all groups below it. So the tightest
//! quota on the way up counts. `/proc/self/cgroup` names the group. The hierarchies are
//! searched where systemd and container runtimes mount them, below `/sys/fs/cgroup`. In
//! a container, often only the container's own group is mounted there, while the name
//! starts further up. So folders that do not exist are skipped, and the quota of the
//! mount itself counts.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::platform;

/// A CPU quota: what the control group of this process may compute.
///
/// # Examples
///
/// ```
/// if let Some(quota) = giveway::Quota::below_cores() {
///     println!("{} cores, in periods of {:?}", quota.cores, quota.period);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quota {
    /// CPU time per wall-clock time.
    pub cores: f64,
    /// After which it is new.
    pub period: Duration,
}

impl Quota {
    /// The quota, if it is less than the cores that this process may run on: those of all
    /// its threads together. A larger quota cannot be used up.
    ///
    /// It reads some ten small files below `/proc` and `/sys/fs/cgroup`, and asks for the CPU mask
    /// of each thread.
    pub fn below_cores() -> Option<Self> {
        let cores = f64::from(platform::cores()?);
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::tightest(Path::new("/sys/fs/cgroup"), &groups).filter(|quota| quota.cores < cores)
    }

    /// The CPU time of one period, in seconds.
    pub(crate) fn of_a_period(self) -> f64 {
        self.cores * self.period.as_secs_f64()
    }

    /// `groups` has lines of the form "ID:CONTROLLERS:/PATH". In version 2 there are no
    /// controllers.
    fn tightest(top: &Path, groups: &str) -> Option<Self> {
        let mut found: Vec<Self> = Vec::new();
        for line in groups.lines() {
            let [_, controllers, group] = line.splitn(3, ':').collect::<Vec<_>>()[..] else {
                continue;
            };
            let mounts: &[&str] = match controllers {
                "" => &[""],
                list if list.split(',').any(|name| name == "cpu") => &["cpu,cpuacct", "cpu"],
                _ => &[],
            };
            for mount in mounts.iter().map(|mount| top.join(mount)) {
                let folder = mount.join(group.trim_start_matches('/'));
                let upwards = folder.ancestors();
                let inside = upwards.take_while(|folder| folder.starts_with(&mount));
                found.extend(inside.filter_map(Self::of_folder));
            }
        }
        found.into_iter().min_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    fn of_folder(folder: &Path) -> Option<Self> {
        let text = |file| fs::read_to_string(folder.join(file)).ok();
        let of_version_1 = || Some(text("cpu.cfs_quota_us")? + " " + &text("cpu.cfs_period_us")?);
        // "100000 100000" in microseconds. Without a quota "max 100000", or "-1 100000".
        let both = text("cpu.max").or_else(of_version_1)?;
        let mut words = both.split_whitespace();
        let mut positive = || words.next()?.parse().ok().filter(|n: &u32| *n > 0);
        let (quota, period) = (positive()?, positive()?);
        Some(Self {
            cores: f64::from(quota) / f64::from(period),
            period: Duration::from_micros(period.into()),
        })
    }
}

/// Returns how many threads that compute suit this process: one for each core that the calling
/// thread may use, and no more than the [`Quota`], rounded up: with fewer, a part of it is paid for
/// and not used. With the pauses of a [`Throttle`](crate::Throttle) they leave something of it to
/// the others. At least 1.
///
/// # Examples
///
/// ```
/// assert!(giveway::worker_threads() >= 1);
/// ```
pub fn worker_threads() -> usize {
    // The standard library's number has the quota in it, rounded down.
    let available = match platform::own_cores().len() {
        0 => thread::available_parallelism().map_or(1, usize::from),
        own => own,
    };
    fit(available, Quota::below_cores().map(|quota| quota.cores))
}

fn fit(available: usize, quota: Option<f64>) -> usize {
    let left = quota.map_or(usize::MAX, |cores| cores.ceil() as usize);
    available.min(left).max(1)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder like `/sys/fs/cgroup`, which the drop removes.
    struct Top(PathBuf);

    impl Top {
        fn new(name: &str) -> Self {
            let process = std::process::id();
            Self(std::env::temp_dir().join(format!("giveway-quota-{name}-{process}")))
        }

        fn v2(&self, folder: &str, cpu_max: &str) -> &Self {
            let folder = self.0.join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpu.max"), format!("{cpu_max}\n")).unwrap();
            self
        }

        fn v1(&self, folder: &str, quota: &str) -> &Self {
            let folder = self.0.join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpu.cfs_quota_us"), format!("{quota}\n")).unwrap();
            fs::write(folder.join("cpu.cfs_period_us"), "100000\n").unwrap();
            self
        }

        fn cores(&self, groups: &str) -> Option<f64> {
            Quota::tightest(&self.0, groups).map(|quota| quota.cores)
        }
    }

    impl Drop for Top {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_tightest_of_a_group_and_all_above_counts_in_version_2() {
        let top = Top::new("v2");
        top.v2("a", "150000 100000").v2("a/b", "200000 100000");
        top.v2("a/b/c", "max 100000").v2("x", "10000 100000");
        assert_eq!(top.cores("0::/a/b/c\n"), Some(1.5));
        top.v2("a/b/c", "25000 50000");
        assert_eq!(top.cores("0::/a/b/c\n"), Some(0.5));
        let quota = Quota::tightest(&top.0, "0::/a/b/c\n").unwrap();
        assert_eq!(quota.period, Duration::from_millis(50));
    }

    #[test]
    fn the_tightest_of_a_group_and_all_above_counts_in_version_1() {
        for (mount, controllers) in [("cpu", "cpu"), ("cpu,cpuacct", "cpuacct,cpu")] {
            let top = Top::new(mount);
            let folder = |group| format!("{mount}{group}");
            top.v1(mount, "-1").v1(&folder("/a"), "150000");
            top.v1(&folder("/a/b"), "-1").v1(&folder("/x"), "10000");
            let groups = format!("9:name=systemd:/x\n4:cpuset:/x\n1:{controllers}:/a/b\n0::/x\n");
            assert_eq!(top.cores(&groups), Some(1.5));
            top.v1(&folder("/a/b"), "50000");
            assert_eq!(top.cores(&groups), Some(0.5));
        }
    }

    /// What a container sees if only its own group is mounted.
    #[test]
    fn a_mount_counts_where_the_group_is_not_found_in_it() {
        let top = Top::new("container");
        top.v2("", "150000 100000").v1("cpu", "50000");
        assert_eq!(top.cores("0::/docker/abc\n"), Some(1.5));
        assert_eq!(top.cores("1:cpu:/docker/abc\n"), Some(0.5));
        assert_eq!(top.cores("1:cpu:/docker/abc\n0::/docker/abc\n"), Some(0.5));
    }

    #[test]
    fn no_quota_is_none() {
        let top = Top::new("none");
        assert_eq!(top.cores("1:cpu:/a\n0::/a\n"), None);
        assert_eq!(top.cores("nonsense"), None);
        for none in ["max 100000", "0 100000", "100000 0", "100000", ""] {
            top.v2("a", none);
            assert_eq!(top.cores("0::/a\n"), None, "{none}");
        }
    }

    #[test]
    fn a_quota_is_rounded_up() {
        let cases = [
            (8, None, 8),
            (3, Some(4.0), 3),
            (4, Some(4.0), 4),
            (8, Some(3.5), 4),
            (4, Some(2.0), 2),
            (2, Some(1.5), 2),
            (2, Some(1.01), 2),
            (1, Some(1.25), 1),
            (1, Some(1.0), 1),
            (1, Some(0.1), 1),
        ];
        for (available, quota, threads) in cases {
            assert_eq!(fit(available, quota), threads, "{available} {quota:?}");
        }
    }
}
