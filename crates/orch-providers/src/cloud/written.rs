//! What is written on a machine, in words that labels and tags of every provider take. The provider is the only truth: from
//! these words any driver finds, reaches, re-creates or destroys a node.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bech32::{Bech32, Hrp};
use orch_model::{AgeRecipient, Digest, NodeKeys, PublicKey, Size};
use orch_plan::{Applied, Keys, Marks};
use orch_run::Pin;

use super::base32;

const SITE: &str = "orch-site";
const MANIFEST: &str = "orch-manifest";
const NODE: &str = "orch-node";
const HOST: &str = "orch-host";
const UUID: &str = "orch-uuid";
/// The host key that it was made with, for as long as that is believed.
const FIRST: &str = "orch-first";
const KEY: &str = "orch-key";
const AGE: &str = "orch-age";
const APPLIED: &str = "orch-applied";
const PORT: &str = "orch-port";
const IMAGE: &str = "orch-image";
const SIZE: &str = "orch-size";

/// The names of all words, for who looks for them in a list.
pub const NAMES: [&str; 12] = [SITE, MANIFEST, NODE, HOST, UUID, FIRST, KEY, AGE, APPLIED, PORT, IMAGE, SIZE];

/// A label holds no more.
const LONGEST_LABEL: usize = 63;
/// The port of an SSH server that says nothing else.
const SSH_PORT: u16 = 22;
/// What an SSH public key of this kind begins with on the wire.
const ED25519: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0\x20";

/// What is written on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Whose it is.
    pub marks: Marks,
    /// The host key that it was made with, until its own is settled.
    pub first: Option<PublicKey>,
    /// Its own keys, where it has said them.
    pub own: Option<(AgeRecipient, Option<PublicKey>)>,
    /// The configuration that it has.
    pub applied: Option<Digest>,
    /// The port of its SSH server.
    pub port: u16,
    /// What it was made from.
    pub image: Option<String>,
    /// The size that was asked for, where a machine has another one than asked for: clouds sell sizes.
    pub size: Option<Size>,
}

impl Written {
    /// What is written on a machine when it is made.
    pub fn new(marks: Marks, first: PublicKey, image: &str) -> Self {
        let image = Some(image.to_owned());
        Self { marks, first: Some(first), own: None, applied: None, port: SSH_PORT, image, size: None }
    }

    /// The words: a name and a value each. That of an image may be too long for a label, and is left out there.
    pub fn words(&self) -> BTreeMap<&'static str, String> {
        let Marks { site, manifest, node, host, uuid } = &self.marks;
        let mut words = BTreeMap::from([
            (SITE, site.to_string()),
            (MANIFEST, manifest.to_string()),
            (NODE, node.to_string()),
            (HOST, host.to_string()),
            (UUID, uuid.to_string()),
        ]);
        let own = self.own.as_ref();
        let optional = [
            (FIRST, self.first.as_ref().and_then(key_word)),
            (KEY, own.and_then(|(_, key)| key_word(key.as_ref()?))),
            (AGE, own.and_then(|(age, _)| age_word(age))),
            (APPLIED, self.applied.map(|digest| digest_word(&digest))),
            (PORT, (self.port != SSH_PORT).then(|| self.port.to_string())),
            (IMAGE, self.image.as_ref().map(|image| format!("i{}", base32::encode(image.as_bytes())))),
            (SIZE, self.size.map(|size| format!("{}-{}-{}", size.cores, size.memory, size.disk))),
        ];
        words.extend(optional.into_iter().filter_map(|(name, word)| Some((name, word?))));
        words
    }

    /// The words that fit into labels.
    pub fn labels(&self) -> BTreeMap<&'static str, String> {
        let mut words = self.words();
        words.retain(|_, word| word.len() <= LONGEST_LABEL);
        words
    }

    /// Reads the words back; nothing where one of the marks is missing or is none, for then the machine is not ours.
    pub fn read<'w>(word: impl Fn(&str) -> Option<&'w str>) -> Option<Self> {
        let marks = Marks {
            site: word(SITE)?.parse().ok()?,
            manifest: word(MANIFEST)?.parse().ok()?,
            node: word(NODE)?.parse().ok()?,
            host: word(HOST)?.parse().ok()?,
            uuid: word(UUID)?.parse().ok()?,
        };
        let key = |name: &str| word(name).and_then(key_of);
        Some(Self {
            marks,
            first: key(FIRST),
            own: word(AGE).and_then(age_of).map(|age| (age, key(KEY))),
            applied: word(APPLIED).and_then(digest_of),
            port: word(PORT).and_then(|port| port.parse().ok()).unwrap_or(SSH_PORT),
            image: word(IMAGE).and_then(image_of),
            size: word(SIZE).and_then(size_of),
        })
    }

    /// The same with what a node said of itself.
    pub fn pinned(&self, pin: &Pin) -> Self {
        let mut written = self.clone();
        if let Some(NodeKeys { age, host_key, settled }) = &pin.keys {
            written.own = Some((age.clone(), host_key.clone()));
            // One that has no key of its own is known by the first for ever.
            written.first = written.first.filter(|_| !settled || host_key.is_none());
        }
        match pin.applied {
            Some(Applied::Digest(digest)) => written.applied = Some(digest),
            Some(Applied::Never | Applied::Unknown) => written.applied = None,
            None => {}
        }
        written.port = pin.ssh_port.unwrap_or(written.port);
        written
    }

    /// By what it is known.
    pub fn keys(&self) -> Keys {
        let known = |(age, host_key): &(AgeRecipient, Option<PublicKey>)| {
            let (age, host_key) = (age.clone(), host_key.clone());
            let settled = self.first.is_none() || host_key.is_none();
            Keys::Known(NodeKeys { age, host_key, settled })
        };
        self.own.as_ref().map_or(Keys::Awaited, known)
    }

    /// Which configuration it has.
    pub fn applied(&self) -> Applied {
        self.applied.map_or(Applied::Never, Applied::Digest)
    }

    /// The SSH host keys that it may show: the one that it was made with until its own is settled, and its own.
    pub fn host_keys(&self) -> Vec<PublicKey> {
        let own = self.own.as_ref().and_then(|(_, key)| key.clone());
        self.first.clone().into_iter().chain(own).collect()
    }
}

