//! Whole lives of machines, as provisioning tools lead them.

use orch_lab::Machines;
use serde_json::json;

use crate::world::{world, world_with};

#[tokio::test]
async fn a_machine_is_made_from_an_image_started_found_and_removed_without_a_trace() {
    let world = world();
    let pairs = [
        ("vmid", "150"),
        ("name", "web01"),
        ("memory", "1024"),
        ("cores", "2"),
        ("scsi0", "local-zfs:0,import-from=local:import/debian-13.qcow2,discard=on"),
        ("ide2", "local-zfs:cloudinit"),
        ("net0", "virtio,bridge=vmbr0"),
        ("agent", "1"),
        ("boot", "order=scsi0"),
        ("tags", "orch-uuid.1;orch-node.web"),
        ("description", "made by a test"),
        ("start", "1"),
    ];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK");
    let config = world.get("/nodes/pve1/qemu/150/config").await;
    assert_eq!(config["scsi0"], "local-zfs:vm-150-disk-0,discard=on,size=2G");
    assert_eq!(config["ide2"], "local-zfs:vm-150-cloudinit,media=cdrom,size=4M");
    let mac = config["net0"].as_str().unwrap().strip_prefix("virtio=").unwrap()[..17].to_owned();
    assert!(mac.starts_with("BC:24:11:"));
    let wanted = world.machines.made.lock().unwrap()[0].clone();
    assert_eq!((wanted.id.as_str(), wanted.image.as_str()), ("150", "local:import/debian-13.qcow2"));
    assert_eq!((wanted.size.cores, wanted.size.memory, wanted.size.disk), (2, 1024, 2));
    let said = world.get("/nodes/pve1/qemu/150/agent/network-get-interfaces").await;
    let cards = said["result"].as_array().unwrap();
    assert_eq!(
        cards.iter().map(|card| card["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["lo", "docker0", "eth0"]
    );
    let own = cards.iter().find(|card| card["hardware-address"] == mac.to_lowercase()).unwrap();
    assert_eq!(own["ip-addresses"][0]["ip-address"], "127.0.2.1");
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/150/status/shutdown", &[]).await, "OK");
    let pairs = [("purge", "1"), ("destroy-unreferenced-disks", "1")];
    assert_eq!(world.task("DELETE", "/nodes/pve1/qemu/150", &pairs).await, "OK");
    assert_eq!(
        world.data("GET", "/nodes/pve1/storage/local-zfs/content", &[("vmid", "150")]).await,
        json!([])
    );
    assert_eq!(world.ask("GET", "/nodes/pve1/qemu/150/config", &[]).await.status, 500);
}

#[tokio::test]
async fn a_linked_clone_stands_on_its_template_and_a_full_one_by_itself() {
    let world = world();
    world.copy(101, "linked").await;
    let pairs = [("newid", "102"), ("name", "full"), ("full", "1"), ("storage", "local-zfs")];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/9000/clone", &pairs).await, "OK");
    let disk = |vmid: u32| {
        let world = world.clone();
        async move { world.get(&format!("/nodes/pve1/qemu/{vmid}/config")).await["scsi0"].clone() }
    };
    assert_eq!(disk(101).await, "local-zfs:base-9000-disk-0/vm-101-disk-0,size=2G");
    assert_eq!(disk(102).await, "local-zfs:vm-102-disk-0,size=2G");
    let said = world.ask("DELETE", "/nodes/pve1/qemu/9000", &[]).await;
    assert_eq!(said.reason, "base volume 'local-zfs:base-9000-disk-0' is still in use by linked clones");
    let pairs = [("newid", "103"), ("storage", "local-zfs")];
    let said = world.ask("POST", "/nodes/pve1/qemu/9000/clone", &pairs).await;
    assert_eq!(said.reason, "parameter 'storage' not allowed for linked clones");
    assert_eq!(world.task("DELETE", "/nodes/pve1/qemu/101", &[]).await, "OK");
    assert_eq!(world.task("DELETE", "/nodes/pve1/qemu/9000", &[]).await, "OK");
}

#[tokio::test]
async fn a_machine_becomes_a_template_and_is_not_started() {
    let world = world();
    world.copy(101, "web").await;
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/template", &[]).await, "OK");
    assert_eq!(world.get("/nodes/pve1/qemu/101/config").await["template"], 1);
    let said = world.ask("POST", "/nodes/pve1/qemu/101/status/start", &[]).await;
    assert_eq!(said.reason, "you can't start a vm if it's a template");
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/clone", &[("newid", "102")]).await, "OK");
}

#[tokio::test]
async fn a_disk_does_not_shrink() {
    let world = world();
    world.copy(101, "web").await;
    let said = world.ask("PUT", "/nodes/pve1/qemu/101/resize", &[("disk", "scsi0"), ("size", "1G")]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "shrinking disks is not supported"));
}

#[tokio::test]
async fn what_a_running_machine_cannot_take_waits_for_its_next_start() {
    let world = world();
    world.copy(101, "web").await;
    world.start(101).await;
    let path = "/nodes/pve1/qemu/101/config";
    world.data("PUT", path, &[("memory", "2048"), ("tags", "new")]).await;
    let current = world.data("GET", path, &[("current", "1")]).await;
    assert_eq!((&current["memory"], &current["tags"]), (&json!("512"), &json!("new")));
    assert_eq!(world.get(path).await["memory"], "2048");
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/status/reboot", &[]).await, "OK");
    assert_eq!(world.data("GET", path, &[("current", "1")]).await["memory"], "2048");
}

#[tokio::test]
async fn a_configuration_that_changed_meanwhile_is_not_overwritten() {
    let world = world();
    world.copy(101, "web").await;
    let path = "/nodes/pve1/qemu/101/config";
    let digest = world.get(path).await["digest"].as_str().unwrap().to_owned();
    world.data("PUT", path, &[("tags", "a"), ("digest", &digest)]).await;
    let said = world.ask("PUT", path, &[("tags", "b"), ("digest", &digest)]).await;
    assert_eq!(said.reason, "checksum mismatch (file change by other user?)");
}

#[tokio::test]
async fn a_machine_keeps_no_more_memory_than_it_has() {
    let world = world();
    let path = "/nodes/pve1/qemu/101/config";
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &[("vmid", "101"), ("memory", "2048")]).await, "OK");
    world.data("PUT", path, &[("balloon", "1024")]).await;
    for pairs in
        [&[("memory", "512")][..], &[("memory", "512"), ("delete", "balloon")], &[("balloon", "4096")]]
    {
        let said = world.ask("PUT", path, pairs).await;
        assert_eq!(said.reason, "balloon value too large (must be smaller than assigned memory)");
    }
    world.data("PUT", path, &[("memory", "512"), ("balloon", "512")]).await;
}

