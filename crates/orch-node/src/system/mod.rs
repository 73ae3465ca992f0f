//! The NixOS system of a node: what it runs and boots, who has it to themselves, and going over to another system so that
//! the node ends on a good one whatever happens to whoever asked.
//!
//! An order is on the disk before anything is done, and a watcher that needs no connection does it. See [`work`] for the
//! steps. Nothing here evaluates or builds.

mod activate;
mod boot_default;
mod clock;
mod confirm;
mod cut;
mod error;
mod evidence;
mod generation;
mod import;
mod inventory;
mod lease;
mod menu;
mod nix;
mod places;
mod reboot;
mod record;
mod switch;
mod verdict;
mod view;
mod watcher;
mod way_back;
mod work;

use std::process::ExitCode;
use std::time::Duration;

use orch_model::StorePath;
use orch_model::system::{
    Inventory, LeaseAnswer, LeaseClaim, SwitchAnswer, SwitchOrder, SystemQuestion, SystemView,
};

use crate::node::Node;

pub(crate) use error::SystemError;
pub(crate) use import::Patience;
pub(crate) use places::{Places, note_start};
pub(crate) use watcher::Standing;

/// How the node stands. A rollout that nobody watches over any more is given a watcher; nothing else is changed.
pub(crate) fn look(node: &Node, question: &SystemQuestion) -> Result<SystemView, SystemError> {
    switch::heal(node)?;
    view::view(node, question)
}

/// Gives the node to a run, or says who has it.
pub(crate) fn lease(node: &Node, claim: &LeaseClaim) -> Result<LeaseAnswer, SystemError> {
    switch::heal(node)?;
    let granted = lease::claim(&Places::of(node), claim)?;
    Ok(LeaseAnswer { granted, view: view::view(node, &SystemQuestion::default())? })
}

/// Takes the node back from a run, where that has it.
pub(crate) fn release(node: &Node, run: &str) -> Result<(), SystemError> {
    lease::release(&Places::of(node), run)
}

/// Takes what was exported on standard input into the store.
pub(crate) fn receive(node: &Node, patience: Patience) -> Result<Vec<StorePath>, SystemError> {
    let received = nix::Nix::of(node).import(patience)?;
    // What refers to all others comes last. Until it is gone over to, nothing else keeps it.
    if let Some(last) = received.last() {
        generation::hold(&Places::of(node), "received", Some(last.as_str()))?;
    }
    Ok(received)
}

/// Builds a system from a derivation that was received.
pub(crate) fn build(node: &Node, drv: &StorePath, limit: Duration) -> Result<Vec<StorePath>, SystemError> {
    let built = nix::Nix::of(node).build(drv, limit)?;
    if let Some(system) = built.last() {
        generation::hold(&Places::of(node), "received", Some(system.as_str()))?;
    }
    Ok(built)
}

/// Fetches what can be had of a closure from where the node's own Nix fetches.
pub(crate) fn substitute(
    node: &Node,
    question: &SystemQuestion,
    limit: Duration,
) -> Result<SystemView, SystemError> {
    let nix = nix::Nix::of(node);
    let missing = nix.missing(&question.closure)?;
    if !missing.is_empty() && nix.substitutes() {
        nix.fetch(&missing, limit)?;
    }
    view::view(node, question)
}

/// Has the node go over to another system, and comes back once that is watched over.
pub(crate) fn switch(node: &Node, order: &SwitchOrder) -> Result<SwitchAnswer, SystemError> {
    switch::switch(node, order)
}

/// Waits until the new system waits for a confirmation, or for the end.
pub(crate) fn activated(node: &Node, id: &str, limit: Option<Duration>) -> Result<SwitchAnswer, SystemError> {
    confirm::activated(node, id, limit)
}

/// Says that the new system is to stay, where the node is healthy with it, and waits for the end.
pub(crate) fn confirm(node: &Node, id: &str, limit: Option<Duration>) -> Result<SwitchAnswer, SystemError> {
    confirm::confirm(node, id, limit)
}

/// Goes back to the system that ran before a rollout.
pub(crate) fn back(
    node: &Node,
    id: &str,
    run: Option<&str>,
    limit: Option<Duration>,
) -> Result<SwitchAnswer, SystemError> {
    confirm::back(node, id, run, limit)
}

/// Looks after what a reboot left unfinished. What became of it; nothing where there was nothing to do.
pub(crate) fn boot(node: &Node) -> Result<Option<SwitchAnswer>, SystemError> {
    let places = Places::of(node);
    let unfinished = record::load(&places)?.is_some_and(|rollout| !rollout.has_ended());
    switch::heal(node)?;
    let now = record::load(&places)?.filter(|_| unfinished);
    now.map(|rollout| view::answer(node, &rollout, Vec::new())).transpose()
}

/// What a system in the store of this machine is made of. For whoever compares it with what a node says of its own.
pub fn inventory_here(path: &str) -> Result<Inventory, String> {
    let node = Node::at(std::path::Path::new("/")).map_err(|error| error.to_string())?;
    inventory(&node, Some(path)).map_err(|error| error.to_string())
}

/// What a system is made of.
pub(crate) fn inventory(node: &Node, path: Option<&str>) -> Result<Inventory, SystemError> {
    inventory::inventory(node, path)
}

/// Watches over a rollout, as the process that was started for it.
pub(crate) fn watch(node: &Node, id: &str, standing: Standing) -> Result<ExitCode, SystemError> {
    watcher::watch(node, id, standing)
}

/// Becomes what a system brings for going over to it, as the process that was started for it.
pub(crate) fn activate(node: &Node, parent: u32, program: &str, verb: &str) -> Result<(), SystemError> {
    activate::become_it(&Places::of(node), parent, program, verb)
}

/// How a node differs from this system; nothing where it runs it and boots it.
pub(crate) fn difference(node: &Node, system: &StorePath) -> Option<String> {
    let places = Places::of(node);
    let (running, default) = (places.running(), boot_default::boot_default(&places));
    let words = [
        (!places::is(running.as_deref(), system))
            .then(|| format!("{} runs", work::named(running.as_deref()))),
        (!places::is(default.as_deref(), system))
            .then(|| format!("{} is booted by default", work::named(default.as_deref()))),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}
