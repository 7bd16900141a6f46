//! tonic: `IoLayer` around the channel. A generated client takes it as it takes a
//! channel: `GreeterClient::new(channel)`.

use bytes::Bytes;
use tonic::Status;
use tonic::transport::Channel;
use tower::Layer;
use twolane::Handle;
use twolane::io::{IoLayer, IoService};

/// Once, beside the channel.
pub fn layered(channel: &Channel, cpu: &Handle) -> IoService<Channel> {
    IoLayer::new(cpu).layer(channel.clone())
}

pub async fn call(
    channel: &IoService<Channel>,
    method: &'static str,
    message: Bytes,
) -> Result<Bytes, Status> {
    twolane_grpc::call(channel.clone(), method, message).await
}
