//! Making a machine: begin it, give it what it starts with, finish it, switch it on. After a crash, and after a lost answer, the
//! same again goes on from what is there.

use std::pin::pin;
use std::sync::Arc;

use orch_plan::{MachineRef, MachineSpec};
use orch_run::{Done, Order};
use tokio::sync::Notify;

use super::call::Pairs;
use super::config::Config;
use super::guest::{GuestKind, Listed, Spot, Status};
use super::image;
use super::look::{Interest, Seen};
use super::maker::{Maker, Making};
use super::mark::{self, Bears};
use super::seed::{Place, Seed};
use super::trouble::Trouble;
use crate::cloud::Written;

/// How often another number is taken where the one before was snatched away.
const NUMBERS: u32 = 8;
/// Where a machine finds the disc with what it starts with.
const DISC: &str = "ide2";

impl Maker {
    /// Makes the machine of an order.
    pub(super) async fn create(self: &Arc<Self>, order: &Order, spec: &MachineSpec) -> Result<Done, Trouble> {
        self.can_be_asked(order, spec)?;
        let seen = self.look(Interest::Marks).await?;
        if let Some(there) = seen.iter().find(|seen| seen.bears.uuid() == Some(order.uuid)) {
            return self.go_on(order, spec, &there.listed.spot).await;
        }
        self.is_free(order, spec, &seen).await?;
        let listed: Vec<Listed> = seen.into_iter().map(|seen| seen.listed).collect();
        let (spot, _making, given) = self.begin_with_seed(order, spec, &listed).await?;
        self.finish(order, spec, &spot, given).await?;
        Ok(Done::Changed)
    }

    /// Finishes a machine that was begun.
    pub(super) async fn adopt(
        self: &Arc<Self>,
        order: &Order,
        found: &MachineRef,
        spec: &MachineSpec,
    ) -> Result<Done, Trouble> {
        self.can_be_asked(order, spec)?;
        let (spot, _) = self.verified(&found.id, order.uuid).await?;
        self.go_on(order, spec, &spot).await
    }

    /// Goes on with what is there of a machine.
    async fn go_on(
        self: &Arc<Self>,
        order: &Order,
        spec: &MachineSpec,
        spot: &Spot,
    ) -> Result<Done, Trouble> {
        let config = self.settled(spot).await?;
        let not_ours = || Trouble::NotOurs { machine: spot.id.to_string(), expected: order.uuid };
        match config.map(|config| config.bears()).filter(|bears| bears.uuid() == Some(order.uuid)) {
            Some(Bears::Made(_)) => {
                let done = self.ensure_running(spot, &order.progress).await?;
                if done == Done::Changed {
                    self.reach(order, spot).await?;
                }
                Ok(done)
            }
            Some(Bears::Begun(_)) => {
                let _making = self.making(spot.id.vmid);
                let seed = self.seed_of(order, spec).await?;
                let kept = seed.as_ref().map(|seed| seed.place.volume().to_owned());
                self.finish(order, spec, spot, seed).await?;
                // Whoever began it may have given it something else, which nobody looks for any more now.
                if image::kind(spec) == GuestKind::Qemu {
                    self.remove_seed_but(order.uuid, kept.as_deref()).await?;
                }
                Ok(Done::Changed)
            }
            Some(Bears::Nothing) | None => Err(not_ours()),
        }
    }

    fn can_be_asked(&self, order: &Order, spec: &MachineSpec) -> Result<(), Trouble> {
        if let Some(parent) =
            spec.parent.as_ref().filter(|parent| self.setup.parent.as_ref() != Some(*parent))
        {
            let node = &order.identity.node;
            return Err(Trouble::Refused(format!(
                "`{node}` lives on `{parent}`, and this is not the Proxmox of `{parent}`"
            )));
        }
        if image::kind(spec) == GuestKind::Lxc && order.enrolment.is_some() {
            let node = &order.identity.node;
            return Err(Trouble::Refused(format!(
                "`{node}` is a container, which cannot be given anything to fetch its configuration with when it is made: push to it, or make it a vm"
            )));
        }
        Ok(())
    }

