//! A whole life: made, given a system, given another, left alone where nothing changed, taken back where one is bad.

use std::process::Command;

use super::scene::{NixLab, node, skips};
use crate::common::{Need, Outcome, lacks};

const FIRST: &str = r#"version = "1"; activate = "echo one > /etc/made-by";"#;
const SECOND: &str = r#"version = "2"; activate = "echo two > /etc/made-by";"#;
const BROKEN: &str =
    r#"version = "3"; activate = "echo three > /etc/made-by; echo it is broken >&2; exit 7";"#;

#[test]
fn a_node_is_given_its_system_and_another_one_and_nothing_where_nothing_changed() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], FIRST);
    let made = scene.orch("create -M lab -H father --json").ends_with(0).every_node_is("changed");
    let first = scene.runs("web").unwrap();
    assert!(first.to_string_lossy().ends_with("nixos-system-web-1"), "{}\n{}", first.display(), made.stdout);
    assert_eq!(scene.boots("web"), Some(first.clone()));
    assert_eq!(scene.read("web", "etc/made-by").as_deref(), Some("one\n"));
    made.says(&format!("read back: runs and boots {}", first.display()));

    scene.orch("config -M lab -H father --json").ends_with(0).every_node_is("unchanged");
    assert_eq!(scene.runs("web"), Some(first.clone()));

    scene.module(SECOND);
    scene.orch("config -M lab -H father --json").ends_with(0).every_node_is("changed");
    let second = scene.runs("web").unwrap();
    assert!(second.to_string_lossy().ends_with("nixos-system-web-2"), "{}", second.display());
    assert_eq!(scene.boots("web"), Some(second));
    assert_eq!(scene.read("web", "etc/made-by").as_deref(), Some("two\n"));
}

#[test]
fn a_system_whose_activation_fails_is_taken_back_and_the_report_says_what_was_read() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], FIRST);
    scene.orch("create -M lab -H father --json").ends_with(0);
    let first = scene.runs("web").unwrap();

    scene.module(BROKEN);
    let failed = scene.orch("config -M lab -H father --json").ends_with(1).every_node_is("failed");
    assert_eq!(scene.runs("web"), Some(first.clone()));
    assert_eq!(scene.boots("web"), Some(first.clone()));
    assert_eq!(
        scene.read("web", "etc/made-by").as_deref(),
        Some("one\n"),
        "the one before was activated again"
    );
    failed.says(&format!("read back: runs and boots {}", first.display())).says("it is broken");

    // What was taken back is tried again, and mended by what is right.
    scene.module(SECOND);
    scene.orch("config -M lab -H father --json").ends_with(0).every_node_is("changed");
}

#[test]
fn a_node_that_does_not_evaluate_fails_by_itself_with_what_nix_said() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("on_error: continue", &["web"], FIRST);
    scene.lab.write("specs/odd.yaml", "schema_version: 1\nnixos: { modules: [modules/odd] }\n");
    scene.lab.write("modules/odd/default.nix", "{ ... }: { standIn = throw \"the well is dry\"; }\n");
    scene.lab.write_nodes("on_error: continue", &[&node("web", "nixos"), &node("odd", "odd")]);
    let made = scene.orch("create -M lab -H father --json").ends_with(2);
    assert_eq!(made.node("web")["status"], "changed", "{}", made.stdout);
    assert_eq!(made.node("odd")["status"], "failed", "{}", made.stdout);
    made.says("the well is dry");
    assert!(scene.runs("web").is_some());
    assert!(scene.lab.machines().iter().all(|name| name != "lab-odd"), "what has no system is not made");
}

#[test]
fn the_system_that_another_tool_put_there_is_what_a_node_goes_back_to() {
    if skips() || lacks(&[Need::Program("nsenter")]) {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], FIRST);
    scene.orch("create -M lab -H father --json").ends_with(0);
    let first = scene.runs("web").unwrap();
    // Another tool has the node run and boot another system than any that a rollout wrote down.
    scene.module(SECOND);
    scene.orch("config -M lab -H father --json").ends_with(0);
    let second = scene.runs("web").unwrap();
    let mut command = Command::new("nsenter");
    command.args(["--all", "--target", &scene.lab.init("lab-web").unwrap().to_string(), "sh", "-c"]).arg(format!(
        "nix-env --profile /nix/var/nix/profiles/system --set {0} && {0}/bin/switch-to-configuration switch",
        first.display()
    ));
    Outcome::of(&mut command, "nsenter").ends_with(0);
    assert_eq!(scene.runs("web"), Some(first.clone()));

    scene.module(BROKEN);
    let failed = scene.orch("config -M lab -H father --json").ends_with(1);
    failed.says(&format!("read back: runs and boots {}", first.display()));
    assert_eq!(scene.runs("web"), Some(first));
    assert_ne!(scene.runs("web"), Some(second));
}

#[test]
fn a_node_may_build_its_system_itself_and_the_driver_has_none_of_it() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], "version = \"1\";");
    scene.orch("create -M lab -H father --build-on target --json").ends_with(0).every_node_is("changed");
    let first = scene.runs("web").unwrap();
    assert!(!scene.has(&first), "{}", first.display());
    scene.module("version = \"2\";");
    scene.orch("config -M lab -H father --json").ends_with(0).every_node_is("changed");
    let second = scene.runs("web").unwrap();
    assert!(scene.has(&second) && second != first, "built here, it is here");
}

#[test]
fn what_a_rollout_would_change_is_told_before_it_happens_and_nothing_is_changed_by_telling() {
    if skips() {
        return;
    }
    let scene =
        NixLab::with_nodes("", &["web"], "version = \"1\"; kernel = \"one\"; units.\"a.service\" = \"one\";");
    scene.orch("create -M lab -H father --json").ends_with(0);
    let first = scene.runs("web").unwrap();
    scene.orch("diff -M lab -H father").ends_with(0).says("runs what it should");
    scene.module("version = \"2\"; kernel = \"two\"; units.\"a.service\" = \"two\";");
    let told = scene.orch("diff -M lab -H father --json").ends_with(0).json();
    let node = &told["nodes"][0];
    assert_eq!((node["kind"].as_str(), node["running"].as_str()), (Some("system"), first.to_str()), "{told}");
    assert!(node["wanted"].as_str().unwrap().ends_with("nixos-system-web-2"), "{told}");
    let changes = node["changes"].to_string();
    assert!(changes.contains("a.service") && changes.contains("kernel"), "{changes}");
    assert_eq!(scene.runs("web"), Some(first));
}

#[test]
fn a_health_check_that_a_module_asks_for_is_one_that_must_hold() {
    if skips() {
        return;
    }
    let scene = NixLab::with_nodes("", &["web"], FIRST);
    scene.orch("create -M lab -H father --json").ends_with(0);
    let first = scene.runs("web").unwrap();
    let ill = format!(
        "{{ ... }}: {{ standIn = {{ {SECOND} }}; orch.health = [ {{ command = [ \"false\" ]; }} ]; }}\n"
    );
    scene.lab.write("modules/web/default.nix", &ill);
    let failed = scene.orch("config -M lab -H father --json").ends_with(1).every_node_is("failed");
    failed.says(&format!("read back: runs and boots {}", first.display()));
    assert_eq!((scene.runs("web"), scene.boots("web")), (Some(first.clone()), Some(first)));
}
