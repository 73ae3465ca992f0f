//! The identities that may open files, looked for when the first one is to be opened.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::keyring::{Env, Keyring};

/// The identities that may open files. They are looked for once, and not before one is needed: a command that prints them may
/// ask somebody for a password.
#[derive(Clone, Default)]
pub struct Identities {
    found: Arc<OnceLock<Keyring>>,
}

impl Identities {
    /// Where sops would look, by the environment of this process.
    pub fn of_process() -> Self {
        Self::default()
    }

    /// These.
    pub fn of(keyring: Keyring) -> Self {
        Self { found: Arc::new(OnceLock::from(keyring)) }
    }

    /// They themselves.
    pub fn ring(&self) -> &Keyring {
        self.found.get_or_init(|| Keyring::from(&Env::of_process()))
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identities(..)")
    }
}
