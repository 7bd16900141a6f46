//! A guard that runs a closure when it is dropped.

pub(crate) struct OnDrop<F: FnMut()>(F);

pub(crate) fn on_drop<F: FnMut()>(f: F) -> OnDrop<F> {
    OnDrop(f)
}

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
