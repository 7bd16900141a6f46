//! The client: a plain thread with a blocking socket, so that no runtime under test
//! has a part in the timing, on a schedule that is fixed before.
//!
//! It sends one request at a time on one connection. While an answer is late the next requests are
//! late too; the client sends them one after the other as soon as the answer is there. A latency
//! counted from the actual send forgets that (it tells how long the server takes), one from the
//! intended time does not (it tells what a user of that moment sees). Both are kept.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Handle;

use crate::findings::empty_histogram;
use crate::{Column, Ratio, Report, Sample, cores, cpu_time};

use super::echo::{EchoLane, MESSAGE};
use super::lanes::Lane;
use super::load::Load;
use super::work::Work;
use super::{WARM_UP, sleep_until};

/// Often enough for a tail in a minute (30,000 requests), seldom enough that
/// the I/O lane is idle in between.
pub const EVERY: Duration = Duration::from_millis(2);

/// How long after the slice a last answer is waited for.
const GRACE: Duration = Duration::from_secs(5);
/// How long one `read` may wait before the clock is looked at.
const PATIENCE: Duration = Duration::from_millis(250);

/// When requests are meant to be sent, and which of them count.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    start: Instant,
    pub warm: Instant,
    pub end: Instant,
}

impl Schedule {
    pub fn starting(start: Instant, measured: Duration) -> Self {
        let warm = start + WARM_UP;
        Self {
            start,
            warm,
            end: warm + measured,
        }
    }

    /// The `k`-th intended time, if it is in the slice.
    fn intended(&self, k: u32) -> Option<Instant> {
        Some(self.start + EVERY * k).filter(|intended| *intended < self.end)
    }
}

/// Nanoseconds.
pub struct Latencies {
    /// Of the requests *sent* after the warm-up.
    pub from_send: Histogram<u64>,
    /// Of the requests *due* after the warm-up, including the missed ones.
    pub from_intended: Histogram<u64>,
    /// Due, but not sent before the slice was over, since answers to earlier
    /// ones were that late. `from_intended` has the time from when they were
    /// due to the end of the slice: less than it would have been.
    pub missed: u64,
    /// Sent, and given up on: in both histograms, with less than it would have been.
    pub unanswered: u64,
}

impl Latencies {
    pub fn none() -> Self {
        Self {
            from_send: empty_histogram(),
            from_intended: empty_histogram(),
            missed: 0,
            unanswered: 0,
        }
    }

    pub fn sample(self) -> Sample {
        let mut sample = Sample::default();
        sample.put("requests", "", self.from_send.len() as f64);
        let over = self.from_send.count_between(1_000_000, u64::MAX);
        sample.put("over_1_ms", "", over as f64);
        sample.put("missed", "", (self.missed + self.unanswered) as f64);
        sample.put_latencies("from_send", self.from_send);
        sample.put_latencies("from_intended", self.from_intended);
        sample
    }
}

fn record(histogram: &mut Histogram<u64>, from: Instant, to: Instant) {
    histogram.saturating_record(to.saturating_duration_since(from).as_nanos() as u64);
}

pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, GRACE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(GRACE))?;
    Ok(stream)
}

/// Asks the echo at `address` for so long. `jobs` says how many jobs have been computed, and when
/// that was.
pub fn slice(
    address: SocketAddr,
    measured: Duration,
    mut jobs: impl FnMut() -> (u64, Duration),
) -> Sample {
    let stream = connect(address).unwrap();
    let schedule = Schedule::starting(Instant::now(), measured);
    let client = thread::spawn(move || ask(stream, schedule));
    sleep_until(schedule.warm);
    let ((before, from), cpu) = (jobs(), cpu_time::of_process());
    sleep_until(schedule.end);
    let ((after, to), cpu) = (jobs(), cpu_time::of_process() - cpu);
    let mut sample = client.join().unwrap().unwrap().sample();
    sample.put("cpu", "cores", cpu.as_secs_f64() / measured.as_secs_f64());
    if after > 0 {
        let per_s = (after - before) as f64 / (to - from).as_secs_f64();
        sample.put("jobs_per_s", "1/s", per_s);
    }
    sample
}

/// Such a slice of a lane on a fresh I/O runtime, or of none.
pub fn slice_of(open: impl FnOnce(&Handle) -> Option<Lane>, work: Work, time: Duration) -> Sample {
    let io = EchoLane::start(cores());
    let load = open(io.handle()).map(|lane| Load::start(lane, work));
    let start = Instant::now();
    let completed = || load.as_ref().map_or(0, Load::completed);
    let sample = slice(io.address(), time, || (completed(), start.elapsed()));
    if let Some(load) = load {
        load.stop();
    }
    sample
}

/// The columns of such slices.
pub const COLUMNS: [Column; 9] = [
    Column::sum("requests", "requests"),
    Column::sum("missed", "missed"),
    Column::pooled("p50", "from_send", 0.5),
    Column::pooled("p99", "from_send", 0.99),
    Column::pooled("p99.9", "from_send", 0.999),
    Column::spread("p99.9 of a slice", "from_send_p999"),
    Column::pooled("max", "from_send", 1.0),
    Column::pooled("p99.9, intended", "from_intended", 0.999),
    Column::median("jobs/s", "jobs_per_s"),
];

/// The ratio of two contenders' `p99` or `p999`, from the send and from when it was intended; of
/// the rounds, and of all rounds in one.
pub fn ratios(report: &Report, name: &str, p: &str, over: &str, under: &str) {
    let q = if p == "p99" { 0.99 } else { 0.999 };
    for (latencies, suffix) in [("from_send", ""), ("from_intended", "_intended")] {
        let metric = format!("{latencies}_{p}");
        report.ratio(format!("{name}{suffix}"), &metric, over, under);
        let [over, under] = [over, under].map(|one| report.found.pooled_ms(one, latencies, q));
        report.put(format!("{name}{suffix}_pooled"), Ratio::once(over / under));
    }
}

/// Sends what the schedule says, until it ends.
pub fn ask(mut stream: TcpStream, schedule: Schedule) -> io::Result<Latencies> {
    let mut found = Latencies::none();
    let mut k = 0;
    while let Some(intended) = schedule.intended(k) {
        sleep_until(intended);
        let sent = Instant::now();
        if sent >= schedule.end {
            break;
        }
        let answered = round_trip(&mut stream, k, schedule.end + GRACE)?;
        let seen = answered.unwrap_or_else(Instant::now);
        if sent >= schedule.warm {
            record(&mut found.from_send, sent, seen);
        }
        if intended >= schedule.warm {
            record(&mut found.from_intended, intended, seen);
        }
        k += 1;
        if answered.is_none() {
            found.unanswered = 1;
            break;
        }
    }
    while let Some(intended) = schedule.intended(k) {
        if intended >= schedule.warm {
            record(&mut found.from_intended, intended, schedule.end);
            found.missed += 1;
        }
        k += 1;
    }
    Ok(found)
}

/// When the answer was here; `None` if it was not by `deadline`.
fn round_trip(stream: &mut TcpStream, k: u32, deadline: Instant) -> io::Result<Option<Instant>> {
    let mut request = [0; MESSAGE];
    request[..4].copy_from_slice(&k.to_le_bytes());
    stream.write_all(&request)?;

    let mut answer = [0; MESSAGE];
    let mut filled = 0;
    while filled < MESSAGE {
        match stream.read(&mut answer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if Instant::now() >= deadline {
                    return Ok(None);
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let seen = Instant::now();
    assert_eq!(answer, request, "an answer to another request");
    Ok(Some(seen))
}
