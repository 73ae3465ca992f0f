//! Manifests that are written in Nix: read like any other, where there is a Nix to read them.

use super::scene::{NixLab, skips};

/// Three nodes that nobody wrote out.
const MANIFEST: &str = r#"{
  schema_version = 2;
  name = "many";
  nodes = map (number: { name = "web-${toString number}"; type = "vm"; image = "debian-13"; preset = "tiny"; spec = "nixos"; }) [ 1 2 3 ];
}
"#;

#[test]
fn a_manifest_in_nix_is_read_as_what_it_evaluates_to() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], "version = \"1\";");
    scene.lab.write("manifests/many.nix", MANIFEST);
    scene.lab.write("presets/tiny.yaml", "cores: 1\nmemory: 512\ndisk: 1\n");
    let planned = scene.orch("plan -M many -H father --json").ends_with(0);
    planned.says("many.web-1@father").says("many.web-2@father").says("many.web-3@father");
    scene.orch("validate").ends_with(0);
}

#[test]
fn a_manifest_in_nix_that_is_wrong_says_where_it_is_and_what_nix_said() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], "version = \"1\";");
    scene.lab.write("manifests/many.nix", "{ schema_version = 2; name = oops; }\n");
    let said = scene.orch("validate -M many").ends_with(1).stderr;
    assert!(said.contains("manifests/many.nix") && said.contains("undefined variable 'oops'"), "{said}");
    // What evaluates is checked as every manifest is.
    scene.lab.write("manifests/many.nix", &MANIFEST.replace("\"vm\"", "\"wm\""));
    let said = scene.orch("validate -M many").ends_with(1).stderr;
    assert!(said.contains("manifests/many.nix") && said.contains("wm"), "{said}");
}
