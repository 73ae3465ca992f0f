//! What is left on hosts is found and named.

use std::collections::BTreeSet;
use std::fs;

use orch_providers::api::Method;
use serde_json::json;

use super::home::{Home, on_each};
use crate::common::node;

#[test]
fn what_is_left_of_a_machine_that_was_destroyed_is_named() {
    let Some(home) = Home::with_nodes(&[&node("a")]) else { return };
    let run = |host: &str, verb: &str| home.orch(&format!("{verb} -M lab -H {host}"));
    on_each(|host| {
        let people = home.people(host);
        for json in ["", " --json"] {
            run(host, "create").ends_with(0);
            let left = if host == "mother" {
                let uuid = people.machine("lab-a").uuid.unwrap();
                let disc = format!("orch-{uuid}-00000000.iso");
                put_disc(&home, &disc);
                // Whoever destroys the machine may not remove it.
                home.lab
                    .orch("lab fault -H mother no-privilege --method DELETE --path /content/")
                    .ends_with(0);
                disc
            } else {
                let labels = json!({ "orch-site": "lab", "orch-manifest": "lab", "orch-host": "cloud" });
                let name = if json.is_empty() { "left-behind" } else { "left-again" };
                drop(people.send(Method::Post, "/firewalls", &json!({ "name": name, "labels": labels })));
                name.to_owned()
            };
            let told = run(host, &format!("destroy --yes{json}")).ends_with(2).says(&left);
            if !json.is_empty() {
                let found = told.json()["left"]["found"].clone();
                assert!(found.to_string().contains(&left), "{host}: {found}");
                told.every_node_is("changed");
            }
            assert_eq!(people.machines(), [], "{host}");
            if host == "mother" {
                home.lab.orch("lab fault -H mother --clear").ends_with(0);
                let disc = people.on_node(&format!("/storage/local/content/local:iso%2F{left}"));
                assert_eq!(people.ask(Method::Delete, &disc, None).0, 200);
            } else {
                let all = people.get("/firewalls")["firewalls"].clone();
                let it = all
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|firewall| firewall["name"] == *left)
                    .unwrap()
                    .clone();
                let (status, _) = people.ask(Method::Delete, &format!("/firewalls/{}", it["id"]), None);
                assert_eq!(status, 204);
            }
            run(host, "destroy --yes").ends_with(0);
        }
    });
    home.down();
}

/// Uploads a disc by hand.
fn put_disc(home: &Home, name: &str) {
    let people = home.people("mother");
    let part =
        |head: &str, body: &str| format!("--x\r\ncontent-disposition: form-data; {head}\r\n\r\n{body}\r\n");
    let body = part("name=\"content\"", "iso")
        + &part(&format!("name=\"filename\"; filename=\"{name}\""), "nothing")
        + "--x--\r\n";
    let path = people.on_node("/storage/local/upload");
    let (status, answer) =
        people.ask(Method::Post, &path, Some(("multipart/form-data; boundary=x", body.into_bytes())));
    assert_eq!(status, 200, "{answer}");
    crate::common::wait_until("the disc is there", || {
        people.get(&people.on_node("/storage/local/content?content=iso")).to_string().contains(name)
    });
}

#[test]
fn machines_of_a_manifest_that_is_gone_are_listed_and_nothing_else_is() {
    let Some(home) = Home::with_nodes(&[&node("a"), &node("b")]) else { return };
    on_each(|host| home.people(host).put_stranger("a-stranger", "10001"));
    home.orch("status --orphans").ends_with(0).says("nothing bears the mark of site lab");
    on_each(|host| {
        home.orch(&format!("create -M lab -H {host}")).ends_with(0);
    });
    home.orch("status --orphans").ends_with(0);
    // A node that the manifest has no more, and then a manifest that the site has no more.
    let manifest = fs::read_to_string(home.lab.site.join("manifests/lab.yaml")).unwrap();
    let shorter: Vec<&str> = manifest.lines().filter(|line| !line.contains("name: b,")).collect();
    home.lab.write("manifests/lab.yaml", &shorter.join("\n"));
    let found = |words: &str| {
        let told = home.orch(&format!("{words} --json")).ends_with(2).json();
        let one = |thing: &serde_json::Value| {
            format!("{} {}", thing["host"].as_str().unwrap(), thing["name"].as_str().unwrap())
        };
        let machines = told["found"].as_array().unwrap().iter().filter(|thing| thing["kind"] == "machine");
        machines.map(one).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(found("status --orphans"), ["cloud lab-b", "mother lab-b"]);
    fs::remove_file(home.lab.site.join("manifests/lab.yaml")).unwrap();
    assert_eq!(found("status --orphans"), ["cloud lab-a", "cloud lab-b", "mother lab-a", "mother lab-b"]);
    assert_eq!(found("status --orphans -H cloud"), ["cloud lab-a", "cloud lab-b"]);
    home.orch("status --orphans").ends_with(2).says("machine `lab-a`").says("on `mother`, of lab.a");
    home.lab.write("manifests/lab.yaml", &manifest);
    on_each(|host| {
        home.orch(&format!("destroy -M lab -H {host} --yes")).ends_with(0);
        assert_eq!(home.people(host).machines().len(), 1, "the stranger is there");
    });
    home.orch("status --orphans").ends_with(0);
    home.down();
}
