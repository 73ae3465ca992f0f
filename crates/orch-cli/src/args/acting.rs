//! Arguments of the verbs that act on nodes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orch_model::{HostName, NodeName, Timespan};
use orch_plan::{Share, Staging, Strategy};

use super::about::{About, Placement, RequiredManifest};

/// What every verb that changes hosts takes.
#[derive(Debug, Args)]
pub(crate) struct Acting {
    /// Which nodes of which manifest, and where.
    #[command(flatten)]
    pub(crate) about: About,
    /// How much at once.
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Print the plan and change nothing; end with 3 where the run would be refused.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Who else is told.
    #[command(flatten)]
    pub(crate) telling: Telling,
    /// How long it may be held up.
    #[command(flatten)]
    pub(crate) pausing: Pausing,
}

/// How long a run may be held up.
#[derive(Debug, Args)]
pub(crate) struct Pausing {
    /// How long `orch runs pause` may hold the run up before it ends.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) pause_limit: Timespan,
}

/// How many nodes at first, and then.
#[derive(Debug, Args)]
pub(crate) struct StagingArgs {
    /// `all` at once, `serial` one after the other, or `canary`: one, then a tenth, then all. Between two batches every node
    /// that is done is asked again how it is.
    #[arg(long, value_name = "all|serial|canary", default_value = "all")]
    strategy: Strategy,
    /// How far each batch goes, counted from the first node, such as `1,10%,100%`; what is left is one more batch.
    #[arg(long, value_name = "SHARES", value_delimiter = ',')]
    batch: Vec<Share>,
    /// How many nodes may fail before nothing new is begun. Default with batches: 0.
    #[arg(long, value_name = "N")]
    max_fail: Option<usize>,
    /// Where more fail than may, take those back to the system before that were moved to a new one.
    #[arg(long)]
    rollback_succeeded: bool,
    /// Reboot nodes where their new system has another kernel, initrd, modules or systemd, or can only be booted.
    #[arg(long)]
    pub(crate) reboot: bool,
}

impl StagingArgs {
    /// What is asked for.
    pub(crate) fn staging(&self) -> Staging {
        Staging {
            strategy: self.strategy,
            batches: self.batch.clone(),
            max_fail: self.max_fail,
            rollback_succeeded: self.rollback_succeeded,
        }
    }
}

/// What to configure.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// On what, and how.
    #[command(flatten)]
    pub(crate) acting: Acting,
    /// How many nodes at first.
    #[command(flatten)]
    pub(crate) staging: StagingArgs,
}

/// Which hosts to roll out to.
#[derive(Debug, Args)]
pub(crate) struct RolloutArgs {
    /// The hosts that get a new system themselves: those with a NixOS module at `hosts/<name>/default.nix`.
    #[arg(short = 'H', long = "host", value_name = "NAMES", value_delimiter = ',', required = true)]
    pub(crate) hosts: Vec<HostName>,
    /// How many at first.
    #[command(flatten)]
    pub(crate) staging: StagingArgs,
    /// How much at once.
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Print the plan and change nothing; end with 3 where the run would be refused.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Who else is told.
    #[command(flatten)]
    pub(crate) telling: Telling,
    /// How long it may be held up.
    #[command(flatten)]
    pub(crate) pausing: Pausing,
}

/// How much at once.
#[derive(Debug, Args)]
pub(crate) struct Pace {
    /// How many nodes are worked on at once, whatever the manifest says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) parallelism: Option<u16>,
}

/// Who else is told of a run.
#[derive(Debug, Args)]
pub(crate) struct Telling {
    /// Also write the run as one self-contained HTML page, with a timeline.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a log, to a file that is made anew; `-` means standard error, in place of the progress.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// How lines of the log are written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, requires = "log")]
    pub(crate) log_format: LogFormat,
}

/// How lines of a log are written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl From<LogFormat> for orch_run::log::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

/// What to create.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// On what, and how.
    #[command(flatten)]
    pub(crate) acting: Acting,
    /// Re-create machines that differ in a way that cannot be changed in place.
    #[arg(long)]
    pub(crate) replace: bool,
}

/// What to destroy.
#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    /// On what, and how.
    #[command(flatten)]
    pub(crate) acting: Acting,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// What to run, and where.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Which nodes of which manifest, and where.
    #[command(flatten)]
    pub(crate) about: About,
    /// How much at once.
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// How long the program may take on a node.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Timespan,
    /// The program and its arguments; no shell is in between.
    #[arg(last = true, required = true, value_name = "ARGV")]
    pub(crate) argv: Vec<String>,
}

/// Which node to go to.
#[derive(Debug, Args)]
pub(crate) struct SshArgs {
    /// The manifest.
    #[command(flatten)]
    pub(crate) manifest: RequiredManifest,
    /// Where its nodes are.
    #[command(flatten)]
    pub(crate) placement: Placement,
    /// The node.
    pub(crate) node: NodeName,
    /// What to run there instead of a shell.
    #[arg(last = true, value_name = "ARGV")]
    pub(crate) argv: Vec<String>,
}
