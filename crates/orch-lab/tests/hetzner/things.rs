//! Everything that is not a server.

use serde_json::{Value as Json, json};

use crate::lab::{KEY, Lab};

#[tokio::test(start_paused = true)]
async fn networks_have_subnets_routes_and_servers() {
    let lab = Lab::new();
    let id = lab.make("/networks", json!({"name": "n", "ip_range": "10.0.0.0/16"})).await.id("network");
    let path = format!("/networks/{id}");
    let server = lab.server("one", json!({})).await;
    let attach = format!("/servers/{server}/actions/attach_to_network");
    let refused = lab.ask("POST", &attach, json!({"network": id})).await;
    assert_eq!(refused.code(), (422, "no_subnet_available"));
    let subnet = json!({"type": "cloud", "network_zone": "eu-central", "ip_range": "10.0.1.0/24"});
    lab.order(&format!("{path}/actions/add_subnet"), subnet.clone()).await;
    let again = lab.ask("POST", &format!("{path}/actions/add_subnet"), subnet).await;
    assert_eq!(again.code(), (422, "invalid_input"), "subnets do not overlap");
    lab.order(&attach, json!({"network": id, "ip": "10.0.1.7"})).await;
    assert_eq!(
        lab.ask("POST", &attach, json!({"network": id})).await.code(),
        (422, "server_already_attached")
    );
    let other = lab.server("two", json!({})).await;
    let taken = json!({"network": id, "ip": "10.0.1.7"});
    let taken = lab.ask("POST", &format!("/servers/{other}/actions/attach_to_network"), taken).await;
    assert_eq!(taken.code(), (422, "ip_not_available"));
    let network = lab.get(&path).await["network"].take();
    assert_eq!(
        (&network["servers"], &network["subnets"][0]["gateway"]),
        (&json!([server]), &json!("10.0.0.1"))
    );
    let used =
        lab.ask("POST", &format!("{path}/actions/delete_subnet"), json!({"ip_range": "10.0.1.0/24"})).await;
    assert_eq!(used.code(), (422, "resource_in_use"));
    let route = json!({"destination": "10.100.1.0/24", "gateway": "10.0.1.7"});
    lab.order(&format!("{path}/actions/add_route"), route.clone()).await;
    assert_eq!(lab.get(&path).await["network"]["routes"], json!([route]));
    lab.order(&format!("{path}/actions/delete_route"), route).await;
    lab.order(&format!("/servers/{server}/actions/detach_from_network"), json!({"network": id})).await;
    lab.order(&format!("{path}/actions/delete_subnet"), json!({"ip_range": "10.0.1.0/24"})).await;
    lab.order(&format!("{path}/actions/change_ip_range"), json!({"ip_range": "10.0.0.0/12"})).await;
    lab.order(&format!("{path}/actions/change_protection"), json!({"delete": true})).await;
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (423, "protected"));
    lab.order(&format!("{path}/actions/change_protection"), json!({"delete": false})).await;
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 204);
}

