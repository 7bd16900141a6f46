//! In place of `stacks`, where there are none.

#[derive(Debug)]
pub(super) struct Stacks(());

impl Stacks {
    pub(super) fn new() -> Self {
        Self(())
    }

    pub(super) fn sample(&mut self, _thread: Option<u32>) -> Option<Sampled> {
        None
    }
}

/// There are none.
#[derive(Debug)]
pub(super) enum Sampled {}

impl Sampled {
    pub(super) fn resolve(self) -> Option<String> {
        match self {}
    }
}
