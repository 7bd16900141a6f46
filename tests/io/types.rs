//! What the types of bodies, values and clients can be used for: auto-traits, which change without
//! notice, and `Debug`, which must help and never panic. (The others:
//! `tests/lane/types.rs` of `twolane-core`.)

use std::error::Error;
use std::fmt::Debug;
use std::future::IntoFuture;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::shows::shows;
use crate::support::{Lanes, lanes};
use futures::stream::{self, StreamExt};
use http_body_util::Empty;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use twolane::io::{BodyError, BridgedBody, SendIo, SendIoError};
use twolane::{HandleExt, IoOwned, IoShared, RequestBuilderExt};

assert_impl_all!(BodyError<io::Error>: Error, Send, Sync, Unpin);
assert_impl_all!(SendIoError: Error, Send, Sync, Unpin);
assert_impl_all!(BridgedBody<bytes::Bytes, io::Error>: http_body::Body, Debug, Send, Sync, Unpin);
assert_impl_all!(SendIo: IntoFuture, Debug, Send, Unpin);
// Only one task at a time uses the value, so it need not be `Sync`.
assert_impl_all!(IoOwned<std::cell::Cell<u8>>: Debug, Send, Sync, Unpin);
assert_not_impl_any!(IoOwned<u8>: Clone);
assert_impl_all!(IoShared<std::cell::Cell<u8>>: Clone, Debug, Send, Sync, Unpin);
assert_impl_all!(IoOwned<std::cell::Cell<u8>>: UnwindSafe, RefUnwindSafe);
assert_impl_all!(IoShared<std::cell::Cell<u8>>: UnwindSafe, RefUnwindSafe);

/// One looks at `Debug` when something hangs: it tells the state.
#[test]
fn debug_tells_the_state_of_values_and_bodies() {
    let (handle, _lanes) = lanes(2).and_handle();
    let value = handle.io_owned(1);
    shows(&value, &["IoOwned", "in_use: false"]);
    shows(&value.shared(), &["IoShared"]);
    let body = handle.body_from_io(Empty::<bytes::Bytes>::new(), 1);
    shows(&body, &["BridgedBody", "left"]);

    let request = reqwest::Client::new().get("http://127.0.0.1:1/").send_io();
    shows(&request.body_limit(77), &["SendIo", "body_limit: 77"]);
}

/// `unwrap` prints `Debug`: it must tell what happened.
#[test]
fn debug_of_errors_of_bodies_and_clients_tells_what_happened() {
    let Lanes { cpu, io } = lanes(1);
    let parser = stream::poll_fn(|_| -> std::task::Poll<Option<u8>> { panic!("parser") });
    let mut bridged = cpu.handle().stream_from_io(parser, 1, |_| 1);
    let lost = io.block_on(bridged.next()).unwrap().unwrap_err();
    shows(&BodyError::<io::Error>::Lost(lost), &["Lost", "parser"]);
    shows(
        &BodyError::Body(io::Error::other("reset")),
        &["Body", "reset"],
    );
    let sent = reqwest::Client::new()
        .get("http://127.0.0.1:1/")
        .send_io()
        .into_future();
    shows(&io.block_on(sent).unwrap_err(), &["NoCurrentHandle"]);
}
