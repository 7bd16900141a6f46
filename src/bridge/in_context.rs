//! [`InIoContext`]: a future inside the I/O runtime's context.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

pin_project! {
    /// A future that is made, polled and dropped inside the I/O runtime's context.
    ///
    /// Returned by [`in_io_context`](crate::in_io_context).
    ///
    /// # Panics
    ///
    /// Polling it again after it is ready panics.
    #[must_use = "futures do nothing unless awaited"]
    pub struct InIoContext<F> {
        // `None` once it is ready: some futures use the runtime when they are dropped,
        // and that must happen inside the context, too.
        #[pin]
        future: Option<F>,
        io: Handle,
    }

    impl<F> PinnedDrop for InIoContext<F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let _io = this.io.enter();
            let mut future = this.future;
            future.set(None);
        }
    }
}

impl<F: Future> InIoContext<F> {
    pub(crate) fn new(io: Handle, make: impl FnOnce() -> F) -> Self {
        let future = {
            // Some futures touch the runtime when they are made: reqwest's
            // `send` starts its timer at the call.
            let _io = io.enter();
            Some(make())
        };
        Self { future, io }
    }
}

impl<F: Future> Future for InIoContext<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _io = this.io.enter();
        let mut slot = this.future;
        let future = slot
            .as_mut()
            .as_pin_mut()
            .expect("`InIoContext` was polled after it was ready");
        let output = future.poll(cx);
        if output.is_ready() {
            slot.set(None);
        }
        output
    }
}

debug_by_name!(InIoContext<F>);
