//! The modules around `src/stream/batch.rs`.

#[path = "../../../src/stream/batch.rs"]
pub(crate) mod batch;

/// In place of `src/stream/shared.rs`: a piece without bytes, sizes and failures.
pub(crate) mod shared {
    use std::mem;

    pub(crate) struct Piece<O> {
        pub(crate) first: u64,
        pub(crate) inputs: usize,
        pub(crate) outputs: Vec<O>,
    }

    impl<O> Piece<O> {
        pub(crate) fn new(first: u64, _room: usize) -> Self {
            Self {
                first,
                inputs: 0,
                outputs: Vec::new(),
            }
        }

        pub(crate) fn join(&mut self, next: &mut Self) {
            self.inputs += mem::take(&mut next.inputs);
            self.outputs.append(&mut next.outputs);
        }

        pub(crate) fn end(&self) -> u64 {
            self.first + self.inputs as u64
        }
    }

    pub(crate) enum Message<O> {
        Pieces(Vec<Piece<O>>),
    }
}
