//! Why there is no connection, as far as the words of `ssh` tell.

use std::time::Duration;

use orch_model::Identity;
use orch_run::TransportError;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: Kind,
    /// What was seen, in one clause.
    pub(super) why: String,
    /// The last lines of what tells more.
    pub(super) evidence: Vec<String>,
}

/// What follows from a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another machine answers: it must not be spoken to.
    Impostor,
    /// It answers, and does not let us in.
    Denied,
    /// What is to be said to it, or the way to it, makes no sense.
    Unusable,
    /// Asking again may help.
    Passing,
    /// It was asked again and again, until the time was over.
    Silent,
}

/// What `ssh` says in each case, in any line.
const WORDS: [(&str, Kind); 9] = [
    ("Host key verification failed", Kind::Impostor),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", Kind::Impostor),
    ("host key is known for", Kind::Impostor),
    ("Permission denied (", Kind::Denied),
    ("Too many authentication failures", Kind::Denied),
    ("no matching host key type found", Kind::Impostor),
    ("no matching key exchange method found", Kind::Denied),
    ("Bad configuration option", Kind::Denied),
    ("Bad owner or permissions on", Kind::Denied),
];

/// How many lines of evidence are kept.
const EVIDENCE: usize = 12;

impl Refusal {
    /// What `ssh` said before it gave up.
    pub(super) fn said(log: &str) -> Self {
        let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| is_telling(line)).collect();
        let found = WORDS.iter().find(|(words, _)| lines.iter().any(|line| line.contains(words)));
        let kind = found.map_or(Kind::Passing, |(_, kind)| *kind);
        let telling = found.and_then(|(words, _)| lines.iter().find(|line| line.contains(words)));
        let last = telling.or(lines.last()).copied().unwrap_or("ssh ended without a word");
        let why = match kind {
            Kind::Impostor => {
                format!("it shows another host key than the one that was pinned{}", key_shown(&lines))
            }
            Kind::Denied => format!("it does not let us in: {}", tidy(last)),
            Kind::Passing | Kind::Silent | Kind::Unusable => tidy(last),
        };
        Self { kind, why, evidence: tail(log) }
    }

    /// Something that asking again may help against.
    pub(super) fn passing(why: impl Into<String>, log: &str) -> Self {
        Self { kind: Kind::Passing, why: why.into(), evidence: tail(log) }
    }

    /// The same, when the time is over.
    pub(super) fn for_good(mut self, limit: Duration) -> Self {
        self.kind = Kind::Silent;
        self.why = format!("no connection within {limit:?}: {}", self.why);
        self
    }

    /// A way that cannot be gone.
    pub(super) fn unusable(why: impl Into<String>) -> Self {
        Self { kind: Kind::Unusable, why: why.into(), evidence: Vec::new() }
    }

    /// The same of a hop on the way, which is named.
    pub(super) fn at_hop(mut self, alias: &str) -> Self {
        self.why = format!("at `{alias}` on the way there: {}", self.why);
        self
    }

    /// As said of the node that was to be reached.
    pub(super) fn of(self, node: &Identity) -> TransportError {
        let Self { kind, why, evidence } = self;
        let node = node.clone();
        match kind {
            Kind::Impostor => TransportError::Impostor { node, why },
            Kind::Unusable => TransportError::Unasked { node, why },
            Kind::Denied => TransportError::Denied { node, why, evidence },
            Kind::Passing => TransportError::Unreachable { node, why, evidence },
            Kind::Silent => TransportError::Silent { node, why, evidence },
        }
    }
}

/// The last lines of a log, fit to be shown.
pub(crate) fn tail(log: &str) -> Vec<String> {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(EVIDENCE);
    lines[from..].iter().map(|line| orch_model::printable(line).to_string()).collect()
}

/// The fingerprint of the key that was shown instead, where `ssh` says it.
fn key_shown(lines: &[&str]) -> String {
    let fingerprint = lines.iter().find(|line| line.starts_with("SHA256:"));
    fingerprint.map_or_else(String::new, |line| format!(", {}", tidy(line)))
}

fn is_telling(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('@') && !line.starts_with("Warning: Permanently added")
}

fn tidy(line: &str) -> String {
    let line = line.strip_prefix("ssh: ").unwrap_or(line).trim_end_matches('.');
    orch_model::printable(line).to_string()
}

/// An error with everything that caused it, since the outermost one of the library says nothing by itself.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut words: Vec<String> = causes.map(ToString::to_string).collect();
    words.dedup();
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_ssh_are_told_apart() {
        let changed = "@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@\nThe \
                       fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc/+.\nHost key for \
                       orch-web has changed and you have requested strict checking.\nHost key verification failed.";
        let cases = [
            (changed, Kind::Impostor, "it shows another host key than the one that was pinned, SHA256:abc/+"),
            (
                "No ED25519 host key is known for orch-web and you have requested strict checking.\r\nHost key \
                 verification failed.\r\n",
                Kind::Impostor,
                "it shows another host key than the one that was pinned",
            ),
            (
                "ops@10.0.0.5: Permission denied (publickey).\r\n",
                Kind::Denied,
                "it does not let us in: ops@10.0.0.5: Permission denied (publickey)",
            ),
            (
                "ssh: connect to host 10.0.0.5 port 22: Connection refused\r\n",
                Kind::Passing,
                "connect to host 10.0.0.5 port 22: Connection refused",
            ),
            (
                "Connection timed out during banner exchange\r\nConnection to 10.0.0.5 port 22 timed out\r\n",
                Kind::Passing,
                "Connection to 10.0.0.5 port 22 timed out",
            ),
            ("", Kind::Passing, "ssh ended without a word"),
        ];
        for (log, kind, why) in cases {
            let refusal = Refusal::said(log);
            assert_eq!((refusal.kind, refusal.why.as_str()), (kind, why), "{log}");
        }
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        let error = openssh::Error::Connect(std::io::Error::other("the cable is out"));
        assert_eq!(chain(&error), "failed to connect to the remote host: the cable is out");
    }
}
