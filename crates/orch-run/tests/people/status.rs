//! `status`: one word per node, from what the host shows and what the node says, and an exit code that sums it up.

use std::time::Duration;

use orch_model::Fleet;
use orch_plan::{Applied, Goal, MachineState, Selection, Verb, plan};
use orch_run::status::{ConfigState, minding_drift};
use orch_run::{Doors, Standing};

use crate::common::{Driver, memory, own_fleet, stranger};
use crate::door::{Answer, doors};

const NODES: &str = "  - { name: a, type: vm, spec: base, preset: small, image: i }
  - { name: b, type: vm, spec: base, preset: small, image: i }";

const DEADLINE: Duration = Duration::from_millis(50);

async fn look(fleet: &Fleet, driver: &Driver, doors: &Doors) -> Standing {
    let observed = driver.observed().await;
    Standing::of(fleet, &Selection::All, &observed, doors, DEADLINE).await.unwrap()
}

/// `a as wanted, b drifted: 2`
fn summed(standing: &Standing) -> String {
    let word =
        |node: &orch_run::status::NodeStanding| format!("{} {}", node.identity.node, node.condition.word());
    let nodes: Vec<String> = standing.nodes.iter().map(word).collect();
    format!("{}: {}", nodes.join(", "), u8::from(standing.exit_code))
}

#[tokio::test]
async fn what_nodes_say_decides_how_they_fare() {
    let cases: [(&[(&'static str, Answer)], &str); 7] = [
        (&[], "a as wanted, b as wanted: 0"),
        (&[("b", Answer::Drifted)], "a as wanted, b drifted: 2"),
        (&[("b", Answer::Skipping)], "a as wanted, b as wanted: 0"),
        (&[("b", Answer::Ill)], "a as wanted, b unhealthy: 2"),
        (&[("a", Answer::Ill), ("b", Answer::Gone)], "a unhealthy, b unreachable: 1"),
        (&[("a", Answer::Silent)], "a unreachable, b as wanted: 2"),
        (&[("a", Answer::Gone), ("b", Answer::Drifted)], "a unreachable, b drifted: 2"),
    ];
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    for (answers, expected) in cases {
        assert_eq!(summed(&look(&fleet, &driver, &doors(answers)).await), expected);
    }
}

#[tokio::test]
async fn what_the_host_shows_decides_where_no_node_can_be_asked() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    assert_eq!(summed(&look(&fleet, &driver, &doors(&[])).await), "a missing, b missing: 1");
    world.put(stranger("s", "m-a", None));
    assert_eq!(summed(&look(&fleet, &driver, &doors(&[])).await), "a stranger, b missing: 1");
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    world.tamper("m-a", |machine| machine.state = MachineState::Stopped);
    world.tamper("m-b", |machine| machine.size.memory = 512);
    let standing = look(&fleet, &driver, &doors(&[])).await;
    assert_eq!(summed(&standing), "a stopped, b differs: 2");
    assert_eq!(standing.nodes[1].differs, ["memory 512 -> 1024"]);
    world.tamper("m-a", |machine| machine.state = MachineState::Partial);
    assert_eq!(summed(&look(&fleet, &driver, &doors(&[])).await), "a unfinished, b differs: 2");
}

#[tokio::test]
async fn a_node_knows_better_than_its_host_which_configuration_it_has() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    world.tamper("m-a", |machine| machine.applied = Applied::Unknown);
    world.tamper("m-b", |machine| machine.applied = Applied::Never);
    let standing = look(&fleet, &driver, &doors(&[("b", Answer::Gone)])).await;
    assert_eq!(summed(&standing), "a as wanted, b unreachable: 2");
    assert_eq!(standing.nodes[0].config, ConfigState::Current);
    assert_eq!(standing.nodes[1].config, ConfigState::Never, "nobody but the host could be asked");
}

#[tokio::test]
async fn a_machine_that_is_no_longer_described_is_told_and_is_not_as_wanted() {
    let world = memory();
    let driver = Driver::of(&world);
    driver.create(&own_fleet("", NODES)).await;
    let (first, _) = NODES.split_once('\n').unwrap();
    let standing = look(&own_fleet("", first), &driver, &doors(&[])).await;
    assert_eq!(summed(&standing), "a as wanted: 2");
    assert_eq!(standing.leftovers.len(), 1);
    assert!(standing.to_string().contains("`destroy --only b` removes it"), "{standing}");
}

#[tokio::test]
async fn what_cannot_be_had_is_told_once_and_calmly() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    let text = look(&fleet, &driver, &doors(&[("a", Answer::Skipping)])).await.to_string();
    let expected = "  = as wanted    a  running, configuration current, healthy\n      skipped   package htop: not installable here\n";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn looking_changes_nothing() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    let before = world.world();
    look(&fleet, &driver, &doors(&[("a", Answer::Drifted)])).await;
    assert_eq!(world.world(), before);
}

#[tokio::test]
async fn a_plan_that_minds_drift_applies_anew_what_has_drifted_or_does_not_answer() {
    let (world, fleet) = (memory(), own_fleet("", NODES));
    let driver = Driver::of(&world);
    driver.create(&fleet).await;
    let observed = driver.observed().await;
    for (answer, expected) in [(Answer::Well, [0, 0]), (Answer::Drifted, [0, 1]), (Answer::Gone, [0, 1])] {
        let doors = doors(&[("b", answer)]);
        let goal = Goal::of(Verb::Config);
        let minded = minding_drift(&fleet, &goal, &observed, &doors, DEADLINE).await.unwrap();
        let plan = plan(&fleet, &minded, &goal).unwrap();
        assert_eq!([plan.nodes[0].up.len(), plan.nodes[1].up.len()], expected, "{plan}");
    }
}
