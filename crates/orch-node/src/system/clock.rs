//! Time since the node was booted, which nobody can set, and which goes on while it sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long the node is up.
pub(super) fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The same in milliseconds, as it is written down.
pub(super) fn uptime_ms() -> u64 {
    u64::try_from(uptime().as_millis()).unwrap_or(u64::MAX)
}

/// How much is left until a moment that was written down.
pub(super) fn left_until(moment_ms: u64) -> Duration {
    Duration::from_millis(moment_ms.saturating_sub(uptime_ms()))
}

/// A moment that many seconds from one that was written down.
pub(super) const fn after(moment_ms: u64, seconds: u64) -> u64 {
    moment_ms.saturating_add(seconds.saturating_mul(1000))
}
