//! The live view: what a board shows and tells while a run goes on.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use orch_model::Fleet;
use orch_run::Hooks;
use orch_run::live::{Board, Condition};

use crate::common::{Around, Driver, Effect, Gate, memory, own_fleet};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i, depends_on: [a] }";

/// The frame of a board as text, without times.
fn drawn(board: &Board, width: usize, height: usize) -> Vec<String> {
    let lines = board.frame(width, height, Instant::now()).lines;
    lines.into_iter().map(|line| format!("{}{}", line.mark, line.text)).collect()
}

/// Creates, and looks at the board when this effect is asked for.
async fn at(effect: (&'static str, &'static str), fleet: &Fleet, width: usize, height: usize) -> Vec<String> {
    let board = Arc::new(Board::silent());
    let (shown, seen) = (Arc::clone(&board), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&seen);
    let host = Around::new(&memory(), move |asked: Effect| {
        if (asked.verb, asked.node.as_str()) == effect {
            *kept.lock().unwrap() = drawn(&shown, width, height);
        }
        async { Gate::Open }
    });
    let driver = Driver { hooks: board, ..Driver::of(&host) };
    driver.create(fleet).await;
    let seen = seen.lock().unwrap().clone();
    assert!(!seen.is_empty(), "the effect was asked for");
    seen
}

#[tokio::test]
async fn every_node_has_a_line_and_the_bar_counts_steps() {
    let lines = at(("configure", "b"), &own_fleet("", NODES), 80, 24).await;
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].starts_with("  ~ a  configure  done"), "{lines:#?}");
    assert!(lines[1].contains(" b  configure  "), "{lines:#?}");
    assert!(
        lines[2].starts_with("create m ━") && lines[2].contains(" 3/4 steps · 1 working, 1 done"),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn no_line_is_wider_than_the_screen_and_there_are_never_more_than_fit() {
    let nodes = "  - { name: worker, type: vm, count: 40, spec: base, preset: small, image: i }";
    let fleet = own_fleet("parallelism: 8", nodes);
    for (width, height) in [(80, 24), (20, 5), (1, 1), (300, 100)] {
        let lines = at(("create", "worker-9"), &fleet, width, height).await;
        assert!(lines.iter().all(|line| line.chars().count() <= width.max(4)), "{width}: {lines:#?}");
        assert!(lines.len() < height.max(4), "{height}: {lines:#?}");
    }
    let lines = at(("create", "worker-9"), &fleet, 80, 12).await;
    assert!(lines.iter().any(|line| line.contains("    and ") && line.contains(" more: ")), "{lines:#?}");
    let working = lines.iter().take(8).filter(|line| line.contains("create")).count();
    assert!(working >= 7, "what works is shown first: {lines:#?}");
}

#[tokio::test]
async fn a_failure_is_shown_and_stays() {
    let board = Arc::new(Board::silent());
    let host = Around::new(&memory(), |effect: Effect| async move {
        if effect.node == "a" { Gate::Refused } else { Gate::Open }
    });
    let driver = Driver { hooks: Arc::clone(&board) as Arc<dyn Hooks<_>>, ..Driver::of(&host) };
    driver.create(&own_fleet("on_error: continue", NODES)).await;
    let frame = board.frame(120, 24, Instant::now());
    let conditions: Vec<_> = frame.lines.iter().filter_map(|line| line.condition).collect();
    assert_eq!(conditions, [Condition::Failed, Condition::Skipped]);
    assert!(frame.lines[0].text.contains("refused"), "{frame:#?}");
    assert!(frame.lines[1].text.contains("`a` failed"), "{frame:#?}");
}

#[tokio::test]
async fn on_a_pipe_every_change_is_a_line() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let board = Arc::new(Board::announcing(move |line| kept.lock().unwrap().push(line.to_owned())));
    let fleet = own_fleet("", "  - { name: a, type: vm, spec: base, preset: small, image: i }");
    let speaker = Arc::clone(&board);
    let identity = fleet.nodes[0].identity.clone();
    let host = Around::new(&memory(), move |_| {
        speaker.say(&identity, "waiting for ssh");
        speaker.say(&identity, "waiting for ssh");
        async { Gate::Open }
    });
    let driver = Driver { hooks: board, ..Driver::of(&host) };
    driver.create(&fleet).await;
    let lines: Vec<String> = told.lock().unwrap().iter().map(|line| without_time(line)).collect();
    let expected = [
        "create/a: begins",
        "create/a: waiting for ssh",
        "create/a: done",
        "configure/a: begins",
        "configure/a: waiting for ssh",
        "configure/a: done",
    ];
    assert_eq!(lines, expected);
    told.lock().unwrap().clear();
    driver.create(&fleet).await;
    assert!(told.lock().unwrap().is_empty(), "a run that has nothing to do says nothing");
}

fn without_time(line: &str) -> String {
    line.split(" (").next().unwrap_or(line).to_owned()
}
