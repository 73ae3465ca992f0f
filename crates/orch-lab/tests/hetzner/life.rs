//! The life of a server, from its making to its end.

use orch_lab::{Hetzner, HetznerSettings, Machines as _};
use serde_json::{Value as Json, json};

use crate::lab::{KEY, Lab};

#[tokio::test(start_paused = true)]
async fn a_server_is_made_started_used_and_removed() {
    let lab = Lab::new();
    let key = lab
        .make("/ssh_keys", json!({"name": "me", "public_key": KEY, "labels": {"a": "b"}}))
        .await
        .id("ssh_key");
    let body = json!({
        "name": "web-1", "server_type": "cx22", "image": "debian-13", "location": "nbg1", "ssh_keys": [key.to_string()],
        "user_data": "#cloud-config\n", "labels": {"role": "web"},
    });
    let said = lab.make("/servers", body).await;
    assert_eq!(said.body["root_password"], Json::Null, "a key opens it");
    assert_eq!(
        (&said.body["server"]["status"], &said.body["server"]["locked"]),
        (&json!("initializing"), &json!(true))
    );
    assert_eq!(said.body["next_actions"][0]["command"], "start_server");
    let path = format!("/servers/{}", said.id("server"));
    assert_eq!(lab.end(said.id("action")).await["status"], "success");
    lab.end(said.body["next_actions"][0]["id"].as_u64().unwrap()).await;
    let server = lab.get(&path).await["server"].take();
    assert_eq!((&server["status"], &server["locked"]), (&json!("running"), &json!(false)));
    assert_eq!(server["public_net"]["ipv4"]["ip"], "127.0.2.1", "as the machine says");
    assert_eq!(server["location"]["name"], "nbg1");

    lab.order(&format!("{path}/actions/poweroff"), Json::Null).await;
    assert_eq!(lab.get(&path).await["server"]["status"], "off");
    lab.order(&format!("{path}/actions/reboot"), Json::Null).await;
    assert_eq!(lab.get(&path).await["server"]["status"], "off", "one that is off is not rebooted");
    let larger = json!({"server_type": "cx32", "upgrade_disk": false});
    assert_eq!(
        lab.order(&format!("{path}/actions/change_type"), larger).await["command"],
        "change_server_type"
    );
    let server = lab.get(&path).await["server"].take();
    assert_eq!((&server["server_type"]["name"], &server["primary_disk_size"]), (&json!("cx32"), &json!(40)));
    for order in ["shutdown", "poweron", "reboot", "reset", "enable_backup", "disable_backup"] {
        assert_eq!(
            lab.order(&format!("{path}/actions/{order}"), Json::Null).await["status"],
            "success",
            "{order}"
        );
    }
    assert_eq!(lab.get(&path).await["server"]["status"], "running");
    lab.order(&format!("{path}/actions/rebuild"), json!({"image": "ubuntu-24.04"})).await;
    assert_eq!(lab.get(&path).await["server"]["image"]["name"], "ubuntu-24.04");

    let deleted = lab.ask("DELETE", &path, Json::Null).await;
    assert_eq!(deleted.status, 200);
    assert_eq!(lab.ask("GET", &path, Json::Null).await.code(), (404, "not_found"), "at once");
    assert_eq!(lab.end(deleted.id("action")).await["status"], "success");
    assert_eq!(lab.get("/primary_ips").await["primary_ips"], json!([]), "its addresses went with it");
}

