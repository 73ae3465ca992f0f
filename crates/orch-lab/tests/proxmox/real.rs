//! One promise for each thing that the real one was seen to do.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{encode, world, world_with};

#[tokio::test]
async fn nobody_is_told_that_there_is_no_ticket_and_only_after_a_while() {
    let world = world_with(|settings| settings.timings.refused = Duration::from_millis(60));
    let begun = Instant::now();
    let said = world.by("x", "y").ask("GET", "/version", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (401, "No ticket"));
    assert!(begun.elapsed() >= Duration::from_millis(60));
    assert_eq!(orch_lab::ProxmoxTimings::default().refused, Duration::from_secs(3));
}

#[tokio::test]
async fn a_parameter_that_is_not_known_is_refused_by_its_name() {
    let said = world().ask("GET", "/version", &[("bogus", "1")]).await;
    let unknown = "property is not defined in schema and the schema does not allow additional properties";
    let body = json!({ "errors": { "bogus": unknown }, "message": "Parameter verification failed.\n", "data": null });
    assert_eq!((said.status, said.body), (400, body));
}

#[tokio::test]
async fn a_machine_that_is_missing_is_a_500_without_its_file() {
    let world = world();
    let words = "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist";
    for (method, path) in [("GET", "/nodes/pve1/qemu/101/config"), ("DELETE", "/nodes/pve1/qemu/101")] {
        let said = world.ask(method, path, &[]).await;
        assert_eq!((said.status, said.reason.as_str()), (500, words));
        assert_eq!(said.body, json!({ "data": null, "message": format!("{words}\n") }));
    }
}

#[tokio::test]
async fn a_clone_of_nothing_is_refused() {
    let said = world().ask("POST", "/nodes/pve1/qemu/9001/clone", &[("newid", "101")]).await;
    let words = "unable to find configuration file for VM 9001 on node 'pve1'";
    assert_eq!((said.status, said.reason.as_str()), (500, words));
}

#[tokio::test]
async fn a_running_machine_is_not_destroyed() {
    let world = world();
    world.copy(101, "web").await;
    world.start(101).await;
    let said = world.ask("DELETE", "/nodes/pve1/qemu/101", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "VM 101 is running - destroy failed"));
}

#[tokio::test]
async fn a_clone_to_a_taken_id_is_refused() {
    let world = world();
    world.copy(101, "web").await;
    let said = world.ask("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    let words = "unable to create VM 101: config file already exists";
    assert_eq!((said.status, said.reason.as_str()), (500, words));
}

#[tokio::test]
async fn two_clones_to_one_free_id_are_both_begun_and_one_of_the_tasks_fails() {
    let world = world_with(|settings| settings.timings.clone = Duration::from_millis(30));
    let pairs = [("newid", "101")];
    let clone = || world.data("POST", "/nodes/pve1/qemu/9000/clone", &pairs);
    let (first, second) = tokio::join!(clone(), clone());
    let mut ends =
        [world.end_of(first.as_str().unwrap()).await, world.end_of(second.as_str().unwrap()).await];
    ends.sort();
    assert_eq!(ends, ["OK", "unable to create VM 101: config file already exists"]);
    assert_eq!(world.get("/nodes/pve1/qemu/101/config").await["name"], "Copy-of-VM-debian-13");
}

#[tokio::test]
async fn the_next_id_is_text_and_kept_for_nobody() {
    let world = world();
    assert_eq!(world.get("/cluster/nextid").await, json!("100"));
    assert_eq!(world.get("/cluster/nextid").await, json!("100"));
    world.copy(100, "web").await;
    assert_eq!(world.get("/cluster/nextid").await, json!("101"));
}

#[tokio::test]
async fn asking_whether_a_taken_id_is_free_is_a_400() {
    let world = world();
    let said = world.ask("GET", "/cluster/nextid", &[("vmid", "9000")]).await;
    assert_eq!((said.status, &said.body["errors"]), (400, &json!({ "vmid": "VM 9000 already exists" })));
    assert_eq!(world.data("GET", "/cluster/nextid", &[("vmid", "9001")]).await, json!("9001"));
}

#[tokio::test]
async fn a_second_start_fails_in_its_task_and_a_second_stop_does_not() {
    let world = world();
    world.copy(102, "web").await;
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/102/status/stop", &[]).await, "OK");
    world.start(102).await;
    assert_eq!(world.task("POST", "/nodes/pve1/qemu/102/status/start", &[]).await, "VM 102 already running");
}

#[tokio::test]
async fn a_machine_without_agent_and_power_button_does_not_shut_down() {
    let world = world();
    world.copy(101, "web").await;
    world.data("PUT", "/nodes/pve1/qemu/101/config", &[("acpi", "0"), ("delete", "agent")]).await;
    world.start(101).await;
    let path = "/nodes/pve1/qemu/101/status/shutdown";
    assert_eq!(world.task("POST", path, &[]).await, "VM quit/powerdown failed - got timeout");
    assert_eq!(world.task("POST", path, &[("forceStop", "1")]).await, "OK");
    assert_eq!(world.get("/nodes/pve1/qemu/101/status/current").await["status"], "stopped");
}

#[tokio::test]
async fn an_agent_that_is_down_is_a_500() {
    let world = world_with(|settings| settings.timings.agent = Duration::from_hours(1));
    world.copy(101, "web").await;
    world.start(101).await;
    let path = "/nodes/pve1/qemu/101/agent/network-get-interfaces";
    let said = world.ask("GET", path, &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "QEMU guest agent is not running"));
    world.data("PUT", "/nodes/pve1/qemu/101/config", &[("delete", "agent")]).await;
    assert_eq!(world.ask("GET", path, &[]).await.reason, "No QEMU guest agent configured");
}

