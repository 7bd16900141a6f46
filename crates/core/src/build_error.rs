//! [`BuildError`]: why [`Builder::build`](crate::Builder::build) failed.

use std::borrow::Cow;
use std::error::Error;
use std::{fmt, io};

/// The error of [`Builder::build`](crate::Builder::build).
///
/// There is no Tokio runtime to be the I/O lane, or it has ended; a setting is invalid; or the
/// operating system gives no thread. Its text names the setting, the value, the limit and the
/// remedy, so it is for a person and not for a `match`. If the operating system gave no thread,
/// [`source`](Error::source) is its `io::Error`.
///
/// # Examples
///
/// ```
/// // There is no Tokio runtime here, and no `io_handle`:
/// let err = twolane::CpuRuntime::new().unwrap_err();
/// assert!(err.to_string().contains("Builder::io_handle"));
/// ```
pub struct BuildError {
    text: Cow<'static, str>,
    cause: Option<io::Error>,
}

impl BuildError {
    /// The text names the setting as it was made, and the remedy.
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        Self { text, cause: None }
    }

    pub(crate) fn unless<T>(is_valid: bool, text: impl FnOnce() -> T) -> Result<(), Self>
    where
        T: Into<Cow<'static, str>>,
    {
        is_valid.then_some(()).ok_or_else(|| Self::new(text()))
    }

    /// The operating system gave no thread.
    pub(crate) fn no_thread(cause: io::Error) -> Self {
        Self {
            cause: Some(cause),
            ..Self::new("the operating system gave the CPU lane no thread")
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text of `Display`, and the cause. `main` prints this text for an error that it
/// returns.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{self}: {cause}"),
            None => write!(f, "{self}"),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
