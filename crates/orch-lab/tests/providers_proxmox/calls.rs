//! How many questions things cost.

use std::time::Duration;

use orch_plan::{Action, MachineState};
use orch_providers::api::Method;
use orch_run::{Done, Order, Provider as _, Scope};

use crate::world::{SMALLEST, World, create, host};

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_a_hundred_machines_is_one_question_and_one_to_their_node() {
    let world = World::new();
    let driver = world.driver();
    let order = create("web", 10_000);
    driver.apply(&order).await.unwrap();
    let tags = world.config(10_000).await["tags"].as_str().unwrap().to_owned();
    for number in 1..100 {
        let (vmid, name) = ((10_000 + number).to_string(), format!("workers-web-{number}"));
        let mut words: Vec<String> = tags.split(';').map(str::to_owned).collect();
        for word in &mut words {
            if word.starts_with("orch-node.") {
                *word = format!("orch-node.web-{number}");
            } else if word.starts_with("orch-uuid.") {
                *word = format!("orch-uuid.{}", uuid::Uuid::new_v4());
            }
        }
        let tags = words.join(";");
        let pairs = [
            ("vmid", vmid.as_str()),
            ("name", &name),
            ("tags", &tags),
            ("scsi0", "local-zfs:2"),
            ("memory", "512"),
            ("start", "1"),
        ];
        world.task_by_hand(Method::Post, "/nodes/pve1/qemu", &pairs).await;
    }
    let driver = world.driver();
    world.serving.calls().reset();
    let view = driver.look().await.unwrap();
    assert_eq!(view.machines().iter().filter(|machine| machine.marks.is_some()).count(), 100);
    assert_eq!(world.serving.calls().count(), 2, "the list, and what the node itself says");
    world.serving.calls().reset();
    driver.provider.observe(&Scope { host: host(), node: Some(order.identity) }).await.unwrap();
    assert_eq!(world.serving.calls().count(), 3, "the list, and two questions about the one of interest");
}

/// Questions that are not about whether a task has ended.
fn asked(world: &World) -> Vec<String> {
    let calls = world.serving.calls().list().into_iter();
    calls
        .filter(|call| !call.path.contains("/tasks/"))
        .map(|call| format!("{} {}", call.method, call.path))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_costs_few_questions() {
    let world = World::new();
    let driver = world.driver();
    let order = create("web", 10_000);
    driver.apply(&order).await.unwrap();
    let made = asked(&world);
    println!("create: {} and polls, {} in all\n{made:#?}", made.len(), world.serving.calls().count());
    assert!(made.len() <= 9, "{made:#?}");
    world.serving.calls().reset();
    assert_eq!(driver.apply(&order).await.unwrap(), Done::Unchanged);
    assert!(asked(&world).len() <= 3, "{:#?}", asked(&world));
    let machine = driver.reference(&order).await;
    world.serving.calls().reset();
    let destroy = Order { action: Action::Destroy { machine }, ..order };
    assert_eq!(driver.apply(&destroy).await.unwrap(), Done::Changed);
    let removed = asked(&world);
    println!("destroy: {} and polls, {} in all\n{removed:#?}", removed.len(), world.serving.calls().count());
    assert!(removed.len() <= 8, "{removed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_seen_as_it_is_though_the_list_lags_behind() {
    let world = World::with(|settings| settings.timings.report = Duration::from_mins(10));
    let driver = world.driver();
    let order = create("web", 10_000);
    driver.apply(&order).await.unwrap();
    let seen = driver.machine(&order).await.expect("it is seen by its node");
    assert_eq!((seen.state, seen.size), (MachineState::Running, SMALLEST));
    let view = world.driver().look().await.unwrap();
    let seen =
        view.machines().iter().find(|machine| machine.marks == Some(order.marks())).expect("it is seen");
    assert_eq!((seen.state, seen.size, seen.name.as_str()), (MachineState::Running, SMALLEST, "workers-web"));
    assert_eq!(driver.apply(&order).await.unwrap(), Done::Unchanged);
}
