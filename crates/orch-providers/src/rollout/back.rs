//! A node that is taken back to the system before: asked over connections that were not there before, until it is at an end.

use std::time::Duration;

use orch_model::system::SwitchAnswer;
use orch_run::{Permit, Target, TransportError};
use tokio::time::Instant;

use super::confirm::is_unknown;
use super::question::Asking;
use super::{Road, RolloutLimits, id, seconds};

/// How long one connection is asked to wait for the end; then another one is made.
const ONE_WAIT: Duration = Duration::from_secs(30);

/// Takes a node back to the system before the rollout of this permit. The node does so once however often it is asked, so a
/// connection that the way back itself breaks costs nothing.
pub(crate) async fn back(
    road: &dyn Road,
    target: &Target,
    limits: &RolloutLimits,
    permit: &Permit,
) -> Result<SwitchAnswer, TransportError> {
    target.progress.say("going back");
    let id = id(permit, target);
    let deadline = Instant::now() + limits.until_the_end(permit.allows_reboots());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = ONE_WAIT.min(left);
        let asked = back_once(road, target, (&id, permit.claim(), wait), limits.answer).await;
        let is_over = match &asked {
            Ok(answer) => answer.record.phase.is_end(),
            Err(error) => is_unknown(error),
        };
        if is_over || Instant::now() + limits.pause >= deadline {
            return asked;
        }
        tokio::time::sleep(limits.pause).await;
    }
}

async fn back_once(
    road: &dyn Road,
    target: &Target,
    (id, run, wait): (&str, &str, Duration),
    answer: Duration,
) -> Result<SwitchAnswer, TransportError> {
    let limit = wait + answer;
    let asked = async {
        let node = road.anew().await?;
        let asking = Asking { remote: &*node, program: road.program(), target };
        asking.ask(&["system", "back", "--limit", &seconds(wait), "--run", run, id], &[], limit).await
    };
    let late = |_| TransportError::Unreachable {
        node: target.identity.clone(),
        why: format!("no answer within {limit:?}"),
        evidence: Vec::new(),
    };
    tokio::time::timeout(limit, asked).await.map_err(late)?
}
