//! Storages: what is on them, how much fits, and what is sent to them.

use orch_lab::Api;
use serde_json::json;

use crate::world::{Said, World, world, world_with};

/// Sends a file as a form of parts.
pub(crate) async fn upload(world: &World, content: &str, name: &str, bytes: &[u8]) -> Said {
    let mut body = Vec::new();
    for (field, value) in [("content", content.as_bytes()), ("filename", bytes)] {
        let file = if field == "filename" { format!("; filename=\"{name}\"") } else { String::new() };
        let head = format!("--mark\r\nContent-Disposition: form-data; name=\"{field}\"{file}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--mark--\r\n");
    let mut asked = world.asked("POST", "/nodes/pve1/storage/local/upload", &[]);
    asked.headers.insert("content-type".into(), "multipart/form-data; boundary=mark".into());
    asked.body = body;
    world.pve.answer(asked).await.into()
}

#[tokio::test]
async fn a_file_is_sent_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let world = world_with(|settings| settings.storages[0].folder = Some(path));
    let said = upload(&world, "iso", "seed.iso", b"\r\nnot quite an image\r\n").await;
    assert_eq!(world.end_of(said.body["data"].as_str().unwrap()).await, "OK");
    let bytes = std::fs::read(folder.path().join("template/iso/seed.iso")).unwrap();
    assert_eq!(bytes, b"\r\nnot quite an image\r\n");
    let list = world.get("/nodes/pve1/storage/local/content?content=iso").await;
    assert_eq!((&list[0]["volid"], &list[0]["size"]), (&json!("local:iso/seed.iso"), &json!(22)));
    assert_eq!(
        world.task("DELETE", "/nodes/pve1/storage/local/content/local:iso%2Fseed.iso", &[]).await,
        "OK"
    );
    assert_eq!(world.get("/nodes/pve1/storage/local/content").await, json!([]));
    assert!(!folder.path().join("template/iso/seed.iso").exists());
}

#[tokio::test]
async fn a_file_of_the_wrong_kind_is_refused() {
    let world = world();
    let said = upload(&world, "iso", "seed.txt", b"x").await;
    assert_eq!((said.status, &said.body["errors"]["filename"]), (400, &json!("wrong file extension")));
    let said = upload(&world, "snippets", "seed.yaml", b"x").await;
    assert_eq!(said.status, 400, "there is no way to send snippets");
    let said = upload(&world, "iso", "../../x.iso", b"x").await;
    assert_eq!(world.end_of(said.body["data"].as_str().unwrap()).await, "OK");
    assert_eq!(world.get("/nodes/pve1/storage/local/content").await[0]["volid"], "local:iso/x.iso");
}

#[tokio::test]
async fn a_full_storage_takes_no_more_disks() {
    let world = world_with(|settings| settings.storages[1].bytes = 6 << 30);
    let create = |vmid: &'static str| [("vmid", vmid), ("scsi0", "local-zfs:3")];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &create("101")).await, "OK");
    let end = world.task("POST", "/nodes/pve1/qemu", &create("102")).await;
    assert!(end.ends_with("zfs error: cannot create 'rpool/data/vm-102-disk-0': out of space"), "{end}");
    assert_eq!(world.ask("GET", "/nodes/pve1/qemu/102/config", &[]).await.status, 500);
    let pairs = [("disk", "scsi0"), ("size", "20G")];
    assert!(world.task("PUT", "/nodes/pve1/qemu/101/resize", &pairs).await.ends_with("out of space"));
}

#[tokio::test]
async fn a_strict_world_has_only_the_images_that_were_put_there() {
    let world = world_with(|settings| {
        settings.strict_volumes = true;
        settings.volumes.insert("local:import/known.qcow2".into(), 1 << 30);
    });
    let create = |vmid: &'static str, image: &str| {
        let disk = format!("local-zfs:0,import-from=local:import/{image}.qcow2");
        let world = world.clone();
        async move { world.task("POST", "/nodes/pve1/qemu", &[("vmid", vmid), ("scsi0", &disk)]).await }
    };
    assert_eq!(create("101", "known").await, "OK");
    let end = create("102", "other").await;
    assert!(end.ends_with("volume 'local:import/other.qcow2' does not exist"), "{end}");
    let pairs =
        [("content", "import"), ("filename", "other.qcow2"), ("url", "https://example.org/other.qcow2")];
    assert_eq!(world.task("POST", "/nodes/pve1/storage/local/download-url", &pairs).await, "OK");
    assert_eq!(create("103", "other").await, "OK");
}

#[tokio::test]
async fn storages_bridges_and_the_node_are_shown() {
    let world = world();
    assert_eq!(world.get("/nodes").await[0]["node"], "pve1");
    assert_eq!(world.get("/nodes/pve1/storage?content=images").await[0]["storage"], "local-zfs");
    assert_eq!(world.get("/storage/local").await["type"], "dir");
    assert_eq!(world.get("/nodes/pve1/network?type=bridge").await[0]["bridge_vlan_aware"], 1);
    assert_eq!(world.get("/cluster/status").await[0]["online"], 1);
    assert!(world.get("/nodes/pve1/storage/local-zfs/status").await["avail"].as_u64().unwrap() > 0);
    let said = world.ask("POST", "/nodes/pve1/qemu/9000/move_disk", &[]).await;
    assert_eq!(
        (said.status, said.reason.as_str()),
        (501, "Method 'POST /nodes/pve1/qemu/9000/move_disk' not implemented")
    );
}
