//! Many machines at once, as a cloud has them.

use std::collections::BTreeSet;

use orch_lab::Machines;
use tokio::task::JoinSet;

use super::scene::{Scene, answers, wanted};
use crate::common::{Need, lacks, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn machines_that_are_started_at_once_answer_each_at_an_address_of_its_own() {
    const MANY: usize = 20;
    if lacks(&[Need::Root, Need::Ssh]) {
        return;
    }
    let scene = Scene::new();
    let (machines, _) = scene.machines();
    let mut starts = JoinSet::new();
    for number in 0..MANY {
        let (machines, id) = (machines.clone(), number.to_string());
        let first = scene.first(&format!("i-{number}"), "");
        starts.spawn(async move {
            machines.make(&wanted(&id)).await.unwrap();
            machines.start(&id, &first).await.unwrap();
            machines.address(&id).await.unwrap()
        });
    }
    let addresses: BTreeSet<_> = starts.join_all().await.into_iter().collect();
    assert_eq!(addresses.len(), MANY);
    assert!(addresses.iter().all(|address| answers(*address, 22)));
    machines.remove_all().await.unwrap();
    wait_until("nothing is left of them", || scene.left().is_empty());
}
