//! tonic's clients and servers on both lanes.

mod computed_messages;
mod executors;
mod layer;
mod service;
mod without_the_layer;

#[path = "../../../../tests/support/server.rs"]
mod server;
#[path = "../../../../crates/core/tests/support/stepped.rs"]
mod stepped;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;
