//! Nodes in, NixOS systems out.
//!
//! Nodes are evaluated in processes of their own, several in one as far as memory goes, since they share one nixpkgs
//! then. A process that fails is split until the nodes that are to blame are alone. What a process read is remembered
//! with what came of it, so that a node is evaluated again only where something that it read has changed.

mod batches;
mod budget;
mod cache;
mod error;
mod files;
mod folder;
mod library;
mod manifest;
mod nixpkgs;
mod reads;
mod run;
mod tree;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orch_model::{
    Digest, FileMode, Health, Identity, KeyName, NodePath, StorePath, Tag, UserName, config::Secret,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::batches::Batches;
use self::cache::{Cache, Known};
pub use self::error::EvalError;
use self::library::Library;
pub use self::manifest::ManifestError;
use self::nixpkgs::Nixpkgs;
use self::run::Bench;
use self::tree::Tree;
use crate::drv::DrvPath;
use crate::store::Store;
use crate::tools::Tools;

/// How nodes are evaluated.
#[derive(Debug, Clone)]
pub struct EvaluatorSettings {
    /// Where what was evaluated is remembered. Losing it costs an evaluation.
    pub cache: PathBuf,
    /// A folder with nixpkgs. Without it, what the site's `flake.lock` pins, else `<nixpkgs>`.
    pub nixpkgs: Option<PathBuf>,
    /// How many bytes all processes may have together. Without it, most of what is free.
    pub memory: Option<u64>,
    /// How many processes at once.
    pub parallel: usize,
    /// How long all of it may take.
    pub limit: Duration,
    /// A folder with orch's library for Nix, instead of the one that the program carries in itself.
    pub lib: Option<PathBuf>,
}

/// What is evaluated: a node of a manifest, or a host itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A node.
    Node,
    /// A host.
    Host,
}

/// A node whose system is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which.
    pub identity: Identity,
    /// What it is.
    pub kind: Kind,
    /// Its NixOS modules, as paths below the site.
    pub modules: Vec<String>,
    /// What it runs on, as Nix calls it. Without it, what its modules say, else what this machine is.
    pub platform: Option<String>,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// What the site's files say of it.
    pub config: Value,
}

impl Wanted {
    /// It, as Nix is told of it.
    fn describe(&self) -> Value {
        let kind = match self.kind {
            Kind::Node => "node",
            Kind::Host => "host",
        };
        json!({
            "name": self.identity.node,
            "kind": kind,
            "modules": self.modules,
            "platform": self.platform,
            "tags": self.tags,
            "config": self.config,
        })
    }
}

/// A secret that modules expect, as far as they must say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedSecret {
    /// What it is called.
    pub name: KeyName,
    /// Where it appears.
    pub path: NodePath,
    /// Its permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FileMode>,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserName>,
}

impl ExpectedSecret {
    /// Whether this is the one that is meant.
    pub fn is_met_by(&self, given: &Secret) -> bool {
        self.name == given.name
            && self.path == given.path
            && self.mode.as_ref().is_none_or(|mode| *mode == given.mode)
            && self.owner.as_ref().is_none_or(|owner| *owner == given.owner)
    }
}

/// The script that lays out the disks of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disks {
    /// What builds it.
    #[serde(rename = "drvPath")]
    pub drv: DrvPath,
    /// Where it will be.
    pub script: StorePath,
}

/// The system of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// What builds it.
    pub drv: DrvPath,
    /// Where it will be.
    pub system: StorePath,
    /// What it runs on.
    pub platform: String,
    /// What must hold on it, as its modules say.
    pub health: Vec<Health>,
    /// The secrets that its modules expect.
    pub secrets: Vec<ExpectedSecret>,
    /// What lays out its disks, where it may have to be installed and its modules say how.
    pub disks: Option<Disks>,
    /// Whether it was known from before.
    pub from_cache: bool,
}

/// Evaluates the nodes of sites.
#[derive(Debug, Clone)]
pub struct Evaluator {
    tools: Tools,
    settings: EvaluatorSettings,
}

type Results = BTreeMap<Identity, Result<Evaluated, EvalError>>;

impl Evaluator {
    /// An evaluator that uses these programs.
    pub const fn new(tools: Tools, settings: EvaluatorSettings) -> Self {
        Self { tools, settings }
    }

    /// The system of each of these nodes, or why it has none. Where nothing that was read has changed, no Nix is run but
    /// for asking the store whether it still has what was evaluated.
    pub async fn evaluate(
        &self,
        site: &Path,
        wanted: &[Wanted],
        tell: &(dyn Fn(&str) + Send + Sync),
    ) -> Results {
        if wanted.is_empty() {
            return Results::new();
        }
        self.evaluate_all(site, wanted, tell).await.unwrap_or_else(|error| {
            wanted.iter().map(|node| (node.identity.clone(), Err(error.clone()))).collect()
        })
    }

