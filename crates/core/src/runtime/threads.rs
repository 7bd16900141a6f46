//! The settings of the threads: their number, names, stacks and hooks.

use std::sync::Arc;

use super::Builder;
use crate::build_error::BuildError;
use crate::lane::ThreadSettings;
use crate::priority::Priority;

/// Below this a thread of the lane, and not a job, would need more.
const MIN_STACK_SIZE: usize = 64 << 10;

impl Builder {
    /// Sets the number of threads of each [`Priority`](crate::Priority).
    ///
    /// Each priority has its own: those of `Normal` start with the lane, and those of another one with
    /// its first job. So there are up to three times as many. (`High` also starts when it is needed to
    /// run [short jobs](Self::short_jobs_first).) Default: [`CpuRuntime::default_threads`](crate::CpuRuntime::default_threads), one per core, or fewer
    /// under a CPU quota. This setting takes precedence over the environment variable
    /// `TWOLANE_CPU_THREADS`.
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().worker_threads(1);
    /// ```
    pub fn worker_threads(mut self, threads: usize) -> Self {
        self.threads = [Some(threads); Priority::ALL.len()];
        self
    }

    /// Sets the number of threads of one priority, after a
    /// [`worker_threads`](Self::worker_threads) that sets those of all.
    ///
    /// For a priority that should never have all cores: a third of them for small tasks, one for what
    /// may wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::{CpuRuntime, Priority};
    /// let settings = CpuRuntime::builder().worker_threads(8).worker_threads_at(Priority::Low, 2);
    /// ```
    pub fn worker_threads_at(mut self, priority: Priority, threads: usize) -> Self {
        self.threads[priority.index()] = Some(threads);
        self
    }

    /// Sets the name of the threads. Default: `twolane`.
    ///
    /// The threads of [`Priority::Normal`](crate::Priority::Normal) are called `NAME-0`, `NAME-1`,
    /// ..., those of the other priorities `NAME-high-0` and `NAME-low-0`, ..., and the control
    /// thread `NAME-control`. Two short-lived ones are `NAME-launcher`, which starts the others,
    /// and `NAME-reaper`, which drops what closed jobs have captured. Linux shows the first 15
    /// bytes.
    ///
    /// The threads `giveway-starter`, `twolane-ticker`, `giveway-ticker` and `giveway-tick` belong to
    /// the process, not to a lane. The starter and the control thread sleep unless they have
    /// something to do. `twolane-ticker` sleeps unless a future runs or closures are queued. The
    /// others are there on Linux 6.12 and later, `giveway-tick` once for each core and only while
    /// jobs come and go, or compute on a lazy kernel ([`giveway::tick_each`]).
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().thread_name("query");
    /// ```
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Sets the size of the stack of each thread that runs jobs, in bytes, for deep recursion.
    ///
    /// It is at least 64 KiB. Default: that of the standard library, 2 MiB, which the environment
    /// variable `RUST_MIN_STACK` changes. The memory is reserved, and in use once a job has
    /// touched it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// fn depth(n: u32) -> u32 {
    ///     let frame = std::hint::black_box([n; 256]); // 1 KiB
    ///     if n == 0 { 0 } else { 1 + depth(frame[0] - 1) }
    /// }
    /// let lane = twolane::CpuRuntime::builder().thread_stack_size(64 << 20);
    /// let cpu = lane.build().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| depth(10_000)).await.unwrap(), 10_000); // too deep for 2 MiB
    /// # }
    /// ```
    pub fn thread_stack_size(mut self, bytes: usize) -> Self {
        self.settings.stack_size = Some(bytes);
        self
    }