#[tokio::test(start_paused = true)]
async fn a_server_can_be_made_by_ids_and_left_off_and_without_addresses() {
    let lab = Lab::new();
    let network = json!({"name": "n", "ip_range": "10.0.0.0/16", "subnets": [{"type": "cloud", "network_zone": "eu-central"}]});
    let network = lab.make("/networks", network).await.id("network");
    let body = json!({
        "name": "arm", "server_type": 45, "image": 104, "datacenter": "hel1-dc2", "start_after_create": false,
        "networks": [network], "public_net": {"enable_ipv4": false, "enable_ipv6": false},
    });
    let said = lab.make("/servers", body).await;
    assert!(said.body["root_password"].is_string());
    lab.end(said.body["next_actions"][0]["id"].as_u64().unwrap()).await;
    let server = lab.get(&format!("/servers/{}", said.id("server"))).await["server"].take();
    assert_eq!((&server["status"], &server["public_net"]["ipv4"]), (&json!("off"), &Json::Null));
    assert_eq!(server["private_net"][0]["ip"], "10.0.0.2");
    assert_eq!(server["server_type"]["architecture"], "arm");
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_a_server_keeps_others_from_it() {
    let lab = Lab::new();
    let id = lab.server("one", json!({})).await;
    let stop = lab.make(&format!("/servers/{id}/actions/poweroff"), Json::Null).await.id("action");
    let next = lab.ask("POST", &format!("/servers/{id}/actions/poweron"), Json::Null).await;
    assert_eq!(next.code(), (423, "locked"));
    assert_eq!(lab.ask("DELETE", &format!("/servers/{id}"), Json::Null).await.code(), (423, "locked"));
    let labels = lab.ask("PUT", &format!("/servers/{id}"), json!({"labels": {"x": "y"}})).await;
    assert_eq!(labels.status, 200, "labels are not kept from anybody");
    lab.end(stop).await;
    assert_eq!(lab.order(&format!("/servers/{id}/actions/poweron"), Json::Null).await["status"], "success");
}

#[tokio::test(start_paused = true)]
async fn what_is_protected_is_neither_deleted_nor_rebuilt() {
    let lab = Lab::new();
    let path = format!("/servers/{}", lab.server("one", json!({})).await);
    let protect = format!("{path}/actions/change_protection");
    lab.order(&protect, json!({"delete": true, "rebuild": true})).await;
    assert_eq!(lab.get(&path).await["server"]["protection"], json!({"delete": true, "rebuild": true}));
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (423, "protected"));
    let rebuild = lab.ask("POST", &format!("{path}/actions/rebuild"), json!({"image": "debian-12"})).await;
    assert_eq!(rebuild.code(), (423, "protected"));
    lab.order(&protect, json!({"delete": false, "rebuild": false})).await;
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_make_one_name_at_once_one_does() {
    let lab = std::sync::Arc::new(Lab::new());
    let one = |lab: std::sync::Arc<Lab>| async move {
        let body = json!({"name": "same", "server_type": "cx22", "image": "debian-13"});
        lab.ask("POST", "/servers", body).await.status
    };
    let tasks: Vec<_> = (0..16).map(|_| tokio::spawn(one(lab.clone()))).collect();
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(task.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (201, &[409; 15][..]));
}

#[tokio::test(start_paused = true)]
async fn of_many_orders_to_one_server_at_once_one_is_taken() {
    let lab = std::sync::Arc::new(Lab::new());
    let path = format!("/servers/{}/actions/poweroff", lab.server("one", json!({})).await);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (lab, path) = (lab.clone(), path.clone());
            tokio::spawn(async move { lab.ask("POST", &path, Json::Null).await.status })
        })
        .collect();
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(task.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (201, &[423; 15][..]));
}

#[tokio::test(start_paused = true)]
async fn a_project_that_was_killed_goes_on_with_its_actions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("project.json");
    let machines = std::sync::Arc::new(orch_lab::Paper::default());
    let keep = |settings: &mut HetznerSettings| {
        settings.state = Some(file.clone());
        settings.machines = machines.clone();
    };
    let lab = Lab::with(keep);
    let said =
        lab.make("/servers", json!({"name": "one", "server_type": "cx22", "image": "debian-13"})).await;
    drop(lab);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "user data is nobody's business");
    let lab = Lab::with(keep);
    assert_eq!(lab.get(&format!("/actions/{}", said.id("action"))).await["action"]["status"], "running");
    assert_eq!(lab.end(said.id("action")).await["status"], "success");
    lab.end(said.body["next_actions"][0]["id"].as_u64().unwrap()).await;
    assert_eq!(lab.get(&format!("/servers/{}", said.id("server"))).await["server"]["status"], "running");
    let machine = format!("server-{}", said.id("server"));
    let deleted =
        lab.ask("DELETE", &format!("/servers/{}", said.id("server")), Json::Null).await.id("action");
    drop(lab);
    assert!(machines.address(&machine).await.is_some(), "the machine was to be removed in the background");
    let lab = Lab::with(keep);
    assert_eq!(lab.end(deleted).await["status"], "success");
    assert_eq!(machines.address(&machine).await, None);
    drop(lab);
    std::fs::write(&file, "not json").unwrap();
    let mut settings = HetznerSettings::new(machines, orch_lab::Faults::default());
    settings.state = Some(file);
    assert!(Hetzner::open(settings).is_err());
}
