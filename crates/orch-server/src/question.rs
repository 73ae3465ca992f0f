//! What can be asked, as HTTP: a method, a path, and who may.

use orch_model::Identity;
use orch_model::token::Code;

use crate::desk::Answered;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether anybody is there.
    Health,
    /// A node's configuration.
    Spec(Identity),
    /// Whether something is new for a node.
    Wait(Identity, u64),
    /// A node has something to say.
    Report(Identity),
    /// What is known of a node, perhaps once that is more than so much.
    Known(Identity, Option<u64>),
    /// A node is to converge.
    Converge(Identity),
    /// Tokens are taken back.
    Revoke,
    /// Everything is to be read anew.
    Reload,
    /// What was counted.
    Metrics,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Somebody in the network, who needs a token for everything.
    Network,
    /// The one whose server it is, on this machine.
    Operator,
}

impl Question {
    /// Finds out what is asked. Nothing is looked up in any file, so no path leads anywhere else.
    pub(crate) fn of(asker: Asker, method: &str, path: &str, query: Option<&str>) -> Result<Self, Answered> {
        let unknown = || Answered::new(Code::E100, "there is nothing at this path");
        let mut parts = path.strip_prefix('/').ok_or_else(unknown)?.splitn(3, '/');
        let (first, second, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let number = |name: &str| number(query, name);
        let question = match (asker, method, first, second) {
            (_, "GET", "health", None) => Self::Health,
            (Asker::Network, "GET", "v1", Some("spec")) => Self::Spec(node(rest)?),
            (Asker::Network, "GET", "v1", Some("wait")) => {
                let after = number("after");
                Self::Wait(node(rest)?, after.ok_or_else(|| Answered::new(Code::E101, "`after` is missing"))?)
            }
            (Asker::Network, "POST", "v1", Some("report")) => Self::Report(node(rest)?),
            (Asker::Operator, "GET", "v1", Some("nodes")) => Self::Known(node(rest)?, number("after")),
            (Asker::Operator, "POST", "v1", Some("converge")) => Self::Converge(node(rest)?),
            (Asker::Operator, "POST", "v1", Some("revoke")) if rest.is_none() => Self::Revoke,
            (Asker::Operator, "POST", "v1", Some("reload")) if rest.is_none() => Self::Reload,
            (Asker::Operator, "GET", "metrics", None) => Self::Metrics,
            _ => return Err(unknown()),
        };
        Ok(question)
    }

    /// The word for it, where it is counted.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Spec(_) => "spec",
            Self::Wait(..) => "wait",
            Self::Report(_) => "report",
            Self::Known(..) => "nodes",
            Self::Converge(_) => "converge",
            Self::Revoke => "revoke",
            Self::Reload => "reload",
            Self::Metrics => "metrics",
        }
    }

    /// The node that it is about.
    pub(crate) const fn node(&self) -> Option<&Identity> {
        match self {
            Self::Spec(node)
            | Self::Wait(node, _)
            | Self::Report(node)
            | Self::Known(node, _)
            | Self::Converge(node) => Some(node),
            Self::Health | Self::Revoke | Self::Reload | Self::Metrics => None,
        }
    }
}

/// The node that the last part of a path names.
fn node(part: Option<&str>) -> Result<Identity, Answered> {
    let nobody = || Answered::new(Code::E101, "the path names no node");
    decode(part.unwrap_or_default()).and_then(|text| text.parse().ok()).ok_or_else(nobody)
}

/// What percent signs stand for, once. An identity is never longer than this.
fn decode(text: &str) -> Option<String> {
    const LONGEST: usize = 3 * 256;
    if text.len() > LONGEST {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

fn number(query: Option<&str>, name: &str) -> Option<u64> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_apart_and_everything_else_is_nothing() {
        let node: Identity = "m.a@h".parse().unwrap();
        let asked = |asker, method, path| Question::of(asker, method, path, Some("after=7"));
        let network = |method, path| asked(Asker::Network, method, path);
        assert_eq!(network("GET", "/v1/spec/m.a%40h"), Ok(Question::Spec(node.clone())));
        assert_eq!(network("GET", "/v1/spec/m.a@h"), Ok(Question::Spec(node.clone())));
        assert_eq!(network("GET", "/v1/wait/m.a@h"), Ok(Question::Wait(node.clone(), 7)));
        assert_eq!(network("POST", "/v1/report/m.a@h"), Ok(Question::Report(node.clone())));
        assert_eq!(asked(Asker::Operator, "GET", "/v1/nodes/m.a@h"), Ok(Question::Known(node, Some(7))));
        for path in
            ["/v1/spec", "/v1/spec/", "/v1/spec/m.a", "/v1/spec/m.a%2540h", "/v1/spec/m.a@h/x", "/v1/spec/%"]
        {
            assert_eq!(network("GET", path).unwrap_err().code, Code::E101, "{path}");
        }
        for (method, path) in [
            ("GET", "/"),
            ("GET", ""),
            ("GET", "/v1"),
            ("GET", "/metrics"),
            ("GET", "/v1/nodes/m.a@h"),
            ("POST", "/v1/converge/m.a@h"),
            ("POST", "/v1/spec/m.a@h"),
            ("GET", "//v1/spec/m.a@h"),
            ("GET", "/v1/../v1/spec/m.a@h"),
            ("GET", "/health/x"),
        ] {
            assert_eq!(network(method, path).unwrap_err().code, Code::E100, "{method} {path}");
        }
    }

    #[test]
    fn no_spelling_of_a_path_leads_out() {
        for dots in
            ["..", "%2e%2e", "%2E.", "..%2f..%2fkeys", "..%5c", "%252e%252e", "%c0%ae%c0%ae", "....//", "%00"]
        {
            let path = format!("/v1/spec/{dots}");
            assert!(Question::of(Asker::Network, "GET", &path, None).is_err(), "{path}");
        }
    }
}
