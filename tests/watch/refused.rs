//! Which settings does a watch refuse?

use std::time::Duration;

use twolane::{BuildError, CpuRuntime, Watch};

#[test]
fn a_threshold_that_it_cannot_tell_is_refused() {
    let io = tokio::runtime::Runtime::new().unwrap();
    let build = |threshold| {
        let watch = Watch::new().threshold(threshold);
        let builder = CpuRuntime::builder().io_handle(io.handle().clone());
        builder.watch_io(watch).build()
    };
    let error = build(Duration::from_micros(500)).unwrap_err();
    assert!(
        matches!(error, BuildError::WatchThreshold { .. }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(text.contains("500µs") && text.contains("10ms"), "{text}");
    build(Duration::from_millis(10)).unwrap();
}
