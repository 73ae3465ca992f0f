//! Ed25519 keys of SSH, as age uses them: as recipients of their own kind, and turned into X25519 ones.
//!
//! The stanza `ssh-ed25519` is ours, because age's comes with RSA, whose arithmetic in Rust can be timed (RUSTSEC-2023-0071).

use std::str::FromStr;

use age::x25519;
use age_core::format::{FILE_KEY_BYTES, FileKey, Stanza};
use age_core::primitives::{aead_decrypt, aead_encrypt, hkdf};
use age_core::secrecy::ExposeSecret;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bech32::{Bech32, Hrp};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::montgomery::MontgomeryPoint;
use sha2::{Digest, Sha256, Sha512};
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

use crate::seal;

const KIND: &str = "ssh-ed25519";
const LABEL: &[u8] = b"age-encryption.org/v1/ssh-ed25519";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// A text is no key of SSH that age can use. The text is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SshKeyError {
    /// Not a key at all, or only a part of one.
    #[error("this is not a key of OpenSSH")]
    NotAKey,
    /// RSA, ECDSA, or one that lives in hardware.
    #[error("this key is not an Ed25519 one")]
    OtherKind,
    /// There is a passphrase on it.
    #[error("this key is protected by a passphrase, and nobody is asked for it here")]
    Passphrase,
}

impl SshKeyError {
    /// What to try next.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NotAKey => "`ssh-keygen -t ed25519` makes one",
            Self::OtherKind => "use an Ed25519 key, or an age identity made with `age-keygen`",
            Self::Passphrase => "make an age identity with `age-keygen`, and add it with `sops updatekeys`",
        }
    }
}

/// A public key, `ssh-ed25519 AAAA… comment`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// As it travels: the kind and the point, each after its length.
    wire: Vec<u8>,
    /// The point on the other curve.
    montgomery: [u8; 32],
}

impl PublicKey {
    fn of(wire: &[u8]) -> Result<Self, SshKeyError> {
        let mut reader = Reader(wire);
        let kind = reader.text().ok_or(SshKeyError::NotAKey)?;
        if kind != KIND.as_bytes() {
            return Err(SshKeyError::OtherKind);
        }
        let point = reader.text().and_then(|point| <[u8; 32]>::try_from(point).ok());
        let point = point.filter(|_| reader.0.is_empty()).ok_or(SshKeyError::NotAKey)?;
        let point = CompressedEdwardsY(point).decompress().ok_or(SshKeyError::NotAKey)?;
        Ok(Self { wire: wire.to_vec(), montgomery: point.to_montgomery().to_bytes() })
    }

    /// The age recipient that `ssh-to-age` makes of it.
    pub fn to_age(&self) -> seal::Recipient {
        let text = bech32::encode::<Bech32>(Hrp::parse_unchecked("age"), &self.montgomery);
        text.ok().and_then(|text| text.parse().ok()).expect("32 bytes are a recipient")
    }

    fn tag(&self) -> String {
        STANDARD_NO_PAD.encode(&Sha256::digest(&self.wire)[..4])
    }

    /// The number that binds the exchange to this key of SSH.
    fn tweak(&self) -> [u8; 32] {
        hkdf(&self.wire, LABEL, &[])
    }

    fn key(&self, share: &[u8; 32], exchanged: &MontgomeryPoint) -> Zeroizing<[u8; 32]> {
        let mut bound = exchanged.mul_clamped(self.tweak());
        let salt = [share.as_slice(), &self.montgomery].concat();
        let key = Zeroizing::new(hkdf(&salt, LABEL, bound.as_bytes()));
        bound.zeroize();
        key
    }

    /// The stanza that wraps a file's key for this key.
    pub(crate) fn wrap(&self, file_key: &FileKey) -> Stanza {
        let secret = crate::sops::random_key();
        let share = MontgomeryPoint::mul_base_clamped(*secret).to_bytes();
        let mut exchanged = MontgomeryPoint(self.montgomery).mul_clamped(*secret);
        let body = aead_encrypt(&self.key(&share, &exchanged), file_key.expose_secret());
        exchanged.zeroize();
        Stanza { tag: KIND.to_owned(), args: vec![self.tag(), STANDARD_NO_PAD.encode(share)], body }
    }
}

impl FromStr for PublicKey {
    type Err = SshKeyError;

    fn from_str(text: &str) -> Result<Self, SshKeyError> {
        let mut words = text.split_whitespace();
        let kind = words.next().ok_or(SshKeyError::NotAKey)?;
        if kind != KIND {
            let of_ssh = kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-");
            return Err(if of_ssh { SshKeyError::OtherKind } else { SshKeyError::NotAKey });
        }
        let wire = words.next().and_then(|word| STANDARD.decode(word).ok());
        Self::of(&wire.ok_or(SshKeyError::NotAKey)?)
    }
}

