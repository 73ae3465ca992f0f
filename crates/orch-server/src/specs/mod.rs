//! What the site says now of every node: edited a moment ago, it is so from the next question on. A site that makes no sense
//! is not taken over: what it said before holds until it is mended.

mod snapshot;
mod watch;
mod words;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use orch_model::{Config, Identity};
use orch_run::load::{self, LoadError};
use orch_secrets::{Identities, Vault};
use thiserror::Error;

use snapshot::Snapshot;
use watch::{Stamp, Watch};
pub(crate) use words::Worded;

/// How often the files are looked at where the kernel does not tell of all their changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often where it does: what is behind a link may be another folder now, and the kernel tells of the one that was.
const LOOK_ANYWAY_EVERY: Duration = Duration::from_secs(2);

/// The site cannot be served.
#[derive(Debug, Error)]
pub enum SiteError {
    /// Its files cannot be listed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// They make no sense.
    #[error("the site makes no sense: {0}")]
    Wrong(String),
}

/// Why there is no configuration for a node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// The site knows no such node, or has no spec for it.
    #[error("the site has no spec for this node")]
    Unknown,
    /// What the site says of it makes no sense.
    #[error("what the site says of this node makes no sense")]
    Wrong,
    /// Its secrets cannot be opened. Why is for the one whose server it is.
    #[error("the secrets of this node cannot be opened: {0}")]
    Sealed(String),
}

/// Where a site is.
#[derive(Debug, Clone)]
pub struct SitePlace {
    /// Its folder.
    pub root: PathBuf,
    /// A manifest from elsewhere that counts as one of the site's.
    pub manifest: Option<PathBuf>,
    /// Who can open its secrets.
    pub identities: Identities,
}

impl SitePlace {
    /// Its secrets, as they are now.
    pub(crate) fn vault(&self) -> Vault {
        Vault::new(&self.root, self.identities.clone())
    }
}

/// What the site says now of every node.
#[derive(Debug)]
pub struct Specs {
    place: SitePlace,
    now: RwLock<Arc<Snapshot>>,
    watch: Mutex<Watching>,
}

#[derive(Debug)]
struct Watching {
    watch: Option<Watch>,
    looked: Instant,
    seen: Stamp,
    /// How the files looked the last time, where that was not as when they were read.
    suspected: Option<Stamp>,
    /// Why the last change was not taken over.
    trouble: Option<String>,
}

impl Watching {
    fn has_changed(&mut self, place: &SitePlace) -> bool {
        self.was_told() || self.has_seen(place)
    }

    fn was_told(&mut self) -> bool {
        self.watch.as_mut().is_some_and(Watch::has_changed)
    }

    /// Whether the files look otherwise than when they were read, and twice the same: somebody may still be writing.
    fn has_seen(&mut self, place: &SitePlace) -> bool {
        let is_told = self.watch.as_ref().is_some_and(|watch| watch.is_complete);
        let is_calm = is_told && self.suspected.is_none();
        if self.looked.elapsed() < if is_calm { LOOK_ANYWAY_EVERY } else { LOOK_EVERY } {
            return false;
        }
        self.looked = Instant::now();
        let found = Some(Stamp::of(place)).filter(|found| *found != self.seen);
        let is_steady = found.is_some() && found == self.suspected;
        self.suspected = found;
        is_steady
    }
}

impl Specs {
    /// Reads a site. One that makes no sense in part is served for the rest.
    pub fn of(place: SitePlace) -> Result<Self, SiteError> {
        // Watched before it is read, so that no change falls in between.
        let watch = Watch::over(&place);
        let seen = Stamp::of(&place);
        let snapshot = Snapshot::new(read(&place)?, place.clone());
        let trouble = snapshot.trouble();
        let watching = Watching { watch, looked: Instant::now(), seen, suspected: None, trouble };
        Ok(Self { place, now: RwLock::new(Arc::new(snapshot)), watch: Mutex::new(watching) })
    }

