//! A driver as a process of its own that is killed when a given entry of its journal has reached the disk: the test
//! binary started once more, for one test that does nothing unless an environment variable says what to do.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use orch_lab::{LabFile, LabFileHost};
use orch_model::{Fleet, HostName, Request, Scope, parse, resolve};
use orch_plan::{Goal, Verb, plan};
use orch_providers::rollout::RolloutSettings;
use orch_providers::{Base, Ground, Stead, Steads};
use orch_run::memory::kill_this_process;
use orch_run::{
    Control, Hooks, HostLocks, Means, NoTreasury, Patience, Permit, RunId, RunJournal, Secret, StateDir,
    StepValue, load, observe, run,
};
use serde::{Deserialize, Serialize};

use crate::common::{Lab, ORCH, wait_until};

const VARIABLE: &str = "ORCH_LAB_DRIVER";
const TEST: &str = "kill::driver::a_driver_that_is_killed_at_an_entry";

/// What a driver is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    site: PathBuf,
    state: PathBuf,
    manifest: String,
    host: String,
    verb: Verb,
    /// The lab that stands in for the host, where one does.
    lab: Option<LabFile>,
    /// It is killed when this many entries are on disk.
    last: usize,
}

impl Job {
    pub(crate) fn new(lab: &Lab, manifest: &str, verb: Verb, last: usize) -> Self {
        let (site, state) = (lab.site.clone(), lab.state.clone());
        Self { site, state, manifest: manifest.to_owned(), host: "father".into(), verb, lab: None, last }
    }

    /// The same on a host that a lab stands in for, by a driver that keeps what it does there apart.
    pub(crate) fn in_lab(self, host: &str, lab: &LabFile) -> Self {
        Self { host: host.to_owned(), state: self.state.join("lab/driver"), lab: Some(lab.clone()), ..self }
    }

    /// Starts the driver and waits for its end.
    pub(crate) fn run(&self) -> ExitStatus {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([TEST, "--exact", "--nocapture", "--test-threads=1"]);
        // A name that no test has; the guard of the lab finds the process by it.
        command.arg(&self.state);
        command.env(VARIABLE, serde_json::to_string(self).unwrap());
        let mut driver =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the driver has ended", || driver.try_wait().unwrap().is_some());
        driver.wait().unwrap()
    }

    /// What stands in for hosts. Machines are not listened to: nobody fetches anything here.
    fn steads(&self) -> Option<Steads> {
        let stead = |host: &LabFileHost| Stead {
            endpoint: host.address().parse().unwrap(),
            fingerprint: host.fingerprint.parse().unwrap(),
            token: Arc::new(Secret::new(host.token.expose().as_bytes().to_vec())),
            node_program: host.node_program.clone(),
            machines: None,
        };
        let lab = self.lab.as_ref()?;
        Some(Steads(lab.hosts.iter().map(|(name, host)| (name.clone(), stead(host))).collect()))
    }

    fn fleet(&self) -> Fleet {
        let sources = load::site(&self.site).unwrap();
        let (manifest, host) = (self.manifest.parse().unwrap(), self.host.parse::<HostName>().unwrap());
        let catalog = parse(&sources, Scope::Manifest { name: &manifest, host: Some(&host) }).unwrap();
        resolve(&catalog, &Request { manifest, host: Some(host), mode: None }).unwrap()
    }
}

#[test]
fn a_driver_that_is_killed_at_an_entry() {
    // Among the tests, this does nothing; as a process of its own, it is the driver.
    let Ok(job) = env::var(VARIABLE) else { return };
    let job: Job = serde_json::from_str(&job).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(drive(&job));
}

/// What `orch` does: lock, look, plan, begin the journal, run.
async fn drive(job: &Job) {
    let fleet = job.fleet();
    let state = StateDir::locate(Some(&job.state)).unwrap();
    let run_id = RunId::new();
    let hosts = fleet.hosts.keys().cloned().collect();
    let locks = HostLocks::take(&state, &fleet.site, &hosts, &run_id, "to be killed").unwrap();
    let base = Base {
        state: state.clone(),
        site: job.site.clone(),
        program: ORCH.into(),
        node_program: None,
        keep: None,
        steads: job.steads(),
        agent: None,
        rollout: RolloutSettings::default(),
        treasury: NoTreasury::shared(),
    };
    let (ground, _) = Ground::of(&fleet, &base);
    let patience = Patience::default();
    let observed = observe(&ground.places, patience.look).await;
    let plan = plan(&fleet, &observed, &Goal::of(job.verb)).unwrap();
    let journal = RunJournal::begin(&state, run_id, &plan).await.unwrap();
    let last = job.last;
    let killing = move |written: usize| {
        if written == last {
            kill_this_process();
        }
    };
    // The first entry was written before anybody could be told.
    killing(1);
    let means = Means {
        registry: None,
        treasury: NoTreasury::shared(),
        places: ground.places,
        permit: Permit::under(locks),
        journal: Arc::new(journal.when_written(killing)),
        control: Control::new(),
        hooks: Arc::new(Nobody),
        watch: Arc::new(|_, _| {}),
        herald: Arc::new(|_| {}),
        doors: ground.doors,
        patience,
    };
    run(&plan, means).await;
}

/// Nobody is told.
struct Nobody;

impl Hooks<StepValue> for Nobody {}
