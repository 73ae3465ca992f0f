//! The Nix store of this machine: what is built into it, what it holds, and what is taken out of it as one stream.

use std::fmt;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use orch_model::StorePath;
use thiserror::Error;
use tokio::process::Command;

use crate::drv::DrvPath;
use crate::log::{Listener, clean};
use crate::process::finish;
use crate::tools::Tools;

/// How many bytes of paths go to a program at once. The kernel takes two megabytes with the environment.
const ARGUMENTS: usize = 1 << 20;
/// How long a question to the store may take.
const QUESTION: Duration = Duration::from_mins(2);
/// How many lines a failed question leaves.
const LINES: usize = 10;

/// The store of this machine.
#[derive(Debug, Clone)]
pub struct Store {
    tools: Tools,
    builder: Option<String>,
}

/// A path of a closure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub path: StorePath,
    /// How many bytes it is when it is copied.
    pub bytes: u64,
}

/// The store did not do what it was asked for.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A program of Nix could not be run to its end.
    #[error("`{program}` could not be run")]
    Run {
        /// Which.
        program: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A build took too long.
    #[error("`{drv}` was not built within {} seconds", limit.as_secs())]
    TimeLimit {
        /// What was built.
        drv: DrvPath,
        /// How long it had.
        limit: Duration,
    },
    /// A build failed.
    #[error("`{drv}` cannot be built{}", Last(evidence))]
    Build {
        /// What was built.
        drv: DrvPath,
        /// The last lines of it.
        evidence: Vec<String>,
    },
    /// A derivation makes something else than what was asked for.
    #[error("`{drv}` makes `{made}` and not `{wanted}`")]
    Another {
        /// What was built.
        drv: DrvPath,
        /// What came of it.
        made: String,
        /// What was asked for.
        wanted: StorePath,
    },
    /// A question was not answered.
    #[error("the store does not answer about `{path}`{}", Last(evidence))]
    Question {
        /// What it was about.
        path: StorePath,
        /// What Nix said.
        evidence: Vec<String>,
    },
    /// There are more paths than a program takes.
    #[error("{0} paths are more than one stream can name")]
    TooMany(usize),
}

impl StoreError {
    /// The way out.
    pub fn hint(&self) -> String {
        match self {
            Self::Run { program, .. } => {
                format!("run `{program} --version` by hand; Nix must be usable by who runs orch")
            }
            Self::TimeLimit { drv, .. } | Self::Build { drv, .. } => {
                format!(
                    "build it by hand with `nix-store --realise {drv}`, and read all of it with `nix-store --read-log {drv}`"
                )
            }
            Self::Another { .. } => "evaluate again: the derivation is not the one that was evaluated".into(),
            Self::Question { path, .. } => format!("verify it with `nix-store --verify-path {path}`"),
            Self::TooMany(_) => {
                "let the node fetch from a binary cache, and copy what is then missing".into()
            }
        }
    }

    /// Whether it was time that ran out.
    pub const fn is_time_limit(&self) -> bool {
        matches!(self, Self::TimeLimit { .. })
    }

    /// The last lines of what Nix said, for a report.
    pub fn evidence(&self) -> &[String] {
        match self {
            Self::Build { evidence, .. } | Self::Question { evidence, .. } => evidence,
            _ => &[],
        }
    }
}

impl Store {
    /// The store that these programs work with.
    pub const fn new(tools: Tools) -> Self {
        Self { tools, builder: None }
    }

    /// The same, with everything built on this builder, as Nix writes one, and brought here.
    pub fn with_builder(self, builder: String) -> Self {
        Self { builder: Some(builder), ..self }
    }

    /// Builds what a derivation makes, and verifies that this is `system`. Where it was built before, nothing happens.
    pub async fn realise(
        &self,
        drv: &DrvPath,
        system: &StorePath,
        tell: &(dyn Fn(&str) + Send + Sync),
        limit: Duration,
    ) -> Result<(), StoreError> {
        let mut command = self.tools.command("nix-store");
        command.args(["--log-format", "internal-json", "-v"]);
        command.args(self.elsewhere()).args(["--realise", drv.as_str()]);
        let mut listener = Listener::default();
        let hear = |line: &str| {
            if let Some(words) = listener.hear(line) {
                tell(&words);
            }
        };
        let ended = finish(command, limit, hear, |_| {}).await.map_err(|source| match source.kind() {
            io::ErrorKind::TimedOut => StoreError::TimeLimit { drv: drv.clone(), limit },
            _ => run(source),
        })?;
        if !ended.status.success() {
            return Err(StoreError::Build { drv: drv.clone(), evidence: listener.evidence() });
        }
        let made = String::from_utf8_lossy(&ended.stdout).into_owned();
        if made.lines().any(|line| line == system.as_str()) {
            return Ok(());
        }
        let made = clean(&made.lines().collect::<Vec<_>>().join(" "));
        Err(StoreError::Another { drv: drv.clone(), made, wanted: system.clone() })
    }

