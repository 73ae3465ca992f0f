//! What this computer has to make machines with. Read once; nothing here changes anything.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

/// What there is to make machines with.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    pub(crate) ids: Ids,
    /// The programs that a disk with a size needs; without them a machine's disk has no limit.
    pub(crate) disk: Option<DiskTools>,
    /// Whether nodes made from this machine's programs can have an SSH server, and we can speak to one.
    pub(crate) ssh: Option<SshTools>,
    /// Where `sudo` is.
    pub(crate) sudo: Option<PathBuf>,
}

/// Which user ids there are for a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ids {
    /// We are root: all of them, and no user namespace.
    All,
    /// Our own and a range, given by `/etc/subuid` and `/etc/subgid`.
    Range { users: Range, groups: Range, tools: IdTools },
    /// Our own alone.
    One,
}

/// How much of a root the root of a machine is. Inside of a machine it cannot be told by the user id, which is 0 there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The real one.
    Root,
    /// The root of a user namespace with many ids.
    OfMany,
    /// The root of a user namespace with one id.
    Alone,
}

impl Standing {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::OfMany => "of-many",
            Self::Alone => "alone",
        }
    }

    pub(crate) fn named(word: &str) -> Option<Self> {
        [Self::Root, Self::OfMany, Self::Alone].into_iter().find(|standing| standing.word() == word)
    }
}

/// A range of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// The programs that give a namespace a range of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdTools {
    pub(crate) users: PathBuf,
    pub(crate) groups: PathBuf,
}

/// The programs that a disk with a size needs.
#[derive(Debug, Clone)]
pub(crate) struct DiskTools {
    pub(crate) mkfs: PathBuf,
}

/// The programs that SSH needs.
#[derive(Debug, Clone)]
pub(crate) struct SshTools {
    pub(crate) sftp: Option<PathBuf>,
}

impl Means {
    /// Looks at this computer.
    pub(crate) fn look() -> Self {
        let ids = Ids::look();
        let disk = DiskTools::look(&ids);
        let ssh = if ids == Ids::One { None } else { SshTools::look() };
        // A program that becomes root belongs to the real root, who is nobody in a namespace of our own.
        let sudo = (ids == Ids::All).then(|| program("sudo")).flatten();
        Self { ids, disk, ssh, sudo }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.ids == Ids::All
    }
}

impl Ids {
    /// What the root of a machine with these ids is.
    pub(crate) const fn standing(&self) -> Standing {
        match self {
            Self::All => Standing::Root,
            Self::Range { .. } => Standing::OfMany,
            Self::One => Standing::Alone,
        }
    }

    fn look() -> Self {
        let user = rustix::process::geteuid();
        if is_root() {
            return Self::All;
        }
        let name = user_name(user.as_raw());
        let range = |file: &str| range_of(&fs::read_to_string(file).ok()?, user.as_raw(), name.as_deref());
        let tools = || Some(IdTools { users: program("newuidmap")?, groups: program("newgidmap")? });
        match (range("/etc/subuid"), range("/etc/subgid"), tools()) {
            (Some(users), Some(groups), Some(tools)) => Self::Range { users, groups, tools },
            _ => Self::One,
        }
    }
}

impl DiskTools {
    fn look(ids: &Ids) -> Option<Self> {
        // A container may show the device and not let anybody have it.
        let can_loop = || OpenOptions::new().read(true).write(true).open("/dev/loop-control").is_ok();
        (*ids == Ids::All && can_loop()).then_some(())?;
        program("mount")?;
        Some(Self { mkfs: program("mkfs.ext4")? })
    }
}

impl SshTools {
    fn look() -> Option<Self> {
        program("sshd")?;
        program("ssh")?;
        program("ssh-keygen")?;
        let places =
            ["/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/libexec/openssh/sftp-server"];
        let sftp = places.into_iter().map(PathBuf::from).find(|path| path.exists());
        Some(Self { sftp })
    }
}

/// Whether we are the root of this computer. The root of a user namespace is called 0 too, and is an ordinary user who goes
/// by that name.
pub(crate) fn is_root() -> bool {
    let has_all = || fs::read_to_string("/proc/self/uid_map").map_or(true, |map| holds_all_ids(&map));
    rustix::process::geteuid().is_root() && has_all()
}

/// Whether a table of user ids leaves every id what it is.
fn holds_all_ids(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Finds a program where programs are: in `PATH`, and where those for root are kept.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
        "/run/current-system/sw/bin",
    ];
    let folders = std::env::split_paths(&path).chain(usual.into_iter().map(PathBuf::from));
    folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn user_name(id: u32) -> Option<String> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    })
}

/// The first range of a user that is large enough for a system, from the text of `/etc/subuid`.
fn range_of(text: &str, id: u32, name: Option<&str>) -> Option<Range> {
    const ENOUGH: u32 = 65_535;
    text.lines().find_map(|line| {
        let (owner, range) = line.split_once(':')?;
        let (first, count) = range.split_once(':')?;
        let is_ours = Some(owner) == name || owner.parse() == Ok(id);
        let range = Range { first: first.parse().ok()?, count: count.trim().parse().ok()? };
        (is_ours && range.count >= ENOUGH).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_user_namespace_is_not_the_root_of_this_computer() {
        assert!(holds_all_ids("         0          0 4294967295\n"));
        assert!(!holds_all_ids("         0       1000          1\n"));
        assert!(!holds_all_ids("         0          0          1\n"));
        assert!(!holds_all_ids("         0       1000          1\n         1     100000      65536\n"));
        assert!(!holds_all_ids(""));
    }

    #[test]
    fn a_range_of_ids_is_found_by_name_or_number_and_must_be_large_enough() {
        let text = "root:1:65536\nalice:100000:65536\n1001:200000:65536\nbob:1:10\nbroken\n";
        let found = |id, name| range_of(text, id, name).map(|range| range.first);
        assert_eq!(found(1000, Some("alice")), Some(100_000));
        assert_eq!(found(1001, Some("carol")), Some(200_000));
        assert_eq!(found(1002, Some("bob")), None);
        assert_eq!(found(1003, None), None);
    }
}
