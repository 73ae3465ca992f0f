//! Fleets, hosts in memory, and a driver that carries plans out on them as the real one does: under locks, with a
//! journal on disk.

// Every test binary compiles this file for itself and uses a part of it.
#![allow(dead_code, unused_imports)]

mod around;
mod fleets;
pub(crate) mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use orch_dag::{Entry as StepEntry, TaskReport};
use orch_model::{Fleet, HostName, Size};
use orch_plan::{Applied, Goal, Keys, Machine, MachineState, Marks, Observed, Plan, Verb, plan};
use orch_run::memory::{Fault, Faulty, MemoryProvider};
use orch_run::{
    Control, Doors, Entry, Hooks, HostLocks, Means, NoTreasury, NodeStatus, Patience, Permit, Place, Places,
    Provider, Report, RunId, RunJournal, Runs, StateDir, StepValue, Transport, Treasury, observe, run,
};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) use around::{Around, Effect, Gate};
pub(crate) use fleets::{Change, fleet, own_fleet, sample_fleet, sample_root};

/// Nobody looks on.
pub(crate) struct Silent;

impl Hooks<StepValue> for Silent {}

pub(crate) fn host(name: &str) -> HostName {
    name.parse().expect("a test's host has a name")
}

/// A host that nothing is wrong with.
pub(crate) fn memory() -> Arc<MemoryProvider> {
    Arc::new(MemoryProvider::new(host("father")).keyless())
}

/// A host with faults, and the world behind them.
pub(crate) fn faulty(faults: Vec<Fault>) -> (Arc<MemoryProvider>, Arc<Faulty<MemoryProvider>>) {
    let world = memory();
    let host = Arc::new(Faulty::new(Arc::clone(&world), host("father"), faults));
    (world, host)
}

/// Who speaks to a host and to its nodes.
pub(crate) fn place<P: Provider + Transport + 'static>(provider: &Arc<P>) -> Place {
    let provider = Arc::clone(provider);
    Place::of(Arc::clone(&provider) as Arc<dyn Provider>, provider)
}

/// One driver: its own state directory, its hosts, and how patient it is.
pub(crate) struct Driver {
    pub(crate) state: StateDir,
    pub(crate) places: Places,
    pub(crate) control: Control,
    pub(crate) hooks: Arc<dyn Hooks<StepValue>>,
    pub(crate) patience: Patience,
    pub(crate) treasury: Arc<dyn Treasury>,
    pub(crate) doors: Doors,
    pub(crate) folder: Option<TempDir>,
}

