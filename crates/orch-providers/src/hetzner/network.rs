//! The private networks that servers join: one for each range, with one subnet that is all of it.

use orch_model::Cidr;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Hetzner;
use super::answer::{Begun, Thing};
use super::ensure::{SITE, Sought};
use super::trouble::CallError;
use crate::api::encode;

impl Hetzner {
    pub(super) async fn ensure_networks(&self, until: Instant) -> Result<Vec<u64>, CallError> {
        let hetzner = &self.inner.setup.hetzner;
        let mut ids = Vec::new();
        if hetzner.networks.is_empty() {
            return Ok(ids);
        }
        let zone = self.zone(&hetzner.location, until).await?;
        for cidr in &hetzner.networks {
            ids.push(self.ensure_network(cidr, &zone, until).await?);
        }
        Ok(ids)
    }

    /// The zone of a location: servers of one zone share networks.
    async fn zone(&self, location: &str, until: Instant) -> Result<String, CallError> {
        let query = format!("name={}", encode(location));
        let found: Vec<Thing> = self.inner.caller.list("/locations", "locations", &query, until).await?;
        let found = found.into_iter().find(|found| found.name == location);
        let host = &self.inner.setup.host;
        let unknown = || format!("there is no location `{location}`: mend `location` in hosts/{host}.yaml");
        found.map(|found| found.network_zone).ok_or_else(|| CallError::Refused(unknown()))
    }

    async fn ensure_network(&self, cidr: &Cidr, zone: &str, until: Instant) -> Result<u64, CallError> {
        let site = &self.inner.setup.site;
        let range = cidr.to_string();
        let name = format!("orch-{site}-{}", range.replace(['.', ':', '/'], "-"));
        let subnet = json!({ "type": "cloud", "ip_range": range, "network_zone": zone });
        let sought = Sought {
            list: "networks",
            one: "network",
            query: format!("name={}", encode(&name)),
            is_it: &|network| network.name == name,
            body: json!({
                "name": name, "ip_range": range, "labels": { SITE: site.to_string() }, "subnets": [subnet],
            }),
        };
        let caller = &self.inner.caller;
        let mut attempt = 0;
        loop {
            let network = self.had(&sought, until).await?;
            if self.is_fit(&network, &range, zone)? {
                return Ok(network.id);
            }
            let thing = format!("/networks/{}", network.id);
            match caller.post::<Begun>(&format!("{thing}/actions/add_subnet"), &subnet, until).await {
                Ok(begun) => {
                    self.inner.watch.ended([begun.action], until).await?;
                    return Ok(network.id);
                }
                // Whether it was done is seen by looking again, once the network is about nothing.
                Err(error) if error.may_be_done() && attempt + 1 < caller.pace.tries => {
                    let running = self.actions(&thing, until).await?;
                    self.inner.watch.ended(running, until).await?;
                    sleep(caller.pace.pause(attempt)).await;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a network can be joined as it is; one that lacks its subnet must be ours to be given it.
    fn is_fit(&self, network: &Thing, range: &str, zone: &str) -> Result<bool, CallError> {
        let name = &network.name;
        if network.ip_range != range {
            let why = format!("network `{name}` has the range {} and not {range}", network.ip_range);
            return Err(CallError::Refused(format!("{why}: remove it, or give it another name")));
        }
        if network.subnets.iter().any(|subnet| subnet.network_zone == zone && !subnet.ip_range.is_empty()) {
            return Ok(true);
        }
        if self.is_ours(&network.labels) {
            return Ok(false);
        }
        let why = format!("network `{name}` has no subnet in `{zone}`, and is not ours to be given one");
        Err(CallError::Refused(why))
    }
}