#[tokio::test(start_paused = true)]
async fn a_firewall_that_is_applied_stays() {
    let lab = Lab::new();
    let server = lab.server("one", json!({"labels": {"role": "web"}})).await;
    let rule =
        json!({"direction": "in", "protocol": "tcp", "port": "22", "source_ips": ["0.0.0.0/0", "::/0"]});
    let target = json!({"type": "server", "server": {"id": server}});
    let made = lab.make("/firewalls", json!({"name": "f", "rules": [rule], "apply_to": [target]})).await;
    let path = format!("/firewalls/{}", made.id("firewall"));
    for action in made.body["actions"].as_array().unwrap() {
        lab.end(action["id"].as_u64().unwrap()).await;
    }
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (422, "resource_in_use"));
    let twice =
        lab.ask("POST", &format!("{path}/actions/apply_to_resources"), json!({"apply_to": [target]})).await;
    assert_eq!(twice.code(), (422, "firewall_already_applied"));
    let chosen = json!({"type": "label_selector", "label_selector": {"selector": "role=web"}});
    let applied =
        lab.make(&format!("{path}/actions/apply_to_resources"), json!({"apply_to": [chosen]})).await;
    lab.end(applied.body["actions"][0]["id"].as_u64().unwrap()).await;
    let shown = lab.get(&path).await["firewall"]["applied_to"].take();
    assert_eq!(shown[1]["applied_to_resources"][0]["server"]["id"], server);
    let both = json!({"remove_from": [target, chosen]});
    let removed = lab.make(&format!("{path}/actions/remove_from_resources"), both).await;
    for action in removed.body["actions"].as_array().unwrap() {
        lab.end(action["id"].as_u64().unwrap()).await;
    }
    let none = lab.make(&format!("{path}/actions/set_rules"), json!({"rules": []})).await;
    lab.end(none.body["actions"][0]["id"].as_u64().unwrap()).await;
    assert_eq!(lab.get(&path).await["firewall"]["rules"], json!([]));
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 204);
    for wrong in [
        json!({"direction": "in", "protocol": "tcp", "source_ips": ["0.0.0.0/0"]}),
        json!({"direction": "in", "protocol": "icmp", "port": "1", "source_ips": ["0.0.0.0/0"]}),
        json!({"direction": "in", "protocol": "tcp", "port": "22"}),
        json!({"direction": "in", "protocol": "tcp", "port": "9-2", "source_ips": ["0.0.0.0/0"]}),
        json!({"direction": "out", "protocol": "tcp", "port": "22", "destination_ips": ["0.0.0.0"]}),
    ] {
        let said = lab.ask("POST", "/firewalls", json!({"name": "w", "rules": [wrong]})).await;
        assert_eq!(said.code(), (422, "invalid_input"), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_placement_group_spreads_at_most_ten_servers() {
    let lab = Lab::new();
    let group =
        lab.make("/placement_groups", json!({"name": "g", "type": "spread"})).await.id("placement_group");
    let mut first = 0;
    for number in 0..10 {
        first = lab.server(&format!("s{number}"), json!({"placement_group": group})).await;
    }
    let full = json!({"name": "s10", "server_type": "cx22", "image": "debian-13", "placement_group": group});
    assert_eq!(lab.ask("POST", "/servers", full).await.code(), (409, "placement_error"));
    let path = format!("/placement_groups/{group}");
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (422, "resource_in_use"));
    lab.order(&format!("/servers/{first}/actions/remove_from_placement_group"), Json::Null).await;
    let join = format!("/servers/{first}/actions/add_to_placement_group");
    let refused = lab.ask("POST", &join, json!({"placement_group": group})).await;
    assert_eq!(refused.code(), (422, "server_not_stopped"));
    lab.order(&format!("/servers/{first}/actions/poweroff"), Json::Null).await;
    lab.order(&join, json!({"placement_group": group})).await;
    assert_eq!(lab.get(&path).await["placement_group"]["servers"].as_array().unwrap().len(), 10);
    assert_eq!(lab.get(&format!("/servers/{first}")).await["server"]["placement_group"]["id"], group);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_outlives_its_server_and_makes_another() {
    let lab = Lab::new();
    let server = lab.server("one", json!({})).await;
    let body = json!({"description": "before", "labels": {"keep": "yes"}});
    let made = lab.make(&format!("/servers/{server}/actions/create_image"), body).await;
    let image = made.id("image");
    assert_eq!(made.body["image"]["status"], "creating");
    let early = json!({"name": "two", "server_type": "cx22", "image": image});
    assert_eq!(lab.ask("POST", "/servers", early.clone()).await.code(), (409, "conflict"));
    lab.end(made.id("action")).await;
    let deleted = lab.ask("DELETE", &format!("/servers/{server}"), Json::Null).await.id("action");
    lab.end(deleted).await;
    lab.server("two", json!({"image": image})).await;
    let path = format!("/images/{image}");
    let changed = lab.ask("PUT", &path, json!({"description": "after"})).await;
    assert_eq!(changed.body["image"]["description"], "after");
    lab.order(&format!("{path}/actions/change_protection"), json!({"delete": true})).await;
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (423, "protected"));
    lab.order(&format!("{path}/actions/change_protection"), json!({"delete": false})).await;
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 204);
    assert_eq!(lab.ask("DELETE", "/images/101", Json::Null).await.status, 404, "system images are not ours");
    let backup = lab.server("three", json!({})).await;
    let backup = format!("/servers/{backup}/actions");
    let refused = lab.ask("POST", &format!("{backup}/create_image"), json!({"type": "backup"})).await;
    assert_eq!(refused.code(), (422, "invalid_input"));
    lab.order(&format!("{backup}/enable_backup"), Json::Null).await;
    assert_eq!(
        lab.order(&format!("{backup}/create_image"), json!({"type": "backup"})).await["status"],
        "success"
    );
}

