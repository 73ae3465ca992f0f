//! A configuration brought to a node by the driver: what is the same whoever carries it.
//!
//! One run of `orch-node` on the node does it all, changed or not, health checks included, so that a node that is as
//! wanted costs one round trip. The work itself is done by a process of the node's own and survives the loss of the
//! connection: asking again attaches to it.

mod answer;
mod program;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use orch_model::pull::Enrolment;
use orch_model::system::Inventory;
use orch_model::{Config, Delivery, Inspection, KeyName, NodeKeys, Parcel};
use orch_run::{Configured, Target, TransportError, Treasury, TreasuryError};
use serde::Serialize;
use tokio::time::Instant;

use crate::remote::{Remote, RunAs};

pub(crate) use answer::{said, tail};
pub use program::{Binary, Program, Uploaded};

/// How long each part may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Making the configuration true and becoming healthy, the way there and back included.
    pub configure: Duration,
    /// How long of that it may take to become healthy.
    pub health: Duration,
    /// Looking at what differs.
    pub inspect: Duration,
    /// What the way there and back may take.
    pub answer: Duration,
}

impl Limits {
    /// How long the node itself may take where this much is left: it has to say that its time is over before nobody listens
    /// any more.
    fn of_node(&self, left: Duration) -> Duration {
        left.saturating_sub(self.answer.min(left / 4))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            configure: Duration::from_mins(10),
            health: Duration::from_mins(1),
            inspect: Duration::from_mins(1),
            answer: Duration::from_secs(15),
        }
    }
}

/// Makes `config` true on a node and waits until it is healthy, until `deadline`. Idempotent; a second time changes nothing.
pub async fn configure(
    remote: &dyn Remote,
    program: &Program,
    target: &Target,
    what: What<'_>,
    limits: &Limits,
    deadline: Instant,
) -> Result<Configured, TransportError> {
    let What { config, treasury, part } = what;
    target.progress.say(part.doing());
    let mut delivery = Delivery { config: config.clone(), parcel: None };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (all, health) = (whole(limits.of_node(left)), seconds(limits.health));
        let args = ["push", "--mode", "push", "--limit", &all, "--health", &health];
        let args = [&args[..], part.flags()].concat();
        let ended = program.run(remote, target, &args, &written(&delivery), left).await?;
        match ended.code {
            // It says which ones once, and is given them once.
            Some(answer::LACKS) if delivery.parcel.is_none() => {
                let (keys, lacking) = answer::lacking(&ended, target)?;
                target.progress.say("handing over its secrets");
                delivery.parcel = Some(pack(treasury, target, config, lacking, keys).await?);
                continue;
            }
            // The node goes on without us otherwise, and whoever asks next would find it half-way.
            Some(answer::LIMIT_REACHED) => cancel(remote, program, limits.answer).await,
            _ => {}
        }
        return answer::configured(&ended, target, config, part);
    }
}

/// What is brought to a node: its configuration, and the one who can open the secrets that it says it lacks.
#[derive(Clone, Copy)]
pub struct What<'w> {
    /// The configuration.
    pub config: &'w Config,
    /// Who can open its secrets.
    pub treasury: &'w Arc<dyn Treasury>,
    /// How much of it.
    pub part: Part,
}

/// How much of a configuration is brought to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// What must be there before its system is activated: its secrets.
    BeforeSystem,
}

impl Part {
    const fn doing(self) -> &'static str {
        match self {
            Self::Whole => "applying configuration",
            Self::BeforeSystem => "seeing to its secrets",
        }
    }

    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Whole => &[],
            Self::BeforeSystem => &["--before-system"],
        }
    }
}

/// The secrets that a node lacks, encrypted to it. Files are read for that, so others are not kept waiting meanwhile.
async fn pack(
    treasury: &Arc<dyn Treasury>,
    target: &Target,
    config: &Config,
    lacking: Vec<KeyName>,
    keys: NodeKeys,
) -> Result<Parcel, TransportError> {
    let (treasury, config) = (Arc::clone(treasury), config.clone());
    let packed = tokio::task::spawn_blocking(move || treasury.pack(&config, &lacking, &keys.age)).await;
    let unasked = |why| TransportError::Unasked { node: target.identity.clone(), why };
    match packed {
        Ok(Ok(parcel)) => Ok(parcel),
        Ok(Err(TreasuryError { what, hint })) => Err(unasked(format!("{what} ({hint})"))),
        Err(error) => Err(unasked(format!("its secrets could not be opened: {error}"))),
    }
}

/// Has a node show its own SSH host key from now on.
pub async fn settle(
    remote: &dyn Remote,
    program: &Program,
    target: &Target,
    limits: &Limits,
) -> Result<NodeKeys, TransportError> {
    let ended = program.run(remote, target, &["settle"], &[], limits.inspect + limits.answer).await?;
    answer::keys(&ended, target)
}

/// Hands a node what it needs to fetch its configuration itself, and has it begin.
pub async fn enrol(
    remote: &dyn Remote,
    program: &Program,
    target: &Target,
    enrolment: &Enrolment,
    limits: &Limits,
) -> Result<(), TransportError> {
    let text = serde_json::to_vec(enrolment).expect("an enrolment can always be written as JSON");
    let ended = program.run(remote, target, &["enrol"], &text, limits.inspect + limits.answer).await?;
    if ended.code == Some(0) {
        return Ok(());
    }
    let why = "it could not be enrolled".to_owned();
    Err(TransportError::Failed { node: target.identity.clone(), why, evidence: tail(&ended.stderr) })
}

/// Says what differs on a node from `config`, and whether it is healthy. Changes nothing, so a node that does not have
/// the program yet is not given it.
pub async fn inspect(
    remote: &dyn Remote,
    program: &Program,
    target: &Target,
    config: &Config,
    limits: &Limits,
) -> Result<Inspection, TransportError> {
    target.progress.say("looking");
    let argv = program.argv(&["inspect"]);
    let ended = remote.run(&argv, RunAs::Root, &written(config), limits.inspect + limits.answer).await?;
    answer::inspection(&ended, target)
}

/// Asks what the NixOS system is made of that the node runs.
pub async fn inventory(
    remote: &dyn Remote,
    program: &Program,
    target: &Target,
    limits: &Limits,
) -> Result<Inventory, TransportError> {
    target.progress.say("looking");
    let argv = program.argv(&["system", "inventory"]);
    let ended = remote.run(&argv, RunAs::Root, &[], limits.inspect + limits.answer).await?;
    answer::inventory(&ended, target)
}

/// Ends what a push has begun on the node and not finished. Best effort: a node that cannot be told goes on until its
/// own limit.
pub async fn cancel(remote: &dyn Remote, program: &Program, limit: Duration) {
    // There is nobody left to tell that it could not be done.
    let _ = remote.run(&program.argv(&["cancel"]), RunAs::Root, &[], limit).await;
}

fn written(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what orch defines can be written as JSON")
}

/// Whole seconds, never more than there are and never none.
fn whole(limit: Duration) -> String {
    limit.as_secs().max(1).to_string()
}

/// Whole seconds, never less than asked for and never none.
fn seconds(limit: Duration) -> String {
    let whole = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
    whole.max(1).to_string()
}
