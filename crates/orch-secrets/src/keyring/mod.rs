//! The identities that open files: where sops would look for them, and what became of each place.

mod command;
mod env;
pub(crate) mod ssh;
mod withhold;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use age::{Decryptor, armor::ArmoredReader, x25519};
use zeroize::Zeroizing;

pub use env::Env;
pub use ssh::{PublicKey, SshKeyError, ssh_to_age};
pub use withhold::withhold;

use crate::reader::{Reader, ReaderKind};
use crate::seal;
use ssh::PrivateKey;

/// How large a file of identities may be, and how much a command may print.
const LARGEST: usize = 1024 * 1024;

/// What opens one kind of recipient.
enum Identity {
    Age(x25519::Identity),
    Ssh(PrivateKey),
}

impl Identity {
    fn as_age(&self) -> &dyn age::Identity {
        match self {
            Self::Age(identity) => identity,
            Self::Ssh(key) => key,
        }
    }

    fn is_for(&self, reader: &Reader) -> bool {
        match (self, reader.kind()) {
            (Self::Age(identity), ReaderKind::Age) => identity.to_public().to_string() == reader.as_str(),
            (Self::Ssh(key), ReaderKind::SshEd25519) => {
                reader.as_str().parse::<PublicKey>().is_ok_and(|public| public == *key.public())
            }
            _ => false,
        }
    }
}

/// What became of a wrapped key.
pub(crate) enum Unwrapped {
    Opened(Zeroizing<Vec<u8>>),
    /// There is an identity for it, and it does not open.
    Damaged,
    /// There is no identity for it.
    NotOurs,
}

/// The identities that were found. It shows none of them.
#[derive(Default)]
pub struct Keyring {
    identities: Vec<Identity>,
    notes: Vec<String>,
}

impl Keyring {
    /// Looks where sops looks. A place that cannot be used is not an error: files that need nothing of it still open, and
    /// for the others it is named.
    pub fn from(env: &Env) -> Self {
        let mut ring = Self::default();
        env::fill(&mut ring, env);
        ring
    }

    /// One that holds these.
    pub fn of(identities: impl IntoIterator<Item = seal::Identity>) -> Self {
        let mut ring = Self::default();
        for identity in identities {
            let text = identity.to_secret();
            ring.add("a given identity", &String::from_utf8_lossy(text.expose()));
        }
        ring
    }

    /// Adds what a text holds: identities of age, a line each, or a private key of SSH.
    pub fn add(&mut self, place: &str, text: &str) {
        let before = self.identities.len();
        if PrivateKey::is_meant(text) {
            self.add_ssh(place, text);
            return;
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut refused = None;
        for line in lines {
            match line.parse() {
                Ok(identity) => self.identities.push(Identity::Age(identity)),
                // The first says what the rest is about: the lines of an armored file are no identities either.
                Err(_) => refused = refused.or(Some(why_not(line))),
            }
        }
        let found = self.identities.len() - before;
        self.notes.push(match (found, refused) {
            (0, None) => format!("{place} (holds no identity)"),
            (0, Some(why)) => format!("{place} ({why})"),
            (count, None) => format!("{place} ({count} found)"),
            (count, Some(why)) => format!("{place} ({count} found; {why})"),
        });
    }

    fn add_ssh(&mut self, place: &str, text: &str) {
        match PrivateKey::parse(text) {
            Ok(key) => {
                // Whoever turned the public key into an age recipient expects the private one to open it.
                self.identities.push(Identity::Age(key.to_age()));
                self.identities.push(Identity::Ssh(key));
                self.notes.push(format!("{place} (1 found)"));
            }
            Err(error) => self.notes.push(format!("{place} ({error}; {})", error.hint())),
        }
    }

    fn add_file(&mut self, place: &str, path: &Path) {
        match File::open(path).and_then(read_once) {
            Ok(bytes) => self.add_bytes(place, &bytes),
            Err(error) => self.notes.push(format!("{place} ({})", words(&error))),
        }
    }

    /// Adds what bytes hold, where they are text.
    fn add_bytes(&mut self, place: &str, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.add(place, text),
            Err(_) => self.notes.push(format!("{place} (not text)")),
        }
    }

    /// Where identities were looked for, and what became of that; never what was found there.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty()
    }

    /// Whether there is an identity for a recipient.
    pub fn is_for(&self, reader: &Reader) -> bool {
        self.identities.iter().any(|identity| identity.is_for(reader))
    }

    /// Opens an armored age file that holds a key.
    pub(crate) fn unwrap(&self, reader: &Reader, armored: &str) -> Unwrapped {
        let is_ours = self.is_for(reader);
        // Its label may be wrong, so the others are tried too; only a label that is right makes it damaged.
        let identities = self.identities.iter().map(Identity::as_age);
        match read(armored, identities) {
            Some(key) => Unwrapped::Opened(key),
            None if is_ours => Unwrapped::Damaged,
            None => Unwrapped::NotOurs,
        }
    }
}

fn read<'a>(
    armored: &str,
    identities: impl Iterator<Item = &'a dyn age::Identity>,
) -> Option<Zeroizing<Vec<u8>>> {
    let decryptor = Decryptor::new_buffered(ArmoredReader::new(armored.as_bytes())).ok()?;
    let reader = decryptor.decrypt(identities).ok()?;
    let mut key = Zeroizing::new(Vec::with_capacity(256));
    reader.take(256).read_to_end(&mut key).ok()?;
    Some(key)
}

/// All that there is to read, in a buffer that is large enough from the start: one that grew would leave copies behind that are
/// not wiped. How much there is cannot be asked beforehand, since it may come from a pipe.
fn read_once(mut from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; LARGEST + 1]);
    let mut length = 0;
    while length < bytes.len() {
        match from.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if length > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Why a line is no identity that we can use.
fn why_not(line: &str) -> &'static str {
    if line.starts_with("AGE-SECRET-KEY-PQ-") {
        "an identity is a post-quantum one, which is not known here yet"
    } else if line.starts_with("AGE-PLUGIN-") {
        "an identity is one of a plugin, which are not run here"
    } else if line.starts_with("age-encryption.org/") || line.starts_with("-----BEGIN AGE") {
        "it is itself encrypted"
    } else {
        "a line is no identity"
    }
}

fn words(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "not there",
        io::ErrorKind::PermissionDenied => "may not be read",
        io::ErrorKind::FileTooLarge => "larger than 1 MiB",
        _ => "cannot be read",
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} identities, tried: {})", self.identities.len(), self.notes.join("; "))
    }
}
