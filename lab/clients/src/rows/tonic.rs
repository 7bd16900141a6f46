//! tonic's channel: one HTTP/2 connection for all.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, Stream, StreamExt, stream};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response};
use twolane::io::IoService;
use twolane_grpc::abort;

use super::Shows::Stalls;
use super::build::{Rows, ask};
use super::{Answer, Ask, Client, Mark, World, computed};
use crate::clock::Work;
use crate::lanes::Cpu;
use crate::servers::{Kind, path};
use crate::trial::JOB;
use crate::ways::{tonic_bidi, tonic_unary, tonic_upload};
use crate::{BoxError, grpc};

/// For each message of a stream.
const COMPUTED: Duration = Duration::from_millis(8);
const MESSAGE: usize = 1 << 10;

async fn channel(world: World) -> Result<Channel, BoxError> {
    let endpoint = Endpoint::from_shared(format!("http://{}", world.address))?;
    Ok(endpoint.connect_lazy())
}

/// A job's worth of messages.
fn messages(work: Work) -> impl Stream<Item = Bytes> + Send + 'static {
    let count = JOB.as_millis() / COMPUTED.as_millis();
    stream::iter(0..count).map(move |_| {
        work.of(COMPUTED);
        Bytes::from(vec![7; MESSAGE])
    })
}

fn time(answer: &Bytes) -> Result<i64, BoxError> {
    Ok(std::str::from_utf8(answer)?.parse()?)
}

async fn plain(channel: Channel) -> Result<i64, BoxError> {
    time(&twolane_grpc::call(channel, path::UNARY, Bytes::new()).await?)
}

fn request(channel: Channel) -> Ask {
    ask(channel, plain)
}

pub(super) fn unary() -> Client {
    Rows::new("tonic, unary", Some(Kind::Grpc), channel, request)
        .tolerated("plain", |channel, _| plain(channel))
        .way(
            "IoLayer",
            Mark::Recommended,
            |channel, cpu| tonic_unary::layered(&channel, cpu),
            |channel, _| async move {
                time(&tonic_unary::call(&channel, path::UNARY, Bytes::new()).await?)
            },
        )
        .done()
}

pub(super) fn upload() -> Client {
    let layered = |channel, cpu: &_| tonic_unary::layered(&channel, cpu);
    Rows::new(
        "tonic, client streaming",
        Some(Kind::Grpc),
        channel,
        request,
    )
    .on_two(upload_plainly, upload_by_hand)
    .way(
        "IoLayer alone",
        Mark::Warned(Stalls),
        layered,
        |channel: IoService<Channel>, work| async move {
            let answer = grpc::upload(channel, Request::new(messages(work))).await?;
            Ok(computed(time(&answer.into_inner())?))
        },
    )
    .way(
        "IoLayer, stream_from_cpu",
        Mark::Recommended,
        abort::layered,
        |channel, work| async move {
            let answer = tonic_upload::upload(&channel, messages(work)).await?;
            Ok(computed(time(&answer)?))
        },
    )
    .done()
}

pub(super) fn bidi() -> Client {
    let layered = |channel, cpu: &_| tonic_unary::layered(&channel, cpu);
    Rows::new("tonic, bidirectional", Some(Kind::Grpc), channel, request)
        .on_two(bidi_plainly, bidi_by_hand)
        .way(
            "IoLayer alone",
            Mark::Warned(Stalls),
            layered,
            |channel: IoService<Channel>, work| async move {
                let answers = grpc::bidi(channel, Request::new(messages(work))).await?;
                read(answers).await
            },
        )
        .way(
            "IoLayer, stream_from_cpu",
            Mark::Recommended,
            abort::layered,
            |channel, work| async move {
                let (mut answers, failure) = tonic_bidi::talk(&channel, messages(work)).await?;
                let mut last = None;
                while let Some(answer) = failure.check(answers.message().await)? {
                    last = Some(time(&answer)?);
                }
                Ok(computed(last))
            },
        )
        .done()
}

/// Reads all answers.
async fn read(answers: Response<tonic::Streaming<Bytes>>) -> Result<Answer, BoxError> {
    let mut answers = answers.into_inner();
    let mut last = None;
    while let Some(answer) = answers.message().await? {
        last = Some(time(&answer)?);
    }
    Ok(computed(last))
}

async fn upload_plainly(channel: Channel, _: Cpu, work: Work) -> Result<Answer, BoxError> {
    let answer = grpc::upload(channel, Request::new(messages(work))).await?;
    Ok(computed(time(&answer.into_inner())?))
}

/// The call is a task of the I/O runtime; the messages come by a channel.
async fn upload_by_hand(channel: Channel, cpu: Cpu, work: Work) -> Result<Answer, BoxError> {
    let (mut sender, receiver) = futures::channel::mpsc::channel(16);
    let call = cpu
        .io()
        .spawn(async { grpc::upload(channel, Request::new(receiver)).await });
    let mut messages = std::pin::pin!(messages(work));
    while let Some(message) = messages.next().await {
        sender.send(message).await?;
    }
    drop(sender);
    Ok(computed(time(&call.await??.into_inner())?))
}

async fn bidi_plainly(channel: Channel, _: Cpu, work: Work) -> Result<Answer, BoxError> {
    read(grpc::bidi(channel, Request::new(messages(work))).await?).await
}

async fn bidi_by_hand(channel: Channel, cpu: Cpu, work: Work) -> Result<Answer, BoxError> {
    let (mut sender, receiver) = futures::channel::mpsc::channel(16);
    let call = cpu
        .io()
        .spawn(async { read(grpc::bidi(channel, Request::new(receiver)).await?).await });
    let mut messages = std::pin::pin!(messages(work));
    while let Some(message) = messages.next().await {
        sender.send(message).await?;
    }
    drop(sender);
    call.await?
}
