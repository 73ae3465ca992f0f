//! What the binary promises beyond its words: locks, one JSON document, pages and logs, its other faces. Nothing here makes
//! a machine.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

const ON_FATHER: [&str; 4] = ["-M", "nested-test", "-H", "father"];

/// A driver with a state directory of its own, on the sample site.
struct Driver(TempDir);

impl Driver {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn orch(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orch"));
        let command = command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        command.env_clear().env("ORCH_STATE", self.file("state")).output().unwrap()
    }

    /// A verb about `nested-test` on `father`, with more arguments.
    fn on_father(&self, verb: &str, more: &[&str]) -> Output {
        self.orch(&[&[verb], ON_FATHER.as_slice(), more].concat())
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("orch was not killed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_host_in_use_is_told_with_its_holder_and_looking_needs_no_lock() {
    let driver = Driver::new();
    let locks = driver.file("state/locks");
    fs::create_dir_all(&locks).unwrap();
    let lock = File::create(locks.join("home.father.lock")).unwrap();
    lock.lock().unwrap();
    let held = serde_json::json!({
        "run": "20260107-103000-3f9a",
        "doing": "create nested-test",
        "pid": std::process::id(),
        "started": 1,
        "since": "2026-01-07T10:30:00Z",
    });
    fs::write(locks.join("home.father.lock"), held.to_string()).unwrap();
    for verb in ["create", "config", "test", "destroy"] {
        let output = driver.on_father(verb, if verb == "destroy" { &["--yes"] } else { &[] });
        let told = text(&output.stderr);
        assert_eq!(code(&output), 1, "{verb}: {told}");
        assert!(told.contains("host `father` is in use by create nested-test"), "{verb}: {told}");
    }
    for verb in ["plan", "status", "ssh-config"] {
        let told = text(&driver.on_father(verb, &[]).stderr);
        assert!(!told.contains("in use"), "{verb}: {told}");
    }
    drop(lock);
    assert_eq!(code(&driver.on_father("destroy", &["--yes"])), 0, "the lock is free again");
}

#[test]
fn with_json_every_answer_is_one_document() {
    let driver = Driver::new();
    let cases: [(&str, &[&str], i32); 10] = [
        ("plan", &[], 0),
        ("create", &["--dry-run"], 0),
        ("create", &["--mode", "pull", "--dry-run"], 0),
        ("plan", &["--mode", "pull"], 0),
        ("config", &["--only", "nobody"], 3),
        ("destroy", &[], 3),
        ("destroy", &["--yes"], 0),
        ("status", &[], 1),
        ("exec", &["--", "true"], 1),
        ("ssh", &["nobody"], 3),
    ];
    for (verb, more, expected) in cases {
        let output = driver.on_father(verb, &[&["--json"], more].concat());
        assert_eq!(code(&output), expected, "{verb} {more:?}: {}", text(&output.stderr));
        let answer: Result<Json, _> = serde_json::from_slice(&output.stdout);
        assert!(answer.is_ok_and(|json| json.is_object()), "{verb} {more:?}: {}", text(&output.stdout));
    }
}

#[test]
fn a_run_that_has_nothing_to_do_says_unchanged_and_can_be_shown_again() {
    let driver = Driver::new();
    let (page, again) = (driver.file("run.html"), driver.file("again.html"));
    let (page, again) = (page.to_str().unwrap(), again.to_str().unwrap());
    let output = driver.on_father("destroy", &["--yes", "--report", page]);
    let report = text(&output.stdout);
    assert!(report.contains("2 nodes: 2 unchanged"), "{report}");
    assert_eq!(text(&output.stderr), "", "nothing was done, so there is nothing to follow");
    let shown = driver.orch(&["runs", "show", "latest", "--report", again]);
    assert_eq!(text(&shown.stdout), report);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("destroy nested-test on father"), "{page}");
    assert_eq!(fs::read_to_string(again).unwrap(), page);
}

#[test]
fn a_log_takes_the_place_of_the_progress_on_standard_error() {
    let driver = Driver::new();
    let output = driver.on_father("destroy", &["--yes", "--log", "-", "--log-format", "json"]);
    let lines: Vec<Json> = text(&output.stderr)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["action"] == "destroy"), "{lines:?}");
    let file = driver.file("log");
    driver.on_father("destroy", &["--yes", "--log", file.to_str().unwrap()]);
    assert!(fs::read_to_string(&file).unwrap().contains("INFO [destroy/"));
}

