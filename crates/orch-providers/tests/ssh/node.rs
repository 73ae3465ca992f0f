//! The real program on a node: brought there, run, asked again. The node is this machine with an `/etc`, `/var`, `/run` and
//! host name of its own.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use orch_model::Config;
use orch_providers::push::{Binary, Program};
use orch_run::{Door, Target, Transport};

use crate::scene::{Scene, argv, config_of};
use crate::sshd::{self, Plan, Sshd};

const SOON: Duration = Duration::from_secs(30);

/// A node that has nothing yet, and what it is to become.
fn stage(scene: &Scene, health: &str) -> (Sshd, Target, Config) {
    let server = Plan::new(&scene.key).start_apart();
    let program = Program::Upload(Arc::new(Binary::read(&built()).unwrap()));
    let target = scene.node_with(vec![server.plan.hop("web")], program);
    let health = health.replace("PORT", &server.plan.port.to_string());
    let config = config_of(&format!(
        "files: [ {{ path: /etc/orch-test, content: \"it's $(so)\\n\", mode: \"0640\" }} ]\nhealth: [ {health} ]"
    ));
    (server, target, config)
}

/// The program, as it is now.
fn built() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "orch-node", "--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let lines = built.stdout.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let mut programs = messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    programs.next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_becomes_what_its_configuration_says_and_a_second_time_changes_nothing() {
    if !sshd::is_there() || !sshd::is_root() {
        return;
    }
    let scene = Scene::new();
    let (server, node, config) = stage(&scene, "{ tcp: PORT }");
    let permit = scene.permit();
    let first = scene.ssh.configure(&node, &config, &permit).await.unwrap();
    let second = scene.ssh.configure(&node, &config, &permit).await.unwrap();
    assert_eq!((first.changed, second.changed), (true, false), "{first:?} {second:?}");
    let ended =
        scene.ssh.exec(&node, &argv(&["cat", "/etc/orch-test", "/etc/hostname"]), SOON).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "it's $(so)\nweb\n");

    let seen = scene.ssh.inspect(&node, &config).await.unwrap();
    assert!(
        seen.is_healthy() && seen.drift().next().is_none() && seen.applied == Some(config.digest()),
        "{seen:?}"
    );
    scene.ssh.exec(&node, &argv(&["truncate", "-s", "0", "/etc/orch-test"]), SOON).await.unwrap();
    let seen = scene.ssh.inspect(&node, &config).await.unwrap();
    assert_eq!(seen.drift().map(|resource| resource.name.as_str()).collect::<Vec<_>>(), ["/etc/orch-test"]);
    assert_eq!(server.accepted(), 1, "all of it over one connection");
    assert!(!PathBuf::from("/etc/orch-test").exists(), "this machine has nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_configured_and_not_healthy_has_failed_and_says_which_check() {
    if !sshd::is_there() || !sshd::is_root() {
        return;
    }
    let scene = Scene::with("ssh", |settings| settings.limits.health = Duration::from_secs(1));
    let (_server, node, config) = stage(&scene, "{ tcp: PORT }, { command: [\"false\"] }");
    let error = scene.ssh.configure(&node, &config, &scene.permit()).await.unwrap_err();
    let said = error.to_string();
    let (_, checks) = said.split_once("it was configured, and is not healthy: ").unwrap();
    assert!(checks.starts_with("command false: ") && !checks.contains("tcp"), "{said}");
}
