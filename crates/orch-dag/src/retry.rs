//! How often a failed task is tried again, and how long is waited between.
//!
//! Waiting itself is not here: a wait must end when the run does, and only the run knows.

use std::fmt;
use std::time::Duration;

/// How often a failed task is tried again, and how long is waited between: `initial · 2^k`, never more than `cap`,
/// of which jitter takes away up to half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    times: u32,
    initial: Duration,
    cap: Duration,
}

impl Retry {
    /// Up to `times` further attempts after the first, beginning with a wait of 500 ms, with none above 30 s.
    pub fn times(times: u32) -> Self {
        Self { times, initial: Duration::from_millis(500), cap: Duration::from_secs(30) }
    }

    /// The wait before the first retry.
    pub fn initial(mut self, initial: Duration) -> Self {
        self.initial = initial;
        self
    }

    /// The longest wait.
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// Whether another attempt is allowed after `attempts` of them.
    pub(crate) fn allows(&self, attempts: u32) -> bool {
        attempts <= self.times
    }

    /// The wait after `attempts` failed ones; `random` is any number, spread evenly.
    pub(crate) fn wait(&self, attempts: u32, random: u64) -> Duration {
        let factor = 2u32.saturating_pow(attempts.saturating_sub(1));
        let longest = self.initial.saturating_mul(factor).min(self.cap);
        let half = longest / 2;
        // Ten bits of randomness keep many retrying tasks apart; a `Duration` can be multiplied by no more than a `u32`.
        let share = u32::try_from(random >> 54).unwrap_or(0);
        half + half / 1024 * share
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} times, waiting {:?} and doubling up to {:?}", self.times, self.initial, self.cap)
    }
}

/// A number from 0 to `u64::MAX`, the same for the same three: splitmix64, which needs no state to be shared.
pub(crate) fn random(seed: u64, task: usize, attempt: u32) -> u64 {
    let task = (task as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut mixed =
        seed.wrapping_add(task).wrapping_add(u64::from(attempt).wrapping_mul(0xD1B5_4A32_D192_ED03));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn waits_double_up_to_the_cap() {
        let retry = Retry::times(9).initial(Duration::from_secs(1)).cap(Duration::from_secs(10));
        let waits: Vec<_> =
            (1..=6).map(|attempts| retry.wait(attempts, u64::MAX).as_secs_f64().round()).collect();
        expect!["[1.0, 2.0, 4.0, 8.0, 10.0, 10.0]"].assert_eq(&format!("{waits:?}"));
        assert_eq!(retry.wait(u32::MAX, u64::MAX).as_secs_f64().round().to_bits(), 10f64.to_bits());
    }

    #[test]
    fn jitter_takes_away_up_to_half() {
        let retry = Retry::times(1).initial(Duration::from_secs(2));
        assert_eq!(retry.wait(1, 0), Duration::from_secs(1));
        let waits: Vec<_> = (0..100).map(|task| retry.wait(1, random(7, task, 1))).collect();
        assert!(waits.iter().all(|wait| (1.0..=2.0).contains(&wait.as_secs_f64())));
        assert!(waits.iter().any(|wait| wait.as_secs_f64() < 1.2));
        assert!(waits.iter().any(|wait| wait.as_secs_f64() > 1.8));
    }
}
