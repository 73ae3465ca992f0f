//! Arguments of the verbs about secrets.

use clap::{Args, Subcommand};

use super::about::{OptionalManifest, Placement};

/// What to do about secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsArgs {
    /// See whether every secret is there, opens, and can be read by those who must.
    ///
    /// Looks at every mention in hosts, specs and site, at every file below `secrets/`, at who it is for next to what
    /// `.sops.yaml` says, at files of the site that hold keys in clear, and at the permission bits of your identities. With a
    /// manifest, also whether its nodes that read sops files themselves can. Ends with 1 where something is wrong.
    Check(Readers),
    /// Show who can read which file.
    ///
    /// With a manifest, its nodes are known by name.
    Recipients(Readers),
    /// Open a file in your editor, by the `sops` program, which encrypts it again.
    Edit {
        /// The file, relative to the site: `secrets/app.yaml`.
        file: String,
    },
    /// Give files a new data key, by the `sops` program. Who can read them stays: `sops updatekeys` changes that, before.
    Rotate {
        /// The files, relative to the site. Default: every one below `secrets/`.
        files: Vec<String>,
    },
}

/// Nodes that may read files themselves.
#[derive(Debug, Args)]
pub(crate) struct Readers {
    /// The manifest that they are of.
    #[command(flatten)]
    pub(crate) manifest: OptionalManifest,
    /// Where its nodes are.
    #[command(flatten)]
    pub(crate) placement: Placement,
}
