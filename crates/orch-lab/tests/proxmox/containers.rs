//! Containers, where they differ from virtual machines.

use serde_json::json;

use crate::world::world;

#[tokio::test]
async fn a_container_lives_as_a_machine_does() {
    let world = world();
    let pairs = [
        ("vmid", "200"),
        ("ostemplate", "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"),
        ("hostname", "box"),
        ("rootfs", "local-zfs:8"),
        ("memory", "256"),
        ("net0", "name=eth0,bridge=vmbr0,ip=dhcp"),
        ("ssh-public-keys", "ssh-ed25519 AAAA me\n"),
        ("unprivileged", "1"),
    ];
    assert_eq!(world.task("POST", "/nodes/pve1/lxc", &pairs).await, "OK");
    let config = world.get("/nodes/pve1/lxc/200/config").await;
    assert_eq!(
        (&config["memory"], &config["rootfs"]),
        (&json!(256), &json!("local-zfs:subvol-200-disk-0,size=8G"))
    );
    assert!(config["net0"].as_str().unwrap().contains(",hwaddr=BC:24:11:"));
    let said = world.ask("POST", "/nodes/pve1/lxc/200/status/stop", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "CT 200 not running"));
    assert_eq!(world.task("POST", "/nodes/pve1/lxc/200/status/start", &[]).await, "OK");
    let said = world.ask("POST", "/nodes/pve1/lxc/200/status/start", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "CT 200 already running"));
    let given = world.machines.given.lock().unwrap()[0].clone();
    assert_eq!((given.hostname.as_str(), given.keys), ("box", vec!["ssh-ed25519 AAAA me".to_owned()]));
    assert!(world.machines.made.lock().unwrap()[0].is_container);
    let cards = world.get("/nodes/pve1/lxc/200/interfaces").await;
    assert_eq!(cards[1]["inet"], "127.0.2.1/24");
    let pairs = [("disk", "rootfs"), ("size", "+2G")];
    assert_eq!(world.task("PUT", "/nodes/pve1/lxc/200/resize", &pairs).await, "OK");
    assert_eq!(world.task("POST", "/nodes/pve1/lxc/200/status/shutdown", &[]).await, "OK");
    let pairs = [("newid", "201"), ("hostname", "copy"), ("full", "1")];
    assert_eq!(world.task("POST", "/nodes/pve1/lxc/200/clone", &pairs).await, "OK");
    assert_eq!(world.get("/nodes/pve1/lxc/201/config").await["hostname"], "copy");
    for vmid in [200, 201] {
        assert_eq!(world.task("DELETE", &format!("/nodes/pve1/lxc/{vmid}"), &[("purge", "1")]).await, "OK");
    }
    let said = world.ask("GET", "/nodes/pve1/lxc/200/config", &[]).await;
    assert_eq!(said.reason, "Configuration file 'nodes/pve1/lxc/200.conf' does not exist");
}

#[tokio::test]
async fn a_container_is_no_virtual_machine() {
    let world = world();
    assert_eq!(world.ask("GET", "/nodes/pve1/lxc/9000/config", &[]).await.status, 500);
    let said = world.ask("POST", "/nodes/pve1/lxc", &[("vmid", "200")]).await;
    let missing = "property is missing and it is not optional";
    assert_eq!((said.status, &said.body["errors"]["ostemplate"]), (400, &json!(missing)));
}
