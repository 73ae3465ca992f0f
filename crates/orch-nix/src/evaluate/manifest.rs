//! Manifests that are written in Nix: read by Nix, and data from then on.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::{EvalError, Evaluator};
use crate::log::clean;
use crate::process::finish;

/// How many lines of what Nix says are kept.
const LINES: usize = 20;

/// A file in Nix could not be read.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// Nix found something wrong.
    #[error("`{file}` does not evaluate: {}", lines.iter().rfind(|line| line.contains("error:")).or(lines.last()).map_or("", |line| line.trim().trim_start_matches("error:").trim()))]
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
    /// What a file in Nix says, as JSON, checked against the types of orch's library. It is evaluated each time.
    pub async fn evaluate_file(&self, file: &Path, nixpkgs: Option<&Path>) -> Result<Value, ManifestError> {
        let name = file.display().to_string();
        let ask = |source| ManifestError::Ask { file: name.clone(), source };
        let run = |source| ask(EvalError::Run(Arc::new(source)));
        let (_, library) = self.prepare().map_err(ask)?;
        let path = file.canonicalize().map_err(|source| ask(super::unusable(file, source)))?;
        let mut command = self.tools.command("nix-instantiate");
        command.args(["--eval", "--strict", "--json"]).arg(library.file("manifest.nix"));
        command.args(["--argstr", "file"]).arg(&path);
        if let Some(nixpkgs) = nixpkgs.or(self.settings.nixpkgs.as_deref()) {
            command.args(["--argstr", "nixpkgs"]).arg(nixpkgs);
        }
        let mut lines = Vec::new();
        let ended = finish(command, self.settings.limit, |line| lines.push(clean(line)), |_| {})
            .await
            .map_err(run)?;
        lines.drain(..lines.len().saturating_sub(LINES));
        if !ended.status.success() {
            return Err(ManifestError::Nix { file: name, lines });
        }
        serde_json::from_slice(&ended.stdout)
            .map_err(|error| ManifestError::Nix { file: name, lines: vec![clean(&error.to_string())] })
    }
}
