//! A server with one object, larger than memory should hold: it sends the same
//! bytes again and again, as fast as it is let.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

/// What becomes of an answer; `sent` is as much as the socket took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The client does not read: the socket took nothing for many timeouts.
    Blocked {
        sent: u64,
    },
    /// The client has closed the connection.
    Gone {
        sent: u64,
    },
    Done,
}

pub struct Torrent {
    pub address: SocketAddr,
    pub events: mpsc::Receiver<Event>,
}

impl Torrent {
    pub fn start(bytes: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, events) = mpsc::channel();
        // Both go with the process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, tell) = (client.unwrap(), tell.clone());
                std::thread::spawn(move || serve(client, bytes, &tell));
            }
        });
        Self { address, events }
    }
}

fn serve(mut client: TcpStream, bytes: u64, tell: &mpsc::Sender<Event>) -> io::Result<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nETag: \"torrent\"\r\nAccept-Ranges: bytes\r\n\
         Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\nContent-Length: {bytes}\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.set_write_timeout(Some(Duration::from_millis(50)))?;
    let chunk = vec![7; 256 * 1024];
    let (mut sent, mut refused) = (0, 0);
    while sent < bytes {
        let part = chunk.len().min((bytes - sent) as usize);
        match client.write(&chunk[..part]) {
            Ok(written) => {
                sent += written as u64;
                refused = 0;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                refused += 1;
                if refused == 10 {
                    let _ = tell.send(Event::Blocked { sent });
                }
            }
            Err(_) => {
                let _ = tell.send(Event::Gone { sent });
                return Ok(());
            }
        }
    }
    let _ = tell.send(Event::Done);
    // Until the client has read it all.
    while client.read(&mut byte)? > 0 {}
    Ok(())
}
