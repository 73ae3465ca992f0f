//! What Nix says while it builds: the lines of its internal JSON log, put into words, and the last of them kept as
//! evidence of a failure.
//!
//! The log is a side channel: a line that cannot be understood is passed over, since newer versions may say more.

use std::collections::{BTreeMap, VecDeque};

use orch_model::printable;
use serde::Deserialize;

/// How many lines are kept of a build, and of the errors at its end.
const LINES_KEPT: usize = 20;
/// How long a line of evidence may be.
const LINE_KEPT: usize = 400;

/// Numbers that Nix gives to kinds of activities and results, since 2.3.
mod kind {
    pub(super) const COPY_PATH: u64 = 100;
    pub(super) const BUILDS: u64 = 104;
    pub(super) const BUILD: u64 = 105;
    pub(super) const SUBSTITUTE: u64 = 108;
    pub(super) const BUILD_LOG_LINE: u64 = 101;
    pub(super) const PROGRESS: u64 = 105;
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Entry {
    Start {
        id: u64,
        #[serde(rename = "type")]
        kind: u64,
        #[serde(default)]
        fields: Vec<serde_json::Value>,
    },
    Stop {
        id: u64,
    },
    Result {
        id: u64,
        #[serde(rename = "type")]
        kind: u64,
        #[serde(default)]
        fields: Vec<serde_json::Value>,
    },
    Msg {
        level: u64,
        msg: String,
    },
    #[serde(other)]
    Other,
}

/// Listens to a build.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    /// Builds under way, by their number.
    builds: BTreeMap<u64, String>,
    /// The activity that counts all builds.
    counter: Option<u64>,
    done: u64,
    expected: u64,
    evidence: VecDeque<String>,
    errors: VecDeque<String>,
}

impl Listener {
    /// Takes a line; what is worth telling, in words.
    pub(crate) fn hear(&mut self, line: &str) -> Option<String> {
        let Some(json) = line.strip_prefix("@nix ") else {
            keep(&mut self.errors, line);
            return None;
        };
        match serde_json::from_str(json).unwrap_or(Entry::Other) {
            Entry::Start { id, kind, fields } => self.started(id, kind, &fields),
            Entry::Stop { id } => {
                self.builds.remove(&id);
                None
            }
            Entry::Result { id, kind, fields } => {
                self.happened(id, kind, &fields);
                None
            }
            Entry::Msg { level: 0, msg } => {
                msg.lines().for_each(|line| keep(&mut self.errors, line));
                None
            }
            Entry::Msg { .. } | Entry::Other => None,
        }
    }

    fn started(&mut self, id: u64, kind: u64, fields: &[serde_json::Value]) -> Option<String> {
        let first = || fields.first().and_then(|field| field.as_str()).map(name_of);
        match kind {
            kind::BUILDS => {
                self.counter = Some(id);
                None
            }
            kind::BUILD => {
                let name = first()?;
                let place = fields.get(1).and_then(|field| field.as_str()).filter(|place| !place.is_empty());
                let place = place.map_or_else(String::new, |place| format!(" on {}", clean(place)));
                let text = format!(
                    "builds {name}{place} ({} of {})",
                    self.done + 1,
                    self.expected.max(self.done + 1)
                );
                self.builds.insert(id, name);
                Some(text)
            }
            kind::SUBSTITUTE => Some(format!("fetches {}", first()?)),
            kind::COPY_PATH => Some(format!("copies {}", first()?)),
            _ => None,
        }
    }

    fn happened(&mut self, id: u64, kind: u64, fields: &[serde_json::Value]) {
        match kind {
            kind::BUILD_LOG_LINE => {
                let line = fields.first().and_then(|field| field.as_str()).unwrap_or_default();
                match self.builds.get(&id) {
                    // Of several builds at once, each line says whose it is.
                    Some(name) if self.builds.len() > 1 => {
                        keep(&mut self.evidence, &format!("{name}> {line}"));
                    }
                    _ => keep(&mut self.evidence, line),
                }
            }
            kind::PROGRESS if self.counter == Some(id) => {
                let number =
                    |at: usize| fields.get(at).and_then(serde_json::Value::as_u64).unwrap_or_default();
                (self.done, self.expected) = (number(0), number(1));
            }
            _ => {}
        }
    }

    /// The last lines of what was built, then the last of what Nix said is wrong.
    pub(crate) fn evidence(self) -> Vec<String> {
        self.evidence.into_iter().chain(self.errors).collect()
    }
}

fn keep(lines: &mut VecDeque<String>, line: &str) {
    let line = clean(line);
    if line.trim().is_empty() {
        return;
    }
    if lines.len() == LINES_KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// A line without colours, bounded, and fit for a terminal.
pub(crate) fn clean(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if rest.next() == Some('[') {
            // A sequence ends with its first letter.
            rest.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    let cut: String = plain.trim_end().chars().take(LINE_KEPT).collect();
    printable(&cut).into_owned()
}

/// `nixos-system-web` of `/nix/store/<hash>-nixos-system-web.drv`.
fn name_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.split_once('-').map_or(name, |(_, name)| name);
    clean(name.strip_suffix(".drv").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_told_in_words_and_its_last_lines_are_kept() {
        let drv = "/nix/store/00000000000000000000000000000000-top.drv";
        let mut listener = Listener::default();
        let mut heard = Vec::new();
        for line in [
            r#"@nix {"action":"start","id":1,"level":0,"text":"","type":104}"#.to_owned(),
            r#"@nix {"action":"result","fields":[1,2,0,0],"id":1,"type":105}"#.to_owned(),
            format!(r#"@nix {{"action":"start","fields":["{drv}","",1,1],"id":7,"level":3,"text":"","type":105}}"#),
            r#"@nix {"action":"result","fields":["\u001b[1mabout\u001b[0m to\u0007 fail"],"id":7,"type":101}"#.to_owned(),
            "@nix {no json".to_owned(),
            r#"@nix {"action":"something new"}"#.to_owned(),
            r#"@nix {"action":"msg","level":0,"msg":"\u001b[31;1merror:\u001b[0m it failed\nwith exit code 3"}"#.to_owned(),
            format!(r#"@nix {{"action":"start","fields":["{}","https://cache"],"id":8,"level":3,"text":"","type":108}}"#, &drv[..47]),
        ] {
            heard.extend(listener.hear(&line));
        }
        assert_eq!(heard, ["builds top (2 of 2)", "fetches top"]);
        let evidence = listener.evidence();
        assert_eq!(evidence[1..], ["error: it failed", "with exit code 3"]);
        assert!(evidence[0].starts_with("about to") && !evidence[0].contains('\u{7}'));
    }

    #[test]
    fn evidence_is_bounded_in_lines_and_in_their_length() {
        let mut listener = Listener::default();
        for number in 0..1000 {
            listener.hear(&format!("{number}{}", "x".repeat(5000)));
        }
        let evidence = listener.evidence();
        assert_eq!(evidence.len(), LINES_KEPT);
        assert!(evidence.iter().all(|line| line.len() <= LINE_KEPT));
        assert!(evidence[LINES_KEPT - 1].starts_with("999"));
    }
}
