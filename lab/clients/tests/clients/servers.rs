//! The servers that the tests share, and that they end.

use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use twolane_clients::servers::{Kind, Server};

use crate::support::time_limit;

static STARTED: Mutex<Vec<(Kind, Arc<Server>)>> = Mutex::new(Vec::new());

fn start(kind: Kind) -> Server {
    let program = Path::new(env!("CARGO_BIN_EXE_twolane-clients"));
    Server::start(program, kind).unwrap_or_else(|error| panic!("{error}"))
}

/// One for all tests; the keepers end with this process.
pub(crate) fn server(kind: Kind) -> Arc<Server> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, server)) = started.iter().find(|(of, _)| *of == kind) {
        return server.clone();
    }
    let server = Arc::new(start(kind));
    started.push((kind, server.clone()));
    server
}

/// One that a test may cut, without disturbing others.
pub(crate) fn own(kind: Kind) -> Arc<Server> {
    Arc::new(start(kind))
}

/// The keeper sees the end of its pipe, as it does when this process is killed.
#[test]
fn a_server_ends_with_its_parent() {
    let _limit = time_limit();
    for kind in [Kind::Postgres, Kind::Redis, Kind::Http] {
        let server = start(kind);
        let address = server.address();
        TcpStream::connect(address).unwrap();
        drop(server);
        TcpStream::connect(address).unwrap_err();
    }
}
