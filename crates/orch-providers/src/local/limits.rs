//! How much memory and processor time a machine may use, where control groups allow it. Both generations of them are
//! spoken: the unified hierarchy, and one for each controller.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use orch_model::Size;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use uuid::Uuid;

/// Where this computer has control groups that we may add to.
#[derive(Debug, Default)]
pub(crate) struct Hierarchies {
    /// The unified one.
    unified: Option<PathBuf>,
    memory: Option<Controller>,
    cpu: Option<Controller>,
}

#[derive(Debug)]
struct Controller {
    root: PathBuf,
    generation: Generation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    One,
    Two,
}

impl Hierarchies {
    /// Looks at what is mounted, and at what we may write to.
    pub(crate) fn look() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let found = Self::of(&mounts);
        let is_ours = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        let enabled =
            found.unified.as_ref().map(|root| fs::read_to_string(root.join("cgroup.subtree_control")));
        let enabled = enabled.and_then(Result::ok).unwrap_or_default();
        let second = |name: &str| {
            let root =
                found.unified.clone().filter(|_| enabled.split_whitespace().any(|word| word == name))?;
            Some(Controller { root, generation: Generation::Two })
        };
        let kept = |controller: Option<Controller>, name| {
            controller.or_else(|| second(name)).filter(|controller| is_ours(&controller.root))
        };
        Self {
            memory: kept(found.memory, "memory"),
            cpu: kept(found.cpu, "cpu"),
            unified: found.unified.filter(|root| is_ours(root)),
        }
    }

    /// What a table of mounts says.
    fn of(mounts: &str) -> Self {
        let mut found = Self::default();
        for line in mounts.lines() {
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let (Some(point), mut after) = (before.split(' ').nth(4), after.split(' ')) else { continue };
            let (kind, options) = (after.next().unwrap_or_default(), after.nth(1).unwrap_or_default());
            let first = || Controller { root: point.into(), generation: Generation::One };
            let has = |name: &str| kind == "cgroup" && options.split(',').any(|option| option == name);
            // What is mounted later may be a part of it, put somewhere else for somebody else.
            if kind == "cgroup2" {
                found.unified.get_or_insert_with(|| point.into());
            } else if has("memory") {
                found.memory.get_or_insert_with(first);
            } else if has("cpu") {
                found.cpu.get_or_insert_with(first);
            }
        }
        found
    }

    /// What will not be limited, in words.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let missing = [(self.memory.is_none(), "memory"), (self.cpu.is_none(), "processor time")];
        missing.into_iter().filter_map(|(is_missing, what)| is_missing.then_some(what)).collect()
    }

    /// The groups of a machine, one in each hierarchy; they need not exist.
    pub(crate) fn groups(&self, uuid: Uuid) -> Vec<PathBuf> {
        let controllers = [&self.memory, &self.cpu].into_iter().flatten().map(|controller| &controller.root);
        let mut groups: Vec<PathBuf> =
            controllers.chain(&self.unified).map(|root| root.join(format!("orch-{uuid}"))).collect();
        groups.sort();
        groups.dedup();
        groups
    }

    /// Makes the groups of a machine and sets their limits.
    pub(crate) fn make(&self, uuid: Uuid, size: Size) -> io::Result<Vec<PathBuf>> {
        let groups = self.groups(uuid);
        groups.iter().try_for_each(|group| make_group(group))?;
        self.set(uuid, size)?;
        Ok(groups)
    }

    /// Sets the limits of a machine whose groups are there.
    pub(crate) fn set(&self, uuid: Uuid, size: Size) -> io::Result<()> {
        let group = |controller: &Controller| controller.root.join(format!("orch-{uuid}"));
        let bytes = u64::from(size.memory) << 20;
        if let Some(controller) = &self.memory {
            let file = match controller.generation {
                Generation::One => "memory.limit_in_bytes",
                Generation::Two => "memory.max",
            };
            fs::write(group(controller).join(file), bytes.to_string())?;
        }
        if let Some(controller) = &self.cpu {
            const PERIOD: u64 = 100_000;
            let quota = u64::from(size.cores) * PERIOD;
            match controller.generation {
                Generation::One => {
                    fs::write(group(controller).join("cpu.cfs_period_us"), PERIOD.to_string())?;
                    fs::write(group(controller).join("cpu.cfs_quota_us"), quota.to_string())?;
                }
                Generation::Two => fs::write(group(controller).join("cpu.max"), format!("{quota} {PERIOD}"))?,
            }
        }
        Ok(())
    }
}

