//! Those who come from outside once an order was taken: one looks at the new system and says whether it is to stay, another
//! wants the one before.

use std::thread;
use std::time::{Duration, Instant};

use orch_model::Health;
use orch_model::system::{RolloutPhase, SwitchAnswer};

use super::error::SystemError;
use super::lease::{self, Desk};
use super::places::{Places, is};
use super::record::{self, Rollout};
use super::switch::heal;
use super::verdict::{self, Verdict};
use super::view::answer;
use super::watcher;
use crate::health;
use crate::node::Node;

const TICK: Duration = Duration::from_millis(10);
/// How often it is looked whether somebody still watches.
const CARE: Duration = Duration::from_millis(500);
/// What all of it takes besides its parts.
const SLACK_SECONDS: u64 = 60;

/// Waits until the new system is activated, looks whether the node is healthy with it, says so, and waits for the end.
///
/// Whoever was let in before it was activated would not notice that nobody is let in any more: to confirm is to come again,
/// after it was heard from [`activated`] that it waits.
pub(super) fn confirm(node: &Node, id: &str, limit: Option<Duration>) -> Result<SwitchAnswer, SystemError> {
    let places = Places::of(node);
    let mut unhealthy = None;
    let rollout = follow(node, id, limit, |rollout| {
        if rollout.phase() == RolloutPhase::Waiting && unhealthy.is_none() {
            let found = judge(node, &places, rollout)?;
            let verdict = if found.is_empty() { Verdict::Keep } else { Verdict::Unhealthy(found.clone()) };
            verdict::say(&places, id, verdict)?;
            unhealthy = Some(found);
        }
        Ok(Follow::On)
    })?;
    // What was found before says why; what is found now says how the node stands.
    let stands = checks(node, &rollout.order.health, Duration::ZERO);
    answer(node, &rollout, stands)
}

/// Waits until the new system waits for a confirmation, or for the end where it comes to none. Confirms nothing.
pub(super) fn activated(node: &Node, id: &str, limit: Option<Duration>) -> Result<SwitchAnswer, SystemError> {
    let rollout = follow(node, id, limit, |rollout| {
        let waits = rollout.phase() == RolloutPhase::Waiting;
        Ok(if waits { Follow::NoFurther } else { Follow::On })
    })?;
    answer(node, &rollout, Vec::new())
}

/// Goes back to the system before, also where this one was permanent. Where it is said for which run, no other may have
/// the node.
pub(super) fn back(
    node: &Node,
    id: &str,
    run: Option<&str>,
    limit: Option<Duration>,
) -> Result<SwitchAnswer, SystemError> {
    let places = Places::of(node);
    heal(node)?;
    ask_back(node, &places, id, run)?;
    let mut rollout = follow(node, id, limit, |_| Ok(Follow::On))?;
    if rollout.phase() == RolloutPhase::Permanent {
        // It was being made permanent when this was asked, and nobody was listening any more.
        ask_back(node, &places, id, run)?;
        rollout = follow(node, id, limit, |_| Ok(Follow::On))?;
    }
    let stands = checks(node, &rollout.order.health, Duration::ZERO);
    answer(node, &rollout, stands)
}

fn ask_back(node: &Node, places: &Places, id: &str, run: Option<&str>) -> Result<(), SystemError> {
    let _desk = Desk::take(places)?;
    if let Some(run) = run {
        lease::check(places, run)?;
    }
    let mut rollout = find(places, id)?;
    match rollout.phase() {
        RolloutPhase::RolledBack | RolloutPhase::NeedsReboot => Ok(()),
        RolloutPhase::Permanent | RolloutPhase::Stuck => {
            rollout.record.phase = RolloutPhase::Returning;
            rollout.record.why = Some("it was asked to go back".into());
            rollout.boot = places.boot();
            // Whatever was activated since the boot, this system runs now.
            rollout.activated_in = Some(places.boot());
            rollout.touched_default = true;
            record::write(places, &rollout)?;
            watcher::start(node, id)
        }
        _ => verdict::say(places, id, Verdict::Back),
    }
}

/// Whether a rollout is followed further.
#[derive(PartialEq, Eq)]
enum Follow {
    On,
    NoFurther,
}

/// Follows a rollout to its end, or for as long as is wanted. Where nobody watches over it any more, somebody is started who does.
fn follow(
    node: &Node,
    id: &str,
    limit: Option<Duration>,
    mut each: impl FnMut(&Rollout) -> Result<Follow, SystemError>,
) -> Result<Rollout, SystemError> {
    let places = Places::of(node);
    let first = find(&places, id)?;
    let deadline = Instant::now() + limit.unwrap_or_else(|| usual_limit(&first));
    let mut cared = None;
    loop {
        let rollout = find(&places, id)?;
        if rollout.has_ended() {
            return Ok(rollout);
        }
        if Instant::now() >= deadline {
            return Err(SystemError::Late("the rollout has not ended"));
        }
        if cared.is_none_or(|cared: Instant| cared.elapsed() >= CARE) {
            heal(node)?;
            cared = Some(Instant::now());
        }
        if each(&rollout)? == Follow::NoFurther {
            return Ok(rollout);
        }
        thread::sleep(TICK);
    }
}

fn usual_limit(rollout: &Rollout) -> Duration {
    let limits = rollout.order.limits;
    let activations = limits.activate.saturating_mul(4);
    let parts = [limits.confirm, limits.health, limits.reboot, limits.reboot, SLACK_SECONDS];
    Duration::from_secs(parts.into_iter().fold(activations, u64::saturating_add))
}

fn find(places: &Places, id: &str) -> Result<Rollout, SystemError> {
    let found = record::load(places)?.filter(|rollout| rollout.order.id == id);
    found.ok_or_else(|| SystemError::Unknown(id.into()))
}

/// What is wrong with the node on its new system.
fn judge(node: &Node, places: &Places, rollout: &Rollout) -> Result<Vec<String>, SystemError> {
    verdict::visit(places, &rollout.order.id)?;
    let running = places.running();
    if !is(running.as_deref(), &rollout.record.system) {
        return Ok(vec![format!("{} runs", super::work::named(running.as_deref()))]);
    }
    let limit = Duration::from_secs(rollout.order.limits.health);
    Ok(checks(node, &rollout.order.health, limit))
}

/// The checks that do not hold within a time, in words.
fn checks(node: &Node, list: &[Health], limit: Duration) -> Vec<String> {
    let reports = health::wait_for(node, list, limit);
    reports.iter().filter(|report| !report.healthy).map(ToString::to_string).collect()
}
