//! Whether the process has forked since: then the threads of its lanes, and those
//! of its I/O runtime, are in the parent, and whoever waits for them here waits for
//! ever.
//!
//! Asked by each poll that finds nothing yet, with a system call of some 50 ns, since
//! nothing else tells without `unsafe`.

/// The process that something belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Self {
        Self(std::process::id())
    }

    /// This process is a fork of that one.
    pub(crate) fn is_elsewhere(self) -> bool {
        std::process::id() != self.0
    }
}
