//! `Debug` that has to help.

use std::fmt::Debug;

#[allow(unreachable_pub, reason = "other tests use it as a module of theirs")]
/// `{value:?}`, which has to tell more than a bare name.
#[track_caller]
pub fn shows(value: &dyn Debug, parts: &[&str]) {
    let (short, long) = (format!("{value:?}"), format!("{value:#?}"));
    for part in parts {
        assert!(short.contains(part), "{part} in {short}");
        assert!(long.contains(part), "{part} in {long}");
    }
}
