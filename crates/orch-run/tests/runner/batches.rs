//! Many nodes a batch at a time: what a gate sees, what a failure means for those who come later, and the way back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use expect_test::expect;
use orch_model::{Config, Fleet, HealthReport, Inspection, NodeKeys, ResourceReport, StorePath};
use orch_plan::{Goal, Machine, Plan, Staging, Strategy, Verb, plan};
use orch_run::memory::{Fault, FaultKind, Faulty, MemoryProvider};
use orch_run::{
    Configured, Door, Doors, Ended, Entry, ExitCode, NodeStatus, Permit, Place, Report, Target, Transport,
    TransportError,
};

use crate::common::{Driver, host, memory, own_fleet, place, statuses, why};

/// The system of a revision.
pub(crate) fn system(revision: char) -> StorePath {
    let hash: String = std::iter::repeat_n(revision, 32).collect();
    format!("/nix/store/{hash}-nixos-system").parse().expect("that is a store path")
}

/// The same fleet, evaluated to the systems of this revision.
pub(crate) fn at(fleet: &Fleet, revision: char) -> Fleet {
    let mut fleet = fleet.clone();
    for node in &mut fleet.nodes {
        node.config = node.config.take().map(|config| config.with_system(system(revision)));
    }
    fleet
}

pub(crate) fn nodes(count: usize, settings: &str) -> Fleet {
    own_fleet(settings, &format!("- {{ name: n, type: vm, preset: small, spec: base, count: {count} }}"))
}

/// A host whose nodes are leased and can be taken back.
pub(crate) fn nixos<P: orch_run::Provider + Transport + 'static>(
    provider: &Arc<P>,
    world: &Arc<MemoryProvider>,
) -> Place {
    Place { leaser: Some(Arc::clone(world) as _), reverter: Some(Arc::clone(world) as _), ..place(provider) }
}

pub(crate) fn goal(staging: Staging) -> Goal {
    Goal { staging, ..Goal::of(Verb::Config) }
}

fn canary() -> Staging {
    Staging { strategy: Strategy::Canary, ..Staging::ALL }
}

/// A world in which every node of the fleet runs as revision `a`.
pub(crate) async fn settled(fleet: &Fleet) -> Arc<MemoryProvider> {
    let world = memory();
    let driver = Driver::on([(host("father"), nixos(&world, &world))].into());
    assert_eq!(driver.create(&at(fleet, 'a')).await.exit_code, Some(ExitCode::Done));
    world
}

/// The machines in the order of their nodes, in whatever order they were made.
pub(crate) fn in_order(world: &MemoryProvider) -> Vec<Machine> {
    let mut machines = world.world().machines;
    machines.sort_by_key(|machine| machine.marks.as_ref().map(|marks| marks.node.clone()));
    machines
}

/// What each node runs, in order: `aab`.
pub(crate) fn running(world: &MemoryProvider) -> String {
    let machines = in_order(world);
    let systems = machines.iter().map(|machine| {
        let system = world.system_of(machine.marks.as_ref().expect("it is ours").uuid);
        system.and_then(|system| system.chars().nth("/nix/store/".len())).unwrap_or('?')
    });
    systems.collect()
}

pub(crate) async fn planned(driver: &Driver, fleet: &Fleet, staging: Staging) -> Plan {
    plan(fleet, &driver.observed().await, &goal(staging)).expect("everything is selected")
}

async fn rolled_out(
    fleet: &Fleet,
    world: &Arc<MemoryProvider>,
    faults: Vec<Fault>,
    staging: Staging,
) -> (Driver, Report) {
    let provider = Arc::new(Faulty::new(Arc::clone(world), host("father"), faults));
    let driver = Driver::on([(host("father"), nixos(&provider, world))].into());
    let plan = planned(&driver, fleet, staging).await;
    let report = driver.run(&plan).await;
    (driver, report)
}

fn refusing(node: &str) -> Fault {
    Fault::node(node.parse().expect("a node has a name"), FaultKind::Refuse)
}

