//! When the server is asked, and asked again.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use super::client::CallError;
use crate::signals::Signals;

/// A server may ask for patience, but not for this much more of it.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(5);

/// When the server is asked, and asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pace {
    /// When each try begins, counted from the first.
    pub(crate) tries: Vec<Duration>,
    /// How long a connection that is refused is tried again within one try.
    pub(crate) patience: Duration,
    /// How long one call may take.
    pub(crate) call: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            tries: [0, 10, 20, 40, 80].map(Duration::from_secs).into(),
            patience: Duration::from_secs(3),
            call: Duration::from_secs(30),
        }
    }
}

impl Pace {
    /// Asks until there is an answer, a refusal that will not pass, or no try left. The last error is told, and how often
    /// was asked. Whoever says meanwhile to look again may have brought what was missing, so nothing is waited for then.
    pub(super) fn ask<T>(
        &self,
        signals: &Signals,
        mut once: impl FnMut() -> Result<T, CallError>,
    ) -> Result<T, (CallError, u32)> {
        let begin = Instant::now();
        let (mut count, mut earliest, mut last) = (0, begin, CallError::Told);
        for time in &self.tries {
            let start = earliest.max(begin + *time);
            let is_told = || signals.is_stop_asked() || (count > 0 && signals.is_look_again_asked());
            while Instant::now() < start && !is_told() {
                signals.wait(Some(start));
            }
            if is_told() {
                return Err((CallError::Told, count));
            }
            count += 1;
            match once() {
                Ok(answer) => return Ok(answer),
                Err(error) if error.may_pass() => last = error,
                Err(error) => return Err((error, count)),
            }
            if let CallError::Status { retry_after: Some(pause), .. } = last {
                earliest = Instant::now() + pause.min(LONGEST_RETRY_AFTER);
            }
        }
        Err((last, count))
    }
}

/// A time that is up to a tenth longer or shorter, so that nodes made at one moment do not all come at one moment.
pub(super) fn jittered(time: Duration) -> Duration {
    let random = RandomState::new().hash_one(0);
    let fifth = u64::try_from((time / 5).as_millis()).unwrap_or(u64::MAX - 1);
    time * 9 / 10 + Duration::from_millis(random % (fifth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jittered_time_stays_within_a_tenth() {
        let times: Vec<Duration> = (0..200).map(|_| jittered(Duration::from_secs(100))).collect();
        assert!(times.iter().all(|time| (90..=110).contains(&time.as_secs())), "{times:?}");
        assert!(times.iter().any(|time| *time != times[0]));
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }
}
