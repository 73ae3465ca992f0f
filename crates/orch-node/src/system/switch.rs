//! Taking an order: it is on the disk and somebody watches over it when this comes back.

use std::thread;
use std::time::{Duration, Instant};

use orch_model::system::{RolloutPhase, RolloutRecord, SwitchAnswer, SwitchOrder};

use super::activate::{begin_log, log, program};
use super::boot_default::{boot_default, is_hidden};
use super::error::SystemError;
use super::lease::{self, Desk};
use super::places::Places;
use super::reboot::is_looked_after;
use super::record::{self, Rollout};
use super::view::{answer, reboot_needed};
use super::{generation, verdict, watcher};
use crate::node::Node;
use crate::state::State;

/// How long what a reboot left unfinished may take to be looked after.
const HEALING: Duration = Duration::from_secs(30);
/// Three names of the longest kind fit, with what is between them.
const LONGEST_ID: usize = 256;
const TICK: Duration = Duration::from_millis(10);

/// Has the node go over to another system. The same order again attaches to what is under way.
pub(super) fn switch(node: &Node, order: &SwitchOrder) -> Result<SwitchAnswer, SystemError> {
    let places = Places::of(node);
    check(node, order)?;
    heal(node)?;
    let _desk = Desk::take(&places)?;
    lease::check(&places, &order.run)?;
    match record::load(&places)? {
        Some(found) if found.order.id == order.id => return answer(node, &found, Vec::new()),
        Some(Rollout { record: RolloutRecord { id, run, since, phase, .. }, .. }) if !phase.is_end() => {
            return Err(SystemError::Busy { id, run, since });
        }
        _ => {}
    }
    if order.leased {
        lease::require(&places, &order.run)?;
    }
    if !program(&places, order.system.as_str()).exists() {
        return Err(SystemError::NotASystem(order.system.to_string()));
    }
    check_boot(&places, order)?;
    State::make(node)?;
    let rollout = arm(&places, order)?;
    if let Err(error) = watcher::start(node, &order.id) {
        // Nobody is there to do anything, and nothing was done.
        let why = Some("its watcher did not start".into());
        let record = RolloutRecord { phase: RolloutPhase::RolledBack, why, ..rollout.record.clone() };
        record::write(&places, &Rollout { record, ..rollout })?;
        return Err(error);
    }
    answer(node, &record::load(&places)?.unwrap_or(rollout), Vec::new())
}

/// What makes no sense whatever the node is like.
fn check(node: &Node, order: &SwitchOrder) -> Result<(), SystemError> {
    if !node.is_real() {
        return Err(SystemError::Wrong("a tree of files runs no system".into()));
    }
    // It becomes an argument of programs, and a word in answers.
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-:@+".contains(c);
    let is_id = order.id.len() <= LONGEST_ID && order.id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_id || !order.id.chars().all(is_word) {
        return Err(SystemError::Wrong(format!("`{}` is no name for a rollout", order.id)));
    }
    Ok(())
}

/// Refuses where a reboot would leave nobody to watch, or nobody to say what is booted.
fn check_boot(places: &Places, order: &SwitchOrder) -> Result<(), SystemError> {
    if is_hidden(places) {
        return Err(SystemError::HiddenDefault);
    }
    let needed = reboot_needed(places, &order.system);
    if order.reboot && !needed.is_empty() && !is_looked_after(places, &order.system) {
        let (system, what) = (order.system.to_string(), needed.join(", "));
        return Err(SystemError::UnwatchedBoot { system, what });
    }
    Ok(())
}

/// Writes the order down, with what there is before it.
fn arm(places: &Places, order: &SwitchOrder) -> Result<Rollout, SystemError> {
    let (previous, previous_default) = (places.running(), boot_default(places));
    for (name, system) in [
        ("system", Some(order.system.as_str())),
        ("previous", previous.as_deref()),
        ("previous-default", previous_default.as_deref()),
    ] {
        generation::hold(places, name, system)?;
    }
    verdict::forget(places)?;
    begin_log(places);
    log(places, &format!("rollout {} of run {}: {}", order.id, order.run, order.system));
    let record = RolloutRecord {
        id: order.id.clone(),
        run: order.run.clone(),
        system: order.system.clone(),
        previous,
        previous_default,
        phase: RolloutPhase::Armed,
        why: None,
        evidence: Vec::new(),
        reboot_needed: reboot_needed(places, &order.system),
        since: jiff::Timestamp::now().to_string(),
    };
    let rollout = Rollout {
        record,
        order: order.clone(),
        boot: places.boot(),
        activated_in: None,
        waits_since: None,
        generation: None,
        previous_profile: generation::current(places),
        touched_default: false,
        rebooted_back: false,
    };
    record::write(places, &rollout)?;
    Ok(rollout)
}

/// Has somebody watch over a rollout that nobody does. What a reboot left unfinished is waited for.
pub(super) fn heal(node: &Node) -> Result<(), SystemError> {
    let places = Places::of(node);
    let unfinished = record::load(&places)?.filter(|rollout| !rollout.has_ended());
    // In a tree of files nobody can do anything about it.
    let Some(rollout) = unfinished.filter(|_| node.is_real()) else { return Ok(()) };
    if !watcher::is_watched(&places) {
        watcher::start(node, &rollout.order.id)?;
    }
    let deadline = Instant::now() + HEALING;
    while Instant::now() < deadline {
        // As soon as something was written down in this boot it is under way, and not unfinished.
        let now = record::load(&places)?.filter(|rollout| !rollout.has_ended());
        let is_of_now =
            now.is_none_or(|now| now.boot == places.boot() && now.phase() != RolloutPhase::Returning);
        if is_of_now || rollout.boot == places.boot() {
            break;
        }
        thread::sleep(TICK);
    }
    Ok(())
}
