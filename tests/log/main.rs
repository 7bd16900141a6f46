//! What reaches the log because no reader of a stream, and no owner of a value, would carry it?

mod owned;
mod streams;

#[path = "../support/gate.rs"]
mod gate;
#[path = "../../crates/core/tests/support/mod.rs"]
mod support;
#[path = "../../crates/core/tests/support/tap.rs"]
mod tap;
