//! What a site has beside servers: made once, mended where it is ours, left alone where it is not.

use orch_lab::{Fault, Rule};
use orch_run::{Owner, Pin, Provider as _};
use serde_json::{Value as Json, json};

use crate::project::{Project, create, destroy, host};

const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

fn walled() -> Project {
    Project::with(|with| {
        with.setup = |setup| {
            setup.hetzner.firewall = Some("orch-base".parse().unwrap());
            setup.hetzner.networks = vec!["10.10.0.0/16".parse().unwrap(), "10.20.0.0/16".parse().unwrap()];
        };
    })
}

fn names(answer: &Json, list: &str) -> Vec<String> {
    let all = answer[list].as_array().unwrap();
    all.iter().map(|thing| thing["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn key_networks_and_firewall_are_made_once_and_servers_are_behind_them() {
    let project = walled();
    let provider = project.provider();
    let orders = ["web-1", "web-2", "web-3"].map(create);
    let permit = project.permit();
    let [first, second, third] = &orders;
    let (a, b, c) = tokio::join!(
        provider.apply(first, &permit),
        provider.apply(second, &permit),
        provider.apply(third, &permit)
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok(), "{a:?} {b:?} {c:?}");
    project.apply(&create("web-4")).await.unwrap();
    for (list, path) in [("ssh_keys", "/v1/ssh_keys"), ("firewalls", "/v1/firewalls")] {
        assert_eq!(project.get(&format!("/{list}")).await[list].as_array().unwrap().len(), 1);
        assert_eq!(project.asked("POST", path), 1, "{list}");
    }
    let networks = project.get("/networks").await;
    assert_eq!(
        names(&networks, "networks"),
        ["orch-conformance-10-10-0-0-16", "orch-conformance-10-20-0-0-16"]
    );
    assert_eq!(networks["networks"][0]["subnets"][0]["network_zone"], "eu-central");
    let id = project.only(first).await.id;
    let server = project.get(&format!("/servers/{id}")).await["server"].clone();
    assert_eq!(server["private_net"].as_array().unwrap().len(), 2);
    assert_eq!(server["public_net"]["firewalls"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_about_a_key_a_network_or_a_firewall_doubles_nothing() {
    for path in ["/ssh_keys", "/networks", "/firewalls"] {
        let project = walled();
        project.fault(Rule { times: Some(1), ..Rule::always(Fault::CutAnswer).on("POST", path) });
        project.apply(&create("web")).await.unwrap();
        for (list, count) in [("ssh_keys", 1), ("networks", 2), ("firewalls", 1)] {
            let there = project.get(&format!("/{list}")).await[list].as_array().unwrap().len();
            assert_eq!(there, count, "{list} after a lost answer to POST {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_somebody_else_put_there_is_used() {
    let project = Project::new();
    project.apply(&create("web-1")).await.unwrap();
    let key = project.get("/ssh_keys").await["ssh_keys"][0].clone();
    let text = key["public_key"].as_str().unwrap().to_owned();
    project.ask("DELETE", &format!("/ssh_keys/{}", key["id"]), &Json::Null).await;
    project.put_there("/ssh_keys", &json!({ "name": "mine", "public_key": format!("{text} me@here") })).await;
    project.apply(&create("web-2")).await.unwrap();
    assert_eq!(names(&project.get("/ssh_keys").await, "ssh_keys"), ["mine"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firewall_of_ours_is_mended_and_one_of_a_strangers_is_used_as_it_is() {
    let open = json!([
        { "direction": "in", "protocol": "tcp", "port": "1-65535", "source_ips": EVERYWHERE }
    ]);
    for (labels, is_ours) in [(json!({ "orch-site": "conformance" }), true), (json!({}), false)] {
        let project = walled();
        let body = json!({ "name": "orch-base", "labels": labels, "rules": open });
        let made = project.put_there("/firewalls", &body).await;
        let id = made["firewall"]["id"].clone();
        let before = project.get(&format!("/firewalls/{id}")).await["firewall"]["rules"].clone();
        project.apply(&create("web")).await.unwrap();
        let firewall = project.get(&format!("/firewalls/{id}")).await["firewall"].clone();
        let ports: Vec<_> =
            firewall["rules"].as_array().unwrap().iter().map(|rule| rule["port"].clone()).collect();
        if is_ours {
            assert_eq!(ports, [json!("22"), Json::Null], "SSH and ICMP, and nothing else");
        } else {
            assert_eq!(firewall["rules"], before);
        }
        assert_eq!(firewall["applied_to"].as_array().unwrap().len(), 1, "the server stands behind it");
        project.calls().reset();
        project.apply(&create("web-2")).await.unwrap();
        assert_eq!(project.asked("POST", "set_rules"), 0, "what is as it should be is not mended again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firewall_of_ours_lets_through_what_nodes_answer_at_and_shuts_off_nobody() {
    let project = walled();
    let moved = create("web-1");
    project.apply(&moved).await.unwrap();
    let applied = Some(orch_plan::Applied::Digest(orch_model::Digest::of_bytes(b"x")));
    let ssh_port = Some(2222);
    let pin = Pin { identity: moved.identity.clone(), uuid: moved.uuid, keys: None, applied, ssh_port };
    project.provider().pin(&pin, &project.permit()).await.unwrap();
    let ports = async || {
        let firewalls = project.get("/firewalls").await;
        let rules = firewalls["firewalls"][0]["rules"].as_array().unwrap().clone();
        rules.iter().filter_map(|rule| Some(rule["port"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    let other = project.provider_with(|setup| {
        setup.ssh_ports.insert("web".parse().unwrap(), 2022);
    });
    other.apply(&create("web-2"), &project.permit()).await.unwrap();
    assert_eq!(ports().await, ["22", "2022", "2222"], "what it is told, and what is written on servers");
    project.apply(&create("web-3")).await.unwrap();
    assert_eq!(ports().await, ["22", "2222"], "what nobody answers at is shut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_of_another_range_under_our_name_is_refused() {
    let project = walled();
    let body = json!({ "name": "orch-conformance-10-10-0-0-16", "ip_range": "10.99.0.0/16" });
    project.put_there("/networks", &body).await;
    let refused = project.apply(&create("web")).await.unwrap_err();
    assert!(refused.to_string().contains("has the range 10.99.0.0/16"), "{refused}");
    let subnetless = walled();
    let body = json!({
        "name": "orch-conformance-10-10-0-0-16", "ip_range": "10.10.0.0/16", "labels": { "orch-site": "conformance" },
    });
    subnetless.put_there("/networks", &body).await;
    subnetless.fault(Rule { times: Some(1), ..Rule::always(Fault::CutAnswer).on("POST", "add_subnet") });
    subnetless.apply(&create("web")).await.unwrap();
    assert_eq!(subnetless.asked("POST", "add_subnet"), 1, "one of ours that lacks its subnet is given it");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_kept_apart_in_groups_that_go_with_their_last_server() {
    let project = Project::with(|with| with.setup = |setup| setup.hetzner.spread = true);
    let provider = project.provider();
    let mut orders = Vec::new();
    let mut making = tokio::task::JoinSet::new();
    for number in 1..=12 {
        let order = create(&format!("web-{number}"));
        orders.push(order.clone());
        let (provider, permit) = (provider.clone(), project.permit());
        making.spawn(async move { provider.apply(&order, &permit).await.unwrap() });
    }
    making.join_all().await;
    let groups = async || {
        let groups = project.get("/placement_groups").await["placement_groups"].clone();
        let sizes = groups.as_array().unwrap().iter().map(|group| group["servers"].as_array().unwrap().len());
        sizes.collect::<Vec<_>>()
    };
    assert_eq!(groups().await, [10, 2], "a group takes no more than ten");
    let machines = project.machines().await;
    for order in &orders {
        let machine = machines.iter().find(|machine| machine.marks == Some(order.marks())).unwrap();
        project.apply(&destroy(order, machine)).await.unwrap();
    }
    assert_eq!(groups().await, [0_usize; 0]);
    let of = Owner { host: host(), site: "conformance".parse().unwrap(), manifest: None };
    let kinds: Vec<String> =
        provider.belongings(&of).await.unwrap().into_iter().map(|one| one.kind).collect();
    assert_eq!(kinds, ["ssh key"], "what is there for all of the site stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_of_a_site_is_listed_and_nothing_of_others() {
    let project = Project::with(|with| {
        with.setup = |setup| {
            setup.hetzner.spread = true;
            setup.hetzner.firewall = Some("orch-base".parse().unwrap());
            setup.hetzner.networks = vec!["10.10.0.0/16".parse().unwrap()];
        };
    });
    project.put_stranger("a-stranger").await;
    project.apply(&create("web")).await.unwrap();
    let volume =
        json!({ "name": "data", "size": 10, "location": "nbg1", "labels": { "orch-site": "conformance" } });
    project.put_there("/volumes", &volume).await;
    let list = async |manifest: Option<&str>| {
        let manifest = manifest.map(|name| name.parse().unwrap());
        let of = Owner { host: host(), site: "conformance".parse().unwrap(), manifest };
        let all = project.provider().belongings(&of).await.unwrap();
        all.into_iter().map(|one| format!("{} {}", one.kind, one.name)).collect::<Vec<_>>()
    };
    let all = list(None).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!(all[0], "machine orch-conformance-web");
    assert!(all[1].starts_with("ssh key orch-conformance-"));
    assert_eq!(
        all[2..5],
        [
            "network orch-conformance-10-10-0-0-16",
            "firewall orch-base",
            "placement group orch-conformance-orch-conformance-1"
        ]
    );
    assert_eq!(all[5], "volume data");
    assert_eq!(list(Some("orch-conformance")).await, [all[0].clone(), all[4].clone()]);
    assert!(list(Some("other")).await.is_empty());
}
