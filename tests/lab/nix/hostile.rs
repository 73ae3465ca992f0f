//! Whatever people write in a site is data on its whole way: to Nix, through the store, to the node.

use super::scene::{NixLab, skips};

const CREATE: &str = "create -M lab -H father --json";

/// Texts that mean something to Nix, to a shell, or to both.
const WORDS: [&str; 6] = [
    "${builtins.throw \"code\"}",
    "''${\"x\"}'' '' ''\\n",
    "\"; touch /etc/was-here; \"",
    "$(touch /etc/was-here) `touch /etc/was-here`",
    "'; touch /etc/was-here #",
    "one\ntouch /etc/was-here\n\\\t%s",
];

/// Has what the node was told lie in its system, as Nix has it.
const MODULE: &str = r#"
  version = "1";
  files."etc/told" = builtins.toJSON config.orch.node.config.files;
"#;

#[test]
fn what_a_spec_says_reaches_the_system_of_a_node_as_it_is_and_is_run_by_nobody() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], "");
    let module = format!("{{ config, ... }}: {{ standIn = {{ {MODULE} }}; }}\n");
    scene.lab.write("modules/web/default.nix", &module);
    let file = |(place, word): (usize, &str)| serde_json::json!({ "path": format!("/etc/word-{place}"), "content": word });
    let files: Vec<_> = WORDS.into_iter().enumerate().map(file).collect();
    let spec = serde_json::json!({
        "schema_version": 1, "nixos": { "modules": ["modules/web"] }, "files": files,
    });
    scene.lab.write("specs/nixos.yaml", &spec.to_string());
    scene.orch(CREATE).ends_with(0).every_node_is("changed");
    let system = scene.runs("web").unwrap();
    let told = system.join("etc/told");
    let told = scene.read_in("web", &told);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let text = told.to_string();
    for word in WORDS {
        let written = serde_json::to_string(word).unwrap();
        assert!(text.contains(&written), "{written} is not in {text}");
    }
    assert_eq!(scene.read("web", "etc/was-here"), None);
    assert!(!std::path::Path::new("/etc/was-here").exists());
}

#[test]
fn names_that_are_code_are_refused_where_they_are_read_or_are_names_of_nothing() {
    if skips() {
        return;
    }
    for module in
        ["${builtins.currentTime}", "modules/$(touch was-here)", "../../etc", "modules/web''", "-rf"]
    {
        let scene = NixLab::with_nodes("", &["web"], r#"version = "1";"#);
        let spec = serde_json::json!({ "schema_version": 1, "nixos": { "modules": [module] } });
        scene.lab.write("specs/nixos.yaml", &spec.to_string());
        let refused = scene.orch(CREATE);
        assert!([1, 3].contains(&refused.code), "{module}: {}\n{}", refused.stdout, refused.stderr);
        assert_eq!(scene.lab.machines(), [""; 0], "{module}");
        assert!(!scene.lab.site.join("was-here").exists(), "{module}");
    }
    let scene = NixLab::with_nodes("", &["web"], r#"version = "1";"#);
    for name in ["${x}", "a;b", "$(id)", "a b", "-x", "a'b", "a\"b", "A", "../x"] {
        for words in [["rollout", "-H", name], ["validate", "-M", name]] {
            let mut command = scene.command("");
            let refused = crate::common::Outcome::of(command.args(words), name);
            assert!(
                [2, 3].contains(&refused.code),
                "{words:?} ended with {}: {}",
                refused.code,
                refused.stderr
            );
        }
    }
}