impl Driver {
    /// A driver with one host, `father`.
    pub(crate) fn of<P: Provider + Transport + 'static>(provider: &Arc<P>) -> Self {
        Self::on([(host("father"), place(provider))].into())
    }

    pub(crate) fn on(places: Places) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let state =
            StateDir::locate(Some(&folder.path().join("state"))).expect("a folder that is given is taken");
        Self { folder: Some(folder), ..Self::with(state, places) }
    }

    pub(crate) fn with(state: StateDir, places: Places) -> Self {
        let patience = Patience {
            look: Duration::from_secs(5),
            retries: 0,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(4),
            ..Patience::default()
        };
        let control = Control::new();
        let treasury = NoTreasury::shared();
        let (hooks, doors) = (Arc::new(Silent), Doors::new());
        Self { state, places, control, hooks, patience, treasury, doors, folder: None }
    }

    pub(crate) fn retrying(mut self, retries: u32) -> Self {
        self.patience.retries = retries;
        self
    }

    /// The same driver with another host behind the same state directory.
    pub(crate) fn now_of<P: Provider + Transport + 'static>(&self, provider: &Arc<P>) -> Self {
        Self::with(self.state.clone(), [(host("father"), place(provider))].into())
    }

    pub(crate) async fn observed(&self) -> Observed {
        observe(&self.places, self.patience.look).await
    }

    pub(crate) async fn planned(&self, fleet: &Fleet, verb: Verb) -> Plan {
        plan(fleet, &self.observed().await, &Goal::of(verb)).expect("everything is selected")
    }

    pub(crate) async fn create(&self, fleet: &Fleet) -> Report {
        self.run(&self.planned(fleet, Verb::Create).await).await
    }

    pub(crate) async fn config(&self, fleet: &Fleet) -> Report {
        self.run(&self.planned(fleet, Verb::Config).await).await
    }

    pub(crate) async fn destroy(&self, fleet: &Fleet) -> Report {
        self.run(&self.planned(fleet, Verb::Destroy).await).await
    }

    /// Plans what makes machines anew that cannot be changed in place.
    pub(crate) async fn replace(&self, fleet: &Fleet) -> Report {
        let goal = Goal { replace: true, ..Goal::of(Verb::Create) };
        self.run(&plan(fleet, &self.observed().await, &goal).expect("everything is selected")).await
    }

    /// Carries a plan out, and checks what holds of every report: each node of the plan is in it once, in the plan's
    /// order, and the journal on disk tells the same.
    pub(crate) async fn run(&self, plan: &Plan) -> Report {
        self.run_under(plan, &plan.hosts).await
    }

    /// The same, under the locks of these hosts.
    pub(crate) async fn run_under(&self, plan: &Plan, hosts: &BTreeSet<HostName>) -> Report {
        let run_id = RunId::new();
        let locks = HostLocks::take(&self.state, &plan.site, hosts, &run_id, "a test");
        let permit = Permit::under(locks.expect("nobody else holds the locks of this test"));
        let journal =
            RunJournal::begin(&self.state, run_id.clone(), plan).await.expect("a journal can be begun");
        let means = Means {
            registry: None,
            treasury: Arc::clone(&self.treasury),
            places: self.places.clone(),
            permit,
            journal: Arc::new(journal),
            control: self.control.clone(),
            hooks: Arc::clone(&self.hooks),
            watch: Arc::new(|_, _| {}),
            herald: Arc::new(|_| {}),
            doors: self.doors.clone(),
            patience: self.patience.clone(),
        };
        let report = run(plan, means).await;
        check_report(plan, &report);
        let told = Runs::of(self.state.clone()).show(&run_id).expect("the journal can be read");
        assert_eq!(json(&told), json(&report), "the journal tells the same as the report");
        report
    }

    /// What the newest run wrote down.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let runs = Runs::of(self.state.clone()).newest(1).expect("the runs can be listed");
        let newest = runs.first().expect("there was a run");
        RunJournal::read(&self.state, &newest.run).expect("its journal can be read")
    }
}

/// Every node of the plan is in the report exactly once, and has come to an end.
pub(crate) fn check_report(plan: &Plan, report: &Report) {
    let planned: Vec<_> = plan.nodes.iter().map(|node| &node.identity).collect();
    let reported: Vec<_> = report.nodes.iter().map(|node| &node.identity).collect();
    assert_eq!(planned, reported, "every node of the plan, once, in its order");
    assert_eq!(report.count(NodeStatus::Unfinished), 0, "{report}");
}

fn json(report: &Report) -> serde_json::Value {
    serde_json::to_value(report).expect("a report is JSON")
}

/// `inner-pve changed, test-vm skipped`
pub(crate) fn statuses(report: &Report) -> String {
    let word = |status| match status {
        NodeStatus::Changed => "changed",
        NodeStatus::Unchanged => "unchanged",
        NodeStatus::Failed => "failed",
        NodeStatus::Skipped => "skipped",
        NodeStatus::Unfinished => "unfinished",
    };
    let nodes = report.nodes.iter().map(|node| format!("{} {}", node.identity.node, word(node.status)));
    nodes.collect::<Vec<_>>().join(", ")
}

/// The exit code of a run that is over.
pub(crate) fn exit_code(report: &Report) -> u8 {
    report.exit_code.expect("the run is over").into()
}

/// Why a node ended as it did, in one line.
pub(crate) fn why(report: &Report, node: &str) -> String {
    let found = report.nodes.iter().find(|report| report.identity.node.as_str() == node);
    found.expect("the node is in the report").why.join(": ")
}

