//! What a rollout makes of what a node answers. The node is a list of answers here; real ones are in `tests/lab/nix`.

mod delegation;
mod script;

use std::collections::VecDeque;
use std::time::Duration;

use orch_model::system::{Lease, RolloutPhase, SystemView};
use orch_run::{Ended, TransportError};

use super::{RolloutLimits, RolloutSettings};
use crate::push::tests::report;
use script::{NEW, Node, OLD, answer, applied, config, json, path, quick, record, refusal, view};

/// A node that takes its system without trouble, until it is confirmed.
fn willing() -> Node {
    Node::default()
        .on("look", json(&view(OLD, OLD)))
        .on("switch", json(&answer(RolloutPhase::Armed, view(OLD, OLD))))
        .on("await", json(&answer(RolloutPhase::Waiting, view(NEW, OLD))))
        .on("push", applied())
}

#[tokio::test]
async fn a_node_goes_over_is_confirmed_over_a_new_connection_and_what_was_read_is_told() {
    let node = willing().on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))));
    let done = node.roll_out().await.unwrap();
    assert!(done.changed);
    assert_eq!(done.notes, [format!("read back: runs and boots {NEW}")]);
    assert_eq!(node.asked(), ["look", "switch", "anew", "await", "anew", "confirm", "push"]);
}

#[tokio::test]
async fn a_node_that_runs_and_boots_its_system_is_not_switched() {
    let node = Node::default().on("look", json(&view(NEW, NEW))).on("push", applied());
    let done = node.roll_out().await.unwrap();
    assert!(!done.changed);
    assert_eq!(node.asked(), ["look", "push"]);
}

#[tokio::test]
async fn what_it_lacks_is_sent_in_one_stream_and_a_node_that_does_not_take_it_is_not_switched() {
    let lacking = || SystemView { missing: vec![path(NEW)], ..view(OLD, OLD) };
    let node = Node::default()
        .on("look", json(&lacking()))
        .on("receive", refusal(0, ""))
        .on("switch", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))))
        .on("push", applied());
    node.roll_out().await.unwrap();
    assert_eq!(node.asked(), ["look", "receive", "switch", "push"]);

    let node = Node::default().on("look", json(&lacking())).on("receive", refusal(1, ""));
    let error = node.roll_out().await.unwrap_err().to_string();
    assert!(error.contains("the node did not take its system"), "{error}");
    assert_eq!(node.asked(), ["look", "receive"]);
}

#[tokio::test]
async fn a_node_that_can_fetch_does_so_first_and_is_sent_the_rest() {
    let lacking = || SystemView { missing: vec![path(NEW)], substitutes: true, ..view(OLD, OLD) };
    let node = willing_with(json(&lacking()))
        .on("substitute", json(&view(OLD, OLD)))
        .on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))));
    node.roll_out().await.unwrap();
    assert_eq!(node.asked(), ["look", "substitute", "switch", "anew", "await", "anew", "confirm", "push"]);
}

fn willing_with(look: Ended) -> Node {
    Node::default()
        .on("look", look)
        .on("switch", json(&answer(RolloutPhase::Armed, view(OLD, OLD))))
        .on("await", json(&answer(RolloutPhase::Waiting, view(NEW, OLD))))
        .on("push", applied())
}

#[tokio::test]
async fn a_node_that_went_back_is_a_failure_with_its_evidence_and_what_was_read() {
    let mut back = answer(RolloutPhase::RolledBack, view(OLD, OLD));
    back.record.why = Some("the activation ended with code 1".into());
    let error = willing().on("confirm", json(&back)).roll_out().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "node `m.web@father` could not apply its configuration: rolled back: the activation ended with code 1; \
             read back: runs and boots {OLD}"
        )
    );
    assert_eq!(error.evidence(), ["unit nginx failed"]);
}

#[tokio::test]
async fn permanent_is_believed_only_where_it_was_read() {
    let lies = json(&answer(RolloutPhase::Permanent, view(OLD, NEW)));
    let error = willing().on("confirm", lies).roll_out().await.unwrap_err().to_string();
    assert!(error.contains(&format!("read back: runs {OLD}, boots {NEW}")), "{error}");
}

