//! The live view: what a board shows and tells while a run goes on.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use orch_model::Fleet;
use orch_run::Hooks;
use orch_run::live::{Board, Condition, Frame};

use crate::common::{Around, Driver, Effect, Gate, memory, own_fleet};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i, depends_on: [a] }";

/// The lines of a frame as text.
fn text(frame: &Frame) -> Vec<String> {
    frame.lines.iter().map(|line| format!("{}{}", line.mark, line.text)).collect()
}

/// Creates, and looks at the board when this effect is asked for.
async fn at(effect: (&'static str, &'static str), fleet: &Fleet, width: usize, height: usize) -> Frame {
    let board = Arc::new(Board::silent());
    let (shown, seen) = (Arc::clone(&board), Arc::new(Mutex::new(None)));
    let kept = Arc::clone(&seen);
    let host = Around::new(&memory(), move |asked: Effect| {
        if (asked.verb, asked.node.as_str()) == effect {
            *kept.lock().unwrap() = Some(shown.frame(width, height, Instant::now()));
        }
        async { Gate::Open }
    });
    let driver = Driver { hooks: board, ..Driver::of(&host) };
    driver.create(fleet).await;
    let seen = seen.lock().unwrap().clone();
    seen.expect("the effect was asked for")
}

#[tokio::test]
async fn every_node_has_a_line_and_the_bar_counts_steps() {
    let lines = text(&at(("configure", "b"), &own_fleet("", NODES), 80, 24).await);
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
        let lines = text(&at(("create", "worker-9"), &fleet, width, height).await);
        assert!(lines.iter().all(|line| line.chars().count() <= width.max(4)), "{width}: {lines:#?}");
        assert!(lines.len() < height.max(4), "{height}: {lines:#?}");
    }
}

#[tokio::test]
async fn where_not_all_fit_what_works_is_shown_and_the_rest_is_counted() {
    let nodes = "  - { name: worker, type: vm, count: 40, spec: base, preset: small, image: i }";
    let frame = at(("create", "worker-9"), &own_fleet("parallelism: 8", nodes), 80, 12).await;
    let conditions: Vec<_> = frame.lines.iter().filter_map(|line| line.condition).collect();
    let working = conditions.iter().take_while(|condition| **condition == Condition::Working).count();
    assert!(working > 0, "{frame:#?}");
    assert!(!conditions[working..].contains(&Condition::Working), "what works comes first: {frame:#?}");
    let rest = frame.lines.iter().find(|line| line.text.contains(" more: "));
    let shown = format!("    and {} more: ", 40 - conditions.len());
    assert!(rest.is_some_and(|line| line.text.starts_with(&shown)), "`{shown}`: {frame:#?}");
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
