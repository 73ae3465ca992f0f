//! Many nodes: split by memory, and evaluated again no more than is needed.

use std::collections::BTreeSet;

use crate::scene::{Results, Scene};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

async fn fleet() -> Option<Scene> {
    let scene = Scene::set().await?;
    for name in NAMES {
        scene.write(
            &format!("hosts/{name}/default.nix"),
            "_: { a = import ../common.nix; b = builtins.readFile ./motd; }",
        );
        scene.write(&format!("hosts/{name}/motd"), name);
    }
    scene.write("hosts/common.nix", "{ }");
    Some(scene)
}

fn evaluated_again(results: &Results) -> BTreeSet<&str> {
    let again = results.iter().filter(|(_, result)| result.as_ref().is_ok_and(|one| !one.from_cache));
    again.map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn what_is_changed_often_ends_up_alone() {
    let Some(scene) = fleet().await else { return };
    scene.evaluate(&NAMES).await;
    assert_eq!(scene.told(), "evaluates 8 nodes in 2 parts");
    assert!(evaluated_again(&scene.evaluate(&NAMES).await).is_empty());
    let mut sizes = Vec::new();
    for round in 0..5 {
        scene.write("hosts/c/motd", &format!("round {round}"));
        let results = scene.evaluate(&NAMES).await;
        let again = evaluated_again(&results);
        assert!(again.contains("c"));
        sizes.push(again.len());
    }
    assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.last() == Some(&1), "{sizes:?}");
}

#[tokio::test]
async fn a_module_of_one_node_matters_only_to_those_that_it_was_evaluated_with() {
    let Some(scene) = fleet().await else { return };
    scene.evaluate(&NAMES).await;
    scene.write(
        "hosts/c/default.nix",
        "_: { a = import ../common.nix; b = builtins.readFile ./motd; c = 1; }",
    );
    let results = scene.evaluate(&NAMES).await;
    assert_eq!(evaluated_again(&results), BTreeSet::from(["a", "b", "c", "d"]), "{}", scene.told());
}

#[tokio::test]
async fn what_all_read_is_evaluated_again_for_all() {
    let Some(scene) = fleet().await else { return };
    let before = scene.evaluate(&NAMES).await;
    scene.write("hosts/common.nix", "{ changed = true; }");
    let after = scene.evaluate(&NAMES).await;
    assert_eq!(evaluated_again(&after).len(), NAMES.len());
    for name in NAMES {
        assert_ne!(before[name].as_ref().unwrap().drv, after[name].as_ref().unwrap().drv);
    }
}

#[tokio::test]
async fn with_little_memory_nodes_are_evaluated_one_by_one_to_the_same_systems() {
    let Some(mut scene) = fleet().await else { return };
    let together = scene.evaluate(&NAMES).await;
    scene.settings.memory = Some(1 << 20);
    scene.settings.cache = scene.folder.path().join("other-cache");
    let alone = scene.evaluate(&NAMES).await;
    assert_eq!(scene.told(), "evaluates 8 nodes in 8 parts");
    for name in NAMES {
        assert_eq!(together[name].as_ref().unwrap().drv, alone[name].as_ref().unwrap().drv);
    }
    let known = std::fs::read_to_string(scene.settings.cache.join("memory.json")).unwrap();
    let known: serde_json::Value = serde_json::from_str(&known).unwrap();
    let alone = known["alone"].as_u64().unwrap();
    assert!((1 << 20..200 << 20).contains(&alone), "what was seen is remembered: {known}");
}

#[tokio::test]
async fn a_file_that_one_evaluates_and_another_reads_at_the_same_time_matters_to_both() {
    let Some(scene) = Scene::set().await else { return };
    scene.write("hosts/a/default.nix", "_: { a = import ../shared.nix; }");
    scene.write("hosts/b/default.nix", "_: { b = builtins.readFile ../shared.nix; }");
    scene.write("hosts/c/default.nix", "_: { }");
    scene.write("hosts/shared.nix", "{ }");
    scene.evaluate(&["a", "b"]).await;
    assert_eq!(scene.told(), "evaluates 2 nodes in 2 parts");
    scene.one("c").await;
    scene.write("hosts/shared.nix", "{ changed = true; }");
    let results = scene.evaluate(&["a", "b", "c"]).await;
    assert_eq!(evaluated_again(&results), BTreeSet::from(["a", "b"]), "{}", scene.told());
}
