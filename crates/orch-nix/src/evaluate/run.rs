//! One evaluation: a process of its own, which gets some nodes as JSON and answers with their systems.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use orch_model::{Health, Identity, StorePath};
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::{scratch, write_new};
use super::library::Library;
use super::{Disks, EvalError, Evaluated, ExpectedSecret, Wanted, budget};
use crate::drv::DrvPath;
use crate::log::clean;
use crate::process::{Ended, finish};
use crate::tools::Tools;

/// How many lines of what Nix says are kept.
const LINES: usize = 30;
/// What Nix says where something is out of reach.
pub(super) const FORBIDDEN: &str = "is forbidden in restricted mode";

/// What every process of a run is given.
#[derive(Debug)]
pub(super) struct Bench<'b> {
    pub(super) tools: &'b Tools,
    pub(super) library: &'b Library,
    pub(super) site: &'b Path,
    pub(super) nixpkgs: &'b Path,
    /// Where what the processes are given is written; gone with the bench.
    folder: PathBuf,
}

/// How far an evaluation may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The site, nixpkgs, the store, and what `NIX_PATH` names. What it reads there is known.
    Kept,
    /// Everything. What it reads is not known.
    Open,
}

/// What came of a process.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) came: Result<BTreeMap<Identity, Evaluated>, Failure>,
    /// The most memory that it had.
    pub(super) peak: u64,
    /// The files that it evaluated.
    pub(super) files: BTreeSet<PathBuf>,
}

/// Why a process did not come to an answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nix said why.
    Said(Vec<String>),
    /// What it said is that something is out of reach.
    OutOfReach(Vec<String>),
    TimeLimit,
    Signal(i32),
    Answer(String),
    Run(Arc<io::Error>),
}

impl Failure {
    /// The same, said of one node.
    pub(super) fn about(&self, node: &Identity, limit: Duration) -> EvalError {
        let node = node.clone();
        match self {
            Self::Said(lines) | Self::OutOfReach(lines) => EvalError::Nix { node, lines: lines.clone() },
            Self::TimeLimit => EvalError::TimeLimit { node, limit },
            Self::Signal(signal) => EvalError::Ended { node, signal: *signal },
            Self::Answer(what) => EvalError::Answer { node, what: what.clone() },
            Self::Run(source) => EvalError::Run(source.clone()),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    drv_path: DrvPath,
    #[serde(alias = "outPath")]
    toplevel: StorePath,
    system: String,
    #[serde(default)]
    health: Vec<Health>,
    #[serde(default)]
    secrets: Vec<ExpectedSecret>,
    #[serde(default)]
    disks: Option<Disks>,
}

impl<'b> Bench<'b> {
    pub(super) fn new(
        tools: &'b Tools,
        library: &'b Library,
        (site, nixpkgs): (&'b Path, &'b Path),
        cache: &Path,
    ) -> io::Result<Self> {
        Ok(Self { tools, library, site, nixpkgs, folder: scratch(cache)? })
    }

    /// Evaluates some nodes. `beat` is called all the time.
    pub(super) async fn run(
        &self,
        nodes: &[&Wanted],
        reach: Reach,
        (memory, limit): (u64, Duration),
        beat: impl Fn() + Send,
    ) -> Ran {
        let (mut peak, mut messages) = (0, Messages::default());
        let ended = match self.command(nodes, reach, memory) {
            Err(error) => Err(error),
            Ok(command) => {
                let look = |pid| {
                    peak = budget::peak(pid).unwrap_or(0).max(peak);
                    beat();
                };
                finish(command, limit, |line| messages.hear(line), look).await
            }
        };
        let Messages { files, lines, is_forbidden } = messages;
        let came = match ended {
            Ok(ended) if ended.status.success() => read(&ended, nodes),
            Ok(ended) => Err(match ended.status.signal() {
                Some(signal) => Failure::Signal(signal),
                None if is_forbidden && reach == Reach::Kept => Failure::OutOfReach(lines.into()),
                None => Failure::Said(lines.into()),
            }),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Failure::TimeLimit),
            Err(error) => Err(Failure::Run(Arc::new(error))),
        };
        Ran { came, peak, files }
    }

    fn command(&self, nodes: &[&Wanted], reach: Reach, memory: u64) -> io::Result<tokio::process::Command> {
        let inside = scratch(&self.folder)?;
        let input = inside.join("nodes.json");
        let described: BTreeMap<String, Value> =
            nodes.iter().map(|wanted| (wanted.identity.to_string(), wanted.describe())).collect();
        let all = json!({ "version": 1, "site": self.site, "nodes": described });
        write_new(&input, all.to_string().as_bytes())?;
        let mut command = self.tools.command("nix-instantiate");
        command.args(["--eval", "--strict", "--json", "--read-write-mode", "-v"]);
        if reach == Reach::Kept {
            command.args(["--option", "restrict-eval", "true"]);
        }
        for (name, path) in [
            ("nixpkgs", self.nixpkgs),
            ("orch-site", self.site),
            ("orch-library", &*self.library.folder),
            ("orch-nodes", &*inside),
        ] {
            let mut entry = std::ffi::OsString::from(format!("{name}="));
            entry.push(path);
            command.arg("-I").arg(entry);
        }
        command.arg(self.library.file("evaluate.nix"));
        command.args(["--argstr", "input"]).arg(&input);
        command.args(["--argstr", "nixpkgs"]).arg(self.nixpkgs);
        // With its memory from the beginning, Nix does not look for garbage while there is room. It is less than what is
        // thought to be needed, since what is given is used, and would be thought to be needed the next time.
        command.env("GC_INITIAL_HEAP_SIZE", memory.to_string());
        Ok(command)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What Nix says beside its answer.
#[derive(Default)]
struct Messages {
    files: BTreeSet<PathBuf>,
    lines: VecDeque<String>,
    is_forbidden: bool,
}

impl Messages {
    fn hear(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("evaluating file '") {
            self.files.insert(PathBuf::from(rest.trim_end_matches('\'')));
            return;
        }
        self.is_forbidden |= line.contains(FORBIDDEN);
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(clean(line));
    }
}

fn read(ended: &Ended, nodes: &[&Wanted]) -> Result<BTreeMap<Identity, Evaluated>, Failure> {
    let answer: BTreeMap<String, Answered> =
        serde_json::from_slice(&ended.stdout).map_err(|error| Failure::Answer(clean(&error.to_string())))?;
    let mut answer = answer;
    let mut take = |wanted: &&Wanted| {
        let identity = wanted.identity.clone();
        let found = answer.remove(&identity.to_string());
        let found = found.ok_or_else(|| Failure::Answer("it is not in the answer".into()))?;
        let Answered { drv_path: drv, toplevel: system, system: platform, health, secrets, disks } = found;
        Ok((identity, Evaluated { drv, system, platform, health, secrets, disks, from_cache: false }))
    };
    nodes.iter().map(&mut take).collect()
}
