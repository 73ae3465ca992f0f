//! What became of one run of the program.

use std::process::Command;

use serde_json::Value as Json;

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
        let output = command.output().unwrap();
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

    /// Standard output as the one JSON document that it is.
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("`orch {}` gave no JSON document: {error}\n{}\n{}", self.words, self.stdout, self.stderr)
        })
    }
}
