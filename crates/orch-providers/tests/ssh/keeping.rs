//! Connections that are kept for the next run.

use std::time::Duration;

use orch_providers::ssh::Hop;
use orch_run::Door;

use crate::scene::{Scene, argv};
use crate::sshd;

const SOON: Duration = Duration::from_secs(20);

/// A scene whose connections are kept for two seconds.
fn keeping() -> Scene {
    Scene::with("k", |settings| settings.keep = Some(Duration::from_secs(2)))
}

async fn say_hello(scene: &Scene, hops: Vec<Hop>) {
    let ended = scene.ssh.exec(&scene.node(hops), &argv(&["echo", "hello"]), SOON).await.unwrap();
    assert_eq!(ended.stdout, b"hello\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_run_uses_the_connection_of_the_last_one_and_idle_ones_end_by_themselves() {
    if !sshd::is_there() {
        return;
    }
    let first = keeping();
    let (outer, inner) = (first.server(), first.server());
    let hops = || vec![outer.plan.hop("outer"), inner.plan.hop("inner")];
    say_hello(&first, hops()).await;
    first.ssh.close().await;
    let next = first.again();
    say_hello(&next, hops()).await;
    assert_eq!((outer.accepted(), inner.accepted()), (1, 1));
    let folder = next.folder.display().to_string();
    drop(next);
    sshd::until("no connection is left", || sshd::processes_with(&folder).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_that_died_or_leads_to_an_earlier_life_is_not_used() {
    if !sshd::is_there() {
        return;
    }
    let first = keeping();
    let server = first.server();
    say_hello(&first, vec![server.plan.hop("web")]).await;
    server.cut();
    let next = first.again();
    say_hello(&next, vec![server.plan.hop("web")]).await;
    assert_eq!(server.accepted(), 2, "one that died is made again");
    let reborn = Hop { generation: "2".into(), ..server.plan.hop("web") };
    say_hello(&next.again(), vec![reborn]).await;
    assert_eq!(server.accepted(), 3, "one to an earlier life is not used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_is_not_used_for_another_host_key() {
    if !sshd::is_there() {
        return;
    }
    let first = keeping();
    let (server, other) = (first.server(), first.server());
    say_hello(&first, vec![server.plan.hop("web")]).await;
    let wrong = Hop { host_keys: vec![other.plan.host_key.clone()], ..server.plan.hop("web") };
    let refused = first.again().ssh.exec(&first.node(vec![wrong]), &argv(&["true"]), SOON).await;
    assert!(refused.is_err(), "{refused:?}");
}
