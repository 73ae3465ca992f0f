//! Several who want the same, and one who is interrupted.

use std::time::Duration;

use orch_lab::ProxmoxTimings;
use orch_plan::{Action, MachineState};
use orch_run::{Done, Order, ProviderError};

use crate::world::{World, create, spec};

#[tokio::test(flavor = "multi_thread")]
async fn of_two_drivers_that_make_one_node_at_one_number_one_does() {
    for _ in 0..5 {
        let world = World::with(|settings| settings.description = None);
        let (one, other) = (world.driver(), world.driver());
        let (first, second) = (create("web", 10_100), create("web", 10_100));
        let (first, second) = tokio::join!(one.apply(&first), other.apply(&second));
        let made = [&first, &second].into_iter().filter(|done| done.is_ok()).count();
        assert_eq!(made, 1, "{first:?} {second:?}");
        let refused = [first, second].into_iter().find_map(Result::err).unwrap();
        let is_no = matches!(refused, ProviderError::Refused { .. } | ProviderError::NotOurs { .. });
        assert!(is_no, "{refused:?}");
        assert_eq!(world.numbers().await, [10_100]);
        assert_eq!(world.discs().await.len(), 1, "the one that lost left nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_drivers_that_make_one_node_at_two_numbers_one_takes_its_own_back() {
    for _ in 0..5 {
        let world = World::with(|settings| settings.description = None);
        let (one, other) = (world.driver(), world.driver());
        let (first, second) = (create("web", 10_100), create("web", 10_200));
        let (first, second) = tokio::join!(one.apply(&first), other.apply(&second));
        let made = [&first, &second].into_iter().filter(|done| done.is_ok()).count();
        assert_eq!(made, 1, "{first:?} {second:?}");
        assert_eq!(world.numbers().await.len(), 1, "{first:?} {second:?}");
        assert_eq!(world.discs().await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_machines_are_made_at_once() {
    let world = World::with(|settings| settings.description = None);
    let driver = std::sync::Arc::new(world.driver());
    let mut making = tokio::task::JoinSet::new();
    for number in 0..20 {
        let driver = std::sync::Arc::clone(&driver);
        making.spawn(async move { driver.apply(&create(&format!("web-{number}"), 10_000 + number)).await });
    }
    while let Some(made) = making.join_next().await {
        assert_eq!(made.unwrap().unwrap(), Done::Changed);
    }
    assert_eq!(world.numbers().await.len(), 20);
    let calls = world.serving.calls().count();
    println!("{calls} questions for 20 machines");
    let not_polls = world.serving.calls().list().iter().filter(|call| !call.path.contains("/tasks/")).count();
    assert!(not_polls <= 20 * 12, "{not_polls} questions that are not about tasks");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_nobody_derived_are_taken_one_after_the_other() {
    let world = World::with(|settings| settings.description = None);
    let drivers: Vec<_> = (0..4).map(|_| world.driver()).collect();
    let make = |place: usize| {
        let mut order = create(&format!("web-{place}"), 0);
        let machine = orch_plan::MachineSpec { vmid: None, ..spec(&format!("workers-web-{place}"), 0) };
        order.action = Action::Create { machine };
        let driver = &drivers[place];
        async move { driver.apply(&order).await }
    };
    let all = tokio::join!(make(0), make(1), make(2), make(3));
    assert!(all.0.is_ok() && all.1.is_ok() && all.2.is_ok() && all.3.is_ok(), "{all:?}");
    assert_eq!(world.numbers().await, [100, 101, 102, 103]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_driver_was_making_is_waited_for_and_finished() {
    let world = World::with(|settings| {
        settings.description = None;
        let clone = Duration::from_millis(150);
        settings.timings = ProxmoxTimings { clone, ..ProxmoxTimings::quick() };
    });
    let order = create("web", 10_100);
    let killed = world.driver();
    let begun = async {
        while !world.serving.calls().list().iter().any(|call| call.path.ends_with("/clone")) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        done = killed.apply(&order) => panic!("the clone is under way, and not: {done:?}"),
        () = begun => {}
    }
    let next = world.driver();
    let view = next.look().await.unwrap();
    let found =
        view.machines().iter().find(|machine| machine.marks == Some(order.marks())).expect("it is seen");
    assert_eq!(found.state, MachineState::Partial);
    let reference =
        orch_plan::MachineRef { id: found.id.clone(), name: found.name.clone(), uuid: order.uuid };
    let adopt =
        Order { action: Action::Adopt { found: reference, machine: spec("workers-web", 10_100) }, ..order };
    assert_eq!(next.apply(&adopt).await.unwrap(), Done::Changed);
    assert_eq!(next.machine(&adopt).await.unwrap().state, MachineState::Running);
    assert_eq!((world.numbers().await.len(), world.discs().await.len()), (1, 1));
}
