//! `/health`, as another process sees it: a plain thread that asks every 2 ms.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use twolane_benches::findings::empty_histogram;

const EVERY: Duration = Duration::from_millis(2);

/// A client that asks until it is stopped.
pub struct Client {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Histogram<u64>>>,
}

impl Client {
    pub fn start(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || ask(stream, &stopped));
        Ok(Self { stop, thread })
    }

    /// The nanoseconds from when each request was due to its answer.
    pub fn stop(self) -> io::Result<Histogram<u64>> {
        self.stop.store(true, SeqCst);
        self.thread.join().expect("the client does not panic")
    }
}

fn ask(stream: TcpStream, stopped: &AtomicBool) -> io::Result<Histogram<u64>> {
    let (mut latencies, start) = (empty_histogram(), Instant::now());
    let mut stream = BufReader::new(stream);
    for k in 0.. {
        // While an answer is late, the next requests are late too: they count from when they
        // were due.
        let due = start + EVERY * k;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if stopped.load(SeqCst) {
            break;
        }
        round_trip(&mut stream)?;
        latencies.saturating_record(due.elapsed().as_nanos() as u64);
    }
    Ok(latencies)
}

fn round_trip(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    stream
        .get_mut()
        .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("/health answers {line:?}")));
    }
    while line.trim() != "" {
        line.clear();
        stream.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    stream.read_exact(&mut vec![0; length])
}
