//! The CPU quota of this process's cgroup: `cpu.max` in version 2,
//! `cpu.cfs_quota_us` in version 1.
//!
//! A cgroup is bound by its own quota and by those of all above it, so the
//! tightest of them counts. Which folder is ours: `/proc/self/cgroup` names the
//! group, `/proc/self/mountinfo` where the hierarchy is mounted, and which part
//! of it. In a container it is often the container's own group that is mounted,
//! while the name begins elsewhere; so a mount in which our group can't be found
//! is believed to be that, but only if there is no other: some programs mount
//! the groups of strangers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quota {
    /// CPU time per time.
    pub(crate) cores: f64,
    pub(crate) period: Duration,
}

impl Quota {
    /// The quota, if it is less than the cores that this process may run on:
    /// another can't be used up.
    pub(crate) fn below_cores() -> Option<Self> {
        let cores = cores()? as f64;
        Self::of_this_process().filter(|quota| quota.cores < cores)
    }

    /// None where there is none, or none that can be read (also: not Linux).
    fn of_this_process() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::tightest(&groups, &mounts)
    }

    fn tightest(groups: &str, mounts: &str) -> Option<Self> {
        let mounts: Vec<_> = mounts.lines().filter_map(Mount::parse).collect();
        let of_version = |is_v2| {
            let mounts = mounts.iter().filter(|mount| mount.is_v2 == is_v2);
            let (ours, strange): (Vec<_>, Vec<_>) = mounts
                .filter_map(|mount| Some((mount, mount.group_of(groups)?)))
                .partition(|(mount, group)| Path::new(group).starts_with(&mount.root));
            if ours.is_empty() { strange } else { ours }
        };
        [true, false]
            .into_iter()
            .flat_map(of_version)
            .filter_map(|(mount, group)| mount.tightest_quota(group))
            .min_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    /// "100000 100000" or "max 100000".
    fn from_v2(cpu_max: &str) -> Option<Self> {
        let (quota, period) = cpu_max.trim().split_once(' ')?;
        Self::new(quota.parse().ok()?, period.parse().ok()?)
    }

    fn new(quota_us: u64, period_us: u64) -> Option<Self> {
        (quota_us > 0 && period_us > 0).then(|| Self {
            cores: quota_us as f64 / period_us as f64,
            period: Duration::from_micros(period_us),
        })
    }
}

/// How many cores this process may run on, whatever its quota.
#[cfg(target_os = "linux")]
fn cores() -> Option<u32> {
    let cores = rustix::thread::sched_getaffinity(None).ok()?;
    Some(cores.count())
}

#[cfg(not(target_os = "linux"))]
fn cores() -> Option<u32> {
    None
}

/// A mounted hierarchy with the CPU controller.
#[derive(Debug, PartialEq)]
struct Mount {
    is_v2: bool,
    /// What of the hierarchy is mounted, and where.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// A line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS [FIELDS] - TYPE
    /// SOURCE SUPER_OPTIONS".
    fn parse(line: &str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let kind = filesystem.next()?;
        let has_cpu = || filesystem.nth(1)?.split(',').find(|o| *o == "cpu");
        let is_v2 = match kind {
            "cgroup2" => true,
            "cgroup" if { has_cpu }().is_some() => false,
            _ => return None,
        };
        let mut mount = mount.split(' ').skip(3);
        Some(Self {
            is_v2,
            root: unescaped(mount.next()?),
            point: unescaped(mount.next()?),
        })
    }

    /// The group of this process in this hierarchy, from lines
    /// "ID:CONTROLLERS:/PATH", where version 2 has "0::/PATH".
    fn group_of<'g>(&self, groups: &'g str) -> Option<&'g str> {
        groups.lines().find_map(|line| {
            let (id, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_ours = if self.is_v2 {
                id == "0" && controllers.is_empty()
            } else {
                controllers.split(',').any(|c| c == "cpu")
            };
            is_ours.then_some(path)
        })
    }

    fn tightest_quota(&self, group: &str) -> Option<Quota> {
        self.folders(group)
            .iter()
            .filter_map(|folder| self.read(folder))
            .min_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    /// The group's folder and those above it, up to the mount's.
    fn folders(&self, group: &str) -> Vec<PathBuf> {
        let inside = Path::new(group)
            .strip_prefix(&self.root)
            .unwrap_or(Path::new(""));
        let mut folders: Vec<_> = inside
            .ancestors()
            .map(|part| self.point.join(part))
            .collect();
        // The last is the mount's own, with or without a slash at its end.
        folders.dedup();
        folders
    }

    fn read(&self, folder: &Path) -> Option<Quota> {
        let text = |file| fs::read_to_string(folder.join(file)).ok();
        if self.is_v2 {
            return Quota::from_v2(&text("cpu.max")?);
        }
        // -1 is no quota.
        let quota = text("cpu.cfs_quota_us")?.trim().parse().ok()?;
        let period = text("cpu.cfs_period_us")?.trim().parse().ok()?;
        Quota::new(quota, period)
    }
}

