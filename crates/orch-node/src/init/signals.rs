//! The signals that init sleeps until: a child has ended, or the node is to stop.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use crate::tool::timespec;

pub(super) struct Signals {
    wake: UnixStream,
    stop: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            // The flag first: whoever is woken finds it set.
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        for signal in [SIGTERM, SIGINT, SIGCHLD] {
            signal_hook::low_level::pipe::register(signal, woken.try_clone()?)?;
        }
        Ok(Self { wake, stop })
    }

    pub(super) fn is_stop_asked(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Sleeps until a signal came since the last sleep, or until then.
    pub(super) fn wait(&self, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
        // Whatever wakes it, the caller looks at everything again.
        let _ = poll(&mut fds, left.map(up).as_ref());
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|count| count > 0) {}
    }
}

/// Rounded up: who wakes a moment too early would go round in circles until the moment has come.
fn up(time: Duration) -> rustix::event::Timespec {
    timespec(time + Duration::from_millis(1))
}
