//! tonic, client streaming whose messages are computed: `stream_from_cpu`, and a call that
//! fails if they do. `abort` is a file to copy: lab/grpc/src/abort.rs.

use bytes::Bytes;
use futures::Stream;
use tonic::{Response, Status};
use twolane::Handle;
use twolane_grpc::abort::{self, AbortableChannel};

use crate::grpc;

/// How many bytes of messages are computed ahead of the connection.
const AHEAD: usize = 64 << 10;

pub async fn upload(
    channel: &AbortableChannel,
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Bytes, Status> {
    let messages = Handle::current().stream_from_cpu(messages, AHEAD, Bytes::len);
    let (request, failure) = abort::messages(messages);
    let answer = grpc::upload(channel.clone(), request).await;
    failure.check(answer).map(Response::into_inner)
}
