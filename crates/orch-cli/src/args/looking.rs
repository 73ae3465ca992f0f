//! Arguments of the verbs that look and draw.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use orch_model::{HostName, Mode};
use orch_plan::{Selection, Selector, Verb};
use orch_run::RunId;

use super::about::{About, OptionalManifest, Placement};
use super::acting::{Pace, StagingArgs};

/// What to plan.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Which nodes of which manifest, and where.
    #[command(flatten)]
    pub(crate) about: About,
    /// What the plan is for.
    #[arg(long = "for", value_enum, default_value_t = Goal::Create, value_name = "VERB")]
    pub(crate) goal: Goal,
    /// Re-create machines that differ in a way that cannot be changed in place.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Plan against a recorded state (JSON) instead of looking; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,
    /// How many nodes at first, where the plan is for `config`.
    #[command(flatten)]
    pub(crate) staging: StagingArgs,
    /// How much at once.
    #[command(flatten)]
    pub(crate) pace: Pace,
}

/// What a plan is for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Goal {
    /// Every node exists, runs and is configured.
    Create,
    /// Every node that exists is configured.
    Config,
    /// No node exists.
    Destroy,
}

impl From<Goal> for Verb {
    fn from(goal: Goal) -> Self {
        match goal {
            Goal::Create => Self::Create,
            Goal::Config => Self::Config,
            Goal::Destroy => Self::Destroy,
        }
    }
}

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The manifest; without one, hosts themselves are compared.
    #[command(flatten)]
    pub(crate) manifest: OptionalManifest,
    /// The host for nodes that name none, or without a manifest the hosts that are compared.
    #[arg(short = 'H', long = "host", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) hosts: Vec<HostName>,
    /// The mode of every node, whatever the files say.
    #[arg(long, value_name = "push|pull|hybrid")]
    pub(crate) mode: Option<Mode>,
    /// Only these nodes: a name, `tag:<tag>`, or `<name>+` for a node with its children. Repeat it, or use commas.
    #[arg(long, value_name = "SELECTOR", value_delimiter = ',')]
    only: Vec<Selector>,
    /// How much at once.
    #[command(flatten)]
    pub(crate) pace: Pace,
}

impl DiffArgs {
    /// Which nodes are meant.
    pub(crate) fn selection(&self) -> Selection {
        Selection::of(self.only.clone())
    }
}

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The manifest.
    #[command(flatten)]
    pub(crate) manifest: OptionalManifest,
    /// Where its nodes go.
    #[command(flatten)]
    pub(crate) placement: Placement,
    /// Only these nodes: a name, `tag:<tag>`, or `<name>+` for a node with its children. Repeat it, or use commas.
    #[arg(long, value_name = "SELECTOR", value_delimiter = ',')]
    only: Vec<Selector>,
    /// Show instead what bears the marks of this site on its hosts, or on the one that -H names, and is wanted by none of its
    /// manifests.
    #[arg(long, conflicts_with_all = ["manifest", "manifest_file", "only", "mode"])]
    pub(crate) orphans: bool,
}

impl StatusArgs {
    /// Which nodes are meant.
    pub(crate) fn selection(&self) -> Selection {
        Selection::of(self.only.clone())
    }
}

/// The language of a drawing.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Graphviz.
    Dot,
    /// Mermaid, as many wikis and forges show it.
    Mermaid,
    /// A picture that opens in a browser.
    Svg,
}

/// What to show of earlier runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsArgs {
    /// The newest runs, newest first.
    #[command(after_help = "Example:\n  orch runs list --limit 5")]
    List {
        /// How many.
        #[arg(long, default_value_t = 20, value_name = "N")]
        limit: usize,
    },
    /// What became of a run.
    #[command(
        after_help = "Examples:\n  orch runs show latest\n  orch runs show 20260107-103000-3f9a --report run.html"
    )]
    Show {
        /// The run, or `latest`.
        run: RunChoice,
        /// Also write the run as one self-contained HTML page, with a timeline.
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
    },
    /// Have a run begin nothing new for now; what runs comes to its end.
    #[command(after_help = "Example:\n  orch runs pause latest")]
    Pause {
        /// The run, or `latest`.
        run: RunChoice,
    },
    /// Have a run go on that was paused.
    #[command(after_help = "Example:\n  orch runs resume latest")]
    Resume {
        /// The run, or `latest`.
        run: RunChoice,
    },
    /// Have a run end early, as the first Ctrl-C does: what runs comes to its end, and nothing new is begun.
    #[command(after_help = "Example:\n  orch runs abort latest")]
    Abort {
        /// The run, or `latest`.
        run: RunChoice,
    },
}

/// A run by its name, or the newest one.
#[derive(Debug, Clone)]
pub(crate) enum RunChoice {
    Latest,
    Named(RunId),
}

impl std::str::FromStr for RunChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "latest" { Ok(Self::Latest) } else { text.parse().map(Self::Named) }
    }
}
