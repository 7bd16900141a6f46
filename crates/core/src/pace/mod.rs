//! How long steps take, and what the queue makes of that: which call sites are short, how short jobs
//! and others share the threads, and how keys do.

pub(crate) mod clock;
pub(crate) mod length;
mod mean;
mod order;
mod shares;
mod took;

pub(crate) use length::Length;
pub(crate) use mean::Mean;
pub(crate) use order::{Order, Turn};
pub(crate) use shares::Shares;
pub(crate) use took::{Step, Took};

use std::time::Duration;

use crate::key::KeyName;

/// How the queue has popped a job.
#[derive(Default)]
pub(crate) struct Popped {
    /// It has the share of the short ones, unless it shows that its site is long.
    pub(crate) is_short: bool,
    pub(crate) has_key: bool,
    /// While jobs of keys are queued: the turn of its key, or that of the jobs without one.
    pub(crate) turn: Option<Turn<Option<KeyName>>>,
    /// For how long its step computed, if it has a turn and the step has ended.
    pub(crate) computed: Duration,
}
