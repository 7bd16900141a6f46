//! A server that is a program: its process, its folder, its log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::BoxError;

const PATIENCE: Duration = Duration::from_secs(60);
/// Of another program that takes the port between our look and the server's bind.
const TRIES: usize = 3;

pub(super) struct Process {
    pub(super) address: SocketAddr,
    child: Child,
    /// By which the program ends at once, and its own children too.
    end: Signal,
    // Removed after the process has ended.
    _folder: TempDir,
}

impl Process {
    /// Starts `command(port)`, and waits until `ready` is in a line of its log.
    pub(super) fn start(
        folder: TempDir,
        end: Signal,
        ready: &'static str,
        command: impl Fn(u16) -> Result<Command, BoxError>,
    ) -> Result<Self, BoxError> {
        let mut error = BoxError::from("not tried");
        for _ in 0..TRIES {
            let address = free_address()?;
            match started(command(address.port())?, ready) {
                Ok(child) => {
                    return Ok(Self {
                        address,
                        child,
                        end,
                        _folder: folder,
                    });
                }
                Err(failed) => error = failed,
            }
        }
        Err(error)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), self.end);
        let _ = self.child.wait();
    }
}

pub(super) fn folder(of: &str) -> std::io::Result<TempDir> {
    let prefix = format!("twolane-{of}-");
    tempfile::Builder::new().prefix(&prefix).tempdir()
}

pub(super) fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn started(mut command: Command, ready: &'static str) -> Result<Child, BoxError> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{:?} does not start: {error}", command.get_program()))?;
    let (lines, log) = channel();
    // They read to the end: a full pipe would block the server.
    read_lines(child.stdout.take().expect("it is piped"), lines.clone());
    read_lines(child.stderr.take().expect("it is piped"), lines);
    let mut last = VecDeque::new();
    loop {
        match log.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(ready) => return Ok(child),
            Ok(line) => {
                last.push_back(line);
                if last.len() > 5 {
                    last.pop_front();
                }
            }
            Err(why) => {
                let _ = child.kill();
                let _ = child.wait();
                let what = match why {
                    RecvTimeoutError::Timeout => "is not ready",
                    RecvTimeoutError::Disconnected => "ended",
                };
                let last: Vec<String> = last.into();
                let program = command.get_program();
                return Err(format!("{program:?} {what}: {}", last.join("; ")).into());
            }
        }
    }
}

fn read_lines(from: impl Read + Send + 'static, to: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // Without a reader once the server is ready.
            let _ = to.send(line);
        }
    });
}
