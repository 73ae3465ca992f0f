//! How many questions are answered in an hour: a bucket that each question takes one from and that fills again steadily.

use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::exchange::Answer;

/// The bucket of one project.
pub(super) struct Bucket {
    limit: u32,
    level: Mutex<(f64, Instant)>,
}

/// What is left in a bucket, as the headers say it.
#[derive(Clone, Copy)]
pub(super) struct Left {
    limit: u32,
    level: f64,
    /// Whether there was one left for this question.
    pub(super) was_enough: bool,
}

impl Bucket {
    pub(super) fn full(limit: u32) -> Self {
        Self { limit, level: Mutex::new((f64::from(limit), Instant::now())) }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self) -> Left {
        let mut guard = self.level.lock().expect("nobody panics while holding this");
        let (level, since) = *guard;
        let now = Instant::now();
        let filled = level + now.duration_since(since).as_secs_f64() * f64::from(self.limit) / 3600.0;
        let level = filled.min(f64::from(self.limit));
        let was_enough = level >= 1.0;
        let level = if was_enough { level - 1.0 } else { level };
        *guard = (level, now);
        Left { limit: self.limit, level, was_enough }
    }
}

impl Left {
    /// The answer with the headers that say what is left, and when all of it will be there again.
    #[expect(clippy::cast_possible_truncation)]
    pub(super) fn beside(self, answer: Answer) -> Answer {
        let missing = (f64::from(self.limit) - self.level) * 3600.0 / f64::from(self.limit.max(1));
        let full_at = Timestamp::now().saturating_add(SignedDuration::from_secs(missing.ceil() as i64));
        let full_at = full_at.unwrap_or_else(|_| Timestamp::now());
        answer
            .with("ratelimit-limit", &self.limit)
            .with("ratelimit-remaining", &(self.level.floor() as i64))
            .with("ratelimit-reset", &full_at.as_second())
    }
}
