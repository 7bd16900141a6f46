//! The tables of a contender: in memory, or on S3 with the connector of its engine.

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use object_store::client::{ReqwestConnector, SpawnedReqwestConnector};
use tokio::runtime::Handle;
use twolane::io::IoConnector;
use twolane_tpch::tables::in_memory;

use crate::contender::Engine;
use crate::process::Role;

/// Lets the queries of `context` find the tables.
pub async fn register(
    context: &SessionContext,
    role: &Role,
    engine: &Engine,
    io: &Handle,
) -> Result<()> {
    let Some(access) = &role.access else {
        return in_memory(context, role.scale);
    };
    let builder = access.builder();
    let builder = match engine {
        Engine::Io(_) => builder,
        Engine::Second(_) => builder.with_http_connector(SpawnedReqwestConnector::new(io.clone())),
        Engine::Lane(cpu, _) => {
            let connector = IoConnector::new(ReqwestConnector::default(), cpu.handle());
            builder.with_http_connector(connector)
        }
    };
    access.register_store(&context.runtime_env(), builder.build()?);
    access.register_tables(context).await
}
