//! rskafka: one connection to the broker for all.

use std::collections::BTreeMap;
use std::sync::Arc;

use rskafka::client::ClientBuilder;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::record::Record;

use super::Shows::JobPanics;
use super::build::{Rows, ask};
use super::{Answer, Client, World};
use crate::BoxError;
use crate::servers::Kind;
use crate::ways::kafka;

const TOPIC: &str = "twolane";
const TIMEOUT_MS: i32 = 10_000;

type Topic = Arc<PartitionClient>;

async fn connect(world: World) -> Result<Topic, BoxError> {
    let builder = ClientBuilder::new(vec![world.address.to_string()]);
    let client = builder.build().await?;
    let controller = client.controller_client()?;
    match controller.create_topic(TOPIC, 1, 1, TIMEOUT_MS).await {
        Ok(()) => {}
        Err(Error::ServerError {
            protocol_error: ProtocolError::TopicAlreadyExists,
            ..
        }) => {}
        Err(error) => return Err(error.into()),
    }
    let topic = client.partition_client(TOPIC, 0, UnknownTopicHandling::Retry);
    Ok(Arc::new(topic.await?))
}

/// The broker says nothing of the time.
fn answer(_offset: i64) -> Answer {
    Answer {
        at: None,
        computed: false,
    }
}

async fn plain(topic: Topic) -> Result<Answer, BoxError> {
    let record = Record {
        key: None,
        value: Some(b"plain".to_vec()),
        headers: BTreeMap::new(),
        timestamp: chrono::Utc::now(),
    };
    let offsets = topic.produce(vec![record], Compression::NoCompression);
    Ok(answer(offsets.await?[0]))
}

pub(super) fn client() -> Client {
    Rows::new("rskafka", Some(Kind::Kafka), connect, |topic| {
        ask(topic, plain)
    })
    .does_not_reconnect()
    .tolerated("plain", |topic, _| plain(topic))
    .warned_in_cpu_context(JobPanics, |topic, _| plain(topic))
    .recommended("whole call in one spawn_io", |topic, _| async move {
        Ok(answer(
            kafka::produce(&topic, b"on the I/O lane".to_vec()).await?,
        ))
    })
    .done()
}
