//! Looking: one question for all machines, one to each node that has any of ours, and a closer look at those whose marks are not in the list, or that are of interest.

use std::sync::Arc;

use orch_model::{Identity, Size};
use orch_plan::{Applied, Keys, Machine, MachineState};
use tokio::task::JoinSet;

use super::config::Config;
use super::guest::{Extent, GuestKind, Listed, Status};
use super::maker::Maker;
use super::mark::Bears;
use super::trouble::Trouble;
use crate::cloud::Written;

/// What is not known of a stranger's machine.
const UNKNOWN: Size = Size { cores: 1, memory: 512, disk: 1 };

/// A machine that was looked at.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) listed: Listed,
    pub(super) bears: Bears,
}

/// What a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest<'a> {
    /// Every machine.
    All,
    /// The machines of one node, as they are at this very moment: the list lags behind.
    Node(&'a Identity),
    /// Whose machines are, and nothing else of them.
    Marks,
    /// Everything that could be ours, also where nobody looks for it any more.
    Belongings,
}

impl Maker {
    /// Everything that is there.
    pub(super) async fn look(self: &Arc<Self>, interest: Interest<'_>) -> Result<Vec<Seen>, Trouble> {
        let node = if let Interest::Node(node) = interest { Some(node) } else { None };
        let mut seen = Vec::new();
        let mut closer: JoinSet<Result<Option<Seen>, Trouble>> = JoinSet::new();
        let mut all = self.list().await?;
        if interest == Interest::All {
            self.freshen(&mut all).await;
        }
        for listed in all {
            let bears = if listed.is_template { Bears::Nothing } else { Bears::of(&listed.tags, None) };
            let is_meant =
                bears.marks().is_some_and(|marks| node.is_some_and(|node| marks.identity() == *node));
            if !is_meant && !self.is_unclear(&listed, &bears, interest) {
                seen.push(Seen { listed, bears });
                continue;
            }
            let (this, node) = (Arc::clone(self), node.cloned());
            closer.spawn(async move { this.look_closer(listed, bears, is_meant, node.as_ref()).await });
        }
        while let Some(looked) = closer.join_next().await {
            let looked = looked
                .map_err(|error| Trouble::Here { what: error.to_string(), hint: "run again".into() })?;
            seen.extend(looked?);
        }
        seen.sort_by_key(|seen| seen.listed.spot.id.vmid);
        for Seen { listed, bears } in &seen {
            self.remember(&listed.spot, bears);
        }
        Ok(seen)
    }

    /// The same, once nobody is making a machine any more that could be ours: a driver that was killed leaves a task that goes on.
    pub(super) async fn look_patiently(self: &Arc<Self>) -> Result<Vec<Seen>, Trouble> {
        let wait = self.pace().wait(self.pace().look.min(self.pace().under_way));
        loop {
            let seen = self.look(Interest::All).await?;
            let is_under_way =
                seen.iter().any(|seen| seen.bears == Bears::Nothing && self.could_become_ours(&seen.listed));
            if !is_under_way || !wait.pause().await {
                return Ok(seen);
            }
        }
    }

    /// Whether a machine is being made by nobody knows whom, where ours are.
    pub(super) fn could_become_ours(&self, listed: &Listed) -> bool {
        let vmid = listed.spot.id.vmid;
        let is_ours_to_have = self.is_in_range(listed) || self.setup.vmids.contains(&vmid);
        listed.is_being_made() && is_ours_to_have && !self.is_making(vmid)
    }

    /// Whether its number is one that could have been derived.
    pub(super) fn is_in_range(&self, listed: &Listed) -> bool {
        let range = self.setup.proxmox.vmid_range;
        (range.first()..=range.last()).contains(&listed.spot.id.vmid)
    }