/// The 32 bytes of an Ed25519 key; other keys have no word.
fn key_word(key: &PublicKey) -> Option<String> {
    let blob = BASE64.decode(key.as_str().split(' ').nth(1)?).ok()?;
    Some(format!("k{}", base32::encode(blob.strip_prefix(ED25519)?)))
}

fn key_of(word: &str) -> Option<PublicKey> {
    let point = base32::decode(word.strip_prefix('k')?).filter(|point| point.len() == 32)?;
    format!("ssh-ed25519 {}", BASE64.encode([ED25519, &point].concat())).parse().ok()
}

fn age_word(age: &AgeRecipient) -> Option<String> {
    let (_, key) = bech32::decode(age.as_str()).ok()?;
    Some(format!("k{}", base32::encode(&key)))
}

fn age_of(word: &str) -> Option<AgeRecipient> {
    let key = base32::decode(word.strip_prefix('k')?).filter(|key| key.len() == 32)?;
    bech32::encode::<Bech32>(Hrp::parse("age").ok()?, &key).ok()?.parse().ok()
}

fn digest_word(digest: &Digest) -> String {
    let text = digest.to_string();
    let byte = |place: usize| text.get(place..place + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    let bytes: Vec<u8> = (0..text.len()).step_by(2).filter_map(byte).collect();
    format!("d{}", base32::encode(&bytes))
}

fn digest_of(word: &str) -> Option<Digest> {
    let bytes = base32::decode(word.strip_prefix('d')?)?;
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")).parse().ok()
}

fn image_of(word: &str) -> Option<String> {
    String::from_utf8(base32::decode(word.strip_prefix('i')?)?).ok()
}

fn size_of(word: &str) -> Option<Size> {
    let mut numbers = word.split('-').map(|number| number.parse().ok());
    let size = Size { cores: numbers.next()??, memory: numbers.next()??, disk: numbers.next()?? };
    numbers.next().is_none().then_some(size)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::cloud::FirstKey;

    fn written() -> Written {
        let marks = Marks {
            site: "home.example".parse().unwrap(),
            manifest: "workers".parse().unwrap(),
            node: "worker-1".parse().unwrap(),
            host: "mother".parse().unwrap(),
            uuid: Uuid::from_u128(7),
        };
        Written::new(marks, FirstKey::generate().public, "local:import/debian-13.qcow2")
    }

    fn read_back(written: &Written) -> Option<Written> {
        let words = written.words();
        Written::read(|name| words.get(name).map(String::as_str))
    }

    #[test]
    fn what_is_written_is_read_back_at_every_stage_of_a_machines_life() {
        let made = written();
        assert_eq!(read_back(&made), Some(made.clone()));
        assert_eq!(made.keys(), Keys::Awaited);
        let age: AgeRecipient =
            "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p".parse().unwrap();
        let host_key = FirstKey::generate().public;
        let pin = |settled| Pin {
            identity: made.marks.identity(),
            uuid: made.marks.uuid,
            keys: Some(NodeKeys { age: age.clone(), host_key: Some(host_key.clone()), settled }),
            applied: settled.then(|| Applied::Digest(Digest::of_bytes(b"x"))),
            ssh_port: Some(2222),
        };
        let said = made.pinned(&pin(false));
        assert_eq!(read_back(&said), Some(said.clone()));
        assert_eq!(said.keys(), Keys::Known(pin(false).keys.unwrap()));
        assert_eq!(said.port, 2222, "where it answers must be known before it is connected to again");
        assert_eq!(said.host_keys(), [made.first.clone().unwrap(), host_key.clone()]);
        let settled = said.pinned(&pin(true));
        assert_eq!(read_back(&settled), Some(settled.clone()));
        assert_eq!(settled.keys(), Keys::Known(pin(true).keys.unwrap()));
        assert_eq!(settled.host_keys(), [host_key], "what it was made with opens nothing any more");
        assert_eq!((settled.applied(), settled.port), (Applied::Digest(Digest::of_bytes(b"x")), 2222));
    }

    #[test]
    fn every_word_is_one_that_labels_and_tags_take() {
        let mut long = written();
        long.size = Some(Size { cores: 128, memory: 1 << 20, disk: 100_000 });
        for (name, word) in long.words() {
            assert!(NAMES.contains(&name));
            let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
            assert!(word.len() <= 63 && word.bytes().all(fine), "{name}={word}");
        }
    }

    #[test]
    fn a_machine_that_lacks_one_mark_is_not_ours() {
        let words = written().words();
        for missing in [SITE, MANIFEST, NODE, HOST, UUID] {
            let read = Written::read(|name| words.get(name).filter(|_| name != missing).map(String::as_str));
            assert_eq!(read, None, "{missing}");
        }
    }
}
