//! What a command is about: a manifest, its hosts, and which of its nodes.

use std::path::PathBuf;

use clap::Args;
use orch_model::{HostName, ManifestName, Mode};
use orch_plan::{Selection, Selector};

/// A manifest on its hosts, or some of its nodes.
#[derive(Debug, Args)]
pub(crate) struct About {
    /// The manifest.
    #[command(flatten)]
    pub(crate) manifest: RequiredManifest,
    /// Where its nodes go.
    #[command(flatten)]
    pub(crate) placement: Placement,
    /// Only these nodes: a name, `tag:<tag>`, or `<name>+` for a node with its children. Repeat it, or use commas.
    #[arg(long, value_name = "SELECTOR", value_delimiter = ',')]
    only: Vec<Selector>,
}

impl About {
    /// Which nodes are meant.
    pub(crate) fn selection(&self) -> Selection {
        Selection::of(self.only.clone())
    }
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
