//! What goes wrong with a Proxmox VE: its answers told apart, and what to try next for each.

use orch_model::HostName;
use orch_run::ProviderError;
use thiserror::Error;
use uuid::Uuid;

use super::advice;
use crate::api::ApiError;

/// Something went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Trouble {
    /// There is no answer.
    #[error(transparent)]
    Wire(#[from] ApiError),
    /// The answer is no.
    #[error("{call}: {words}")]
    Said {
        /// What was asked.
        call: String,
        /// The status of the answer.
        status: u16,
        /// What it says, in its own words.
        words: String,
        /// Whether these are words of Proxmox, and not of something on the way to it.
        is_own: bool,
    },
    /// The answer cannot be understood.
    #[error("{call}: {why}")]
    Unreadable {
        /// What was asked.
        call: String,
        /// What is wrong with it.
        why: String,
    },
    /// A task was begun and failed.
    #[error("{what}: {exit}")]
    Task {
        /// What it was to do.
        what: String,
        /// How it says that it ended.
        exit: String,
        /// The last lines of its log.
        log: Vec<String>,
    },
    /// It was waited for until the time was over.
    #[error("{what}")]
    Late {
        /// What was waited for.
        what: String,
        /// The last lines of what tells more.
        evidence: Vec<String>,
    },
    /// The machine there is not the one that was meant.
    #[error("machine `{machine}` does not bear the mark {expected}")]
    NotOurs {
        /// The machine.
        machine: String,
        /// The mark that was looked for.
        expected: Uuid,
    },
    /// It would be no again.
    #[error("{0}")]
    Refused(String),
    /// Something on the driver's side went wrong.
    #[error("{what}")]
    Here {
        /// What went wrong.
        what: String,
        /// The way out.
        hint: String,
    },
}

impl Trouble {
    /// What Proxmox says, whether at once or by a task.
    fn words(&self) -> &str {
        match self {
            Self::Said { words, .. } => words,
            Self::Task { exit, .. } => exit,
            _ => "",
        }
    }

    fn says(&self, text: &str) -> bool {
        self.words().contains(text)
    }

    /// The machine that was asked about is not there. That is a 500, and told by its words alone.
    pub(super) fn is_gone(&self) -> bool {
        (self.says("onfiguration file") && self.says("does not exist"))
            || self.says("unable to find configuration file")
    }

    /// A machine is there already.
    pub(super) fn is_taken(&self) -> bool {
        // Disks and files may exist already too, and they are no machines.
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let mut before = self.words().match_indices(" already exists").map(|(at, _)| &self.words()[..at]);
        self.says("config file already exists")
            || before.any(|before| before.rsplit(' ').next().is_some_and(is_number))
    }

    /// Others work on the same thing at the moment, and it was not touched.
    pub(super) fn is_locked(&self) -> bool {
        self.says("can't lock file")
            || self.says("is locked")
            || (self.says("lock") && self.says("got timeout"))
    }

    /// The configuration was changed by others since it was read. Containers and machines say it in different words.
    pub(super) fn is_outdated(&self) -> bool {
        self.says("detected modified configuration") || self.says("file change by other user")
    }

    /// The machine is off, and so cannot be asked anything.
    pub(super) fn is_off(&self) -> bool {
        self.says("not running") && !self.says("agent")
    }