#[tokio::test]
async fn a_batch_is_begun_when_the_gate_before_it_is_open_and_not_before() {
    let fleet = nodes(4, "");
    let world = settled(&fleet).await;
    let (driver, report) = rolled_out(&at(&fleet, 'b'), &world, Vec::new(), canary()).await;
    assert_eq!(report.exit_code, Some(ExitCode::Done), "{report}");
    assert_eq!(running(&world), "bbbb");
    let entries = driver.entries();
    let order: Vec<String> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Gate { batch, .. } => Some(format!("gate {batch}")),
            Entry::Step { entry: orch_dag::Entry::Started { task, .. }, .. } => Some(task.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(order[..3], ["m.n-1@father/configure", "batch-1/gate", "gate 1"], "{order:?}");
    assert_eq!(order.len(), 6);
    let gate = &report.gates[0];
    assert_eq!((gate.batch, gate.nodes.len(), gate.is_open()), (1, 1, true));
    let shown = report.to_string();
    assert!(shown.contains("gate after batch 1: open, 1 of 1 well"), "{shown}");
    let page = report.html();
    assert!(page.contains("gate 1") && page.contains("class=\"gate\""), "the timeline shows the gate");
    let json = serde_json::to_value(&report).expect("a report is JSON");
    assert_eq!(json["gates"][0]["step"]["action"], "gate");
}

#[tokio::test]
async fn where_the_canary_fails_nobody_else_is_touched() {
    let fleet = nodes(8, "on_error: continue");
    let world = settled(&fleet).await;
    let (driver, report) = rolled_out(&at(&fleet, 'b'), &world, vec![refusing("n-1")], canary()).await;
    assert_eq!(running(&world), "aaaaaaaa");
    assert_eq!(report.exit_code, Some(ExitCode::Failed), "{report}");
    assert_eq!((report.count(NodeStatus::Failed), report.count(NodeStatus::Skipped)), (1, 7));
    assert_eq!(why(&report, "n-8"), "the gate after batch 1 did not open");
    assert_eq!(report.gates[0].why, ["1 node failed, and none may"]);
    let is_second = |entry: &Entry| matches!(entry, Entry::Step { entry: orch_dag::Entry::Started { task, .. }, .. } if task.contains("n-2@"));
    assert!(!driver.entries().iter().any(is_second));
}

#[tokio::test]
async fn as_many_nodes_may_fail_as_was_said_and_not_one_more() {
    let fleet = nodes(6, "parallelism: 1");
    let staging = Staging { strategy: Strategy::Serial, max_fail: Some(1), ..Staging::ALL };
    let world = settled(&fleet).await;
    let one = vec![refusing("n-2")];
    let (_, report) = rolled_out(&at(&fleet, 'b'), &world, one, staging.clone()).await;
    assert_eq!((running(&world).as_str(), report.exit_code), ("babbbb", Some(ExitCode::Partly)), "{report}");

    let world = settled(&fleet).await;
    let two = vec![refusing("n-2"), refusing("n-4")];
    let (_, report) = rolled_out(&at(&fleet, 'b'), &world, two, staging).await;
    assert_eq!(running(&world), "babaaa");
    expect!["n-1 changed, n-2 failed, n-3 changed, n-4 failed, n-5 skipped, n-6 skipped"]
        .assert_eq(&statuses(&report));
}

#[tokio::test]
async fn within_a_batch_nothing_new_is_begun_once_too_many_failed() {
    let fleet = nodes(5, "parallelism: 1");
    let world = settled(&fleet).await;
    let staging = Staging { max_fail: Some(0), ..Staging::ALL };
    let (_, report) = rolled_out(&at(&fleet, 'b'), &world, vec![refusing("n-2")], staging).await;
    assert_eq!(running(&world), "baaaa");
    assert_eq!(why(&report, "n-3"), "more nodes had failed by then than may");
    assert_eq!(report.exit_code, Some(ExitCode::Partly));
}

/// Nodes that fall ill after they were configured, and that say what they run.
pub(crate) struct Ward {
    world: Arc<MemoryProvider>,
    ill: BTreeSet<String>,
    looked: AtomicBool,
}

impl Ward {
    pub(crate) fn of(world: &Arc<MemoryProvider>, ill: &[&str]) -> Self {
        let ill = ill.iter().map(|&node| node.to_owned()).collect();
        Self { world: Arc::clone(world), ill, looked: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Door for Ward {
    async fn inspect(&self, target: &Target, config: &Config) -> Result<Inspection, TransportError> {
        self.looked.store(true, Ordering::SeqCst);
        let healthy = !self.ill.contains(target.identity.node.as_str());
        let why = (!healthy).then(|| "it stopped".to_owned());
        let health = vec![HealthReport { check: "unit nginx.service".to_owned(), healthy, why }];
        let (runs, wanted) = (self.world.system_of(target.uuid), config.system().map(ToString::to_string));
        let system = ResourceReport {
            kind: "system".to_owned(),
            name: wanted.clone().unwrap_or_default(),
            changed: runs != wanted,
            skipped: None,
            detail: None,
        };
        Ok(Inspection { applied: Some(config.digest()), resources: vec![system], health })
    }

    async fn inventory(&self, _: &Target) -> Result<orch_model::system::Inventory, TransportError> {
        Ok(orch_model::system::Inventory::default())
    }

    async fn exec(&self, _: &Target, _: &[String], _: std::time::Duration) -> Result<Ended, TransportError> {
        Ok(Ended { code: Some(0), stdout: Vec::new(), stderr: Vec::new() })
    }

    fn session(&self, _: &Target, _: &[String]) -> Result<Vec<std::ffi::OsString>, TransportError> {
        Ok(Vec::new())
    }

    fn ssh_config(&self, _: &[Target]) -> Result<Option<String>, TransportError> {
        Ok(None)
    }
}

async fn with_ward(fleet: &Fleet, world: &Arc<MemoryProvider>, ill: &[&str], staging: Staging) -> Report {
    let ward = Arc::new(Ward::of(world, ill));
    let mut driver = Driver::on([(host("father"), nixos(world, world))].into());
    driver.doors = Doors::from([(host("father"), Arc::clone(&ward) as Arc<dyn Door>)]);
    let plan = planned(&driver, fleet, staging).await;
    let report = driver.run(&plan).await;
    assert!(ward.looked.load(Ordering::SeqCst), "the gate asked");
    report
}

#[tokio::test]
async fn a_node_that_falls_ill_after_it_was_done_shuts_the_gate_and_is_told_as_failed() {
    let fleet = nodes(3, "");
    let world = settled(&fleet).await;
    let report = with_ward(&at(&fleet, 'b'), &world, &["n-1"], canary()).await;
    assert_eq!(statuses(&report), "n-1 failed, n-2 skipped, n-3 skipped");
    assert!(why(&report, "n-1").contains("unit nginx.service: it stopped"), "{report}");
    assert_eq!((running(&world).as_str(), report.exit_code), ("baa", Some(ExitCode::Failed)));
    let well = with_ward(&at(&fleet, 'b'), &world, &[], canary()).await;
    assert_eq!((running(&world).as_str(), well.exit_code), ("bbb", Some(ExitCode::Done)), "{well}");
}

#[tokio::test]
async fn nodes_that_were_moved_are_taken_back_where_more_failed_than_may() {
    let fleet = nodes(4, "parallelism: 1");
    let world = settled(&fleet).await;
    let staging = Staging { strategy: Strategy::Serial, rollback_succeeded: true, ..Staging::ALL };
    let (driver, report) = rolled_out(&at(&fleet, 'b'), &world, vec![refusing("n-3")], staging).await;
    assert_eq!(running(&world), "aaaa", "{report}");
    assert_eq!(statuses(&report), "n-1 skipped, n-2 skipped, n-3 failed, n-4 skipped");
    let back = format!("taken back: it runs {} again, because too many others failed", system('a'));
    assert_eq!(why(&report, "n-1"), back);
    assert_eq!(report.exit_code, Some(ExitCode::Failed));
    let returned = driver.entries().iter().filter(|entry| matches!(entry, Entry::Returned { .. })).count();
    assert_eq!(returned, 2, "only those that were moved");
}

#[tokio::test]
async fn a_node_that_fell_ill_is_taken_back_too_and_one_that_cannot_be_is_told_so() {
    let fleet = nodes(2, "");
    let world = settled(&fleet).await;
    let staging = Staging { rollback_succeeded: true, ..canary() };
    let report = with_ward(&at(&fleet, 'b'), &world, &["n-1"], staging.clone()).await;
    assert_eq!(running(&world), "aa");
    assert!(why(&report, "n-1").ends_with(&format!("taken back: it runs {} again", system('a'))), "{report}");

    let faulty = Arc::new(Faulty::new(Arc::clone(&world), host("father"), vec![refusing("n-2")]));
    let place = Place { reverter: None, ..nixos(&faulty, &world) };
    let driver = Driver::on([(host("father"), place)].into());
    let staging = Staging { strategy: Strategy::Serial, ..staging };
    let report = driver.run(&planned(&driver, &at(&fleet, 'b'), staging).await).await;
    assert_eq!((running(&world).as_str(), statuses(&report).as_str()), ("ba", "n-1 failed, n-2 failed"));
    assert!(why(&report, "n-1").contains("could not be taken back"), "{report}");
    assert_eq!(report.exit_code, Some(ExitCode::Failed));
}

/// A way that moves a node and then fails.
struct Halfway {
    world: Arc<MemoryProvider>,
    node: &'static str,
}

#[async_trait]
impl Transport for Halfway {
    async fn configure(
        &self,
        target: &Target,
        config: &Config,
        permit: &Permit,
    ) -> Result<Configured, TransportError> {
        let done = self.world.configure(target, config, permit).await?;
        if target.identity.node.as_str() != self.node {
            return Ok(done);
        }
        let (node, why) = (target.identity.clone(), "its system is permanent, and it is not healthy".into());
        Err(TransportError::Failed { node, why, evidence: Vec::new() })
    }

    async fn settle(&self, target: &Target, permit: &Permit) -> Result<NodeKeys, TransportError> {
        self.world.settle(target, permit).await
    }
}

#[tokio::test]
async fn a_node_that_was_moved_though_its_step_failed_is_taken_back_too() {
    let fleet = nodes(3, "parallelism: 1");
    let world = settled(&fleet).await;
    let way = Halfway { world: Arc::clone(&world), node: "n-2" };
    let place = Place { transport: Arc::new(way), ..nixos(&world, &world) };
    let driver = Driver::on([(host("father"), place)].into());
    let staging = Staging { strategy: Strategy::Serial, rollback_succeeded: true, ..Staging::ALL };
    let report = driver.run(&planned(&driver, &at(&fleet, 'b'), staging).await).await;
    assert_eq!((running(&world).as_str(), report.exit_code), ("aaa", Some(ExitCode::Failed)), "{report}");
    let said = why(&report, "n-2");
    let back = format!("taken back: it runs {} again", system('a'));
    assert!(said.contains("it is not healthy") && said.ends_with(&back), "{report}");
}

#[tokio::test]
async fn without_a_word_about_it_nobody_is_taken_back() {
    let fleet = nodes(3, "parallelism: 1");
    let world = settled(&fleet).await;
    let staging = Staging { strategy: Strategy::Serial, ..Staging::ALL };
    let (_, report) = rolled_out(&at(&fleet, 'b'), &world, vec![refusing("n-2")], staging).await;
    assert_eq!((running(&world).as_str(), report.exit_code), ("baa", Some(ExitCode::Partly)), "{report}");
}
