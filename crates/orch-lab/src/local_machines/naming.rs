//! What the machines of an API are called on this computer.

use orch_model::{HostName, Identity, ManifestName, NodeName, SiteName};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A machine by where it is: the ids of those that it lives inside of, outermost first, and its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(String);

impl Key {
    pub(super) fn of(around: Option<&Self>, id: &str) -> Self {
        // An id is one part of a key, whatever is in it.
        let id = id.replace('/', "_");
        Self(around.map_or(id.clone(), |around| format!("{}/{id}", around.0)))
    }

    pub(super) fn known(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The machine that it lives inside of.
    pub(super) fn around(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(around, _)| Self(around.to_owned()))
    }

    pub(super) fn is_inside(&self, other: &Self) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Its mark: another for every lab, host and machine. The same after every restart.
    pub(super) fn uuid(&self, lab: Uuid, host: &HostName) -> Uuid {
        let mut hash = Sha256::new();
        for part in [lab.as_bytes(), host.as_str().as_bytes(), self.0.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Its name among nodes: readable as far as its id is, and its own in any case.
    pub(super) fn node(&self) -> NodeName {
        let digest = Sha256::digest(self.0.as_bytes());
        let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let shown: String =
            self.0.chars().map(|letter| if fits(letter) { letter } else { '-' }).take(40).collect();
        let name = format!("m-{shown}-{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
        name.parse().expect("lower-case letters, digits and dashes after a letter are a name")
    }

    pub(super) fn identity(&self, host: &HostName) -> Identity {
        Identity { manifest: manifest(), node: self.node(), host: host.clone() }
    }
}

/// The site that machines of the lab belong to.
pub(super) fn site() -> SiteName {
    "lab".parse().expect("it is a name")
}

fn manifest() -> ManifestName {
    "lab".parse().expect("it is a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_name_and_a_mark_of_its_own() {
        let (outer, odd) = (Key::of(None, "100"), Key::of(None, "a/b C"));
        let inner = Key::of(Some(&outer), "100");
        assert_eq!(inner.around(), Some(outer.clone()));
        assert!(
            inner.is_inside(&outer) && !outer.is_inside(&inner) && !Key::of(None, "1000").is_inside(&outer)
        );
        assert_eq!(odd.around(), None);
        assert!(outer.node().as_str().starts_with("m-100-"));
        assert!(outer.node() != inner.node() && odd.node() != Key::of(None, "a-b-c").node());
        let host: HostName = "pve".parse().expect("a name");
        let (lab, other) = (Uuid::new_v4(), Uuid::new_v4());
        assert_eq!(outer.uuid(lab, &host), outer.uuid(lab, &host));
        assert_ne!(outer.uuid(lab, &host), outer.uuid(other, &host));
        assert_ne!(outer.uuid(lab, &host), inner.uuid(lab, &host));
    }
}
