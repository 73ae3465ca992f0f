//! What became of one run of the program.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use serde_json::Value as Json;

use super::timeline::name_of;

/// How long one command may take: longer than any does on the slowest computer, and shorter than whoever waits for a test.
const LIMIT: Duration = Duration::from_mins(2);

/// What became of one run of the program.
pub(crate) struct Outcome {
    words: String,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn of(command: &mut Command, words: &str) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Self::at_end(command.spawn().unwrap(), words, LIMIT)
    }

    /// Waits for a program that leads a group of processes. Where it takes too long, all of them are ended, and the test
    /// fails with what was said.
    #[track_caller]
    pub(crate) fn at_end(child: Child, words: &str, limit: Duration) -> Self {
        let group = Pid::from_child(&child);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || tell.send(child.wait_with_output().unwrap()));
        let in_time = told.recv_timeout(limit);
        let is_late = in_time.is_err();
        let output = in_time.or_else(|_| {
            let _ = kill_process_group(group, Signal::KILL);
            // Somebody outside of the group may hold on to the output.
            told.recv_timeout(Duration::from_secs(10))
        });
        let outcome = output.ok().map(|output| Self::from_output(&output, words));
        let said = outcome.as_ref().map_or("nothing, to its end", |outcome| &outcome.stdout);
        let errors = outcome.as_ref().map_or("", |outcome| &outcome.stderr);
        assert!(!is_late, "`{words}` takes longer than {limit:?}\n--- stdout\n{said}\n--- stderr\n{errors}");
        outcome.unwrap()
    }

    /// The same with the usual limit.
    #[track_caller]
    pub(crate) fn soon(child: Child, words: &str) -> Self {
        Self::at_end(child, words, LIMIT)
    }

    /// What became of a program that has ended.
    pub(crate) fn from_output(output: &Output, words: &str) -> Self {
        Self {
            words: words.to_owned(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The same, if it ended with this code.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        let Self { words, stdout, stderr, .. } = &self;
        assert_eq!(
            self.code, code,
            "`orch {words}` ended otherwise\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        );
        self
    }

    /// The same, if it said this somewhere.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        let Self { words, stdout, stderr, .. } = &self;
        let said = stdout.contains(text) || stderr.contains(text);
        assert!(said, "`orch {words}` did not say `{text}`\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        self
    }

    /// The same, if it did not say this anywhere.
    #[track_caller]
    pub(crate) fn never_says(self, text: &str) -> Self {
        let Self { words, stdout, stderr, .. } = &self;
        let said = stdout.contains(text) || stderr.contains(text);
        assert!(!said, "`orch {words}` said `{text}`\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        self
    }

    /// How a node ended or fares, by the JSON document of a run or of `status`.
    #[track_caller]
    pub(crate) fn node(&self, name: &str) -> Json {
        let answer = self.json();
        let found = answer["nodes"].as_array().unwrap().iter().find(|node| name_of(node) == name).cloned();
        assert!(found.is_some(), "`orch {}` does not tell of `{name}`: {answer:#}", self.words);
        found.unwrap()
    }

    /// The same, if every node ended so.
    #[track_caller]
    pub(crate) fn every_node_is(self, status: &str) -> Self {
        let answer = self.json();
        let nodes = answer["nodes"].as_array().unwrap();
        let all = nodes.iter().all(|node| node["status"] == status || node["condition"] == status);
        assert!(all, "`orch {}`: not every node is {status}: {answer:#}\n{}", self.words, self.stderr);
        self
    }

    /// Standard output as the one JSON document that it is.
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        let Self { words, stdout, stderr, .. } = self;
        let document = serde_json::from_str(stdout);
        assert!(document.is_ok(), "`orch {words}` gave no JSON document: {document:?}\n{stdout}\n{stderr}");
        document.unwrap()
    }
}

#[test]
fn a_command_that_never_ends_is_ended_with_what_it_started_and_fails_with_what_it_said() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo begun; sleep 617 & sleep 617"]).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let limit = Duration::from_millis(300);
    let failed = std::thread::spawn(move || Outcome::at_end(child, "it", limit)).join();
    let why = failed.err().unwrap().downcast::<String>().unwrap();
    assert!(why.contains("takes longer") && why.contains("begun"), "{why}");
    super::wait_until("its helpers are ended", || super::speaking_of("sleep 617").is_empty());
}
