//! What every provider promises.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use orch_lab::{FirstBoot, Machines, Paper, Power, Size, Trouble, Wanted};
use orch_model::HostName;
use orch_plan::{Action, MachineRef, MachineSpec};
use orch_providers::cloud::{FirstKey, Written};
use orch_providers::hetzner::Hetzner;
use orch_providers::ssh::SshSettings;
use orch_run::conformance::{self as suite, Subject};
use orch_run::{Order, Permit, Transport};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::project::{Project, SMALL, host, spec, until};

struct Tried(Project);

/// Machines on paper that start when the gate is opened, and not before.
struct Gated {
    paper: Paper,
    gate: Semaphore,
}

impl Default for Gated {
    fn default() -> Self {
        Self { paper: Paper::default(), gate: Semaphore::new(0) }
    }
}

#[async_trait]
impl Machines for Gated {
    async fn make(&self, wanted: &Wanted) -> Result<(), Trouble> {
        self.paper.make(wanted).await
    }

    async fn start(&self, id: &str, first: &FirstBoot) -> Result<(), Trouble> {
        let _open = self.gate.acquire().await.unwrap();
        self.paper.start(id, first).await
    }

    async fn stop(&self, id: &str) -> Result<(), Trouble> {
        self.paper.stop(id).await
    }

    async fn resize(&self, id: &str, size: Size) -> Result<(), Trouble> {
        self.paper.resize(id, size).await
    }

    async fn remove(&self, id: &str) -> Result<(), Trouble> {
        self.paper.remove(id).await
    }

    async fn power(&self, id: &str) -> Power {
        self.paper.power(id).await
    }

    async fn address(&self, id: &str) -> Option<IpAddr> {
        self.paper.address(id).await
    }
}

#[async_trait]
impl Subject for Tried {
    type Provider = Hetzner;

    fn provider(&self) -> Arc<Hetzner> {
        Arc::new(self.0.provider())
    }

    fn transport(&self) -> Arc<dyn Transport> {
        let folder = self.0.folder();
        Arc::new(self.0.provider().way(SshSettings::new(folder.join("ssh"), folder.join("keys/driver"))))
    }

    fn host(&self) -> HostName {
        host()
    }

    fn permit(&self) -> Permit {
        self.0.permit()
    }

    fn smallest(&self, name: &str) -> MachineSpec {
        spec(name)
    }

    async fn put_stranger(&self, name: &str) {
        self.0.put_stranger(name).await;
    }

    async fn leave_half_made(&self, order: &Order) {
        let Action::Create { machine } = &order.action else { unreachable!("the suite asks for a create") };
        let mut written = Written::new(order.marks(), FirstKey::generate().public, &machine.image);
        written.size = Some(machine.size);
        let body = json!({
            "name": machine.name, "server_type": SMALL, "image": machine.image, "location": "nbg1",
            "labels": written.words(),
        });
        self.0.put_there("/servers", &body).await;
    }

    async fn switch_off(&self, machine: &MachineRef) {
        self.0.switch_off(&machine.id).await;
    }
}

fn plain() -> Tried {
    Tried(Project::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_and_making_keep_their_promises() {
    suite::looking_changes_nothing(&plain()).await;
    suite::what_was_made_is_seen_with_its_marks_and_runs(&plain()).await;
    suite::making_twice_is_making_once(&plain()).await;
    suite::making_again_after_a_lost_answer_makes_no_second_machine(&plain()).await;
    suite::a_failure_before_the_effect_leaves_nothing(&plain()).await;
    suite::slowness_changes_nothing_but_the_time(&plain()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destroying_and_strangers_keep_their_promises() {
    suite::destroying_what_is_gone_changes_nothing(&plain()).await;
    suite::destroying_after_a_lost_answer_is_no_failure(&plain()).await;
    suite::a_machine_with_another_mark_is_neither_changed_nor_destroyed(&plain()).await;
    suite::a_strangers_machine_is_never_touched(&plain()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_keeps_its_promises() {
    suite::a_machine_that_was_switched_off_is_started(&plain()).await;
    suite::a_machine_is_resized_in_place_and_keeps_its_mark(&plain()).await;
    suite::keys_are_written_on_the_marked_machine_alone(&plain()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_half_made_is_finished() {
    // It is not made before somebody asks how far it is, so that it is seen before.
    let machines = Arc::new(Gated::default());
    let project = Project::on(Arc::clone(&machines) as Arc<dyn Machines>, |_| {});
    let calls = project.calls().clone();
    let asked = tokio::spawn(async move {
        until("somebody asks", || async { calls.list().iter().any(|call| call.path.contains("/actions")) })
            .await;
        machines.gate.add_permits(1);
    });
    suite::what_was_half_made_is_seen_as_such_and_finished(&Tried(project)).await;
    asked.await.unwrap();
}
