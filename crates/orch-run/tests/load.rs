//! A site is found and read whatever lies in its folders, in bounded time; what cannot be read becomes a problem that
//! names the file and the cause, together with every other problem.

// `UPDATE_EXPECT=1` writes them so.
#![allow(clippy::needless_raw_string_hashes)]

mod common;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::sample_root;
use expect_test::{Expect, expect};
use orch_model::{FileKind, ManifestName, Scope, Sources, parse};
use orch_run::load::{self, LoadError};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// Far more than reading a few files takes: only what waits for ever reaches it.
const EVER: Duration = Duration::from_secs(30);

const MANIFEST: &str =
    "schema_version: 2\nname: web\nnodes:\n  - { name: web, type: vm, preset: small, image: i }\n";

/// A small sound site.
fn site() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(folder.path(), "site.yaml", "name: home\n");
    write(folder.path(), "hosts/father.yaml", "provider: local\n");
    write(folder.path(), "presets/small.yaml", "{ cores: 1, memory: 1024, disk: 10 }\n");
    write(folder.path(), "manifests/web.yaml", MANIFEST);
    folder
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
}

/// Loads the site, which must not take for ever.
fn loaded(root: &Path) -> Result<Sources, LoadError> {
    let (send, receive) = mpsc::channel();
    let root = root.to_owned();
    thread::spawn(move || send.send(load::site(&root)));
    receive.recv_timeout(EVER).expect("a site is read in bounded time")
}

/// What is wrong with a site, a line for each problem.
fn problems(root: &Path) -> String {
    let sources = loaded(root).expect("the site can be listed");
    let found = parse(&sources, Scope::Site).err();
    let lines = found.iter().flat_map(orch_model::Problems::iter).map(|problem| {
        let file = problem.file.as_deref().unwrap_or("-");
        format!("{file}: {}\n", problem.message)
    });
    lines.collect()
}

/// What is wrong with the small site after something was put into it.
fn check(put: impl FnOnce(&Path), expected: &Expect) {
    let folder = site();
    put(folder.path());
    expected.assert_eq(&problems(folder.path()));
}

#[test]
fn the_sample_site_is_found_from_any_folder_of_it_and_is_sound() {
    let root = sample_root();
    for from in ["", "manifests", "crates/orch-run/tests"] {
        assert_eq!(load::find(None, &root.join(from)).expect("it is in a site"), root);
    }
    let sources = loaded(&root).expect("the sample site can be read");
    let catalog = parse(&sources, Scope::Site).unwrap_or_else(|problems| unreachable!("{problems}"));
    assert!(catalog.manifests().count() >= 7);
    assert!(sources.iter().all(|source| source.content.is_ok()));
}

#[test]
fn the_nearest_site_is_taken_unless_one_is_given() {
    let outer = site();
    write(outer.path(), "inner/manifests/web.yaml", MANIFEST);
    let inner = outer.path().join("inner");
    assert_eq!(load::find(None, &inner.join("manifests")).expect("it is in a site"), inner);
    assert_eq!(load::find(Some(outer.path()), &inner).expect("one is given"), outer.path());
}

#[test]
fn what_is_no_site_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let error = load::find(None, folder.path()).expect_err("nothing above it is a site");
    assert_eq!(
        error.to_string(),
        format!(
            "`{}` is not in a site: neither it nor a folder above it holds `manifests/`",
            folder.path().display()
        )
    );
    assert!(error.hint().contains("--site"));
    // A file of that name is no folder of manifests.
    write(folder.path(), "manifests", "");
    for given in [folder.path().to_owned(), folder.path().join("absent")] {
        let error = load::find(Some(&given), folder.path()).expect_err("it is not a site");
        assert_eq!(
            error.to_string(),
            format!("`{}` is not a site: it holds no `manifests/`", given.display())
        );
    }
}

#[test]
fn a_sound_site_has_no_problems() {
    check(|_| {}, &expect![""]);
}

