//! The SSH host key that a machine is made with: it is known by that from the first packet, until it shows one that it made
//! itself. It is made in memory, and goes nowhere but into what the machine is given.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use orch_model::PublicKey;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use zeroize::Zeroizing;

const KIND: &[u8] = b"ssh-ed25519";
/// What an unencrypted private key is padded to.
const BLOCK: usize = 8;

/// A host key for the first start of a machine.
pub struct FirstKey {
    /// The private half, as OpenSSH writes it.
    pub private: Zeroizing<String>,
    /// The public half.
    pub public: PublicKey,
}

impl FirstKey {
    /// A new one.
    pub fn generate() -> Self {
        let random = SystemRandom::new();
        let mut seed = Zeroizing::new([0_u8; 32]);
        let mut check = [0_u8; 4];
        random.fill(seed.as_mut()).expect("the kernel gives random bytes");
        random.fill(&mut check).expect("the kernel gives random bytes");
        Self::of(&seed, check)
    }

    fn of(seed: &Zeroizing<[u8; 32]>, check: [u8; 4]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).expect("any 32 bytes are a seed");
        let point = pair.public_key().as_ref();
        let public = public(point);
        let text = format!("ssh-ed25519 {}", BASE64.encode(&public));
        let public_key = text.parse().expect("this is how a public key is written");
        Self { private: armoured(&private(seed, point, &public, check)), public: public_key }
    }
}

/// The public half as it goes over the wire.
fn public(point: &[u8]) -> Vec<u8> {
    let mut blob = Vec::new();
    string(&mut blob, KIND);
    string(&mut blob, point);
    blob
}

/// The file of an unencrypted private key, as `PROTOCOL.key` of OpenSSH describes it.
fn private(seed: &Zeroizing<[u8; 32]>, point: &[u8], public: &[u8], check: [u8; 4]) -> Zeroizing<Vec<u8>> {
    let mut both = Zeroizing::new(seed.to_vec());
    both.extend_from_slice(point);
    let mut inner = Zeroizing::new(Vec::with_capacity(192));
    inner.extend_from_slice(&check);
    inner.extend_from_slice(&check);
    string(&mut inner, KIND);
    string(&mut inner, point);
    string(&mut inner, &both);
    string(&mut inner, b"orch");
    let padding = inner.len().next_multiple_of(BLOCK) - inner.len();
    inner.extend((1..=padding).filter_map(|byte| u8::try_from(byte).ok()));

    let mut file = Zeroizing::new(Vec::with_capacity(512));
    file.extend_from_slice(b"openssh-key-v1\0");
    string(&mut file, b"none");
    string(&mut file, b"none");
    string(&mut file, b"");
    file.extend_from_slice(&1_u32.to_be_bytes());
    string(&mut file, public);
    string(&mut file, &inner);
    file
}

fn string(into: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("these strings are short");
    into.extend_from_slice(&length.to_be_bytes());
    into.extend_from_slice(bytes);
}

fn armoured(file: &[u8]) -> Zeroizing<String> {
    const WIDTH: usize = 70;
    let text = Zeroizing::new(BASE64.encode(file));
    let mut armoured = Zeroizing::new(String::with_capacity(text.len() + 128));
    armoured.push_str("-----BEGIN OPENSSH PRIVATE KEY-----\n");
    for line in text.as_bytes().chunks(WIDTH) {
        armoured.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        armoured.push('\n');
    }
    armoured.push_str("-----END OPENSSH PRIVATE KEY-----\n");
    armoured
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn openssh_reads_the_key_and_finds_the_same_public_half() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let key = FirstKey::generate();
        fs::write(&file, key.private.as_bytes()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let Ok(shown) = Command::new("ssh-keygen").arg("-y").arg("-f").arg(&file).output() else {
            return println!("skipped: there is no ssh-keygen");
        };
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(shown.trim(), format!("{} orch", key.public));
        assert_ne!(key.public, FirstKey::generate().public);
    }
}
