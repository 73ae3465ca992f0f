//! A node that does not evaluate keeps no other one from it, and says what is wrong with it.

use std::time::Duration;

use orch_nix::EvalError;

use crate::scene::Scene;

#[tokio::test]
async fn one_broken_node_among_many_is_found_and_the_others_have_their_systems() {
    let Some(scene) = Scene::set().await else { return };
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for name in names {
        scene.write(&format!("hosts/{name}/default.nix"), "_: { }");
    }
    scene.write("hosts/c/default.nix", "_: { x = throw \"there is no such light: ${\"blue\"}\"; }");
    scene.write("hosts/f/default.nix", "_: { x = undefined-here; }");
    let results = scene.evaluate(&names).await;
    assert_eq!(results.len(), names.len());
    for (name, result) in &results {
        match (name.as_str(), result) {
            ("c", Err(error)) => {
                assert_eq!(
                    error.to_string(),
                    "`fleet.c@here` does not evaluate: there is no such light: blue"
                );
            }
            ("f", Err(error)) => {
                assert!(error.to_string().contains("undefined variable 'undefined-here'"), "{error}");
                assert!(
                    error.evidence().join("\n").contains("hosts/f/default.nix:1:"),
                    "{:?}",
                    error.evidence()
                );
                assert!(!error.hint().is_empty());
            }
            (_, result) => assert!(result.is_ok(), "{name}: {result:?}"),
        }
    }
    let again = scene.evaluate(&names).await;
    let known = again.values().filter(|result| result.as_ref().is_ok_and(|one| one.from_cache)).count();
    assert_eq!(known, 6, "those that evaluated are known: {}", scene.told());
}

#[tokio::test]
async fn one_node_that_does_not_end_is_left_at_the_limit_and_the_others_have_their_systems() {
    let Some(mut scene) = Scene::set().await else { return };
    scene.settings.limit = Duration::from_secs(6);
    scene.settings.parallel = 1;
    scene.write("hosts/a/default.nix", "_: { }");
    scene.write("hosts/z/default.nix", "_: { x = builtins.readFile ./pipe; }");
    scene.pipe("site/hosts/z/pipe");
    let mut results = scene.evaluate(&["a", "z"]).await;
    assert!(results.remove("a").unwrap().is_ok());
    let error = results.remove("z").unwrap().unwrap_err();
    assert!(error.is_time_limit(), "{error}");
}

#[tokio::test]
async fn an_evaluator_that_is_killed_is_told_apart_from_a_node_that_is_wrong() {
    let Some(scene) = Scene::set().await else { return };
    // Without an end and without a tail, the stack overflows; how Nix ends then is its own business, but it ends.
    scene.write("hosts/a/default.nix", "_: { x = let f = n: 1 + f n; in f 1; }");
    let error = scene.evaluate(&["a"]).await.remove("a").unwrap().unwrap_err();
    assert!(matches!(error, EvalError::Nix { .. } | EvalError::Ended { .. }), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_is_no_system_is_refused() {
    let Some(mut scene) = Scene::set().await else { return };
    scene.write_outside(
        "library/evaluate.nix",
        "{ input, nixpkgs }: { \"fleet.a@here\" = { drvPath = \"/etc\"; }; }",
    );
    scene.settings.lib = Some(scene.folder.path().join("library"));
    let error = scene.evaluate(&["a"]).await.remove("a").unwrap().unwrap_err();
    assert!(
        error.to_string().starts_with("`fleet.a@here` evaluates to something that is no system: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_site_or_a_nixpkgs_that_is_not_there_is_named() {
    let Some(mut scene) = Scene::set().await else { return };
    scene.settings.nixpkgs = Some(scene.folder.path().join("nowhere"));
    let error = scene.evaluate(&["a"]).await.remove("a").unwrap().unwrap_err();
    assert!(error.to_string().ends_with("/nowhere` cannot be used"), "{error}");
}

#[tokio::test]
async fn nothing_is_left_behind_of_an_evaluation() {
    let Some(scene) = Scene::set().await else { return };
    scene.write("hosts/a/default.nix", "_: { x = throw \"no\"; }");
    scene.write("hosts/b/default.nix", "_: { }");
    scene.evaluate(&["a", "b"]).await;
    let left: Vec<_> =
        std::fs::read_dir(&scene.settings.cache).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}