#[tokio::test]
async fn an_order_whose_answer_was_lost_may_have_been_taken_and_is_followed_to_its_end() {
    let lost = || Node::default().on("look", json(&view(OLD, OLD))).not_on("switch", "connection reset");
    let node = lost()
        .on("await", json(&answer(RolloutPhase::Waiting, view(NEW, OLD))))
        .on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))))
        .on("push", applied());
    assert!(node.roll_out().await.unwrap().changed);

    // One that never got it can be given it again.
    let node = lost().on("await", refusal(1, "rollout `r` is not known here"));
    let error = node.roll_out().await.unwrap_err();
    assert!(error.is_passing() && error.to_string().contains("connection reset"), "{error}");
}

#[tokio::test]
async fn a_node_that_breaks_the_connection_is_asked_again_until_it_is_at_an_end() {
    let node = willing()
        .not_on("confirm", "connection refused")
        .on("confirm", json(&answer(RolloutPhase::Returning, view(NEW, OLD))))
        .on("confirm", json(&answer(RolloutPhase::RolledBack, view(OLD, OLD))));
    let error = node.roll_out().await.unwrap_err().to_string();
    assert!(error.contains("rolled back"), "{error}");
    assert_eq!(node.asked().iter().filter(|asked| *asked == "anew").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn of_a_node_that_cannot_be_read_at_the_end_nothing_is_claimed() {
    let node = willing().not_on("confirm", "no route to host").not_on("look", "no route to host");
    let error =
        node.roll_out_with(RolloutLimits { pause: Duration::from_secs(5), ..quick() }).await.unwrap_err();
    assert!(matches!(error, TransportError::Silent { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("which of them runs is not known") && text.contains(OLD), "{text}");
    assert!(error.evidence()[0].contains("no route to host"), "{:?}", error.evidence());
}

#[tokio::test]
async fn a_system_that_can_only_be_booted_is_an_outcome_of_its_own() {
    let mut needs = answer(RolloutPhase::NeedsReboot, view(OLD, OLD));
    needs.record.reboot_needed = vec!["kernel".into(), "initrd".into()];
    let error = willing().on("confirm", json(&needs)).roll_out().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "node `m.web@father` needs a reboot for kernel, initrd, and was left as it is; read back: runs and boots {OLD}"
        )
    );
    assert!(error.hint().contains("--reboot"));
    let mut later = answer(RolloutPhase::Permanent, view(NEW, NEW));
    later.record.reboot_needed = vec!["kernel".into()];
    let done = willing().on("confirm", json(&later)).roll_out().await.unwrap();
    assert_eq!(done.notes[1], "needs a reboot for kernel");
}

#[tokio::test]
async fn what_would_be_in_vain_is_said_before_anything_is_sent() {
    let busy = Lease {
        holder: "ann@desk".into(),
        run: "theirs".into(),
        since: "2026-01-07T10:30:00Z".into(),
        seconds_left: 40,
    };
    let cases = [
        (SystemView { platform: "aarch64-linux".into(), ..view(OLD, OLD) }, "`aarch64-linux`"),
        (SystemView { nix: None, ..view(OLD, OLD) }, "it has no Nix"),
        (
            SystemView { free: 1000, missing: vec![path(NEW)], ..view(OLD, OLD) },
            "has 1 kB free, and 1 MB are",
        ),
        (
            SystemView { lease: Some(busy), ..view(OLD, OLD) },
            "`ann@desk` has had it since 2026-01-07T10:30:00Z",
        ),
        (
            SystemView { rollout: Some(record(RolloutPhase::Waiting)), ..view(OLD, OLD) },
            "a rollout of run another is waiting to be confirmed since 2026-01-07T10:30:00Z",
        ),
    ];
    for (view, words) in cases {
        let node = Node::default().on("look", json(&view));
        let error = node.roll_out().await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(node.asked(), ["look"]);
    }
}

#[tokio::test]
async fn a_rollout_that_a_killed_driver_left_is_waited_for() {
    let left = SystemView { rollout: Some(record(RolloutPhase::Waiting)), ..view(NEW, OLD) };
    let ended = SystemView { rollout: Some(record(RolloutPhase::RolledBack)), ..view(OLD, OLD) };
    let node = willing_with(json(&left))
        .on("look", json(&ended))
        .on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))));
    node.roll_out_with(quick()).await.unwrap();
    assert_eq!(node.asked()[..3], ["look", "look", "switch"]);
}

