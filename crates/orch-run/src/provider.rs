//! One kind of place where nodes live: a hypervisor, a cloud, this computer.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use orch_model::pull::Enrolment;
use orch_model::{HostName, Identity, ManifestName, NodeKeys, NodeName, SiteName};
use orch_plan::{Action, Applied, HostView, Marks};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::permit::Permit;
use crate::progress::Progress;
use crate::system::{Leaser, Reverter};
use crate::transport::Transport;

/// One kind of place where nodes live.
///
/// A provider decides nothing: every name, size and place is in the [`Order`].
#[async_trait]
pub trait Provider: Send + Sync {
    /// Says what is there. Changes nothing, so it needs no permit, and is never kept waiting by a lock.
    async fn observe(&self, scope: &Scope) -> Result<HostView, ProviderError>;

    /// Makes `order` true.
    ///
    /// Idempotent: after a crash or a lost answer it is asked again, with the same mark, and must neither double nor
    /// fail. A machine that is to be changed or destroyed must bear the order's mark at the moment of the change, else
    /// [`ProviderError::NotOurs`]; one that is to be destroyed and is gone is [`Done::Unchanged`].
    async fn apply(&self, order: &Order, permit: &Permit) -> Result<Done, ProviderError>;

    /// Writes on a machine what its node has said of itself. It must bear the mark at that moment. Asked only where a look
    /// does not show the same already: a provider that sees into its machines is never asked for what it sees.
    async fn pin(&self, pin: &Pin, _permit: &Permit) -> Result<Done, ProviderError> {
        let why = "keys cannot be written on machines here".into();
        Err(ProviderError::Refused { host: pin.identity.host.clone(), why })
    }

    /// Removes what was there for the machines of an owner together, once it has none of them any more. Who destroyed the last
    /// one did so already, unless it was interrupted just then; so this is asked at the end of every run that destroys.
    async fn tidy(&self, _of: &Owner, _permit: &Permit) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Whether it knows which configuration a machine has only because it was told so, by [`Provider::pin`]. One that looks into its
    /// machines is not told.
    fn is_told(&self) -> bool {
        false
    }

    /// Everything on the host that bears the marks of a site, or of one manifest of it: machines, and what was made for
    /// them or beside them. Changes nothing. Where a machine has nothing beside itself, its machines are all there is.
    async fn belongings(&self, of: &Owner) -> Result<Vec<Belonging>, ProviderError> {
        let view = self.observe(&Scope { host: of.host.clone(), node: None }).await?;
        Ok(Belonging::machines(&view, of))
    }
}

/// What is written on a machine, as its node said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The node that it is.
    pub identity: Identity,
    /// The mark that it bears.
    pub uuid: Uuid,
    /// Its keys, where it said them. As long as they are not settled, the one that it was made with is believed too.
    pub keys: Option<NodeKeys>,
    /// Which configuration it has; [`Applied::Never`] while that is being changed, so that whoever is cut off leaves no claim.
    pub applied: Option<Applied>,
    /// The port at which its SSH server answers from now on.
    pub ssh_port: Option<u16>,
}

/// Whose belongings are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The host that is looked at.
    pub host: HostName,
    /// The site.
    pub site: SiteName,
    /// One manifest of it; without one, everything of the site.
    pub manifest: Option<ManifestName>,
}

impl Owner {
    /// Whether marks are of it.
    pub fn owns(&self, marks: &Marks) -> bool {
        self.site == marks.site && self.manifest.as_ref().is_none_or(|manifest| *manifest == marks.manifest)
    }
}

/// One thing on a host that is ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Belonging {
    /// The host.
    pub host: HostName,
    /// What it is: `machine`, `disk`, `firewall`.
    pub kind: String,
    /// The provider's own id of it.
    pub id: String,
    /// The name that people see.
    pub name: String,
    /// The manifest that it was made for; without one it is there for all of the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestName>,
    /// The node of that manifest, where it is one's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Whether what it was made for is gone, so that nobody knows any more which manifest that was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stray: bool,
}

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The host.
    pub host: HostName,
    /// One node of it, where only that is of interest; a provider may show more.
    pub node: Option<Identity>,
}

