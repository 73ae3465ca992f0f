//! What follows from what a node says of itself. Nothing here asks anybody.

use std::collections::BTreeSet;

use orch_model::system::{RolloutPhase, RolloutRecord, SwitchAnswer, SystemView};
use orch_model::{Identity, StorePath};
use orch_nix::Member;
use orch_run::TransportError;

use super::copy::amount;
use super::phase;

/// What a node must be fit for.
pub(super) struct Wanted<'w> {
    /// The run that asks.
    pub(super) run: &'w str,
    /// What the system runs on, where that is known.
    pub(super) platform: Option<&'w str>,
    /// Whether it is given NixOS first, by a program that brings what it needs.
    pub(super) is_bare: bool,
    /// What is to be copied.
    pub(super) missing: &'w [&'w Member],
}

/// Whether a node runs a system and boots it: nothing is to be done then.
pub(super) fn is_on(view: &SystemView, system: &StorePath) -> bool {
    let is_it = |path: &Option<String>| path.as_deref() == Some(system.as_str());
    is_it(&view.running) && is_it(&view.boot_default)
}

/// Whether a rollout of another run is under way on a node that nobody has to themselves.
pub(super) fn is_left_behind(view: &SystemView, run: &str) -> bool {
    under_way(view, run).is_some() && view.lease.as_ref().is_none_or(|lease| lease.run == run)
}

/// Those of a closure that a node lacks, in the order of the closure.
pub(super) fn missing<'m>(view: &SystemView, closure: &'m [Member]) -> Vec<&'m Member> {
    let missing: BTreeSet<&StorePath> = view.missing.iter().collect();
    closure.iter().filter(|member| missing.contains(&member.path)).collect()
}

/// Says why a node is not fit for a rollout, before anything is sent to it.
pub(super) fn preflight(view: &SystemView, wanted: &Wanted<'_>) -> Result<(), String> {
    if let Some(platform) = wanted.platform.filter(|platform| *platform != view.platform) {
        return Err(format!("its system is for `{platform}`, and it is `{}`", shown(&view.platform)));
    }
    if let Some(lease) = view.lease.as_ref().filter(|lease| lease.run != wanted.run) {
        return Err(lease.to_string());
    }
    if let Some(record) = under_way(view, wanted.run) {
        return Err(format!(
            "a rollout of run {} is {} since {}",
            shown(&record.run),
            phase(record.phase),
            shown(&record.since)
        ));
    }
    if wanted.is_bare {
        return Ok(());
    }
    if view.nix.is_none() {
        return Err("it has no Nix, which takes systems in".into());
    }
    let bytes: u64 = wanted.missing.iter().map(|member| member.bytes).sum();
    // Databases and generations grow too.
    let needed = bytes.saturating_add(bytes / 5);
    if needed > view.free {
        let (needed, free) = (amount(needed), amount(view.free));
        return Err(format!("its store has {free} free, and {needed} are needed for what it lacks"));
    }
    Ok(())
}

fn under_way<'v>(view: &'v SystemView, run: &str) -> Option<&'v RolloutRecord> {
    view.rollout.as_ref().filter(|record| record.run != run && !record.phase.is_end())
}

/// What is said of a rollout that is at its end: what was read where it succeeded, and an error where it did not.
pub(super) fn ended(
    node: &Identity,
    system: &StorePath,
    answer: &SwitchAnswer,
) -> Result<Vec<String>, TransportError> {
    let SwitchAnswer { record, view, unhealthy, .. } = answer;
    let read = read(view);
    let why = record.why.as_deref().map_or_else(|| "it did not say why".to_owned(), shown);
    let why = match record.phase {
        RolloutPhase::Permanent if is_on(view, system) && unhealthy.is_empty() => {
            let reboot = (!record.reboot_needed.is_empty())
                .then(|| format!("needs a reboot for {}", words(&record.reboot_needed)));
            return Ok(std::iter::once(read).chain(reboot).collect());
        }
        RolloutPhase::Permanent if unhealthy.is_empty() => {
            format!("it called its system permanent, but that is not what was read: {read}")
        }
        RolloutPhase::Permanent => format!("its system is permanent, and it is not healthy; {read}"),
        RolloutPhase::RolledBack => format!("rolled back: {why}; {read}"),
        RolloutPhase::NeedsReboot => {
            let (node, why) = (node.clone(), words(&record.reboot_needed));
            return Err(TransportError::NeedsReboot { node, why, read });
        }
        RolloutPhase::Stuck => format!("neither its system nor the one before could be had: {why}; {read}"),
        other => format!("its rollout is {}: {why}; {read}", phase(other)),
    };
    let mut evidence: Vec<String> = unhealthy.iter().map(shown).collect();
    evidence.extend(record.evidence.iter().map(shown));
    Err(TransportError::Failed { node: node.clone(), why, evidence })
}

/// What was read of a node, in words.
pub(crate) fn read(view: &SystemView) -> String {
    let named = |path: &Option<String>| path.as_deref().map_or_else(|| "nothing".to_owned(), shown);
    let (running, boots) = (named(&view.running), named(&view.boot_default));
    if running == boots {
        format!("read back: runs and boots {running}")
    } else {
        format!("read back: runs {running}, boots {boots}")
    }
}

/// The error of what came after a switch that succeeded: it does not take the switch back.
pub(super) fn after_the_switch(error: TransportError, read: &[String]) -> TransportError {
    let Some(read) = read.first() else { return error };
    with(error, &format!("(its system is permanent; {read})"))
}

/// The error of a node that is not on its new system: the secrets of that one are in place all the same.
pub(super) fn with_new_secrets(error: TransportError) -> TransportError {
    with(error, "(its secrets are the new ones already)")
}

/// An error, with more said at its end.
fn with(error: TransportError, more: &str) -> TransportError {
    let told = |why: String| format!("{why} {more}");
    match error {
        TransportError::Failed { node, why, evidence } => {
            TransportError::Failed { node, why: told(why), evidence }
        }
        TransportError::Late { node, why, evidence } => {
            TransportError::Late { node, why: told(why), evidence }
        }
        TransportError::Silent { node, why, evidence } => {
            TransportError::Silent { node, why: told(why), evidence }
        }
        TransportError::NeedsReboot { node, why, read } => {
            TransportError::NeedsReboot { node, why, read: told(read) }
        }
        other => other,
    }
}

fn words(list: &[String]) -> String {
    if list.is_empty() {
        return "its system".into();
    }
    list.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn shown(text: impl AsRef<str>) -> String {
    orch_model::printable(text.as_ref()).into_owned()
}
