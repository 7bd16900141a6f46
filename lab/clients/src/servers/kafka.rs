//! Kafka: one broker, its own controller.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::find;
use super::keeper::Kept;
use super::process::{self, Process};
use crate::BoxError;

pub(super) struct Kafka {
    process: Process,
}

/// Of a cluster: 16 bytes in base64.
const ID: &str = "dHdvbGFuZS1jbGllbnRzLg";

pub(super) fn start() -> Result<Kafka, BoxError> {
    let (java, jars) = find::kafka()?;
    let folder = process::folder("kafka")?;
    let path = folder.path().to_owned();
    let java = || {
        let mut command = java.command();
        command
            // To start soon is all that it has to.
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("-cp")
            .arg(jars.join("*"))
            .current_dir(&path);
        command
    };
    let process = Process::start(folder, Signal::KILL, "Kafka Server started", |port| {
        let controller = process::free_address()?.port();
        std::fs::write(path.join("properties"), properties(&path, port, controller))?;
        format(java())?;
        let mut broker = java();
        broker.args(["kafka.Kafka", "properties"]);
        Ok(broker)
    })?;
    Ok(Kafka { process })
}

fn properties(folder: &Path, port: u16, controller: u16) -> String {
    let data = folder.join("data");
    format!(
        "process.roles=broker,controller
        node.id=1
        controller.quorum.voters=1@127.0.0.1:{controller}
        listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
        advertised.listeners=PLAINTEXT://127.0.0.1:{port}
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
        offsets.topic.replication.factor=1
        log.dirs={}
        ",
        data.display()
    )
}

fn format(mut java: Command) -> Result<(), BoxError> {
    java.args(["kafka.tools.StorageTool", "format", "--ignore-formatted"])
        .args(["-t", ID, "-c", "properties"]);
    let made = java.output()?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr);
    Err(format!("Kafka's storage is not formatted: {}", said.trim()).into())
}

impl Kept for Kafka {
    fn address(&self) -> SocketAddr {
        self.process.address
    }

    fn cut(&mut self) -> Result<(), BoxError> {
        Err("Kafka has no command that cuts its connections".into())
    }
}
