//! `password`: right and wrong passwords, the priority of logins, and a full queue.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::{Client, Response};
use twolane::Priority;

use crate::password::{cpu_lane, hash_of, routes};
use crate::support::{Full, Lanes};
use crate::{busy, lanes_of, let_go, serve};

#[test]
fn logins_are_answered_or_shed() {
    let Lanes { cpu, io } = lanes_of(cpu_lane);
    let lane = cpu.handle().clone();
    let users = HashMap::from([
        ("alice".to_owned(), hash_of("correct horse").unwrap()),
        ("broken".to_owned(), "no hash".to_owned()),
    ]);
    let url = io.block_on(serve(routes(lane.clone(), Arc::new(users))));
    let login = async |user: &str, password: &'static str| -> Response {
        let request = Client::new().post(format!("{url}/login/{user}"));
        request.body(password).send().await.unwrap()
    };

    // Jobs at `Normal` keep all their threads meanwhile.
    let others = busy(&lane);
    io.block_on(async {
        for (user, password, status) in [
            ("alice", "correct horse", 204),
            ("alice", "battery staple", 401),
            ("alice", "", 401),
            ("bob", "correct horse", 401),
            ("broken", "no hash", 401),
        ] {
            assert_eq!(login(user, password).await.status(), status, "{user}");
        }
        let full = Full::of(&lane.with_priority(Priority::High));
        let shed = login("alice", "correct horse").await;
        assert_eq!(shed.status(), 503);
        assert_eq!(shed.headers()["retry-after"], "1");
        full.end().await;
        assert_eq!(login("alice", "correct horse").await.status(), 204);
    });
    let_go(others);
}
