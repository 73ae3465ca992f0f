//! The same with the library that the program carries in itself: with the stand-in for NixOS, and with a real nixpkgs
//! where one is at hand.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use orch_nix::{Kind, Wanted};
use serde_json::json;

use crate::scene::Scene;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What NixOS wants of every machine.
const HOST: &str = r#"{ lib, ... }: {
  fileSystems."/" = { device = "/dev/vda1"; fsType = "ext4"; };
  boot.loader.grub.device = "/dev/vda";
  boot.kernel.sysctl."kernel.panic" = lib.mkDefault (import ../panic.nix);
}
"#;

/// What both understand.
const PLAIN: &str = "{ ... }: { }";

fn skip(reason: &str) -> Option<PathBuf> {
    println!("skipped: {reason}");
    None
}

fn real() -> Option<PathBuf> {
    let named = std::env::var_os("ORCH_TEST_NIXPKGS").map(PathBuf::from);
    named.or_else(|| {
        skip("no nixpkgs; `ORCH_TEST_NIXPKGS=<folder> cargo test -p orch-nix --test evaluate nixos` runs it")
    })
}

fn stand_in() -> Option<PathBuf> {
    let folder = Path::new(REPOSITORY).join("tests/nix/stand-in");
    if folder.is_dir() { Some(folder) } else { skip("the stand-in for NixOS is not there") }
}

/// Three hosts that read one file, with the library that the program carries in itself.
async fn check(nixpkgs: Option<PathBuf>, module: &str) {
    let Some(nixpkgs) = nixpkgs else { return };
    let Some(mut scene) = Scene::set().await else { return };
    scene.settings.lib = None;
    scene.settings.nixpkgs = Some(nixpkgs);
    scene.settings.limit = Duration::from_mins(10);
    scene.settings.parallel = 1;
    let names = ["a", "b", "c"];
    let hosts = names.map(|name| {
        scene.write(&format!("hosts/{name}/default.nix"), module);
        Wanted { kind: Kind::Host, config: json!({ "seconds": 10 }), ..scene.node(name) }
    });
    scene.write("hosts/panic.nix", "10");
    let began = Instant::now();
    let first = scene.evaluate_these(&hosts).await;
    let (cold, told) = (began.elapsed(), scene.told());
    for result in first.values() {
        let one =
            result.as_ref().map_err(|error| format!("{error}\n{}", error.evidence().join("\n"))).unwrap();
        assert!(one.system.as_str().contains("nixos-system"), "{one:?}");
    }
    let began = Instant::now();
    let second = scene.evaluate_these(&hosts).await;
    println!("3 systems: {cold:?}, again {:?}", began.elapsed());
    assert!(second.values().all(|result| result.as_ref().is_ok_and(|one| one.from_cache)), "{told}");
    scene.write("hosts/b/default.nix", &format!("# Changed.\n{module}"));
    let third = scene.evaluate_these(&hosts).await;
    for name in names {
        let [first, third] = [&first, &third].map(|results| results[name].as_ref().unwrap());
        assert_eq!(first.drv, third.drv, "a comment makes no other system");
        assert!(!third.from_cache, "{}", scene.told());
    }
}

#[tokio::test]
async fn real_systems_are_evaluated_together_and_again_only_where_they_changed() {
    check(real(), HOST).await;
}

#[tokio::test]
async fn stand_ins_are_evaluated_together_and_again_only_where_they_changed() {
    check(stand_in(), PLAIN).await;
}
