//! Whatever a site says is data: none of it becomes Nix code, a shell's, or an option of a program.

use serde_json::json;

use crate::scene::Scene;

const HOSTILE: [&str; 6] = [
    "${builtins.throw \"code\"}",
    "''${x}''",
    "\"; touch /tmp/orch-was-here; \"",
    "--option sandbox false",
    "$(touch /tmp/orch-was-here) `id` \\ \n \u{7}",
    "</nix/store>",
];

#[tokio::test]
async fn what_the_site_says_of_a_node_arrives_as_it_is() {
    let Some(scene) = Scene::set().await else { return };
    scene.write("hosts/web/default.nix", "_: { }");
    let mut node = scene.node("web");
    node.config["words"] = json!(HOSTILE);
    for word in HOSTILE {
        node.config[word] = json!(word);
    }
    let expected = serde_json::to_string(&json!(HOSTILE)).unwrap();
    let evaluated = scene.evaluate_these(&[node]).await.remove("web").unwrap().unwrap();
    let derivation = std::fs::read_to_string(evaluated.drv.as_str()).unwrap();
    // A derivation escapes what JSON has escaped.
    let written = expected.replace('\\', "\\\\").replace('"', "\\\"");
    assert!(derivation.contains(&written), "{written}\n{derivation}");
    assert!(!std::path::Path::new("/tmp/orch-was-here").exists());
}

#[tokio::test]
async fn a_module_with_a_hostile_name_is_a_path_and_nothing_else() {
    let Some(scene) = Scene::set().await else { return };
    let mut node = scene.node("web");
    for name in HOSTILE {
        node.modules = vec![name.to_owned()];
        let result = scene.evaluate_these(&[node.clone()]).await.remove("web").unwrap();
        assert!(result.is_err(), "{name} evaluated to {result:?}");
    }
    assert!(!std::path::Path::new("/tmp/orch-was-here").exists());
}

#[tokio::test]
async fn a_site_in_a_folder_with_a_hostile_name_evaluates() {
    let Some(scene) = Scene::set().await else { return };
    scene.write("hosts/web/default.nix", "_: { a = import ./b.nix; }");
    scene.write("hosts/web/b.nix", "1");
    let odd = scene.folder.path().join("a b=${c} 'd' \"e\"");
    std::fs::rename(scene.folder.path().join("site"), &odd).unwrap();
    let results = scene.evaluator().evaluate(&odd, &[scene.node("web")], &|_| {}).await;
    assert!(results.into_values().all(|result| result.is_ok()));
    let again = scene.evaluator().evaluate(&odd, &[scene.node("web")], &|_| {}).await;
    assert!(again.into_values().all(|result| result.unwrap().from_cache));
}
