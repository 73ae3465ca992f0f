//! Every promise of a provider, kept against the lab's Proxmox VE.

use std::sync::Arc;

use async_trait::async_trait;
use orch_lab::{Fault, Rule};
use orch_model::{Config, HostName};
use orch_plan::{MachineRef, MachineSpec};
use orch_providers::api::Method;
use orch_providers::proxmox::Proxmox;
use orch_run::conformance::{self as promise, Subject};
use orch_run::{Configured, Order, Permit, Target, Transport, TransportError};

use crate::world::{Driver, World, host, spec};

struct Trial {
    world: World,
    driver: Driver,
}

fn trial() -> Trial {
    let world = World::new();
    let driver = world.driver();
    Trial { world, driver }
}

/// The number that a machine of this name gets.
fn number(name: &str) -> u32 {
    10_000 + name.bytes().fold(0, |sum, byte| (sum * 31 + u32::from(byte)) % 9_000)
}

#[async_trait]
impl Subject for Trial {
    type Provider = Proxmox;

    fn provider(&self) -> Arc<Proxmox> {
        Arc::clone(&self.driver.provider)
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(Nobody)
    }

    fn host(&self) -> HostName {
        host()
    }

    fn permit(&self) -> Permit {
        self.driver.permit.clone()
    }

    fn smallest(&self, name: &str) -> MachineSpec {
        spec(name, number(name))
    }

    async fn put_stranger(&self, name: &str) {
        self.world.put_stranger(number(name) + 1, name).await;
    }

    async fn leave_half_made(&self, order: &Order) {
        self.world.faults.add(Rule::always(Fault::NoPrivilege).on("PUT", "/config"));
        self.driver.apply(order).await.unwrap_err();
        self.world.faults.clear();
    }

    async fn switch_off(&self, machine: &MachineRef) {
        let path = format!("/nodes/pve1/{}/status/stop", machine.id);
        self.world.task_by_hand(Method::Post, &path, &[]).await;
    }
}

/// Nobody goes to machines on paper.
struct Nobody;

#[async_trait]
impl Transport for Nobody {
    async fn configure(&self, target: &Target, _: &Config, _: &Permit) -> Result<Configured, TransportError> {
        let node = target.identity.clone();
        Err(TransportError::Unreachable { node, why: "it is on paper".into(), evidence: Vec::new() })
    }
}

/// Configuring alone is left out: machines on paper cannot be configured.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxmox_keeps_every_promise_of_a_provider() {
    promise::looking_changes_nothing(&trial()).await;
    promise::what_was_made_is_seen_with_its_marks_and_runs(&trial()).await;
    promise::making_twice_is_making_once(&trial()).await;
    promise::making_again_after_a_lost_answer_makes_no_second_machine(&trial()).await;
    promise::a_failure_before_the_effect_leaves_nothing(&trial()).await;
    promise::destroying_what_is_gone_changes_nothing(&trial()).await;
    promise::destroying_after_a_lost_answer_is_no_failure(&trial()).await;
    promise::a_machine_with_another_mark_is_neither_changed_nor_destroyed(&trial()).await;
    promise::a_strangers_machine_is_never_touched(&trial()).await;
    promise::a_machine_that_was_switched_off_is_started(&trial()).await;
    promise::a_machine_is_resized_in_place_and_keeps_its_mark(&trial()).await;
    promise::what_was_half_made_is_seen_as_such_and_finished(&trial()).await;
    promise::slowness_changes_nothing_but_the_time(&trial()).await;
    promise::keys_are_written_on_the_marked_machine_alone(&trial()).await;
}
