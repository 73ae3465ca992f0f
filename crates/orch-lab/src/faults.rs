//! What goes wrong on purpose: rules that say which question meets which fault, and how often.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::exchange::Asked;

/// One way in which things go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// 429, with the headers that say when to come back. Around the API.
    TooMany,
    /// 500, before anything was done. Around the API.
    ServerError,
    /// The question is answered by the API, and the answer never sent: the connection stays open and silent. Around the API.
    SilentAfter,
    /// The question is answered by the API, and the connection is cut in the middle of the answer. Around the API.
    CutAnswer,
    /// The certificate is another one than before. Around the API.
    OtherCertificate,
    /// A task or action is begun and fails, without having had its effect.
    TaskFails,
    /// A task or action is begun and never ends, without having its effect.
    TaskNeverEnds,
    /// Proxmox: the task ends with `can't lock file … - got timeout`. Hetzner: 423 `locked`.
    LockTimeout,
    /// A stranger takes the id or name just before the question is answered: the answer is the one for a taken id.
    StrangerTakesId,
    /// The guest agent does not answer; at Hetzner the server's address stays unreachable.
    AgentSilent,
    /// The token lacks a privilege: 403.
    NoPrivilege,
    /// Proxmox: no space left on the datastore. Hetzner: 403 `resource_limit_exceeded`.
    Quota,
    /// Hetzner: 412 `resource_unavailable`. Proxmox: not enough memory to start.
    OutOfStock,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::TooMany,
        Self::ServerError,
        Self::SilentAfter,
        Self::CutAnswer,
        Self::OtherCertificate,
        Self::TaskFails,
        Self::TaskNeverEnds,
        Self::LockTimeout,
        Self::StrangerTakesId,
        Self::AgentSilent,
        Self::NoPrivilege,
        Self::Quota,
        Self::OutOfStock,
    ];

    /// Its name on the command line and in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TooMany => "too-many",
            Self::ServerError => "server-error",
            Self::SilentAfter => "silent-after",
            Self::CutAnswer => "cut-answer",
            Self::OtherCertificate => "other-certificate",
            Self::TaskFails => "task-fails",
            Self::TaskNeverEnds => "task-never-ends",
            Self::LockTimeout => "lock-timeout",
            Self::StrangerTakesId => "stranger-takes-id",
            Self::AgentSilent => "agent-silent",
            Self::NoPrivilege => "no-privilege",
            Self::Quota => "quota",
            Self::OutOfStock => "out-of-stock",
        }
    }
}

/// Which questions meet a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What goes wrong.
    pub fault: Fault,
    /// Only questions of this method.
    #[serde(default)]
    pub method: Option<String>,
    /// Only questions whose path contains this.
    #[serde(default)]
    pub path: Option<String>,
    /// How many such questions pass first.
    #[serde(default)]
    pub after: u32,
    /// How often it goes wrong; without a number, always.
    #[serde(default)]
    pub times: Option<u32>,
}

impl Rule {
    /// Every question goes wrong, always.
    pub const fn always(fault: Fault) -> Self {
        Self { fault, method: None, path: None, after: 0, times: None }
    }

    /// The first question goes wrong.
    pub fn once(fault: Fault) -> Self {
        Self { times: Some(1), ..Self::always(fault) }
    }

    /// The same rule for questions of this method whose path contains this text.
    pub fn on(self, method: &str, path: &str) -> Self {
        Self { method: Some(method.to_owned()), path: Some(path.to_owned()), ..self }
    }

    fn meets(&self, asked: &Asked) -> bool {
        self.method.as_ref().is_none_or(|method| *method == asked.method)
            && self.path.as_ref().is_none_or(|path| asked.path.contains(path.as_str()))
    }
}

/// The rules of one API that are in force. Copies are the same.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Rule>>>,
}

impl Faults {
    /// One more rule.
    pub fn add(&self, rule: Rule) {
        self.rules.lock().expect("nobody panics while holding this").push(rule);
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.rules.lock().expect("nobody panics while holding this").clear();
    }

    /// The rules in force.
    pub fn list(&self) -> Vec<Rule> {
        self.rules.lock().expect("nobody panics while holding this").clone()
    }

    /// Whether this question meets this fault; asking counts.
    pub fn strike(&self, fault: Fault, asked: &Asked) -> bool {
        let mut rules = self.rules.lock().expect("nobody panics while holding this");
        let Some(rule) =
            rules.iter_mut().find(|rule| rule.fault == fault && rule.meets(asked) && rule.times != Some(0))
        else {
            return false;
        };
        if rule.after > 0 {
            rule.after -= 1;
            return false;
        }
        rule.times = rule.times.map(|times| times - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_one_name_wherever_it_is_written() {
        for fault in Fault::ALL {
            assert_eq!(serde_json::to_value(fault).expect("it can be written"), fault.word());
        }
    }

    #[test]
    fn a_rule_strikes_the_questions_that_it_names_and_as_often_as_it_says() {
        let asked = |method: &str, path: &str| Asked {
            method: method.into(),
            path: path.into(),
            query: String::new(),
            headers: std::collections::BTreeMap::new(),
            body: Vec::new(),
        };
        let faults = Faults::default();
        faults.add(Rule { after: 1, times: Some(2), ..Rule::always(Fault::TooMany).on("POST", "/servers") });
        let strike = |method: &str, path: &str| faults.strike(Fault::TooMany, &asked(method, path));
        assert!(!strike("GET", "/v1/servers"));
        assert!(!strike("POST", "/v1/servers"), "the first one passes");
        assert!(strike("POST", "/v1/servers") && strike("POST", "/v1/servers"));
        assert!(!strike("POST", "/v1/servers"), "twice is twice");
        assert!(!faults.strike(Fault::Quota, &asked("POST", "/v1/servers")));
    }
}
