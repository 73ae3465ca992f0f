//! Arguments of the verbs about the server that nodes fetch from.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch_model::{Identity, KeyName, SpecName, Timespan};

use super::acting::LogFormat;

/// How to serve.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where nodes are listened to, besides the networks of local hosts; may be given several times. Default:
    /// 127.0.0.1:44443, or the sockets that systemd hands over.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,
    /// How many connections there may be at once.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(16..=100_000))]
    pub(crate) connections: u32,
    /// Show the next certificate from now on, which every node that fetched lately knows already, make another next one,
    /// and end. A server that runs takes it over at once.
    #[arg(long, conflicts_with_all = ["listen", "connections"])]
    pub(crate) rotate_cert: bool,
    /// How lines of the access log on standard error are written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// What to do about tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenArgs {
    /// Mint a first token for a node, and print it. Once it is shown to the server, those before it are worthless.
    Mint {
        /// The node, as `manifest.node@host`.
        node: Identity,
        /// What the node becomes. Default: what the site says.
        #[arg(long)]
        spec: Option<SpecName>,
        /// How long it holds.
        #[arg(long, value_name = "TIME", default_value = "1h")]
        ttl: Timespan,
    },
    /// Say what a token says, and whether it is believed. It is read from a file or from standard input, since arguments
    /// can be seen by everybody on this computer.
    Inspect {
        /// The file; standard input without one.
        file: Option<PathBuf>,
    },
    /// Take tokens back: all of a node, or one by its id with all that follow from it.
    Revoke {
        /// The node, as `manifest.node@host`, or the id of a token.
        what: String,
    },
    /// Show which tokens are in use.
    List,
    /// Make a new key that signs tokens from now on, or retire an old one. A server that runs takes it over at once.
    Rotate {
        /// Take this key away: tokens that it signed are not believed any more.
        #[arg(long, value_name = "KEY")]
        retire: Option<KeyName>,
    },
}
