//! Arguments of the verbs that act on nodes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orch_model::{NodeName, Timespan};

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
