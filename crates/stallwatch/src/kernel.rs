//! What another thread of this process does, as the kernel says: whether it computes or
//! waits, and where. Files below `/proc/self/task`, which need no privilege.
//!
//! Elsewhere than on Linux there is nothing to read. That is not the same as a file that cannot be
//! opened now: a process may be out of descriptors for a while.

use std::fs::File;
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::io::{self, Read, Seek};
use std::str::FromStr;
use std::time::Duration;

/// How a thread has spent its time since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) on_cpu: Duration,
    /// Ready to run, and without a core: others had it, or the cgroup was throttled.
    pub(crate) queued: Duration,
    /// How often it got a core.
    pub(crate) slices: u64,
    /// In polls with names, as its record says. 0 if it was not asked.
    pub(crate) named: Duration,
    /// Not the thread's, but [`Stolen`](crate::stolen::Stolen). 0 if it was not asked.
    pub(crate) stolen: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Runs,
    /// In this system call; in none (a page fault), or in one without a name here.
    Waits(Option<&'static str>),
}

impl Doing {
    /// A worker waits so for the events of sockets.
    pub(crate) fn is_in_epoll(&self) -> bool {
        matches!(self, Self::Waits(Some(call)) if call.starts_with("epoll_"))
    }

    /// A worker of Tokio that has nothing to do waits so. So may a thread that waits for a
    /// lock.
    pub(crate) fn may_be_parked(&self) -> bool {
        *self == Self::Waits(Some("futex")) || self.is_in_epoll()
    }
}

/// The files of one thread. The kernel may give the number of a thread that has ended
/// to a new one, so the owner drops them with the thread.
#[derive(Debug)]
pub(crate) struct ThreadFiles {
    schedstat: File,
    state: State,
}

#[derive(Debug)]
enum State {
    Syscall(File),
    /// Where the other is forbidden: to a process that has changed its user.
    Stat(File),
}

impl ThreadFiles {
    pub(crate) fn open(thread: u32) -> io::Result<Self> {
        let open = |file| File::open(format!("/proc/self/task/{thread}/{file}"));
        let state = match open("syscall") {
            Ok(file) => State::Syscall(file),
            Err(_) => State::Stat(open("stat")?),
        };
        let schedstat = open("schedstat")?;
        Ok(Self { schedstat, state })
    }

    pub(crate) fn times(&self) -> Option<Times> {
        read(&self.schedstat, parse_schedstat)
    }

    pub(crate) fn doing(&self) -> Option<Doing> {
        match &self.state {
            State::Syscall(file) => read(file, parse_syscall),
            State::Stat(file) => read(file, parse_stat),
        }
    }
}

/// The kernel writes these files anew for each reader that begins.
fn read<T>(mut file: &File, parse: fn(&str) -> Option<T>) -> Option<T> {
    let mut text = [0; 1024];
    file.rewind().ok()?;
    let length = file.read(&mut text).ok()?;
    parse(std::str::from_utf8(&text[..length]).ok()?)
}

/// Nanoseconds on a core, nanoseconds in the queue for one, how often it got one. All
/// are 0 in a kernel that does not count them.
fn parse_schedstat(text: &str) -> Option<Times> {
    let mut numbers = text.split_ascii_whitespace().map(u64::from_str);
    let times = Times {
        on_cpu: Duration::from_nanos(numbers.next()?.ok()?),
        queued: Duration::from_nanos(numbers.next()?.ok()?),
        slices: numbers.next()?.ok()?,
        ..Times::default()
    };
    (times.slices > 0).then_some(times)
}

/// `4711 (name) S ..`, where the name may contain anything.
fn parse_stat(text: &str) -> Option<Doing> {
    let (_, after) = text.rsplit_once(") ")?;
    Some(match after.starts_with('R') {
        true => Doing::Runs,
        false => Doing::Waits(None),
    })
}

/// `running`, or the number of the call and its arguments, or -1 outside of a call.
fn parse_syscall(text: &str) -> Option<Doing> {
    let first = text.split_ascii_whitespace().next()?;
    Some(match first {
        "running" => Doing::Runs,
        number => Doing::Waits(usize::from_str(number).ok().and_then(name_of)),
    })
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "aarch64", target_arch = "x86_64")
))]
fn name_of(number: usize) -> Option<&'static str> {
    syscalls::Sysno::new(number).map(|call| call.name())
}
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "aarch64", target_arch = "x86_64")
)))]
fn name_of(_number: usize) -> Option<&'static str> {
    None
}

const OWN_TIMES: &str = "/proc/thread-self/schedstat";

/// Of the thread that calls this.
pub(crate) fn own_times() -> Option<Times> {
    read(&File::open(OWN_TIMES).ok()?, parse_schedstat)
}

/// Whether the kernel tells times: if so, and there are none, they could not be read.
pub(crate) fn tells_times() -> bool {
    match File::open(OWN_TIMES) {
        Ok(file) => read(&file, parse_schedstat).is_some(),
        Err(error) => !matches!(error.kind(), NotFound | PermissionDenied),
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn thread_id() -> Option<u32> {
    u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).ok()
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_id() -> Option<u32> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let times = parse_schedstat("5 7 2\n").unwrap();
        let (on_cpu, queued) = (Duration::from_nanos(5), Duration::from_nanos(7));
        assert_eq!(
            times,
            Times {
                on_cpu,
                queued,
                slices: 2,
                ..Times::default()
            }
        );
        assert_eq!(parse_schedstat("0 0 0\n"), None);
        let waits = |call| Some(Doing::Waits(call));
        assert_eq!(parse_stat("7 (a) S b) R 1"), Some(Doing::Runs));
        assert_eq!(parse_stat("7 (a) S b) D 1"), waits(None));
        assert_eq!(parse_syscall("running\n"), Some(Doing::Runs));
        assert_eq!(parse_syscall("-1 0x0 0x0"), waits(None));
        let read = format!("{} 0x0 0x0", syscalls::Sysno::read as usize);
        assert_eq!(parse_syscall(&read), waits(Some("read")));
        assert_eq!(parse_syscall("9999 0x0"), waits(None));
        assert_eq!(parse_syscall(""), None);
    }

    /// Until the thread says so, since it may still be on its way.
    fn wait_for(files: &ThreadFiles, is: impl Fn(&Doing) -> bool) {
        while !files.doing().is_some_and(|doing| is(&doing)) {
            thread::yield_now();
        }
    }

    #[test]
    fn another_thread_is_seen() {
        let (send, ids) = mpsc::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let thread = thread::spawn(move || {
            send.send(thread_id().unwrap()).unwrap();
            let _ = wait.recv();
            let mut reader = reader;
            std::io::Read::read(&mut reader, &mut [0]).unwrap()
        });
        let files = ThreadFiles::open(ids.recv().unwrap()).unwrap();
        wait_for(&files, Doing::may_be_parked);
        go_on.send(()).unwrap();
        wait_for(&files, |doing| *doing == Doing::Waits(Some("read")));
        let before = files.times().unwrap();
        assert!(before.slices > 0);
        std::io::Write::write_all(&mut writer, &[1]).unwrap();
        assert_eq!(thread.join().unwrap(), 1);
        // The kernel lets `join` return some moments before the thread is gone.
        while files.doing().is_some() {
            thread::yield_now();
        }
        assert_eq!(files.doing(), None, "the thread has ended");
    }
}
