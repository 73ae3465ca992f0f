//! Making, starting, changing and destroying machines. Every step can be repeated, and every change of a machine begins
//! with finding its mark on it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch_model::{HostName, NodeName, PublicKey, Size, UserName};
use orch_plan::{MachineRef, MachineSpec, Marks};
use orch_run::{Done, Order, Pin, Progress};
use thiserror::Error;
use uuid::Uuid;

use super::boot::{self, Trouble};
use super::disk;
use super::image::{Image, WaysIn};
use super::limits::Hierarchies;
use super::machine::{Means, program};
use super::power;
use super::record::{Folder, Record};
use super::store::Store;
use crate::ssh::{KeyError, ensure_identity, make_host_key};

/// Why something could not be done to a machine.
#[derive(Debug, Error)]
pub(crate) enum MakeError {
    #[error("machine `{machine}` does not bear the mark {expected}, and is left alone")]
    NotOurs { machine: String, expected: Uuid },
    #[error("{0}")]
    Refused(String),
    #[error("cannot {doing}")]
    Step {
        doing: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("machine `{machine}` does not start: {}", .why.words)]
    NotStarted { machine: String, why: Trouble, evidence: Vec<String> },
    #[error("machine `{machine}` runs and cannot be reached: {why}")]
    NotReached { machine: String, why: String, evidence: Vec<String> },
}

/// Names what was being done when an error came.
pub(super) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, MakeError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, MakeError> {
        self.map_err(|source| MakeError::Step { doing, source })
    }
}

/// Who makes the machines of a host.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    pub(crate) host: HostName,
    pub(crate) store: Store,
    /// The site's folder; images are relative to it.
    pub(crate) site: PathBuf,
    /// The account that orch comes in with, where a machine can have one.
    pub(crate) user: UserName,
    /// The private key that opens it.
    pub(crate) identity: PathBuf,
    /// This program.
    pub(crate) program: PathBuf,
    pub(crate) means: Means,
    /// How long a machine may take until its SSH server answers; a machine counts as made without that where there is none.
    pub(crate) reach: Option<Duration>,
    /// The images that were looked into, with what was found.
    pub(crate) looked_into: Arc<Mutex<Vec<(Image, WaysIn)>>>,
}

impl Maker {
    /// Makes a machine that is not there, or finishes one that is half made.
    pub(crate) fn create(&self, order: &Order, spec: &MachineSpec) -> Result<Done, MakeError> {
        match self.store.bearing(order.uuid).doing("look at the host's machines")? {
            Some((folder, record)) if record.made => self.started(&folder, &record, &order.progress),
            Some((folder, record)) => self.finish_for(order, &folder, record, spec.size),
            None => {
                order.progress.say("making its record");
                let (folder, record) = self.begin(order, spec)?;
                self.finish_for(order, &folder, record, spec.size)
            }
        }
    }

    /// Finishes a machine with what the order gives it.
    fn finish_for(
        &self,
        order: &Order,
        folder: &Folder,
        record: Record,
        size: Size,
    ) -> Result<Done, MakeError> {
        if let Some(enrolment) = &order.enrolment {
            folder.write_enrolment(enrolment).doing("write down what it fetches its configuration with")?;
        }
        self.finish(folder, record, size, &order.progress)
    }

