//! The Nix of a node: what it has, what it lacks, where it could fetch from.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use orch_model::StorePath;

use super::error::SystemError;
use super::import::{Patience, import};
use super::places::Places;
use crate::node::Node;
use crate::tool::Tool;

const QUERY_LIMIT: Duration = Duration::from_mins(1);
/// So many paths fit between a program's name and the end of what the kernel takes.
const AT_ONCE: usize = 2000;

/// How paths are fetched. A place that does not answer costs seconds, since whoever asks can send them instead.
const FETCH: [&str; 15] = [
    "--realise",
    "--keep-going",
    "--ignore-unknown",
    "--option",
    "connect-timeout",
    "5",
    "--option",
    "download-attempts",
    "1",
    "--option",
    "stalled-download-timeout",
    "30",
    "--option",
    "fallback",
    "false",
];

/// The programs of Nix on a node.
pub(super) struct Nix<'a> {
    node: &'a Node,
}

impl<'a> Nix<'a> {
    pub(super) const fn of(node: &'a Node) -> Self {
        Self { node }
    }

    /// Its version; none where there is none.
    pub(super) fn version(&self) -> Option<String> {
        let said = self.store().ok()?.need(&["--version"], &[], QUERY_LIMIT).ok()?.stdout;
        String::from_utf8_lossy(&said).split_whitespace().last().map(String::from)
    }

    /// Which of these paths are not there, or not whole.
    pub(super) fn missing(&self, paths: &[StorePath]) -> Result<Vec<StorePath>, SystemError> {
        let Ok(store) = self.store() else { return Ok(paths.to_vec()) };
        let mut missing = Vec::new();
        for some in paths.chunks(AT_ONCE) {
            let options = ["--check-validity", "--print-invalid"];
            let args: Vec<&str> = options.into_iter().chain(some.iter().map(StorePath::as_str)).collect();
            let said = store.need(&args, &[], QUERY_LIMIT)?.stdout;
            missing.extend(lines(&said));
        }
        Ok(missing)
    }

    /// Whether it has somewhere to fetch from.
    pub(super) fn substitutes(&self) -> bool {
        let Some(nix) = self.node.tool("nix") else { return false };
        let args = ["--extra-experimental-features", "nix-command", "show-config", "--json"];
        let Ok(said) = nix.need(&args, &[], QUERY_LIMIT) else { return false };
        let settings: Option<serde_json::Value> = serde_json::from_slice(&said.stdout).ok();
        let value = |name: &str| settings.as_ref().map(|settings| settings[name]["value"].clone());
        let has_some = value("substituters").and_then(|list| Some(!list.as_array()?.is_empty()));
        has_some.unwrap_or(false) && value("substitute") != Some(serde_json::Value::Bool(false))
    }

    /// Fetches what it can of these paths. What it cannot is missing afterwards, which whoever asks looks at.
    pub(super) fn fetch(&self, paths: &[StorePath], limit: Duration) -> Result<(), SystemError> {
        let deadline = Instant::now() + limit;
        for some in paths.chunks(AT_ONCE) {
            let args: Vec<&str> = FETCH.into_iter().chain(some.iter().map(StorePath::as_str)).collect();
            let left = deadline.saturating_duration_since(Instant::now());
            self.store()?.ask(&args, left)?;
        }
        Ok(())
    }

    /// Builds what a derivation makes, and says what that is.
    pub(super) fn build(&self, drv: &StorePath, limit: Duration) -> Result<Vec<StorePath>, SystemError> {
        Ok(lines(&self.store()?.need(&["--realise", drv.as_str()], &[], limit)?.stdout))
    }

    /// Everything that a path refers to.
    pub(super) fn closure(&self, path: &str) -> Result<Vec<StorePath>, SystemError> {
        let said = self.store()?.need(&["--query", "--requisites", path], &[], QUERY_LIMIT)?;
        Ok(lines(&said.stdout))
    }

    /// Makes a system the newest generation of the profile, and the profile lead to it.
    pub(super) fn set_profile(&self, places: &Places, system: &str) -> Result<(), SystemError> {
        let program = self.node.tool("nix-env").ok_or(SystemError::NoNix("nix-env"))?;
        let profile = places.profile();
        let profile = profile.to_string_lossy();
        program.need(&["--profile", &profile, "--set", system], &[], QUERY_LIMIT)?;
        Ok(())
    }

    /// Takes what comes on standard input, and says what that was.
    pub(super) fn import(&self, patience: Patience) -> Result<Vec<StorePath>, SystemError> {
        import(self.store()?.path(), patience)
    }

    fn store(&self) -> Result<Tool, SystemError> {
        self.node.tool("nix-store").ok_or(SystemError::NoNix("nix-store"))
    }
}

pub(super) fn lines(said: &[u8]) -> Vec<StorePath> {
    String::from_utf8_lossy(said).lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Bytes that are free where the store is, or will be.
pub(super) fn free(places: &Places) -> u64 {
    let store = places.store();
    let there = store.ancestors().find(|path| fs::metadata(path).is_ok()).unwrap_or(Path::new("/"));
    rustix::fs::statvfs(there).map_or(0, |space| space.f_bavail.saturating_mul(space.f_frsize))
}
