//! Making and destroying, cut short at every question: by a driver that is killed, by an answer that is lost, by an error. The
//! next driver does what a plan would, and in the end there is one machine, or none.

use std::time::Duration;

use orch_lab::{Fault, Rule};
use orch_plan::{Action, MachineRef, MachineState};
use orch_run::{Done, Order};

use crate::world::{Driver, World, create, spec};

const NUMBER: u32 = 10_100;

fn world() -> World {
    World::with(|settings| settings.description = None)
}

/// Carries an order out until so many questions were asked, and not one word further. Whether it came to its end.
async fn cut(world: &World, driver: &Driver, order: &Order, questions: u64) -> bool {
    let enough = async {
        while world.serving.calls().count() < questions {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    };
    tokio::select! {
        biased;
        done = driver.apply(order) => { done.unwrap(); true }
        () = enough => false,
    }
}

/// What a plan would do about a node that is to be there.
async fn heal(world: &World, order: &Order) {
    let driver = world.driver();
    let view = driver.look().await.unwrap();
    let found = view.machines().iter().find(|machine| machine.marks == Some(order.marks()));
    let action = found.map(|machine| {
        let found = MachineRef { id: machine.id.clone(), name: machine.name.clone(), uuid: order.uuid };
        match machine.state {
            MachineState::Partial => Action::Adopt { found, machine: spec("workers-web", NUMBER) },
            _ => Action::Start { machine: found },
        }
    });
    let action = action.unwrap_or_else(|| order.action.clone());
    driver.apply(&Order { action, ..order.clone() }).await.unwrap();
    let machine = driver.machine(order).await.expect("it is there");
    assert_eq!((machine.state, machine.size), (MachineState::Running, crate::world::SMALLEST));
    assert_eq!((world.numbers().await.len(), world.discs().await.len()), (1, 1));
}

async fn destroyed(world: &World, order: &Order) {
    let driver = world.driver();
    if let Some(machine) = driver.machine(order).await {
        let machine = MachineRef { id: machine.id, name: machine.name, uuid: order.uuid };
        driver.apply(&Order { action: Action::Destroy { machine }, ..order.clone() }).await.unwrap();
    }
    assert_eq!((world.numbers().await.len(), world.discs().await.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_is_killed_while_it_makes_leaves_what_the_next_one_finishes() {
    let mut questions = 1;
    loop {
        let (world, order) = (world(), create("web", NUMBER));
        let is_done = cut(&world, &world.driver(), &order, questions).await;
        heal(&world, &order).await;
        destroyed(&world, &order).await;
        if is_done {
            break;
        }
        questions += 1;
    }
    assert!(questions > 8, "it was cut {questions} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_is_killed_while_it_destroys_leaves_what_the_next_one_destroys() {
    let mut questions = 1;
    loop {
        let (world, order) = (world(), create("web", NUMBER));
        let driver = world.driver();
        driver.apply(&order).await.unwrap();
        let machine = driver.reference(&order).await;
        world.serving.calls().reset();
        let is_done =
            cut(&world, &driver, &Order { action: Action::Destroy { machine }, ..order.clone() }, questions)
                .await;
        destroyed(&world, &order).await;
        if is_done {
            break;
        }
        questions += 1;
    }
    assert!(questions > 4, "it was cut {questions} times");
}

/// Making and destroying with one question in each place going wrong.
async fn every_question_once(fault: Fault) {
    let mut running = tokio::task::JoinSet::new();
    for after in 0..16 {
        running.spawn(one_question_once(fault, after));
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn one_question_once(fault: Fault, after: u32) {
    let (world, order) = (world(), create("web", NUMBER));
    world.faults.add(Rule { after, ..Rule::once(fault) });
    let driver = world.driver();
    let made = driver.apply(&order).await;
    assert_eq!(made.unwrap_or_else(|error| panic!("{fault:?} at {after}: {error:?}")), Done::Changed);
    world.faults.clear();
    heal(&world, &order).await;
    let machine = driver.reference(&order).await;
    world.faults.add(Rule { after, ..Rule::once(fault) });
    let destroy = Order { action: Action::Destroy { machine }, ..order.clone() };
    let gone = driver.apply(&destroy).await;
    assert_eq!(gone.unwrap_or_else(|error| panic!("{fault:?} at {after}: {error:?}")), Done::Changed);
    world.faults.clear();
    destroyed(&world, &order).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_one_answer_may_be_lost() {
    every_question_once(Fault::CutAnswer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_one_question_may_meet_an_error_on_the_way() {
    every_question_once(Fault::ServerError).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_one_answer_may_never_come() {
    every_question_once(Fault::SilentAfter).await;
}