    async fn evaluate_all(
        &self,
        site: &Path,
        wanted: &[Wanted],
        tell: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Results, EvalError> {
        let deadline = Instant::now() + self.settings.limit;
        let (folder, library) = self.prepare()?;
        let tree = walk(site, &folder)?;
        let cache = Cache::new(folder.clone());
        let named = self.settings.nixpkgs.as_deref();
        let nixpkgs =
            Nixpkgs::find((&self.tools, &library), &cache, (&tree.root, named), self.settings.limit).await?;
        let (world, doubt) = self.world(&tree, &library, &nixpkgs);
        let keys: BTreeMap<&Identity, Digest> =
            wanted.iter().map(|node| (&node.identity, Digest::of(&(world, node.describe())))).collect();
        let (mut results, is_stale) = self.known(&cache, &tree, &keys).await;
        let left: Vec<&Wanted> = wanted.iter().filter(|node| !results.contains_key(&node.identity)).collect();
        if !left.is_empty() {
            let bench = Bench::new(&self.tools, &library, (&tree.root, &nixpkgs.path), &folder)
                .map_err(|source| unusable(&folder, source))?;
            let batches = Batches {
                bench: &bench,
                cache: &cache,
                keys: &keys,
                settings: &self.settings,
                deadline,
                doubt,
            };
            results.extend(batches.evaluate(left, (is_stale, &folder), tell).await);
        }
        Ok(results)
    }

    fn prepare(&self) -> Result<(PathBuf, Library), EvalError> {
        let wrong = |source| unusable(&self.settings.cache, source);
        let folder = library::prepare(&self.settings.cache).map_err(wrong)?;
        let library = match &self.settings.lib {
            Some(lib) => Library::at(lib).map_err(|source| unusable(lib, source))?,
            None => Library::lay_out(&folder).map_err(wrong)?,
        };
        Ok((folder, library))
    }

    /// What all evaluations of a run depend on, and why that is not known for sure, where it is not.
    fn world(&self, tree: &Tree, library: &Library, nixpkgs: &Nixpkgs) -> (Digest, Option<String>) {
        let path = std::env::var("NIX_PATH").ok();
        let mut doubt = None;
        let mut outside: Vec<Option<Digest>> = Vec::new();
        let named = search_path(path.as_deref()).into_iter().filter(|path| !path.starts_with(&tree.root));
        for folder in std::iter::once(nixpkgs.path.clone()).chain(named) {
            let known = folder::digest(&folder);
            outside.push(known.as_ref().ok().copied());
            doubt = doubt.or(known.err());
        }
        let version = self.tools.version().to_string();
        let is_sure = doubt.is_none();
        let digest = Digest::of(&(
            2,
            &tree.root,
            version,
            library.digest,
            (&nixpkgs.path, outside, is_sure),
            std::env::consts::ARCH,
            path,
        ));
        (digest, doubt)
    }

    /// What is known from before and still in the store, and whether something was known that no longer holds.
    async fn known(&self, cache: &Cache, tree: &Tree, keys: &BTreeMap<&Identity, Digest>) -> (Results, bool) {
        let known = cache.look(tree, keys);
        let is_stale = known.iter().any(|known| matches!(known, Known::Stale));
        let fresh: Vec<_> = keys
            .keys()
            .zip(known)
            .filter_map(|(identity, known)| match known {
                Known::Fresh(record) => Some(((*identity).clone(), record)),
                Known::Stale | Known::Unknown => None,
            })
            .collect();
        let drvs: Vec<StorePath> =
            fresh.iter().map(|(_, record)| record.drv.as_store_path().clone()).collect();
        let Ok(gone) = Store::new(self.tools.clone()).lacks(&drvs).await else {
            return (Results::new(), is_stale);
        };
        let there = fresh.into_iter().filter(|(_, record)| !gone.contains(record.drv.as_store_path()));
        let results = there.map(|(identity, record)| {
            let cache::Record { drv, system, platform, health, secrets, disks, .. } = record;
            (identity, Ok(Evaluated { drv, system, platform, health, secrets, disks, from_cache: true }))
        });
        (results.collect(), is_stale)
    }
}

/// The folders that Nix looks for `<names>` in, as far as they are there.
fn search_path(path: Option<&str>) -> Vec<PathBuf> {
    let usual = || {
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".nix-defexpr/channels"));
        home.into_iter().chain(["/nix/var/nix/profiles/per-user/root/channels".into()]).collect()
    };
    let folders: Vec<PathBuf> = path.map_or_else(usual, |path| {
        path.split(':').map(|entry| entry.split_once('=').map_or(entry, |(_, path)| path).into()).collect()
    });
    folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect()
}

fn walk(site: &Path, cache: &Path) -> Result<Tree, EvalError> {
    Tree::walk(site, cache).map_err(|source| unusable(site, source))
}

fn unusable(path: &Path, source: std::io::Error) -> EvalError {
    EvalError::Files { path: path.to_owned(), source: Arc::new(source) }
}