#[tokio::test]
async fn a_disk_that_is_taken_out_is_kept_and_leaks_unless_somebody_looks() {
    let world = world();
    let pairs = [("vmid", "101"), ("scsi0", "local-zfs:1"), ("scsi1", "local-zfs:1")];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK");
    let path = "/nodes/pve1/qemu/101/config";
    world.data("PUT", path, &[("delete", "scsi1")]).await;
    assert_eq!(world.get(path).await["unused0"], "local-zfs:vm-101-disk-1");
    world.data("PUT", path, &[("delete", "unused0")]).await;
    let left = world.get("/nodes/pve1/storage/local-zfs/content?vmid=101").await;
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

#[tokio::test]
async fn a_node_starts_no_more_than_fits() {
    let world = world_with(|settings| settings.memory = 1 << 30);
    for vmid in [101, 102, 103] {
        world.copy(vmid, "web").await;
    }
    world.start(101).await;
    world.start(102).await;
    let end = world.task("POST", "/nodes/pve1/qemu/103/status/start", &[]).await;
    assert!(end.contains("Cannot allocate memory"), "{end}");
    world
        .data("PUT", "/nodes/pve1/qemu/103/config", &[("net0", "virtio,bridge=vmbr9"), ("memory", "0")])
        .await;
    let end = world.task("POST", "/nodes/pve1/qemu/103/status/start", &[]).await;
    assert_eq!(end, "bridge 'vmbr9' does not exist");
}

#[tokio::test]
async fn a_snapshot_brings_a_configuration_back() {
    let world = world();
    world.copy(101, "web").await;
    let path = "/nodes/pve1/qemu/101/snapshot";
    assert_eq!(world.task("POST", path, &[("snapname", "before")]).await, "OK");
    world.data("PUT", "/nodes/pve1/qemu/101/config", &[("tags", "after")]).await;
    assert_eq!(world.get(path).await.as_array().unwrap().len(), 2);
    assert_eq!(world.task("POST", &format!("{path}/before/rollback"), &[]).await, "OK");
    assert!(world.get("/nodes/pve1/qemu/101/config").await.get("tags").is_none());
    assert_eq!(world.task("DELETE", &format!("{path}/before"), &[]).await, "OK");
}

#[tokio::test]
async fn a_machine_that_switches_itself_off_is_off_and_one_that_runs_unknown_to_it_is_on() {
    let world = world();
    world.copy(101, "web").await;
    world.start(101).await;
    let status = || async { world.get("/nodes/pve1/qemu/101/status/current").await["status"].clone() };
    assert_eq!(status().await, "running");
    world.machines.stop("101").await.unwrap();
    assert_eq!(status().await, "stopped");
    let first = world.machines.given.lock().unwrap()[0].clone();
    world.machines.start("101", &first).await.unwrap();
    assert_eq!(status().await, "running");
}

#[tokio::test]
async fn a_medium_that_is_known_by_name_alone_starts_and_one_that_is_not_does_not() {
    let world = world_with(|settings| {
        settings.volumes.insert("local:iso/debian.iso".into(), 1 << 20);
    });
    let pairs = [("vmid", "101"), ("ide2", "local:iso/debian.iso,media=cdrom")];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK");
    world.start(101).await;
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await, "OK");
    assert_eq!(world.task("DELETE", "/nodes/pve1/storage/local/content/iso/debian.iso", &[]).await, "OK");
    let end = world.task("POST", "/nodes/pve1/qemu/101/status/start", &[]).await;
    assert_eq!(end, "volume 'local:iso/debian.iso' does not exist");
}
