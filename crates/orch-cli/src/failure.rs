//! Why a command could not answer. Printed in one place, and mapped to exit codes in one place.

use std::error::Error;
use std::path::PathBuf;

use orch_lab::LabError;
use orch_model::{Identity, NodeName, Problems};
use orch_providers::{GroundError, Obstacle};
use orch_run::load::LoadError;
use orch_run::{
    ExitCode, JournalFileError, LockError, StateDirError, TransportError, TreasuryError, TrialError,
    WishError,
};
use orch_secrets::VaultError;
use orch_server::OfficeError;
use thiserror::Error;

/// Why a command could not answer.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The site, or the request, is wrong; nothing was touched.
    #[error("{0}")]
    Problems(Problems),
    /// The site cannot be found or listed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no place for journals.
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// A run cannot be told what is wanted of it.
    #[error(transparent)]
    Wish(#[from] WishError),
    /// A host cannot be spoken to.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The lab cannot do what was asked of it.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The site has no host that the lab could stand in for.
    #[error(
        "this site has no Proxmox VE box and no Hetzner Cloud project, so there is nothing for a lab to stand in for"
    )]
    NothingForTheLab,
    /// Another run has a host.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something stands in the way of a plan.
    #[error("{}, and nothing was touched", in_the_way(.0))]
    Obstacles(Vec<Obstacle>),
    /// Nodes are to fetch their configuration, and there is nobody to fetch it from.
    #[error("{} to fetch {} configuration, and {} host has no `server_url`", are(.0), their(.0), their(.0))]
    NoServer(Vec<NodeName>),
    /// The server cannot do its work.
    #[error(transparent)]
    Office(Box<OfficeError>),
    /// Another command serves this site.
    #[error("another command serves this site already")]
    OfficeTaken,
    /// Something that the server keeps cannot be used.
    #[error("{0}")]
    Server(String),
    /// An address cannot be listened at.
    #[error("{address} cannot be listened at")]
    NotListening {
        /// The address.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The site has no spec for a node.
    #[error("no token can be minted for `{node}`: {why}")]
    NoSpec {
        /// The node.
        node: Identity,
        /// Why not.
        why: String,
    },
    /// A secret cannot be had.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The secrets of the site cannot be changed.
    #[error(transparent)]
    Treasury(#[from] TreasuryError),
    /// The program is not there that files are edited with.
    #[error("there is no `sops` program here, and orch does not edit sops files by itself")]
    NoSops,
    /// What was given is not a token.
    #[error("{0}")]
    NotAToken(String),
    /// Nobody was there to be asked.
    #[error("this destroys machines, and there is no terminal to ask on")]
    NobodyToAsk,
    /// Somebody was asked, and did not say yes.
    #[error("nothing was destroyed, since you did not say yes")]
    NotConfirmed,
    /// A trial would destroy what it did not make.
    #[error("{} there already, and `test` would destroy what it did not make", are(.0))]
    InTheWayOfTest(Vec<NodeName>),
    /// The fleet has no such node.
    #[error("manifest `{manifest}` has no node `{node}`")]
    NoSuchNode {
        /// The node.
        node: NodeName,
        /// The manifest.
        manifest: String,
        /// The nodes that there are.
        known: String,
    },
    /// A node is not there to go to.
    #[error("node `{node}` {why}")]
    NotThere {
        /// The node.
        node: NodeName,
        /// What it is instead.
        why: String,
    },
    /// A node cannot be gone to.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A program that takes the place of this one cannot be started.
    #[error("`{program}` cannot be started")]
    NotStarted {
        /// The program.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The nodes have no SSH.
    #[error("the nodes of `{0}` have no SSH server")]
    NoSsh(String),
    /// The parts that run at once cannot be set up.
    #[error("this machine does not let orch start its threads")]
    NoThreads(#[source] std::io::Error),
    /// There are no runs yet.
    #[error("there are no runs yet")]
    NoRuns,
    /// A recorded state cannot be understood.
    #[error("the recorded state `{path}` cannot be understood")]
    Observed {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// A file cannot be read.
    #[error("`{path}` cannot be read")]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("`{path}` cannot be written")]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file that a run is to be told in cannot be written.
    #[error("`{path}` cannot be written, so nothing was begun")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A new site would overwrite something.
    #[error("`{0}` exists already, and nothing is overwritten")]
    Exists(PathBuf),
    /// There is no such kind of site file.
    #[error("`{0}` is not a kind of site file")]
    UnknownKind(String),
}

impl Failure {
    /// Something that the server keeps cannot be used.
    pub(crate) fn server(error: &(dyn Error + 'static)) -> Self {
        let causes = std::iter::successors(Some(error), |&error| error.source());
        let mut words: Vec<String> = causes.map(ToString::to_string).collect();
        words.dedup();
        Self::Server(words.join(": "))
    }

    /// What to try next.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Load(error) => error.hint(),
            Self::StateDir(error) => error.hint(),
            Self::Lock(error) => return Some(error.hint()),
            Self::Transport(error) => return Some(error.hint()),
            Self::Journal(JournalFileError::Unknown(_)) => "`orch runs list` shows the runs",
            Self::Exists(_) => "name a folder that is empty or does not exist",
            Self::UnknownKind(_) => "choose from site, host, manifest, spec, preset and posture",
            Self::Observed { .. } => "docs/observed.md in the repository of orch says what belongs in it",
            Self::Ground(error) => return Some(error.hint.clone()),
            Self::NoServer(_) => {
                "run `orch serve` where the nodes can reach it and say so by `server_url`; `--mode push` does without"
            }
            Self::Wish(error) => error.hint(),
            Self::Lab(error) => error.hint(),
            Self::NothingForTheLab => "add one below hosts/; nodes on this very computer need no lab",
            Self::OfficeTaken => "end it first, or leave it to that one",
            Self::NotListening { .. } => "see who listens there; --listen names another address",
            Self::Vault(error) => return Some(error.hint()),
            Self::Treasury(error) => return Some(error.hint.clone()),
            Self::NoSops => {
                "install sops (3.9 or later) and put it on your PATH; orch reads sops files without it"
            }
            Self::NoSpec { .. } => "`orch validate` shows what is wrong; --spec names one",
            Self::NobodyToAsk => "--yes says yes beforehand; --dry-run shows what would be destroyed",
            Self::InTheWayOfTest(_) => "`destroy` them first, or test a manifest of its own",
            Self::NoSuchNode { known, .. } => return Some(format!("choose from {known}")),
            Self::NotThere { .. } => {
                "`orch status` shows what is there, `orch create` makes and starts what is not"
            }
            Self::NoSsh(_) => "`orch ssh` and `orch exec` go in without it",
            Self::Office(_) => "see whether the state directory can be written and has room",
            Self::Problems(_)
            | Self::Server(_)
            | Self::NotAToken(_)
            | Self::Journal(_)
            | Self::Obstacles(_)
            | Self::NotConfirmed
            | Self::NotStarted { .. }
            | Self::NoThreads(_)
            | Self::NoRuns
            | Self::Unread { .. }
            | Self::Unusable { .. }
            | Self::Unwritten { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// The exit code: nothing was touched, whatever it was.
    pub(crate) const fn exit_code(&self) -> ExitCode {
        match self {
            Self::NoRuns
            | Self::Journal(_)
            | Self::Wish(_)
            | Self::Unwritten { .. }
            | Self::Lock(_)
            | Self::NotConfirmed
            | Self::NotThere { .. }
            | Self::Transport(_)
            | Self::NotStarted { .. }
            | Self::NoSsh(_)
            | Self::NoThreads(_)
            | Self::Lab(
                LabError::NotUp(_)
                | LabError::Lives(_)
                | LabError::Machines { .. }
                | LabError::Serve { .. }
                | LabError::File { .. },
            ) => ExitCode::Failed,
            _ => ExitCode::Invalid,
        }
    }

    /// The failure and its causes, in one line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

impl From<TrialError> for Failure {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Journal(error) => Self::Journal(error),
            TrialError::Problems(problems) => Self::Problems(problems),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

fn in_the_way(obstacles: &[Obstacle]) -> String {
    match obstacles {
        [obstacle] => obstacle.what.clone(),
        several => format!("{} things stand in the way", several.len()),
    }
}

/// `node `a` is`, ``nodes `a`, `b` are``.
fn are(nodes: &[NodeName]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("`{node}`")).collect();
    match nodes {
        [_] => format!("node {} is", names.join(", ")),
        _ => format!("nodes {} are", names.join(", ")),
    }
}

const fn their(nodes: &[NodeName]) -> &'static str {
    if nodes.len() == 1 { "its" } else { "their" }
}
