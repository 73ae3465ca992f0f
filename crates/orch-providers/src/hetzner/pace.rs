//! How patient the provider is: every interval, deadline and bound in one place.

use std::time::Duration;

/// How patient the provider is.
#[derive(Debug, Clone)]
pub struct Pace {
    /// How long one answer may take.
    pub answer: Duration,
    /// How long a look may take, with everything that is asked again for it.
    pub look: Duration,
    /// How long an order may take, but for waiting until SSH answers.
    pub order: Duration,
    /// How long a server may take to switch itself off before it is switched off.
    pub shutdown: Duration,
    /// How often a question is asked again that had no answer, or met a thing that was busy.
    pub tries: u32,
    /// The pause before the first of these; doubled each time.
    pub first_pause: Duration,
    /// The longest pause between two of these.
    pub longest_pause: Duration,
    /// When a new action is first asked about.
    pub first_poll: Duration,
    /// The longest time between two questions about actions.
    pub longest_poll: Duration,
    /// With fewer questions left than this, all of them slow down.
    pub low: u64,
    /// The longest time between two questions while they are slowed down.
    pub slowest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            look: Duration::from_mins(1),
            order: Duration::from_mins(10),
            shutdown: Duration::from_mins(3),
            tries: 5,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(10),
            first_poll: Duration::from_millis(30),
            longest_poll: Duration::from_secs(1),
            low: 200,
            slowest: Duration::from_secs(2),
        }
    }
}

impl Pace {
    /// The pause before the given try, the first of which is 0.
    pub(super) fn pause(&self, attempt: u32) -> Duration {
        self.first_pause.saturating_mul(1_u32 << attempt.min(16)).min(self.longest_pause)
    }
}
