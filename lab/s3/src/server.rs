//! A real S3 server, for tests, examples and benches: `s3s-fs` on loopback, over
//! a temporary folder, on threads of its own.
//!
//! `TWOLANE_S3_ENDPOINT` names another one instead (MinIO, a cloud), the usual
//! `AWS_*` variables its credentials and region, and `TWOLANE_S3_BUCKET` a
//! bucket that is there (default: `twolane`).

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const KEY: &str = "twolane";
const SECRET: &str = "twolane-secret";
/// Of the folders that a server writes to.
const PREFIX: &str = "twolane-s3-";

/// Where to find an S3 server, and how to be let in.
#[derive(Clone, Debug)]
pub struct Access {
    pub endpoint: String,
    pub bucket: String,
    /// Ours; else the environment's.
    own: bool,
}

impl Access {
    /// The settings that a builder of any version of object_store takes by
    /// `with_config`, as names and values. The environment has others among
    /// them (`AWS_PROFILE`): what is no key of theirs is to be left out.
    pub fn config(&self) -> Vec<(String, String)> {
        let mut config: Vec<(String, String)> = if self.own {
            let own = [("access_key_id", KEY), ("secret_access_key", SECRET)];
            own.map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        } else {
            let utf8 = |(name, value): (OsString, OsString)| {
                let name = name.into_string().ok()?.to_ascii_lowercase();
                Some((name, value.into_string().ok()?))
            };
            let all = std::env::vars_os().filter_map(utf8);
            all.filter(|(name, _)| name.starts_with("aws_")).collect()
        };
        config.push(("endpoint".into(), self.endpoint.clone()));
        config.push(("bucket".into(), self.bucket.clone()));
        // As over TLS: else this server hashes each payload, on our cores and
        // slowly.
        config.push(("unsigned_payload".into(), "true".into()));
        config.push(("allow_http".into(), "true".into()));
        config
    }
}

/// The server; its drop ends it, connections and all.
pub struct Server {
    access: Access,
    address: SocketAddr,
    // The runtime before the folder that it writes to.
    runtime: Option<Runtime>,
    _folder: TempDir,
}

/// For object_store's own client, and every other of reqwest: it looks for cryptography also where
/// all servers speak plain HTTP. A [`Server`] calls this.
#[cfg(feature = "own_client")]
pub fn install_cryptography() {
    // An error says that it is there.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Server {
    /// Each request waits for `latency` before it is looked at: the network.
    pub fn start(latency: Duration) -> std::io::Result<Self> {
        #[cfg(feature = "own_client")]
        install_cryptography();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let mut folder = tempfile::Builder::new();
        let folder = match in_memory() {
            Some(memory) => folder.prefix(&prefix).tempdir_in(memory),
            None => folder.prefix(&prefix).tempdir(),
        }?;
        std::fs::create_dir(folder.path().join("twolane"))?;
        let service = service_over(folder.path().to_owned());
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("s3-server")
            .enable_all()
            .build()?;
        runtime.spawn(serve(listener, service, latency));
        Ok(Self {
            access: Access {
                endpoint: format!("http://{address}"),
                bucket: "twolane".into(),
                own: true,
            },
            address,
            runtime: Some(runtime),
            _folder: folder,
        })
    }

    pub fn access(&self) -> Access {
        self.access.clone()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same server, by way of a proxy that listens at `address`.
    pub fn access_by(&self, address: SocketAddr) -> Access {
        Access {
            endpoint: format!("http://{address}"),
            ..self.access()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The server that the environment names, else one of our own.
pub fn from_environment(latency: Duration) -> std::io::Result<(Option<Server>, Access)> {
    if let Ok(endpoint) = std::env::var("TWOLANE_S3_ENDPOINT") {
        let bucket = std::env::var("TWOLANE_S3_BUCKET").unwrap_or_else(|_| "twolane".into());
        let own = false;
        return Ok((
            None,
            Access {
                endpoint,
                bucket,
                own,
            },
        ));
    }
    let server = Server::start(latency)?;
    let access = server.access();
    Ok((Some(server), access))
}

/// Where files don't wait for a disk, if there is room for a bench's and the
/// environment asks for no other place (`TMPDIR`).
fn in_memory() -> Option<&'static Path> {
    let memory = Path::new("/dev/shm");
    let wanted: u64 = 4 << 30;
    #[cfg(target_os = "linux")]
    let free: u64 = rustix::fs::statvfs(memory).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
    #[cfg(not(target_os = "linux"))]
    let free: u64 = 0;
    if std::env::var_os("TMPDIR").is_some() || free < wanted {
        return None;
    }
    remove_orphans(memory);
    Some(memory)
}

/// Folders of processes that were killed: here they would take memory for ever.
fn remove_orphans(memory: &Path) {
    let is_orphan = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
        let (process, _) = name.split_once('-')?;
        let is_there = Path::new("/proc").join(process).exists();
        (!is_there && process.parse::<u32>().is_ok()).then_some(())
    };
    let entries = std::fs::read_dir(memory).into_iter().flatten().flatten();
    for folder in entries.map(|entry| entry.path()) {
        if is_orphan(&folder).is_some() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn service_over(folder: PathBuf) -> S3Service {
    let files = s3s_fs::FileSystem::new(folder).expect("the folder is there");
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
    builder.build()
}

async fn serve(listener: TcpListener, service: S3Service, latency: Duration) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("it does not block");
    while let Ok((socket, _)) = listener.accept().await {
        // Without it, small writes wait for the peer's delayed acknowledgement.
        let _ = socket.set_nodelay(true);
        let service = service.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: http::Request<Incoming>| {
                let service = service.clone();
                async move {
                    if !latency.is_zero() {
                        tokio::time::sleep(latency).await;
                    }
                    Service::call(&service, request).await
                }
            });
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}
