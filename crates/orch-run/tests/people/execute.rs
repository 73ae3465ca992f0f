//! One program on many nodes: those that run, at once, each within its time.

use std::time::Duration;

use orch_plan::{MachineState, Selection};
use orch_run::{Doors, ExecOutcome, Execution};

use crate::common::{Driver, memory, own_fleet};
use crate::door::{Answer, doors};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i }
  - { name: c, type: vm, preset: small, image: i }";

/// Runs `uname -r` everywhere while `c` is switched off, and sums up: `a exit 0, b exit 1, c skipped: it is stopped: 2`.
async fn executed(only: &[&str], doors: &Doors) -> String {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    world.tamper("m-c", |machine| machine.state = MachineState::Stopped);
    let only = Selection::of(only.iter().map(|selector| selector.parse().unwrap()).collect());
    let argv = ["uname".to_owned(), "-r".to_owned()];
    let observed = driver.observed().await;
    let limit = Duration::from_millis(20);
    let done = Execution::of(&fleet, &only, &observed, doors, &argv, limit).await.unwrap();
    for node in &done.nodes {
        if let ExecOutcome::Ended { stdout, .. } = &node.outcome {
            assert_eq!(stdout, format!("{}: uname -r\n", node.identity.node).as_bytes());
        }
    }
    let nodes: Vec<String> =
        done.nodes.iter().map(|node| format!("{} {}", node.identity.node, node.outcome)).collect();
    format!("{}: {}", nodes.join(", "), u8::from(done.exit_code))
}

/// What is selected, how nodes answer, what is told.
type Case = (&'static [&'static str], &'static [(&'static str, Answer)], &'static str);

#[tokio::test(start_paused = true)]
async fn every_node_that_runs_is_asked_and_the_others_do_not_count() {
    let cases: [Case; 5] = [
        (&[], &[], "a exit 0, b exit 0, c skipped: it is stopped: 0"),
        (&[], &[("b", Answer::Exit(7))], "a exit 0, b exit 7, c skipped: it is stopped: 2"),
        (&["b"], &[("b", Answer::Exit(7))], "b exit 7: 1"),
        (
            &["b", "a"],
            &[("a", Answer::Silent), ("b", Answer::Silent)],
            "a not done in time, b not done in time: 4",
        ),
        (&["c"], &[], "c skipped: it is stopped: 1"),
    ];
    for (only, answers, expected) in cases {
        assert_eq!(executed(only, &doors(answers)).await, expected);
    }
}

#[tokio::test]
async fn a_node_that_cannot_be_reached_says_why() {
    let text = executed(&["a"], &doors(&[("a", Answer::Gone)])).await;
    assert_eq!(text, "a failed: node `m.a@father` cannot be reached: connection refused: 1");
}

#[tokio::test(start_paused = true)]
async fn no_more_nodes_are_asked_at_once_than_the_fleet_says() {
    let (world, mut fleet) = (memory(), own_fleet("", NODES));
    Driver::of(&world).create(&fleet).await;
    let observed = Driver::of(&world).observed().await;
    let doors = doors(&["a", "b", "c"].map(|node| (node, Answer::Silent)));
    let mut seconds = Vec::new();
    for parallelism in [3, 1] {
        fleet.settings.parallelism = parallelism;
        let begun = tokio::time::Instant::now();
        let limit = Duration::from_mins(1);
        Execution::of(&fleet, &Selection::of(Vec::new()), &observed, &doors, &[], limit).await.unwrap();
        seconds.push(begun.elapsed().as_secs());
    }
    assert_eq!(seconds, [65, 3 * 65], "each takes its limit, and a grace of five seconds");
}
