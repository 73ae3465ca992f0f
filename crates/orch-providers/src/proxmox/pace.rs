//! How long things are waited for, and how often it is asked whether they are done.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Every interval and limit of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// The pause before it is asked for the first time whether something is done, and the shortest one.
    pub shortest: Duration,
    /// The longest pause between two such questions.
    pub longest: Duration,
    /// A pause is this part of the time that the thing has taken so far, so that waiting adds at most that part.
    pub part: u32,
    /// How often a question is asked that finds no answer though it may find one the next time.
    pub tries: u32,
    /// The first pause between such tries; each further one is twice as long.
    pub breath: Duration,
    /// How long a task may take.
    pub task: Duration,
    /// How often something is tried that others hold a lock for.
    pub lock_tries: u32,
    /// The pause between such tries, about.
    pub lock_pause: Duration,
    /// How long a machine may take to say its address.
    pub agent: Duration,
    /// How long a machine may take to shut down.
    pub shutdown: Duration,
    /// How long is waited for a machine that others are making, before it counts as a stranger's.
    pub under_way: Duration,
    /// The same where all that is wanted is to see what is there.
    pub look: Duration,
    /// How many disks are made or grown at once on the datastore.
    pub lanes: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(20),
            longest: Duration::from_secs(1),
            part: 5,
            tries: 5,
            breath: Duration::from_millis(200),
            task: Duration::from_mins(15),
            lock_tries: 8,
            lock_pause: Duration::from_secs(1),
            agent: Duration::from_mins(5),
            shutdown: Duration::from_mins(1),
            under_way: Duration::from_mins(2),
            // Less than whoever looks is given for it.
            look: Duration::from_secs(15),
            lanes: 4,
        }
    }
}

impl Pace {
    /// Begins to wait for something for at most `limit`.
    pub(super) fn wait(&self, limit: Duration) -> Wait {
        let begun = Instant::now();
        Wait {
            begun,
            deadline: begun + limit,
            shortest: self.shortest,
            longest: self.longest,
            part: self.part.max(1),
            quiet: Duration::ZERO,
        }
    }

    /// The same for something that was never seen to take less than this. It is not asked about before it could be done, but no
    /// longer than is ever waited between two questions: this one may be quicker.
    pub(super) fn wait_usual(&self, limit: Duration, least: Duration) -> Wait {
        Wait { quiet: (least * 9 / 10).min(self.longest), ..self.wait(limit) }
    }

    /// The pause before the next try after so many, all of a different length so that those who met do not meet again.
    pub(super) async fn breathe(&self, tries: u32) {
        sleep(jittered(self.breath * 2_u32.pow(tries.saturating_sub(1).min(6)))).await;
    }

    /// The pause before something is tried again that others hold a lock for.
    pub(super) async fn yield_to_others(&self) {
        sleep(jittered(self.lock_pause)).await;
    }
}

/// Between half as long and one and a half times as long.
fn jittered(about: Duration) -> Duration {
    let random = u32::from(Uuid::new_v4().as_bytes()[0]);
    about / 2 + about * random / 255
}

/// Waiting for something.
pub(super) struct Wait {
    begun: Instant,
    deadline: Instant,
    shortest: Duration,
    longest: Duration,
    part: u32,
    /// How long nothing is asked at first.
    quiet: Duration,
}

impl Wait {
    /// How long it has been.
    pub(super) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Pauses before the next look; `false` where the time is over, and then at once.
    pub(super) async fn pause(&self) -> bool {
        let now = Instant::now();
        if now >= self.deadline {
            return false;
        }
        let waited = now - self.begun;
        let rest = self.quiet.saturating_sub(waited);
        let pause = if rest.is_zero() {
            let beyond = waited.saturating_sub(self.quiet);
            (beyond / self.part).clamp(self.shortest, self.longest.max(self.shortest))
        } else {
            rest
        };
        sleep(pause.min(self.deadline - now)).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_adds_at_most_a_fifth_to_what_a_task_takes() {
        for takes in [150, 340, 2200, 4000] {
            let takes = Duration::from_millis(takes);
            let begun = Instant::now();
            let wait = Pace::default().wait(Duration::from_mins(1));
            while begun.elapsed() < takes {
                assert!(wait.pause().await);
            }
            assert!(
                begun.elapsed() <= takes * 6 / 5 + Duration::from_millis(1),
                "{takes:?}: {:?}",
                begun.elapsed()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_to_take_long_is_not_asked_about_before_and_its_end_is_seen_sooner() {
        let takes = Duration::from_millis(450);
        let asked = |wait: Wait| async move {
            let mut questions = 0;
            while wait.waited() < takes && wait.pause().await {
                questions += 1;
            }
            (questions, wait.waited())
        };
        let (many, late) = asked(Pace::default().wait(Duration::from_mins(1))).await;
        let (few, soon) = asked(Pace::default().wait_usual(Duration::from_mins(1), takes)).await;
        assert!(few <= 4 && few < many, "{few} questions, {many} without knowing");
        assert!(soon <= late && soon <= takes + Pace::default().shortest, "{soon:?}, {late:?}");
        // One that is quicker than all before it is not waited for without end.
        let slow = Pace::default().wait_usual(Duration::from_mins(1), Duration::from_mins(10));
        assert!(slow.pause().await && slow.waited() <= Pace::default().longest);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends() {
        let begun = Instant::now();
        let wait = Pace::default().wait(Duration::from_secs(3));
        while wait.pause().await {}
        assert_eq!(begun.elapsed().as_secs(), 3);
    }
}
