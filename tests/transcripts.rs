//! Plays the command lines of `tests/transcripts/*.txt` and compares what they print, to the letter.
//!
//! A transcript names its site in the first line, and each command is followed by its standard output, by `[stderr]` and
//! standard error if there is any, and by `[exit N]` if that is not 0. `UPDATE_EXPECT=1` writes down what is printed now.

#![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The folders of the sample site at the top of the repository.
const SAMPLE: [&str; 6] = ["site.yaml", "hosts", "manifests", "specs", "presets", "postures"];

#[test]
fn every_transcript_reads_as_it_did() {
    let mut differing = Vec::new();
    let mut played = 0;
    for path in transcripts() {
        let expected = fs::read_to_string(&path).unwrap();
        let actual = play(&expected);
        played += 1;
        if actual == expected {
            continue;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, actual).unwrap();
        } else {
            differing.push(format!("{}:\n{}", path.display(), difference(&expected, &actual)));
        }
    }
    assert!(played >= 5, "the transcripts were found");
    assert!(differing.is_empty(), "{}\nUPDATE_EXPECT=1 takes the new texts over", differing.join("\n"));
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_and_a_closed_pipe_is_none() {
    let state = TempDir::new().unwrap();
    let orch = |out: fs::File| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orch"));
        let output = command.args(["plan", "-M", "nested-test", "-H", "father", "--json"]).stdout(out);
        output.current_dir(root()).env("ORCH_STATE", state.path()).output().unwrap()
    };
    let full = orch(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("standard output cannot be written"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_orch"))
        .args(["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn transcripts() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/transcripts")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
}

/// Runs every command of a transcript in a copy of its site, and gives the transcript as it is now.
fn play(transcript: &str) -> String {
    let site = transcript
        .lines()
        .find_map(|line| line.strip_prefix("# site: "))
        .expect("a transcript names its site");
    let folder = TempDir::new().unwrap();
    let cwd = folder.path().join("site");
    copy_site(site, &cwd);
    let mut actual = String::new();
    let mut in_output = false;
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            actual += &format!("{line}\n{}", output_of(command, &cwd, folder.path()));
            in_output = true;
        } else if line.starts_with("# ") || (!in_output && line.is_empty()) {
            // A comment ends an output, with an empty line before it.
            actual += if in_output { "\n" } else { "" };
            actual += &format!("{line}\n");
            in_output = false;
        }
    }
    actual
}

fn copy_site(site: &str, to: &Path) {
    fs::create_dir_all(to).unwrap();
    if site == "sample" {
        for name in SAMPLE {
            copy(&root().join(name), &to.join(name));
        }
        copy(&root().join("tests/transcripts/observed.json"), &to.join("observed.json"));
    } else {
        copy(&root().join("tests/transcripts/sites").join(site), to);
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

fn output_of(command: &str, cwd: &Path, temporary: &Path) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("orch"), "a transcript runs orch: {command}");
    let output = Command::new(env!("CARGO_BIN_EXE_orch"))
        .args(words)
        .current_dir(cwd)
        .env_clear()
        .env("ORCH_STATE", temporary.join("state"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).unwrap().replace(&temporary.display().to_string(), "[TMP]")
    };
    let mut shown = text(&output.stdout);
    let told = without_surroundings(&text(&output.stderr));
    if !told.is_empty() {
        shown += &format!("[stderr]\n{told}");
    }
    let code = output.status.code().expect("orch was not killed");
    if code != 0 {
        shown += &format!("[exit {code}]\n");
    }
    shown
}

/// What a plan says of the machine that it is made on is not the same on every machine.
fn without_surroundings(stderr: &str) -> String {
    let is_local = |line: &&str| {
        line.starts_with("caveat: ") || (line.starts_with("obstacle: ") && !line.contains("secret:"))
    };
    stderr.split_inclusive('\n').filter(|line| !is_local(line)).collect()
}

/// The first lines that differ.
fn difference(expected: &str, actual: &str) -> String {
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    for number in 1.. {
        match (expected.next(), actual.next()) {
            (None, None) => return "only line ends differ".to_owned(),
            (is, was) if is == was => {}
            (was, is) => {
                return format!("line {number}\n  was: {}\n  is:  {}", was.unwrap_or("-"), is.unwrap_or("-"));
            }
        }
    }
    unreachable!("the loop returns")
}
