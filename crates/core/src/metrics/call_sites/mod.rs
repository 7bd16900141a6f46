//! [`CallSites`]: what the jobs of each call site cost, and whether that is worth an
//! offload.

mod table;

use std::ops::Deref;
use std::time::Duration;
use std::{fmt, vec};

use super::KeyUsage;
use crate::priority::Priority;
use stallwatch::escaped;
pub(crate) use table::{Running, Sample, Sites};

/// What the jobs of one call site and [`Priority`] cost.
///
/// [`Handle::call_sites`](crate::Handle::call_sites) returns it. A *run* is what a thread
/// does in one go: a closure, one poll of a future, one slice of a worker of an
/// `OnCpu` stream. So the run time of a future is that of a poll, and a
/// future that is polled often has many runs. It is real time: on a busy machine it
/// includes the time for which the thread had no core.
///
/// `jobs` is exact. The times are from samples: the first runs, all runs of a site whose runs take
/// a millisecond, all runs where the priority has a [`max_wait`](crate::Builder::max_wait), and of the
/// others one in 32, chosen as if by chance.
///
/// A site takes 1.3 KB of memory.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let sums = cpu.handle().with_name("sums");
/// for n in 0..40_u64 {
///     sums.spawn_cpu(move || (0..n).sum::<u64>()).await.unwrap();
/// }
/// let sites = cpu.handle().call_sites();
/// let sums = sites.iter().find(|site| site.site == "sums").unwrap();
/// assert_eq!(sums.jobs, 40);
/// println!("{:?} in all, {:?} a run", sums.total_run, sums.run_mean);
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallSite {
    /// Where the jobs were submitted, as `src/main.rs:42`, or the
    /// [name](crate::Handle::with_name) of the handle (of which 256 bytes are kept).
    pub site: String,
    /// The priority of the jobs. The same site may be there at another one too.
    pub priority: Priority,
    /// Jobs that the lane has accepted, and closures passed to
    /// [`install`](crate::Handle::install).
    pub jobs: u64,
    /// Runs under way now, each of which keeps a thread. Those of
    /// [`install`](crate::Handle::install) are not in it, nor those of a job that is polled
    /// [`in_cpu_context`](crate::in_cpu_context).
    pub running: u64,
    /// How long the longest of them has lasted. `None` if there is none. Of a site whose runs
    /// take less than a millisecond most are not timed: such a run counts from the first call of
    /// `call_sites` that finds it.
    pub running_for: Option<Duration>,
    /// Runs that were timed.
    pub samples: u64,
    /// How long all runs took together, estimated from the samples.
    pub total_run: Duration,
    /// How long a run takes on average. `None` if none was timed.
    pub run_mean: Option<Duration>,
}

/// The call sites of a lane, those that took most time first.
///
/// [`Handle::call_sites`](crate::Handle::call_sites) returns it. It is a slice of
/// [`CallSite`], and `Display` writes it as a table.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// cpu.spawn_cpu(|| 6 * 7).await.unwrap();
/// println!("{}", cpu.handle().call_sites());
/// for site in cpu.handle().call_sites() {
///     println!("{}: {:?} a run", site.site, site.run_mean);
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CallSites {
    sites: Vec<CallSite>,
    keys: Vec<KeyUsage>,
}

impl CallSites {
    pub(crate) fn new(mut sites: Vec<CallSite>, keys: Vec<KeyUsage>) -> Self {
        sites.sort_by(|a, b| (b.total_run, &a.site).cmp(&(a.total_run, &b.site)));
        Self { sites, keys }
    }

    /// The 32 [keys](crate::Key) of each priority that have computed most, by that. Names of keys are
    /// labels without a bound, so export these few.
    ///
    /// They are of when [`call_sites`](crate::Handle::call_sites) was called.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let acme = cpu.handle().with_key("acme");
    /// acme.spawn_cpu(|| (0..100_000_u64).sum::<u64>()).await.unwrap();
    /// for usage in cpu.handle().call_sites().keys() {
    ///     println!("{}: {:?}, {} queued", usage.key, usage.computed, usage.queued);
    /// }
    /// # }
    /// ```
    pub fn keys(&self) -> &[KeyUsage] {
        &self.keys
    }
}

impl Deref for CallSites {
    type Target = [CallSite];

    fn deref(&self) -> &[CallSite] {
        &self.sites
    }
}

impl IntoIterator for CallSites {
    type Item = CallSite;
    type IntoIter = vec::IntoIter<CallSite>;

    fn into_iter(self) -> Self::IntoIter {
        self.sites.into_iter()
    }
}

impl<'a> IntoIterator for &'a CallSites {
    type Item = &'a CallSite;
    type IntoIter = std::slice::Iter<'a, CallSite>;

    fn into_iter(self) -> Self::IntoIter {
        self.sites.iter()
    }
}

/// A table: a line for each site, after one with the names of the columns. Control characters
/// in names are escaped.
impl fmt::Display for CallSites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.sites.iter().map(|site| escaped(&site.site)).collect();
        let widths = names.iter().map(|name| name.chars().count());
        let width = widths.chain([4]).max().unwrap_or_default();
        writeln!(
            f,
            "{:width$}  priority       jobs   running       for    run in all      mean",
            "site"
        )?;
        let short = |time: Option<Duration>| time.map_or("-".to_owned(), |t| format!("{t:.1?}"));
        for (site, name) in self.sites.iter().zip(names) {
            write!(f, "{name:width$}  ")?;
            write!(f, "{:8} {:>10} ", format!("{:?}", site.priority), site.jobs)?;
            write!(f, "{:>9} {:>9} ", site.running, short(site.running_for))?;
            let total = format!("~{:.1?}", site.total_run);
            writeln!(f, "{total:>13} {:>9}", short(site.run_mean))?;
        }
        Ok(())
    }
}