    /// What a node becomes.
    pub fn config(&self, node: &Identity) -> Result<Config, SpecError> {
        self.worded(node).map(|worded| worded.config)
    }

    /// The same, as it is said to the node.
    pub(crate) fn worded(&self, node: &Identity) -> Result<Worded, SpecError> {
        self.snapshot().worded(node)
    }

    /// The folder of the site.
    pub fn root(&self) -> &Path {
        &self.place.root
    }

    /// Its secrets, as they are now.
    pub(crate) fn vault(&self) -> Vault {
        self.place.vault()
    }

    /// Who can open them.
    pub(crate) const fn identities(&self) -> &Identities {
        &self.place.identities
    }

    /// Whether tokens without audience and expiry are taken.
    pub fn accepts_legacy_tokens(&self) -> bool {
        self.snapshot().accepts_legacy_tokens
    }

    /// Why the last change of the site was not taken over, where it was not.
    pub fn trouble(&self) -> Option<String> {
        self.watching().trouble.clone()
    }

    /// Takes over what was changed since the last time, if anything was. Whether it was.
    pub fn catch_up(&self) -> bool {
        let mut watching = self.watching();
        watching.has_changed(&self.place) && self.take_over(&mut watching).is_ok()
    }

    /// Reads the site anew, all or nothing.
    pub fn reload(&self) -> Result<(), SiteError> {
        self.take_over(&mut self.watching())
    }

    fn take_over(&self, watching: &mut Watching) -> Result<(), SiteError> {
        // A folder may be new, or another one than before.
        watching.watch = Watch::over(&self.place);
        (watching.seen, watching.suspected) = (Stamp::of(&self.place), None);
        let taken = read(&self.place).and_then(|sources| {
            let snapshot = Snapshot::new(sources, self.place.clone());
            match snapshot.trouble() {
                // Where nothing better is known, what is right of it is better than nothing.
                Some(why) if self.snapshot().trouble().is_none() => Err(SiteError::Wrong(why)),
                _ => Ok(snapshot),
            }
        });
        watching.trouble = match &taken {
            Ok(snapshot) => snapshot.trouble(),
            Err(error) => Some(error.to_string()),
        };
        *self.now.write().expect("nobody panics while holding this") = Arc::new(taken?);
        Ok(())
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now.read().expect("nobody panics while holding this"))
    }

    fn watching(&self) -> std::sync::MutexGuard<'_, Watching> {
        self.watch.lock().expect("nobody panics while holding this")
    }
}

fn read(place: &SitePlace) -> Result<orch_model::Sources, SiteError> {
    let site = load::site(&place.root)?;
    Ok(match &place.manifest {
        Some(file) => load::with_manifest(&site, file)?,
        None => site,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn an_edit_that_the_kernel_cannot_tell_of_is_seen_all_the_same() {
        let base = tempfile::TempDir::new().unwrap();
        let root = base.path().join("site");
        write(&root, "site.yaml", "name: lab\n");
        let specs =
            Specs::of(SitePlace { root: root.clone(), manifest: None, identities: Identities::default() })
                .unwrap();
        assert!(specs.watching().watch.as_ref().is_none_or(|watch| watch.is_complete));
        // As where the user has no watches left: none is set.
        let nowhere = SitePlace { root: base.path().join("absent"), ..specs.place.clone() };
        specs.watching().watch = Watch::over(&nowhere);
        assert!(specs.watching().watch.as_ref().is_none_or(|watch| !watch.is_complete));
        assert!(!specs.catch_up() && !specs.accepts_legacy_tokens());
        write(&root, "site.yaml", "name: lab\nserver: { accept_legacy_tokens: true }\n");
        let edited = Instant::now();
        while !specs.catch_up() {
            assert!(edited.elapsed() < Duration::from_secs(20), "nobody has seen it");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(specs.accepts_legacy_tokens());
        assert!(specs.watching().watch.as_ref().is_none_or(|watch| watch.is_complete), "it was tried again");
    }
}
