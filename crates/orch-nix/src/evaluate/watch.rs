//! What is opened in a site while it is evaluated, as the kernel tells it.
//!
//! The kernel does not say who opened something. So what is opened counts for every evaluation that runs at that moment,
//! except where Nix itself said whose it is (see [`Watch::end`]). Other programs that read the site add to what an
//! evaluation is thought to depend on, and never take anything away.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::tree::{Tree, join, parent};

/// Which evaluation.
pub(super) type Number = usize;

/// Watches a site.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: OwnedFd,
    folders: HashMap<i32, String>,
    /// Folders that others write to all the time: what is opened there is a reason for doubt and nothing else.
    aside: HashMap<i32, String>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    active: BTreeSet<Number>,
    files: BTreeMap<Number, BTreeSet<String>>,
    listed: BTreeMap<Number, BTreeSet<String>>,
    /// How often each file was opened.
    opened: BTreeMap<String, usize>,
    /// By how many evaluations each file was evaluated.
    evaluated: BTreeMap<String, usize>,
    /// Files and folders that were not the same all the time.
    changed: BTreeSet<String>,
    odd: Option<String>,
}

/// What one evaluation opened, or may have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) files: BTreeSet<String>,
    pub(super) folders: BTreeSet<String>,
}

impl Watch {
    /// Begins to watch every folder of a site.
    pub(super) fn over(tree: &Tree) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut folders = HashMap::new();
        // Reading is asked for as well, because two openings in a row, with nothing between them, are told as one.
        let what = WatchFlags::OPEN
            | WatchFlags::ACCESS
            | WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::DELETE;
        let how = WatchFlags::MOVE | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        for folder in tree.folders() {
            let watched = inotify::add_watch(&inotify, tree.root.join(folder), what | how)?;
            folders.insert(watched, folder.to_owned());
        }
        let mut aside = HashMap::new();
        for folder in tree.left_out().map_err(io::Error::other)? {
            let what = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let how = WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
            match inotify::add_watch(&inotify, tree.root.join(&folder), what | how) {
                Ok(watched) => drop(aside.insert(watched, folder)),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { inotify, folders, aside, seen: Mutex::default() })
    }

    /// An evaluation begins.
    pub(super) fn begin(&self, number: Number) {
        let mut seen = self.look();
        seen.active.insert(number);
    }

    /// Takes what the kernel has to tell. It keeps so much and no more, so this is called all the time.
    pub(super) fn beat(&self) {
        drop(self.look());
    }

    /// An evaluation ended, in which Nix evaluated these files of the site.
    pub(super) fn end(&self, number: Number, evaluated: &BTreeSet<String>) {
        let mut seen = self.look();
        seen.active.remove(&number);
        for file in evaluated {
            *seen.evaluated.entry(file.clone()).or_default() += 1;
            if !seen.opened.contains_key(file) {
                seen.odd = Some(format!("`{file}` was read, and the kernel did not tell"));
            }
        }
    }

    /// What an evaluation opened. To be asked when all have ended.
    ///
    /// Nix evaluates a file once in a process and says so. A file that was opened no more often than that was opened by
    /// those who said so; any other may have been opened by everybody who ran.
    pub(super) fn opened(&self, number: Number, evaluated: &BTreeSet<String>) -> Opened {
        let seen = self.look();
        let own = |file: &String| seen.opened.get(file) <= seen.evaluated.get(file);
        let during = seen.files.get(&number).into_iter().flatten();
        let files: BTreeSet<String> = during.filter(|file| !own(file)).chain(evaluated).cloned().collect();
        let mut folders = seen.listed.get(&number).cloned().unwrap_or_default();
        folders.extend(files.iter().map(|file| parent(file).to_owned()));
        Opened { files, folders }
    }

    /// Why it is not known for sure what was read, where it is not: what was opened has changed meanwhile, or the kernel
    /// could not keep up.
    pub(super) fn doubt(&self, opened: &Opened) -> Option<String> {
        let seen = self.look();
        let changed = |path: &&String| seen.changed.contains(*path);
        let changed = opened.files.iter().chain(&opened.folders).find(changed);
        seen.odd.clone().or_else(|| changed.map(|path| format!("`{path}` changed meanwhile")))
    }

    fn look(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = [MaybeUninit::uninit(); 16 << 10];
        let mut events = inotify::Reader::new(&self.inotify, &mut room);
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(std::ffi::CStr::to_str).transpose();
                    match (self.folders.get(&event.wd()), name) {
                        (Some(folder), Ok(name)) => seen.take(folder, name, event.events()),
                        (None, name) if let Some(folder) = self.aside.get(&event.wd()) => {
                            seen.take_aside(folder, name.ok().flatten(), event.events());
                        }
                        _ => seen.odd = Some("more was read than the kernel could tell".into()),
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    seen.odd = Some(format!("the kernel does not tell what is read: {error}"));
                    break;
                }
            }
        }
        seen
    }
}

impl Seen {
    fn take(&mut self, folder: &str, name: Option<&str>, what: ReadFlags) {
        let path = name.map_or_else(|| folder.to_owned(), |name| join(folder, name));
        let is_folder = what.contains(ReadFlags::ISDIR);
        if what
            .intersects(ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO)
        {
            self.changed.insert(folder.to_owned());
            if is_folder {
                self.odd = Some(format!("the folder `{path}` came or went meanwhile"));
            }
        }
        if what.intersects(ReadFlags::OPEN | ReadFlags::ACCESS) {
            self.open(path, is_folder, what.contains(ReadFlags::OPEN));
        } else {
            self.changed.insert(path);
        }
    }

    /// Something below a folder that is left out. Who opened it is not known, so it may have been any evaluation.
    fn take_aside(&mut self, folder: &str, name: Option<&str>, what: ReadFlags) {
        let is_new_folder =
            what.contains(ReadFlags::ISDIR) && what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let is_opened = what.intersects(ReadFlags::OPEN | ReadFlags::ACCESS);
        if !self.active.is_empty() && (is_opened || is_new_folder) {
            let path = name.map_or_else(|| folder.to_owned(), |name| join(folder, name));
            self.odd = Some(format!("`{path}` was opened, which others write to all the time"));
        }
    }

    /// A folder is told of by itself and by the folder that it lies in; one that is not watched only by the latter.
    fn open(&mut self, path: String, is_folder: bool, is_opening: bool) {
        let kind = if is_folder { &mut self.listed } else { &mut self.files };
        for number in &self.active {
            kind.entry(*number).or_default().insert(path.clone());
        }
        if !is_folder && !self.active.is_empty() {
            *self.opened.entry(path).or_default() += usize::from(is_opening);
        }
    }
}
