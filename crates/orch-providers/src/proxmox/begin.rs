//! The first half of making a machine: it is there, under its mark, and nothing more. Numbers cannot be reserved, so two who
//! want the same one both ask for it, and the mark decides whose it became.

use orch_plan::MachineSpec;
use orch_run::Order;
use tokio::sync::Notify;

use super::call::Pairs;
use super::config::Config;
use super::guest::{GuestId, GuestKind, Listed, Spot};
use super::image::{self, Image};
use super::maker::{Maker, Making};
use super::mark::{self, Bears};
use super::trouble::Trouble;
use crate::api::encode;

impl Maker {
    /// Makes a machine of this number that bears the order's mark. One that bears it already is the one. Says when Proxmox has
    /// taken the order.
    pub(super) async fn begin(
        &self,
        order: &Order,
        spec: &MachineSpec,
        vmid: u32,
        listed: &[Listed],
        ordered: &Notify,
    ) -> Result<(Spot, Making<'_>), Trouble> {
        let (path, mut pairs) = self.first_word(order, spec, vmid, listed).await?;
        pairs.extend(self.setup.proxmox.pool.clone().map(|pool| ("pool", pool)));
        let _lane = self.lanes.acquire().await.expect("the lanes are never closed");
        let making = self.making(vmid);
        let spot = self.here(GuestId { kind: image::kind(spec), vmid });
        order.progress.say("making the machine");
        let mut tries = self.tries();
        let mut was_hidden = false;
        loop {
            let made = async {
                let answer = self.caller.post(&path, &pairs).await?;
                ordered.notify_one();
                self.done_or_stopped(&answer, &format!("making `{}`", spec.name)).await
            };
            let Err(trouble) = made.await else { return Ok((spot, making)) };
            if !trouble.is_taken() && !trouble.is_uncertain() {
                tries.again(trouble).await?;
                continue;
            }
            match self.occupant(vmid).await? {
                Some((there, config)) => return Ok((is_it(order, there, &config, vmid)?, making)),
                None if trouble.is_uncertain() => tries.again(trouble).await?,
                // Whoever had it may be gone again, but hardly twice.
                None if was_hidden => {
                    let why = format!("VMID {vmid} belongs to a machine that this token may not see");
                    return Err(Trouble::Refused(why));
                }
                None => was_hidden = true,
            }
        }
    }

    /// The machine at a number, once it is no longer being made; nothing where there is none.
    pub(super) async fn occupant(&self, vmid: u32) -> Result<Option<(Spot, Config)>, Trouble> {
        let listed = self.list().await?.into_iter().find(|listed| listed.spot.id.vmid == vmid);
        let Some(spot) = listed.map(|listed| listed.spot) else { return Ok(None) };
        Ok(self.settled(&spot).await?.map(|config| (spot, config)))
    }

    /// The configuration of a machine once it is no longer being made. One that shows no mark is waited for less long: it
    /// is a stranger's.
    pub(super) async fn settled(&self, spot: &Spot) -> Result<Option<Config>, Trouble> {
        let (ours, strangers) = (self.pace().wait(self.pace().task), self.pace().wait(self.pace().under_way));
        loop {
            let Some(config) = self.config(spot).await? else { return Ok(None) };
            if !matches!(config.lock(), Some("clone" | "create")) {
                return Ok(Some(config));
            }
            let goes_on =
                if config.bears() == Bears::Nothing { strangers.pause().await } else { ours.pause().await };
            if !goes_on {
                return Ok(Some(config));
            }
        }
    }

