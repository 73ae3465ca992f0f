//! The firewall that servers stand behind. One that somebody else made is used as it is. One of ours lets in what is needed to
//! reach nodes, and nothing else: TCP to the ports of their SSH servers, and ICMP, from everywhere; whatever else is found in it
//! is taken out. What goes out is free.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::Hetzner;
use super::answer::{Action, Thing};
use super::decode::list_of;
use super::ensure::{SITE, Sought};
use super::trouble::CallError;
use crate::api::encode;

const SSH_PORT: u16 = 22;
const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

impl Hetzner {
    pub(super) async fn ensure_firewall(&self, until: Instant) -> Result<Option<u64>, CallError> {
        let setup = &self.inner.setup;
        let Some(name) = setup.hetzner.firewall.as_ref().map(ToString::to_string) else { return Ok(None) };
        let ports: BTreeSet<u16> = setup.ssh_ports.values().copied().chain([SSH_PORT]).collect();
        let sought = Sought {
            list: "firewalls",
            one: "firewall",
            query: format!("name={}", encode(&name)),
            is_it: &|firewall| firewall.name == name,
            body: json!({ "name": name, "labels": { SITE: setup.site.to_string() }, "rules": rules(&ports) }),
        };
        let firewall = self.had(&sought, until).await?;
        if self.is_ours(&firewall.labels) {
            self.mend(&firewall, ports, until).await?;
        }
        Ok(Some(firewall.id))
    }

    async fn mend(
        &self,
        firewall: &Thing,
        mut ports: BTreeSet<u16>,
        until: Instant,
    ) -> Result<(), CallError> {
        if shapes(&firewall.rules) == shapes(&rules(&ports)) {
            return Ok(());
        }
        // Nodes of other manifests may answer at ports of their own, and are not shut off.
        let selector = format!("{SITE}={},orch-port", self.inner.setup.site);
        let others = self.selected(&selector, until).await?;
        ports.extend(others.iter().filter_map(|server| Some(server.written()?.port)));
        let wanted = rules(&ports);
        if shapes(&firewall.rules) == shapes(&wanted) {
            return Ok(());
        }
        let path = format!("/firewalls/{}/actions/set_rules", firewall.id);
        let answer = self.inner.caller.order(&path, &json!({ "rules": wanted }), until).await?;
        let actions: Vec<Action> = list_of(&format!("POST {path}"), "actions", &answer)?;
        self.inner.watch.ended(actions, until).await
    }
}

fn rules(ports: &BTreeSet<u16>) -> Vec<Json> {
    let ssh = ports.iter().map(|port| {
        json!({
            "direction": "in", "protocol": "tcp", "port": port.to_string(), "source_ips": EVERYWHERE,
            "destination_ips": [], "description": "SSH of nodes",
        })
    });
    let icmp = json!({
        "direction": "in", "protocol": "icmp", "source_ips": EVERYWHERE, "destination_ips": [],
        "description": "signs of life",
    });
    ssh.chain([icmp]).collect()
}

/// What rules do, whatever order they are in and whatever is said of them.
fn shapes(rules: &[Json]) -> BTreeSet<(String, String, String, BTreeSet<String>)> {
    let text = |rule: &Json, key: &str| rule.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let addresses = |rule: &Json, key: &str| {
        let listed = rule.get(key).and_then(Json::as_array).into_iter().flatten();
        listed.filter_map(|address| Some(format!("{key} {}", address.as_str()?))).collect::<Vec<_>>()
    };
    let shape = |rule: &Json| {
        let both = [addresses(rule, "source_ips"), addresses(rule, "destination_ips")].concat();
        (text(rule, "direction"), text(rule, "protocol"), text(rule, "port"), both.into_iter().collect())
    };
    rules.iter().map(shape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_the_same_in_any_order_and_under_any_description_and_not_with_other_addresses() {
        let ours = rules(&BTreeSet::from([22, 2222]));
        let mut shown: Vec<Json> = ours.iter().rev().cloned().collect();
        for rule in &mut shown {
            rule["description"] = Json::Null;
            rule["novelty"] = json!(1);
        }
        assert_eq!(shapes(&ours), shapes(&shown));
        shown[0]["source_ips"] = json!(["192.0.2.0/24"]);
        assert_ne!(shapes(&ours), shapes(&shown));
        assert_ne!(shapes(&ours), shapes(&rules(&BTreeSet::from([22]))));
    }
}
