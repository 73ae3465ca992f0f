//! Which nixpkgs a site is evaluated with, where none is named.

use std::fs;

use orch_nix::EvalError;

use crate::scene::Scene;

/// A library that finds its nixpkgs as `which` says.
async fn scene(which: &str) -> Option<Scene> {
    let mut scene = Scene::set().await?;
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/library/evaluate.nix");
    scene.write_outside("library/evaluate.nix", &fs::read_to_string(library).unwrap());
    scene.write_outside("library/which-nixpkgs.nix", which);
    scene.settings.lib = Some(scene.folder.path().join("library"));
    scene.settings.nixpkgs = None;
    scene.write("hosts/web/default.nix", "{ nixpkgs }: { a = nixpkgs.version; }");
    Some(scene)
}

#[tokio::test]
async fn without_any_the_node_has_no_system_and_the_hint_says_what_to_name() {
    let Some(scene) = scene("{ site }: throw \"there is none\"").await else { return };
    let error = scene.evaluate(&["web"]).await.remove("web").unwrap().unwrap_err();
    assert!(matches!(error, EvalError::Nixpkgs { .. }), "{error:?}");
    assert_eq!(error.to_string(), "there is no nixpkgs for the site: there is none");
    assert!(error.hint().contains("ORCH_NIXPKGS"));
}

#[tokio::test]
async fn what_a_lock_file_pins_is_looked_for_once() {
    // What stands for a download is copied to the store.
    let which = r#"{ site }: { path = "${/. + site + "/pinned"}"; }"#;
    let Some(scene) = scene(which).await else { return };
    scene.write("pinned/default.nix", "{ version = 7; }");
    scene.write("flake.lock", "{ }");
    let first = scene.one("web").await;
    assert!(fs::read_to_string(first.drv.as_str()).unwrap().contains('7'));
    scene.write_outside("library/which-nixpkgs.nix", "{ site }: throw \"asked again\"");
    let second = scene.one("web").await;
    assert_eq!(second.drv, first.drv);
    scene.write("flake.lock", "{ \"other\": true }");
    let error = scene.evaluate(&["web"]).await.remove("web").unwrap().unwrap_err();
    assert!(error.to_string().ends_with("asked again"), "another lock is looked for again: {error}");
}