#[tokio::test]
async fn another_node_is_looked_up_and_not_found() {
    let said = world().ask("GET", "/nodes/pveX/qemu", &[]).await;
    assert_eq!(said.status, 500);
    assert!(said.reason.starts_with("hostname lookup 'pveX' failed "), "{}", said.reason);
}

#[tokio::test]
async fn a_wrong_token_is_said_to_be_wrong_and_a_short_one_cannot_be() {
    let world = world();
    let wrong = world.by("authorization", "PVEAPIToken=root@pam!lab=9999");
    let said = wrong.ask("GET", "/version", &[]).await;
    assert_eq!((said.status, said.reason.as_str()), (401, "invalid token value!"));
    let short = world.by("authorization", "PVEAPIToken=root@pam!l=9999");
    assert_eq!(short.ask("GET", "/version", &[]).await.status, 401);
    let said = world.ask("POST", "/access/users/root@pam/token/l", &[]).await;
    assert_eq!(
        (said.status, &said.body["errors"]["tokenid"]),
        (400, &json!("value does not match the regex pattern"))
    );
}

#[tokio::test]
async fn a_token_of_root_does_not_import_from_a_path() {
    let pairs = [("vmid", "101"), ("scsi0", "local-zfs:0,import-from=/root/x.qcow2")];
    let said = world().ask("POST", "/nodes/pve1/qemu", &pairs).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "Only root can pass arbitrary filesystem paths"));
}

#[tokio::test]
async fn a_plus_that_is_not_encoded_is_not_a_size() {
    let world = world();
    world.copy(101, "web").await;
    let mut asked = world.asked("PUT", "/nodes/pve1/qemu/101/resize", &[]);
    asked.body = b"disk=scsi0&size=+1G".to_vec();
    let said: crate::world::Said = orch_lab::Api::answer(&*world.pve, asked).await.into();
    assert_eq!(
        (said.status, &said.body["errors"]["size"]),
        (400, &json!("value does not match the regex pattern"))
    );
    let pairs = [("disk", "scsi0"), ("size", "+1G")];
    assert_eq!(world.task("PUT", "/nodes/pve1/qemu/101/resize", &pairs).await, "OK");
    let disk = world.get("/nodes/pve1/qemu/101/config").await["scsi0"].clone();
    assert!(disk.as_str().unwrap().ends_with("size=3G"), "{disk}");
}

#[tokio::test]
async fn keys_are_encoded_twice() {
    let world = world();
    world.copy(101, "web").await;
    let (path, key) = ("/nodes/pve1/qemu/101/config", "ssh-ed25519 AAAA+b/c= me@home");
    let said = world.ask("PUT", path, &[("sshkeys", key)]).await;
    let why = format!("invalid format - invalid urlencoded string: {key}\n");
    assert_eq!((said.status, &said.body["errors"]["sshkeys"]), (400, &json!(why)));
    world.data("PUT", path, &[("sshkeys", &encode(key)), ("ciuser", "me")]).await;
    world.start(101).await;
    let given = world.machines.given.lock().unwrap()[0].clone();
    assert_eq!((given.user.as_deref(), given.keys), (Some("me"), vec![key.to_owned()]));
}

