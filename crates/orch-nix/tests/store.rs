//! What the store of a machine promises, with a real one.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod common;

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use common::{SETTINGS, nix, unique};
use orch_model::StorePath;
use orch_nix::{DrvPath, Store, StoreError, Tools};

const LIMIT: Duration = Duration::from_mins(2);

/// A derivation with one dependency. What it runs is data of the test and no text from elsewhere.
const SYSTEM: &str = r#"{ name, script }:
let
  make = name: script: derivation {
    inherit name; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" script ];
  };
  dependency = make "${name}-dependency" "echo dependency > $out";
in make name "echo ${dependency} > $out; ${script}"
"#;

struct Built {
    store: Store,
    drv: DrvPath,
    system: StorePath,
    _folder: tempfile::TempDir,
}

fn instantiate(tools: Tools, name: &str, script: &str) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("system.nix");
    std::fs::write(&file, SYSTEM).unwrap();
    let mut command = std::process::Command::new("nix-instantiate");
    command
        .env("NIX_CONFIG", SETTINGS)
        .arg(&file)
        .args(["--argstr", "name", name, "--argstr", "script", script]);
    let said = command.output().unwrap();
    let drv: DrvPath = String::from_utf8(said.stdout).unwrap().trim().parse().unwrap();
    let query =
        std::process::Command::new("nix-store").args(["-q", "--outputs", drv.as_str()]).output().unwrap();
    let system = String::from_utf8(query.stdout).unwrap().trim().parse().unwrap();
    Built { store: Store::new(tools), drv, system, _folder: folder }
}

async fn realise(built: &Built, limit: Duration) -> (Result<(), StoreError>, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let tell = |words: &str| told.lock().unwrap().push(words.to_owned());
    let result = built.store.realise(&built.drv, &built.system, &tell, limit).await;
    (result, told.into_inner().unwrap())
}

#[tokio::test]
async fn what_is_built_is_told_in_words_and_its_closure_has_what_it_refers_to_first() {
    let Some(tools) = nix().await else { return };
    let name = unique("closure");
    let built = instantiate(tools, &name, "");
    assert!(!built.store.holds(&built.system).await);
    let (result, told) = realise(&built, LIMIT).await;
    result.unwrap();
    assert!(told.iter().any(|words| words.starts_with(&format!("builds {name} (2 of 2"))), "{told:?}");
    assert!(built.store.holds(&built.system).await);
    let closure = built.store.closure(&built.system).await.unwrap();
    assert_eq!(closure.len(), 2);
    assert!(closure[0].path.as_str().ends_with("-dependency") && closure[0].bytes > 0);
    assert_eq!(closure[1].path, built.system);
    let (result, told) = realise(&built, LIMIT).await;
    result.unwrap();
    assert!(told.is_empty(), "built before, it is not built again: {told:?}");
}

#[tokio::test]
async fn a_build_that_fails_leaves_its_last_lines_and_a_way_to_all_of_them() {
    let Some(tools) = nix().await else { return };
    let built =
        instantiate(tools, &unique("fails"), "echo about to fail; echo 'because of ${it}' >&2; exit 3");
    let error = realise(&built, LIMIT).await.0.unwrap_err();
    assert!(error.to_string().ends_with("failed with exit code 3"), "{error}");
    let evidence = error.evidence().join("\n");
    assert!(evidence.contains("about to fail\nbecause of ${it}"), "{evidence}");
    assert!(error.hint().contains(built.drv.as_str()));
}

#[tokio::test]
async fn of_many_that_are_built_in_one_process_one_that_fails_does_not_stop_the_others() {
    let Some(tools) = nix().await else { return };
    let scripts = ["", "exit 3", "echo another >> $out"];
    let built = scripts.map(|script| instantiate(tools.clone(), &unique("many"), script));
    let drvs = built.each_ref().map(|one| one.drv.clone());
    built[0].store.realise_many(&drvs, LIMIT).await;
    for (one, is_built) in built.iter().zip([true, false, true]) {
        assert_eq!(one.store.holds(&one.system).await, is_built, "{}", one.system);
    }
}

#[tokio::test]
async fn a_build_ends_at_its_limit() {
    let Some(tools) = nix().await else { return };
    let built = instantiate(tools, &unique("hangs"), "while :; do :; done");
    let error = realise(&built, Duration::from_secs(2)).await.0.unwrap_err();
    assert!(error.is_time_limit(), "{error}");
}

#[tokio::test]
async fn a_derivation_that_makes_something_else_is_refused() {
    let Some(tools) = nix().await else { return };
    let mut built = instantiate(tools, &unique("other"), "");
    built.system = format!("/nix/store/{}-other", "0".repeat(32)).parse().unwrap();
    let error = realise(&built, LIMIT).await.0.unwrap_err();
    assert!(matches!(error, StoreError::Another { .. }), "{error}");
}

#[tokio::test]
async fn a_closure_leaves_as_one_stream_that_another_store_takes() {
    let Some(tools) = nix().await else { return };
    let built = instantiate(tools, &unique("stream"), "");
    realise(&built, LIMIT).await.0.unwrap();
    let closure = built.store.closure(&built.system).await.unwrap();
    let paths: Vec<StorePath> = closure.into_iter().map(|member| member.path).collect();
    Store::can_export(&paths).unwrap();
    let stream = built.store.export(&paths).output().await.unwrap();
    assert!(stream.status.success());
    let other = tempfile::tempdir().unwrap();
    import(other.path(), &stream.stdout);
    for path in &paths {
        assert!(other.path().join(&path.as_str()[1..]).exists(), "{path} did not arrive");
    }
    std::process::Command::new("chmod").args(["-R", "u+w"]).arg(other.path()).status().unwrap();
}

/// Takes a stream into a store of its own, which calls itself `/nix/store` as well.
fn import(root: &Path, stream: &[u8]) {
    use std::io::Write as _;
    let mut command = std::process::Command::new("nix-store");
    command.arg("--store").arg(root).arg("--import");
    command.env("NIX_CONFIG", SETTINGS).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut importing = command.spawn().unwrap();
    importing.stdin.take().unwrap().write_all(stream).unwrap();
    assert!(importing.wait().unwrap().success());
}

#[tokio::test]
async fn more_paths_than_a_program_takes_are_refused_in_words() {
    let path: StorePath = format!("/nix/store/{}-{}", "0".repeat(32), "x".repeat(200)).parse().unwrap();
    assert!(Store::can_export(&vec![path.clone(); 1000]).is_ok());
    let error = Store::can_export(&vec![path; 100_000]).unwrap_err();
    assert_eq!(error.to_string(), "100000 paths are more than one stream can name");
}
