//! The I/O lane, and all that crosses over to it and back.

mod bridge;
mod bridge_ends;
mod drops;
mod in_cpu_context;
mod io_lane;
mod routing;

#[path = "../support/dice.rs"]
mod dice;
#[path = "../support/dropping.rs"]
mod dropping;
#[path = "../support/stepped.rs"]
mod stepped;
#[path = "../support/mod.rs"]
mod support;