#[tokio::test]
async fn a_node_that_refuses_to_switch_says_why() {
    let node = Node::default()
        .on("look", json(&view(OLD, OLD)))
        .on("switch", refusal(1, "error: ann@desk has this node since 10:30\n"));
    let error = node.roll_out().await.unwrap_err().to_string();
    assert!(error.ends_with("ann@desk has this node since 10:30"), "{error}");
}

#[tokio::test]
async fn what_fails_after_the_switch_does_not_hide_that_the_system_is_permanent() {
    let node = willing_with(json(&view(OLD, OLD)));
    node.0
        .answers
        .lock()
        .unwrap()
        .insert("push", VecDeque::from([Ok(json(&report(&config(), Vec::new(), Some("disk full"))))]));
    let node = node.on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))));
    let error = node.roll_out().await.unwrap_err().to_string();
    assert!(error.contains("disk full") && error.contains("its system is permanent"), "{error}");
}

#[tokio::test]
async fn what_a_node_answers_amid_its_switch_does_not_end_the_confirmation_before_its_time() {
    let node = willing()
        .on("confirm", refusal(1, "error: the record cannot be read"))
        .on("confirm", refusal(4, "error: the rollout has not ended"))
        .on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))));
    node.roll_out().await.unwrap();
    let node = willing().on("confirm", refusal(1, "error: rollout `x` is not known here\nhint: look"));
    let error = node.roll_out().await.unwrap_err().to_string();
    assert!(error.contains("is not known here"), "{error}");
    assert_eq!(node.asked().iter().filter(|asked| *asked == "confirm").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_well_is_read_at_the_end() {
    let node = willing().on("confirm", refusal(1, "error: no")).on("look", json(&view(NEW, OLD)));
    let limits = RolloutLimits { pause: Duration::from_secs(5), ..quick() };
    let error = node.roll_out_with(limits).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("read back: runs {NEW}, boots {OLD}")), "{text}");
    assert!(error.evidence()[0].contains("no"), "{:?}", error.evidence());
}

#[tokio::test]
async fn a_node_that_could_not_be_confirmed_in_time_is_not_switched() {
    let node = willing();
    let settings =
        RolloutSettings { systems: std::sync::Arc::new(script::Store), limits: quick(), programs: None };
    let limits = quick();
    let time = limits.activate + limits.confirm;
    let error = node.roll_out_within(&config(), settings, None, time).await.unwrap_err();
    assert!(matches!(error, TransportError::Late { .. }), "{error}");
    assert!(error.to_string().contains("it was not switched"), "{error}");
    assert_eq!(node.asked(), ["look"]);
}

#[tokio::test]
async fn a_node_that_cannot_fetch_is_sent_what_it_lacks() {
    let lacking = || SystemView { missing: vec![path(NEW)], substitutes: true, ..view(OLD, OLD) };
    let node = willing_with(json(&lacking()))
        .on("substitute", refusal(4, "error: it took too long"))
        .on("receive", refusal(0, ""))
        .on("confirm", json(&answer(RolloutPhase::Permanent, view(NEW, NEW))));
    node.roll_out().await.unwrap();
    assert_eq!(
        node.asked(),
        ["look", "substitute", "receive", "switch", "anew", "await", "anew", "confirm", "push"]
    );
}

#[tokio::test]
async fn a_node_is_taken_back_over_new_connections_until_it_is_at_an_end() {
    let node = Node::default()
        .not_on("back", "connection reset")
        .on("back", refusal(4, "error: the rollout has not ended"))
        .on("back", json(&answer(RolloutPhase::RolledBack, view(OLD, OLD))));
    let back = script::take_back(&node).await.unwrap();
    assert_eq!(back.record.phase, RolloutPhase::RolledBack);
    assert_eq!(node.asked(), ["anew", "back", "anew", "back", "anew", "back"]);
    let node = Node::default().on("back", refusal(1, "error: rollout `x` is not known here"));
    script::take_back(&node).await.unwrap_err();
    assert_eq!(node.asked(), ["anew", "back"]);
}
