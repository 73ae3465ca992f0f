//! What people and their tools are given to reach nodes by themselves.

use std::fs;
use std::process::{Command, Stdio};

use orch_run::Door;

use crate::scene::{Scene, argv};
use crate::sshd;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_runs_without_this_program_and_runs_exactly_what_was_asked() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::with("ssh folder", |_| {});
    let (outer, inner) = (scene.server(), scene.server());
    let node = scene.node(vec![outer.plan.hop("outer"), inner.plan.hop("inner")]);
    let words = scene.ssh.session(&node, &argv(&["printf", "%s.", "a b", "$(id)"])).unwrap();
    let again = scene.ssh.session(&node, &argv(&["printf", "%s.", "a b", "$(id)"])).unwrap();
    scene.ssh.close().await;
    let ended = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&ended.stdout),
        "a b.$(id).",
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(words, again, "asked again, it is the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_tools_reach_nodes_by_their_names_with_the_printed_configuration() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let (outer, inner) = (scene.server(), scene.server());
    let nodes = [
        scene.node(vec![outer.plan.hop("outer")]),
        scene.node(vec![outer.plan.hop("outer"), inner.plan.hop("inner")]),
    ];
    let text = scene.ssh.ssh_config(&nodes).unwrap().unwrap();
    let file = scene.base.path().join("config");
    fs::write(&file, text).unwrap();
    for name in ["outer", "inner"] {
        let ended = Command::new("ssh").arg("-F").arg(&file).args([name, "true"]).status().unwrap();
        assert!(ended.success(), "{name}");
    }
    let copied = scene.base.path().join("copied");
    let target = format!("inner:{}", copied.display());
    let ended = Command::new("scp").args(["-q", "-F"]).args([&file, &file]).arg(target).status().unwrap();
    assert!(ended.success());
    assert_eq!(fs::read(&copied).unwrap(), fs::read(&file).unwrap());
    assert_eq!(scene.ssh.ssh_config(&[]).unwrap(), None);
}