#[test]
fn a_page_or_a_log_that_cannot_be_written_is_told_before_anything_is_begun() {
    let driver = Driver::new();
    for file in ["--report", "--log"] {
        let refused = driver.on_father("destroy", &["--yes", "--json", file, "/nowhere/file"]);
        assert_eq!(code(&refused), 3, "{}", text(&refused.stderr));
        let answer: Json = serde_json::from_slice(&refused.stdout).expect("the answer is one document");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("`/nowhere/file` cannot be written, so nothing was begun"), "{message}");
    }
    assert_eq!(text(&driver.orch(&["runs", "list"]).stdout), "there are no runs yet\n");
    let lost = driver.on_father("destroy", &["--yes", "--json", "--report", "/dev/full"]);
    assert_eq!(code(&lost), 1, "the run is done, and the page is lost");
    assert!(serde_json::from_slice::<Json>(&lost.stdout).is_ok(), "{}", text(&lost.stdout));
}

#[test]
fn a_host_whose_token_cannot_be_opened_is_not_even_connected_to() {
    let driver = Driver::new();
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    door.set_nonblocking(true).unwrap();
    let at = door.local_addr().unwrap();
    let site = driver.file("site");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in ["hosts", "manifests", "specs", "presets", "postures"] {
        fs::create_dir_all(site.join(folder)).unwrap();
        let entries = fs::read_dir(sample.join(folder)).unwrap().map(Result::unwrap);
        // What else a host has in a folder of its own is nothing here.
        for entry in entries.filter(|entry| entry.path().is_file()) {
            fs::copy(entry.path(), site.join(folder).join(entry.file_name())).unwrap();
        }
    }
    fs::copy(sample.join("site.yaml"), site.join("site.yaml")).unwrap();
    let mother = fs::read_to_string(site.join("hosts/mother.yaml")).unwrap();
    let here = mother.replace("https://mother.home.example:8006", &format!("https://{at}"));
    assert_ne!(here, mother, "the sample says where `mother` is");
    fs::write(site.join("hosts/mother.yaml"), here).unwrap();
    let site = site.display().to_string();
    let planned = driver.orch(&["--site", &site, "plan", "-M", "workers", "-H", "mother"]);
    assert!(text(&planned.stdout).contains("`secret:mother-api-token` leads nowhere"), "{planned:?}");
    assert_eq!(door.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "somebody was at the door");
    let control = TcpStream::connect(at).unwrap();
    assert_eq!(door.accept().unwrap().1, control.local_addr().unwrap(), "who comes is seen");
}

#[test]
fn it_has_other_faces_that_the_command_line_does_not_show() {
    let face = |name: &str, args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_orch")).arg0(name).args(args).env_clear().output().unwrap();
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    };
    assert!(
        face("orch", &["nobody"]).contains("unrecognized subcommand"),
        "the control is the command line's"
    );
    for (name, args) in [
        ("orch", ["node", "nobody"].as_slice()),
        ("orch", &["__local", "nobody"]),
        ("/sbin/orch-node", &["nobody"]),
    ] {
        assert!(!face(name, args).contains("unrecognized subcommand"), "{name} {args:?}");
    }
    let help = face("orch", &["--help"]);
    let listed = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let listed: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(listed.contains(&"lab"), "the control is a face that is shown: {listed:?}");
    assert!(!listed.iter().any(|name| name.starts_with("__") || name.contains("node")), "{listed:?}");
    assert!(!help.contains("__local"), "{help}");
}
