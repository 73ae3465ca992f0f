//! When the next question may be asked: all questions of a provider share what the API still allows.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep_until};

use super::pace::Pace;
use crate::api::Reply;

/// Who says when the next question may be asked.
pub(super) struct Pacer {
    turn: Mutex<Turn>,
}

struct Turn {
    /// Nothing is asked before.
    free: Instant,
    /// The time between two questions.
    spacing: Duration,
}

/// Nobody is held longer, whatever he is told: an API that says more is not right.
const LONGEST: Duration = Duration::from_hours(1);

impl Pacer {
    pub(super) fn new() -> Self {
        Self { turn: Mutex::new(Turn { free: Instant::now(), spacing: Duration::ZERO }) }
    }

    /// Waits for one's turn; where that comes after the deadline, says at once how long it would take.
    pub(super) async fn turn(&self, until: Instant) -> Result<(), Duration> {
        let now = Instant::now();
        let at = {
            let mut turn = self.turn.lock().expect("nobody panics while holding this");
            let at = turn.free.max(now);
            if at > until {
                return Err(at - now);
            }
            turn.free = at + turn.spacing;
            at
        };
        if at > now {
            sleep_until(at).await;
        }
        Ok(())
    }

    /// Learns from an answer how much may still be asked.
    pub(super) fn learn(&self, reply: &Reply, pace: &Pace) {
        let Some(remaining) = number(reply, "ratelimit-remaining") else { return };
        let spacing = if remaining >= pace.low { Duration::ZERO } else { refill(reply).min(pace.slowest) };
        self.turn.lock().expect("nobody panics while holding this").spacing = spacing;
    }

    /// Nothing is asked for a while: the API has had enough. Says for how long.
    pub(super) fn hold(&self, reply: &Reply, pause: Duration) -> Duration {
        let told = number(reply, "retry-after").map(Duration::from_secs);
        let wait = told.unwrap_or_else(|| refill(reply).max(pause)).min(LONGEST);
        let mut turn = self.turn.lock().expect("nobody panics while holding this");
        turn.free = turn.free.max(Instant::now() + wait);
        wait
    }
}

/// How long it takes until one more question is allowed. The API says when all of them are allowed again.
fn refill(reply: &Reply) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let full = number(reply, "ratelimit-reset").map_or(Duration::ZERO, Duration::from_secs);
    let limit = number(reply, "ratelimit-limit").unwrap_or_default();
    let used = limit.saturating_sub(number(reply, "ratelimit-remaining").unwrap_or_default());
    full.saturating_sub(now) / u32::try_from(used.max(1)).unwrap_or(u32::MAX)
}

fn number(reply: &Reply, header: &str) -> Option<u64> {
    reply.header(header)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;

    use super::*;

    fn reply(headers: &[(&str, u64)]) -> Reply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        Reply { status: 200, reason: None, headers, body: Bytes::default() }
    }

    fn in_seconds(seconds: u64) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds
    }

    #[tokio::test]
    async fn questions_slow_down_for_everybody_when_few_are_left_and_only_then() {
        let (pacer, pace) = (Pacer::new(), Pace::default());
        let left = |remaining| {
            let reset = in_seconds(3600 - remaining);
            reply(&[
                ("ratelimit-limit", 3600),
                ("ratelimit-remaining", remaining),
                ("ratelimit-reset", reset),
            ])
        };
        let spacing = || pacer.turn.lock().unwrap().spacing;
        pacer.learn(&left(3000), &pace);
        assert_eq!(spacing(), Duration::ZERO);
        pacer.learn(&left(10), &pace);
        let slow = spacing();
        assert!(slow > Duration::from_millis(990) && slow <= Duration::from_secs(1), "{slow:?}");
        pacer.learn(&reply(&[]), &pace);
        assert_eq!(spacing(), slow, "an answer that says nothing changes nothing");
    }

    #[tokio::test]
    async fn who_was_told_to_wait_longer_than_there_is_time_hears_so_at_once() {
        let pacer = Pacer::new();
        assert_eq!(
            pacer.hold(&reply(&[("retry-after", 30)]), Duration::from_millis(1)),
            Duration::from_secs(30)
        );
        let soon = Instant::now() + Duration::from_secs(1);
        let wait = pacer.turn(soon).await.unwrap_err();
        assert!(wait > Duration::from_secs(28), "{wait:?}");
    }
}
