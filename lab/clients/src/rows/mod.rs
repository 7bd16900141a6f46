//! The rows of the table: clients, and ways to use each of them in a job.

mod build;
mod http;
mod kafka;
mod nothing;
mod postgres;
mod redis;
mod s3;
mod sqlx;
mod tonic;

use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;

pub use self::sqlx::pool;
use crate::BoxError;
use crate::clock::Work;
use crate::lanes::Cpu;
use crate::servers::Kind;

/// What a client is made from.
#[derive(Clone)]
pub struct World {
    /// Of the client's server.
    pub address: SocketAddr,
    pub cpu: Cpu,
    /// What jobs do beside their I/O.
    pub work: Work,
}

/// What a request brings.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// When the server gave it, if it says so.
    pub at: Option<i64>,
    /// Whether the request computes what a job has to compute.
    pub computed: bool,
}

impl From<i64> for Answer {
    fn from(at: i64) -> Self {
        Self {
            at: Some(at),
            computed: false,
        }
    }
}

/// Of a request that computes what the job has to compute.
fn computed(at: impl Into<Option<i64>>) -> Answer {
    Answer {
        at: at.into(),
        computed: true,
    }
}

/// Asks the server once.
pub type Ask = Arc<dyn Fn() -> BoxFuture<'static, Result<Answer, BoxError>> + Send + Sync>;

/// A client, ready to be asked by both sides.
pub struct Ready {
    /// What the I/O side does.
    pub request: Ask,
    /// What a job does before it computes.
    pub job: Ask,
}

/// Makes a client, on the I/O side.
pub type Make = Arc<dyn Fn(World) -> BoxFuture<'static, Result<Ready, BoxError>> + Send + Sync>;

/// A client, and the ways to use it.
pub struct Client {
    pub name: &'static str,
    pub server: Option<Kind>,
    /// It opens connections when it needs them: a trial can begin without any.
    pub can_be_cold: bool,
    /// It opens a new connection when the server has cut the old one.
    pub reconnects: bool,
    /// On two plain runtimes: as most write it, and with each request in a task of the
    /// I/O runtime.
    pub plain: Make,
    pub by_hand: Make,
    pub ways: Vec<Way>,
}

/// A way to use a client in a job.
pub struct Way {
    pub name: &'static str,
    pub mark: Mark,
    pub make: Make,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Recommended,
    /// The guide warns of it: it fails so, in some of its set-ups.
    Warned(Shows),
    /// It works in this table: what the job itself waits for is late, not the others.
    Tolerated,
}

/// How a row fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Requests of the I/O side are late.
    Stalls,
    /// Jobs panic.
    JobPanics,
    /// Requests of the I/O side panic.
    RequestPanics,
}

pub fn all() -> Vec<Client> {
    vec![
        nothing::client(),
        redis::multiplexed(),
        redis::manager(),
        sqlx::queries(),
        sqlx::rows(),
        sqlx::transactions(),
        postgres::queries(),
        postgres::rows(),
        tonic::unary(),
        tonic::upload(),
        tonic::bidi(),
        http::reqwest(),
        http::hyper(),
        s3::object_store(),
        s3::aws(),
        kafka::client(),
    ]
}
