//! Numbers decide nothing: what does not bear the mark is never touched, whatever its number.

use orch_plan::{Action, MachineRef};
use orch_providers::api::Method;
use orch_run::{Order, Pin, Provider as _, ProviderError};

use crate::world::{SMALLEST, World, create};

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_belongs_to_a_stranger_is_left_to_it() {
    let world = World::new();
    world.put_stranger(10_100, "precious").await;
    let before = world.config(10_100).await;
    let refused = world.driver().apply(&create("web", 10_100)).await;
    assert!(
        matches!(&refused, Err(ProviderError::NotOurs { machine, .. }) if machine.contains("precious")),
        "{refused:?}"
    );
    assert_eq!(world.config(10_100).await, before);
    assert_eq!(world.discs().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_took_over_the_number_of_our_machine_is_not_touched() {
    let world = World::new();
    let driver = world.driver();
    let order = create("web", 10_100);
    driver.apply(&order).await.unwrap();
    let machine = driver.reference(&order).await;
    world.task_by_hand(Method::Post, "/nodes/pve1/qemu/10100/status/stop", &[]).await;
    world.task_by_hand(Method::Delete, "/nodes/pve1/qemu/10100", &[]).await;
    world.put_stranger(10_100, "precious").await;
    let before = world.config(10_100).await;
    let actions = [
        Action::Destroy { machine: machine.clone() },
        Action::Start { machine: machine.clone() },
        Action::Resize { machine: machine.clone(), from: SMALLEST, to: SMALLEST },
        Action::Adopt { found: machine, machine: crate::world::spec("workers-web", 10_100) },
    ];
    for action in actions {
        let refused = driver.apply(&Order { action, ..order.clone() }).await;
        assert!(matches!(refused, Err(ProviderError::NotOurs { .. })), "{refused:?}");
    }
    let pin =
        Pin { identity: order.identity.clone(), uuid: order.uuid, keys: None, applied: None, ssh_port: None };
    assert!(driver.provider.pin(&pin, &driver.permit).await.is_err());
    assert_eq!(world.config(10_100).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_made_by_hand_is_seen_and_goes_alone() {
    let world = World::new();
    let driver = world.driver();
    let order = create("web", 10_100);
    driver.apply(&order).await.unwrap();
    // Somebody copies our machine by hand: the copy bears the same mark, and is destroyed by an order of its own.
    world
        .task_by_hand(Method::Post, "/nodes/pve1/qemu/10100/clone", &[("newid", "10200"), ("full", "1")])
        .await;
    let view = driver.look().await.unwrap();
    let bearing: Vec<_> =
        view.machines().iter().filter(|machine| machine.marks == Some(order.marks())).collect();
    assert_eq!(bearing.len(), 2, "both are seen");
    let copy = MachineRef { id: "qemu/10200".into(), name: "copy".into(), uuid: order.uuid };
    driver.apply(&Order { action: Action::Destroy { machine: copy }, ..order.clone() }).await.unwrap();
    assert_eq!(world.numbers().await, [10_100]);
    assert_eq!(world.discs().await.len(), 1, "what the other one starts with stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_protected_is_neither_removed_nor_switched_off() {
    let world = World::new();
    let driver = world.driver();
    let order = create("web", 10_100);
    driver.apply(&order).await.unwrap();
    let machine = driver.reference(&order).await;
    world.by_hand(Method::Put, "/nodes/pve1/qemu/10100/config", &[("protection", "1")]).await.unwrap();
    let destroy = Order { action: Action::Destroy { machine }, ..order.clone() };
    let refused = driver.apply(&destroy).await.unwrap_err().to_string();
    assert!(refused.contains("protected") && refused.contains("qm set 10100 --protection 0"), "{refused}");
    assert_eq!(driver.machine(&order).await.unwrap().state, orch_plan::MachineState::Running);
    assert_eq!(world.discs().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_means_a_template_and_never_a_machine_that_has_it_by_now() {
    let world = World::new();
    world.put_stranger(9013, "precious").await;
    let mut order = create("web", 10_100);
    if let Action::Create { machine } = &mut order.action {
        machine.image = "9013".into();
    }
    let refused = world.driver().apply(&order).await.unwrap_err().to_string();
    assert!(refused.contains("there is no template `9013`"), "{refused}");
    assert_eq!(world.numbers().await.len(), 1, "nothing was made of somebody's machine");
}
