//! Values, bodies and clients of the I/O lane.

mod bodies;
mod clients;
mod crossing;
mod owned;
mod owned_ends;
mod send_io;
mod spans;
mod tasks;
mod tower;
mod types;

#[path = "../../crates/core/tests/support/dice.rs"]
mod dice;
#[path = "../../crates/core/tests/support/dropping.rs"]
mod dropping;
#[path = "../support/gate.rs"]
mod gate;
#[path = "../../crates/core/tests/support/log.rs"]
mod log;
#[path = "../support/server.rs"]
mod server;
#[path = "../../crates/core/tests/support/shows.rs"]
mod shows;
#[path = "../../crates/core/tests/support/stepped.rs"]
mod stepped;
#[path = "../../crates/core/tests/support/mod.rs"]
mod support;
