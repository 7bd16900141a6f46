//! What another thread of this process does, as the kernel says: whether it computes or
//! waits, and where. Files below `/proc/self/task`, which need no privilege.
//!
//! Elsewhere than on Linux there is nothing to read.

use std::borrow::Cow;
use std::time::Duration;

/// How a thread has spent its time since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) on_cpu: Duration,
    /// Ready to run, and without a core: others had it, or the cgroup was throttled.
    pub(crate) queued: Duration,
    /// How often it got a core.
    pub(crate) slices: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Runs,
    /// In this system call, or in none (a page fault).
    Waits(Option<Cow<'static, str>>),
}

impl Doing {
    /// A worker of Tokio that has nothing to do waits so. So may a thread that waits for a
    /// lock.
    pub(crate) fn may_be_parked(&self) -> bool {
        let parks = ["futex", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
        matches!(self, Self::Waits(Some(call)) if parks.contains(&&**call))
    }
}

pub(crate) use platform::{ThreadFiles, give_way, thread_id};

#[cfg(target_os = "linux")]
mod platform {
    use std::borrow::Cow;
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;
    use std::str::FromStr;
    use std::time::Duration;

    use super::{Doing, Times};

    pub(crate) fn thread_id() -> Option<u32> {
        u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).ok()
    }

    /// Gives this thread the lowest nice value.
    pub(crate) fn give_way() {
        // Linux applies this call to the calling thread, not to its process. To lower one's own
        // is never refused.
        let _ = rustix::process::setpriority_process(None, 19);
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
    fn read<T>(file: &File, parse: fn(&str) -> Option<T>) -> Option<T> {
        let mut text = [0; 1024];
        let length = file.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }

    /// Nanoseconds on a core, nanoseconds in the queue for one, how often it got one. All
    /// are 0 in a kernel that does not count them.
    pub(super) fn parse_schedstat(text: &str) -> Option<Times> {
        let mut numbers = text.split_ascii_whitespace().map(u64::from_str);
        let times = Times {
            on_cpu: Duration::from_nanos(numbers.next()?.ok()?),
            queued: Duration::from_nanos(numbers.next()?.ok()?),
            slices: numbers.next()?.ok()?,
        };
        (times.slices > 0).then_some(times)
    }

    /// `4711 (name) S ..`, where the name may contain anything.
    pub(super) fn parse_stat(text: &str) -> Option<Doing> {
        let (_, after) = text.rsplit_once(") ")?;
        Some(match after.starts_with('R') {
            true => Doing::Runs,
            false => Doing::Waits(None),
        })
    }

    /// `running`, or the number of the call and its arguments, or -1 outside of a call.
    pub(super) fn parse_syscall(text: &str) -> Option<Doing> {
        let first = text.split_ascii_whitespace().next()?;
        if first == "running" {
            return Some(Doing::Runs);
        }
        let number = i64::from_str(first).ok()?;
        let call = (number >= 0).then(|| name_of(number));
        Some(Doing::Waits(call))
    }

    fn name_of(number: i64) -> Cow<'static, str> {
        let mut known = NAMES.iter().chain(NAMES_OF_X86);
        match known.find(|(of, _)| i64::from(*of as i32) == number) {
            Some(&(_, name)) => name.into(),
            None => format!("system call {number}").into(),
        }
    }

    macro_rules! calls {
        ($($name:ident = $number:ident),* $(,)?) => {
            [$((libc::$number, stringify!($name))),*]
        };
    }

    /// Those in which a thread may wait for long. Their numbers differ by architecture.
    static NAMES: &[(libc::c_long, &str)] = &calls! {
        read = SYS_read, write = SYS_write, readv = SYS_readv, writev = SYS_writev,
        pread64 = SYS_pread64, pwrite64 = SYS_pwrite64, preadv = SYS_preadv,
        pwritev = SYS_pwritev, openat = SYS_openat, close = SYS_close, fsync = SYS_fsync,
        fdatasync = SYS_fdatasync, sendfile = SYS_sendfile, connect = SYS_connect,
        accept4 = SYS_accept4, recvfrom = SYS_recvfrom, recvmsg = SYS_recvmsg,
        sendto = SYS_sendto, sendmsg = SYS_sendmsg, ppoll = SYS_ppoll,
        pselect6 = SYS_pselect6, epoll_pwait = SYS_epoll_pwait, futex = SYS_futex,
        nanosleep = SYS_nanosleep, clock_nanosleep = SYS_clock_nanosleep,
        wait4 = SYS_wait4, waitid = SYS_waitid, flock = SYS_flock,
        getdents64 = SYS_getdents64, statx = SYS_statx, io_uring_enter = SYS_io_uring_enter,
        epoll_pwait2 = SYS_epoll_pwait2,
    };

    /// Newer architectures lack these, and their libraries call others.
    #[cfg(target_arch = "x86_64")]
    static NAMES_OF_X86: &[(libc::c_long, &str)] = &calls! {
        open = SYS_open, poll = SYS_poll, select = SYS_select, epoll_wait = SYS_epoll_wait,
        stat = SYS_stat,
    };
    #[cfg(not(target_arch = "x86_64"))]
    static NAMES_OF_X86: &[(libc::c_long, &str)] = &[];
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;

    use super::{Doing, Times};

    pub(crate) fn thread_id() -> Option<u32> {
        None
    }

    pub(crate) fn give_way() {}

    #[derive(Debug)]
    pub(crate) struct ThreadFiles {}

    impl ThreadFiles {
        pub(crate) fn open(_thread: u32) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn times(&self) -> Option<Times> {
            None
        }

        pub(crate) fn doing(&self) -> Option<Doing> {
            None
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::platform::{parse_schedstat, parse_stat, parse_syscall};
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
                slices: 2
            }
        );
        assert_eq!(parse_schedstat("0 0 0\n"), None);
        let waits = |call: Option<&'static str>| Some(Doing::Waits(call.map(Into::into)));
        assert_eq!(parse_stat("7 (a) S b) R 1"), Some(Doing::Runs));
        assert_eq!(parse_stat("7 (a) S b) D 1"), waits(None));
        assert_eq!(parse_syscall("running\n"), Some(Doing::Runs));
        assert_eq!(parse_syscall("-1 0x0 0x0"), waits(None));
        let read = format!("{} 0x0 0x0", libc::SYS_read);
        assert_eq!(parse_syscall(&read), waits(Some("read")));
        assert_eq!(parse_syscall("9999 0x0"), waits(Some("system call 9999")));
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
        wait_for(&files, |doing| *doing == Doing::Waits(Some("read".into())));
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
