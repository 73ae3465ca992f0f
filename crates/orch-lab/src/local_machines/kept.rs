//! What is written down of machines: what was wanted, and whether their first boot was done. What a machine is given then is
//! not: it holds secrets, and whoever starts it has it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use super::naming::Key;
use crate::machines::{Size, Wanted};
use crate::state;

/// One machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) size: Size,
    pub(super) image: String,
    pub(super) is_container: bool,
    /// The life whose first boot was done.
    pub(super) booted: Option<String>,
}

impl Kept {
    pub(super) fn of(wanted: &Wanted) -> Self {
        Self {
            name: wanted.name.clone(),
            size: wanted.size,
            image: wanted.image.clone(),
            is_container: wanted.is_container,
            booted: None,
        }
    }
}

/// All of them, and the file that says so.
pub(super) struct Book {
    path: PathBuf,
    machines: Mutex<BTreeMap<String, Kept>>,
}

impl Book {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let machines = state::read(&path)?.unwrap_or_default();
        Ok(Self { path, machines: Mutex::new(machines) })
    }

    pub(super) fn find(&self, key: &Key) -> Option<Kept> {
        self.lock().get(key.as_str()).cloned()
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.lock().keys().map(|key| Key::known(key)).collect()
    }

    /// Changes what is known of a machine; what is not known yet is what `new` says.
    pub(super) fn note(
        &self,
        key: &Key,
        new: impl FnOnce() -> Kept,
        change: impl FnOnce(&mut Kept),
    ) -> io::Result<()> {
        let mut machines = self.lock();
        change(machines.entry(key.as_str().to_owned()).or_insert_with(new));
        state::write(&self.path, &*machines)
    }

    pub(super) fn forget(&self, key: &Key) -> io::Result<()> {
        let mut machines = self.lock();
        if machines.remove(key.as_str()).is_some() { state::write(&self.path, &*machines) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.machines.lock().expect("nobody panics while holding this")
    }
}
