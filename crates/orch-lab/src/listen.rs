//! Listening at an address that was let go of a moment ago.
//!
//! Whoever starts a process has a copy of everything that is open until that runs its own program. So a socket that was closed
//! here may live on there for a moment, and its address with it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// Listens, and tries again for a while where somebody else still does. Waits without a runtime.
pub(crate) fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(at) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                thread::sleep(BETWEEN_TRIES);
            }
            bound => return bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_let_go_of_is_had_and_one_that_is_kept_is_not() {
        let first = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let at = first.local_addr().expect("it is bound");
        let second = thread::spawn(move || listen(at));
        thread::sleep(BETWEEN_TRIES);
        drop(first);
        let second = second.join().expect("it does not panic").expect("it is free by then");
        assert_eq!(listen(at).expect_err("it is taken").kind(), io::ErrorKind::AddrInUse);
        drop(second);
    }
}
