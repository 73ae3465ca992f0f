//! A driver as a process of its own, so that it can be killed: the test binary started once more, for one test that
//! does nothing unless an environment variable says what to do.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use orch_dag::Control;
use orch_model::Fleet;
use orch_plan::{Goal, Verb, plan};
use orch_run::memory::{Fault, FaultKind, Faulty, MemoryProvider, kill_this_process};
use orch_run::{Doors, HostLocks, Means, NoTreasury, Permit, RunId, RunJournal, StateDir, run};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::{Driver, Silent, exit_code, host, place, sample_fleet};

const VARIABLE: &str = "ORCH_TEST_DRIVER";
/// The test of each binary that becomes a driver.
const TEST: &str = "driver_process";

/// What a driver is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Where the state directory, the world and the result lie.
    pub(crate) folder: PathBuf,
    pub(crate) host: String,
    pub(crate) manifest: String,
    pub(crate) verb: Verb,
    pub(crate) on_error: String,
    /// Whether the specs say something else than when the machines were made.
    pub(crate) edited: bool,
    /// Whether machines that cannot be changed in place are made anew.
    pub(crate) replace: bool,
    /// What goes wrong, and at which effect.
    pub(crate) faults: Vec<(usize, Wrong)>,
    /// What happens when the machine of this number is half made.
    pub(crate) half_way: Option<(usize, HalfWay)>,
    /// The driver is killed when this many entries are on disk.
    pub(crate) kill_after_entry: Option<usize>,
    /// How many bytes the journal may grow after its first line.
    pub(crate) journal_room: Option<u64>,
}

/// What goes wrong at an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wrong {
    FailBefore,
    Refuse,
    LoseAnswer,
    KillBefore,
    KillAfter,
}

impl Wrong {
    pub(crate) const ALL: [Self; 5] =
        [Self::FailBefore, Self::Refuse, Self::LoseAnswer, Self::KillBefore, Self::KillAfter];

    const fn kind(self) -> FaultKind {
        match self {
            Self::FailBefore => FaultKind::FailBefore,
            Self::Refuse => FaultKind::Refuse,
            Self::LoseAnswer => FaultKind::LoseAnswer,
            Self::KillBefore => FaultKind::KillBefore,
            Self::KillAfter => FaultKind::KillAfter,
        }
    }
}

/// What happens when a machine is half made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HalfWay {
    Kill,
    /// The driver says so, and goes on when its input ends.
    Wait,
}

/// What a driver that came to its end has to say.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) exit_code: u8,
    /// The report, or the error and its hint.
    pub(crate) text: String,
    pub(crate) journal_error: Option<String>,
    pub(crate) rolled_back: bool,
    /// How many effects it asked for.
    pub(crate) effects: usize,
    /// How many machines of the world were there at the end.
    pub(crate) machines: usize,
}

impl Job {
    pub(crate) fn new(folder: &Path, verb: Verb) -> Self {
        Self {
            folder: folder.to_owned(),
            host: "father".into(),
            manifest: "nested-test".into(),
            verb,
            on_error: "stop".into(),
            edited: false,
            replace: false,
            faults: Vec::new(),
            half_way: None,
            kill_after_entry: None,
            journal_room: None,
        }
    }

    pub(crate) fn goal(&self) -> Goal {
        Goal { replace: self.replace, ..Goal::of(self.verb) }
    }

    pub(crate) fn state(&self) -> StateDir {
        StateDir::locate(Some(&self.folder.join("state"))).expect("a folder that is given is taken")
    }

    pub(crate) fn world(&self) -> MemoryProvider {
        MemoryProvider::in_file(host(&self.host), &self.folder.join("world.json"))
            .expect("the world is whole")
    }

    /// A driver in this process on the same world and state.
    pub(crate) fn healthy(&self) -> (Arc<MemoryProvider>, Driver) {
        let world = Arc::new(self.world());
        let driver = Driver::with(self.state(), [(host(&self.host), place(&world))].into());
        (world, driver)
    }

    pub(crate) fn fleet(&self) -> Fleet {
        let path = format!("manifests/{}.yaml", self.manifest);
        let (from, to) = match self.manifest.as_str() {
            "workers" => ("on_error: continue", format!("on_error: {}", self.on_error)),
            _ => ("nodes:", format!("settings: {{ on_error: {} }}\nnodes:", self.on_error)),
        };
        let edits = [
            ("specs/base.yaml", "packages: [htop, vim]", "packages: [htop, vim, jq]"),
            ("specs/pve.yaml", "packages: [bridge-utils]", "packages: [bridge-utils, jq]"),
        ];
        let mut changes = vec![(path.as_str(), from, to.as_str())];
        changes.extend(edits.into_iter().filter(|_| self.edited));
        sample_fleet(&self.manifest, &changes)
    }

    /// Starts a driver and waits for its end.
    pub(crate) fn run(&self) -> ExitStatus {
        self.start().wait()
    }

    pub(crate) fn start(&self) -> Running {
        self.start_as(Command::new(env::current_exe().expect("a test has a program")))
    }

