//! The life of a machine of a cloud: made, started, stopped, started again, removed.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use orch_lab::{Machines, Power, Size};
use orch_model::UserName;
use orch_model::pull::Enrolment;
use orch_providers::cloud::{FirstBoot, FirstKey, user_data};
use serde_json::json;

use super::scene::{Scene, answers, cloud_config, pair, shown_key, wanted};
use crate::common::{Need, lacks, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_shows_the_host_key_it_was_given_from_the_first_answer_on_and_nobody_answers_before() {
    if lacks(&[Need::Root, Need::Ssh, Need::Program("ssh-keyscan")]) {
        return;
    }
    let scene = Scene::new();
    let (machines, at) = scene.machines();
    let at = IpAddr::V4(at);
    let host_key = pair(&scene.path.join("host_key"));
    machines.make(&wanted("1")).await.unwrap();
    assert_eq!((machines.power("1").await, machines.address("1").await), (Power::Off, None));
    assert!(!answers(at, 22));
    // Somebody who cannot wait: whatever he is ever shown is what he remembers.
    let is_over = Arc::new(AtomicBool::new(false));
    let watcher = thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut seen = Vec::new();
            while !is_over.load(Ordering::SeqCst) || seen.is_empty() {
                seen.extend(shown_key(at));
            }
            seen
        }
    });
    let data = cloud_config(&host_key, &json!({ "runcmd": [["sh", "-c", "echo once >>/root/boots"]] }));
    machines.start("1", &scene.first("i-1", data.clone())).await.unwrap();
    assert_eq!(shown_key(at).as_deref(), Some(host_key.public.as_str()));
    is_over.store(true, Ordering::SeqCst);
    let seen = watcher.join().unwrap();
    assert!(seen.iter().all(|key| *key == host_key.public), "{seen:?}");
    assert_eq!((machines.power("1").await, machines.address("1").await), (Power::On, Some(at)));
    assert_eq!(scene.ssh(at, &["hostname"]), "web01\n");
    assert_eq!(scene.ssh(at, &["cat", "/root/boots"]), "once\n");

    scene.ssh(at, &["touch", "/root/kept"]);
    machines.start("1", &scene.first("i-1", data.clone())).await.unwrap();
    machines.stop("1").await.unwrap();
    machines.stop("1").await.unwrap();
    assert_eq!((machines.power("1").await, machines.address("1").await), (Power::Off, None));
    wait_until("nobody answers", || !answers(at, 22) && !answers(at, 2222));
    machines.resize("1", Size { cores: 2, memory: 256, disk: 2 }).await.unwrap();
    machines.start("1", &scene.first("i-1", data)).await.unwrap();
    assert_eq!(shown_key(at).as_deref(), Some(host_key.public.as_str()));
    assert_eq!(scene.ssh(at, &["ls", "/root"]), "boots\nkept\n", "what it had is there");
    assert_eq!(scene.ssh(at, &["cat", "/root/boots"]), "once\n", "a life begins once");

    machines.remove("1").await.unwrap();
    machines.remove("1").await.unwrap();
    wait_until("nobody answers", || !answers(at, 22));
    assert_eq!(machines.power("1").await, Power::Off);
    wait_until("nothing is left of it", || scene.left().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_go_on_without_who_made_them_and_answer_again_when_he_is_back() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let scene = Scene::new();
    let (machines, at) = scene.machines();
    let at = IpAddr::V4(at);
    for id in ["1", "2"] {
        machines.make(&wanted(id)).await.unwrap();
    }
    let (one, two) = (scene.first("i-1", ""), scene.first("i-2", ""));
    let started = tokio::join!(machines.start("1", &one), machines.start("2", &two));
    assert_eq!(started, (Ok(()), Ok(())));
    let before = (machines.address("1").await, machines.address("2").await);
    machines.stop("2").await.unwrap();
    machines.close().await;
    drop(machines);
    wait_until("nobody answers", || !answers(at, 22));
    let (machines, _) = scene.machines();
    machines.reopen().await.unwrap();
    assert_eq!((machines.address("1").await, machines.address("2").await), (before.0, None));
    machines.start("2", &two).await.unwrap();
    assert_eq!((machines.address("1").await, machines.address("2").await), before);
    assert_eq!(scene.ssh(before.1.unwrap(), &["cat", "/etc/hostname"]), "web01\n");
    machines.remove_all().await.unwrap();
    wait_until("nothing is left of them", || scene.left().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn user_data_of_a_node_that_pulls_starts_what_pulls() {
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let scene = Scene::new();
    let (machines, at) = scene.machines();
    let enrolment = serde_json::from_value(json!({
        "node": "lab.a@cloud",
        "mode": "pull", "server": "https://127.0.0.1:1", "pins": [], "token": "nobody takes this",
    }));
    let enrolment: Enrolment = enrolment.unwrap();
    let access = scene.key.public.parse().unwrap();
    let data = user_data(&FirstBoot {
        hostname: "a",
        user: &UserName::root(),
        access: &access,
        host_key: &FirstKey::generate(),
        enrolment: Some((&enrolment, "/usr/local/bin/orch-node")),
    });
    let data = data.unwrap().as_bytes().to_vec();
    machines.make(&wanted("1")).await.unwrap();
    machines.start("1", &scene.first("i-1", data)).await.unwrap();
    let result = scene.ssh(at.into(), &["cat", "/var/lib/cloud/data/result.json"]);
    assert!(result.contains("\"errors\": []"), "{result}");
    wait_until("the node fetches", || {
        scene.ssh(at.into(), &["cat", "/var/log/orch-init.log"]).contains("the node program is started")
    });
    machines.remove("1").await.unwrap();
}
