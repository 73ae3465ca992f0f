//! The plan: every node of the request with what happens to it, why, and what it waits for.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use orch_model::{
    Digest, HostName, Identity, ManifestName, Mode, NodeName, OnError, SiteName, StorePath, Timeouts,
};
use serde::{Deserialize, Serialize};

use crate::action::{Action, MachineRef};
use crate::selection::Selection;
use crate::staging::{Stages, Staging};

/// What is wanted of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// What to do.
    pub verb: Verb,
    /// Which nodes.
    pub only: Selection,
    /// Whether a machine that cannot be changed in place is made anew.
    pub replace: bool,
    /// How many nodes are configured at first, and then.
    pub staging: Staging,
    /// Whether a node may be rebooted for what can only be booted.
    pub reboot: bool,
}

impl Goal {
    /// Everything, and nothing is made anew.
    pub const fn of(verb: Verb) -> Self {
        Self { verb, only: Selection::All, replace: false, staging: Staging::ALL, reboot: false }
    }
}

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Every node exists, runs and is configured.
    Create,
    /// Every node that exists is configured.
    Config,
    /// No node exists.
    Destroy,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Config => "config",
            Self::Destroy => "destroy",
        })
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is for.
    pub verb: Verb,
    /// The site that owns the machines.
    pub site: SiteName,
    /// The manifest that describes them.
    pub manifest: ManifestName,
    /// The hosts that it touches.
    pub hosts: BTreeSet<HostName>,
    /// What a failed node means for the others.
    pub on_error: OnError,
    /// How many nodes are worked on at once.
    pub parallelism: usize,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// The batches in which nodes are worked on, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// Whether a node may be rebooted for what can only be booted.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reboot: bool,
    /// Each node, after everything that it needs.
    pub nodes: Vec<NodePlan>,
    /// Machines of this manifest that it no longer describes, and that are left alone.
    pub leftovers: Vec<Leftover>,
    /// The SHA-256 of all of the above: two plans with the same digest do the same.
    pub digest: Digest,
}

impl Plan {
    /// The digest of everything but the digest. Configurations count by their own digests: there are many, and most of
    /// what is in them they share.
    pub(crate) fn outline_digest(&self) -> Digest {
        let settings = (self.verb, &self.site, &self.manifest, &self.hosts, self.on_error, self.parallelism);
        let nodes: Vec<_> = self.nodes.iter().map(NodePlan::outline).collect();
        let digest = Digest::of(&(settings, self.timeouts, nodes, &self.leftovers));
        if self.stages.is_none() && !self.reboot {
            return digest;
        }
        Digest::of(&(digest, &self.stages, self.reboot))
    }

    /// Whether carrying it out would change nothing.
    pub fn is_noop(&self) -> bool {
        self.nodes.iter().all(NodePlan::is_noop)
    }

    /// How many nodes there are of each verdict.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for node in &self.nodes {
            *match node.verdict {
                Verdict::Create => &mut counts.create,
                Verdict::Change => &mut counts.change,
                Verdict::Replace => &mut counts.replace,
                Verdict::Destroy => &mut counts.destroy,
                Verdict::Unchanged => &mut counts.unchanged,
                Verdict::NeedsReplace => &mut counts.needs_replace,
                Verdict::Refused => &mut counts.refused,
            } += 1;
        }
        counts
    }
}

/// What happens to one node.
///
/// `down` runs first, when everything that lives on the node or needs it has come down; `up` runs when `down` is done
/// and everything in `needs` is up. Within each, actions run one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePlan {
    /// Who the node is.
    pub identity: Identity,
    /// What happens to it, in a word.
    pub verdict: Verdict,
    /// Why, one clause each.
    pub why: Vec<String>,
    /// Nodes of this plan, by their place in it, that must be up before this one.
    pub needs: Vec<usize>,
    /// What takes its machine down.
    pub down: Vec<Action>,
    /// What brings it up.
    pub up: Vec<Action>,
    /// The machine that is there, where it is to run a NixOS system: a run that does something has it to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nixos: Option<OnNixos>,
}

/// A machine that is there and is to run a NixOS system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnNixos {
    /// The machine.
    pub machine: MachineRef,
    /// The system.
    pub system: StorePath,
    /// Who brings it there.
    pub mode: Mode,
}

/// What is done to a machine, with a configuration shown by its digest.
#[derive(Serialize)]
#[serde(untagged)]
enum Outline<'p> {
    Configure { configure: Digest, machine: Option<&'p MachineRef>, mode: Mode },
    Other(&'p Action),
}

impl<'p> Outline<'p> {
    fn of(action: &'p Action) -> Self {
        match action {
            Action::Configure { machine, config, mode } => {
                Self::Configure { configure: config.digest(), machine: machine.as_ref(), mode: *mode }
            }
            action => Self::Other(action),
        }
    }
}

impl NodePlan {
    fn outline(&self) -> impl Serialize + '_ {
        let down: Vec<_> = self.down.iter().map(Outline::of).collect();
        let up: Vec<_> = self.up.iter().map(Outline::of).collect();
        (&self.identity, self.verdict, &self.why, &self.needs, down, up)
    }

    /// Whether nothing is done to it.
    pub fn is_noop(&self) -> bool {
        self.down.is_empty() && self.up.is_empty()
    }

    /// Whether it must not be touched.
    pub fn is_refused(&self) -> bool {
        self.verdict == Verdict::Refused
    }

    /// Its name in the manifest.
    pub fn name(&self) -> &NodeName {
        &self.identity.node
    }
}

/// What happens to a node, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is not there and will be.
    Create,
    /// It is there and will be changed.
    Change,
    /// It is there, will be destroyed and made anew.
    Replace,
    /// It is there and will not be.
    Destroy,
    /// It is as wanted.
    Unchanged,
    /// It differs in a way that only making it anew mends, and that was not asked for. What can be mended in place is.
    NeedsReplace,
    /// It cannot or must not be touched.
    Refused,
}

/// A machine of this manifest that the manifest no longer describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leftover {
    /// The node that it was.
    pub identity: Identity,
    /// The machine.
    pub machine: MachineRef,
}

/// How many nodes of a plan there are of each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// To be created.
    pub create: usize,
    /// To be changed.
    pub change: usize,
    /// To be destroyed and made anew.
    pub replace: usize,
    /// To be destroyed.
    pub destroy: usize,
    /// As wanted.
    pub unchanged: usize,
    /// In need of `--replace`.
    pub needs_replace: usize,
    /// Not to be touched.
    pub refused: usize,
}
