//! Calls whose messages are computed on the CPU lane, by the recipe in `src/abort.rs`: if
//! the computation ends early, the server sees an error and the caller gets its cause. It
//! is never the end of a stream that looks whole.

use std::future::pending;

use bytes::Bytes;
use futures::future::FutureExt;
use futures::stream::{self, StreamExt};
use tokio::sync::oneshot;
use tonic::{Code, Status};
use twolane::Priority;
use twolane::io::BridgeError;
use twolane_grpc as grpc;

use crate::service::*;
use crate::support::Lanes;

#[test]
fn messages_arrive_whole_and_end_as_such() {
    each_call(|service, Lanes { cpu, io: _io }, call| {
        let client = service.client(&cpu);
        for count in [0, 1, 1_000] {
            let messages = computed(&cpu, numbers(count));
            let sent = cpu.spawn(send(client.clone(), call, messages));
            sent.wait().unwrap().unwrap();
            assert_eq!(service.end(), Seen::Whole(count));
        }
    });
}

/// And other calls go on: an abort resets one stream of the connection.
#[test]
fn a_panic_on_the_lane_is_an_error_at_both_ends() {
    each_call(|service, Lanes { cpu, io: _io }, call| {
        let client = service.client(&cpu);
        let (finish, rest) = three_then(|last| last);
        let other = cpu.spawn(send(client.clone(), call, computed(&cpu, rest)));
        service.has_read(3);
        let (go_on, messages) = three_then(|()| panic!("no such row"));
        let sent = cpu.spawn(send(client.clone(), call, computed(&cpu, messages)));
        service.has_read(3);
        go_on.send(()).unwrap();
        assert_eq!(service.end(), Seen::Failed(3, Code::Internal));
        let status = sent.wait().unwrap().unwrap_err();
        assert!(status.message().contains("no such row"), "{status:?}");
        assert!(source::<BridgeError>(&status).is_panic());
        let message = Bytes::from("echo");
        let echo = cpu.spawn(grpc::call(client.clone(), "/test/echo", message.clone()));
        assert_eq!(echo.wait().unwrap().unwrap(), message);
        finish.send(Bytes::from("4")).unwrap();
        other.wait().unwrap().unwrap();
        assert_eq!(service.end(), Seen::Whole(4));
    });
}

/// The caller is on the I/O lane: a job would end with its lane.
#[test]
fn a_shutdown_of_the_lane_is_an_error_at_both_ends() {
    each_call(|service, Lanes { cpu, io }, call| {
        let messages = computed(&cpu, three_and_no_end());
        let sent = io.spawn(send(service.client(&cpu), call, messages));
        service.has_read(3);
        cpu.shutdown().wait();
        let status = io.block_on(sent).unwrap().unwrap_err();
        let cause = source::<BridgeError>(&status).to_string();
        assert!(cause.contains("the CPU lane stopped"), "{cause}");
        assert_eq!(service.end(), Seen::Failed(3, Code::Internal));
    });
}

/// A full queue refuses the stream before its first message.
#[test]
fn a_stream_that_never_began_fails_the_call() {
    let set = |lane: twolane::Builder| lane.queue_limit(Priority::Normal, 1);
    each_call_with(set, |service, Lanes { cpu, io }, call| {
        let other = cpu.spawn(pending::<()>());
        let client = service.client(&cpu);
        let sent = send(client.clone(), call, computed(&cpu, numbers(3)));
        let status = io.block_on(sent).unwrap_err();
        assert!(status.message().contains("queue"), "{status:?}");
        source::<BridgeError>(&status);
        drop(other);
        // The server has seen nothing of it, or an error.
        let sent = send(client, call, numbers(5).map(Ok::<_, Status>));
        io.block_on(sent).unwrap();
        let whole = service
            .seen
            .iter()
            .find(|seen| matches!(seen, Seen::Whole(_)));
        assert_eq!(whole, Some(Seen::Whole(5)));
    });
}

#[test]
fn an_error_of_the_messages_themselves_arrives_as_that_status() {
    each_call(|service, Lanes { cpu, io: _io }, call| {
        let (go_on, torn) = oneshot::channel();
        let torn = stream::once(torn.map(|torn| Err(torn.unwrap())));
        let messages = numbers(3).map(Ok::<_, Status>).chain(torn);
        let bridged = cpu.handle().stream_from_cpu(messages, 64, |_| 1);
        let messages = bridged.map(|message| Ok::<_, tower::BoxError>(message??));
        let sent = cpu.spawn(send(service.client(&cpu), call, messages));
        service.has_read(3);
        go_on.send(Status::data_loss("page 7 is torn")).unwrap();
        let status = sent.wait().unwrap().unwrap_err();
        assert_eq!(status.code(), Code::DataLoss);
        assert_eq!(status.message(), "page 7 is torn");
        assert_eq!(service.end(), Seen::Failed(3, Code::Internal));
    });
}
