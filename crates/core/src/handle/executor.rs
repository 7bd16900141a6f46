//! [`IoHandle`] as what hyper takes to spawn futures.

use super::IoHandle;

/// The future runs on the I/O lane, for connections: hyper's clients and servers, and tonic, take
/// such an executor. If the I/O runtime has been shut down, it is dropped.
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for IoHandle {
    fn execute(&self, future: F) {
        self.spawn(future).detach();
    }
}
