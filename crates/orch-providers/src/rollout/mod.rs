//! One node's way to another NixOS system, as the driver sees it: looked at, built, copied, switched, confirmed over a new
//! connection, and read back.
//!
//! What keeps the node from ending on a bad system is on the node (`orch-node system`), and goes on without the driver. So
//! nothing here claims what was not read: where the node cannot be read at the end, that is what is said.

mod back;
mod confirm;
mod copy;
mod delegate;
mod judge;
mod lease;
mod provide;
mod question;
mod settings;
mod store;
mod systems;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::system::{RolloutPhase, SwitchAnswer, SwitchOrder, SystemQuestion, SystemView};
use orch_model::{Config, Rollout as RolloutWay, StorePath};
use orch_nix::Member;
use orch_run::{Configured, Permit, Target, TransportError};
use tokio::time::Instant;

pub(crate) use back::back;
pub(crate) use delegate::Outside;
pub(crate) use lease::Holding;
pub(crate) use settings::end_within;
pub use settings::{RolloutLimits, RolloutSettings};
pub use store::{Evaluations, Recipe};
pub use systems::{NoSystem, NoSystems, Systems};

use crate::push::{self, Limits, Part, Program, What};
use crate::remote::{Bridge, Remote};
use confirm::Heard;
use question::Asking;

/// The way to a node that is given another system.
#[async_trait]
pub(crate) trait Road: Send + Sync {
    /// The program on the node that does its part.
    fn program(&self) -> &Program;

    /// The connection that everybody shares.
    async fn shared(&self) -> Result<Arc<dyn Bridge>, TransportError>;

    /// A new connection, that nobody shares: one that is there already says nothing of a node that changed meanwhile.
    async fn anew(&self) -> Result<Arc<dyn Remote>, TransportError>;

    /// What a program of others needs to go there; nothing where only orch can.
    async fn outside(&self) -> Result<Option<Outside>, TransportError>;
}

/// One node's way to another system.
pub(crate) struct Rollout<'r> {
    pub(crate) road: &'r dyn Road,
    pub(crate) target: &'r Target,
    /// What it is given, its system among that.
    pub(crate) what: What<'r>,
    pub(crate) limits: &'r Limits,
    pub(crate) settings: &'r RolloutSettings,
    /// Leave to change it, which says by what the node knows the run.
    pub(crate) permit: &'r Permit,
    /// How much time there is once the node has all that it needs. Building and copying have limits of their own.
    pub(crate) time: Duration,
    /// When that began.
    pub(crate) begun: OnceLock<Instant>,
}