    /// Puts a machine there that bears its marks and is nothing else yet.
    pub(crate) fn begin(&self, order: &Order, spec: &MachineSpec) -> Result<(Folder, Record), MakeError> {
        let taken = || MakeError::NotOurs { machine: spec.name.clone(), expected: order.uuid };
        if self.store.folder(&spec.name).path().symlink_metadata().is_ok() {
            return Err(taken());
        }
        let image = self.image(&spec.image)?;
        let parent = spec.parent.as_ref().map(|parent| self.parent(order, parent)).transpose()?;
        let ways_in = self.ways_in(&image).doing("look into its image")?;
        let access = if ways_in.ssh { Some(self.identity()?) } else { None };
        let user = if ways_in.sudo && self.means.is_root() { self.user.clone() } else { UserName::root() };
        let record = |place, children| Record {
            marks: order.marks(),
            inside: parent.as_ref().map(|(folder, _)| folder.name()),
            kind: spec.kind,
            image: spec.image.clone(),
            size: spec.size,
            made: false,
            place,
            children,
            host_key: None,
            keys: None,
            user,
            access,
            shares_programs: image.shares_programs(),
        };
        match self
            .store
            .begin(&spec.name, parent.as_ref().map(|(_, record)| record), record, |path| self.discard(path))
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken()),
            folder => {
                let folder = folder.doing("make its folder")?;
                let record = folder.record().doing("read what it is")?;
                Ok((folder, record))
            }
        }
    }

    /// Gives a half-made machine everything that it lacks, and starts it. Never one that is made: what it lacks here, such as
    /// a disk of the right size, it would lose there.
    fn finish(
        &self,
        folder: &Folder,
        mut record: Record,
        size: Size,
        progress: &Progress,
    ) -> Result<Done, MakeError> {
        // It may run and not be whole: whoever began it did not say that it was done.
        let lock = power::cut(folder, record.marks.uuid)?;
        record.size = size;
        if record.access.is_some() && record.host_key.is_none() {
            progress.say("making its host key");
            record.host_key = Some(make_host_key(folder.path())?.1);
        }
        folder.write_record(&record).doing("write down what it is")?;
        progress.say("making its disk");
        let image = self.image(&record.image)?;
        disk::make_disk(&self.store, folder, &image, record.size.disk, &self.means, &lock)
            .doing("make its disk")?;
        // From here on it is the process that starts it which has the lock.
        drop(lock);
        self.switch_on(folder, &record, progress)?;
        folder.forget_enrolment().doing("remove what it was given")?;
        record.made = true;
        folder.write_record(&record).doing("write down that it is made")?;
        Ok(Done::Changed)
    }

    /// Finishes a machine that an interrupted run began to make.
    pub(crate) fn adopt(&self, order: &Order, found: &MachineRef, size: Size) -> Result<Done, MakeError> {
        let progress = &order.progress;
        let (folder, record) = self.marked(found)?;
        if !record.made {
            return self.finish_for(order, &folder, record, size);
        }
        // Whoever began it was done after all, and it is a machine like any other.
        match (self.resize(found, size, progress)?, self.start(found, progress)?) {
            (Done::Unchanged, Done::Unchanged) => Ok(Done::Unchanged),
            _ => Ok(Done::Changed),
        }
    }

    /// Writes down by what a machine is known. Once it shows its own key, the one that it was made with is removed here too.
    pub(crate) fn pin(&self, pin: &Pin) -> Result<Done, MakeError> {
        // Which configuration it has is seen inside of it.
        let Some(keys) = &pin.keys else { return Ok(Done::Unchanged) };
        let found = self.store.bearing(pin.uuid).doing("look for the machine")?;
        let not_ours = || MakeError::NotOurs { machine: pin.identity.node.to_string(), expected: pin.uuid };
        let (folder, _) = found.ok_or_else(not_ours)?;
        let _lock = folder.lock().doing("take its lock")?;
        // Read again: whoever had the lock may have changed it.
        let mut record = folder.record().doing("read what it is")?;
        if record.marks.uuid != pin.uuid || record.marks.identity() != pin.identity {
            return Err(not_ours());
        }
        let is_known = record.keys.as_ref() == Some(keys);
        if keys.settled && keys.host_key.is_some() {
            folder.forget_host_key().doing("remove the key that it was made with")?;
            record.host_key = None;
        }
        if is_known {
            return Ok(Done::Unchanged);
        }
        record.keys = Some(keys.clone());
        folder.write_record(&record).doing("write down its keys")?;
        Ok(Done::Changed)
    }

    /// Starts a machine that is off.
    pub(crate) fn start(&self, machine: &MachineRef, progress: &Progress) -> Result<Done, MakeError> {
        let (folder, record) = self.marked(machine)?;
        if !record.made {
            let size = record.size;
            return self.finish(&folder, record, size, progress);
        }
        self.started(&folder, &record, progress)
    }

    /// Makes sure that a machine that is made runs.
    fn started(&self, folder: &Folder, record: &Record, progress: &Progress) -> Result<Done, MakeError> {
        if folder.boot().is_some_and(|boot| boot.ready && boot.init.is_alive()) {
            return Ok(Done::Unchanged);
        }
        self.switch_on(folder, record, progress)?;
        Ok(Done::Changed)
    }

    /// Gives a machine another size. A disk grows while the machine is off; it is started again if it ran, and so is
    /// whatever ran inside of it.
    pub(crate) fn resize(
        &self,
        machine: &MachineRef,
        to: Size,
        progress: &Progress,
    ) -> Result<Done, MakeError> {
        let (folder, mut record) = self.marked(machine)?;
        if record.size == to {
            return Ok(Done::Unchanged);
        }
        let grows = record.size.disk != to.disk && folder.disk().exists();
        let ran = if grows { self.running_tree(&folder, &record)? } else { Vec::new() };
        if grows {
            progress.say("growing its disk");
            grow(&folder, &record, to.disk, &ran)?;
        }
        // What is written down is so: a limit that is refused leaves a machine of the size that it has.
        if folder.running().is_some() {
            Hierarchies::look().set(record.marks.uuid, to).doing("limit what it uses")?;
        }
        record.size = to;
        folder.write_record(&record).doing("write down its size")?;
        for (folder, record) in &ran {
            self.started(folder, record, progress)?;
        }
        Ok(Done::Changed)
    }

    /// A machine and those inside of it, as far as they run, outermost first.
    fn running_tree(&self, folder: &Folder, record: &Record) -> Result<Vec<(Folder, Record)>, MakeError> {
        let all = self.store.list().doing("look at the host's machines")?;
        let all: Vec<(Folder, Record)> =
            all.into_iter().filter_map(|found| Some((found.folder, found.record?))).collect();
        let mut tree = vec![(folder.clone(), record.clone())];
        let mut next = 0;
        while let Some((around, _)) = tree.get(next) {
            let around = around.name();
            let is_new = |folder: &Folder| tree.iter().all(|(known, _)| known != folder);
            let lives_there = |record: &Record| record.inside.as_ref() == Some(&around);
            let inside = all.iter().filter(|(folder, record)| lives_there(record) && is_new(folder));
            let inside: Vec<_> = inside.cloned().collect();
            tree.extend(inside);
            next += 1;
        }
        tree.retain(|(folder, record)| record.made && folder.running().is_some());
        Ok(tree)
    }

    /// Takes a machine down and everything that belongs to it.
    pub(crate) fn destroy(&self, machine: &MachineRef, progress: &Progress) -> Result<Done, MakeError> {
        let discard = |path: &Path| self.discard(path);
        if self.store.folder(&machine.id).path().symlink_metadata().is_err() {
            // What an interrupted run left of it may be there still.
            self.store.tidy(discard).doing("remove what was left")?;
            return Ok(Done::Unchanged);
        }
        let (folder, _) = self.marked(machine)?;
        let all = self.store.list().doing("look at the host's machines")?;
        let lives_on_it = |record: &Record| record.inside.as_ref() == Some(&machine.id);
        if let Some(child) = all.iter().find(|found| found.record.as_ref().is_some_and(lives_on_it)) {
            return Err(MakeError::Refused(format!("machine `{}` lives on it", child.folder.name())));
        }
        progress.say("stopping");
        let _lock = power::off(&folder, machine.uuid)?;
        progress.say("removing its files");
        self.store.remove(&folder, machine.uuid, discard).doing("remove its files")?;
        Ok(Done::Changed)
    }

    /// Switches a machine off at once, and before it those that live inside of it.
    pub(crate) fn switch_off(&self, machine: &MachineRef) -> Result<Done, MakeError> {
        let (folder, record) = self.marked(machine)?;
        if !record.made {
            // It may run and not be whole.
            return power::cut(&folder, record.marks.uuid).map(|_| Done::Changed);
        }
        let ran = self.running_tree(&folder, &record)?;
        for (folder, record) in ran.iter().rev() {
            power::cut(folder, record.marks.uuid)?;
        }
        Ok(if ran.is_empty() { Done::Unchanged } else { Done::Changed })
    }

    /// Removes what interrupted runs left of machines that are gone.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        if self.store.exists() { self.store.tidy(|path| self.discard(path)) } else { Ok(()) }
    }

    /// Removes a folder and everything in it, whoever it belongs to.
    fn discard(&self, path: &Path) -> io::Result<()> {
        boot::discard(path, &self.means, &self.program)
    }

    /// Starts a machine, and waits until it can be reached.
    fn switch_on(&self, folder: &Folder, record: &Record, progress: &Progress) -> Result<(), MakeError> {
        power::on(&self.program, folder, progress)?;
        match self.reach {
            Some(within) if record.has_ssh() => power::reach(&self.program, folder, within, progress),
            Some(within) if !record.shares_programs => power::settle(&self.program, folder, within, progress),
            _ => Ok(()),
        }
    }

    /// The machine that is meant, which must bear its mark.
    fn marked(&self, machine: &MachineRef) -> Result<(Folder, Record), MakeError> {
        let folder = self.store.folder(&machine.id);
        match folder.record() {
            Ok(record) if record.marks.uuid == machine.uuid => Ok((folder, record)),
            _ if folder.path().symlink_metadata().is_ok() => {
                Err(MakeError::NotOurs { machine: machine.id.clone(), expected: machine.uuid })
            }
            _ => Err(MakeError::Refused(format!("machine `{}` does not exist", machine.id))),
        }
    }

    fn parent(&self, order: &Order, parent: &NodeName) -> Result<(Folder, Record), MakeError> {
        let is_it = |marks: &Marks| {
            let is_ours = marks.site == order.site && marks.manifest == order.identity.manifest;
            is_ours && marks.host == order.identity.host && marks.node == *parent
        };
        let all = self.store.list().doing("look at the host's machines")?;
        let found = all.into_iter().find_map(|found| {
            let record = found.record.filter(|record| is_it(&record.marks))?;
            Some((found.folder, record))
        });
        let running = found.filter(|(folder, _)| folder.running().is_some());
        running.ok_or_else(|| {
            MakeError::Refused(format!("node `{parent}` does not run, so nothing can be made on it"))
        })
    }

    fn image(&self, name: &str) -> Result<Image, MakeError> {
        Image::named(name, &self.site).map_err(MakeError::Refused)
    }

    /// What orch can come in by. An archive is read once for all machines that are made from it; who comes second waits.
    fn ways_in(&self, image: &Image) -> io::Result<WaysIn> {
        if image.shares_programs() {
            return Ok(WaysIn { ssh: self.means.ssh.is_some(), sudo: self.means.sudo.is_some() });
        }
        let mut known = self.looked_into.lock().expect("nobody panics while holding this");
        let found = known.iter().find(|(looked_into, _)| looked_into == image).map(|(_, found)| *found);
        let ways_in = found.map_or_else(|| WaysIn::of(image), Ok)?;
        if found.is_none() {
            known.push((image.clone(), ways_in));
        }
        Ok(WaysIn { ssh: ways_in.ssh && has_ssh_client(), ..ways_in })
    }

    fn identity(&self) -> Result<PublicKey, MakeError> {
        Ok(ensure_identity(&self.identity)?)
    }
}

/// Makes the disk of a machine larger, which is off then, with everything that ran inside of it. Those go first, innermost
/// first: none is to lose its power because the one around it goes off.
fn grow(folder: &Folder, record: &Record, gigabytes: u32, ran: &[(Folder, Record)]) -> Result<(), MakeError> {
    for (inner, record) in ran.iter().rev().filter(|(inner, _)| inner != folder) {
        power::off(inner, record.marks.uuid)?;
    }
    let lock = power::off(folder, record.marks.uuid)?;
    disk::grow(folder, gigabytes, &lock).doing("make its disk larger")
}

fn has_ssh_client() -> bool {
    program("ssh").is_some() && program("ssh-keygen").is_some()
}
