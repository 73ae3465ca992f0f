//! What stood in the way, as one process tells it to another: words for people, and what advice depends on. Advice must
//! not depend on the words.

use serde::{Deserialize, Serialize};

use super::BootError;
use crate::finish::Finished;
use crate::ssh::chain;

/// Something that a machine needs of this computer, and that not every computer gives to everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    UserNamespace,
    MountNamespace,
    PidNamespace,
    NetworkNamespace,
    UtsNamespace,
    IpcNamespace,
    CgroupNamespace,
    /// User and group ids in a user namespace.
    Ids,
    /// `/proc` and `/sys` of its own.
    Kernel,
    Bridge,
    /// A pair of interfaces.
    Pair,
    /// A disk with a size.
    Disk,
    /// Libraries in its image that the program that configures it can be run with.
    Libraries,
}

/// What stood in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) words: String,
    /// What it was about, where advice depends on it.
    pub(crate) need: Option<Need>,
    /// The kernel's own number for it.
    pub(crate) errno: Option<i32>,
}

impl Trouble {
    /// Trouble of which nothing is known but the words.
    pub(crate) fn in_words(words: impl Into<String>) -> Self {
        Self { words: words.into(), need: None, errno: None }
    }

    pub(crate) fn of(error: &BootError) -> Self {
        match error {
            BootError::Told(trouble) => trouble.clone(),
            BootError::Step { need, source, .. } => {
                Self { words: chain(error), need: *need, errno: source.raw_os_error() }
            }
            _ => Self::in_words(chain(error)),
        }
    }

    /// The trouble that somebody wrote as a line; other words are taken as they are.
    pub(crate) fn heard(line: &str) -> Self {
        serde_json::from_str(line.trim()).unwrap_or_else(|_| Self::in_words(line.trim()))
    }

    /// The trouble that a helper ended with; in its last words where it was cut off before it could tell.
    pub(crate) fn of_helper(ended: &Finished) -> Self {
        let told = String::from_utf8_lossy(&ended.stdout);
        if told.trim().is_empty() { Self::in_words(ended.said()) } else { Self::heard(&told) }
    }

    /// It as one line.
    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| self.words.replace('\n', " "))
    }

    /// Whether the kernel gave this answer.
    pub(crate) fn is(&self, errno: rustix::io::Errno) -> bool {
        self.errno == Some(errno.raw_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn trouble_is_understood_by_another_process_as_it_was_meant() {
        let source = io::Error::from_raw_os_error(28);
        let step =
            BootError::Step { doing: "make a pid namespace".into(), need: Some(Need::PidNamespace), source };
        let trouble = Trouble::of(&step);
        assert_eq!(trouble.words, "cannot make a pid namespace: No space left on device (os error 28)");
        assert!(trouble.is(rustix::io::Errno::NOSPC));
        assert_eq!(Trouble::heard(&trouble.line()), trouble);
        assert_eq!(Trouble::of(&BootError::Told(trouble.clone())), trouble, "it is passed on as it is");
        assert_eq!(Trouble::heard("other\n"), Trouble::in_words("other"));
        let lines = Trouble::in_words("one\ntwo");
        assert!(!lines.line().contains('\n') && Trouble::heard(&lines.line()) == lines);
    }
}
