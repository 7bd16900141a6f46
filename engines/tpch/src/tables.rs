//! The tables of TPC-H: in memory, or in Parquet on an S3 server.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tpchgen::generators as gens;
use tpchgen_arrow as arrows;
use twolane_s3::server::{self, Server};

/// Before each answer of our own server: a network.
const LATENCY: Duration = Duration::from_millis(5);

const NAMES: [&str; 8] = [
    "customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier",
];

/// The batches of a table, in as many parts as there are cores.
fn table(name: &str, scale: f64) -> Vec<Vec<RecordBatch>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = i32::try_from(cores).expect("not that many");
    let parts = match name {
        "nation" | "region" => 1,
        _ => cores,
    };
    let part = |part: i32| -> Vec<RecordBatch> {
        match name {
            "customer" => {
                let rows = gens::CustomerGenerator::new(scale, part, parts);
                arrows::CustomerArrow::new(rows).collect()
            }
            "lineitem" => {
                let rows = gens::LineItemGenerator::new(scale, part, parts);
                arrows::LineItemArrow::new(rows).collect()
            }
            "nation" => {
                let rows = gens::NationGenerator::new(scale, part, parts);
                arrows::NationArrow::new(rows).collect()
            }
            "orders" => {
                let rows = gens::OrderGenerator::new(scale, part, parts);
                arrows::OrderArrow::new(rows).collect()
            }
            "part" => {
                let rows = gens::PartGenerator::new(scale, part, parts);
                arrows::PartArrow::new(rows).collect()
            }
            "partsupp" => {
                let rows = gens::PartSuppGenerator::new(scale, part, parts);
                arrows::PartSuppArrow::new(rows).collect()
            }
            "region" => {
                let rows = gens::RegionGenerator::new(scale, part, parts);
                arrows::RegionArrow::new(rows).collect()
            }
            "supplier" => {
                let rows = gens::SupplierGenerator::new(scale, part, parts);
                arrows::SupplierArrow::new(rows).collect()
            }
            other => unreachable!("no table {other}"),
        }
    };
    let parts: Vec<i32> = (1..=parts).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.iter().map(|n| scope.spawn(|| part(*n))).collect();
        let parts = threads.into_iter().map(|thread| thread.join());
        parts.map(|part| part.expect("no panic")).collect()
    })
}

/// Lets the queries of `context` find the tables in memory.
pub fn in_memory(context: &SessionContext, scale: f64) -> Result<()> {
    for name in NAMES {
        let parts = table(name, scale);
        let table = MemTable::try_new(parts[0][0].schema(), parts)?;
        context.register_table(name, Arc::new(table))?;
    }
    Ok(())
}

/// Where the tables are on the server, and how to be let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Access {
    config: Vec<(String, String)>,
    bucket: String,
    folder: String,
}

impl Access {
    /// Of a store that is let in.
    pub fn builder(&self) -> AmazonS3Builder {
        let known = self.config.iter().filter_map(|(name, value)| {
            let key: AmazonS3ConfigKey = name.parse().ok()?;
            Some((key, value))
        });
        known.fold(AmazonS3Builder::new(), |builder, (key, value)| {
            builder.with_config(key, value)
        })
    }

    /// Has `environment` ask `store` for what is in the bucket.
    pub fn register_store(&self, environment: &RuntimeEnv, store: impl ObjectStore) {
        let url = format!("s3://{}", self.bucket).parse().expect("an URL");
        environment.register_object_store(&url, Arc::new(store));
    }

    /// Lets the queries of `context` find the tables. Its environment has the store by then.
    pub async fn register_tables(&self, context: &SessionContext) -> Result<()> {
        for name in NAMES {
            let options = ParquetReadOptions::default();
            context
                .register_parquet(name, self.url(name), options)
                .await?;
        }
        Ok(())
    }

    fn url(&self, table: &str) -> String {
        format!("s3://{}/{}/{table}/", self.bucket, self.folder)
    }
}

/// The tables on a server: the one that the environment names, or one of our own, which is in
/// the process of the bench and not in that of a contender.
pub struct Store {
    access: Access,
    runtime: Runtime,
    _server: Option<Server>,
}

impl Store {
    pub fn fill(scale: f64) -> Result<Self> {
        let (server, found) = server::from_environment(LATENCY)?;
        let access = Access {
            config: found.config(),
            bucket: found.bucket.clone(),
            folder: format!("tpch-{}", std::process::id()),
        };
        let store = Self {
            access,
            runtime: Runtime::new()?,
            _server: server,
        };
        store
            .runtime
            .block_on(async {
                let context = SessionContext::new();
                in_memory(&context, scale)?;
                let environment = context.runtime_env();
                store
                    .access
                    .register_store(&environment, store.access.builder().build()?);
                for name in NAMES {
                    let (url, options) = (store.access.url(name), DataFrameWriteOptions::new());
                    context
                        .table(name)
                        .await?
                        .write_parquet(&url, options, None)
                        .await?;
                }
                Ok(store.access.clone())
            })
            .map(|_| store)
    }

    pub fn access(&self) -> Access {
        self.access.clone()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let removed = self.runtime.block_on(async {
            let store = self.access.builder().build()?;
            let folder = Path::from(self.access.folder.as_str());
            let found = store
                .list(Some(&folder))
                .map_ok(|found| found.location)
                .boxed();
            let store = &store;
            found
                .try_for_each(|found| async move { store.delete(&found).await })
                .await
        });
        if let Err(error) = removed {
            eprintln!("{} stays on the server: {error}", self.access.folder);
        }
    }
}
