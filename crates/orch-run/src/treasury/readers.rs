//! Nodes that read sops files themselves, and whether they can.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use orch_model::{Config, Fleet, Identity};
use orch_plan::{Applied, HostView, Observed};
use orch_secrets::Vault;
use orch_secrets::rules::Rules;

use super::TreasuryError;

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
            let is_let_in =
                machine.keys.known().is_none_or(|keys| reads_all(config, vault, keys.age.as_str()));
            if is_it && !is_let_in {
                machine.applied = Applied::Unknown;
            }
        }
    }
    observed
}

/// Says of nodes that are to read sops files themselves why they cannot be let in without being let in too far: who is put into
/// a rule of `.sops.yaml` will be able to read every file that the rule is for.
pub fn refuse_wide_rules(
    fleet: &Fleet,
    vault: &Vault,
    is_meant: impl Fn(&Identity) -> bool,
) -> Vec<TreasuryError> {
    let text = fs::read_to_string(vault.root().join(".sops.yaml")).unwrap_or_default();
    // Rules that cannot be read are told by whoever has to change them.
    let Ok(rules) = Rules::parse(&text) else { return Vec::new() };
    let all = vault.files().unwrap_or_default();
    let mut told = BTreeMap::new();
    for node in fleet.nodes.iter().filter(|node| is_meant(&node.identity)) {
        let Some(config) = node.config.as_ref().filter(|config| config.role.enroll_recipient) else {
            continue;
        };
        let own = files_of(config, vault);
        for file in &own {
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

/// Whether a recipient can read every file that holds a secret of a configuration. What cannot be looked at is told elsewhere.
fn reads_all(config: &Config, vault: &Vault, recipient: &str) -> bool {
    let files = files_of(config, vault);
    let reads = |file: &String| match vault.file(file).as_ref() {
        Ok(sops) => sops.recipients().iter().any(|reader| reader.as_str() == recipient),
        Err(_) => true,
    };
    files.iter().all(reads)
}
