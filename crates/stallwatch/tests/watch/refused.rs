//! Which settings does a watch refuse?

use std::io;
use std::time::Duration;

use stallwatch::Watch;

#[test]
fn a_threshold_that_it_cannot_tell_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = |threshold| Watch::new().threshold(threshold).start(runtime.handle());
    let error = start(Duration::from_micros(500)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains("500µs") && text.contains("1ms"), "{text}");
    drop(start(Duration::from_millis(1)).unwrap());
}

#[test]
fn an_error_of_the_spawn_is_passed_on() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spawn = |_, _| Err(io::Error::other("no threads today"));
    let error = Watch::new().start_on(runtime.handle(), spawn).unwrap_err();
    assert!(error.to_string().contains("no threads today"), "{error}");
}
