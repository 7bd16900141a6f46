//! A contender as a process of its own, which ends with its owner.

use std::io::{BufRead, BufReader, Error};
use std::process::{Child, Command, Stdio};

use tower::BoxError;

use crate::contender::Server;

pub struct Running {
    child: Child,
    url: String,
}

impl Running {
    pub fn start(server: &Server) -> Result<Self, BoxError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--serve", &server.contender.name(), "--port", "0"]);
        command.args(["--slices", &server.work.slices.to_string()]);
        command.args(["--limit", &server.limit.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().expect("it is piped");
        // From here on it ends with this.
        let mut running = Self {
            child,
            url: String::new(),
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.split_whitespace().nth(1);
        let port = port.ok_or_else(|| Error::other("the server did not start"))?;
        running.url = format!("http://127.0.0.1:{port}");
        Ok(running)
    }

    pub fn url(&self, path: &str) -> http::Uri {
        let url = format!("{}{path}", self.url);
        url.parse().expect("it is made of a port and a path")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
