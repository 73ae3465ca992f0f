//! Why a node has no system.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch_model::Identity;
use thiserror::Error;

/// A node could not be evaluated. What stands in the way of all of them is told for each.
#[derive(Debug, Clone, Error)]
pub enum EvalError {
    /// Nix found something wrong.
    #[error("`{node}` does not evaluate: {}", headline(lines))]
    Nix {
        /// Which node.
        node: Identity,
        /// The last lines of what Nix said.
        lines: Vec<String>,
    },
    /// It took too long.
    #[error("`{node}` was not evaluated within {} seconds", limit.as_secs())]
    TimeLimit {
        /// Which node.
        node: Identity,
        /// How long there was.
        limit: Duration,
    },
    /// Something ended the evaluation: mostly the kernel, for want of memory.
    #[error("the evaluation of `{node}` was ended by signal {signal}")]
    Ended {
        /// Which node.
        node: Identity,
        /// By which signal.
        signal: i32,
    },
    /// Nix answered, and it is no system.
    #[error("`{node}` evaluates to something that is no system: {what}")]
    Answer {
        /// Which node.
        node: Identity,
        /// What is wrong with it.
        what: String,
    },
    /// There is no nixpkgs to evaluate with.
    #[error("there is no nixpkgs for the site: {}", headline(lines))]
    Nixpkgs {
        /// What Nix said.
        lines: Vec<String>,
    },
    /// A file or folder could not be used.
    #[error("`{}` cannot be used", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Arc<io::Error>,
    },
    /// Nix could not be run.
    #[error("`nix-instantiate` could not be run")]
    Run(#[source] Arc<io::Error>),
}

impl EvalError {
    /// The way out.
    pub fn hint(&self) -> String {
        match self {
            Self::Nix { .. } | Self::Answer { .. } => {
                "read the lines of Nix in the report; `orch validate` says what it can without Nix".into()
            }
            Self::TimeLimit { .. } => "look for what does not end in its modules; of many nodes, name fewer at once".into(),
            Self::Ended { .. } => "free memory, or name fewer nodes at once".into(),
            Self::Nixpkgs { .. } => {
                "name a folder with `--nixpkgs` or ORCH_NIXPKGS, or have a flake.lock with an input `nixpkgs` in the site".into()
            }
            Self::Files { path, .. } => format!("see that `{}` is there and that who runs orch may write to it", path.display()),
            Self::Run(_) => "install Nix (on Debian: `apt-get install nix-bin`)".into(),
        }
    }

    /// Whether it was time that ran out.
    pub const fn is_time_limit(&self) -> bool {
        matches!(self, Self::TimeLimit { .. })
    }

    /// The last lines of what Nix said, for a report.
    pub fn evidence(&self) -> &[String] {
        match self {
            Self::Nix { lines, .. } | Self::Nixpkgs { lines } => lines,
            _ => &[],
        }
    }
}

/// The last line that says what is wrong, whatever is shown around it.
pub(super) fn headline(lines: &[String]) -> &str {
    let said =
        |line: &'_ String| line.trim().strip_prefix("error:").is_some_and(|rest| !rest.trim().is_empty());
    let line = lines.iter().rfind(|line| said(line)).or(lines.last());
    let line = line.map_or("it said nothing", |line| line.trim());
    line.strip_prefix("error:").unwrap_or(line).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_the_line_that_says_what_is_wrong() {
        let check = |lines: &[&str], expected: &str| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(headline(&lines), expected);
        };
        check(&["error: undefined variable 'x'", "", "       at /site/x.nix:1:1:"], "undefined variable 'x'");
        check(&["error:", "       … while calling", "       error: the cause", "       at x"], "the cause");
        check(&["something else"], "something else");
        check(&[], "it said nothing");
    }
}