impl Rollout<'_> {
    /// Brings the node to `system`, and says what was read of it then. Idempotent: a node that runs and boots it is left as
    /// it is, and a switch of this run that is under way is attached to.
    pub(crate) async fn carry_out(&self, system: &StorePath) -> Result<Configured, TransportError> {
        let shared = self.road.shared().await?;
        let (view, closure) = self.prepare(&*shared, system).await?;
        let is_there = judge::is_on(&view, system);
        let nixos = self.what.config.role.nixos.as_ref();
        let is_bare = self.is_bare(&view);
        let is_ours = nixos.is_none_or(|nixos| nixos.rollout == RolloutWay::Closure);
        if !is_there && !is_bare && is_ours {
            self.provide(&*shared, &view, &closure).await?;
        }
        let read = match (is_there, is_bare, is_ours) {
            (true, ..) => Vec::new(),
            (false, true, _) => self.install(system).await?,
            (false, false, false) => self.rebuild(&view, system).await?,
            (false, false, true) => self.go_over(&*shared, system).await?,
        };
        drop(shared);
        let done = self.push(Part::Whole).await;
        match done {
            Ok(done) => Ok(Configured {
                changed: done.changed || !is_there,
                notes: [read, done.notes].concat(),
                keys: done.keys,
            }),
            Err(error) => Err(judge::after_the_switch(error, &read)),
        }
    }

    /// Everything before the node is touched: how it stands, with its system built and known in all its parts.
    async fn prepare(
        &self,
        node: &dyn Bridge,
        system: &StorePath,
    ) -> Result<(SystemView, Vec<Member>), TransportError> {
        let systems = &self.settings.systems;
        if !systems.holds(system).await {
            // Building may take long, so what would be in vain is found out before.
            let view = self.look(node, &SystemQuestion::default()).await?;
            self.preflight(&view, system, &[])?;
            if judge::is_on(&view, system) {
                return Ok((view, Vec::new()));
            }
            if let Some(recipe) = systems.recipe(system).await.map_err(|why| self.unbuilt(why))? {
                return self.build_there(node, system, recipe).await;
            }
            self.say("building");
            let built = systems.ready(system, &self.target.progress, self.settings.limits.build).await;
            built.map_err(|why| self.unbuilt(why))?;
        }
        let closure = systems.closure(system).await.map_err(|why| self.unbuilt(why))?;
        let view = self.look(node, &question(&closure)).await?;
        self.preflight(&view, system, &judge::missing(&view, &closure))?;
        Ok((view, closure))
    }

    /// Whether the node runs no NixOS yet, and is to be given it first.
    fn is_bare(&self, view: &SystemView) -> bool {
        let install = self.what.config.role.nixos.as_ref().and_then(|nixos| nixos.install);
        view.running.is_none() && install.is_some()
    }

    fn preflight(
        &self,
        view: &SystemView,
        system: &StorePath,
        missing: &[&Member],
    ) -> Result<(), TransportError> {
        let platform = self.settings.systems.platform(system);
        let is_bare = self.is_bare(view);
        let wanted =
            judge::Wanted { run: self.permit.claim(), platform: platform.as_deref(), is_bare, missing };
        judge::preflight(view, &wanted).map_err(|why| self.failed(why, Vec::new()))
    }

    /// Has the node go over, and says what was read of it afterwards.
    async fn go_over(&self, node: &dyn Bridge, system: &StorePath) -> Result<Vec<String>, TransportError> {
        self.begin();
        let has_secrets = !self.what.config.role.secrets.is_empty();
        if has_secrets {
            self.push(Part::BeforeSystem).await?;
        }
        let order = self.order(system);
        self.has_time(&order)?;
        self.say("switching");
        self.is_still_ours()?;
        let asked: Result<SwitchAnswer, _> =
            self.asking(node).about(&["system", "switch"], &order, self.settings.limits.answer).await;
        let answer = match asked {
            Ok(answer) if answer.record.phase.is_end() => answer,
            Ok(answer) => self.confirmed(&order, Heard::of(answer)).await?,
            // The order may have been taken all the same.
            Err(error) if error.is_passing() || error.is_late() => {
                self.confirmed(&order, Heard::nothing(error)).await?
            }
            Err(error) => return Err(error),
        };
        let ended = judge::ended(&self.target.identity, system, &answer);
        if has_secrets { ended.map_err(judge::with_new_secrets) } else { ended }
    }

    /// Building and copying take long, and the run may have lost the node meanwhile.
    fn is_still_ours(&self) -> Result<(), TransportError> {
        self.permit.holds(&self.target.identity).map(drop).map_err(|why| self.failed(why, Vec::new()))
    }

    /// A node that is switched without time to be confirmed goes back, and all was in vain.
    fn has_time(&self, order: &SwitchOrder) -> Result<(), TransportError> {
        let (left, needed) = (self.left(), self.settings.limits.until_judged(order.reboot));
        if left >= needed {
            return Ok(());
        }
        let why = format!(
            "{left:.1?} are left for going over and being confirmed, which may take {needed:.1?}; it was not switched"
        );
        Err(TransportError::Late { node: self.target.identity.clone(), why, evidence: Vec::new() })
    }

    fn order(&self, system: &StorePath) -> SwitchOrder {
        SwitchOrder {
            id: id(self.permit, self.target),
            run: self.permit.claim().to_owned(),
            leased: self.permit.holds(&self.target.identity).unwrap_or(true),
            system: system.clone(),
            health: self.what.config.role.health.clone(),
            reboot: self.permit.allows_reboots(),
            limits: self.settings.limits.of_node(),
        }
    }

    async fn look(&self, node: &dyn Remote, question: &SystemQuestion) -> Result<SystemView, TransportError> {
        self.say("looking");
        let limit = self.settings.limits.answer;
        let mut view: SystemView = self.asking(node).about(&["system", "look"], question, limit).await?;
        // One that a killed driver began comes to its end by itself, since nobody confirms it.
        let patience = Instant::now() + self.settings.limits.earlier.min(self.left());
        while judge::is_left_behind(&view, self.permit.claim()) && Instant::now() < patience {
            self.say("waiting for an earlier rollout to end");
            tokio::time::sleep(self.settings.limits.pause).await;
            view = self.asking(node).about(&["system", "look"], question, limit).await?;
        }
        Ok(view)
    }

    async fn push(&self, part: Part) -> Result<Configured, TransportError> {
        let node = self.road.shared().await?;
        let what = What { part, ..self.what };
        let deadline = self.begin() + self.time;
        push::configure(&*node, self.road.program(), self.target, what, self.limits, deadline).await
    }

    fn asking<'a>(&'a self, remote: &'a dyn Remote) -> Asking<'a> {
        Asking { remote, program: self.road.program(), target: self.target }
    }

    /// From now on its time runs, unless it does already.
    fn begin(&self) -> Instant {
        *self.begun.get_or_init(Instant::now)
    }

    fn left(&self) -> Duration {
        let gone = self.begun.get().map_or(Duration::ZERO, Instant::elapsed);
        self.time.saturating_sub(gone)
    }

    fn say(&self, doing: &str) {
        self.target.progress.say(doing);
    }

    fn failed(&self, why: String, evidence: Vec<String>) -> TransportError {
        TransportError::Failed { node: self.target.identity.clone(), why, evidence }
    }

    /// A system that cannot be had; the node was not touched.
    fn unbuilt(&self, NoSystem { why, evidence, is_late }: NoSystem) -> TransportError {
        let node = self.target.identity.clone();
        if is_late {
            TransportError::Late { node, why, evidence }
        } else {
            TransportError::Failed { node, why, evidence }
        }
    }
}

