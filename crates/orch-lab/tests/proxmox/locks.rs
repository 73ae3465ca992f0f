//! Many at once: ids that are raced for, and locks that are waited for.

use std::collections::BTreeSet;
use std::time::Duration;

use orch_lab::ProxmoxTimings;

use crate::world::{World, world_with};

/// Takes the next id and clones to it, until that goes well.
async fn obtain(world: World) -> String {
    loop {
        let id = world.get("/cluster/nextid").await.as_str().unwrap().to_owned();
        let said = world.ask("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", &id)]).await;
        if let Some(upid) = said.body["data"].as_str().filter(|_| said.status == 200) {
            if world.end_of(upid).await == "OK" {
                return id;
            }
        } else {
            assert!(said.reason.ends_with("config file already exists"), "{said:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_take_the_next_id_at_once_end_with_machines_of_their_own() {
    let world = world_with(|_| {});
    let tasks: Vec<_> = (0..12).map(|_| tokio::spawn(obtain(world.clone()))).collect();
    let mut ids = BTreeSet::new();
    for task in tasks {
        assert!(ids.insert(task.await.unwrap()), "an id was given twice");
    }
    assert_eq!(ids.len(), 12);
    let list = world.get("/nodes/pve1/qemu").await;
    assert_eq!(list.as_array().unwrap().len(), 13);
}

#[tokio::test]
async fn a_machine_that_is_being_cloned_has_a_lock_and_nothing_else() {
    let world = world_with(|settings| {
        settings.timings.clone = Duration::from_secs(5);
        settings.timings.lock = Duration::from_millis(20);
    });
    let pairs = [("newid", "101"), ("name", "web"), ("description", "d")];
    let upid = world.data("POST", "/nodes/pve1/qemu/9000/clone", &pairs).await;
    let path = "/nodes/pve1/qemu/101/config";
    let config = loop {
        let said = world.ask("GET", path, &[]).await;
        if said.status == 200 {
            break said.body["data"].clone();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let keys: Vec<&String> = config.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["digest", "lock"]);
    assert_eq!(config["lock"], "clone");
    let said = world.ask("PUT", path, &[("tags", "mine")]).await;
    let words = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout";
    assert_eq!((said.status, said.reason.as_str()), (500, words));
    world.data("DELETE", &format!("/nodes/pve1/tasks/{}", upid.as_str().unwrap()), &[]).await;
    assert_eq!(world.end_of(upid.as_str().unwrap()).await, "received interrupt");
    assert_eq!(world.ask("GET", path, &[]).await.status, 500, "a clone that was stopped is taken away");
}

#[tokio::test]
async fn a_machine_that_is_being_created_has_its_id_at_once_and_a_lock() {
    let world = world_with(|settings| settings.timings.create = Duration::from_secs(5));
    let pairs = [("vmid", "101"), ("name", "web"), ("scsi0", "local-zfs:1")];
    world.data("POST", "/nodes/pve1/qemu", &pairs).await;
    let config = world.get("/nodes/pve1/qemu/101/config").await;
    assert_eq!((&config["lock"], config.get("name")), (&"create".into(), None));
    let said = world.ask("POST", "/nodes/pve1/qemu", &pairs).await;
    assert_eq!(said.reason, "unable to create VM 101 - VM 101 already exists on node 'pve1'");
}

#[tokio::test]
async fn a_task_that_waits_too_long_for_a_machine_gives_up() {
    let quick = ProxmoxTimings {
        lock: Duration::from_millis(20),
        stop: Duration::from_millis(400),
        ..ProxmoxTimings::quick()
    };
    let world = world_with(|settings| settings.timings = quick);
    world.copy(101, "web").await;
    world.start(101).await;
    let first = world.data("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await;
    let second = world.task("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await;
    assert_eq!(second, "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout");
    assert_eq!(world.end_of(first.as_str().unwrap()).await, "OK");
}

#[tokio::test]
async fn clones_wait_for_their_storage_and_give_up() {
    let quick = ProxmoxTimings {
        lock: Duration::from_millis(30),
        allocate: Duration::from_millis(200),
        ..ProxmoxTimings::quick()
    };
    let world = world_with(|settings| settings.timings = quick);
    let first = world.data("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    let second = world.data("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "102")]).await;
    let mut ends =
        [world.end_of(first.as_str().unwrap()).await, world.end_of(second.as_str().unwrap()).await];
    ends.sort();
    let gave_up = "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-local-zfs' - got timeout";
    assert_eq!(ends, ["OK", gave_up]);
    assert_eq!(world.get("/nodes/pve1/qemu").await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn no_more_tasks_run_at_once_than_there_are_workers() {
    let world = world_with(|settings| {
        settings.workers = 1;
        settings.timings.clone = Duration::from_millis(50);
    });
    let begun = std::time::Instant::now();
    let first = world.data("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    let second = world.data("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "102")]).await;
    for upid in [first, second] {
        assert_eq!(world.end_of(upid.as_str().unwrap()).await, "OK");
    }
    assert!(begun.elapsed() >= Duration::from_millis(100));
}
