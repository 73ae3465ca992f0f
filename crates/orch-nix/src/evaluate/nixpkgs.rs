//! Which nixpkgs a site is evaluated with: the folder that was named, else the one that its `flake.lock` pins, else
//! `<nixpkgs>`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orch_model::Digest;
use serde::Deserialize;

use super::cache::Cache;
use super::error::EvalError;
use super::library::Library;
use crate::log::clean;
use crate::process::finish;
use crate::tools::Tools;

/// A nixpkgs on this machine.
#[derive(Debug, Clone)]
pub(super) struct Nixpkgs {
    pub(super) path: PathBuf,
}

#[derive(Deserialize)]
struct Found {
    path: PathBuf,
}

impl Nixpkgs {
    /// Finds it, and fetches it where it is pinned and not there.
    pub(super) async fn find(
        (tools, library): (&Tools, &Library),
        cache: &Cache,
        (site, named): (&Path, Option<&Path>),
        limit: Duration,
    ) -> Result<Self, EvalError> {
        if let Some(named) = named {
            return Self::at(named);
        }
        let lock = fs::read(site.join("flake.lock")).ok().map(|text| Digest::of_bytes(&text));
        if let Some(path) = lock.and_then(|lock| cache.nixpkgs(lock)) {
            return Self::at(&path);
        }
        let found = Self::at(&ask(tools, library, site, limit).await?)?;
        // What was found in the store is the same for ever; a folder that somebody works in is looked for again.
        if let Some(lock) = lock.filter(|_| found.path.starts_with("/nix/store")) {
            let _ = cache.keep_nixpkgs(lock, &found.path);
        }
        Ok(found)
    }

    fn at(path: &Path) -> Result<Self, EvalError> {
        let wrong = |source| EvalError::Files { path: path.to_owned(), source: Arc::new(source) };
        Ok(Self { path: path.canonicalize().map_err(wrong)? })
    }
}

async fn ask(tools: &Tools, library: &Library, site: &Path, limit: Duration) -> Result<PathBuf, EvalError> {
    let mut command = tools.command("nix-instantiate");
    command.args(["--eval", "--strict", "--json", "--read-write-mode"]);
    command.arg(library.file("which-nixpkgs.nix")).args(["--argstr", "site"]).arg(site);
    let mut lines = Vec::new();
    let ended = finish(command, limit, |line| lines.push(clean(line)), |_| {}).await;
    let ended = ended.map_err(|source| EvalError::Run(Arc::new(source)))?;
    lines.drain(..lines.len().saturating_sub(10));
    if !ended.status.success() {
        return Err(EvalError::Nixpkgs { lines });
    }
    let found: Result<Found, _> = serde_json::from_slice(&ended.stdout);
    found.map(|found| found.path).map_err(|error| EvalError::Nixpkgs { lines: vec![error.to_string()] })
}
