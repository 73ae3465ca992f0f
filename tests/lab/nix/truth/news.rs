//! What is known of a node: read from it, and said by orch.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

/// What a node wrote down of its rollout, as it lies on its disk.
#[derive(Debug)]
pub(super) struct News {
    pub(super) phase: String,
    /// Why it ended so, and what tells more.
    pub(super) evidence: String,
}

impl News {
    pub(super) fn of(root: &Path) -> Option<Self> {
        let text = fs::read(root.join("var/lib/orch/rollout.json")).ok()?;
        let record: Json = serde_json::from_slice(&text).ok()?;
        Some(Self {
            phase: record["phase"].as_str()?.to_owned(),
            evidence: format!("{}: {}", record["why"], record["evidence"]),
        })
    }

    pub(super) fn is_end(&self) -> bool {
        ["permanent", "rolled-back", "needs-reboot", "stuck"].contains(&self.phase.as_str())
    }
}

/// What a node runs and boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stand {
    pub(super) runs: PathBuf,
    pub(super) boots: PathBuf,
}

/// Every stand that a text claims to have been read from a node.
pub(super) fn claimed(text: &str) -> Vec<Stand> {
    let path = |text: &str| {
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "/-._+?=".contains(c)));
        PathBuf::from(text[..end.unwrap_or(text.len())].trim_end_matches('.'))
    };
    let stand = |claim: &str| {
        if let Some(both) = claim.strip_prefix("and boots ") {
            return Stand { runs: path(both), boots: path(both) };
        }
        let (_, boots) = claim.split_once(", boots ").expect("what was read has both");
        Stand { runs: path(claim), boots: path(boots) }
    };
    text.split("read back: runs ").skip(1).map(stand).collect()
}

#[test]
fn claims_are_found_wherever_they_stand() {
    let stand = |runs: &str, boots: &str| Stand { runs: runs.into(), boots: boots.into() };
    assert_eq!(claimed("nothing was read"), []);
    let text = "rolled back: why; read back: runs and boots /nix/store/a-1.0\", and read back: runs /a, boots nothing)";
    assert_eq!(claimed(text), [stand("/nix/store/a-1.0", "/nix/store/a-1.0"), stand("/a", "nothing")]);
}
