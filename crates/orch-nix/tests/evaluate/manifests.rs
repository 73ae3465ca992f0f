//! Manifests that are written in Nix.

use std::path::PathBuf;

use serde_json::json;

use crate::scene::Scene;

/// A library that hands a file on as it is.
async fn scene() -> Option<Scene> {
    let mut scene = Scene::set().await?;
    scene.write_outside("library/manifest.nix", "{ file, site, nixpkgs ? null }: import (/. + file)");
    scene.settings.lib = Some(scene.folder.path().join("library"));
    Some(scene)
}

fn site(scene: &Scene) -> PathBuf {
    scene.folder.path().join("site")
}

#[tokio::test]
async fn a_manifest_sees_its_site_and_nothing_beside_it() {
    let Some(scene) = scene().await else { return };
    scene.write("data.json", r#"{ "name": "web" }"#);
    scene.write_outside("elsewhere.json", "{ }");
    let file = site(&scene).join("manifests/web.nix");
    scene.write("manifests/web.nix", "builtins.fromJSON (builtins.readFile ../data.json)");
    let value = scene.evaluator().evaluate_file(&file, &site(&scene)).await.unwrap();
    assert_eq!(value, json!({ "name": "web" }));
    scene.write("manifests/web.nix", "builtins.fromJSON (builtins.readFile ../../elsewhere.json)");
    let error = scene.evaluator().evaluate_file(&file, &site(&scene)).await.unwrap_err();
    assert!(error.to_string().contains("forbidden in restricted mode"), "{error}");
}

#[tokio::test]
async fn a_manifest_that_needs_nixpkgs_gets_the_one_that_its_site_pins() {
    let Some(mut scene) = scene().await else { return };
    scene.settings.nixpkgs = None;
    scene.write("pinned/default.nix", "{ version = 7; }");
    scene.write("flake.lock", "{ }");
    let which = r#"{ site }: { path = "${/. + site + "/pinned"}"; }"#;
    scene.write_outside("library/which-nixpkgs.nix", which);
    let reads =
        "{ file, site, nixpkgs ? throw \"there is no nixpkgs\" }: import (/. + file) (import (/. + nixpkgs))";
    scene.write_outside("library/manifest.nix", reads);
    scene.write("manifests/web.nix", "nixpkgs: { name = \"v${toString nixpkgs.version}\"; }");
    let file = site(&scene).join("manifests/web.nix");
    let value = scene.evaluator().evaluate_file(&file, &site(&scene)).await.unwrap();
    assert_eq!(value, json!({ "name": "v7" }));
}

#[tokio::test]
async fn a_manifest_in_nix_is_read_as_data() {
    let Some(scene) = scene().await else { return };
    scene.write(
        "manifests/web.nix",
        r#"let name = "web"; in { schema_version = 2; inherit name; odd = "\${x}"; }"#,
    );
    let file = scene.folder.path().join("site/manifests/web.nix");
    let value = scene.evaluator().evaluate_file(&file, &site(&scene)).await.unwrap();
    assert_eq!(value, json!({ "schema_version": 2, "name": "web", "odd": "${x}" }));
}

#[tokio::test]
async fn a_manifest_that_does_not_evaluate_is_named_with_what_nix_says() {
    let Some(scene) = scene().await else { return };
    scene.write("manifests/web.nix", "{ name = nmae; }");
    let file = scene.folder.path().join("site/manifests/web.nix");
    let error = scene.evaluator().evaluate_file(&file, &site(&scene)).await.unwrap_err();
    assert!(error.to_string().ends_with("web.nix` does not evaluate: undefined variable 'nmae'"), "{error}");
    assert!(error.evidence().join("\n").contains("web.nix:1:10"), "{:?}", error.evidence());
    let error =
        scene.evaluator().evaluate_file(&file.with_file_name("none.nix"), &site(&scene)).await.unwrap_err();
    assert!(error.to_string().ends_with("none.nix` cannot be evaluated"), "{error}");
}
