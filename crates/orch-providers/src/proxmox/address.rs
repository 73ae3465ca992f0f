//! Where a machine answers: by the word of its guest agent for the card that Proxmox gave it, never for another one in it.

use std::net::{IpAddr, Ipv6Addr};

use orch_run::Order;
use serde_json::Value as Json;
use tokio::time::Instant;
use uuid::Uuid;

use super::guest::{GuestKind, Spot};
use super::maker::Maker;
use super::trouble::Trouble;
use crate::cloud::knock;

/// The port at which a machine answers that was just made.
const SSH: u16 = 22;

impl Maker {
    /// Waits until a machine answers, where that is waited for at all.
    pub(super) async fn reach(&self, order: &Order, spot: &Spot) -> Result<(), Trouble> {
        let Some(reach) = self.setup.reach else { return Ok(()) };
        let deadline = Instant::now() + reach;
        order.progress.say("waiting for its address");
        let address = self.address(spot, order.uuid, deadline).await?;
        order.progress.say("waiting for ssh");
        let known = self.known(order.uuid).and_then(|known| known.written);
        let port = known.map_or(SSH, |written| written.port);
        let knocked = knock((address, port).into(), deadline).await;
        knocked.map_err(|what| Trouble::Late { what, evidence: Vec::new() })
    }

    /// The address of a machine, waited for.
    pub(super) async fn address(
        &self,
        spot: &Spot,
        uuid: Uuid,
        deadline: Instant,
    ) -> Result<IpAddr, Trouble> {
        if let Some(address) = self.known(uuid).and_then(|known| known.address) {
            return Ok(address);
        }
        let (_, config) = self.verified(&spot.id.to_string(), uuid).await?;
        let no_card = || Trouble::Refused(format!("machine `{}` has no network card `net0`", spot.id));
        let mac = config.mac().ok_or_else(no_card)?;
        let wait =
            self.pace().wait(self.pace().agent.min(deadline.saturating_duration_since(Instant::now())));
        loop {
            let last = match self.asked(spot, &mac).await {
                Ok(Some(address)) => {
                    self.remember_address(uuid, Some(address));
                    return Ok(address);
                }
                Ok(None) => "it says no address for the card that it was given".into(),
                // Waiting does not help a machine that is off, nor a token that may not ask.
                Err(trouble) if trouble.is_off() || trouble.is_forbidden() => return Err(trouble),
                Err(trouble @ (Trouble::Said { .. } | Trouble::Unreadable { .. })) => trouble.to_string(),
                Err(trouble) => return Err(trouble),
            };
            if !wait.pause().await {
                let what = format!(
                    "machine `{}` does not say its address: its image may lack the QEMU guest agent, or its network gives it none",
                    spot.id
                );
                return Err(Trouble::Late { what, evidence: vec![last] });
            }
        }
    }

    /// The address that the machine or somebody else knows at this moment.
    async fn asked(&self, spot: &Spot, mac: &str) -> Result<Option<IpAddr>, Trouble> {
        let path = match spot.id.kind {
            GuestKind::Qemu => spot.path("/agent/network-get-interfaces"),
            GuestKind::Lxc => spot.path("/interfaces"),
        };
        let said = self.caller.get(&path).await.map(|answer| address_in(&answer, mac));
        if let (Ok(None) | Err(_), Some(neighbours)) = (&said, &self.setup.neighbours)
            && let Some(address) = neighbours.address_of(mac).await
        {
            return Ok(Some(address));
        }
        said
    }
}

/// The address of the card with this hardware address: one of the older kind where there is one, and none that means itself.
pub(super) fn address_in(answer: &Json, mac: &str) -> Option<IpAddr> {
    let cards = answer.get("result").unwrap_or(answer).as_array()?;
    let text = |value: &Json, names: [&str; 2]| {
        let named = names.iter().find_map(|name| value.get(*name));
        named.and_then(Json::as_str).map(str::to_owned)
    };
    let is_it = |card: &&Json| {
        text(card, ["hardware-address", "hwaddr"]).is_some_and(|shown| shown.eq_ignore_ascii_case(mac))
    };
    let card = cards.iter().find(is_it)?;
    let listed = card.get("ip-addresses").and_then(Json::as_array).into_iter().flatten();
    let listed = listed.filter_map(|entry| text(entry, ["ip-address", "ip-address"]));
    let plain = ["inet", "inet6"].into_iter().filter_map(|name| text(card, [name, name]));
    let addresses = listed.chain(plain).filter_map(|text| text.split('/').next()?.parse::<IpAddr>().ok());
    let mut usable: Vec<IpAddr> = addresses.filter(is_usable).collect();
    usable.sort_by_key(IpAddr::is_ipv6);
    usable.first().copied()
}

/// Whether others can reach a machine there. A card that has an address of loopback is one of a lab on this computer.
fn is_usable(address: &IpAddr) -> bool {
    let means_itself =
        *address == IpAddr::from([127, 0, 0, 1]) || *address == IpAddr::V6(Ipv6Addr::LOCALHOST);
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !means_itself && !is_link_local && !address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAC: &str = "bc:24:11:aa:bb:01";

    #[test]
    fn the_address_is_that_of_the_card_that_proxmox_gave_and_no_other() {
        let answer = json!({ "result": [
            { "name": "lo", "hardware-address": "00:00:00:00:00:00",
              "ip-addresses": [{ "ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8 }] },
            { "name": "docker0", "hardware-address": "02:42:ac:11:00:01",
              "ip-addresses": [{ "ip-address": "172.17.0.1", "ip-address-type": "ipv4", "prefix": 16 }] },
            { "name": "ens18", "hardware-address": "BC:24:11:AA:BB:01", "statistics": {},
              "ip-addresses": [
                { "ip-address": "fe80::1", "ip-address-type": "ipv6", "prefix": 64 },
                { "ip-address": "2001:db8::5", "ip-address-type": "ipv6", "prefix": 64 },
                { "ip-address": "169.254.3.4", "ip-address-type": "ipv4", "prefix": 16 },
                { "ip-address": "10.0.0.5", "ip-address-type": "ipv4", "prefix": 24 } ] } ] });
        assert_eq!(address_in(&answer, MAC), "10.0.0.5".parse().ok());
        assert_eq!(address_in(&answer, "bc:24:11:00:00:00"), None);
    }

    #[test]
    fn a_card_without_an_address_yet_has_none() {
        assert_eq!(address_in(&json!({ "result": [{ "hardware-address": MAC }] }), MAC), None);
        assert_eq!(address_in(&json!({ "result": null }), MAC), None);
        let only_itself = json!([{ "hwaddr": MAC, "inet6": "fe80::1/64" }]);
        assert_eq!(address_in(&only_itself, MAC), None);
    }

    #[test]
    fn containers_say_it_in_their_own_way() {
        let answer =
            json!([{ "name": "eth0", "hwaddr": MAC, "inet": "10.0.0.6/24", "inet6": "2001:db8::6/64" }]);
        assert_eq!(address_in(&answer, MAC), "10.0.0.6".parse().ok());
    }
}
