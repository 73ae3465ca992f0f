//! Who is spoken to, and who is not.

use std::time::{Duration, Instant};

use orch_providers::ssh::ensure_identity;
use orch_run::TransportError;

use crate::scene::Scene;
use crate::sshd::{self, Plan};

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_another_host_key_is_named_and_not_spoken_to() {
    if !sshd::is_there() {
        return;
    }
    // One key of the pinned kind and one of a kind that nothing is known of.
    for kind in ["ed25519", "ecdsa"] {
        let scene = Scene::new();
        let plan = Plan::new(&scene.key);
        plan.show_other_key(kind);
        let server = plan.start();
        let begun = Instant::now();
        let error = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.err().unwrap();
        assert!(matches!(error, TransportError::Impostor { .. }), "{kind}: {error}");
        assert!(error.to_string().contains("`m.web@father` does not have the host key"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10), "asking again cannot help");
        assert_eq!(server.accepted(), 0, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impostor_on_the_way_is_named() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let outer = Plan::new(&scene.key);
    outer.show_other_key("ed25519");
    let (outer, inner) = (outer.start(), scene.server());
    let node = scene.node(vec![outer.plan.hop("outer"), inner.plan.hop("inner")]);
    let error = scene.ssh.reach(&node).await.err().unwrap();
    assert!(matches!(error, TransportError::Impostor { .. }), "{error}");
    assert!(error.to_string().contains("at `outer` on the way there: it shows another host key"), "{error}");
    assert_eq!(inner.accepted(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_let_us_in_is_not_asked_again() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let other = ensure_identity(&scene.base.path().join("other")).unwrap();
    let server = Plan::new(&other).start();
    let begun = Instant::now();
    let error = scene.ssh.reach(&scene.node(vec![server.plan.hop("web")])).await.err().unwrap();
    assert!(matches!(error, TransportError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("it does not let us in"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10), "asking again cannot help");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_was_made_anew_is_known_by_its_new_key() {
    if !sshd::is_there() {
        return;
    }
    let scene = Scene::new();
    let first = scene.server();
    scene.ssh.reach(&scene.node(vec![first.plan.hop("web")])).await.unwrap();
    let second = scene.server();
    scene.ssh.reach(&scene.node(vec![second.plan.hop("web")])).await.unwrap();
    assert_eq!((first.accepted(), second.accepted()), (1, 1));
}
