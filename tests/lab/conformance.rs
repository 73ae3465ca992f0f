//! This computer as a host keeps every promise that providers and transports make.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use orch_model::{HostName, NodeKind, Size};
use orch_plan::{Action, MachineRef, MachineSpec};
use orch_providers::local::{Local, LocalWay, Setup};
use orch_providers::ssh::SshSettings;
use orch_run::conformance::{Subject, every_promise};
use orch_run::{Done, HostLocks, Order, Permit, Progress, Provider, RunId, StateDir, Transport};
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::common::{Lab, Need, ORCH, lacks, wait_until};

struct ThisComputer {
    lab: Lab,
    local: Arc<Local>,
    way: Arc<LocalWay>,
    permit: Permit,
}

fn host() -> HostName {
    "father".parse().unwrap()
}

impl ThisComputer {
    fn fresh() -> Self {
        let lab = Lab::with_site(&[]);
        let state = StateDir::locate(Some(&lab.state)).unwrap();
        let site = "conformance".parse().unwrap();
        let locks = HostLocks::take(&state, &site, &[host()].into(), &RunId::new(), "conformance").unwrap();
        let setup = Setup {
            host: host(),
            state: state.clone(),
            site: lab.site.clone(),
            user: "ops".parse().unwrap(),
            program: PathBuf::from(ORCH),
            reach: None,
        };
        let local = Local::new(setup);
        let way = local.way(SshSettings::new(state.ssh(), local.identity()));
        Self { lab, local: Arc::new(local), way: Arc::new(way), permit: Permit::under(locks) }
    }
}

#[async_trait]
impl Subject for ThisComputer {
    type Provider = Local;

    fn provider(&self) -> Arc<Local> {
        Arc::clone(&self.local)
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.way) as _
    }

    fn host(&self) -> HostName {
        host()
    }

    fn permit(&self) -> Permit {
        self.permit.clone()
    }

    fn smallest(&self, name: &str) -> MachineSpec {
        MachineSpec {
            name: name.into(),
            kind: NodeKind::Vm,
            image: "this-machine".into(),
            size: Size { cores: 1, memory: 512, disk: 1 },
            vmid: None,
            parent: None,
        }
    }

    async fn put_stranger(&self, name: &str) {
        let folder = self.lab.machine(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("precious"), "somebody's").unwrap();
    }

    async fn leave_half_made(&self, order: &Order) {
        self.local.leave_half_made(order).unwrap();
    }

    async fn switch_off(&self, machine: &MachineRef) {
        let pid = self.lab.init(&machine.id).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        wait_until("the machine is off", || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z ") || stat.contains(") X "))
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn this_computer_keeps_every_promise_of_a_provider() {
    every_promise(async || ThisComputer::fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_made_keeps_its_disk_whatever_it_is_asked_to_become() {
    if lacks(&[Need::Root]) {
        return;
    }
    let here = ThisComputer::fresh();
    let machine = here.smallest("kept");
    let mut order = Order {
        enrolment: None,
        site: "conformance".parse().unwrap(),
        identity: "kept.web@father".parse().unwrap(),
        uuid: Uuid::new_v4(),
        action: Action::Create { machine: machine.clone() },
        progress: Progress::to_nobody(),
    };
    here.local.apply(&order, &here.permit).await.unwrap();
    fs::write(here.lab.root("kept").join("srv/precious"), "kept").unwrap();
    let found = MachineRef { id: "kept".into(), name: "kept".into(), uuid: order.uuid };
    let larger = MachineSpec { size: Size { disk: 2, ..machine.size }, ..machine };
    for action in
        [Action::Create { machine: larger.clone() }, Action::Adopt { found: found.clone(), machine: larger }]
    {
        here.switch_off(&found).await;
        order.action = action;
        assert_eq!(here.local.apply(&order, &here.permit).await.unwrap(), Done::Changed);
        let there = fs::read_to_string(here.lab.root("kept").join("srv/precious"));
        assert_eq!(there.unwrap(), "kept", "after `{}`", order.action.verb());
    }
    assert_eq!(
        fs::metadata(here.lab.machine("kept").join("disk.img")).unwrap().len(),
        2 << 30,
        "and it has grown"
    );
}
