//! The S3 server, in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde::Serialize;
use twolane_benches::child;

/// Its process. It ends with this one, and with its drop.
pub struct Server {
    access: Vec<(String, String)>,
    process: Child,
}

impl Server {
    /// `role`: that of a process that calls [`serve`].
    pub fn start(role: &impl Serialize) -> Self {
        let mut command = child::command(role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let out = process.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).unwrap();
        let access = serde_json::from_str(&line).expect("the access to the server");
        Self { access, process }
    }

    pub fn access(&self) -> Vec<(String, String)> {
        self.access.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn serve() {
    // Elsewhere it has a machine of its own: here it is not to take cores from the service.
    rustix::process::nice(16).expect("a higher nice value is always allowed");
    let server = twolane_s3::server::Server::start(Duration::ZERO).unwrap();
    println!(
        "{}",
        serde_json::to_string(&server.access().config()).unwrap()
    );
    child::end_with_parent();
    loop {
        std::thread::park();
    }
}
