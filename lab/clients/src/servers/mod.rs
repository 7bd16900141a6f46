//! Real servers on loopback, each kept by a process of its own.
//!
//! This program, started again with a role, is a *keeper*: it starts one server on a
//! free port, over a fresh temporary folder, and prints its address. It obeys the lines
//! of its stdin. At the end of stdin it ends the server and removes the folder. The kernel
//! closes that pipe however the parent ends, so no server outlives it.
//!
//! PostgreSQL and redis are programs from Debian's packages, and Kafka's broker is Java
//! ([`find`]). HTTP, gRPC and S3 are crates, which the keeper serves itself.

mod find;
mod grpc;
mod http;
mod kafka;
mod keeper;
mod postgres;
mod process;
mod redis;
mod s3;
mod web;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

pub use grpc::path;
pub use keeper::keep;
pub use s3::{BUCKET, KEY, OBJECT, SECRET};

use crate::BoxError;

/// The environment variable that makes this program a keeper.
const ROLE: &str = "TWOLANE_CLIENTS_KEEPS";

/// What can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    Redis,
    Http,
    Grpc,
    S3,
    Kafka,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Postgres,
        Self::Redis,
        Self::Http,
        Self::Grpc,
        Self::S3,
        Self::Kafka,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::S3 => "s3",
            Self::Kafka => "kafka",
        }
    }
}

/// A server; its drop ends it.
pub struct Server {
    address: SocketAddr,
    keeper: Child,
    pipes: Mutex<Option<Pipes>>,
}

type Pipes = (ChildStdin, BufReader<ChildStdout>);

impl Server {
    /// Starts a server and waits until it is ready. `program` is `twolane-clients`.
    pub fn start(program: &Path, kind: Kind) -> Result<Self, BoxError> {
        let mut keeper = Command::new(program)
            .env(ROLE, kind.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the parent, whose end tells the keeper to clean up.
            .process_group(0)
            .spawn()?;
        let stdin = keeper.stdin.take().expect("it is piped");
        let mut stdout = BufReader::new(keeper.stdout.take().expect("it is piped"));
        let answer = line_of(&mut stdout)?;
        let Some(address) = answer.strip_prefix("ready ") else {
            drop(stdin);
            let _ = keeper.wait();
            return Err(format!("{}: {answer}", kind.name()).into());
        };
        Ok(Self {
            address: address.parse()?,
            keeper,
            pipes: Mutex::new(Some((stdin, stdout))),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all connections. Blocks until the server has done so.
    pub fn cut(&self) -> Result<(), BoxError> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let (stdin, stdout) = pipes.as_mut().expect("they are there until the drop");
        stdin.write_all(b"cut\n")?;
        match line_of(stdout)?.as_str() {
            "cut" => Ok(()),
            error => Err(error.into()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pipes = self.pipes.get_mut();
        drop(pipes.unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.keeper.wait();
    }
}

fn line_of(stdout: &mut BufReader<ChildStdout>) -> Result<String, BoxError> {
    let mut line = String::new();
    match stdout.read_line(&mut line)? {
        0 => Err("the server's keeper ended".into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}
