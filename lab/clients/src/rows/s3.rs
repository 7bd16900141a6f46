//! Clients of S3.

use std::sync::Arc;

use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use object_store_0_14::aws::{AmazonS3, AmazonS3Builder};
use object_store_0_14::path::Path;
use object_store_0_14::{Attribute, GetResult, ObjectStoreExt};

use super::build::{Rows, ask};
use super::{Client, World};
use crate::BoxError;
use crate::lanes::Cpu;
use crate::servers::{BUCKET, KEY, Kind, OBJECT, SECRET};
use crate::ways;

type Store = Arc<AmazonS3>;

fn settings(world: &World) -> AmazonS3Builder {
    AmazonS3Builder::new()
        .with_endpoint(format!("http://{}", world.address))
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_access_key_id(KEY)
        .with_secret_access_key(SECRET)
}

async fn read(store: Store) -> Result<i64, BoxError> {
    let object = store.get(&Path::from(OBJECT)).await?;
    let at = time(&object)?;
    object.bytes().await?;
    Ok(at)
}

fn time(object: &GetResult) -> Result<i64, BoxError> {
    let time = object.attributes.get(&Attribute::Metadata("time".into()));
    Ok(time.ok_or("the server's answer has no time")?.parse()?)
}

/// Both sides use the same store; on twolane's lanes its connector is the way.
pub(super) fn object_store() -> Client {
    let plain = |world: World| async move { Ok(Store::new(settings(&world).build()?)) };
    let connected = |world: World| async move {
        Ok(Store::new(match &world.cpu {
            Cpu::Twolane(cpu) => ways::object_store::store(settings(&world), cpu)?,
            Cpu::Plain { .. } => settings(&world).build()?,
        }))
    };
    let request = |store| ask(store, read);
    let server = Some(Kind::S3);
    let warned = Rows::new("object_store", server, plain, request)
        .tolerated("plain", |store, _| read(store));
    let mut client = Rows::new("object_store", server, connected, request)
        .recommended("IoConnector", |store, _| read(store))
        .done();
    client.ways.splice(0..0, warned.done().ways);
    client
}

async fn read_by_aws(client: aws_sdk_s3::Client) -> Result<i64, BoxError> {
    let object = client
        .get_object()
        .bucket(BUCKET)
        .key(OBJECT)
        .send()
        .await?;
    let time = object.metadata().and_then(|named| named.get("time"));
    let at = time.ok_or("the server's answer has no time")?.parse()?;
    object.body.collect().await?;
    Ok(at)
}

pub(super) fn aws() -> Client {
    let make = |world: World| async move {
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new(KEY, SECRET, None, None, "clients"))
            .endpoint_url(format!("http://{}", world.address))
            .force_path_style(true)
            .http_client(aws_smithy_http_client::Builder::new().build_http());
        Ok(aws_sdk_s3::Client::from_conf(config.build()))
    };
    let request = |client| ask(client, read_by_aws);
    Rows::new("aws-sdk-s3", Some(Kind::S3), make, request)
        .tolerated("plain", |client, _| read_by_aws(client))
        .recommended("whole call in one spawn_io", |client, _| async move {
            let (named, _) = ways::aws_sdk_s3::read(&client, BUCKET, OBJECT).await?;
            let time = named.get("time").ok_or("the server's answer has no time")?;
            Ok(time.parse::<i64>()?)
        })
        .done()
}
