//! The secrets of one node, together: what is sealed for it, and what it keeps.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orch_model::{AgeRecipient, KeyName, Parcel, SecretDigest};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::Secret;
use crate::seal::{self, Identity, Recipient, SealError};

/// The layout of a bundle; another one begins with another byte.
const LAYOUT: u8 = 1;

/// A value, and by what it is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// By what it is known again.
    pub digest: SecretDigest,
    /// The value.
    pub value: Secret,
}

/// The secrets of one node, by name and by what each value is known: of one name there may be two, an old one that a node may
/// have to go back to and the new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    held: BTreeMap<(KeyName, SecretDigest), Secret>,
}

/// A bundle cannot be sealed or opened.
#[derive(Debug, Error)]
pub enum BundleError {
    /// It cannot be sealed, or not opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// What was sealed is no bundle.
    #[error("what was sealed is not a bundle of secrets")]
    Nonsense,
}

impl Bundle {
    /// Puts a secret in, beside those of that name that are known by something else.
    pub fn insert(&mut self, name: KeyName, Held { digest, value }: Held) {
        self.held.insert((name, digest), value);
    }

    /// Puts everything of another bundle in.
    pub fn extend(&mut self, other: Self) {
        self.held.extend(other.held);
    }

    /// Keeps those that are wanted, and forgets the others.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&KeyName, &SecretDigest) -> bool) {
        self.held.retain(|(name, digest), _| is_wanted(name, digest));
    }

    /// The secret of that name whose value is known by this.
    pub fn get(&self, name: &KeyName, digest: &SecretDigest) -> Option<&Secret> {
        self.held.get(&(name.clone(), digest.clone()))
    }

    /// Every secret, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&KeyName, &SecretDigest, &Secret)> {
        self.held.iter().map(|((name, digest), value)| (name, digest, value))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Seals it for one who can open it: a binary age file.
    pub fn seal(&self, recipient: &Recipient) -> Result<Vec<u8>, BundleError> {
        Ok(seal::seal(std::slice::from_ref(recipient), &self.encode())?)
    }

    /// Opens what was sealed.
    pub fn open(identity: &Identity, sealed: &[u8]) -> Result<Self, BundleError> {
        let plain = seal::open(identity, sealed)?;
        decode(plain.expose()).ok_or(BundleError::Nonsense)
    }

    /// Seals it as what a node is sent.
    pub fn pack(&self, recipient: &AgeRecipient) -> Result<Parcel, BundleError> {
        let recipient: Recipient = recipient.as_str().parse()?;
        Ok(Parcel::new(STANDARD.encode(self.seal(&recipient)?)))
    }

    /// Opens what a node was sent.
    pub fn unpack(identity: &Identity, parcel: &Parcel) -> Result<Self, BundleError> {
        let sealed = STANDARD.decode(parcel.as_str()).map_err(|_| BundleError::Nonsense)?;
        Self::open(identity, &sealed)
    }

    fn encode(&self) -> Zeroizing<Vec<u8>> {
        // As much room as is needed: a buffer that grew would leave copies behind that are not wiped.
        let room = |(name, digest, value): (&KeyName, &SecretDigest, &Secret)| {
            12 + name.as_str().len() + digest.as_str().len() + value.len()
        };
        let mut bytes = Zeroizing::new(Vec::with_capacity(1 + self.iter().map(room).sum::<usize>()));
        bytes.push(LAYOUT);
        for (name, digest, value) in self.iter() {
            for part in [name.as_str().as_bytes(), digest.as_str().as_bytes(), value.expose()] {
                let length = u32::try_from(part.len()).expect("no secret is larger than 4 GiB");
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }
}

fn decode(bytes: &[u8]) -> Option<Bundle> {
    let (layout, mut rest) = bytes.split_first()?;
    let mut bundle = Bundle::default();
    while *layout == LAYOUT && !rest.is_empty() {
        let name = part(&mut rest)?;
        let digest = part(&mut rest)?;
        let value = Secret::new(part(&mut rest)?.to_vec());
        let text = |bytes| std::str::from_utf8(bytes).ok();
        let (name, digest) = (text(name)?.parse().ok()?, text(digest)?.parse().ok()?);
        bundle.insert(name, Held { digest, value });
    }
    (*layout == LAYOUT).then_some(bundle)
}

/// Takes the next part off.
fn part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (part, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

    use super::*;

    fn bundle() -> Bundle {
        let mut bundle = Bundle::default();
        for (name, value) in [("db", &b"hunter2"[..]), ("empty", b""), ("tls.key", &[0, 255, 10])] {
            let digest = "0123456789abcdef0123456789abcdef".parse().unwrap();
            bundle.insert(name.parse().unwrap(), Held { digest, value: Secret::new(value.to_vec()) });
        }
        bundle
    }

    #[test]
    fn a_bundle_is_written_into_a_buffer_that_never_grows() {
        let bundle = bundle();
        assert!(bundle.iter().count() >= 3);
        let bytes = bundle.encode();
        assert_eq!(bytes.len(), bytes.capacity());
    }

    #[test]
    fn a_node_opens_its_own_parcel_and_no_other() {
        let (node, other) = (Identity::generate(), Identity::generate());
        let parcel = bundle().pack(&node.recipient().to_string().parse().unwrap()).unwrap();
        assert_eq!(Bundle::unpack(&node, &parcel).unwrap(), bundle());
        assert!(Bundle::unpack(&other, &parcel).is_err());
        assert!(!format!("{:?} {parcel:?}", bundle()).contains("hunter2"));
    }

    #[test]
    fn a_new_value_is_beside_the_old_one_until_that_is_forgotten() {
        let (mut both, name) = (bundle(), "db".parse().unwrap());
        let [old, new] = ["0123456789abcdef0123456789abcdef", "f123456789abcdef0123456789abcdef"]
            .map(|digest| digest.parse::<SecretDigest>().unwrap());
        both.insert("db".parse().unwrap(), Held { digest: new.clone(), value: Secret::new(b"new".to_vec()) });
        let node = Identity::generate();
        let mut read = Bundle::open(&node, &both.seal(&node.recipient()).unwrap()).unwrap();
        assert_eq!(read.get(&name, &old).unwrap().expose(), b"hunter2");
        assert_eq!(read.get(&name, &new).unwrap().expose(), b"new");
        read.retain(|of, digest| *of != name || *digest == new);
        assert_eq!((read.get(&name, &old), read.iter().count()), (None, 3));
    }

    #[test]
    fn encoding_leaves_no_copy_behind_because_it_never_grows() {
        let encoded = bundle().encode();
        assert_eq!(encoded.capacity(), encoded.len());
    }

    #[test]
    fn no_bytes_make_reading_a_bundle_panic_or_take_more_than_there_is() {
        let whole = bundle().encode();
        let mut state = 7_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..20_000 {
            let mut bytes = whole.to_vec();
            for _ in 0..=random() % 4 {
                let at = usize::try_from(random()).unwrap_or_default() % bytes.len();
                bytes[at] = random().to_le_bytes()[0];
            }
            bytes.truncate(usize::try_from(random()).unwrap_or_default() % (bytes.len() + 1));
            if let Some(read) = decode(&bytes) {
                let values: usize = read.iter().map(|(_, _, value)| value.len()).sum();
                assert!(values <= bytes.len());
            }
        }
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        let node = Identity::generate();
        let whole = bundle().encode();
        for bytes in [&b""[..], b"\0", b"\x01\0\0\0\x05ab", &whole[..whole.len() - 1]] {
            let sealed = seal::seal(&[node.recipient()], bytes).unwrap();
            assert!(matches!(Bundle::open(&node, &sealed), Err(BundleError::Nonsense)));
        }
        assert!(Bundle::unpack(&node, &Parcel::new("&".into())).is_err());
    }
}
