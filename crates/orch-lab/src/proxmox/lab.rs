//! What stands behind every call: the state, the locks, and the workers.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};
use tokio::time::timeout;

use super::call::Call;
use super::drive::Stock;
use super::guest::Guest;
use super::schema::Schema;
use super::settings::ProxmoxSettings;
use super::state::{State, Task, now, seconds};
use crate::faults::Fault;
use crate::machines::Power;

/// What stands behind every call.
pub(super) struct Lab {
    pub(super) settings: ProxmoxSettings,
    pub(super) schema: Schema,
    /// When it was switched on, in milliseconds.
    pub(super) begun: u64,
    state: Mutex<State>,
    locks: Mutex<BTreeMap<String, Arc<RwLock<()>>>>,
    workers: Arc<Semaphore>,
    stops: Mutex<BTreeMap<String, Arc<Notify>>>,
    /// Uploads to storages that have no folder.
    pub(super) files: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// How many tasks are remembered.
const MOST_TASKS: usize = 2000;

/// What a task does where it fails.
type Undo = Box<dyn FnOnce(&mut Stock<'_>, &str) + Send>;

/// Why a task will not do what it was begun for.
enum Doom {
    Fails(String),
    NeverEnds,
}

impl Lab {
    pub(super) fn new(settings: ProxmoxSettings, schema: Schema, state: State) -> Self {
        let workers = Arc::new(Semaphore::new(settings.workers.max(1)));
        Self {
            settings,
            schema,
            begun: now(),
            state: Mutex::new(state),
            locks: Mutex::default(),
            workers,
            stops: Mutex::default(),
            files: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding this")
    }

    /// Changes the state, and writes it down.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Stock<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut state = self.state();
        let outcome = change(&mut Stock { state: &mut state, settings: &self.settings });
        self.keep(&state)?;
        outcome
    }

    pub(super) fn keep(&self, state: &State) -> Result<(), String> {
        let Some(path) = &self.settings.state else { return Ok(()) };
        state.keep(path).map_err(|error| format!("unable to write '{}' - {error}", path.display()))
    }

    fn lock(&self, file: &str) -> Arc<RwLock<()>> {
        Arc::clone(
            self.locks.lock().expect("nobody panics while holding this").entry(file.to_owned()).or_default(),
        )
    }

    /// Locks a file for oneself, or says that it took too long.
    pub(super) async fn hold(
        &self,
        file: &str,
        patience: Duration,
    ) -> Result<OwnedRwLockWriteGuard<()>, String> {
        timeout(patience, self.lock(file).write_owned()).await.map_err(|_| got_timeout(file))
    }

    /// Locks a file together with others who only read.
    pub(super) async fn share(
        &self,
        file: &str,
        patience: Duration,
    ) -> Result<OwnedRwLockReadGuard<()>, String> {
        timeout(patience, self.lock(file).read_owned()).await.map_err(|_| got_timeout(file))
    }

    /// Holds a storage for as long as a disk takes: two disks are never made on it at once.
    pub(super) async fn allocate<T>(
        &self,
        storage: &str,
        change: impl FnOnce(&mut Stock<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let file = format!("/var/lock/pve-manager/pve-storage-{storage}");
        let _held = self.hold(&file, self.settings.timings.lock).await?;
        tokio::time::sleep(self.settings.timings.allocate).await;
        self.change(change)
    }

    /// Asks machines whether they run: one that switched itself off is off, and one that was started by a daemon that did
    /// not live to say so is on.
    pub(super) async fn look_at(&self, only: Option<u32>) {
        let known: Vec<(u32, bool, u64)> = {
            let state = self.state();
            let guests = state.guests.iter().filter(|(vmid, _)| only.is_none_or(|only| only == **vmid));
            let real = guests.filter(|(_, guest)| !guest.is_template() && guest.lock().is_none());
            real.map(|(vmid, guest)| (*vmid, guest.is_running, guest.started)).collect()
        };
        for (vmid, was_running, started) in known {
            let is_running = self.settings.machines.power(&vmid.to_string()).await == Power::On;
            if is_running == was_running {
                continue;
            }
            let mut state = self.state();
            // Whoever switched it meanwhile knows better.
            let same = |guest: &&mut Guest| guest.started == started && guest.is_running == was_running;
            if let Some(guest) = state.guests.get_mut(&vmid).filter(same) {
                guest.is_running = is_running;
                guest.started = if is_running { now() } else { guest.started };
                if !is_running {
                    guest.settle();
                }
            }
        }
    }

    /// Tells a task to stop.
    pub(super) fn stop(&self, upid: &str) {
        if let Some(stop) = self.stops.lock().expect("nobody panics while holding this").get(upid) {
            stop.notify_one();
        }
    }

    fn finish(&self, upid: &str, outcome: Result<(), String>) {
        self.stops.lock().expect("nobody panics while holding this").remove(upid);
        let end = |stock: &mut Stock<'_>| {
            if let Some(task) = stock.state.tasks.iter_mut().rfind(|task| task.upid == upid) {
                task.exit = Some(outcome.err().unwrap_or_else(|| "OK".into()));
                task.ended = Some(seconds());
            }
            Ok(())
        };
        // Where even this cannot be written, the next daemon will say that the task ended in an unexpected way.
        self.change(end).ok();
    }
}

/// What the real one says where a lock is not to be had.
pub(super) fn got_timeout(file: &str) -> String {
    format!("can't lock file '{file}' - got timeout")
}

impl Call {
    /// Begins a task and says its name. Where it fails or is stopped, what it had begun is undone.
    pub(super) fn fork<Work: Future<Output = Result<(), String>> + Send + 'static>(
        &self,
        state: &mut State,
        kind: &str,
        id: &str,
        work: impl FnOnce(Arc<Lab>, String) -> Work,
        undo: Option<Undo>,
    ) -> String {
        let upid = self.note(state, kind, id);
        let stop = Arc::new(Notify::new());
        let stops = &self.lab.stops;
        stops.lock().expect("nobody panics while holding this").insert(upid.clone(), Arc::clone(&stop));
        let doom = self.doom(kind, id);
        let work = work(Arc::clone(&self.lab), upid.clone());
        let (lab, name) = (Arc::clone(&self.lab), upid.clone());
        tokio::spawn(async move {
            let run = async {
                let _turn =
                    Arc::clone(&lab.workers).acquire_owned().await.map_err(|error| error.to_string())?;
                match doom {
                    None => work.await,
                    Some(Doom::Fails(why)) => Err(why),
                    Some(Doom::NeverEnds) => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                outcome = run => outcome,
                () = stop.notified() => Err("received interrupt".to_owned()),
            };
            if let (Err(_), Some(undo)) = (&outcome, undo) {
                let undone = lab.change(|stock| {
                    undo(stock, &name);
                    Ok(())
                });
                undone.ok();
            }
            lab.finish(&name, outcome);
        });
        upid
    }

    fn note(&self, state: &mut State, kind: &str, id: &str) -> String {
        state.begun += 1;
        let (pid, begun, node) = (1000 + state.begun, seconds(), &self.lab.settings.node);
        let upid = format!("UPID:{node}:{pid:08X}:{pid:08X}:{begun:08X}:{kind}:{id}:{}:", self.who.name());
        // As the real one does, only so many tasks are remembered.
        if state.tasks.len() > MOST_TASKS
            && let Some(oldest) = state.tasks.iter().position(|task| task.exit.is_some())
        {
            state.tasks.remove(oldest);
        }
        state.tasks.push(Task {
            upid: upid.clone(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            user: self.who.user.clone(),
            token: self.who.token.clone(),
            pid,
            begun,
            ended: None,
            exit: None,
        });
        upid
    }

    fn doom(&self, kind: &str, id: &str) -> Option<Doom> {
        let takes_space =
            ["create", "clone", "resize", "imgcopy", "download"].iter().any(|end| kind.ends_with(end));
        if self.strikes(Fault::TaskNeverEnds) {
            return Some(Doom::NeverEnds);
        }
        if self.strikes(Fault::TaskFails) {
            return Some(Doom::Fails(format!("command '/usr/bin/{kind} {id}' failed: exit code 1")));
        }
        if self.strikes(Fault::LockTimeout) {
            let vmid = id.parse().unwrap_or(0);
            return Some(Doom::Fails(got_timeout(&self.kind().lock_file(vmid))));
        }
        if takes_space && self.strikes(Fault::Quota) {
            let why = format!("zfs error: cannot create 'rpool/data/vm-{id}-disk-0': out of space");
            return Some(Doom::Fails(if kind.ends_with("clone") {
                format!("clone failed: {why}")
            } else {
                why
            }));
        }
        if kind.ends_with("start") && self.strikes(Fault::OutOfStock) {
            return Some(Doom::Fails(no_memory(id)));
        }
        None
    }
}

/// What the real one says where there is not enough memory to start.
pub(super) fn no_memory(id: &str) -> String {
    format!(
        "start failed: command '/usr/bin/kvm -id {id}' failed: cannot set up guest memory 'pc.ram': Cannot allocate memory"
    )
}
