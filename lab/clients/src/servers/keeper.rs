//! The keeper's side: one server, until the end of stdin.

use std::io::stdin;
use std::net::SocketAddr;
use std::process::ExitCode;

use super::{Kind, ROLE, grpc, http, kafka, postgres, redis, s3};
use crate::BoxError;

/// A server in the keeper's hands; its drop ends it.
pub(super) trait Kept {
    fn address(&self) -> SocketAddr;
    fn cut(&mut self) -> Result<(), BoxError>;
}

/// Keeps a server if this process is to be a keeper. Call it first in `main`, and return
/// what it returns.
pub fn keep() -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == role);
    let mut kept = match kind.ok_or("there is no such server".into()).and_then(start) {
        Ok(kept) => kept,
        Err(error) => {
            println!("{}", one_line(&error));
            return Some(ExitCode::FAILURE);
        }
    };
    println!("ready {}", kept.address());
    for line in stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "cut" => match kept.cut() {
                Ok(()) => println!("cut"),
                Err(error) => println!("{}", one_line(&error)),
            },
            other => println!("no such command: {other}"),
        }
    }
    Some(ExitCode::SUCCESS)
}

fn start(kind: Kind) -> Result<Box<dyn Kept>, BoxError> {
    Ok(match kind {
        Kind::Postgres => Box::new(postgres::start()?),
        Kind::Redis => Box::new(redis::start()?),
        Kind::Http => Box::new(http::start()?),
        Kind::Grpc => Box::new(grpc::start()?),
        Kind::S3 => Box::new(s3::start()?),
        Kind::Kafka => Box::new(kafka::start()?),
    })
}

/// The parent reads lines.
fn one_line(error: &BoxError) -> String {
    error.to_string().replace('\n', "; ")
}
