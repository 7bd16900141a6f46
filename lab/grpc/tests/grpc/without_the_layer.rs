//! What else a user would write, and why it is not enough. If one of these fails, tonic or
//! hyper has changed, and the recipe may have become simpler.

use futures::future::ready;
use futures::stream::StreamExt;
use tonic::{Code, Request};
use tower::Layer;
use twolane::io::IoLayer;
use twolane_grpc as grpc;

use crate::service::*;
use crate::support::{Lanes, lanes};

#[test]
fn a_stream_that_ends_at_its_error_looks_whole() {
    let service = Service::start();
    let Lanes { cpu, io } = lanes(1);
    let plain = IoLayer::new(cpu.handle()).layer(service.channel(&cpu));
    let (go_on, messages) = three_then(|()| panic!("no such row"));
    // `map_while(Result::ok)`, as the futures crate spells it.
    let messages = computed(&cpu, messages).scan((), |(), message| ready(message.ok()));
    let sent = io.spawn(grpc::upload(plain, "/test/upload", Request::new(messages)));
    service.has_read(3);
    go_on.send(()).unwrap();
    assert_eq!(service.end(), Seen::Whole(3));
    io.block_on(sent).unwrap().unwrap();
}

/// With the recipe too: hyper resets it with `CANCEL`.
#[test]
fn a_call_that_is_dropped_looks_whole() {
    let service = Service::start();
    let Lanes { cpu, io: _io } = lanes(1);
    let messages = computed(&cpu, three_and_no_end());
    let sent = cpu.spawn(send(service.client(&cpu), Call::ClientStreaming, messages));
    service.has_read(3);
    drop(sent);
    assert_eq!(service.end(), Seen::Whole(3));
}

/// At the first call, not at the first one that must be aborted.
#[test]
fn without_the_layer_every_call_fails() {
    let service = Service::start();
    let Lanes { cpu, io } = lanes(1);
    let plain = IoLayer::new(cpu.handle()).layer(service.channel(&cpu));
    for call in CALLS {
        let sent = send(plain.clone(), call, computed(&cpu, numbers(3)));
        let status = io.block_on(sent).unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("`layered`"), "{status:?}");
    }
}
