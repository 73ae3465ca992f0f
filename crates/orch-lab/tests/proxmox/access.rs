//! Who is let in, and who may do what.

use orch_lab::{Api, ProxmoxToken};
use serde_json::json;

use crate::world::{World, world, world_with};

async fn log_in(world: &World) -> (World, String) {
    let pairs = [("username", "root@pam"), ("password", "lab")];
    let said = world.by("x", "y").data("POST", "/access/ticket", &pairs).await;
    let cookie = format!("PVEAuthCookie={}", said["ticket"].as_str().unwrap());
    (world.by("cookie", &cookie), said["CSRFPreventionToken"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_ticket_reads_and_writes_only_with_its_second_half() {
    let world = world();
    let (mut root, csrf) = log_in(&world).await;
    assert_eq!(root.get("/version").await["release"], "9.0");
    let said = root.ask("POST", "/pools", &[("poolid", "p")]).await;
    assert_eq!((said.status, said.reason.as_str()), (401, "Permission denied - invalid csrf token"));
    root.headers.insert("csrfpreventiontoken".into(), csrf);
    root.data("POST", "/pools", &[("poolid", "p")]).await;
    let pairs = [("vmid", "101"), ("scsi0", "local-zfs:0,import-from=/root/x.qcow2")];
    assert_eq!(root.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK", "root itself may name a path");
}

#[tokio::test]
async fn a_wrong_password_and_a_forged_ticket_are_refused() {
    let world = world();
    let said = world.ask("POST", "/access/ticket", &[("username", "root@pam"), ("password", "no")]).await;
    assert_eq!((said.status, said.reason.as_str()), (401, "authentication failure"));
    let forged = world.by("cookie", "PVEAuthCookie=PVE:root@pam:FFFFFFFF::c2ln");
    assert_eq!(forged.ask("GET", "/version", &[]).await.reason, "permission denied - invalid PVE ticket");
}

#[tokio::test]
async fn a_token_is_made_used_limited_and_removed() {
    let world = world();
    let path = "/access/users/root@pam/token/orch";
    let made = world.data("POST", path, &[("privsep", "1"), ("expire", "4102444800")]).await;
    assert_eq!(made["full-tokenid"], "root@pam!orch");
    let header = format!("PVEAPIToken=root@pam!orch={}", made["value"].as_str().unwrap());
    let orch = world.by("authorization", &header);
    assert_eq!(orch.get("/access/permissions").await, json!({}));
    assert_eq!(orch.get("/nodes/pve1/qemu").await, json!([]));
    let said = orch.ask("GET", "/nodes/pve1/qemu/9000/config", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (403, "Permission check failed (/vms/9000, VM.Audit)"));
    let pairs = [("path", "/vms"), ("roles", "PVEVMAdmin"), ("tokens", "root@pam!orch")];
    world.data("PUT", "/access/acl", &pairs).await;
    assert_eq!(orch.get("/nodes/pve1/qemu/9000/config").await["template"], 1);
    let said = orch.ask("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    assert_eq!(said.reason, "Permission check failed (/storage/local-zfs, Datastore.AllocateSpace)");
    for (place, role) in
        [("/storage/local-zfs", "PVEDatastoreUser"), ("/sdn/zones/localnetwork", "PVESDNUser")]
    {
        let pairs = [("path", place), ("roles", role), ("tokens", "root@pam!orch")];
        world.data("PUT", "/access/acl", &pairs).await;
    }
    assert_eq!(orch.task("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await, "OK");
    let said = orch.ask("POST", "/access/users/root@pam/token/other", &[]).await;
    assert_eq!(said.status, 403, "a limited token makes no tokens");
    world.data("DELETE", path, &[]).await;
    assert_eq!(orch.ask("GET", "/version", &[]).await.reason, "invalid token value!");
}

#[tokio::test]
async fn a_token_that_expired_is_refused() {
    let world = world();
    let made = world.data("POST", "/access/users/root@pam/token/old", &[("expire", "1")]).await;
    let header = format!("PVEAPIToken=root@pam!old={}", made["value"].as_str().unwrap());
    let said = world.by("authorization", &header).ask("GET", "/version", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (401, "token 'old' access expired"));
}

#[tokio::test]
async fn a_role_says_less_than_administrator() {
    let user = ProxmoxToken::of_root("user", "1").with_roles(&[("/vms", "PVEVMUser")]);
    let world = world_with(|settings| settings.tokens.push(user));
    world.copy(101, "web").await;
    let user = world.by("authorization", "PVEAPIToken=root@pam!user=1");
    assert_eq!(user.task("POST", "/nodes/pve1/qemu/101/status/start", &[]).await, "OK");
    let said = user.ask("PUT", "/nodes/pve1/qemu/101/config", &[("memory", "4096")]).await;
    assert_eq!(said.reason, "Permission check failed (/vms/101, VM.Config.Memory)");
    let said = user.ask("DELETE", "/nodes/pve1/qemu/101", &[]).await;
    assert_eq!(said.reason, "Permission check failed (/vms/101, VM.Allocate)");
    let said = user.ask("GET", "/nodes/pve1/status", &[]).await;
    assert_eq!(said.reason, "Permission check failed (/nodes/pve1, Sys.Audit)");
    assert_eq!(user.get("/storage").await, json!([]));
}

#[tokio::test]
async fn a_token_of_root_does_not_skip_locks() {
    let world = world();
    world.copy(101, "web").await;
    let said = world.ask("DELETE", "/nodes/pve1/qemu/101", &[("skiplock", "1")]).await;
    assert_eq!(
        (said.status, &said.body["errors"]["skiplock"]),
        (400, &json!("Only root may use this option."))
    );
}

#[tokio::test]
async fn json_bodies_are_read_as_forms_are() {
    let world = world();
    let mut asked = world.asked("POST", "/nodes/pve1/qemu/9000/clone", &[]);
    asked.headers.insert("content-type".into(), "application/json".into());
    asked.body = br#"{"newid": 101, "full": true, "name": "web"}"#.to_vec();
    let said: crate::world::Said = world.pve.answer(asked).await.into();
    assert_eq!(world.end_of(said.body["data"].as_str().unwrap()).await, "OK");
}