#[tokio::test]
async fn a_pool_takes_an_id_that_nobody_has_without_a_word() {
    let world = world();
    world.data("POST", "/pools", &[("poolid", "orch")]).await;
    world.data("PUT", "/pools/orch", &[("vms", "4711,9000")]).await;
    let members = world.get("/pools/orch").await["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 1);
    assert_eq!(members[0]["vmid"], 9000);
}

#[tokio::test]
async fn the_cluster_knows_little_of_a_machine_until_its_node_has_reported() {
    let world = world_with(|settings| settings.timings.report = Duration::from_secs(1));
    let pairs = [("vmid", "101"), ("name", "web"), ("tags", "orch;edge"), ("scsi0", "local-zfs:4")];
    assert_eq!(world.task("POST", "/nodes/pve1/qemu", &pairs).await, "OK");
    let find = || async {
        let all = world.data("GET", "/cluster/resources", &[("type", "vm")]).await;
        all.as_array().unwrap().iter().find(|one| one["vmid"] == 101).unwrap().clone()
    };
    let early = find().await;
    let all = world.data("GET", "/cluster/resources", &[("type", "vm")]).await;
    assert!(
        all.as_array().unwrap().iter().all(|one| one["status"] == "unknown"),
        "the node was just switched on"
    );
    assert_eq!((&early["status"], &early["tags"]), (&json!("unknown"), &json!("edge;orch")));
    assert!(early.get("name").is_none() && early.get("maxmem").is_none() && early.get("maxdisk").is_none());
    let later = loop {
        let later = find().await;
        if later["status"] != "unknown" {
            break later;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!((&later["status"], &later["name"]), (&json!("stopped"), &json!("web")));
    assert_eq!((&later["maxmem"], &later["maxdisk"]), (&json!(512_u64 << 20), &json!(4_u64 << 30)));
}

#[tokio::test]
async fn a_posted_configuration_is_a_task_and_a_put_one_is_nothing() {
    let world = world();
    world.copy(101, "web").await;
    let path = "/nodes/pve1/qemu/101/config";
    assert!(world.data("POST", path, &[("memory", "256")]).await.as_str().unwrap().starts_with("UPID:pve1:"));
    assert_eq!(world.data("PUT", path, &[("cores", "2")]).await, json!(null));
}

#[tokio::test]
async fn types_are_as_mixed_as_the_real_ones() {
    let world = world();
    world.copy(101, "web").await;
    world.data("PUT", "/nodes/pve1/qemu/101/config", &[("memory", "128"), ("kvm", "off")]).await;
    let config = world.get("/nodes/pve1/qemu/101/config").await;
    assert_eq!((&config["memory"], &config["kvm"], &config["cores"]), (&json!("128"), &json!(0), &json!(1)));
    let said = world.ask("GET", "/nodes/pve1/tasks", &[]).await;
    assert_eq!(said.body["total"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_who_take_the_next_id_at_once_end_with_one_machine() {
    let world = world_with(|settings| settings.timings.clone = Duration::from_millis(100));
    let attempt = |world: crate::world::World, id: String| async move {
        let said = world.ask("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", &id)]).await;
        match said.body["data"].as_str() {
            Some(upid) => world.end_of(upid).await,
            None => said.reason,
        }
    };
    let id = world.get("/cluster/nextid").await.as_str().unwrap().to_owned();
    let tasks: Vec<_> = (0..5).map(|_| tokio::spawn(attempt(world.clone(), id.clone()))).collect();
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await.unwrap());
    }
    assert_eq!(ends.iter().filter(|end| *end == "OK").count(), 1);
    let taken = format!("unable to create VM {id}: config file already exists");
    assert_eq!(ends.iter().filter(|end| **end == taken).count(), 4);
}

#[tokio::test]
async fn a_node_alone_among_dead_ones_reads_and_does_not_write() {
    let world = world_with(|settings| settings.dead_nodes = vec!["pve2".into()]);
    assert_eq!(world.get("/nodes/pve1/qemu/9000/config").await["template"], 1);
    let said = world.ask("POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "101")]).await;
    assert_eq!((said.status, said.reason.as_str()), (500, "cluster not ready - no quorum?"));
    assert_eq!(world.get("/nodes").await[1]["status"], "offline");
}

#[tokio::test]
async fn a_call_to_a_dead_node_hangs() {
    let world = world_with(|settings| settings.dead_nodes = vec!["pve2".into()]);
    let begun = Instant::now();
    let said = world.ask("GET", "/nodes/pve2/qemu", &[]).await;
    assert_eq!(said.status, 595);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert!(orch_lab::ProxmoxTimings::default().unreachable > Duration::from_secs(20));
}
