//! rskafka: each call in one `spawn_io`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rskafka::client::partition::{Compression, PartitionClient};
use rskafka::record::Record;

use crate::BoxError;

/// Returns the record's offset.
pub async fn produce(topic: &Arc<PartitionClient>, value: Vec<u8>) -> Result<i64, BoxError> {
    let topic = topic.clone();
    let record = Record {
        key: None,
        value: Some(value),
        headers: BTreeMap::new(),
        timestamp: chrono::Utc::now(),
    };
    let produce = async move {
        topic
            .produce(vec![record], Compression::NoCompression)
            .await
    };
    Ok(twolane::spawn_io(produce).await??[0])
}
