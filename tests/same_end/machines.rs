//! Random machines: what is on them before a configuration comes, and which programs they have.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// What a machine has before its first configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Furniture {
    pub(crate) equipment: Equipment,
    /// Files that were there before, by their place in [`LEFT`].
    pub(crate) left: Vec<usize>,
}

/// Which programs a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Equipment {
    /// None that it may run.
    #[default]
    Bare,
    /// Those of another machine, and can have no others.
    Shared,
    /// A package manager, systemd, sudo and an SSH server, as scripts that stand in for them.
    Whole,
}

/// Something that somebody left on a machine.
#[derive(Clone, Copy)]
pub(crate) enum Left {
    File(&'static str, &'static str, u32),
    Link(&'static str, &'static str),
    Folder(&'static str),
}

pub(crate) const LEFT: [Left; 14] = [
    Left::File("/etc/motd", "somebody else's", 0o600),
    Left::File("/etc/hosts", "127.0.1.1 old.example old\n127.0.0.1 localhost", 0o644),
    Left::File("/etc/hostname", "old\n", 0o444),
    Left::File("/srv/a", "a file where a folder should be", 0o644),
    Left::Link("/linked", "/srv/target"),
    Left::Folder("/srv/target"),
    Left::Link("/was-link", "/etc/passwd"),
    Left::Folder("/was-folder"),
    Left::Link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
    Left::File("/root/.ssh/authorized_keys", "mine\n# orch: begin\nold\n# orch: end\nmine too", 0o644),
    Left::File("/etc/sudoers.d/orch-alice", "alice ALL=(ALL:ALL) ALL\n", 0o440),
    Left::File("/etc/ssh/sshd_config.d/10-vendor.conf", "PermitRootLogin yes\n", 0o644),
    Left::File("/home/bob", "a file where a home should be", 0o644),
    Left::File("/etc/skel/.profile", "umask 022\n", 0o644),
];

pub(crate) fn furniture() -> impl Strategy<Value = Furniture> {
    let equipment = select(&[Equipment::Bare, Equipment::Shared, Equipment::Whole, Equipment::Whole][..]);
    let left = subsequence((0..LEFT.len()).collect::<Vec<_>>(), 0..6);
    (equipment, left).prop_map(|(equipment, left)| Furniture { equipment, left })
}

/// Programs that stand in for real ones. They know by their own path which tree they belong to, so that they are the same in
/// all, and write down what they change.
pub(crate) const PROGRAMS: [(&str, &str); 7] = [
    (
        "/usr/bin/dpkg-query",
        "while read -r name; do printf '%s\\t%s\\t1.0\\tinstalled\\n' \"$name\" \"${name%%:*}\"; done < \"$db/installed\"; exit 1",
    ),
    (
        "/usr/bin/apt-get",
        "echo \"$*\" >> \"$db/calls\"
         case \" $* \" in *' update '*) exit 0;; esac
         while test \"$1\" != --; do shift; done; shift
         for name; do case \"$name\" in nonsense) echo \"E: Unable to locate package $name\" >&2; exit 100;; esac; done
         for name; do
             echo \"${name%%=*}\" >> \"$db/installed\"
             test \"$name\" != fail2ban || { : > \"$db/../usr/bin/fail2ban-server\"; printf \"$rests\" > \"$db/units/fail2ban.service\"; }
         done",
    ),
    (
        "/usr/bin/systemctl",
        "verb=$1; for unit; do :; done
         test $verb = show || echo \"$*\" >> \"$db/calls\"
         if ! test -e \"$db/units/$unit\"; then
             test $verb = show || { echo \"Unit $unit could not be found.\" >&2; exit 5; }
             echo LoadState=not-found; echo ActiveState=inactive; exit 0
         fi
         case $verb in
             show) cat \"$db/units/$unit\";;
             enable) printf \"$runs\" > \"$db/units/$unit\";;
             disable) printf \"$rests\" > \"$db/units/$unit\";;
         esac",
    ),
    ("/usr/bin/sudo", "exit 1"),
    ("/usr/sbin/visudo", "! grep -q staff \"$4\""),
    ("/usr/sbin/sshd", "echo \"$1 $2\" >> \"$db/calls\"; ! grep -q '{{' \"$3\""),
    ("/bin/bash", "exit 1"),
];

/// What every stand-in begins with: where its tree keeps what they know, and how units are.
pub(crate) const PREAMBLE: &str = "#!/bin/sh
case $0 in */usr/*) db=${0%/usr/*}/db;; *) db=${0%/bin/*}/db;; esac
runs='LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n'
rests='LoadState=loaded\\nActiveState=inactive\\nUnitFileState=disabled\\n'
";

/// The units that systemd knows, and whether each runs.
pub(crate) const UNITS: [(&str, bool); 5] = [
    ("chrony", false),
    ("nginx", true),
    ("rpcbind", true),
    ("getty@tty1.service", true),
    ("ssh.service", true),
];
