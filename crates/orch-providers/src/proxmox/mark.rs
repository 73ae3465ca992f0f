//! Our marks on a machine: in its description while it is made, for that can be given with the very first word, and in its
//! tags once it is made, for those are in the list of all machines.

use std::collections::BTreeMap;

use orch_plan::Marks;
use uuid::Uuid;

use crate::cloud::{NAMES, Written};

/// What the line of a description begins with.
const LINE: &str = "orch: ";

/// What a machine bears of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bears {
    /// Nothing.
    Nothing,
    /// It was begun to be made.
    Begun(Marks),
    /// It was made.
    Made(Box<Written>),
}

impl Bears {
    /// What these tags and this description say. A copy of one of our machines has the tags of that one until it is made;
    /// its description is its own.
    pub(super) fn of(tags: &[String], description: Option<&str>) -> Self {
        let begun = description.and_then(marks_in);
        match (written(tags), begun) {
            (Some(written), Some(begun)) if written.marks.uuid != begun.uuid => Self::Begun(begun),
            (Some(written), _) => Self::Made(Box::new(written)),
            (None, Some(begun)) => Self::Begun(begun),
            (None, None) => Self::Nothing,
        }
    }

    pub(super) fn marks(&self) -> Option<&Marks> {
        match self {
            Self::Nothing => None,
            Self::Begun(marks) => Some(marks),
            Self::Made(written) => Some(&written.marks),
        }
    }

    pub(super) fn uuid(&self) -> Option<Uuid> {
        self.marks().map(|marks| marks.uuid)
    }
}

/// The tags of a list of them.
pub(super) fn split(tags: &str) -> Vec<String> {
    tags.split([';', ',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

/// What tags say, where they are ours.
fn written(tags: &[String]) -> Option<Written> {
    let word = |name: &str| {
        let of_name = |tag: &'_ String| tag.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        tags.iter().find(|tag| of_name(tag)).map(|tag| &tag[name.len() + 1..])
    };
    Written::read(word)
}

/// The tags of a machine with these words on it; others that it has stay.
pub(super) fn tags(written: &Written, others: &[String]) -> String {
    let ours = |tag: &&String| tag.split_once('.').is_some_and(|(name, _)| NAMES.contains(&name));
    let kept = others.iter().filter(|tag| !ours(tag)).cloned();
    let words = written.words().into_iter().map(|(name, word)| format!("{name}.{word}"));
    kept.chain(words).collect::<Vec<_>>().join(";")
}

/// The line that says whose a machine is.
pub(super) fn description(marks: &Marks) -> String {
    let Marks { site, manifest, node, host, uuid } = marks;
    format!(
        "{LINE}orch-site={site} orch-manifest={manifest} orch-node={node} orch-host={host} orch-uuid={uuid}"
    )
}

/// The marks in a description, which may be escaped or not, and may have been written on.
fn marks_in(description: &str) -> Option<Marks> {
    let plain = unescaped(description);
    let line = plain.lines().find_map(|line| line.trim().strip_prefix(LINE))?;
    let words: BTreeMap<&str, &str> =
        line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    Some(Written::read(|name| words.get(name).copied())?.marks)
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(&byte) = bytes.get(place) {
        let hex = bytes.get(place + 1..place + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = hex.filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(escaped.unwrap_or(byte));
        place += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::FirstKey;

    fn marks(uuid: u128) -> Marks {
        Marks {
            site: "home.example".parse().unwrap(),
            manifest: "workers".parse().unwrap(),
            node: "worker-1".parse().unwrap(),
            host: "father".parse().unwrap(),
            uuid: Uuid::from_u128(uuid),
        }
    }

    #[test]
    fn tags_are_read_back_and_those_of_others_stay() {
        let made = Written::new(marks(7), FirstKey::generate().public, "local:import/debian.qcow2");
        let text = tags(&made, &["mine".into(), "orch-uuid.old".into(), "orchestra.x".into()]);
        assert!(text.starts_with("mine;orchestra.x;orch-"), "{text}");
        assert!(!text.contains("old"), "{text}");
        let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._;".contains(&byte);
        assert!(text.bytes().all(fine), "{text}");
        assert_eq!(Bears::of(&split(&text), None), Bears::Made(Box::new(made)));
    }

    #[test]
    fn a_description_is_read_back_however_it_was_kept() {
        let line = description(&marks(7));
        let escaped = crate::api::encode(&line);
        for kept in [line.clone(), format!("{line}\n"), escaped, format!("# Mine 100%\n{line}\nmore: x")] {
            assert_eq!(Bears::of(&[], Some(&kept)), Bears::Begun(marks(7)), "{kept}");
        }
        for not_ours in ["", "orch: ", "orch: orch-uuid=7", "x orch: orch-site=a"] {
            assert_eq!(Bears::of(&[], Some(not_ours)), Bears::Nothing, "{not_ours}");
        }
    }

    #[test]
    fn a_copy_of_one_of_our_machines_is_known_by_its_own_description() {
        let made = Written::new(marks(7), FirstKey::generate().public, "x");
        let tags = split(&tags(&made, &[]));
        assert_eq!(Bears::of(&tags, Some(&description(&marks(8)))), Bears::Begun(marks(8)));
        assert_eq!(Bears::of(&tags, Some(&description(&marks(7)))).uuid(), Some(marks(7).uuid));
        assert!(matches!(Bears::of(&tags, Some("written over by hand")), Bears::Made(_)));
    }
}
