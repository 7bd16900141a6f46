//! tonic, streams in both directions, of which the client's is computed.

use bytes::Bytes;
use futures::Stream;
use tonic::{Status, Streaming};
use twolane::Handle;
use twolane_grpc::abort::{self, AbortableChannel, Failure};

use crate::grpc;

/// How many bytes of messages are computed ahead of the connection.
const AHEAD: usize = 64 << 10;

/// Pass each answer through `Failure::check`, too.
pub async fn talk(
    channel: &AbortableChannel,
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<(Streaming<Bytes>, Failure), Status> {
    let messages = Handle::current().stream_from_cpu(messages, AHEAD, Bytes::len);
    let (request, failure) = abort::messages(messages);
    let answers = failure.check(grpc::bidi(channel.clone(), request).await)?;
    Ok((answers.into_inner(), failure))
}
