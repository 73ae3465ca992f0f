//! How patient a rollout is, and where its systems come from.

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
}

impl Default for RolloutSettings {
    fn default() -> Self {
        Self { systems: Arc::new(NoSystems), limits: RolloutLimits::default() }
    }
}

/// How long each part of a rollout may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutLimits {
    /// A short question, the way there and back included.
    pub answer: Duration,
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

impl RolloutLimits {
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

    /// How long it takes at most until a node that was told to go over is at an end, the way back included.
    pub(super) fn until_the_end(&self, reboot: bool) -> Duration {
        let once = if reboot { self.reboot } else { self.activate };
        once + self.confirm + self.health + once + self.answer
    }
}
