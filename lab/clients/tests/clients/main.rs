//! Real clients and real servers: what holds whatever the jobs do.
//!
//! PostgreSQL and redis are Debian's: `apt-get install postgresql redis-server`, or
//! `lab/clients/servers`, which installs nothing.

#[path = "../../../../crates/core/tests/support/dice.rs"]
mod dice;
#[path = "../../../../tests/support/gate.rs"]
mod gate;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

mod busy_lane;
mod cuts;
mod pool;
mod report;
mod servers;
