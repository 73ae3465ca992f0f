//! Who a node is: what tokens, addresses, the journal and secrets speak of.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::word::{HostName, ManifestName, NodeName};

/// `<manifest>.<node>@<host>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The manifest that describes the node.
    pub manifest: ManifestName,
    /// The node's name in it.
    pub node: NodeName,
    /// The host that it is placed on.
    pub host: HostName,
}

/// How long a name at a provider may be before the digest is put behind it.
const PLAIN_NAME_LENGTH: usize = 54;

impl Identity {
    /// The name that people see at the provider: `<manifest>-<node>`. Names are for people; marks decide.
    pub fn plain_name(&self) -> String {
        let plain = format!("{}-{}", self.manifest, self.node);
        if plain.len() > PLAIN_NAME_LENGTH { self.distinct_name() } else { plain }
    }

    /// The name where the plain one is too long or taken: cut, with eight digits of the identity's digest.
    pub fn distinct_name(&self) -> String {
        let mut plain = format!("{}-{}", self.manifest, self.node);
        plain.truncate(PLAIN_NAME_LENGTH);
        format!("{plain}-{}", self.digest().short())
    }

    /// The SHA-256 of the identity as it is printed.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(format!("{self}").as_bytes())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}@{}", self.manifest, self.node, self.host)
    }
}

impl FromStr for Identity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('@').and_then(|(node, host)| Some((node.split_once('.')?, host)));
        let Some(((manifest, node), host)) = parts else {
            return Err(format!(
                "`{}` is not an identity: write it as `manifest.node@host`",
                crate::word::shorten(text)
            ));
        };
        Ok(Self { manifest: manifest.parse()?, node: node.parse()?, host: host.parse()? })
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn an_identity_reads_back_and_names_stay_within_63_characters() {
        let identity: Identity = "nested-test.inner-pve@father".parse().unwrap();
        assert_eq!(identity.to_string(), "nested-test.inner-pve@father");
        assert_eq!(identity.plain_name(), "nested-test-inner-pve");
        let long: Identity = format!("{}.{}@h", "m".repeat(60), "n".repeat(60)).parse().unwrap();
        assert_eq!(long.plain_name().len(), 63);
        assert_eq!(long.plain_name(), long.distinct_name());
        for text in ["", "a@b", "a.b", "a.b@", "../x.y@z", "a.b.c@h"] {
            assert!(text.parse::<Identity>().is_err(), "{text}");
        }
    }
}