/// In mountinfo a space is `\040`, a tab `\011`, a newline `\012` and a
/// backslash `\134`.
fn unescaped(path: &str) -> PathBuf {
    let mut parts = path.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|n| u8::from_str_radix(n, 8).ok());
        match code {
            Some(code) => {
                text.push(code.into());
                text.push_str(&part[3..]);
            }
            None => {
                text.push('\\');
                text.push_str(part);
            }
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str =
        "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct";
    const V2: &str = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw";

    #[test]
    fn lines_of_both_versions_are_read() {
        let v1 = Mount::parse(V1).unwrap();
        assert_eq!(v1, mount(false, "/", "/sys/fs/cgroup/cpu,cpuacct"));
        let v2 = Mount::parse(V2).unwrap();
        assert_eq!(v2, mount(true, "/docker/abc", "/sys/fs/cgroup"));
        let spaced = V1.replace("/sys/fs", r"/my\040mounts\134x");
        let v1_elsewhere = mount(false, "/", r"/my mounts\x/cgroup/cpu,cpuacct");
        assert_eq!(Mount::parse(&spaced), Some(v1_elsewhere));
        let others = [
            "32 24 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
            "33 24 0:29 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755",
            "",
        ];
        for other in others {
            assert_eq!(Mount::parse(other), None, "{other}");
        }
        let groups = "4:memory:/m\n3:cpuacct,cpu:/a/b\n0::/docker/abc/job\n";
        assert_eq!(v1.group_of(groups), Some("/a/b"));
        assert_eq!(v2.group_of(groups), Some("/docker/abc/job"));
        assert_eq!(v1.group_of("0::/x\n"), None);
    }

    #[test]
    fn the_folders_end_where_the_mount_does() {
        let of = |line, group| -> Vec<String> {
            let folders = Mount::parse(line).unwrap().folders(group);
            let text = |p: &PathBuf| p.to_str().unwrap().trim_end_matches('/').to_owned();
            folders.iter().map(text).collect()
        };
        assert_eq!(
            of(V1, "/a/b"),
            [
                "/sys/fs/cgroup/cpu,cpuacct/a/b",
                "/sys/fs/cgroup/cpu,cpuacct/a",
                "/sys/fs/cgroup/cpu,cpuacct"
            ]
        );
        assert_eq!(
            of(V2, "/docker/abc/job"),
            ["/sys/fs/cgroup/job", "/sys/fs/cgroup"]
        );
        assert_eq!(of(V2, "/elsewhere"), ["/sys/fs/cgroup"]);
    }

    fn mount(is_v2: bool, root: &str, point: impl Into<PathBuf>) -> Mount {
        let (root, point) = (root.into(), point.into());
        Mount { is_v2, root, point }
    }

    /// A hierarchy of files, with a limit of 1.5 cores at its top (version 2),
    /// and 0.5 in `inner` (version 1); gone with this.
    struct Hierarchy(PathBuf);

    impl Hierarchy {
        fn new(name: &str) -> Self {
            let process = std::process::id();
            let top = std::env::temp_dir().join(format!("twolane-quota-{name}-{process}"));
            let inner = top.join("inner");
            fs::create_dir_all(&inner).unwrap();
            fs::write(top.join("cpu.max"), "150000 100000\n").unwrap();
            fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
            fs::write(top.join("cpu.cfs_quota_us"), "-1\n").unwrap();
            fs::write(inner.join("cpu.cfs_quota_us"), "50000\n").unwrap();
            fs::write(inner.join("cpu.cfs_period_us"), "100000\n").unwrap();
            Self(top)
        }
    }

    impl Drop for Hierarchy {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_tightest_quota_of_a_real_folder_counts() {
        let top = Hierarchy::new("real");
        let cores = |is_v2| {
            let mount = mount(is_v2, "/", &top.0);
            mount.tightest_quota("/inner").unwrap().cores
        };
        assert_eq!((cores(true), cores(false)), (1.5, 0.5));
    }

    /// Where several are mounted, ours is the one that has our group.
    #[test]
    fn a_stranger_s_group_is_not_ours() {
        let (ours, strange) = (Hierarchy::new("ours"), Hierarchy::new("strange"));
        let ours_has_none = ours.0.join("cpu.max");
        fs::write(ours_has_none, "max 100000\n").unwrap();
        let line = |root: &str, top: &Hierarchy| {
            let point = top.0.display();
            format!("30 23 0:26 {root} {point} ro - cgroup2 cgroup2 rw\n")
        };
        let cores = |mounts: &str| Quota::tightest("0::/\n", mounts).map(|quota| quota.cores);
        let strange = line("/other", &strange);
        assert_eq!(cores(&(line("/", &ours) + &strange)), None);
        // In a container it may be all that there is.
        assert_eq!(cores(&strange), Some(1.5));
    }

    #[test]
    fn no_quota_is_none() {
        assert_eq!(Quota::from_v2("max 100000"), None);
        assert_eq!(Quota::from_v2("0 100000"), None);
        assert_eq!(Quota::from_v2(""), None);
    }
}
