//! A node that is a list of answers, and a store that has everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use orch_model::system::{RolloutPhase, RolloutRecord, SwitchAnswer, SystemView};
use orch_model::{Config, Mode, StorePath};
use orch_nix::Member;
use orch_run::{
    Configured, Ended, HostLocks, NoTreasury, Permit, Progress, RunId, StateDir, Target, TransportError,
};
use tokio::process::Command;
use uuid::Uuid;

use super::super::{NoSystem, Outside, Road, Rollout, RolloutLimits, RolloutSettings, Systems, back};
use crate::push::tests::report;
use crate::push::{Limits, Part, Program, What};
use crate::remote::{Bridge, Remote, RunAs};

pub(super) const NEW: &str = "/nix/store/11111111111111111111111111111111-nixos-system-new";
pub(super) const DISKS: &str = "/nix/store/22222222222222222222222222222222-disko";
pub(super) const OLD: &str = "/nix/store/00000000000000000000000000000000-nixos-system-old";

pub(super) fn path(text: &str) -> StorePath {
    text.parse().unwrap()
}

/// What a node answers to each kind of question; the last answer is given again and again.
#[derive(Default)]
pub(super) struct Script {
    pub(super) answers: Mutex<BTreeMap<&'static str, VecDeque<Result<Ended, &'static str>>>>,
    asked: Mutex<Vec<String>>,
}

#[derive(Clone, Default)]
pub(super) struct Node(pub(super) Arc<Script>);

impl Node {
    pub(super) fn on(self, question: &'static str, answer: Ended) -> Self {
        self.0.answers.lock().unwrap().entry(question).or_default().push_back(Ok(answer));
        self
    }

    pub(super) fn not_on(self, question: &'static str, why: &'static str) -> Self {
        self.0.answers.lock().unwrap().entry(question).or_default().push_back(Err(why));
        self
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.0.asked.lock().unwrap().clone()
    }

    fn answer(&self, argv: &[String]) -> Result<Ended, TransportError> {
        let question = if argv[1] == "system" { argv[2].clone() } else { push_of(argv) };
        self.0.asked.lock().unwrap().push(question.clone());
        let mut answers = self.0.answers.lock().unwrap();
        let list = answers.get_mut(question.as_str()).unwrap_or_else(|| panic!("asked `{question}`"));
        let answer = if list.len() > 1 { list.pop_front().unwrap() } else { list[0].clone() };
        answer.map_err(|why| TransportError::Unreachable {
            node: "m.web@father".parse().unwrap(),
            why: why.into(),
            evidence: Vec::new(),
        })
    }

    pub(super) async fn roll_out(&self) -> Result<Configured, TransportError> {
        self.roll_out_with(RolloutLimits { earlier: Duration::ZERO, ..quick() }).await
    }

    pub(super) async fn roll_out_with(&self, limits: RolloutLimits) -> Result<Configured, TransportError> {
        let settings = RolloutSettings { systems: Arc::new(Store), limits, programs: None };
        self.roll_out_as(&config(), settings, None).await
    }

    pub(super) async fn roll_out_as(
        &self,
        config: &Config,
        settings: RolloutSettings,
        outside: Option<Outside>,
    ) -> Result<Configured, TransportError> {
        self.roll_out_within(config, settings, outside, Duration::from_mins(10)).await
    }

    pub(super) async fn roll_out_within(
        &self,
        config: &Config,
        settings: RolloutSettings,
        outside: Option<Outside>,
        time: Duration,
    ) -> Result<Configured, TransportError> {
        let (target, treasury) = (target(), NoTreasury::shared());
        let program = Program::There("/bin/orch-node".into());
        let road = Straight { node: self.clone(), program, outside };
        let folder = tempfile::tempdir().unwrap();
        let permit = permit(folder.path());
        let rollout = Rollout {
            road: &road,
            target: &target,
            what: What { config, treasury: &treasury, part: Part::Whole },
            limits: &Limits::default(),
            settings: &settings,
            permit: &permit,
            time,
            begun: OnceLock::new(),
        };
        rollout.carry_out(&path(NEW)).await
    }
}

/// Takes the node back.
pub(super) async fn take_back(node: &Node) -> Result<SwitchAnswer, TransportError> {
    let program = Program::There("/bin/orch-node".into());
    let road = Straight { node: node.clone(), program, outside: None };
    let folder = tempfile::tempdir().unwrap();
    back(&road, &target(), &quick(), &permit(folder.path())).await
}

fn push_of(argv: &[String]) -> String {
    let is_before = argv.iter().any(|word| word == "--before-system");
    if is_before { "push-before".into() } else { argv[1].clone() }
}

pub(super) fn quick() -> RolloutLimits {
    RolloutLimits { pause: Duration::from_millis(1), ..RolloutLimits::default() }
}