/// The age recipient that `ssh-to-age` makes of a public key of SSH.
pub fn ssh_to_age(public_key: &str) -> Result<seal::Recipient, SshKeyError> {
    Ok(public_key.parse::<PublicKey>()?.to_age())
}

/// A private key without a passphrase.
pub(crate) struct PrivateKey {
    public: PublicKey,
    scalar: Zeroizing<[u8; 32]>,
}

impl PrivateKey {
    /// Whether a text is meant to be one. An armored file of age looks like one, and is none.
    pub(crate) fn is_meant(text: &str) -> bool {
        let text = text.trim_start();
        text.starts_with("-----BEGIN ") && !text.starts_with("-----BEGIN AGE ")
    }

    pub(crate) fn parse(text: &str) -> Result<Self, SshKeyError> {
        let text = text.trim();
        if Self::is_meant(text) && !text.starts_with(BEGIN) {
            return Err(SshKeyError::OtherKind);
        }
        let body = text.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let body = body.ok_or(SshKeyError::NotAKey)?;
        // With room for all of it: a text that grew would leave copies behind that are not wiped.
        let mut packed = Zeroizing::new(String::with_capacity(body.len()));
        packed.extend(body.split_whitespace());
        let bytes = STANDARD.decode(packed.as_bytes()).map_err(|_| SshKeyError::NotAKey)?;
        Self::of(&Zeroizing::new(bytes))
    }

    fn of(bytes: &[u8]) -> Result<Self, SshKeyError> {
        let bad = SshKeyError::NotAKey;
        let mut reader = Reader(bytes.strip_prefix(b"openssh-key-v1\0").ok_or(bad)?);
        let (cipher, _kdf, _options) =
            (reader.text().ok_or(bad)?, reader.text().ok_or(bad)?, reader.text().ok_or(bad)?);
        let is_open = cipher == b"none";
        if reader.number() != Some(1) {
            return Err(bad);
        }
        let public = PublicKey::of(reader.text().ok_or(bad)?)?;
        if !is_open {
            return Err(SshKeyError::Passphrase);
        }
        let mut inner = Reader(reader.text().ok_or(bad)?);
        if inner.number().ok_or(bad)? != inner.number().ok_or(bad)? || inner.text() != Some(KIND.as_bytes()) {
            return Err(bad);
        }
        let (point, pair) = (inner.text().ok_or(bad)?, inner.text().ok_or(bad)?);
        if pair.len() != 64 || pair[32..] != *point || !public.wire.ends_with(point) {
            return Err(bad);
        }
        let mut hash = Sha512::digest(&pair[..32]);
        let mut scalar = Zeroizing::new([0; 32]);
        scalar.copy_from_slice(&hash[..32]);
        hash.as_mut_slice().zeroize();
        scalar[0] &= 0xf8;
        scalar[31] = (scalar[31] & 0x7f) | 0x40;
        // A public half of another key would make age files that nobody can open.
        if MontgomeryPoint::mul_base_clamped(*scalar).to_bytes() != public.montgomery {
            return Err(bad);
        }
        Ok(Self { public, scalar })
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The identity that `ssh-to-age -private-key` makes of it.
    pub(crate) fn to_age(&self) -> x25519::Identity {
        let prefix = Hrp::parse_unchecked("age-secret-key-");
        let text = bech32::encode_upper::<Bech32>(prefix, &*self.scalar).map(Zeroizing::new);
        text.ok().and_then(|text| text.parse().ok()).expect("32 bytes are an identity")
    }
}

impl age::Identity for PrivateKey {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, age::DecryptError>> {
        let [tag, share] = stanza.args.as_slice() else { return None };
        if stanza.tag != KIND || *tag != self.public.tag() {
            return None;
        }
        let share = STANDARD_NO_PAD.decode(share).ok().and_then(|share| <[u8; 32]>::try_from(share).ok());
        let Some(share) = share else {
            return Some(Err(age::DecryptError::InvalidHeader));
        };
        let mut exchanged = MontgomeryPoint(share).mul_clamped(*self.scalar);
        let key = self.public.key(&share, &exchanged);
        exchanged.zeroize();
        let opened = aead_decrypt(&key, FILE_KEY_BYTES, &stanza.body).map(Zeroizing::new);
        let opened = opened.map(|plain| FileKey::init_with_mut(|key| key.copy_from_slice(&plain)));
        Some(opened.map_err(|_| age::DecryptError::DecryptionFailed))
    }
}

/// Numbers and texts as SSH writes them.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }
}
