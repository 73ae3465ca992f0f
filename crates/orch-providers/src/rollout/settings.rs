//! How patient a rollout is, and where its systems come from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_model::system::SwitchLimits;

use super::systems::{NoSystems, Systems};

/// What rollouts need to know that no configuration says.
#[derive(Clone)]
pub struct RolloutSettings {
    /// Where systems come from.
    pub systems: Arc<dyn Systems>,
    /// How long each part may take.
    pub limits: RolloutLimits,
    /// The folder of `nixos-rebuild` and `nixos-anywhere`; without one, `PATH` is searched.
    pub programs: Option<PathBuf>,
}

impl Default for RolloutSettings {
    fn default() -> Self {
        Self { systems: Arc::new(NoSystems), limits: RolloutLimits::default(), programs: None }
    }
}

/// How long each part of a rollout may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutLimits {
    /// A short question, the way there and back included.
    pub answer: Duration,
    /// Building a system.
    pub build: Duration,
    /// Everything that the node lacks, whether it fetches that or is sent it.
    pub copy: Duration,
    /// Activating a system, the new one or the one before it.
    pub activate: Duration,
    /// Until the confirmation must have reached the node.
    pub confirm: Duration,
    /// Becoming healthy.
    pub health: Duration,
    /// A reboot, until the node's own programs run again.
    pub reboot: Duration,
    /// How long a rollout is waited for that another run began and nobody confirms any more.
    pub earlier: Duration,
    /// Between two questions that are the same.
    pub pause: Duration,
}

impl Default for RolloutLimits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            build: Duration::from_hours(1),
            copy: Duration::from_hours(1),
            activate: Duration::from_mins(3),
            confirm: Duration::from_mins(1),
            health: Duration::from_mins(1),
            reboot: Duration::from_mins(5),
            earlier: Duration::from_mins(2),
            pause: Duration::from_millis(500),
        }
    }
}

/// When all of a rollout is over that has this much time: before whoever gave it that stops listening, since what is said of
/// a node then is what was read.
pub(crate) fn end_within(all: Duration) -> Duration {
    all * 19 / 20
}

impl RolloutLimits {
    /// The same, where all of it together has this much time. A node that goes back must be at its end, and read, before
    /// nobody listens any more; so what the node does gets at most three quarters, the way back included.
    pub fn within(self, all: Duration) -> Self {
        let room = all * 3 / 4;
        let wait = self.confirm + self.health;
        let whole = self.activate * 2 + wait;
        if whole <= room && self.reboot * 2 + wait <= room {
            return self;
        }
        let share = |limit: Duration| {
            let share = room.as_secs_f64() * limit.as_secs_f64() / whole.as_secs_f64();
            Duration::from_secs_f64(share).min(limit)
        };
        let (confirm, health) = (share(self.confirm), share(self.health));
        Self {
            answer: self.answer.min(all / 5),
            activate: share(self.activate),
            reboot: self.reboot.min(room.saturating_sub(confirm + health) / 2),
            confirm,
            health,
            ..self
        }
    }

    /// What the node itself is told of them.
    pub(super) fn of_node(&self) -> SwitchLimits {
        let whole = |limit: Duration| (limit.as_secs() + u64::from(limit.subsec_nanos() > 0)).max(1);
        SwitchLimits {
            activate: whole(self.activate),
            confirm: whole(self.confirm),
            health: whole(self.health),
            reboot: whole(self.reboot),
        }
    }

    /// How long it takes at most until a node that was told to go over is known to be well.
    pub(super) fn until_judged(&self, reboot: bool) -> Duration {
        let once = if reboot { self.reboot } else { self.activate };
        once + self.confirm + self.health
    }

    /// How long it takes at most until a node that was told to go over is at an end, the way back included.
    pub(super) fn until_the_end(&self, reboot: bool) -> Duration {
        let once = if reboot { self.reboot } else { self.activate };
        once + self.confirm + self.health + once + self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_may_take_fits_into_the_time_that_there_is() {
        let usual = RolloutLimits::default();
        assert_eq!(usual.within(Duration::from_hours(1)), usual);
        for seconds in [10, 30, 60, 600] {
            let all = Duration::from_secs(seconds);
            let limits = usual.within(all);
            let all = end_within(all);
            assert!(limits.until_the_end(false) <= all, "{all:?}: {limits:?}");
            assert!(limits.until_the_end(true) <= all, "{all:?}: {limits:?}");
            assert!(limits.activate > Duration::ZERO && limits.confirm > Duration::ZERO, "{limits:?}");
        }
    }
}
