//! redis, from Debian's package.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;

use super::find;
use super::keeper::Kept;
use super::process::{self, Process};
use crate::BoxError;

pub(super) struct Redis {
    process: Process,
}

pub(super) fn start() -> Result<Redis, BoxError> {
    let program = find::redis()?;
    let folder = process::folder("redis")?;
    let path = folder.path().to_owned();
    let process = Process::start(
        folder,
        Signal::KILL,
        "Ready to accept connections",
        |port| {
            let mut command = program.command();
            command
                .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
                .args(["--save", "", "--appendonly", "no"])
                .current_dir(&path);
            Ok(command)
        },
    )?;
    Ok(Redis { process })
}

impl Kept for Redis {
    fn address(&self) -> SocketAddr {
        self.process.address
    }

    fn cut(&mut self) -> Result<(), BoxError> {
        let mut redis = TcpStream::connect(self.process.address)?;
        redis.write_all(b"CLIENT KILL TYPE normal SKIPME yes\r\n")?;
        let mut answer = String::new();
        BufReader::new(redis).read_line(&mut answer)?;
        match answer.strip_prefix(':') {
            Some(_) => Ok(()),
            None => Err(answer.into()),
        }
    }
}