    /// Builds as many of these derivations as can be built, in one process. Which ones could not is not said here: whoever
    /// realises one of them by itself is told.
    pub async fn realise_many(&self, drvs: &[DrvPath], limit: Duration) {
        let mut command = self.tools.command("nix-store");
        command
            .args(self.elsewhere())
            .args(["--keep-going", "--realise"])
            .args(drvs.iter().map(DrvPath::as_str));
        let _ = finish(command, limit, |_| {}, |_| {}).await;
    }

    /// Has nothing built on this machine where a builder is to do it.
    fn elsewhere(&self) -> Vec<&str> {
        self.builder.as_ref().map_or_else(Vec::new, |builder| vec!["--builders", builder, "--max-jobs", "0"])
    }

    /// What another store has to have so that it can build a derivation, in the same order as a closure: the derivations and
    /// their sources, and none of what they make.
    pub async fn recipe(&self, drv: &DrvPath) -> Result<Vec<Member>, StoreError> {
        self.requisites(drv.as_store_path()).await
    }

    /// Everything that a system refers to, and itself, as the last: what a path refers to comes before it.
    pub async fn closure(&self, system: &StorePath) -> Result<Vec<Member>, StoreError> {
        self.requisites(system).await
    }

    /// A program that writes these paths as one stream, which `nix-store --import` reads. They are in the order of
    /// [`Self::closure`]. Its output is a pipe.
    ///
    /// All of them are named by argv: [`Self::can_export`] says whether there is room.
    pub fn export(&self, paths: &[StorePath]) -> Command {
        let mut command = self.tools.command("nix-store");
        command.arg("--export").args(paths.iter().map(StorePath::as_str));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Whether so many paths can be named to one program; a stream cannot be made of two.
    pub fn can_export(paths: &[StorePath]) -> Result<(), StoreError> {
        let bytes: usize = paths.iter().map(|path| path.as_str().len() + 9).sum();
        if bytes <= ARGUMENTS { Ok(()) } else { Err(StoreError::TooMany(paths.len())) }
    }

    /// Whether a path is there and whole.
    pub async fn holds(&self, path: &StorePath) -> bool {
        self.lacks(std::slice::from_ref(path)).await.is_ok_and(|missing| missing.is_empty())
    }

    /// Which of these paths are not there.
    pub async fn lacks(&self, paths: &[StorePath]) -> Result<Vec<StorePath>, StoreError> {
        let mut missing = Vec::new();
        for some in in_parts(paths) {
            missing.extend(self.ask(&["--check-validity", "--print-invalid"], some).await?);
        }
        Ok(missing)
    }

    async fn requisites(&self, path: &StorePath) -> Result<Vec<Member>, StoreError> {
        let paths: Vec<StorePath> =
            self.ask(&["--query", "--requisites"], std::slice::from_ref(path)).await?;
        let mut sizes: Vec<u64> = Vec::with_capacity(paths.len());
        for some in in_parts(&paths) {
            sizes.extend(self.ask::<u64>(&["--query", "--size"], some).await?);
        }
        if sizes.len() != paths.len() {
            let evidence = vec![format!("{} paths have {} sizes", paths.len(), sizes.len())];
            return Err(StoreError::Question { path: path.clone(), evidence });
        }
        Ok(paths.into_iter().zip(sizes).map(|(path, bytes)| Member { path, bytes }).collect())
    }

    /// Asks about paths; every line of the answer is one thing.
    async fn ask<T: std::str::FromStr>(
        &self,
        question: &[&str],
        paths: &[StorePath],
    ) -> Result<Vec<T>, StoreError> {
        let Some(first) = paths.first() else { return Ok(Vec::new()) };
        let mut command = self.tools.command("nix-store");
        command.args(question).args(paths.iter().map(StorePath::as_str));
        let mut said = Vec::new();
        let ended = finish(command, QUESTION, |line| said.push(clean(line)), |_| {}).await.map_err(run)?;
        let failed = |mut said: Vec<String>| {
            said.drain(..said.len().saturating_sub(LINES));
            StoreError::Question { path: first.clone(), evidence: said }
        };
        if !ended.status.success() {
            return Err(failed(said));
        }
        let answer = String::from_utf8_lossy(&ended.stdout);
        let read = |line: &str| {
            line.parse().map_err(|_| failed(vec![format!("`{}` was not expected", clean(line))]))
        };
        answer.lines().map(read).collect()
    }
}

fn run(source: io::Error) -> StoreError {
    StoreError::Run { program: "nix-store", source }
}

/// Parts of a list of paths that fit into one argv each.
fn in_parts(paths: &[StorePath]) -> impl Iterator<Item = &[StorePath]> {
    // No store path is longer than 255 bytes.
    paths.chunks(ARGUMENTS / 256)
}

/// The last line of some evidence, behind a colon.
struct Last<'e>(&'e [String]);

impl fmt::Display for Last<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.last().map_or(Ok(()), |line| write!(f, ": {}", line.trim_start_matches("error: ")))
    }
}
