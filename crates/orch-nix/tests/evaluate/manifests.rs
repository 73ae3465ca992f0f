//! Manifests that are written in Nix.

use serde_json::json;

use crate::scene::Scene;

/// A library that hands a file on as it is.
async fn scene() -> Option<Scene> {
    let mut scene = Scene::set().await?;
    scene.write_outside("library/manifest.nix", "{ file, nixpkgs ? null }: import (/. + file)");
    scene.settings.lib = Some(scene.folder.path().join("library"));
    Some(scene)
}

#[tokio::test]
async fn a_manifest_in_nix_is_read_as_data() {
    let Some(scene) = scene().await else { return };
    scene.write(
        "manifests/web.nix",
        r#"let name = "web"; in { schema_version = 2; inherit name; odd = "\${x}"; }"#,
    );
    let file = scene.folder.path().join("site/manifests/web.nix");
    let value = scene.evaluator().evaluate_file(&file, None).await.unwrap();
    assert_eq!(value, json!({ "schema_version": 2, "name": "web", "odd": "${x}" }));
}

#[tokio::test]
async fn a_manifest_that_does_not_evaluate_is_named_with_what_nix_says() {
    let Some(scene) = scene().await else { return };
    scene.write("manifests/web.nix", "{ name = nmae; }");
    let file = scene.folder.path().join("site/manifests/web.nix");
    let error = scene.evaluator().evaluate_file(&file, None).await.unwrap_err();
    assert!(error.to_string().ends_with("web.nix` does not evaluate: undefined variable 'nmae'"), "{error}");
    assert!(error.evidence().join("\n").contains("web.nix:1:10"), "{:?}", error.evidence());
    let error = scene.evaluator().evaluate_file(&file.with_file_name("none.nix"), None).await.unwrap_err();
    assert!(error.to_string().ends_with("none.nix` cannot be evaluated"), "{error}");
}