#[tokio::test(start_paused = true)]
async fn keys_are_known_by_name_and_by_fingerprint() {
    let lab = Lab::new();
    let made = lab.make("/ssh_keys", json!({"name": "me", "public_key": KEY})).await;
    let fingerprint = made.body["ssh_key"]["fingerprint"].as_str().unwrap().to_owned();
    let other = json!({"name": "other", "public_key": format!("{KEY}-too")});
    assert_eq!(lab.ask("POST", "/ssh_keys", other).await.code(), (409, "uniqueness_error"), "{fingerprint}");
    let found = lab.get(&format!("/ssh_keys?fingerprint={fingerprint}")).await;
    assert_eq!(found["ssh_keys"].as_array().unwrap().len(), 1);
    let path = format!("/ssh_keys/{}", made.id("ssh_key"));
    assert_eq!(lab.ask("PUT", &path, json!({"name": "mine"})).await.body["ssh_key"]["name"], "mine");
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 204);
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (404, "not_found"));
}

#[tokio::test(start_paused = true)]
async fn volumes_and_addresses_come_and_go() {
    let lab = Lab::new();
    let server = lab.server("one", json!({})).await;
    let made =
        lab.make("/volumes", json!({"name": "v", "size": 10, "server": server, "format": "xfs"})).await;
    lab.end(made.body["next_actions"][0]["id"].as_u64().unwrap()).await;
    let path = format!("/volumes/{}", made.id("volume"));
    assert_eq!(lab.get(&format!("/servers/{server}")).await["server"]["volumes"], json!([made.id("volume")]));
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (422, "resource_in_use"));
    lab.order(&format!("{path}/actions/resize"), json!({"size": 20})).await;
    lab.order(&format!("{path}/actions/detach"), Json::Null).await;
    lab.order(&format!("{path}/actions/attach"), json!({"server": server})).await;
    lab.order(&format!("{path}/actions/detach"), Json::Null).await;
    assert_eq!(lab.get(&path).await["volume"]["size"], 20);
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 204);

    let ip = json!({"name": "i", "type": "ipv4", "assignee_type": "server", "location": "fsn1"});
    let ip = lab.make("/primary_ips", ip).await.id("primary_ip");
    let two = lab.server("two", json!({"public_net": {"ipv4": ip}})).await;
    assert_eq!(lab.get(&format!("/primary_ips/{ip}")).await["primary_ip"]["assignee_id"], two);
    let path = format!("/primary_ips/{ip}");
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.code(), (422, "must_be_unassigned"));
    let deleted = lab.ask("DELETE", &format!("/servers/{two}"), Json::Null).await.id("action");
    lab.end(deleted).await;
    assert_eq!(lab.ask("PUT", &path, json!({"auto_delete": true})).await.status, 200);
    assert_eq!(lab.ask("DELETE", &path, Json::Null).await.status, 204, "one that was not made for it stays");
}
