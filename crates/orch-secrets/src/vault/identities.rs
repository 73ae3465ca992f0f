//! The identities that may open files, looked for when the first one is to be opened.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::keyring::{Env, Keyring};

/// The identities that may open files. They are looked for once, and not before one is needed: a command that prints them may
/// ask somebody for a password.
#[derive(Clone)]
pub struct Identities {
    /// Nothing where they were given.
    env: Option<Arc<dyn Fn() -> Env + Send + Sync>>,
    found: Arc<Mutex<Option<Arc<Keyring>>>>,
}

impl Identities {
    /// Where sops would look, by the environment of this process.
    pub fn of_process() -> Self {
        Self::by(Env::of_process)
    }

    /// Where sops would look by this environment, which is asked each time they are looked for.
    pub fn by(env: impl Fn() -> Env + Send + Sync + 'static) -> Self {
        Self { env: Some(Arc::new(env)), found: Arc::default() }
    }

    /// These.
    pub fn of(keyring: Keyring) -> Self {
        Self { env: None, found: Arc::new(Mutex::new(Some(Arc::new(keyring)))) }
    }

    /// They themselves.
    pub fn ring(&self) -> Arc<Keyring> {
        let look = || Arc::new(self.env.as_ref().map_or_else(Keyring::default, |env| Keyring::from(&env())));
        Arc::clone(self.found().get_or_insert_with(look))
    }

    /// Forgets what was found, for everybody who has these, so that the next who needs them looks anew; says what that was.
    /// Those that were given stay.
    pub fn forget(&self) -> Option<Arc<Keyring>> {
        self.env.as_ref().and_then(|_| self.found().take())
    }

    /// Goes back to what was found before.
    pub fn put_back(&self, before: Arc<Keyring>) {
        *self.found() = Some(before);
    }

    fn found(&self) -> MutexGuard<'_, Option<Arc<Keyring>>> {
        self.found.lock().expect("nobody panics while holding this")
    }
}

impl Default for Identities {
    fn default() -> Self {
        Self::of_process()
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identities(..)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

    use std::fs;

    use super::*;
    use crate::reader::Reader;
    use crate::seal::Identity;

    fn opens(identities: &Identities, what: &Identity) -> bool {
        identities.ring().is_for(&Reader::from(what.recipient()))
    }

    #[test]
    fn what_was_found_is_found_anew_only_once_it_is_forgotten() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("keys.txt");
        let [one, two] = [Identity::generate(), Identity::generate()];
        fs::write(&file, one.to_secret().expose()).unwrap();
        let path = file.clone();
        let identities = Identities::by(move || Env { key_file: Some(path.clone()), ..Env::default() });
        let same = identities.clone();
        assert_eq!(identities.forget().map(|_| ()), None, "nobody has looked yet");
        assert!(opens(&identities, &one));
        fs::write(&file, two.to_secret().expose()).unwrap();
        assert!(opens(&identities, &one) && !opens(&identities, &two), "they are looked for once");
        let before = identities.forget().unwrap();
        assert!(opens(&same, &two) && !opens(&same, &one), "for everybody who has them");
        identities.put_back(before);
        assert!(opens(&same, &one));
    }

    #[test]
    fn identities_that_were_given_are_not_forgotten() {
        let one = Identity::generate();
        let given = Identities::of(Keyring::of([one.clone()]));
        assert!(given.forget().is_none());
        assert!(opens(&given, &one));
    }
}