    /// What is asked for, with the mark in it.
    async fn first_word(
        &self,
        order: &Order,
        spec: &MachineSpec,
        vmid: u32,
        listed: &[Listed],
    ) -> Result<(String, Pairs), Trouble> {
        let here = encode(&self.setup.proxmox.node);
        let description = mark::description(&order.marks());
        match (image::kind(spec), Image::of(&spec.image)?) {
            (GuestKind::Lxc, Image::Volume(volume)) => {
                let access = self.access().await?;
                Ok((
                    format!("/nodes/{here}/lxc"),
                    self.container(spec, vmid, description, volume, access.as_str()),
                ))
            }
            (GuestKind::Lxc, Image::Template(_)) => {
                let why = format!(
                    "`{}` is a container, and is made from a volume such as `local:vztmpl/<file>`",
                    spec.name
                );
                Err(Trouble::Refused(why))
            }
            (GuestKind::Qemu, Image::Volume(volume)) => {
                Ok((format!("/nodes/{here}/qemu"), self.virtual_machine(spec, vmid, description, volume)))
            }
            (GuestKind::Qemu, Image::Template(name)) => {
                let template = image::template(listed, name)?;
                let has = template.extent.disk.map_or(0, |bytes| bytes.div_ceil(1 << 30));
                if has > u64::from(spec.size.disk) {
                    return Err(Trouble::Refused(format!(
                        "template {} has a disk of {has} GB, and `{}` is to have {}: give the node a larger one",
                        template.called(),
                        spec.name,
                        spec.size.disk
                    )));
                }
                let mut pairs: Pairs = vec![
                    ("newid", vmid.to_string()),
                    ("name", spec.name.clone()),
                    ("description", description),
                    ("full", "1".into()),
                    ("storage", self.setup.proxmox.datastore.clone()),
                ];
                if template.spot.node != self.setup.proxmox.node {
                    pairs.push(("target", self.setup.proxmox.node.clone()));
                }
                Ok((template.spot.path("/clone"), pairs))
            }
        }
    }

    fn virtual_machine(&self, spec: &MachineSpec, vmid: u32, description: String, volume: &str) -> Pairs {
        vec![
            ("vmid", vmid.to_string()),
            ("name", spec.name.clone()),
            ("description", description),
            ("ostype", "l26".into()),
            ("scsihw", "virtio-scsi-single".into()),
            ("scsi0", format!("{}:0,import-from={volume}", self.setup.proxmox.datastore)),
            ("boot", "order=scsi0".into()),
            ("cores", spec.size.cores.to_string()),
            ("memory", spec.size.memory.to_string()),
            ("net0", self.card(None)),
        ]
    }

    fn container(
        &self,
        spec: &MachineSpec,
        vmid: u32,
        description: String,
        volume: &str,
        access: &str,
    ) -> Pairs {
        vec![
            ("vmid", vmid.to_string()),
            ("hostname", spec.name.clone()),
            ("description", description),
            ("ostemplate", volume.to_owned()),
            ("rootfs", format!("{}:{}", self.setup.proxmox.datastore, spec.size.disk)),
            ("cores", spec.size.cores.to_string()),
            ("memory", spec.size.memory.to_string()),
            ("net0", self.container_card(None)),
            ("unprivileged", "1".into()),
            ("features", "nesting=1".into()),
            ("ssh-public-keys", access.to_owned()),
        ]
    }

    /// The network card of a machine; one that has an address keeps it.
    pub(super) fn card(&self, mac: Option<&str>) -> String {
        let mac = mac.map(|mac| format!("={}", mac.to_ascii_uppercase())).unwrap_or_default();
        format!("virtio{mac},bridge={}{}", self.setup.proxmox.bridge, self.tag())
    }

    /// The same of a container.
    pub(super) fn container_card(&self, mac: Option<&str>) -> String {
        let mac = mac.map(|mac| format!(",hwaddr={}", mac.to_ascii_uppercase())).unwrap_or_default();
        format!("name=eth0,bridge={}{mac},ip=dhcp,type=veth{}", self.setup.proxmox.bridge, self.tag())
    }

    fn tag(&self) -> String {
        self.setup.proxmox.vlan.map(|vlan| format!(",tag={vlan}")).unwrap_or_default()
    }

    /// A number that is free at this moment, for hosts whose numbers no plan derives.
    pub(super) async fn free_number(&self) -> Result<u32, Trouble> {
        let answer = self.caller.get("/cluster/nextid").await?;
        let number = super::read::text(&answer).and_then(|text| text.parse().ok());
        number.ok_or_else(|| super::read::unreadable("GET /cluster/nextid", "the answer is no number"))
    }
}

/// Decides by its mark whose the machine at a number is.
fn is_it(order: &Order, spot: Spot, config: &Config, vmid: u32) -> Result<Spot, Trouble> {
    let bears = config.bears();
    let is_same_node = bears.marks().is_some_and(|marks| marks.is_of(&order.site, &order.identity));
    if bears.uuid() == Some(order.uuid) {
        Ok(spot)
    } else if is_same_node {
        Err(Trouble::Refused(format!("another run made `{}` meanwhile, as {}", order.identity.node, spot.id)))
    } else {
        let name = orch_model::printable(config.name().unwrap_or("without a name")).to_string();
        Err(Trouble::Refused(format!("VMID {vmid} belongs to another machine (`{name}`)")))
    }
}
