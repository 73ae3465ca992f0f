//! What was done at the first boot and what was not, where people look for it.

use crate::error::ApplyError;
use crate::node::Node;
use crate::settings_file::SettingsFile;

const LOG: &str = "/var/log/cloud-init.log";

/// What was done so far.
#[derive(Default)]
pub(super) struct Diary {
    lines: Vec<String>,
    errors: Vec<String>,
}

impl Diary {
    pub(super) fn say(&mut self, line: &str) {
        self.lines.push(format!("{:.3} {line}", jiff::Timestamp::now()));
    }

    pub(super) fn fail(&mut self, why: &str) {
        self.say(why);
        self.errors.push(why.to_owned());
    }

    /// Takes down what became of something.
    pub(super) fn note(&mut self, doing: &str, done: Result<(), ApplyError>) {
        match done {
            Ok(()) => self.say(&format!("{doing}: done")),
            Err(error) => self.fail(&format!("{doing}: {}", error.in_full())),
        }
    }

    pub(super) fn errors(&self) -> &[String] {
        &self.errors
    }

    /// What failed may quote what programs said, so it is for root's eyes.
    pub(super) fn write(&self, node: &Node) -> Result<(), ApplyError> {
        SettingsFile::new(LOG, format!("{}\n", self.lines.join("\n"))).mode(0o600).write(node)
    }
}