    /// Refuses what belongs to others: the number, the name, and the node itself.
    async fn is_free(&self, order: &Order, spec: &MachineSpec, seen: &[Seen]) -> Result<(), Trouble> {
        let same_node =
            |seen: &&Seen| seen.bears.marks().is_some_and(|marks| marks.is_of(&order.site, &order.identity));
        if let Some(other) = seen.iter().find(same_node) {
            let (node, other) = (&order.identity.node, other.listed.called());
            return Err(Trouble::Refused(format!(
                "`{node}` is there by now, as {other}: another run made it, or what it lives in was off; run again"
            )));
        }
        if let Some(other) = seen.iter().find(|seen| Some(seen.listed.spot.id.vmid) == spec.vmid) {
            // It may be what an earlier try of this very order is still making, or what comes to nothing.
            let is_in_the_way = if other.listed.is_being_made() {
                let config = self.settled(&other.listed.spot).await?;
                config.is_some_and(|config| config.bears().uuid() != Some(order.uuid))
            } else {
                true
            };
            if is_in_the_way {
                return Err(Trouble::NotOurs { machine: other.listed.called(), expected: order.uuid });
            }
        }
        if let Some(other) = seen.iter().find(|seen| seen.listed.name.as_ref() == Some(&spec.name)) {
            let (name, other) = (&spec.name, other.listed.spot.id);
            return Err(Trouble::Refused(format!("the name `{name}` belongs to another machine ({other})")));
        }
        Ok(())
    }

    /// Begins a machine, and puts what it starts with in its place while it is being made. Not before: as long as nothing bears
    /// the mark, whoever is interrupted leaves something that nobody would ever look for.
    async fn begin_with_seed(
        &self,
        order: &Order,
        spec: &MachineSpec,
        listed: &[Listed],
    ) -> Result<(Spot, Making<'_>, Option<Seed>), Trouble> {
        let ordered = Notify::new();
        let mut work = pin!(self.begin_somewhere(order, spec, listed, &ordered));
        tokio::select! {
            begun = &mut work => {
                let (spot, making) = begun?;
                return Ok((spot, making, self.seed_of(order, spec).await?));
            }
            () = ordered.notified() => {}
        }
        let (begun, seed) = tokio::join!(work, self.seed_of(order, spec));
        match (begun, seed) {
            (Ok((spot, making)), seed) => Ok((spot, making, seed?)),
            (Err(trouble), Ok(Some(seed))) if !trouble.is_uncertain() => {
                // Nothing is there that it could be for. Whoever looks for belongings finds it where this fails.
                let _ = self.remove_place(&seed.place).await;
                Err(trouble)
            }
            (Err(trouble), _) => Err(trouble),
        }
    }

    async fn begin_somewhere(
        &self,
        order: &Order,
        spec: &MachineSpec,
        listed: &[Listed],
        ordered: &Notify,
    ) -> Result<(Spot, Making<'_>), Trouble> {
        if let Some(vmid) = spec.vmid {
            return self.begin(order, spec, vmid, listed, ordered).await;
        }
        let mut tries = 0;
        loop {
            let vmid = self.free_number().await?;
            tries += 1;
            match self.begin(order, spec, vmid, listed, ordered).await {
                Err(Trouble::Refused(_)) if tries < NUMBERS => self.pace().breathe(1).await,
                begun => return begun,
            }
        }
    }

    async fn seed_of(&self, order: &Order, spec: &MachineSpec) -> Result<Option<Seed>, Trouble> {
        // A container is given a key by Proxmox itself, and reads no disc.
        if image::kind(spec) == GuestKind::Lxc { Ok(None) } else { self.seed(order, spec).await.map(Some) }
    }

    /// The second half: from a machine that is there to one that runs and can be reached.
    async fn finish(
        self: &Arc<Self>,
        order: &Order,
        spec: &MachineSpec,
        spot: &Spot,
        seed: Option<Seed>,
    ) -> Result<(), Trouble> {
        order.progress.say("giving it its size and its marks");
        let id = spot.id.to_string();
        let (_, config) = self.verified(&id, order.uuid).await?;
        let config = self.grow_disk(spot, order.uuid, config, spec.size.disk).await?;
        let written = written(order, spec, seed.as_ref());
        let others = config.tags();
        let done = self.write(spot, order.uuid, config, |config| {
            // Another driver may have found the same half-made machine. Whoever writes first has made it, with the key that he
            // gave it; the other one must not say that it has his.
            let is_made = matches!(config.bears(), Bears::Made(_));
            let tags = mark::tags(&written, &others);
            (!is_made).then(|| self.last_word(spec, spot, seed.as_ref(), config, tags))
        });
        if done.await? == Done::Unchanged {
            self.ensure_running(spot, &order.progress).await?;
            return self.reach(order, spot).await;
        }
        self.remember(spot, &Bears::Made(Box::new(written)));
        self.alone(order, spot).await?;
        self.switch_on(spot, &order.progress).await?;
        self.reach(order, spot).await
    }

