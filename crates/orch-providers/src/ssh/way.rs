//! Which hops lead to a node, and who knows.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use async_trait::async_trait;
use orch_model::PublicKey;
use orch_run::{Target, TransportError};
use sha2::{Digest as _, Sha256};

use crate::push::Program;

/// How long a [`digest`] is.
pub(super) const DIGEST: usize = 20;

/// Who knows the way to nodes: a provider, for the machines that it makes.
#[async_trait]
pub trait Wayfinder: Send + Sync {
    /// The way to a node as it is now. Changes nothing.
    async fn way(&self, target: &Target) -> Result<Way, TransportError>;
}

/// The way to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The machines on the way, outermost first; the last one is the node.
    pub hops: Vec<Hop>,
    /// The program that configures the node.
    pub program: Program,
    /// Whether the account needs `sudo` to act as root.
    pub sudo: bool,
}

/// One machine on the way, and how to know it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The name by which people and other hops mean it. Two hops with one alias are the same machine.
    pub alias: String,
    /// Its address, as the hop before it sees it.
    pub address: String,
    /// The port of its SSH server.
    pub port: u16,
    /// The account to use.
    pub user: String,
    /// Its host key, and the one after it where it may show that already. No other is spoken to.
    pub host_keys: Vec<PublicKey>,
    /// The program whose input and output lead to its SSH server, where the network does not.
    pub proxy: Option<Vec<OsString>>,
    /// Which life of the machine this is, where that is known: a connection to an earlier one is not used again.
    pub generation: String,
}

impl Hop {
    /// The name under which its host key is pinned, whatever its address is.
    pub(super) fn pin(&self) -> String {
        format!("orch-{}", self.alias)
    }

    /// Whether both are one machine, reached in one way. A machine whose life is known is the same one when it shows another key,
    /// as each does once.
    pub(super) fn is_same_machine(&self, other: &Self) -> bool {
        let known = Self { host_keys: other.host_keys.clone(), ..self.clone() };
        self == other || (!self.generation.is_empty() && known == *other)
    }

    /// Says what is wrong with it: everything that could mean something else in a configuration of `ssh` is refused.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_word = |text: &str, more: &str| {
            let fine = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            text.starts_with(|c: char| c != '-' && fine(c)) && text.chars().all(fine)
        };
        if !is_word(&self.alias, "._-") {
            return Err(format!("`{}` cannot be the alias of a hop", orch_model::printable(&self.alias)));
        }
        if !is_word(&self.address, "._:%-") {
            return Err(format!("`{}` is not an address", orch_model::printable(&self.address)));
        }
        if !is_word(&self.user, "._-") {
            return Err(format!("`{}` is not an account", orch_model::printable(&self.user)));
        }
        let proxy = self.proxy.as_deref();
        if proxy.is_some_and(<[_]>::is_empty) {
            return Err(format!("the program that leads to `{}` has no name", self.alias));
        }
        let has_control = |word: &OsString| word.as_bytes().iter().any(u8::is_ascii_control);
        if proxy.is_some_and(|words| words.iter().any(has_control)) {
            return Err(format!("the program that leads to `{}` has control characters in it", self.alias));
        }
        Ok(())
    }
}

/// A name that is made of everything that these hops are: other hops have another.
pub(super) fn digest(hops: &[Hop]) -> String {
    let mut words: Vec<Vec<u8>> = Vec::new();
    for hop in hops {
        // A machine whose life is known is the same one when it shows another key, as each does once.
        let host_key = hop.host_keys.first().filter(|_| hop.generation.is_empty());
        let host_key = host_key.map_or("", PublicKey::as_str);
        let texts = [&hop.alias, &hop.address, &hop.user, host_key, &hop.generation];
        words.extend(texts.map(|text| text.as_bytes().to_vec()));
        words.push(hop.port.to_be_bytes().to_vec());
        words.extend(hop.proxy.iter().flatten().map(|word| word.as_bytes().to_vec()));
    }
    digest_of(&words)
}

/// A name that is made of these words: two lists of words never have the same.
pub(super) fn digest_of(words: &[impl AsRef<[u8]>]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.as_ref().len().to_be_bytes());
        hash.update(word);
    }
    let digest = hash.finalize();
    digest.iter().take(DIGEST / 2).fold(String::new(), |name, byte| name + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop() -> Hop {
        Hop {
            alias: "web-1".into(),
            address: "fe80::1%eth0".into(),
            port: 22,
            user: "root".into(),
            host_keys: vec!["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE".parse().unwrap()],
            proxy: Some(vec!["/opt/a b/orch".into(), "100%".into()]),
            generation: String::new(),
        }
    }

    #[test]
    fn a_hop_whose_words_could_mean_something_else_is_refused() {
        assert_eq!(hop().check(), Ok(()));
        let hostile = ["", "-x", "a b", "a\nb", "*", "!a", "a,b", "u@a", "a\"b", "a/b", "ä"];
        for word in hostile {
            assert!(Hop { alias: word.into(), ..hop() }.check().is_err(), "alias {word:?}");
            assert!(Hop { address: word.into(), ..hop() }.check().is_err(), "address {word:?}");
            assert!(Hop { user: word.into(), ..hop() }.check().is_err(), "user {word:?}");
        }
        assert!(Hop { proxy: Some(vec![]), ..hop() }.check().is_err());
        assert!(Hop { proxy: Some(vec!["nc".into(), "a\nHost *".into()]), ..hop() }.check().is_err());
    }
}
