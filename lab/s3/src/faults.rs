//! A TCP proxy that does harm by plan: what networks and servers do to an
//! answer, at a byte of one's choice.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// What becomes of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing bad.
    None,
    /// It is reset when the request's first byte comes.
    Reset,
    /// `503 Slow Down`, and the server is not even asked.
    SlowDown,
    /// The answer goes no further than this.
    Cut(After, How),
}

/// So many bytes of the head of the connection's first answer, or of what
/// follows it: the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Head(usize),
    Body(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Fin,
    Reset,
    /// Silence, until the client goes.
    Stall,
}

/// What the proxy tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Struck(Fault),
    /// The client closed a connection, which had brought it so many bytes.
    ClientGone {
        sent: usize,
    },
}

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    events: mpsc::Receiver<Event>,
    runtime: Option<Runtime>,
}

struct Shared {
    upstream: SocketAddr,
    plan: Mutex<VecDeque<Fault>>,
    struck: AtomicUsize,
    connections: AtomicUsize,
}

impl Proxy {
    pub fn before(upstream: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("proxy")
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            upstream,
            plan: Mutex::default(),
            struck: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let (tell, events) = mpsc::channel();
        runtime.spawn(accept(listener, shared.clone(), tell));
        Self {
            address,
            shared,
            events,
            runtime: Some(runtime),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For the next connections, one each; those after them are left alone.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.shared.plan.lock().unwrap() = faults.into_iter().collect();
    }

    /// How many faults found their connection, and their byte.
    pub fn struck(&self) -> usize {
        self.shared.struck.load(SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// Waits until a fault strikes.
    pub fn wait_for_fault(&self) -> Fault {
        loop {
            if let Event::Struck(fault) = self.events.recv().unwrap() {
                return fault;
            }
        }
    }

    /// Waits until a client closes its connection; how much it had been sent.
    pub fn wait_for_leave(&self) -> usize {
        loop {
            if let Event::ClientGone { sent } = self.events.recv().unwrap() {
                return sent;
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tell: mpsc::Sender<Event>) {
    while let Ok((client, _)) = listener.accept().await {
        shared.connections.fetch_add(1, SeqCst);
        let fault = shared.plan.lock().unwrap().pop_front();
        let connection = Connection {
            client,
            fault: fault.unwrap_or(Fault::None),
            sent: 0,
            head: Head::default(),
            shared: shared.clone(),
            tell: tell.clone(),
        };
        // An error means that one of the two has closed it.
        tokio::spawn(async { drop(connection.serve().await) });
    }
}

struct Connection {
    client: TcpStream,
    fault: Fault,
    sent: usize,
    head: Head,
    shared: Arc<Shared>,
    tell: mpsc::Sender<Event>,
}

const SLOW_DOWN: &str = "<Error><Code>SlowDown</Code></Error>";

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        match self.fault {
            Fault::Reset => {
                self.client.read_exact(&mut [0]).await?;
                self.tell();
                self.strike(How::Reset).await
            }
            Fault::SlowDown => {
                let mut request = Head::default();
                let mut byte = [0];
                while request.end.is_none() {
                    self.client.read_exact(&mut byte).await?;
                    request.look(&byte);
                }
                let answer = format!(
                    "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{SLOW_DOWN}",
                    SLOW_DOWN.len()
                );
                self.tell();
                self.client.write_all(answer.as_bytes()).await?;
                self.strike(How::Fin).await
            }
            Fault::None | Fault::Cut(..) => self.forward().await,
        }
    }

    async fn forward(mut self) -> io::Result<()> {
        let mut server = TcpStream::connect(self.shared.upstream).await?;
        server.set_nodelay(true)?;
        self.client.set_nodelay(true)?;
        let (mut request, mut answer) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        loop {
            tokio::select! {
                read = self.client.read(&mut request) => match read {
                    Ok(0) | Err(_) => return self.client_is_gone(),
                    Ok(read) => server.write_all(&request[..read]).await?,
                },
                read = server.read(&mut answer) => {
                    let read = read?;
                    if read == 0 {
                        return self.client.shutdown().await;
                    }
                    self.head.look(&answer[..read]);
                    let end = self.end().unwrap_or(usize::MAX).saturating_sub(self.sent);
                    let part = &answer[..read.min(end)];
                    if end <= read {
                        self.tell();
                    }
                    if self.client.write_all(part).await.is_err() {
                        return self.client_is_gone();
                    }
                    self.sent += part.len();
                    if let (true, Fault::Cut(_, how)) = (end <= read, self.fault) {
                        return self.strike(how).await;
                    }
                }
            }
        }
    }

    /// How much of the answer goes over, as far as is known.
    fn end(&self) -> Option<usize> {
        match self.fault {
            Fault::Cut(After::Head(bytes), _) => Some(bytes),
            Fault::Cut(After::Body(bytes), _) => self.head.end.map(|head| head + bytes),
            _ => None,
        }
    }

    /// Before the client can see anything of the fault.
    fn tell(&self) {
        self.shared.struck.fetch_add(1, SeqCst);
        let _ = self.tell.send(Event::Struck(self.fault));
    }

    async fn strike(mut self, how: How) -> io::Result<()> {
        match how {
            How::Reset => return self.client.set_zero_linger(),
            How::Fin => self.client.shutdown().await?,
            How::Stall => {}
        }
        let mut rest = [0; 1024];
        while !matches!(self.client.read(&mut rest).await, Ok(0) | Err(_)) {}
        self.client_is_gone()
    }

    fn client_is_gone(&self) -> io::Result<()> {
        let _ = self.tell.send(Event::ClientGone { sent: self.sent });
        Ok(())
    }
}

/// Finds the end of an HTTP/1 head.
#[derive(Default)]
struct Head {
    seen: usize,
    matched: usize,
    end: Option<usize>,
}

impl Head {
    fn look(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.end.is_some() {
                return;
            }
            self.seen += 1;
            self.matched = match (byte, self.matched) {
                (b'\r', 0 | 2) | (b'\n', 1 | 3) => self.matched + 1,
                (b'\r', _) => 1,
                _ => 0,
            };
            if self.matched == 4 {
                self.end = Some(self.seen);
            }
        }
    }
}
