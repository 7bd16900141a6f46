//! PostgreSQL, from Debian's package.

use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, geteuid};

use super::find::{self, Program};
use super::keeper::Kept;
use super::process::{self, Process};
use crate::BoxError;

pub(super) struct Postgres {
    process: Process,
}

/// Its own children end with it, and nothing is written any more.
const IMMEDIATE_SHUTDOWN: Signal = Signal::QUIT;

pub(super) fn start() -> Result<Postgres, BoxError> {
    let (initdb, postgres) = (find::postgres("initdb")?, find::postgres("postgres")?);
    let folder = process::folder("postgres")?;
    let path = folder.path().to_owned();
    // PostgreSQL refuses to run as root.
    let user = match geteuid().is_root() {
        true => Some(nobody()?),
        false => None,
    };
    if let Some((uid, gid)) = user {
        chown(&path, Some(uid), Some(gid))?;
    }
    let command = |program: &Program| {
        let mut command = program.command();
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        command.current_dir(&path);
        command
    };
    initialise(command(&initdb), &initdb.path)?;
    let process = Process::start(
        folder,
        IMMEDIATE_SHUTDOWN,
        "ready to accept connections",
        |port| {
            let mut command = command(&postgres);
            command
                .args(["-D", "data", "-h", "127.0.0.1", "-p", &port.to_string()])
                // Nothing has to survive. No socket in the file system.
                .args(["-c", "fsync=off", "-c", "unix_socket_directories="]);
            Ok(command)
        },
    )?;
    Ok(Postgres { process })
}

fn initialise(mut initdb: Command, path: &Path) -> Result<(), BoxError> {
    initdb
        .args(["-D", "data", "-U", "twolane", "-A", "trust", "-E", "UTF8"])
        .args(["--locale=C", "--no-sync", "--no-instructions"]);
    let made = initdb
        .output()
        .map_err(|error| format!("{} as user `nobody`: {error}", path.display()))?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr);
    Err(format!("initdb failed: {}", said.trim()).into())
}

/// The user and group of that name.
fn nobody() -> Result<(u32, u32), BoxError> {
    let users = std::fs::read_to_string("/etc/passwd")?;
    let fields = users
        .lines()
        .find(|user| user.starts_with("nobody:"))
        .ok_or("PostgreSQL does not run as root, and there is no user `nobody`")?;
    let numbers: Vec<u32> = fields
        .split(':')
        .filter_map(|field| field.parse().ok())
        .collect();
    match numbers[..] {
        [uid, gid] => Ok((uid, gid)),
        _ => Err("the user `nobody` has no numbers in /etc/passwd".into()),
    }
}

impl Kept for Postgres {
    fn address(&self) -> SocketAddr {
        self.process.address
    }

    fn cut(&mut self) -> Result<(), BoxError> {
        let url = format!("postgres://twolane@{}/postgres", self.process.address);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
            let connection = tokio::spawn(connection);
            // With a time, it waits until they have ended.
            let cut = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                       WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
            client.batch_execute(cut).await?;
            drop(client);
            connection.await??;
            Ok(())
        })
    }
}
