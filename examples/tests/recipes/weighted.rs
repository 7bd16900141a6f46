//! `weights`: which nice values do the threads of three runtimes have?

use crate::support::time_limit;
use crate::weights::Runtimes;

/// That of the calling thread, as the kernel tells it.
fn my_nice() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The fields after the name, which may hold spaces, begin with the third.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(19 - 3).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn each_runtime_has_its_own() {
    let _limit = time_limit();
    let base = my_nice();
    let runtimes = Runtimes::start().unwrap();
    let of = [
        (&runtimes.service, 0),
        (&runtimes.queries, 8),
        (&runtimes.compaction, 16),
    ];
    for (runtime, raised_by) in of {
        let expected = (base + raised_by).min(19);
        let worker = runtime.spawn(async { my_nice() });
        let blocking = runtime.spawn_blocking(my_nice);
        let found = runtime.block_on(async { (worker.await.unwrap(), blocking.await.unwrap()) });
        assert_eq!(found, (expected, expected));
        // One that a task of this runtime starts.
        let nested = runtime.spawn(async { tokio::task::spawn_blocking(my_nice).await.unwrap() });
        assert_eq!(runtime.block_on(nested).unwrap(), expected);
        // They do I/O.
        let bind = runtime.spawn(tokio::net::TcpListener::bind("127.0.0.1:0"));
        assert!(runtime.block_on(bind).unwrap().is_ok());
    }
}