/// Moves a process into groups; what it starts is in them too.
pub(crate) fn enter(groups: &[PathBuf], pid: u32) -> io::Result<()> {
    groups.iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), pid.to_string()))
}

/// The same for one that comes into a machine that runs. The init of a machine may have divided its group of the unified
/// hierarchy among groups inside of it, and then the kernel takes no process into the group itself; so guests have one of
/// their own inside, which goes with the machine.
pub(crate) fn enter_as_guest(groups: &[PathBuf], pid: u32) -> io::Result<()> {
    const GUESTS: &str = "guests";
    let place = |group: &PathBuf| {
        if !is_unified(group) {
            return Ok(group.clone());
        }
        let inner = group.join(GUESTS);
        make_group(&inner)?;
        Ok(inner)
    };
    let places: Vec<PathBuf> = groups.iter().map(place).collect::<io::Result<_>>()?;
    enter(&places, pid)
}

/// Whether a group is one of the unified hierarchy, where it can be divided.
fn is_unified(group: &Path) -> bool {
    group.join("cgroup.subtree_control").exists()
}

fn make_group(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Ends every process in groups of ours, whoever started it: a machine's groups hold nothing else.
pub(crate) fn end(groups: &[PathBuf]) -> io::Result<()> {
    for _ in 0..1000 {
        let pids: Vec<Pid> = groups.iter().flat_map(|group| members(group)).collect();
        if pids.is_empty() {
            return Ok(());
        }
        for pid in pids {
            // Only a handle stays with a process: whoever has the pid now must be one of the group's still. One that is gone
            // is ended.
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if groups.iter().any(|group| members(group).contains(&pid)) {
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
        sleep(Duration::from_millis(5));
    }
    Err(io::Error::other("its processes do not end"))
}

/// The processes of a group and of those inside of it.
fn members(group: &Path) -> Vec<Pid> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<Pid> = listed.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect();
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            pids.extend(members(&entry.path()));
        }
    }
    pids
}

/// Removes groups whose processes have ended. The kernel takes a moment to notice that they have.
pub(crate) fn remove(groups: &[PathBuf]) -> io::Result<()> {
    groups.iter().try_for_each(|group| {
        for _ in 0..200 {
            match remove_tree(group) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(Duration::from_millis(5)),
                done => return done,
            }
        }
        remove_tree(group)
    })
}

/// Removes a group with those inside of it. Its files are not removed one by one: they are the kernel's.
fn remove_tree(group: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(group) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_of_a_machine_has_a_group_of_its_own_where_the_machine_may_have_divided_the_one_around() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let groups = ["first", "unified"].map(|name| folder.path().join(name));
        for group in &groups {
            fs::create_dir(group).expect("a folder can be made");
        }
        fs::write(groups[1].join("cgroup.subtree_control"), "memory\n").expect("a file can be written");
        for pid in [7, 8] {
            enter_as_guest(&groups, pid).expect("what the kernel does is not what is tried here");
        }
        let inside = |group: &str| fs::read_to_string(folder.path().join(group).join("cgroup.procs")).ok();
        assert_eq!(inside("first").as_deref(), Some("8"));
        assert_eq!((inside("unified"), inside("unified/guests").as_deref()), (None, Some("8")));
    }

    #[test]
    fn both_generations_of_control_groups_are_found() {
        let first = "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
                     31 20 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                     32 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                     33 20 0:26 /a /srv/a/memory ro - cgroup cgroup rw,memory\n\
                     34 20 0:28 /a /srv/a/unified ro - cgroup2 cgroup2 rw\n";
        let found = Hierarchies::of(first);
        let root = |controller: &Option<Controller>| {
            controller.as_ref().map(|found| found.root.display().to_string())
        };
        assert_eq!(root(&found.memory).as_deref(), Some("/sys/fs/cgroup/memory"));
        assert_eq!(root(&found.cpu).as_deref(), Some("/sys/fs/cgroup/cpu"));
        assert_eq!(found.unified.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert!(found.missing().is_empty());
        let second = Hierarchies::of("32 20 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(second.unified.as_deref(), Some(Path::new("/sys/fs/cgroup")));
        assert_eq!(
            second.missing(),
            ["memory", "processor time"],
            "which are enabled is in a file of its own"
        );
    }
}
