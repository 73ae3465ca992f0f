//! What a run knows of the nodes that it asked for: which are its alone, and on which it may begin nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use orch_model::Identity;
use orch_model::system::{LeaseAnswer, LeaseClaim, SystemView};
use rustix::time::{ClockId, clock_gettime};

/// What is known of the leases of a run. Nodes that nobody had to ask for are not in it.
#[derive(Debug, Default)]
pub(crate) struct Tenure {
    nodes: Mutex<BTreeMap<Identity, Tenancy>>,
}

/// What is known of one lease.
#[derive(Debug, Clone)]
pub(crate) enum Tenancy {
    /// It was granted, and is trusted until this time after the boot of this machine.
    Held {
        /// Since when, in the node's own words.
        since: Option<String>,
        /// The end of the trust.
        until: Duration,
    },
    /// It was granted, and is not any more.
    Lost(String),
    /// It was not had at any time.
    Never(String),
}

impl Tenure {
    /// Whether a node had to be asked for and was granted; in words, why nothing may be begun on it.
    pub(crate) fn holds(&self, node: &Identity) -> Result<bool, String> {
        match self.nodes().get(node) {
            None => Ok(false),
            Some(Tenancy::Held { until, .. }) if now() <= *until => Ok(true),
            Some(Tenancy::Held { .. }) => {
                Err("this run was held up for so long that another may have it by now".to_owned())
            }
            Some(Tenancy::Lost(why) | Tenancy::Never(why)) => Err(why.clone()),
        }
    }

    pub(crate) fn set(&self, node: &Identity, tenancy: Tenancy) {
        self.nodes().insert(node.clone(), tenancy);
    }

    pub(crate) fn get(&self, node: &Identity) -> Option<Tenancy> {
        self.nodes().get(node).cloned()
    }

    /// Forgets every node.
    pub(crate) fn clear(&self) {
        self.nodes().clear();
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Identity, Tenancy>> {
        self.nodes.lock().expect("nobody panics while holding this")
    }
}

impl Tenancy {
    /// What the answer to another claim makes of it. A lease that was given anew was somebody else's meanwhile, or could have
    /// been. But a lease ends with the boot that it was given in: where the last rollout of the node is this run's own, nobody
    /// moved it since.
    pub(crate) fn renewed(self, answer: LeaseAnswer, claim: &LeaseClaim, until: Duration) -> Self {
        if !answer.granted {
            return Self::Lost(held_by(&answer.view));
        }
        let anew = answer.view.lease.map(|lease| lease.since);
        let is_own = answer.view.rollout.is_some_and(|rollout| rollout.run == claim.run);
        match self {
            Self::Held { since, .. } if since == anew => Self::Held { since, until },
            _ if is_own => Self::Held { since: anew, until },
            Self::Held { .. } => {
                Self::Lost("this run lost it for a while, and another may have changed it".to_owned())
            }
            lost => lost,
        }
    }
}

/// Who has a node, as it says itself.
pub(crate) fn held_by(view: &SystemView) -> String {
    let unsaid = || "it is in use, and does not say by whom".to_owned();
    view.lease.as_ref().map_or_else(unsaid, ToString::to_string)
}

/// The time since this machine was started, which also passes while it sleeps.
pub(crate) fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use orch_model::system::{Lease, RolloutPhase, RolloutRecord};

    use super::*;

    /// The answer of a node that `run` has since then, and that `moved_by` moved last.
    fn answer(run: &str, since: &str, moved_by: Option<&str>) -> LeaseAnswer {
        let lease =
            Lease { holder: format!("ann of {run}"), run: run.into(), since: since.into(), seconds_left: 60 };
        let rollout = moved_by.map(|run| RolloutRecord {
            id: "r".into(),
            run: run.into(),
            system: "/nix/store/00000000000000000000000000000000-nixos".parse().unwrap(),
            previous: None,
            previous_default: None,
            phase: RolloutPhase::Waiting,
            why: None,
            evidence: Vec::new(),
            reboot_needed: Vec::new(),
            since: since.into(),
        });
        let view = SystemView {
            platform: "x86_64-linux".into(),
            nix: None,
            running: None,
            booted: None,
            boot_default: None,
            missing: Vec::new(),
            free: 0,
            substitutes: false,
            lease: Some(lease),
            rollout,
        };
        LeaseAnswer { granted: run == "ours", view }
    }

    /// Whether the node is held after this answer, and why not.
    fn check(before: &Tenancy, answer: LeaseAnswer, expected: Result<(), &str>) {
        let claim = LeaseClaim { holder: "ann".into(), run: "ours".into(), seconds: 60 };
        let after = before.clone().renewed(answer, &claim, now() + Duration::from_mins(1));
        let (tenure, node) = (Tenure::default(), "host.a@a".parse().unwrap());
        tenure.set(&node, after);
        assert_eq!(tenure.holds(&node).map(drop), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_lease_that_was_given_anew_is_trusted_only_after_a_reboot_of_this_runs_own() {
        let held = Tenancy::Held { since: Some("1".into()), until: Duration::ZERO };
        let lost = Tenancy::Lost("it is gone".into());
        let meanwhile = Err("this run lost it for a while, and another may have changed it");
        check(&held, answer("ours", "1", None), Ok(()));
        check(&held, answer("ours", "1", Some("theirs")), Ok(()));
        check(&held, answer("ours", "2", None), meanwhile);
        check(&held, answer("ours", "2", Some("theirs")), meanwhile);
        check(&held, answer("ours", "2", Some("ours")), Ok(()));
        check(&held, answer("theirs", "2", Some("ours")), Err("`ann of theirs` has had it since 2"));
        check(&lost, answer("ours", "2", Some("theirs")), Err("it is gone"));
        check(&lost, answer("ours", "2", Some("ours")), Ok(()));
    }
}
