//! What can be written on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use orch_model::{HostName, ManifestName, Mode};
use orch_plan::Selector;
use orch_run::RunId;

use crate::output;

/// One manifest, the whole life of a machine.
///
/// orch reads a site (a folder with manifests, hosts, specs, presets and postures), finds out what a manifest means on
/// a host, looks at what is there, and shows what is to be done.
#[derive(Debug, Parser)]
#[command(name = "orch", version, propagate_version = true, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed or invalid, 2 partly, 3 wrong arguments or configuration, 4 time limit"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: VerbArgs,

    /// The site to work in. Default: the nearest folder at or above this one that holds `manifests/`.
    #[arg(long, global = true, value_name = "DIR", env = "ORCH_SITE", hide_env_values = true)]
    pub(crate) site: Option<PathBuf>,

    /// Where journals of runs are kept. Default: `$XDG_STATE_HOME/orch` or `~/.local/state/orch`.
    #[arg(long, global = true, value_name = "DIR", env = "ORCH_STATE", hide_env_values = true)]
    pub(crate) state: Option<PathBuf>,

    /// Print the answer as one JSON document on standard output, also on failure, and nothing else there.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum VerbArgs {
    /// Check a manifest and everything it reaches, or the whole site.
    ///
    /// Tells every problem of every file at once. With -H, also what the manifest means on that host.
    #[command(
        after_help = "Examples:\n  orch validate\n  orch validate -M nested-test\n  orch validate -M nested-test -H father --json"
    )]
    Validate {
        /// The manifest; without one the whole site is checked.
        #[command(flatten)]
        manifest: OptionalManifest,
        /// Where its nodes go.
        #[command(flatten)]
        placement: Placement,
    },
    /// Show what would be done, and why.
    ///
    /// Changes nothing, and ends with 0 whatever it shows: `--json` has each node's verdict. No provider can look at a host yet: without --observed the plan is made for hosts on which
    /// nothing exists, and says so.
    #[command(
        after_help = "Examples:\n  orch plan -M nested-test -H father\n  orch plan -M workers -H father --only worker-2 --json\n  orch plan -M nested-test -H father --for destroy --observed world.json"
    )]
    Plan(PlanArgs),
    /// Draw the nodes of a manifest and how they relate.
    #[command(
        after_help = "Examples:\n  orch graph -M edge --format svg --output edge.svg\n  orch graph -M nested-test --format mermaid"
    )]
    Graph {
        /// The manifest.
        #[command(flatten)]
        manifest: RequiredManifest,
        /// The host for nodes that name none.
        #[arg(short = 'H', long, value_name = "NAME")]
        host: Option<HostName>,
        /// The language of the drawing; with --json, the graph is printed as data instead.
        #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
        format: GraphFormat,
        /// Write to a file instead of standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show earlier runs, from their journals.
    #[command(after_help = "Examples:\n  orch runs list\n  orch runs show latest --json")]
    Runs {
        /// What to show.
        #[command(subcommand)]
        what: RunsArgs,
    },
    /// Lay out a small, commented site to start from.
    ///
    /// Nothing that exists is overwritten.
    #[command(after_help = "Example:\n  orch init my-site && cd my-site && orch plan -M hello -H here")]
    Init {
        /// The folder; made where it does not exist.
        dir: PathBuf,
    },
    /// Print the JSON Schema of a kind of site file, or write all of them.
    #[command(after_help = "Examples:\n  orch schema manifest\n  orch schema --out docs/schema")]
    Schema {
        /// The kind of file: site, host, manifest, spec, preset or posture.
        #[arg(required_unless_present = "out")]
        kind: Option<String>,
        /// Write every schema into this folder.
        #[arg(long, value_name = "DIR", conflicts_with = "kind")]
        out: Option<PathBuf>,
    },
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  orch completions bash > ~/.local/share/bash-completion/completions/orch"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command.
    #[command(after_help = "Example:\n  orch man ~/.local/share/man/man1")]
    Man {
        /// The folder; made where it does not exist.
        dir: PathBuf,
    },
}

/// What to plan.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The manifest.
    #[command(flatten)]
    pub(crate) manifest: RequiredManifest,
    /// Where its nodes go.
    #[command(flatten)]
    pub(crate) placement: Placement,
    /// What the plan is for.
    #[arg(long = "for", value_enum, default_value_t = Goal::Create, value_name = "VERB")]
    pub(crate) goal: Goal,
    /// Only these nodes: a name, `tag:<tag>`, or `<name>+` for a node with its children. Repeat it, or use commas.
    #[arg(long, value_name = "SELECTOR", value_delimiter = ',')]
    pub(crate) only: Vec<Selector>,
    /// Re-create machines that differ in a way that cannot be changed in place.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Plan against a recorded state (JSON) instead of looking; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) observed: Option<PathBuf>,
}

/// The manifest that a command is about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RequiredManifest {
    /// The manifest, by its name in the site.
    #[arg(short = 'M', long, value_name = "NAME")]
    pub(crate) manifest: Option<ManifestName>,
    /// The manifest, by its file, inside the site or not.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_file: Option<PathBuf>,
}

/// The manifest that a command may be about.
#[derive(Debug, Args)]
#[group(required = false, multiple = false)]
pub(crate) struct OptionalManifest {
    /// The manifest, by its name in the site.
    #[arg(short = 'M', long, value_name = "NAME")]
    pub(crate) manifest: Option<ManifestName>,
    /// The manifest, by its file, inside the site or not.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_file: Option<PathBuf>,
}

/// Where nodes go, and how they get their configuration.
#[derive(Debug, Args)]
pub(crate) struct Placement {
    /// The host for nodes that name none.
    #[arg(short = 'H', long, value_name = "NAME")]
    pub(crate) host: Option<HostName>,
    /// The mode of every node, whatever the files say.
    #[arg(long, value_name = "push|pull|hybrid")]
    pub(crate) mode: Option<Mode>,
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
    #[command(after_help = "Examples:\n  orch runs show latest\n  orch runs show 20260107-103000-3f9a")]
    Show {
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

/// Arguments that ask for help, or that make no sense.
pub(crate) struct Unread {
    error: clap::Error,
    json: bool,
}

impl Cli {
    /// Reads the command line.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, Unread> {
        let args: Vec<OsString> = args.into_iter().collect();
        let matches = Self::command().try_get_matches_from(&args);
        let cli = matches.and_then(|matches| Self::from_arg_matches(&matches));
        cli.map_err(|error| Unread { error, json: args.iter().any(|arg| arg == "--json") })
    }
}

impl Unread {
    /// Prints help on standard output, and a mistake on standard error.
    pub(crate) fn print(self) -> ExitCode {
        if !self.error.use_stderr() {
            // Whoever asked for help may have closed the pipe by now.
            let _ = self.error.print();
            return ExitCode::SUCCESS;
        }
        let _ = self.error.print();
        if self.json {
            let text = self.error.to_string();
            let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            let message = lines.join(" ");
            let message = message.trim_start_matches("error: ");
            output::print_json(&serde_json::json!({ "error": { "message": message } }));
        }
        ExitCode::from(u8::from(orch_run::ExitCode::Invalid))
    }
}
