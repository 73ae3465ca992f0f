//! What can be written on the command line.

mod about;
mod acting;
mod lab;
mod looking;
mod secrets;
mod serving;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use orch_model::HostName;
use orch_nix::BuildOn;

use crate::output;
pub(crate) use about::{About, OptionalManifest, Placement, RequiredManifest};
pub(crate) use acting::{
    Acting, ConfigArgs, CreateArgs, DestroyArgs, ExecArgs, Pace, Pausing, RolloutArgs, SshArgs, Telling,
};
pub(crate) use lab::{FaultArgs, LabArgs, LabUpArgs};
pub(crate) use looking::{DiffArgs, GraphFormat, PlanArgs, RunChoice, RunsArgs, StatusArgs};
pub(crate) use secrets::{Readers, SecretsArgs};
pub(crate) use serving::{ServeArgs, TokenArgs};

/// One manifest, the whole life of a machine.
///
/// orch reads a site (a folder with manifests, hosts, specs, presets and postures), finds out what a manifest means on
/// a host, looks at what is there, shows what is to be done, and does it.
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

    /// Where orch keeps journals, locks, its keys and the machines of local hosts. Default: `$XDG_STATE_HOME/orch` or
    /// `~/.local/state/orch`.
    #[arg(long, global = true, value_name = "DIR", env = "ORCH_STATE", hide_env_values = true)]
    pub(crate) state: Option<PathBuf>,

    /// How long connections to nodes that nobody uses are kept for the next command, in seconds; 0 keeps none.
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        env = "ORCH_KEEP_CONNECTIONS",
        hide_env_values = true,
        default_value_t = 60
    )]
    pub(crate) keep_connections: u32,

    /// Speak to the lab that `orch lab up` started, in the stead of Proxmox VE boxes and Hetzner Cloud projects. What is done
    /// there is kept apart from what is done for real.
    #[arg(long, global = true, env = "ORCH_LAB", hide_env_values = true)]
    pub(crate) lab: bool,

    /// The `orch-node` program that is brought to nodes of Proxmox VE and Hetzner Cloud. Default: this very program.
    #[arg(long, global = true, value_name = "FILE", env = "ORCH_NODE", hide_env_values = true)]
    pub(crate) node_program: Option<PathBuf>,

    /// The folder with nixpkgs that NixOS nodes are evaluated with. Default: what the `flake.lock` of the site pins as
    /// `nixpkgs`, else `<nixpkgs>`.
    #[arg(long, global = true, value_name = "DIR", env = "ORCH_NIXPKGS", hide_env_values = true)]
    pub(crate) nixpkgs: Option<PathBuf>,

    /// Where the systems of NixOS nodes are built: `here`, on their `target`, or on a builder as Nix writes one, such as
    /// `ssh://builder x86_64-linux`.
    #[arg(
        long,
        global = true,
        value_name = "PLACE",
        env = "ORCH_BUILD_ON",
        default_value = "here",
        hide_env_values = true
    )]
    pub(crate) build_on: BuildOn,

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
    /// Looks at the hosts and changes nothing. Ends with 0 whatever it shows: `--json` has each node's verdict.
    #[command(
        after_help = "Examples:\n  orch plan -M nested-test -H father\n  orch plan -M workers -H father --only worker-2 --json\n  orch plan -M nested-test -H father --for destroy --observed world.json"
    )]
    Plan(PlanArgs),
    /// Make every node exist, run and be configured.
    ///
    /// What is as wanted is left alone, so running it again goes on where an earlier run ended. Ctrl-C lets running steps
    /// end and starts nothing new; a second one cuts them off.
    #[command(
        after_help = "Examples:\n  orch create -M nested-test -H father\n  orch create -M workers -H father --only worker-2 --report run.html\n  orch create -M nested-test -H father --dry-run"
    )]
    Create(CreateArgs),
    /// Configure every node that exists, where its configuration is not current.
    ///
    /// Asks every node first, so that what has drifted is mended too.
    #[command(
        after_help = "Examples:\n  orch config -M nested-test -H father\n  orch config -M workers -H father --only tag:web --json\n  orch config -M workers -H father --strategy canary --batch 1,10%,100% --max-fail 2"
    )]
    Config(ConfigArgs),
    /// Give NixOS hosts themselves the system that their own modules say.
    ///
    /// A host with `hosts/<name>/default.nix` is given its system by the same way as a node: copied, activated as a test,
    /// confirmed over a new connection, and only then made permanent; else it goes back by itself. A host that is reached
    /// through another (`ssh.jump`) comes after it.
    #[command(
        after_help = "Examples:\n  orch rollout -H father,mother --dry-run\n  orch rollout -H father,mother --strategy canary --rollback-succeeded\n  orch rollout -H father --reboot"
    )]
    Rollout(RolloutArgs),
    /// Show what a rollout would change on each node: packages, units, and whether a reboot is needed.
    ///
    /// Compares the NixOS system that each node runs with the one that it is to run, which is built for that. Of nodes that are not
    /// NixOS it says which of their resources differ. Without a manifest, -H names hosts that are NixOS themselves. Changes no
    /// node.
    #[command(
        after_help = "Examples:\n  orch diff -M nested-test -H father\n  orch diff -M workers -H father --only tag:web --json\n  orch diff -H father,mother"
    )]
    Diff(DiffArgs),
    /// Create the nodes, verify them, and destroy them again.
    ///
    /// Three phases in one report. Refuses to run where a node exists already, since it would destroy it. What it made is
    /// destroyed also after a failure, unless the manifest says `cleanup_on_failure: false`.
    #[command(
        after_help = "Examples:\n  orch test -M nested-test -H father\n  orch test -M nested-test -H father --json --report test.html"
    )]
    Test(Acting),
    /// Show what is next to what is wanted: state, configuration, drift, health.
    ///
    /// Changes nothing and waits for no run. Ends with 0 where everything is as wanted, with 1 where nodes are missing,
    /// cannot be reached or are not healthy, and with 2 where only some are, or something has drifted.
    #[command(
        after_help = "Examples:\n  orch status -M nested-test -H father\n  orch status -M workers -H father --only worker-2 --json\n  orch status --orphans"
    )]
    Status(StatusArgs),
    /// Take every node down and leave nothing of it.
    ///
    /// Asks before it does, unless --yes is given. Nodes that are gone already are fine.
    #[command(
        after_help = "Examples:\n  orch destroy -M nested-test -H father\n  orch destroy -M workers -H father --only worker-2 --yes"
    )]
    Destroy(DestroyArgs),
    /// Run a program on every node at once, and show what each says.
    ///
    /// Ends with 0 where it did so everywhere, with 1 where it did nowhere, with 2 where it did on some, and with 4 where
    /// it took too long everywhere.
    #[command(
        after_help = "Examples:\n  orch exec -M workers -H father -- uname -r\n  orch exec -M workers -H father --only worker-2 --timeout 5m -- apt-get update"
    )]
    Exec(ExecArgs),
    /// Open a session on a node, or run a program in one.
    #[command(
        after_help = "Examples:\n  orch ssh -M nested-test -H father test-vm\n  orch ssh -M nested-test -H father test-vm -- journalctl -f"
    )]
    Ssh(SshArgs),
    /// Print the configuration with which ssh, scp, nix copy and nixos-rebuild reach the nodes by their names.
    #[command(
        after_help = "Example:\n  orch ssh-config -M nested-test -H father > nodes.conf && scp -F nodes.conf file test-vm:"
    )]
    SshConfig(About),
    /// Serve nodes that fetch their configuration.
    ///
    /// Hands every node what the site says of it now, and keeps what it reports. `create` starts a server by itself for as
    /// long as it runs; this one stays, so that nodes keep themselves as they should be. SIGHUP has it read everything anew.
    #[command(
        after_help = "Examples:\n  orch serve\n  orch serve --listen 0.0.0.0:44443 --log-format json\n  orch serve --rotate-cert"
    )]
    Serve(ServeArgs),
    /// Mint, inspect, revoke and list the tokens with which nodes fetch their configuration.
    #[command(
        after_help = "Examples:\n  orch token list\n  orch token mint single-node.test-vm@father > token\n  orch token inspect token\n  orch token revoke single-node.test-vm@father"
    )]
    Token {
        /// What to do.
        #[command(subcommand)]
        what: TokenArgs,
    },
    /// See to the secrets of the site: what there is, who can read it, and changing it.
    ///
    /// There is deliberately no way to run a program with secrets in its environment: what is in an environment is seen by every
    /// process of that user, and handed on to every child.
    #[command(
        after_help = "Examples:\n  orch secrets check\n  orch secrets recipients -M nested-test -H father\n  orch secrets edit secrets/app.yaml\n  orch secrets rotate secrets/app.yaml"
    )]
    Secrets {
        /// What to do.
        #[command(subcommand)]
        what: SecretsArgs,
    },
    /// Run Proxmox VE and Hetzner Cloud on this computer, for trying out a site without either.
    ///
    /// Their APIs are served on loopback, and the machines behind them are made of this computer. `orch --lab` speaks to
    /// them in the stead of the hosts themselves.
    #[command(
        after_help = "Examples:\n  orch lab up\n  orch --lab create -M workers -H mother\n  orch lab fault --host mother lock-timeout --times 2\n  orch lab down"
    )]
    Lab {
        /// What to do.
        #[command(subcommand)]
        what: LabArgs,
    },
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
    /// Show earlier runs, from their journals, and hold up or end one that goes on.
    #[command(
        after_help = "Examples:\n  orch runs list\n  orch runs show latest --json\n  orch runs pause latest && orch runs resume latest"
    )]
    Runs {
        /// What to show or to do.
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
