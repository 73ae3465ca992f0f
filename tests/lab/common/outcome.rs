//! What became of one run of the program.

use std::process::{Command, Output};

use serde_json::Value as Json;

use super::timeline::name_of;

/// What became of one run of the program.
pub(crate) struct Outcome {
    words: String,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command, words: &str) -> Self {
        Self::from_output(&command.output().unwrap(), words)
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