    /// What makes a machine the one that was ordered, its tags with it: they say that it was made.
    fn last_word(
        &self,
        spec: &MachineSpec,
        spot: &Spot,
        seed: Option<&Seed>,
        config: &Config,
        tags: String,
    ) -> Pairs {
        let mac = config.mac();
        let mut pairs: Pairs = vec![
            ("cores", spec.size.cores.to_string()),
            ("memory", spec.size.memory.to_string()),
            ("tags", tags),
        ];
        if spot.id.kind == GuestKind::Lxc {
            pairs.push(("net0", self.container_card(mac.as_deref())));
            return pairs;
        }
        pairs.extend([
            ("name", spec.name.clone()),
            ("sockets", "1".into()),
            ("agent", "1".into()),
            ("serial0", "socket".into()),
            ("net0", self.card(mac.as_deref())),
        ]);
        if spec.kind == orch_model::NodeKind::Pve {
            // Machines in the machine need what the processor itself can.
            pairs.push(("cpu", "host".into()));
        }
        if let Some((disk, _)) = config.boot_disk(GuestKind::Qemu) {
            pairs.push(("boot", format!("order={disk}")));
        }
        // A template may bring a drive for cloud-init of its own, and a machine that finds two discs believes either.
        let mut unwanted = Vec::new();
        match seed.map(|seed| &seed.place) {
            Some(Place::Disc(volume)) => {
                pairs.push((DISC, format!("{volume},media=cdrom")));
                unwanted = config.cloud_init_drives(DISC);
            }
            Some(Place::Snippet(volume)) => {
                if config.cloud_init_drives("").is_empty() {
                    pairs.push((DISC, format!("{}:cloudinit", self.setup.proxmox.datastore)));
                }
                pairs.push(("cicustom", format!("user={volume}")));
                pairs.push(("ipconfig0", "ip=dhcp".into()));
            }
            None => {}
        }
        pairs.extend(config.balloon_for(spec.size.memory));
        if !unwanted.is_empty() {
            pairs.push(("delete", unwanted.join(",")));
        }
        pairs
    }

    /// Makes sure that nobody else made the same node meanwhile. Of two, the one with the higher number goes, unless the other
    /// one did not look and runs already: then whoever looks goes.
    async fn alone(self: &Arc<Self>, order: &Order, spot: &Spot) -> Result<(), Trouble> {
        let wait = self.pace().wait(self.pace().under_way);
        loop {
            let seen = self.look(Interest::Marks).await?;
            let rivals = seen.iter().filter(|seen| {
                let is_same_node = |marks: &orch_plan::Marks| marks.is_of(&order.site, &order.identity);
                seen.bears.marks().is_some_and(is_same_node) && seen.bears.uuid() != Some(order.uuid)
            });
            let Some(rival) = rivals.min_by_key(|rival| rival.listed.spot.id.vmid) else { return Ok(()) };
            let current = self.current(&rival.listed.spot).await?;
            let has_won = current.as_ref().is_some_and(|current| current.status == Status::Running);
            // One that is gone already is only waited for until the list knows it too.
            let is_first = current.is_some() && rival.listed.spot.id.vmid < spot.id.vmid;
            let goes = has_won || is_first || !wait.pause().await;
            if goes {
                let (node, rival) = (&order.identity.node, rival.listed.called());
                self.destroy(&spot.id.to_string(), order.uuid, &order.progress).await?;
                return Err(Trouble::Refused(format!(
                    "another run made `{node}` at the same time, as {rival}; this one was taken back"
                )));
            }
        }
    }
}

/// What is written on a machine that was made.
fn written(order: &Order, spec: &MachineSpec, seed: Option<&Seed>) -> Written {
    Written {
        marks: order.marks(),
        first: seed.map(|seed| seed.key.clone()),
        own: None,
        applied: None,
        port: 22,
        image: Some(spec.image.clone()),
        size: Some(spec.size),
    }
}
