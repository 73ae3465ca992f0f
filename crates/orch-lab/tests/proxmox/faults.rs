//! What goes wrong on purpose goes wrong in the words of the real one.

use std::time::Duration;

use orch_lab::{Fault, Rule};
use serde_json::json;

use crate::world::world;

#[tokio::test]
async fn a_task_can_fail_without_having_done_anything() {
    let world = world();
    world.faults.add(Rule::once(Fault::TaskFails).on("POST", "/clone"));
    let end = world.task("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    assert!(end.contains("failed: exit code 1"), "{end}");
    assert_eq!(world.ask("GET", "/nodes/pve1/qemu/101/config", &[]).await.status, 500);
    world.copy(101, "web").await;
}

#[tokio::test]
async fn a_create_that_fails_leaves_nothing() {
    let world = world();
    world.faults.add(Rule::once(Fault::TaskFails).on("POST", "/qemu"));
    world.task("POST", "/nodes/pve1/qemu", &[("vmid", "101"), ("scsi0", "local-zfs:1")]).await;
    assert_eq!(world.ask("GET", "/nodes/pve1/qemu/101/config", &[]).await.status, 500);
}

#[tokio::test]
async fn a_task_can_go_on_for_ever_until_it_is_stopped() {
    let world = world();
    world.faults.add(Rule::once(Fault::TaskNeverEnds).on("POST", "/clone"));
    let upid = world.data("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    let upid = upid.as_str().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(world.get(&format!("/nodes/pve1/tasks/{upid}/status")).await["status"], "running");
    world.data("DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]).await;
    assert_eq!(world.end_of(upid).await, "received interrupt");
}

#[tokio::test]
async fn a_lock_can_be_out_of_reach() {
    let world = world();
    world.copy(101, "web").await;
    world.faults.add(Rule::once(Fault::LockTimeout).on("POST", "/status/start"));
    let end = world.task("POST", "/nodes/pve1/qemu/101/status/start", &[]).await;
    let words = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout";
    assert_eq!(end, words);
    world.faults.add(Rule::once(Fault::LockTimeout).on("PUT", "/config"));
    let said = world.ask("PUT", "/nodes/pve1/qemu/101/config", &[("tags", "a")]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, words));
    world.start(101).await;
}

#[tokio::test]
async fn a_stranger_can_be_quicker() {
    let world = world();
    world.faults.add(Rule::once(Fault::StrangerTakesId).on("POST", "/clone"));
    let said = world.ask("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    assert_eq!(said.reason, "unable to create VM 101: config file already exists");
    assert_eq!(world.get("/nodes/pve1/qemu/101/config").await["name"], "stranger");
    world.faults.add(Rule::once(Fault::StrangerTakesId).on("POST", "/qemu"));
    let said = world.ask("POST", "/nodes/pve1/qemu", &[("vmid", "102")]).await;
    assert_eq!(said.reason, "unable to create VM 102 - VM 102 already exists on node 'pve1'");
}

#[tokio::test]
async fn an_agent_can_be_silent_a_privilege_gone_and_memory_short() {
    let world = world();
    world.copy(101, "web").await;
    world.faults.add(Rule::once(Fault::OutOfStock));
    let end = world.task("POST", "/nodes/pve1/qemu/101/status/start", &[]).await;
    assert!(end.contains("Cannot allocate memory"), "{end}");
    world.start(101).await;
    world.faults.add(Rule::once(Fault::AgentSilent));
    let path = "/nodes/pve1/qemu/101/agent/network-get-interfaces";
    assert_eq!(world.ask("GET", path, &[]).await.reason, "QEMU guest agent is not running");
    assert_eq!(world.ask("GET", path, &[]).await.status, 200);
    world.faults.add(Rule::once(Fault::NoPrivilege));
    let said = world.ask("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await;
    assert_eq!(
        (said.status, said.reason.as_str()),
        (403, "Permission check failed (/vms/101, VM.PowerMgmt)")
    );
    world.faults.add(Rule::once(Fault::Quota));
    let end = world.task("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "102")]).await;
    assert!(end.starts_with("clone failed: zfs error") && end.ends_with("out of space"), "{end}");
    assert_eq!(world.ask("GET", "/cluster/nextid", &[("vmid", "102")]).await.body["data"], json!("102"));
}