/// Every note of a report.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    report.nodes.iter().flat_map(|node| &node.steps).filter_map(|step| step.note.clone()).collect()
}

/// The steps of a journal in the order in which they were written: `started x/create`, `ended x/create`.
pub(crate) fn steps(entries: &[Entry]) -> Vec<String> {
    let told = entries.iter().filter_map(|entry| match entry {
        Entry::Step { entry: StepEntry::Started { task, .. }, .. } => {
            Some(format!("started {}", short(task)))
        }
        Entry::Step { entry: StepEntry::Ended(report), .. } => Some(format!("ended {}", short(name(report)))),
        _ => None,
    });
    told.collect()
}

fn name(report: &TaskReport<StepValue>) -> &str {
    &report.name
}

/// `inner-pve/create` of `nested-test.inner-pve@father/create`.
fn short(task: &str) -> String {
    let (identity, verb) = task.rsplit_once('/').expect("a step has a verb");
    let (_, node) = identity.split_once('.').expect("an identity has a manifest");
    let (node, _) = node.split_once('@').expect("an identity has a host");
    format!("{node}/{verb}")
}

/// Machines that are not this manifest's: a stranger's, another site's, and another manifest's of the same node name.
pub(crate) fn strangers(fleet: &Fleet) -> Vec<Machine> {
    let first = &fleet.nodes[0].identity;
    let marks = |site: &str, manifest: &str| {
        Some(Marks {
            site: site.parse().expect("a site has a name"),
            manifest: manifest.parse().expect("a manifest has a name"),
            node: first.node.clone(),
            host: first.host.clone(),
            uuid: Uuid::new_v4(),
        })
    };
    vec![
        stranger("s1", "somebodys-database", None),
        stranger("s2", "neighbour", marks("neighbours", first.manifest.as_str())),
        stranger("s3", "sister", marks(fleet.site.as_str(), "sister")),
    ]
}

pub(crate) fn stranger(id: &str, name: &str, marks: Option<Marks>) -> Machine {
    Machine {
        id: id.into(),
        name: name.into(),
        marks,
        inside: None,
        state: MachineState::Running,
        size: Size { cores: 1, memory: 512, disk: 1 },
        kind: None,
        image: None,
        vmid: None,
        applied: Applied::Unknown,
        keys: Keys::Unknown,
    }
}

/// The names of all nodes that have a machine of this fleet, each once: a doubled machine is a mistake.
pub(crate) fn ours(fleet: &Fleet, machines: &[Machine]) -> BTreeSet<String> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for machine in machines {
        let marks = machine.marks.as_ref();
        let own = marks.filter(|marks| marks.site == fleet.site && marks.manifest == fleet.manifest);
        if let Some(marks) = own {
            *count.entry(marks.node.to_string()).or_default() += 1;
        }
    }
    assert!(count.values().all(|count| *count == 1), "a machine is doubled: {count:?}");
    count.into_keys().collect()
}

/// The machines with these ids, as they are.
pub(crate) fn with_ids(machines: &[Machine], like: &[Machine]) -> Vec<Machine> {
    machines.iter().filter(|machine| like.iter().any(|other| other.id == machine.id)).cloned().collect()
}

/// Checks that every node of the fleet has one running machine of its size with its configuration.
pub(crate) fn assert_as_wanted(fleet: &Fleet, machines: &[Machine]) {
    let names: BTreeSet<String> = fleet.nodes.iter().map(|node| node.name().to_string()).collect();
    assert_eq!(ours(fleet, machines), names, "every node has its machine");
    for node in &fleet.nodes {
        let is_it = |machine: &&Machine| {
            machine.marks.as_ref().is_some_and(|marks| marks.is_of(&fleet.site, &node.identity))
        };
        let machine = machines.iter().find(is_it).expect("it was found before");
        let applied = node.config.as_ref().map_or(Applied::Never, |config| Applied::Digest(config.digest()));
        let wanted = (MachineState::Running, node.size, applied);
        assert_eq!((machine.state, machine.size, machine.applied), wanted, "{}", node.identity);
    }
}
