//! How late an echo over loopback is while all cores compute: beside threads that compete with it,
//! and beside threads that give way.
//!
//! ```console
//! cargo run --release -p giveway --example echo
//! ```
//!
//! One thread sends a byte each 2 ms, and another one sends it back. Meanwhile a thread for each core
//! spins. The two ways of spinning alternate, in slices of a second.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use giveway::Weight;
use hdrhistogram::Histogram;

const ROUNDS: usize = 4;
const PINGS: u32 = 500;
const EVERY: Duration = Duration::from_millis(2);
/// What the answer takes, as that of most services does.
const WORK: Duration = Duration::from_micros(500);

fn main() -> io::Result<()> {
    giveway::start()?;
    let contenders = [
        ("threads that compete", Weight::raised_by(0)),
        (
            "threads that give way",
            Weight::raised_by(16).with_slice(Duration::from_millis(1)),
        ),
    ];
    let mut found = contenders.map(|_| Histogram::<u64>::new(3).expect("3 digits"));
    let mut computed = [0_u64; 2];
    let mut client = connect()?;
    for _ in 0..ROUNDS {
        for (n, (_, weight)) in contenders.iter().enumerate() {
            computed[n] += beside(*weight, || {
                let began = Instant::now();
                (1..=PINGS).try_for_each(|ping| {
                    let intended = began + EVERY * ping;
                    thread::sleep(intended.saturating_duration_since(Instant::now()));
                    client.write_all(&[1])?;
                    client.read_exact(&mut [0])?;
                    found[n].saturating_record(intended.elapsed().as_micros() as u64);
                    io::Result::Ok(())
                })
            })?;
        }
    }
    println!("echo, from when it was due, ms   p50     p99   p99.9   computed");
    for (n, (name, _)) in contenders.iter().enumerate() {
        let [p50, p99, p999] =
            [50.0, 99.0, 99.9].map(|p| found[n].value_at_percentile(p) as f64 / 1e3);
        let work = computed[n] as f64 / computed[0] as f64;
        println!("{name:27} {p50:6.2}  {p99:6.2}  {p999:6.2}     {work:6.2}");
    }
    Ok(())
}

/// A connection to a thread that sends back what it gets.
fn connect() -> io::Result<TcpStream> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(server.local_addr()?)?;
    let (mut echo, _) = server.accept()?;
    for end in [&client, &echo] {
        end.set_nodelay(true)?;
    }
    thread::spawn(move || {
        let mut byte = [0];
        while echo.read_exact(&mut byte).is_ok() {
            let began = Instant::now();
            while began.elapsed() < WORK {
                std::hint::spin_loop();
            }
            if echo.write_all(&byte).is_err() {
                break;
            }
        }
    });
    Ok(client)
}

/// Runs `f` beside a spinning thread of that weight for each core. Returns how often they have spun.
fn beside(weight: Weight, f: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
    let cores = giveway::worker_threads();
    let (is_over, begun) = (&AtomicBool::new(false), &Barrier::new(cores + 1));
    thread::scope(|scope| {
        let spin = move || {
            let applied = weight.apply();
            begun.wait();
            applied?;
            let mut spins = 0;
            while !is_over.load(Relaxed) {
                (0..1_000).for_each(|n| _ = std::hint::black_box(n));
                spins += 1;
            }
            io::Result::Ok(spins)
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(spin)).collect();
        begun.wait();
        let result = f();
        is_over.store(true, Relaxed);
        let spins = threads.into_iter().map(|it| it.join().expect("it spins"));
        let spins = spins.sum::<io::Result<u64>>();
        result.and(spins)
    })
}
