//! The hops that are known so far, as `ssh` reads them.
//!
//! There is one configuration for each [`Ssh`](super::Ssh), and it grows while nodes come up, many at once.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use super::config::{self, Entry, Jump};
use super::folder::{self, RunFolder};
use super::kept::Kept;
use super::refusal::Refusal;
use super::settings::SshSettings;
use super::way::Hop;

/// The hops that are known so far, and the files that say so.
pub(super) struct Roster {
    folder: RunFolder,
    settings: SshSettings,
    kept: Option<Kept>,
    known: Mutex<Known>,
    /// The version that the files show. Whoever waits for it finds it written by another as often as not.
    shown: Mutex<u64>,
}

#[derive(Default)]
struct Known {
    hops: BTreeMap<String, Listed>,
    /// Sockets that were given to a hop, by number.
    sockets: usize,
    version: u64,
}

#[derive(Clone, PartialEq, Eq)]
struct Listed {
    hop: Hop,
    before: Option<String>,
    number: usize,
    /// The socket of its connection.
    socket: PathBuf,
}

/// The files of one hop's connection.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) config: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) log: PathBuf,
    /// Whether the connection is kept for the next run.
    pub(super) is_kept: bool,
}

impl Roster {
    pub(super) fn new(settings: &SshSettings) -> io::Result<Self> {
        let folder = RunFolder::make(&settings.folder)?;
        let kept = Kept::of(settings)?;
        Ok(Self { folder, settings: settings.clone(), kept, known: Mutex::default(), shown: Mutex::new(0) })
    }

    /// Makes sure that `ssh` knows these hops, which lead to one another.
    pub(super) fn know(&self, hops: &[Hop]) -> Result<(), Refusal> {
        if hops.is_empty() {
            return Err(Refusal::unusable("no way leads there"));
        }
        for hop in hops {
            hop.check().map_err(Refusal::unusable)?;
        }
        let version = self.list(hops);
        let mut shown = self.shown.lock().expect("nobody panics while holding this");
        if *shown < version {
            *shown = self.show()?;
        }
        Ok(())
    }

    /// The files of a hop's connection.
    pub(super) fn files(&self, alias: &str) -> Option<Files> {
        let known = self.known.lock().expect("nobody panics while holding this");
        let listed = known.hops.get(alias)?;
        let (socket, log) = (listed.socket.clone(), self.folder.log(listed.number));
        Some(Files { config: self.folder.config(), socket, log, is_kept: self.kept.is_some() })
    }

    /// Adds what is not known yet, and says which version of the files shows it.
    fn list(&self, hops: &[Hop]) -> u64 {
        let mut known = self.known.lock().expect("nobody panics while holding this");
        let mut before = None;
        for (place, hop) in hops.iter().enumerate() {
            let number = known.hops.get(&hop.alias).map_or(known.sockets, |listed| listed.number);
            let kept = self.kept.as_ref().map(|kept| kept.socket(&hops[..=place]));
            let socket = kept.unwrap_or_else(|| self.folder.socket(number));
            let listed =
                Listed { hop: hop.clone(), before: before.replace(hop.alias.clone()), number, socket };
            if known.hops.get(&hop.alias) != Some(&listed) {
                known.sockets = known.sockets.max(number + 1);
                known.hops.insert(hop.alias.clone(), listed);
                known.version += 1;
            }
        }
        known.version
    }

    /// Writes everything that is known, and says which version that was.
    fn show(&self) -> Result<u64, Refusal> {
        let (hops, version) = {
            let known = self.known.lock().expect("nobody panics while holding this");
            (known.hops.values().cloned().collect::<Vec<_>>(), known.version)
        };
        let known_hosts = self.folder.known_hosts();
        let entries: Vec<Entry<'_>> = hops
            .iter()
            .map(|listed| Entry {
                hop: &listed.hop,
                before: listed.before.as_deref(),
                known_hosts: &known_hosts,
                control: Some(&listed.socket),
            })
            .collect();
        let keys: String = hops.iter().map(|listed| config::known_host(&listed.hop)).collect();
        let jump = Jump::Through(self.folder.config());
        let text = config::render(&entries, &jump, &self.settings).map_err(Refusal::unusable)?;
        let unwritten =
            |error| Refusal::unusable(format!("the configuration of ssh cannot be written: {error}"));
        // Keys first: a configuration without its keys would call everybody an impostor.
        folder::write(&known_hosts, &keys).map_err(unwritten)?;
        folder::write(&self.folder.config(), &text).map_err(unwritten)?;
        Ok(version)
    }
}