    /// Whether the list does not say enough about a machine that is ours, or could be.
    fn is_unclear(&self, listed: &Listed, bears: &Bears, interest: Interest<'_>) -> bool {
        let Extent { cores, memory, disk } = listed.extent;
        let is_complete =
            listed.status != Status::Unknown && cores.is_some() && memory.is_some() && disk.is_some();
        match bears {
            Bears::Made(written) => {
                // What the list says may be as old as ten seconds: where it is not what was asked for, that is looked into.
                let is_as_asked =
                    |asked: Size| asked == size(listed.extent, listed.spot.id.kind, Some(written));
                let is_as_made = listed.status == Status::Running && written.size.is_none_or(is_as_asked);
                interest == Interest::All && (listed.name.is_none() || !is_complete || !is_as_made)
            }
            Bears::Begun(_) => interest == Interest::All,
            // Ours are made on one node of the cluster, and another one may be dead.
            Bears::Nothing if listed.is_template || listed.spot.node != self.setup.proxmox.node => false,
            Bears::Nothing if interest == Interest::Belongings && self.is_in_range(listed) => true,
            // Whoever makes many at once must not look at all the others for each.
            Bears::Nothing if interest != Interest::All && self.is_making(listed.spot.id.vmid) => false,
            Bears::Nothing => {
                let named = listed.name.as_ref().is_none_or(|name| self.setup.names.contains(name));
                named || self.setup.vmids.contains(&listed.spot.id.vmid) || self.could_become_ours(listed)
            }
        }
    }

    async fn look_closer(
        &self,
        mut listed: Listed,
        bears: Bears,
        is_meant: bool,
        node: Option<&Identity>,
    ) -> Result<Option<Seen>, Trouble> {
        let spot = listed.spot.clone();
        let is_ours = bears != Bears::Nothing;
        let (config, mut current) = if is_ours {
            tokio::try_join!(self.config(&spot), self.current(&spot))?
        } else {
            (self.config(&spot).await?, None)
        };
        let Some(config) = config else { return Ok(None) };
        let bears = config.bears();
        let is_meant =
            is_meant || bears.marks().is_some_and(|marks| node.is_some_and(|node| marks.identity() == *node));
        if bears != Bears::Nothing && current.is_none() && (is_meant || listed.status == Status::Unknown) {
            current = self.current(&spot).await?;
        }
        if let Some(current) = current {
            listed.status = current.status;
            listed.extent = completed(listed.extent, current.extent);
        }
        describe(&mut listed, &config);
        Ok(Some(Seen { listed, bears }))
    }
}

/// What the configuration says goes before what the list said.
fn describe(listed: &mut Listed, config: &Config) {
    listed.extent = completed(config.extent(listed.spot.id.kind), listed.extent);
    listed.name = config.name().map(str::to_owned).or(listed.name.take());
    listed.lock = config.lock().map(str::to_owned);
    listed.tags = config.tags();
}

fn completed(first: Extent, then: Extent) -> Extent {
    Extent {
        cores: first.cores.or(then.cores),
        memory: first.memory.or(then.memory),
        disk: first.disk.or(then.disk),
    }
}

impl Seen {
    /// As a plan sees it.
    pub(super) fn machine(&self) -> Machine {
        let Listed { spot, name, status, .. } = &self.listed;
        let written = if let Bears::Made(written) = &self.bears { Some(written.as_ref()) } else { None };
        let state = match (&self.bears, status) {
            (Bears::Begun(_), _) => MachineState::Partial,
            (_, Status::Running) => MachineState::Running,
            (_, Status::Stopped | Status::Unknown) => MachineState::Stopped,
        };
        let (applied, keys) = match (&self.bears, written) {
            (_, Some(written)) => (written.applied(), written.keys()),
            (Bears::Begun(_), _) => (Applied::Never, Keys::Awaited),
            _ => (Applied::Unknown, Keys::Unknown),
        };
        Machine {
            id: spot.id.to_string(),
            name: name.clone().unwrap_or_else(|| spot.id.to_string()),
            marks: self.bears.marks().cloned(),
            inside: None,
            state,
            size: size(self.listed.extent, spot.id.kind, written),
            kind: Some(spot.id.kind.node_kind()),
            image: written.and_then(|written| written.image.clone()),
            vmid: Some(spot.id.vmid),
            applied,
            keys,
        }
    }
}

/// A size in the numbers of a plan.
fn size(extent: Extent, kind: GuestKind, written: Option<&Written>) -> Size {
    let whole = |number: Option<u64>, unknown: u32| {
        number.and_then(|number| number.try_into().ok()).unwrap_or(unknown)
    };
    let disk = whole(extent.disk.map(|bytes| bytes.div_ceil(1 << 30)), UNKNOWN.disk);
    let asked = written.and_then(|written| written.size).map(|size| size.disk);
    // A running container says how large the file system is, and that is a little less than the disk.
    let disk = match asked {
        Some(asked) if kind == GuestKind::Lxc && (asked - asked / 8..=asked).contains(&disk) => asked,
        _ => disk,
    };
    Size { cores: whole(extent.cores, UNKNOWN.cores), memory: whole(extent.memory, UNKNOWN.memory), disk }
}
