//! Parameters are checked against the published description of the API, where it is at hand.

use std::path::PathBuf;

use serde_json::json;

use crate::world::{World, world, world_with};

/// A world that has read the description, if there is one.
pub(crate) fn described() -> Option<World> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder =
        std::env::var_os("ORCH_API_DESCRIPTIONS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let file = folder.join("pve-api-9.0.3.json");
    if !file.exists() {
        eprintln!("skipped: the description of the Proxmox VE API is not at hand");
        return None;
    }
    Some(world_with(|settings| settings.description = Some(file)))
}

async fn refused(world: &World, method: &str, path: &str, pairs: &[(&str, &str)], name: &str, why: &str) {
    let said = world.ask(method, path, pairs).await;
    assert_eq!((said.status, &said.body["errors"][name]), (400, &json!(why)), "{said:?}");
}

#[tokio::test]
async fn every_way_to_be_wrong_is_told_by_name() {
    let worlds = [Some(world()), described()];
    for world in worlds.iter().flatten() {
        let (create, clone) = ("/nodes/pve1/qemu", "/nodes/pve1/qemu/9000/clone");
        refused(world, "POST", clone, &[], "newid", "property is missing and it is not optional").await;
        refused(world, "POST", clone, &[("newid", "x")], "newid", "type check ('integer') failed - got 'x'")
            .await;
        refused(world, "POST", clone, &[("newid", "99")], "newid", "value must have a minimum value of 100")
            .await;
        let pairs = [("newid", "101"), ("full", "maybe")];
        refused(world, "POST", clone, &pairs, "full", "type check ('boolean') failed - got 'maybe'").await;
        let pairs = [("newid", "101"), ("name", "no_underscores")];
        let why = "invalid format - value does not look like a valid DNS name\n";
        refused(world, "POST", clone, &pairs, "name", why).await;
        let pairs = [("vmid", "101"), ("tags", "orch=1")];
        refused(world, "POST", create, &pairs, "tags", "invalid format - invalid characters in tag\n").await;
        let unknown = "property is not defined in schema and the schema does not allow additional properties";
        refused(world, "POST", create, &[("vmid", "101"), ("scsix", "1")], "scsix", unknown).await;
        refused(
            world,
            "GET",
            "/nodes/pve1/qemu/x/config",
            &[],
            "vmid",
            "type check ('integer') failed - got 'x'",
        )
        .await;
    }
}

#[tokio::test]
async fn the_description_knows_choices_and_lengths() {
    let Some(world) = described() else { return };
    let why = "value 'vhd' does not have a value in the enumeration 'raw, qcow2, vmdk'";
    let pairs = [("newid", "101"), ("full", "1"), ("format", "vhd")];
    refused(&world, "POST", "/nodes/pve1/qemu/9000/clone", &pairs, "format", why).await;
    let pairs = [("vmid", "101"), ("cores", "0")];
    refused(&world, "POST", "/nodes/pve1/qemu", &pairs, "cores", "value must have a minimum value of 1")
        .await;
    let digest = "x".repeat(41);
    let pairs = [("tags", "a"), ("digest", digest.as_str())];
    let why = "value may only be 40 characters long";
    refused(&world, "PUT", "/nodes/pve1/qemu/9000/config", &pairs, "digest", why).await;
}

#[tokio::test]
async fn a_whole_life_fits_the_description() {
    let Some(world) = described() else { return };
    let pairs = [
        ("vmid", "101"),
        ("name", "web"),
        ("scsi0", "local-zfs:0,import-from=local:import/debian.qcow2"),
        ("scsi13", "local-zfs:1"),
        ("net0", "virtio,bridge=vmbr0"),
        ("ipconfig0", "ip=dhcp"),
        ("ide2", "local-zfs:cloudinit"),
        ("tags", "orch-node.web;orch-uuid.0"),
        ("agent", "1"),
    ];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK");
    world.start(101).await;
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/101/status/stop", &[]).await, "OK");
    assert_eq!(world.task("DELETE", "/nodes/pve1/qemu/101", &[("purge", "1")]).await, "OK");
    for path in [
        "/version",
        "/cluster/resources",
        "/cluster/nextid",
        "/nodes/pve1/tasks",
        "/access/permissions",
        "/pools",
    ] {
        world.get(path).await;
    }
}
