//! Nodes behind other nodes.

use std::time::Duration;

use orch_run::Door;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::scene::{Scene, argv};
use crate::sshd::{self, Plan};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_reached_through_three_others_each_connected_to_once() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let servers: Vec<_> = (0..4).map(|_| scene.server()).collect();
    let hops: Vec<_> = servers.iter().zip(["a", "b", "c", "d"]).map(|(s, alias)| s.plan.hop(alias)).collect();
    let (deep, child) = (scene.node(hops.clone()), scene.node(hops[..2].to_vec()));
    for _ in 0..2 {
        let ended = scene.ssh.exec(&deep, &argv(&["printenv", "SSH_CONNECTION"]), SOON).await.unwrap();
        let shown = String::from_utf8(ended.stdout).unwrap();
        assert!(shown.trim().ends_with(&format!(" {}", servers[3].plan.port)), "{shown}");
    }
    scene.ssh.exec(&child, &argv(&["true"]), SOON).await.unwrap();
    assert_eq!(servers.iter().map(sshd::Sshd::accepted).collect::<Vec<_>>(), [1, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_healed_where_it_was_cut() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let (outer, inner) = (scene.server(), scene.server());
    let node = scene.node(vec![outer.plan.hop("outer"), inner.plan.hop("inner")]);
    scene.ssh.exec(&node, &argv(&["true"]), SOON).await.unwrap();
    outer.cut();
    let connection = async {
        while scene.ssh.reach(&node).await.is_err() || inner.accepted() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, connection).await.unwrap();
    let ended = scene.ssh.exec(&node, &argv(&["true"]), SOON).await.unwrap();
    assert_eq!(ended.code, Some(0));
    assert!(outer.accepted() >= 2 && inner.accepted() >= 2, "both were connected to again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_can_lead_to_a_node_that_no_network_leads_to() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let plan = Plan::new(&scene.key);
    let behind = scene.server();
    let node = scene.node(vec![plan.hop_by_program("by-program")]);
    let ended = scene.ssh.exec(&node, &argv(&["echo", "here"]), SOON).await.unwrap();
    assert_eq!(ended.stdout, b"here\n");
    let node = scene.node(vec![plan.hop_by_program("by-program"), behind.plan.hop("behind")]);
    let ended = scene.ssh.exec(&node, &argv(&["echo", "there"]), SOON).await.unwrap();
    assert_eq!((&*ended.stdout, behind.accepted()), (&b"there\n"[..], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_node_can_reach_is_reached_through_it_over_the_connection_that_is_there() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let server = scene.server();
    let node = scene.node(vec![server.plan.hop("a")]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.unwrap();
        stream.write_all(&heard).await.unwrap();
    });
    let connection = scene.ssh.reach(&node).await.unwrap();
    let mut tunnel = connection.tunnel("127.0.0.1", port).unwrap();
    tunnel.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    tokio::time::timeout(SOON, tunnel.read_exact(&mut heard)).await.unwrap().unwrap();
    assert_eq!(&heard, b"hello");
    echo.await.unwrap();
    assert_eq!(server.accepted(), 1);
}