#[test]
fn links_that_lead_nowhere_or_in_circles_are_told() {
    check(
        |root| {
            symlink("loop.yaml", root.join("manifests/loop.yaml")).unwrap();
            symlink("nowhere", root.join("specs.yaml")).unwrap();
            fs::create_dir(root.join("specs")).unwrap();
            symlink("../nowhere.yaml", root.join("specs/gone.yaml")).unwrap();
        },
        &expect![[r#"
            manifests/loop.yaml: this file cannot be read: Too many levels of symbolic links (os error 40)
            specs/gone.yaml: this file cannot be read: No such file or directory (os error 2)
        "#]],
    );
}

#[test]
fn a_link_to_a_file_or_a_folder_is_followed() {
    let folder = site();
    let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
    write(elsewhere.path(), "mother/host.yaml", "provider: local\n");
    write(elsewhere.path(), "base.yaml", "schema_version: 1\n");
    fs::create_dir(folder.path().join("specs")).unwrap();
    symlink(elsewhere.path().join("base.yaml"), folder.path().join("specs/base.yaml")).unwrap();
    symlink(elsewhere.path().join("mother"), folder.path().join("hosts/mother")).unwrap();
    assert_eq!(problems(folder.path()), "");
    let sources = loaded(folder.path()).unwrap();
    let hosts: Vec<&str> = sources.of_kind(FileKind::Host).map(|source| source.place.stem.as_str()).collect();
    assert_eq!(hosts, ["father", "mother"]);
}

#[test]
fn a_pipe_or_a_device_is_told_and_not_waited_for() {
    check(
        |root| {
            let pipe = root.join("manifests/pipe.yaml");
            mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            symlink("/dev/zero", root.join("hosts/zero.yaml")).unwrap();
        },
        &expect![[r#"
            hosts/zero.yaml: this file cannot be read: it is not a regular file
            manifests/pipe.yaml: this file cannot be read: it is not a regular file
        "#]],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    // For root every file can be opened; this one is regular, and cannot be read at its beginning by anyone.
    check(
        |root| symlink("/proc/self/mem", root.join("hosts/secret.yaml")).unwrap(),
        &expect![[r#"
        hosts/secret.yaml: this file cannot be read: Input/output error (os error 5)
    "#]],
    );
}

#[test]
fn a_file_that_is_too_large_is_told_and_not_read() {
    check(
        |root| {
            let large = File::create(root.join("manifests/large.yaml")).unwrap();
            large.set_len(100 * 1024 * 1024).unwrap();
        },
        &expect![[r#"
            manifests/large.yaml: this file cannot be read: it is larger than 32 MiB
        "#]],
    );
}

#[test]
fn a_name_that_is_not_text_is_told_as_such() {
    let folder = site();
    let manifests = folder.path().join("manifests");
    fs::write(manifests.join(OsStr::from_bytes(b"caf\xe9.yaml")), MANIFEST).unwrap();
    // What is no file of a site may have any name.
    fs::write(manifests.join(OsStr::from_bytes(b"\xff\xfe")), "x").unwrap();
    let told = problems(folder.path());
    assert!(told.starts_with("manifests/caf\u{fffd}.yaml: ") && told.contains("`caf\u{fffd}`"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_folder_that_is_named_like_a_file_is_told() {
    check(
        |root| {
            fs::create_dir(root.join("manifests/edge.yaml")).unwrap();
            fs::create_dir_all(root.join("hosts/mother/host.yaml")).unwrap();
        },
        &expect![[r#"
            hosts/mother/host.yaml: this file cannot be read: it is not a regular file
            manifests/edge.yaml: this file cannot be read: it is not a regular file
        "#]],
    );
}

#[test]
fn a_file_where_a_folder_of_the_site_belongs_is_an_error_with_its_cause() {
    let folder = site();
    write(folder.path(), "specs", "");
    let error = loaded(folder.path()).expect_err("a file cannot be listed");
    assert_eq!(error.to_string(), format!("`{}` cannot be listed", folder.path().join("specs").display()));
    assert!(std::error::Error::source(&error).is_some(), "the cause is kept");
    assert!(error.hint().contains("folder"));
}

#[test]
fn a_host_may_lie_in_a_folder_of_its_own_beside_its_module() {
    let folder = site();
    write(folder.path(), "hosts/mother/host.yaml", "provider: local\n");
    write(folder.path(), "hosts/mother/default.nix", "{ }");
    write(folder.path(), "hosts/mother/deeper/host.yaml", "not a site's file");
    write(folder.path(), "hosts/README.md", "hello");
    assert_eq!(problems(folder.path()), "");
    let sources = loaded(folder.path()).unwrap();
    let paths: Vec<&str> = sources.of_kind(FileKind::Host).map(|source| source.path.as_str()).collect();
    assert_eq!(paths, ["hosts/father.yaml", "hosts/mother/host.yaml"]);
}

/// The small site with a manifest from elsewhere.
fn with(name: &str, text: &str) -> (TempDir, PathBuf, Result<Sources, LoadError>) {
    let (folder, elsewhere) = (site(), tempfile::tempdir().expect("a temporary folder can be made"));
    write(elsewhere.path(), name, text);
    let path = elsewhere.path().join(name);
    let sources = load::with_manifest(&loaded(folder.path()).expect("the site can be listed"), &path);
    drop(folder);
    (elsewhere, path, sources)
}

#[test]
fn a_manifest_from_elsewhere_takes_the_place_of_the_sites_own() {
    let (_elsewhere, path, sources) = with(
        "web.json",
        r#"{"schema_version":2,"name":"web","description":"mine",
        "nodes":[{"name":"web","type":"vm","preset":"small","image":"i"}]}"#,
    );
    let sources = sources.expect("it is a manifest by its name");
    let manifests: Vec<&str> =
        sources.of_kind(FileKind::Manifest).map(|source| source.path.as_str()).collect();
    assert_eq!(manifests, [path.to_str().expect("a temporary path is text")]);
    let web: ManifestName = "web".parse().unwrap();
    let catalog = parse(&sources, Scope::Site).unwrap_or_else(|problems| unreachable!("{problems}"));
    assert_eq!(catalog.description(&web), Some("mine"));
}

#[test]
fn a_manifest_from_elsewhere_that_is_wrong_is_told_by_its_path() {
    let (_elsewhere, path, sources) = with("edge.yaml", "schema_version: 2\nname: edge\nnodes: []\n");
    let found = parse(&sources.unwrap(), Scope::Site).expect_err("it has no nodes");
    assert_eq!(found.iter().next().unwrap().file.as_deref(), path.to_str());
}

#[test]
fn what_is_no_manifest_by_its_name_or_is_not_there_is_refused() {
    for name in ["web.txt", "web", ".yaml"] {
        let (_elsewhere, path, sources) = with(name, MANIFEST);
        let error = sources.expect_err("it is no manifest");
        assert!(error.to_string().starts_with(&format!("`{}` is not a manifest", path.display())), "{error}");
    }
    let folder = site();
    let absent = load::with_manifest(&loaded(folder.path()).unwrap(), &folder.path().join("absent.yaml"));
    let found = parse(&absent.expect("its name is fine"), Scope::Site).expect_err("it is not there");
    assert!(found.to_string().contains("No such file"), "{found}");
}
