//! The rounds of the pooled-client stall: `main.rs` runs them, explains them and draws
//! them, the bench `pool_stall` makes ratios of them.

pub mod connector;
pub mod contender;
pub mod cpu_side;
pub mod extra;
pub mod findings;
#[path = "../../support/folder.rs"]
pub mod found;
pub mod gate;
pub mod json;
pub mod lane;
#[path = "../../support/timeline.rs"]
pub mod picture;
pub mod reactor;
pub mod round;
pub mod server;
pub mod stats;
pub mod tables;
pub mod timeline;
pub mod twolane_side;
pub mod verdict;
pub mod wakes;
#[path = "../../support/words.rs"]
pub mod words;
pub mod world;
