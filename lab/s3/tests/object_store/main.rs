//! `twolane::io::IoConnector`: object_store over a real S3 server, with faults
//! between the two. The same tests for each version of object_store.

#![allow(
    clippy::duplicate_mod,
    reason = "a module's `super::object_store` is another version each time"
)]

#[path = "../../../../crates/core/tests/support/dice.rs"]
mod dice;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

mod errors;

#[path = "."]
mod v0_14 {
    use object_store_0_14 as object_store;

    mod chance;
    mod connectors;
    mod lanes_end;
    mod network;
    mod round_trip;
    mod store;
}

#[cfg(feature = "object_store_0_13")]
#[path = "."]
mod v0_13 {
    use object_store_0_13 as object_store;

    mod chance;
    mod connectors;
    mod lanes_end;
    mod network;
    mod round_trip;
    mod store;
}
