//! The I/O lane: a Tokio runtime that answers on a TCP socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};

/// A request is so long, and its answer is the same bytes.
pub const MESSAGE: usize = 64;

/// An I/O runtime with an echo server as its only task. Dropping it ends both.
pub struct EchoLane {
    runtime: Runtime,
    address: SocketAddr,
}

impl EchoLane {
    pub fn start(workers: usize) -> Self {
        Self::on(crate::io_runtime(workers))
    }

    pub fn on(runtime: Runtime) -> Self {
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .unwrap();
        let address = listener.local_addr().unwrap();
        // Spawned, not blocked on: the workers serve it, as they do a real one.
        runtime.spawn(serve(listener));
        Self { runtime, address }
    }

    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(listener: TcpListener) {
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        tokio::spawn(echo(connection));
    }
}

/// Ends with the connection.
async fn echo(mut connection: TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut message = [0; MESSAGE];
    loop {
        connection.read_exact(&mut message).await?;
        connection.write_all(&message).await?;
    }
}