    /// Adds a hook that each computing thread of the lane runs when it starts.
    ///
    /// The threads of every priority run it, and
    /// [`Handle::current`](crate::Handle::current) tells which one that is. It runs after twolane's own preparations (the
    /// nice value is set) and before any job. All hooks run, in the order in which they
    /// were added. The lane logs a panic of a hook, and the thread goes on. For the end of a thread,
    /// leave a value in a `thread_local!`: its destructor runs then, and a
    /// [`shutdown`](crate::CpuRuntime::shutdown) waits for it.
    ///
    /// The threads of the lane's own Tokio runtime run it too, if that is used
    /// ([`tokio_handle`](crate::Handle::tokio_handle)), and so do those of its blocking pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().on_thread_start(|| println!("hello"));
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.settings.start_hooks.push(Arc::new(hook));
        self
    }

    /// Changes the settings of the lane's own Tokio runtime
    /// ([`tokio_handle`](crate::Handle::tokio_handle), [`in_cpu_context`](crate::in_cpu_context)) before
    /// it starts. Each priority that uses one calls `set` once.
    ///
    /// - `enable_io`, for an engine that does I/O where it computes and cannot wrap each of its clients yet:
    ///   sockets work there then. A response waits there until a thread has time for it. So does
    ///   everybody else who uses the same client (`twolane::guide::stall`).
    /// - `max_blocking_threads`: Tokio's default is 512.
    ///
    /// The lane sets the number of threads, their names, and the hooks for their start, their stop and
    /// their unpark after `set`, which must not ask for that runtime itself: that panics. It sets timers, the stack and the event interval before.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use tokio::net::TcpListener;
    /// use twolane::{CpuRuntime, in_cpu_context};
    /// let lane = CpuRuntime::builder().tokio_runtime(|tokio| _ = tokio.enable_io());
    /// let cpu = lane.build().unwrap();
    /// let binds = in_cpu_context(async { TcpListener::bind("127.0.0.1:0").await });
    /// assert!(cpu.spawn(binds).await?.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn tokio_runtime(
        mut self,
        set: impl Fn(&mut tokio::runtime::Builder) + Send + Sync + 'static,
    ) -> Self {
        self.settings.set_tokio = Some(Box::new(set));
        self
    }
}

/// Returns the number of threads of each priority.
pub(super) fn check(
    asked: [Option<usize>; Priority::ALL.len()],
    settings: &ThreadSettings,
) -> Result<[usize; Priority::ALL.len()], BuildError> {
    let name = &settings.name;
    BuildError::unless(!name.contains('\0'), || {
        format!("Builder::thread_name({name:?}): a thread's name cannot hold a NUL byte")
    })?;
    let stack_size = settings.stack_size.unwrap_or(MIN_STACK_SIZE);
    BuildError::unless(stack_size >= MIN_STACK_SIZE, || {
        format!(
            "Builder::thread_stack_size({stack_size}): a stack takes at least {MIN_STACK_SIZE} \
             bytes; leave it out for the default of the standard library"
        )
    })?;
    let is_missing = asked.iter().any(Option::is_none);
    let default = is_missing.then(default_threads).transpose()?;
    let number = |priority: Priority| match asked[priority.index()] {
        None => Ok(default.unwrap_or(1)),
        Some(n) => {
            let setting = format!("Builder::worker_threads({n}), of {priority:?}");
            check_number(Some(n), &setting, "leave it out")
        }
    };
    let [high, normal, low] = Priority::ALL.map(number);
    Ok([high?, normal?, low?])
}

/// See [`CpuRuntime::default_threads`](crate::CpuRuntime::default_threads).
pub(super) fn default_threads() -> Result<usize, BuildError> {
    if let Some(value) = std::env::var_os("TWOLANE_CPU_THREADS") {
        let value = value.to_string_lossy();
        let setting = format!("TWOLANE_CPU_THREADS={value:?}");
        return check_number(value.trim().parse().ok(), &setting, "unset the variable");
    }
    Ok(giveway::worker_threads().min(rayon_core::max_num_threads()))
}

/// `threads`, if a lane may have so many, and they are a number at all.
fn check_number(threads: Option<usize>, what: &str, remedy: &str) -> Result<usize, BuildError> {
    let max = rayon_core::max_num_threads();
    let valid = threads.filter(|threads| (1..=max).contains(threads));
    valid.ok_or_else(|| {
        BuildError::new(format!(
            "{what}: the CPU lane takes 1 to {max} threads; {remedy} for one per core"
        ))
    })
}
