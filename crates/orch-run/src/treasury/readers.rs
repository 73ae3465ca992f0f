//! Nodes that read sops files themselves, and whether they can.

use std::collections::{BTreeMap, BTreeSet};

use orch_model::{AgeRecipient, Config, Fleet, Identity, Node};
use orch_plan::{Applied, HostView, Observed};
use orch_secrets::{Reader, Vault};

use super::TreasuryError;
use super::keeper::Keeper;

/// What was observed, but of a node that is to read sops files itself and cannot yet nothing is known of its configuration: so
/// a plan applies it anew, which lets the node in.
pub fn minding_readers(fleet: &Fleet, vault: &Vault, mut observed: Observed) -> Observed {
    let readers = fleet.nodes.iter().filter_map(|node| {
        let config = node.config.as_ref().filter(|config| config.role.enroll_recipient)?;
        Some((node, config))
    });
    for (node, config) in readers {
        let Some(HostView::Seen { machines, .. }) = observed.hosts.get_mut(&node.identity.host) else {
            continue;
        };
        for machine in machines {
            let is_it = machine.marks.as_ref().is_some_and(|marks| marks.is_of(&fleet.site, &node.identity));
            let is_let_in = machine.keys.known().is_none_or(|keys| reads_all(config, vault, &keys.age));
            if is_it && !is_let_in {
                machine.applied = Applied::Unknown;
            }
        }
    }
    observed
}

/// Says of nodes that are to read sops files themselves why they cannot be let in, or not shown out again, or not without being
/// let in too far: who is put into a rule of `.sops.yaml` will be able to read every file that the rule is for.
pub fn judge_readers(
    fleet: &Fleet,
    vault: &Vault,
    is_meant: impl Fn(&Identity) -> bool,
) -> Vec<TreasuryError> {
    let enrols = |node: &&Node| {
        is_meant(&node.identity) && node.config.as_ref().is_some_and(|config| config.role.enroll_recipient)
    };
    if !fleet.nodes.iter().any(|node| enrols(&node)) {
        return Vec::new();
    }
    let rules = match vault.rules() {
        Ok(Some(rules)) => rules,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![TreasuryError { what: error.to_string(), hint: error.hint() }],
    };
    let all = vault.files().unwrap_or_default();
    let mut told = BTreeMap::new();
    for config in fleet.nodes.iter().filter(enrols).filter_map(|node| node.config.as_ref()) {
        let own = files_of(config, vault);
        for file in &own {
            if !all.contains(file) {
                let what = format!(
                    "spec `{}` has its nodes read `{file}` themselves, which is not below `secrets/`",
                    config.spec
                );
                told.insert(what.clone(), TreasuryError { what, hint: "move it there".into() });
            }
            if let Err(error) = Keeper::looking(vault).rehearse(file) {
                told.insert(error.what.clone(), error);
            }
            let Ok(policy) = rules.policy(file) else { continue };
            let is_beside = |other: &&String| {
                !own.contains(*other) && rules.policy(other).is_ok_and(|found| std::ptr::eq(found, policy))
            };
            if let Some(other) = all.iter().find(is_beside) {
                let what = format!(
                    "spec `{}` has its nodes read `{file}` themselves, and the rule of `.sops.yaml` for it is for `{other}` too, which they must not read",
                    config.spec
                );
                let hint = format!("give `{file}` a rule of its own, before that one");
                told.insert(what.clone(), TreasuryError { what, hint });
            }
        }
    }
    told.into_values().collect()
}

/// The files that hold the secrets of a configuration. A mention that leads nowhere is told elsewhere.
fn files_of(config: &Config, vault: &Vault) -> BTreeSet<String> {
    let spots = config.role.secrets.iter().filter_map(|secret| vault.find(&secret.from).ok());
    spots.map(|spot| spot.file).collect()
}

/// Whether a recipient can read every file that holds a secret of a configuration.
fn reads_all(config: &Config, vault: &Vault, recipient: &AgeRecipient) -> bool {
    files_of(config, vault).iter().all(|file| reads(vault, file, recipient))
}

/// Whether a recipient can read a file. One that cannot be looked at is told elsewhere.
pub(super) fn reads(vault: &Vault, file: &str, recipient: &AgeRecipient) -> bool {
    let Ok(recipient) = recipient.as_str().parse::<Reader>() else { return false };
    match vault.file(file).as_ref() {
        Ok(sops) => sops.recipients().iter().any(|reader| reader.is_same(&recipient)),
        Err(_) => true,
    }
}
