//! [`SendAsyncFnOnce`]: what the language has no bound for.

/// An async closure over a `&mut T` whose future is `Send`.
///
/// Stable Rust has no bound for the future of an `AsyncFnOnce(&mut T) -> R`. So
/// [`IoOwned::with`](super::IoOwned::with) has two bounds: by `AsyncFnOnce` the compiler infers the
/// types of the closure, and by this trait it knows that the future can go to another
/// thread. Async closures and `async fn`s implement it automatically.
///
/// # Examples
///
/// In a function that takes such a closure itself:
///
/// ```
/// use twolane::{JoinError, IoOwned};
/// use twolane::io::SendAsyncFnOnce;
///
/// async fn timed<T, R, F>(value: &mut IoOwned<T>, f: F) -> Result<R, JoinError>
/// where
///     T: Send + 'static,
///     R: Send + 'static,
///     F: AsyncFnOnce(&mut T) -> R + for<'a> SendAsyncFnOnce<'a, T, R> + Send + 'static,
/// {
///     let start = std::time::Instant::now();
///     let result = value.with(f).await;
///     println!("{:?}", start.elapsed());
///     result
/// }
/// # #[tokio::main] async fn main() {
/// # use twolane::HandleExt;
/// # let cpu = twolane::CpuRuntime::new().unwrap();
/// # let mut value = cpu.handle().io_owned(1);
/// # assert_eq!(timed(&mut value, async |value| *value).await.unwrap(), 1);
/// # }
/// ```
pub trait SendAsyncFnOnce<'a, T: 'a, R>: FnOnce(&'a mut T) -> Self::Future {
    /// The future of the closure.
    type Future: Future<Output = R> + Send + 'a;
}

impl<'a, T: 'a, R, F, Fut> SendAsyncFnOnce<'a, T, R> for F
where
    F: FnOnce(&'a mut T) -> Fut,
    Fut: Future<Output = R> + Send + 'a,
{
    type Future = Fut;
}

/// Calls by the trait: the future of a call by `AsyncFnOnce` is not known to be `Send`.
pub(super) fn call<'a, T, R, F>(f: F, value: &'a mut T) -> F::Future
where
    F: SendAsyncFnOnce<'a, T, R>,
{
    f(value)
}
