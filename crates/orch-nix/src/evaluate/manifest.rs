//! Manifests that are written in Nix: read by Nix, and data from then on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::cache::Cache;
use super::error::headline;
use super::library::Library;
use super::nixpkgs::Nixpkgs;
use super::run::FORBIDDEN;
use super::{EvalError, Evaluator};
use crate::log::clean;
use crate::process::finish;

/// How many lines of what Nix says are kept.
const LINES: usize = 20;

/// A file in Nix could not be read.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Nix found something wrong.
    #[error("`{file}` does not evaluate: {}", headline(lines))]
    Nix {
        /// Which file.
        file: String,
        /// The last lines of what Nix said.
        lines: Vec<String>,
    },
    /// Nix could not be asked.
    #[error("`{file}` cannot be evaluated")]
    Ask {
        /// Which file.
        file: String,
        /// Why not.
        #[source]
        source: EvalError,
    },
}

impl ManifestError {
    /// The way out.
    pub fn hint(&self) -> String {
        match self {
            Self::Nix { file, .. } => format!("try `nix-instantiate --eval --strict --json {file}`"),
            Self::Ask { source, .. } => source.hint(),
        }
    }

    /// The last lines of what Nix said.
    pub fn evidence(&self) -> &[String] {
        match self {
            Self::Nix { lines, .. } => lines,
            Self::Ask { source, .. } => source.evidence(),
        }
    }
}

impl Evaluator {
    /// What a file in Nix says, as JSON, checked against the types of orch's library. It is evaluated each time, and sees
    /// the site, the folder that it lies in, nixpkgs and the store.
    pub async fn evaluate_file(&self, file: &Path, site: &Path) -> Result<Value, ManifestError> {
        let name = file.display().to_string();
        let ask = |source| ManifestError::Ask { file: name.clone(), source };
        let absolute = |path: &Path| path.canonicalize().map_err(|source| ask(super::unusable(path, source)));
        let (folder, library) = self.prepare().map_err(ask)?;
        let (file, site) = (absolute(file)?, absolute(site)?);
        let named = self.settings.nixpkgs.as_deref().map(absolute).transpose()?;
        let is_named = named.is_some();
        let mut sight = Sight { library: &library, file: &file, site: &site, nixpkgs: named };
        let mut said = self.read_file(&sight).await.map_err(ask)?;
        // Plain data needs no nixpkgs. What does gets the one that the site pins, which is fetched outside of its sight.
        if said.as_ref().is_err_and(|lines| !is_named && wants_nixpkgs(lines)) {
            let cache = Cache::new(folder);
            let found =
                Nixpkgs::find((&self.tools, &library), &cache, (&site, None), self.settings.limit).await;
            sight.nixpkgs = Some(found.map_err(ask)?.path);
            said = self.read_file(&sight).await.map_err(ask)?;
        }
        let bytes = said.map_err(|lines| ManifestError::Nix { file: name.clone(), lines })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ManifestError::Nix { file: name, lines: vec![clean(&error.to_string())] })
    }

    /// What Nix answers, or the last lines of what it says is wrong.
    async fn read_file(&self, sight: &Sight<'_>) -> Result<Result<Vec<u8>, Vec<String>>, EvalError> {
        let mut command = self.tools.command("nix-instantiate");
        command.args(["--eval", "--strict", "--json", "--option", "restrict-eval", "true"]);
        let folder = sight.file.parent().unwrap_or(sight.file);
        let seen =
            [("orch-site", sight.site), ("orch-library", &*sight.library.folder), ("orch-file", folder)];
        for (name, path) in seen.into_iter().chain(sight.nixpkgs.as_deref().map(|path| ("nixpkgs", path))) {
            let mut entry = std::ffi::OsString::from(format!("{name}="));
            entry.push(path);
            command.arg("-I").arg(entry);
        }
        command.arg(sight.library.file("manifest.nix")).args(["--argstr", "file"]).arg(sight.file);
        command.args(["--argstr", "site"]).arg(sight.site);
        if let Some(nixpkgs) = &sight.nixpkgs {
            command.args(["--argstr", "nixpkgs"]).arg(nixpkgs);
        }
        let mut lines = Vec::new();
        let ended = finish(command, self.settings.limit, |line| lines.push(clean(line)), |_| {}).await;
        let ended = ended.map_err(|source| EvalError::Run(Arc::new(source)))?;
        lines.drain(..lines.len().saturating_sub(LINES));
        Ok(if ended.status.success() { Ok(ended.stdout) } else { Err(lines) })
    }
}

/// What the evaluation of a file sees.
struct Sight<'s> {
    library: &'s Library,
    file: &'s Path,
    site: &'s Path,
    nixpkgs: Option<PathBuf>,
}

/// Whether it was a nixpkgs that was missing or out of sight. Another try with one tells what else it was.
fn wants_nixpkgs(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains(FORBIDDEN) || line.contains("there is no nixpkgs"))
}
