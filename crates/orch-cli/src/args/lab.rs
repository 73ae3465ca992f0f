//! Arguments of the lab.

use clap::{Args, Subcommand};
use orch_lab::Fault;
use orch_model::HostName;

/// What to do with the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabArgs {
    /// Start it, with an API for every Proxmox VE box and Hetzner Cloud project of the site.
    ///
    /// One that was killed comes up again with everything that was in it.
    Up(LabUpArgs),
    /// End it, and remove every machine in it.
    Down,
    /// Show where its APIs are and what is in them.
    Status,
    /// Have something go wrong, or show what is to go wrong.
    Fault(FaultArgs),
}

/// How the lab is to be.
#[derive(Debug, Args)]
pub(crate) struct LabUpArgs {
    /// How many milliseconds every answer takes longer than it would.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) latency: u64,
    /// Keep machines on paper alone: for what is about the APIs and not about what runs behind them.
    #[arg(long)]
    pub(crate) paper: bool,
    /// Have tasks take no longer than they must, and not as long as they were seen to take at the real ones.
    #[arg(long)]
    pub(crate) quick: bool,
    /// A folder with the published descriptions of the APIs: what these would refuse is refused.
    #[arg(long, value_name = "DIR", env = "ORCH_API_DESCRIPTIONS", hide_env_values = true)]
    pub(crate) descriptions: Option<std::path::PathBuf>,
}

/// What is to go wrong.
#[derive(Debug, Args)]
pub(crate) struct FaultArgs {
    /// The host.
    #[arg(short = 'H', long, value_name = "NAME")]
    pub(crate) host: HostName,
    /// What goes wrong; without one, what is to go wrong is shown.
    #[arg(value_parser = fault, value_name = "FAULT", conflicts_with = "clear")]
    pub(crate) fault: Option<Fault>,
    /// Only questions of this method, such as POST.
    #[arg(long, value_name = "METHOD", requires = "fault")]
    pub(crate) method: Option<String>,
    /// Only questions whose path contains this.
    #[arg(long, value_name = "TEXT", requires = "fault")]
    pub(crate) path: Option<String>,
    /// How many such questions pass first.
    #[arg(long, default_value_t = 0, value_name = "N", requires = "fault")]
    pub(crate) after: u32,
    /// How often it goes wrong; without a number, always.
    #[arg(long, value_name = "N", requires = "fault")]
    pub(crate) times: Option<u32>,
    /// Nothing goes wrong any more.
    #[arg(long)]
    pub(crate) clear: bool,
}

fn fault(text: &str) -> Result<Fault, String> {
    serde_json::from_value(text.into()).map_err(|_| {
        let known: Vec<&str> = Fault::ALL.iter().map(|fault| fault.word()).collect();
        format!("choose from {}", known.join(", "))
    })
}
