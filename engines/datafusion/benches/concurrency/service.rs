//! A contender's process: `/query`, `/health` and `/figures` on an I/O runtime.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{SessionConfig, SessionContext};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use twolane_benches::{child, cores};
use twolane_tpch::queries;
use twolane_tpch::tables::in_memory;

use crate::contender::{Contender, Engine};
use crate::memory::{Pool, forget_most_resident, most_resident};

#[derive(Serialize, Deserialize)]
pub struct Role {
    pub contender: Contender,
    pub scale: f64,
    /// Of the memory pool.
    pub bytes: usize,
    /// To spill to.
    pub folder: PathBuf,
}

/// The most of each at a time since the warm-up, in bytes.
#[derive(Serialize, Deserialize)]
pub struct Figures {
    pub most_resident: Option<usize>,
    pub most_reserved: usize,
}

/// Of an answer whose query found no memory.
pub const NO_MEMORY: StatusCode = StatusCode::INSUFFICIENT_STORAGE;

struct Service {
    engine: Engine,
    context: SessionContext,
    pool: Arc<Pool>,
}

pub fn run(role: Role) -> ! {
    child::end_with_parent();
    let mut io = tokio::runtime::Builder::new_multi_thread();
    let io = io.thread_name("io").enable_all().build();
    let io = io.expect("an I/O runtime");
    let served = io.block_on(io.spawn(serve(role))).expect("no panic");
    panic!("the server ended: {served:?}")
}

async fn serve(role: Role) -> Result<()> {
    let engine = Engine::start(role.contender, &tokio::runtime::Handle::current());
    let pool = Pool::new(role.bytes);
    let config = SessionConfig::new().with_target_partitions(cores());
    let context = SessionContext::new_with_config_rt(config, pool.environment(&role.folder)?);
    in_memory(&context, role.scale)?;
    // Caches are warm afterwards.
    for query in queries::all() {
        engine.answer(&context, query.to_owned()).await?;
    }
    pool.forget_most();
    forget_most_resident();
    let service = Arc::new(Service {
        engine,
        context,
        pool,
    });
    let routes = Router::new()
        .route("/health", get(async || "ok"))
        .route("/query", post(query))
        .route("/figures", get(figures));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    Ok(axum::serve(listener, routes.with_state(service)).await?)
}

async fn query(
    State(service): State<Arc<Service>>,
    sql: String,
) -> Result<Bytes, (StatusCode, String)> {
    let answer = service.engine.answer(&service.context, sql).await;
    answer.map_err(|error| match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => (NO_MEMORY, error.to_string()),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    })
}

async fn figures(State(service): State<Arc<Service>>) -> String {
    let figures = Figures {
        most_resident: most_resident(),
        most_reserved: service.pool.most(),
    };
    serde_json::to_string(&figures).expect("JSON")
}
