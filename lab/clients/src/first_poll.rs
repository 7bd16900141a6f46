//! A future that tells when it has been polled once.

use std::future::poll_fn;
use std::pin::pin;

/// Calls `tell` after the first poll of `future`, also if that panics.
pub async fn after_first_poll<F: Future>(future: F, tell: impl Fn()) -> F::Output {
    struct Tell<T: Fn()>(T);
    impl<T: Fn()> Drop for Tell<T> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let mut future = pin!(future);
    let mut first = Some(Tell(tell));
    poll_fn(|cx| {
        let _first = first.take();
        future.as_mut().poll(cx)
    })
    .await
}