    /// Starts a driver that is not killed by a full disk: by default the kernel's signal would.
    pub(crate) fn start_on_full_disk(&self) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
        shell.arg(env::current_exe().expect("a test has a program"));
        self.start_as(shell)
    }

    fn start_as(&self, mut command: Command) -> Running {
        let job = serde_json::to_string(self).expect("a job is JSON");
        command.args([TEST, "--exact", "--nocapture", "--test-threads=1"]).env(VARIABLE, job);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().expect("a driver can be started");
        Running { child }
    }

    pub(crate) fn said(&self) -> Said {
        let bytes = fs::read(self.folder.join("said.json")).expect("the driver came to its end");
        serde_json::from_slice(&bytes).expect("what it said is JSON")
    }
}

/// A driver that was started. It is killed when it is no longer needed.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the driver says that it is half-way.
    pub(crate) fn wait_until_half_way(&mut self) {
        let output = self.child.stdout.as_mut().expect("its output is ours");
        let mut lines = BufReader::new(output).lines();
        let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("half-way")));
        assert!(said.is_some(), "the driver ended before it was half-way");
    }

    /// Lets a driver go on that waits half-way, and waits for its end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        if let Some(mut output) = self.child.stdout.take() {
            let _ = io::copy(&mut output, &mut io::sink());
        }
        self.child.wait().expect("a driver ends")
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a driver can be killed");
        self.child.wait().expect("a killed driver ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Becomes a driver, if this process was started as one.
pub(crate) fn driver_process() {
    let Ok(job) = env::var(VARIABLE) else { return };
    let job: Job = serde_json::from_str(&job).expect("a job is JSON");
    // A step that stands still half-way must not keep the driver from everything else.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let said = runtime.expect("a runtime can be built").block_on(drive(&job));
    let said = serde_json::to_vec(&said).expect("what is said is JSON");
    fs::write(job.folder.join("said.json"), said).expect("the result can be written");
}

/// What `orch` does: lock, observe, plan, begin the journal, run.
async fn drive(job: &Job) -> Said {
    let fleet = job.fleet();
    let (state, run_id) = (job.state(), RunId::new());
    let doing = format!("{} {}", job.verb, job.manifest);
    let hosts = fleet.hosts.keys().cloned().collect();
    let locks = match HostLocks::take(&state, &fleet.site, &hosts, &run_id, &doing) {
        Ok(locks) => locks,
        Err(error) => {
            let text = format!("{error}\nhint: {}", error.hint());
            return Said {
                exit_code: 1,
                text,
                journal_error: None,
                rolled_back: false,
                effects: 0,
                machines: 0,
            };
        }
    };
    let world = Arc::new(prepared_world(job));
    let faults = job.faults.iter().map(|(nth, wrong)| Fault::nth(*nth, wrong.kind())).collect();
    let provider = Arc::new(Faulty::new(Arc::clone(&world), host(&job.host), faults));
    let driver = Driver::with(state.clone(), [(host(&job.host), place(&provider))].into());
    let plan = plan(&fleet, &driver.observed().await, &job.goal()).expect("everything is selected");
    let journal = RunJournal::begin(&state, run_id.clone(), &plan).await.expect("a journal can be begun");
    leave_room(job, &state, &run_id);
    let last = job.kill_after_entry;
    let killing = move |written: usize| {
        if last == Some(written) {
            kill_this_process();
        }
    };
    // The first entry was written before anybody could be told.
    killing(1);
    let means = Means {
        registry: None,
        treasury: NoTreasury::shared(),
        places: driver.places.clone(),
        permit: Permit::under(locks),
        journal: Arc::new(journal.when_written(killing)),
        control: Control::new(),
        hooks: Arc::new(Silent),
        watch: Arc::new(|_, _| {}),
        herald: Arc::new(|_| {}),
        doors: Doors::new(),
        patience: driver.patience.clone(),
    };
    let report = run(&plan, means).await;
    setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).expect("a limit can be lifted");
    Said {
        exit_code: exit_code(&report),
        text: report.to_string(),
        journal_error: report.journal_error,
        rolled_back: report.rolled_back,
        effects: provider.effects(),
        machines: world.world().machines.len(),
    }
}

fn prepared_world(job: &Job) -> MemoryProvider {
    let world = match job.journal_room {
        // A file of the world would be in the way of the limit.
        Some(_) => MemoryProvider::new(host(&job.host)),
        None => job.world(),
    };
    let Some((number, what)) = job.half_way else { return world };
    let made = std::sync::atomic::AtomicUsize::new(0);
    world.when_half_way(move || {
        if made.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 != number {
            return;
        }
        match what {
            HalfWay::Kill => kill_this_process(),
            HalfWay::Wait => wait_for_leave(),
        }
    })
}

fn wait_for_leave() {
    let mut output = io::stdout();
    writeln!(output, "half-way").and_then(|()| output.flush()).expect("somebody listens");
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// From here on no file of this process may be larger than its journal and the room that it has.
fn leave_room(job: &Job, state: &StateDir, run: &RunId) {
    let Some(room) = job.journal_room else { return };
    let journal = state.runs().join(format!("{run}.jsonl"));
    let size = fs::metadata(journal).expect("the journal was begun").len();
    // The ceiling stays, so that the limit can be lifted when the run is over.
    setrlimit(Resource::Fsize, Rlimit { current: Some(size + room), maximum: None })
        .expect("a limit can be set");
}
