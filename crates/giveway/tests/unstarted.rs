//! A process that has not called `start`: a file of its own, since others have.

use giveway::{Weight, spawn};

/// Either started threads of the process, unasked.
#[test]
fn without_a_start_the_error_names_it() {
    let refused = Weight::raised_by(1).apply().unwrap_err().to_string();
    assert!(refused.contains("giveway::start"), "{refused}");
    assert_eq!(spawn("child", || ()).unwrap_err().to_string(), refused);
    giveway::start().unwrap();
    std::thread::spawn(|| Weight::raised_by(1).apply().unwrap())
        .join()
        .unwrap();
}
