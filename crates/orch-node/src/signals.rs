//! The signals that a process of the node that stays sleeps until: it is to stop, it is to look again, a child has ended.

use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::tool::timespec;

#[derive(Debug)]
pub(crate) struct Signals {
    wake: UnixStream,
    stop: Arc<AtomicBool>,
    look_again: Arc<AtomicBool>,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let (stop, look_again) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for (signal, flag) in [(SIGTERM, &stop), (SIGINT, &stop), (SIGHUP, &look_again)] {
            // The flag first: whoever is woken finds it set.
            signal_hook::flag::register(signal, Arc::clone(flag))?;
        }
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] {
            signal_hook::low_level::pipe::register(signal, woken.try_clone()?)?;
        }
        Ok(Self { wake, stop, look_again })
    }

    pub(crate) fn is_stop_asked(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether somebody said to look again since this was last taken.
    pub(crate) fn take_look_again(&self) -> bool {
        self.look_again.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn is_look_again_asked(&self) -> bool {
        self.look_again.load(Ordering::SeqCst)
    }

    /// Sleeps until a signal came since the last sleep, or until then.
    pub(crate) fn wait(&self, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
        // Whatever wakes it, the caller looks at everything again.
        let _ = poll(&mut fds, left.map(up).as_ref());
        self.drain();
    }

    /// Sleeps until something can be done with `fd`, a signal came, or until then. Whether it is the first.
    pub(crate) fn wait_for(&self, fd: BorrowedFd<'_>, wanted: PollFlags, until: Instant) -> io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::from_borrowed_fd(fd, wanted), PollFd::new(&self.wake, PollFlags::IN)];
        match poll(&mut fds, Some(&up(left))) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let is_ready = !fds[0].revents().is_empty();
        self.drain();
        Ok(is_ready)
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|count| count > 0) {}
    }
}

/// Rounded up: who wakes a moment too early would go round in circles until the moment has come.
fn up(time: Duration) -> rustix::event::Timespec {
    timespec(time + Duration::from_millis(1))
}