/// A limit as the node is told it.
fn seconds(limit: Duration) -> String {
    limit.as_secs().max(1).to_string()
}

/// Asks about all parts of a system.
fn question(closure: &[Member]) -> SystemQuestion {
    SystemQuestion { closure: closure.iter().map(|member| member.path.clone()).collect() }
}

/// Which rollout a run has a node do. It has one of each at most.
pub(crate) fn id(permit: &Permit, target: &Target) -> String {
    format!("{}:{}", permit.claim(), target.identity)
}

/// The system that a configuration is to be rolled out with; an error where it should have one and has none.
pub(crate) fn system_of<'c>(
    target: &Target,
    config: &'c Config,
) -> Result<Option<&'c StorePath>, TransportError> {
    match (config.system(), &config.role.nixos) {
        (Some(system), _) => Ok(Some(system)),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(TransportError::Unasked {
            node: target.identity.clone(),
            why: "its NixOS system was not evaluated".into(),
        }),
    }
}

/// A rollout as people call how far it is.
pub(crate) const fn phase(phase: RolloutPhase) -> &'static str {
    match phase {
        RolloutPhase::Armed => "about to activate",
        RolloutPhase::Activating => "activating",
        RolloutPhase::Rebooting => "rebooting",
        RolloutPhase::Waiting => "waiting to be confirmed",
        RolloutPhase::Confirmed => "being made permanent",
        RolloutPhase::Returning => "going back",
        RolloutPhase::Permanent => "permanent",
        RolloutPhase::RolledBack => "rolled back",
        RolloutPhase::NeedsReboot => "in need of a reboot",
        RolloutPhase::Stuck => "stuck",
    }
}
