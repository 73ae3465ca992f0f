//! How a node stands, read at the moment of asking.

use std::fs;
use std::path::Path;

use orch_model::StorePath;
use orch_model::system::{SwitchAnswer, SystemQuestion, SystemView};

use super::boot_default::boot_default;
use super::error::SystemError;
use super::lease;
use super::nix::{Nix, free};
use super::places::Places;
use super::record::{self, Rollout};
use super::watcher;
use crate::node::Node;

/// What only a boot changes, by its name in a system.
pub(super) const BOOTED: [&str; 4] = ["initrd", "kernel", "kernel-modules", "systemd"];
/// A file that is compared by what it holds is not longer.
const LONGEST: u64 = 1 << 20;

/// Looks at the node, and changes nothing.
pub(super) fn view(node: &Node, question: &SystemQuestion) -> Result<SystemView, SystemError> {
    let (places, nix) = (Places::of(node), Nix::of(node));
    // Asking costs time, and matters to who is about to copy.
    let copies = !question.closure.is_empty();
    Ok(SystemView {
        platform: platform(),
        nix: nix.version(),
        running: places.running(),
        booted: places.booted(),
        boot_default: boot_default(&places),
        missing: if copies { nix.missing(&question.closure)? } else { Vec::new() },
        free: free(&places),
        substitutes: copies && nix.substitutes(),
        lease: lease::current(&places),
        rollout: record::load(&places)?.map(|rollout| rollout.record),
    })
}

/// What a node says of a rollout, read now.
pub(super) fn answer(
    node: &Node,
    rollout: &Rollout,
    unhealthy: Vec<String>,
) -> Result<SwitchAnswer, SystemError> {
    let view = view(node, &SystemQuestion::default())?;
    let watched = !rollout.has_ended() && watcher::is_watched(&Places::of(node));
    Ok(SwitchAnswer { record: rollout.record.clone(), view, watched, unhealthy })
}

/// As Nix calls what this program runs on.
fn platform() -> String {
    let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
    let machine = match machine.as_str() {
        "i386" | "i486" | "i586" => "i686",
        "armv8l" => "armv7l",
        other => other,
    };
    format!("{machine}-linux")
}

/// What of a system only a reboot would bring: where it differs from what was booted.
pub(super) fn reboot_needed(places: &Places, system: &StorePath) -> Vec<String> {
    let booted = places.at("/run/booted-system");
    if !booted.exists() {
        return Vec::new();
    }
    let new = places.at(system.as_str());
    let differs = |name: &&&str| !is_same(&booted.join(name), &new.join(name));
    BOOTED.iter().filter(differs).map(ToString::to_string).collect()
}

fn is_same(one: &Path, other: &Path) -> bool {
    let held = |path: &Path| {
        let is_short = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LONGEST);
        fs::read(path).ok().filter(|_| is_short)
    };
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other || held(&one).is_some_and(|text| Some(text) == held(&other)),
        (one, other) => one.is_err() && other.is_err(),
    }
}
