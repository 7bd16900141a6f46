//! Calls whose messages are computed on the CPU lane, by the recipe in `src/abort.rs`: if
//! the computation ends early, the server sees an error and the caller gets its cause. It
//! is never the end of a stream that looks whole.

mod ends;
mod service;
mod without_the_layer;

#[path = "../../../tests/support/server.rs"]
mod server;
#[path = "../../../tests/support/mod.rs"]
mod support;
