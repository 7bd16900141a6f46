//! The I/O lane, and all that crosses over to it and back.

mod bridge;
mod bridge_ends;
mod clients;
mod crossing;
mod drops;
mod held;
mod in_cpu_context;
mod io_lane;
mod owned;
mod owned_ends;
mod routing;
mod send_io;
mod tasks;
mod tower;

#[path = "../support/dice.rs"]
mod dice;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/stepped.rs"]
mod stepped;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/watched.rs"]
mod watched;
