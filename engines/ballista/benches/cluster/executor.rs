//! An executor: Ballista's own, or with its stages on a lane.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::error::Result;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::client::ReqwestConnector;
use serde::{Deserialize, Serialize};
use twolane::CpuRuntime;
use twolane::io::IoConnector;
use twolane_ballista::on_lane;
use twolane_benches::child;

use crate::common::{Common, say};

/// The interval between heartbeats.
pub const INTERVAL_SECONDS: u64 = 1;
/// Tasks at a time; also the threads of the lane.
pub const VCORES: usize = 2;

#[derive(Debug, Serialize, Deserialize)]
pub struct Role {
    pub common: Common,
    pub id: String,
    /// The port of the scheduler's proxy.
    pub scheduler: u16,
    /// For shuffle files.
    pub folder: PathBuf,
    /// Whether its stages run on a lane.
    pub is_ours: bool,
}

pub fn run(role: Role) -> ! {
    child::end_with_parent();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let ended = runtime.block_on(serve(role));
    eprintln!("the executor ended: {ended:?}");
    std::process::exit(1)
}

async fn serve(role: Role) -> Result<()> {
    let (flight, grpc) = free_ports()?;
    let access = role.common.access;
    let mut store = access.builder();
    let lane = if role.is_ours {
        let lane = CpuRuntime::builder().worker_threads(VCORES);
        let lane = lane.build().expect("a lane");
        let connector = IoConnector::new(ReqwestConnector::default(), lane.handle());
        store = store.with_http_connector(connector);
        Some(lane)
    } else {
        None
    };
    let environment = RuntimeEnv::default();
    access.register_store(&environment, store.build().expect("a store"));
    let environment = Arc::new(environment);
    let mut config = ExecutorProcessConfig {
        executor_id: role.id,
        external_host: Some("127.0.0.1".to_owned()),
        port: flight,
        grpc_port: grpc,
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: role.scheduler,
        vcores: VCORES,
        task_scheduling_policy: role.common.policy.into(),
        work_dir: Some(role.folder.to_string_lossy().into_owned()),
        executor_heartbeat_interval_seconds: INTERVAL_SECONDS,
        override_runtime_producer: Some(Arc::new(move |_| Ok(environment.clone()))),
        ..Default::default()
    };
    if let Some(lane) = &lane {
        config = on_lane(config, lane.handle())?;
    }
    say(&flight);
    start_executor_process(Arc::new(config)).await
}

/// Two that are free now. (Ballista has no way to hand it listeners.)
fn free_ports() -> Result<(u16, u16)> {
    let listeners = (
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    );
    Ok((
        listeners.0.local_addr()?.port(),
        listeners.1.local_addr()?.port(),
    ))
}
