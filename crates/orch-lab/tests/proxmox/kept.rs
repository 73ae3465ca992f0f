//! A daemon that is killed goes on where it was.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::world::{World, world_with};

fn at(path: &std::path::Path) -> World {
    let path = path.to_owned();
    world_with(|settings| settings.state = Some(path))
}

#[test]
fn everything_is_remembered_and_a_task_of_a_dead_daemon_ended_in_an_unexpected_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pve1.json");
    let first = tokio::runtime::Runtime::new().unwrap();
    let upid = first.block_on(async {
        let world = at(&path);
        world.copy(101, "web").await;
        let file = path.clone();
        let slow = world_with(|settings| {
            settings.state = Some(file);
            settings.timings.clone = Duration::from_hours(1);
        });
        let upid = slow.data("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "102")]).await;
        while slow.ask("GET", "/nodes/pve1/qemu/102/config", &[]).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        upid.as_str().unwrap().to_owned()
    });
    // Whatever still runs ends here without a word, as it does when a daemon is killed.
    first.shutdown_background();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let world = at(&path);
        assert_eq!(world.get("/nodes/pve1/qemu/101/config").await["name"], "web");
        assert_eq!(world.end_of(&upid).await, "unexpected status");
        assert_eq!(world.get("/nodes/pve1/qemu/102/config").await["lock"], "clone");
        assert_eq!(world.task("DELETE", "/nodes/pve1/qemu/102", &[]).await, "VM is locked (clone)");
        let said = world.ask("PUT", "/nodes/pve1/qemu/102/config", &[("tags", "mine")]).await;
        assert_eq!((said.status, said.reason.as_str()), (500, "VM is locked (clone)"));
        let again = world.task("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "103")]).await;
        assert_eq!(again, "OK");
    });
}

#[tokio::test]
async fn a_template_that_was_removed_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pve1.json");
    assert_eq!(at(&path).task("DELETE", "/nodes/pve1/qemu/9000", &[]).await, "OK");
    let said = at(&path).ask("GET", "/nodes/pve1/qemu/9000/config", &[]).await;
    assert_eq!(said.status, 500);
}

#[test]
fn a_state_that_is_not_one_is_said_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pve1.json");
    std::fs::write(&path, "nonsense").unwrap();
    let machines = std::sync::Arc::new(orch_lab::Paper::default());
    let mut settings = orch_lab::ProxmoxSettings::new("pve1", machines, orch_lab::Faults::default());
    settings.state = Some(path);
    let error = orch_lab::Proxmox::new(settings).err().unwrap();
    assert_eq!(error.to_string(), "what the Proxmox VE of node `pve1` remembers cannot be read");
}
