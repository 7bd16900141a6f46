//! Clients of real servers, used by CPU jobs and by the I/O side at the same time.
//!
//! - [`servers`]: PostgreSQL, redis, HTTP, gRPC and S3 on loopback, each kept by a process
//!   of its own;
//! - [`ways`]: how to use each client in a job: the code to paste;
//! - [`rows`]: the clients, each with the ways that the guide recommends or warns of;
//! - [`lanes`]: where jobs run: on a lane, and on two plain runtimes;
//! - [`trial`]: one row under one set of conditions;
//! - [`table`], [`resume`], [`report`]: what is printed and written.

pub mod clock;
mod first_poll;
pub mod grpc;
pub mod lanes;
pub mod panics;
pub mod report;
pub mod resume;
pub mod rows;
pub mod servers;
pub mod sql;
pub mod table;
pub mod trial;
pub mod ways;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
