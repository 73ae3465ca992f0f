//! Nodes that do not answer, or not yet.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use orch_run::{Progress, TransportError};

use crate::scene::Scene;
use crate::sshd::{self, Plan};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_still_booting_is_waited_for() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let plan = Plan::new(&scene.key);
    let mut node = scene.node(vec![plan.hop("web")]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    node.progress = Progress::to(move |doing| drop(tell.send(doing.to_owned())));
    let boot = async {
        while told.recv().await.unwrap() != "waiting for ssh" {}
        plan.start()
    };
    let (reached, server) = tokio::join!(scene.ssh.reach(&node), boot);
    assert!(reached.unwrap().is_alive().await);
    assert_eq!(server.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_accepts_and_says_nothing_is_given_up_in_time_with_evidence() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::with("ssh", |settings| {
        settings.reach = Duration::from_secs(3);
        settings.connect = Duration::from_secs(1);
    });
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut hop = Plan::new(&scene.key).hop("web");
    hop.port = silent.local_addr().unwrap().port();
    let begun = Instant::now();
    let error = scene.ssh.reach(&scene.node(vec![hop])).await.err().unwrap();
    assert!(matches!(error, TransportError::Silent { .. }), "{error}");
    assert!(error.is_late() && !error.is_passing());
    assert!(error.to_string().contains("no connection within 3s"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert!(error.evidence().iter().any(|line| line.contains("timed out")), "{:?}", error.evidence());
    let folder = scene.folder.display().to_string();
    sshd::until("no ssh is left behind", || sshd::processes_with(&folder).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_is_given_up_leaves_no_program_behind() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let mut hop = Plan::new(&scene.key).hop("web");
    let mark = format!("987{}", std::process::id());
    hop.proxy = Some(vec!["sleep".into(), (&mark).into()]);
    let node = scene.node(vec![hop]);
    let begun = async {
        while sshd::processes_with(&mark).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        reached = scene.ssh.reach(&node) => panic!("a sleeping program leads nowhere: {:?}", reached.err()),
        () = begun => {}
    }
    sshd::until("the program is gone", || sshd::processes_with(&mark).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_refuses_is_unreachable_when_its_time_is_over() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::with("ssh", |settings| settings.reach = Duration::from_millis(300));
    let hop = Plan::new(&scene.key).hop("web");
    let error = scene.ssh.reach(&scene.node(vec![hop])).await.err().unwrap();
    assert!(error.is_late() && error.to_string().contains("Connection refused"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_cannot_be_written_down_is_refused_in_words() {
    let scene = Scene::new();
    let hop = Plan::new(&scene.key).hop("*");
    let error = scene.ssh.reach(&scene.node(vec![hop])).await.err().unwrap();
    assert!(error.to_string().ends_with("`*` cannot be the alias of a hop"), "{error}");
    let error = scene.ssh.reach(&scene.node(vec![])).await.err().unwrap();
    assert!(error.to_string().ends_with("no way leads there"), "{error}");
}