/// One thing to do to one machine.
#[derive(Debug, Clone)]
pub struct Order {
    /// The site that owns the machine.
    pub site: SiteName,
    /// The node that it is.
    pub identity: Identity,
    /// The mark that it bears, or that is put on it while it is made.
    pub uuid: Uuid,
    /// What to do.
    pub action: Action,
    /// What the machine is given when it is made, where it is to fetch its configuration itself.
    pub enrolment: Option<Enrolment>,
    /// Whom to tell what is being done.
    pub progress: Progress,
}

impl Order {
    /// What is written on the machine.
    pub fn marks(&self) -> Marks {
        Marks {
            site: self.site.clone(),
            manifest: self.identity.manifest.clone(),
            node: self.identity.node.clone(),
            host: self.identity.host.clone(),
            uuid: self.uuid,
        }
    }
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The world was changed.
    Changed,
    /// It was as wanted already.
    Unchanged,
}

/// Why a provider could not do or see something.
#[derive(Debug, Error)]
pub enum ProviderError {
    /// The machine there is not the one that was meant.
    #[error("machine `{machine}` does not bear the mark {expected}, and is left alone")]
    NotOurs {
        /// The machine.
        machine: String,
        /// The mark that was looked for.
        expected: Uuid,
    },
    /// It said no, and would say no again.
    #[error("`{host}` refused: {why}")]
    Refused {
        /// The host.
        host: HostName,
        /// Its reason.
        why: String,
    },
    /// It tried, and it went wrong.
    #[error("`{host}` failed: {why}")]
    Failed {
        /// The host.
        host: HostName,
        /// What went wrong.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
        /// The way out.
        hint: String,
    },
    /// It was waited for until the time was over.
    #[error("`{host}` did not get it done in time: {why}")]
    Late {
        /// The host.
        host: HostName,
        /// What was seen instead.
        why: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
    /// It did not answer, or not to the end: whether anything happened is not known.
    #[error("`{host}` gave no answer: {why}")]
    NoAnswer {
        /// The host.
        host: HostName,
        /// What was seen instead.
        why: String,
    },
}

impl ProviderError {
    /// Whether asking again could help.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }

    /// Whether a time limit was the cause.
    pub const fn is_late(&self) -> bool {
        matches!(self, Self::Late { .. })
    }

    /// The last lines of what tells more.
    pub fn evidence(&self) -> &[String] {
        match self {
            Self::Failed { evidence, .. } | Self::Late { evidence, .. } => evidence,
            Self::NotOurs { .. } | Self::Refused { .. } | Self::NoAnswer { .. } => &[],
        }
    }

    /// What to try next.
    pub fn hint(&self) -> String {
        match self {
            Self::NotOurs { .. } => {
                "look at the machine: if it is yours, remove it by hand; a plan made now will see what is there".into()
            }
            Self::Refused { host, .. } => format!("mend what `{host}` complains about, and run again"),
            Self::Failed { hint, .. } => hint.clone(),
            Self::Late { .. } => {
                "run again: it goes on from what is there; give it more time with `settings.timeouts`".into()
            }
            Self::NoAnswer { host, .. } => format!("see whether `{host}` is up and can be reached, and run again"),
        }
    }
}

impl Belonging {
    /// Those of these machines that an owner has.
    pub fn machines(view: &HostView, of: &Owner) -> Vec<Self> {
        let ours = view.machines().iter().filter_map(|machine| {
            let marks = machine.marks.as_ref().filter(|marks| of.owns(marks))?;
            Some(Self {
                host: of.host.clone(),
                kind: "machine".into(),
                id: machine.id.clone(),
                name: machine.name.clone(),
                manifest: Some(marks.manifest.clone()),
                node: Some(marks.node.clone()),
                stray: false,
            })
        });
        ours.collect()
    }
}

/// A host with those who speak to it and to its nodes.
#[derive(Clone)]
pub struct Place {
    /// Makes, changes and destroys machines.
    pub provider: Arc<dyn Provider>,
    /// Brings configurations to them.
    pub transport: Arc<dyn Transport>,
    /// Has NixOS nodes to a run alone, where that can be had.
    pub leaser: Option<Arc<dyn Leaser>>,
    /// Takes NixOS nodes back to the system before, where that can be had.
    pub reverter: Option<Arc<dyn Reverter>>,
}

impl Place {
    /// A host whose nodes are not leased and not taken back.
    pub fn of(provider: Arc<dyn Provider>, transport: Arc<dyn Transport>) -> Self {
        Self { provider, transport, leaser: None, reverter: None }
    }
}

/// Every host of a run.
pub type Places = BTreeMap<HostName, Place>;
