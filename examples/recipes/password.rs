//! A login: argon2 checks the password in a job, and the handler awaits the answer.
//!
//! For every service that has passwords. argon2 is CPU-heavy on purpose. A handler that calls it
//! directly keeps a Tokio thread, and all other requests of that thread wait. Here the handler
//! looks up the hash, as yours asks its database, and moves the check into a job. Copy
//! all but `main`.
//!
//! - Logins run at `Priority::High`, which has a queue and threads of its own. They do not wait
//!   behind signups, exports and the other jobs of the service, which run at `Normal`.
//! - A login that would wait for a thread for longer than [`MAX_WAIT`] is answered with 503 and
//!   `Retry-After` at once. argon2 takes 19 MiB for each check that runs: without a limit, 512
//!   threads of `spawn_blocking` take 10 GB.
//! - If the client goes away, axum drops the handler's future and with it the task. A login that
//!   is still queued then never runs. argon2 has no place to ask a checkpoint, so a check that
//!   runs continues to its end. The lane knows that, also if nobody waits for it: clients that
//!   leave and come again do not start more. Under load most logins are queued: a cancel saves
//!   those.
//!
//! ```text
//! cargo run --release -p examples --example password        # http://127.0.0.1:3000, until ctrl-c
//! curl -i -d 'correct horse' http://127.0.0.1:3000/login/alice
//! ```
//!
//! `examples/axum.rs` is a whole service: it hashes new passwords, and has metrics and a graceful
//! shutdown.
//!
//! To copy it: `cargo add twolane -F axum`, `cargo add axum argon2@0.6` and `cargo add tokio -F full`.
//! `examples/axum.rs` says how to make argon2 fast in a debug build.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{self, PasswordHasher, PasswordVerifier};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::TcpListener;
use twolane::axum::JobError;
use twolane::{BuildError, CpuRuntime, Handle, Priority};

/// The lane finds out how many logins that are.
pub const MAX_WAIT: Duration = Duration::from_millis(500);

/// Names and hashes: stands for your database.
pub type Users = Arc<HashMap<String, String>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let users = HashMap::from([("alice".to_owned(), hash_of("correct horse")?)]);
    let cpu = cpu_lane()?;
    let listener = TcpListener::bind(&address).await?;
    axum::serve(listener, routes(cpu.handle().clone(), Arc::new(users))).await?;
    Ok(())
}

/// The surrounding Tokio runtime is its I/O lane.
pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    let builder = CpuRuntime::builder();
    builder.max_wait(Priority::High, MAX_WAIT).build()
}

pub fn routes(cpu: Handle, users: Users) -> Router {
    let logins = cpu.with_priority(Priority::High);
    Router::new()
        .route("/login/{user}", post(login))
        .with_state((logins, users))
}

async fn login(
    State((logins, users)): State<(Handle, Users)>,
    Path(user): Path<String>,
    password: String,
) -> Result<StatusCode, JobError> {
    // Your query goes here: a handler does its I/O as before.
    let hash = users.get(&user).cloned();
    let check = logins.spawn_cpu(move || is_right(hash.as_deref(), &password));
    Ok(match check.await? {
        true => StatusCode::NO_CONTENT, // your session starts here
        false => StatusCode::UNAUTHORIZED,
    })
}

fn is_right(hash: Option<&str>, password: &str) -> bool {
    let Some(hash) = hash.and_then(|hash| PasswordHash::new(hash).ok()) else {
        // An unknown user takes as long as a wrong password.
        let _ = hash_of(password);
        return false;
    };
    let argon2 = Argon2::default();
    argon2.verify_password(password.as_bytes(), &hash).is_ok()
}

pub fn hash_of(password: &str) -> password_hash::Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes())?; // with a random salt
    Ok(hash.to_string())
}