    /// The token may not do that.
    pub(super) const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Said { status: 401 | 403, .. })
    }

    /// Nothing can have happened, and asking again may help.
    pub(super) fn had_no_effect(&self) -> bool {
        matches!(self, Self::Wire(ApiError::Unreached { .. }) | Self::Said { status: 429, .. })
            || self.was_not_begun()
    }

    /// A task was to be begun and was not: Proxmox disturbs itself where another one ends at that very moment.
    pub(super) fn was_not_begun(&self) -> bool {
        self.says("start worker failed") || self.says("parent setup error")
    }

    /// Whether something happened is not known.
    pub(super) const fn is_uncertain(&self) -> bool {
        match self {
            Self::Wire(ApiError::Unanswered { .. }) => true,
            Self::Said { status, is_own, .. } => {
                matches!(status, 502..=504 | 595..=599) || (*status == 500 && !*is_own)
            }
            _ => false,
        }
    }

    /// Whether asking the same again may help where asking changes nothing.
    pub(super) fn is_passing(&self) -> bool {
        self.had_no_effect() || self.is_uncertain() || self.is_without_quorum()
    }

    fn is_without_quorum(&self) -> bool {
        self.says("no quorum")
    }

    /// As a run is told it.
    pub(super) fn told(self, host: &HostName) -> ProviderError {
        let host = host.clone();
        let why = self.to_string();
        if self.is_passing() {
            return ProviderError::NoAnswer { host, why };
        }
        let hint = advice::hint(self.words());
        match self {
            Self::NotOurs { machine, expected } => ProviderError::NotOurs { machine, expected },
            Self::Refused(why) => ProviderError::Refused { host, why },
            Self::Late { evidence, .. } => ProviderError::Late { host, why, evidence },
            Self::Task { log, .. } => ProviderError::Failed { host, why, evidence: log, hint },
            Self::Here { hint, .. } | Self::Wire(ApiError::Sealed { hint, .. }) => {
                ProviderError::Failed { host, why, evidence: Vec::new(), hint }
            }
            Self::Wire(ApiError::Untrusted { .. }) => {
                let hint = "compare the fingerprint with the one that the host shows on its own screen, and write it into the host's file only if they are the same".into();
                ProviderError::Failed { host, why, evidence: Vec::new(), hint }
            }
            Self::Said { status: 401, .. } => {
                let hint = "see whether the token is `user@realm!name=secret` and is still known to the host (`pveum user token list`)".into();
                ProviderError::Failed { host, why, evidence: Vec::new(), hint }
            }
            Self::Wire(_) | Self::Said { .. } | Self::Unreadable { .. } => {
                ProviderError::Failed { host, why, evidence: Vec::new(), hint }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, words: &str) -> Trouble {
        Trouble::Said { call: "GET /x".into(), status, words: words.into(), is_own: true }
    }

    #[test]
    fn answers_are_told_apart_by_their_words() {
        let gone = said(500, "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist");
        assert!(gone.is_gone() && !gone.is_taken() && !gone.is_passing());
        assert!(said(500, "unable to find configuration file for VM 9001 on node 'pve1'").is_gone());
        assert!(said(500, "unable to create VM 101: config file already exists").is_taken());
        assert!(said(500, "unable to create CT 101 - CT 101 already exists on node 'pve1'").is_taken());
        assert!(
            !said(500, "zfs error: cannot create 'rpool/vm-101-disk-0': dataset already exists").is_taken()
        );
        let locked = "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout";
        assert!(said(500, locked).is_locked());
        assert!(!said(500, "VM quit/powerdown failed - got timeout").is_locked());
        assert!(said(500, "checksum mismatch (file change by other user?)").is_outdated());
        let changed = "detected modified configuration - file changed by other user? Try again.";
        assert!(said(500, changed).is_outdated());
        assert!(!said(500, "checksum mismatch: got 'a' != expect 'b'").is_outdated());
        assert!(said(500, "cluster not ready - no quorum?").is_passing());
        assert!(said(500, "VM 101 is not running").is_off());
        assert!(!said(500, "QEMU guest agent is not running").is_off());
        assert!(said(599, "Too many redirections").is_uncertain());
        assert!(said(429, "").had_no_effect() && !said(500, "broken").is_passing());
    }

    #[test]
    fn a_task_that_was_not_begun_had_no_effect() {
        assert!(said(500, "got no worker upid - start worker failed").had_no_effect());
        let exit = "parent setup error".to_owned();
        let task = Trouble::Task { what: "starting it".into(), exit, log: Vec::new() };
        assert!(task.had_no_effect() && !task.is_uncertain());
    }

    #[test]
    fn what_a_passing_trouble_is_for_a_run_is_no_answer() {
        let host: HostName = "father".parse().unwrap();
        assert!(said(596, "").told(&host).is_passing());
        assert!(!said(403, "Permission check failed (/vms/101, VM.Allocate)").told(&host).is_passing());
    }
}
