//! In place of `stacks`, where there are none.

#[derive(Debug)]
pub(crate) struct Stacks(());

impl Stacks {
    pub(crate) fn new() -> Self {
        Self(())
    }

    pub(crate) fn sample(&mut self, _thread: Option<u32>) -> Option<Sampled> {
        None
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) enum Sampled {}

impl Sampled {
    pub(crate) fn resolve(self) -> Option<String> {
        match self {}
    }
}