fn permit(folder: &std::path::Path) -> Permit {
    let state = StateDir::locate(Some(folder)).unwrap();
    let hosts = BTreeSet::from(["father".parse().unwrap()]);
    let locks = HostLocks::take(&state, &"home".parse().unwrap(), &hosts, &RunId::new(), "config m");
    Permit::under(locks.unwrap())
}

#[async_trait]
impl Remote for Node {
    async fn run(&self, argv: &[String], _: RunAs, _: &[u8], _: Duration) -> Result<Ended, TransportError> {
        self.answer(argv)
    }
}

impl Bridge for Node {
    fn bridge(&self, argv: &[String]) -> Result<Command, TransportError> {
        let ended = self.answer(argv)?;
        let mut command = Command::new(if ended.code == Some(0) { "cat" } else { "false" });
        command.kill_on_drop(true);
        Ok(command)
    }
}

struct Straight {
    node: Node,
    program: Program,
    outside: Option<Outside>,
}

#[async_trait]
impl Road for Straight {
    fn program(&self) -> &Program {
        &self.program
    }

    async fn shared(&self) -> Result<Arc<dyn Bridge>, TransportError> {
        Ok(Arc::new(self.node.clone()))
    }

    async fn anew(&self) -> Result<Arc<dyn Remote>, TransportError> {
        self.node.0.asked.lock().unwrap().push("anew".into());
        Ok(Arc::new(self.node.clone()))
    }

    async fn outside(&self) -> Result<Option<Outside>, TransportError> {
        Ok(self.outside.clone())
    }
}

/// A store that has everything.
pub(super) struct Store;

#[async_trait]
impl Systems for Store {
    async fn holds(&self, _: &StorePath) -> bool {
        true
    }

    async fn ready(&self, _: &StorePath, _: &Progress, _: Duration) -> Result<(), NoSystem> {
        Ok(())
    }

    async fn recipe(&self, _: &StorePath) -> Result<Option<(StorePath, Vec<Member>)>, NoSystem> {
        Ok(None)
    }

    async fn closure(&self, system: &StorePath) -> Result<Vec<Member>, NoSystem> {
        Ok(vec![Member { path: system.clone(), bytes: 1_000_000 }])
    }

    fn export(&self, paths: &[StorePath]) -> Command {
        let mut command = Command::new("echo");
        command.args(paths.iter().map(StorePath::as_str));
        command
    }

    fn platform(&self, _: &StorePath) -> Option<String> {
        Some("x86_64-linux".into())
    }

    async fn disks(&self, _: &StorePath, _: &Progress, _: Duration) -> Result<Option<StorePath>, NoSystem> {
        Ok(Some(path(DISKS)))
    }
}

pub(super) fn config() -> Config {
    config_with("")
}

/// The same, with more in its section `nixos`.
pub(super) fn config_with(more: &str) -> Config {
    let spec = format!("nixos: {{ modules: [./hosts/web]{more} }}");
    crate::push::tests::config(&spec).with_system(path(NEW))
}

fn target() -> Target {
    let identity = "m.web@father".parse().unwrap();
    Target { identity, uuid: Uuid::nil(), mode: Mode::Push, progress: Progress::to_nobody() }
}

pub(super) fn json(value: &impl serde::Serialize) -> Ended {
    let stdout = serde_json::to_vec(value).unwrap();
    Ended { code: Some(0), stdout, stderr: Vec::new() }
}

pub(super) fn refusal(code: i32, words: &str) -> Ended {
    Ended { code: Some(code), stdout: Vec::new(), stderr: words.into() }
}

pub(super) fn view(runs: &str, boots: &str) -> SystemView {
    SystemView {
        platform: "x86_64-linux".into(),
        nix: Some("2.8.0".into()),
        running: Some(runs.into()),
        booted: Some(OLD.into()),
        boot_default: Some(boots.into()),
        missing: Vec::new(),
        free: 1 << 30,
        substitutes: false,
        lease: None,
        rollout: None,
    }
}

pub(super) fn record(phase: RolloutPhase) -> RolloutRecord {
    RolloutRecord {
        id: "x".into(),
        run: "another".into(),
        system: path(NEW),
        previous: Some(OLD.into()),
        previous_default: Some(OLD.into()),
        phase,
        why: None,
        evidence: vec!["unit nginx failed".into()],
        reboot_needed: Vec::new(),
        since: "2026-01-07T10:30:00Z".into(),
    }
}

pub(super) fn answer(phase: RolloutPhase, view: SystemView) -> SwitchAnswer {
    SwitchAnswer { record: record(phase), view, watched: true, unhealthy: Vec::new() }
}

pub(super) fn applied() -> Ended {
    applied_as(&config())
}

pub(super) fn applied_as(config: &Config) -> Ended {
    json(&report(config, Vec::new(), None))
}
