//! A lab: a site and a state directory of a test's own, and the `orch` that works on them.

mod cable;
mod debian;
mod footprint;
mod gate;
mod guard;
mod leaks;
mod need;
mod outcome;
mod processes;
mod running;
mod session;
mod site;
mod timeline;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value as Json;
use tempfile::TempDir;

pub(crate) use cable::Cable;
pub(crate) use debian::{debian, debian_archive};
pub(crate) use footprint::Footprint;
pub(crate) use gate::Gate;
pub(crate) use guard::{Guard, find_marks};
pub(crate) use leaks::{assert_nothing_is_left, assert_nothing_stays, control_groups};
pub(crate) use need::{Need, is_there, lacks, skip, skip_unless_required};
pub(crate) use outcome::Outcome;
pub(crate) use processes::{all as all_processes, command_of, inits, is_alive, speaking_of};
pub(crate) use running::{Running, kill};
pub(crate) use session::Session;
pub(crate) use site::{TIMEOUTS, node, spec};
pub(crate) use timeline::{Timeline, destroy_twice, most_at_once, name_of};

/// The program under test.
pub(crate) const ORCH: &str = env!("CARGO_BIN_EXE_orch");

/// A site, a state directory, and what becomes of them when the test ends.
pub(crate) struct Lab {
    pub(crate) site: PathBuf,
    pub(crate) state: PathBuf,
    _guard: Guard,
    _folder: TempDir,
}

impl Lab {
    /// A lab with the sample site of this repository.
    pub(crate) fn with_sample_site() -> Self {
        let lab = Self::empty();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in ["site.yaml", "hosts", "manifests", "specs", "presets", "postures"] {
            copy(&root.join(name), &lab.site.join(name));
        }
        lab
    }

    /// A lab with a site of these files.
    pub(crate) fn with_site(files: &[(&str, &str)]) -> Self {
        let lab = Self::empty();
        for (path, text) in files {
            lab.write(path, text);
        }
        lab
    }

    fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        let (site, state) = (folder.path().join("site"), folder.path().join("state"));
        fs::create_dir(&site).unwrap();
        fs::create_dir(&state).unwrap();
        Self { site, _guard: Guard::of(folder.path()), state, _folder: folder }
    }

    /// Writes a file of the site.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.site.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The program, about to be run on this lab with these words.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(ORCH);
        command.arg("--site").arg(&self.site).arg("--state").arg(&self.state).args(words.split_whitespace());
        command.stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("ORCH_SITE").env_remove("ORCH_STATE");
        // What one command leaves for the next would hide from a test what the next one does by itself.
        command.env("ORCH_KEEP_CONNECTIONS", "0");
        command
    }

    /// Runs the program with these words.
    pub(crate) fn orch(&self, words: &str) -> Outcome {
        Outcome::of(&mut self.command(words), words)
    }

    /// Starts the program with these words, and does not wait for it.
    pub(crate) fn start(&self, words: &str) -> Running {
        Running::start(&mut self.command(words), words)
    }

    /// The folder of a machine on the host `father`.
    pub(crate) fn machine(&self, name: &str) -> PathBuf {
        self.state.join("local/father").join(name)
    }

    /// The names of everything in the host's folder that is a machine, or left of one.
    pub(crate) fn machines(&self) -> Vec<String> {
        let entries = fs::read_dir(self.state.join("local/father")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_machine =
            |name: &String| !name.starts_with('.') || name.starts_with(".new-") || name.starts_with(".gone-");
        let mut names: Vec<String> = names.filter(is_machine).collect();
        names.sort();
        names
    }

    /// The pid of a machine's first process, where the machine was started.
    pub(crate) fn init(&self, name: &str) -> Option<i32> {
        let text = fs::read(self.machine(name).join("boot.json")).ok()?;
        let boot: Json = serde_json::from_slice(&text).unwrap();
        i32::try_from(boot["init"]["pid"].as_i64()?).ok()
    }

    /// Whether somebody in a running machine listens on a port.
    pub(crate) fn listens(&self, name: &str, port: u16) -> bool {
        let init = self.init(name).unwrap();
        let sockets = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{init}/net/{table}")));
        // In the kernel's words: the port of this side, and the state of one that listens.
        let is_it = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words[..], [_, here, _, "0A", ..] if here.ends_with(&format!(":{port:04X}")))
        };
        sockets.into_iter().flatten().any(|table| table.lines().any(is_it))
    }

    /// The root of a running machine, seen from outside.
    pub(crate) fn root(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init(name).unwrap()))
    }
}

/// Waits until something holds, and fails with its name where it does not in time.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "this did not come about: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}
